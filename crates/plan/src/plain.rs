//! Text from elsewhere that is to be shown: what is read through this file holds no character that
//! a terminal obeys and no text that fills screens, in whichever field it stands. Pure.

use super::written::one_line;
use serde::Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use std::fmt;

/// Most characters of a text. The longest honest one is a kernel's command line, of 4096 B.
pub const LONGEST_TEXT: usize = 4096;

/// A text as it may be shown: on one line, and without what lies beyond [`LONGEST_TEXT`].
pub fn text(foreign: &str) -> String {
    let mut line = one_line(foreign);
    if let Some((end, _)) = line.char_indices().nth(LONGEST_TEXT) {
        line.truncate(end);
    }
    line
}

/// Reads a value of which every text, names and keys of maps included, becomes [`text`].
///
/// # Errors
/// Those of the format.
pub fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::deserialize(Plain(from))
}

/// A part of serde that hands on what it is given, and texts as [`text`].
struct Plain<T>(T);

/// Methods that a wrapped deserializer has, too, each with a wrapped visitor.
macro_rules! ask {
    ($($method:ident($($name:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self $(, $name: $type)*, visitor: V)
        -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Plain(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Plain<D> {
    type Error = D::Error;

    ask! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32()
        deserialize_i64() deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32()
        deserialize_u64() deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char()
        deserialize_str() deserialize_string() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Values that hold no text.
macro_rules! hand_on {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

/// Values with parts.
macro_rules! hand_on_within {
    ($($method:ident($access:ident))*) => {$(
        fn $method<A: $access<'de>>(self, parts: A) -> Result<V::Value, A::Error> {
            self.0.$method(Plain(parts))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Plain<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    hand_on! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_f32(f32) visit_f64(f64)
        visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    hand_on_within! {
        visit_some(Deserializer) visit_newtype_struct(Deserializer)
        visit_seq(SeqAccess) visit_map(MapAccess) visit_enum(EnumAccess)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    // The defaults of visit_char, visit_string and visit_borrowed_str come here.
    fn visit_str<E: Error>(self, foreign: &str) -> Result<V::Value, E> {
        self.0.visit_string(text(foreign))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Plain<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Plain(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Plain<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Plain(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Plain<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Plain(seed))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Plain(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Plain<A> {
    type Error = A::Error;
    type Variant = Plain<A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Plain<A::Variant>), A::Error> {
        self.0.variant_seed(Plain(seed)).map(|(variant, content)| (variant, Plain(content)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Plain<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.newtype_variant_seed(Plain(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, v: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Plain(v))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        v: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Plain(v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    /// A text wherever serde has a place for one.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Anything {
        Unit,
        New(String),
        Several(Option<String>, char, f64),
        Named { map: BTreeMap<String, Vec<String>>, result: Result<u64, String> },
    }

    fn everywhere(text: &str) -> Vec<Anything> {
        let owned = || text.to_owned();
        let map = BTreeMap::from([(owned(), vec![owned(), owned()])]);
        vec![
            Anything::Unit,
            Anything::New(owned()),
            Anything::Several(Some(owned()), text.chars().next().unwrap_or('a'), 0.1),
            Anything::Named { map, result: Err(owned()) },
        ]
    }

    const BAD: &str = "\u{1b}[2Jgone\u{9b}31m\u{7}\u{202e}\r";

    #[test]
    fn no_text_of_a_value_is_obeyed_by_a_terminal_in_either_format() {
        let is_plain = |found: &[Anything]| {
            let shown = format!("{found:?}");
            // What Debug escapes itself would be escaped once more where it was plain already.
            assert!(shown.contains(r"\\u{1b}[2Jgone\\u{9b}31m\\u{7}\\u{202e}"), "{shown}");
            assert!(!serde_json::to_string(found).unwrap().contains(r#""\u001b"#), "{found:?}");
        };
        let sent = everywhere(BAD);
        let frame = postcard::to_stdvec(&sent[1..2]).unwrap();
        let mut from = postcard::Deserializer::from_bytes(&frame);
        is_plain(&read::<Vec<Anything>, _>(&mut from).unwrap());
        let json = serde_json::to_vec(&sent[3..]).unwrap();
        let mut from = serde_json::Deserializer::from_slice(&json);
        is_plain(&read::<Vec<Anything>, _>(&mut from).unwrap());
    }

    #[test]
    fn a_text_that_fills_screens_is_cut_off() {
        let long = "é".repeat(LONGEST_TEXT + 1);
        assert_eq!(text(&long).chars().count(), LONGEST_TEXT);
        assert_eq!(text(&long[2..]), long[2..]);
    }

    proptest! {
        #[test]
        fn what_is_plain_is_read_as_it_is(word in "[ -~äöü]{0,40}") {
            let sent = everywhere(&word);
            let frame = postcard::to_stdvec(&sent).unwrap();
            let mut from = postcard::Deserializer::from_bytes(&frame);
            prop_assert_eq!(&read::<Vec<Anything>, _>(&mut from).unwrap(), &sent);
            let json = serde_json::to_vec(&sent).unwrap();
            let mut from = serde_json::Deserializer::from_slice(&json);
            prop_assert_eq!(&read::<Vec<Anything>, _>(&mut from).unwrap(), &sent);
        }

        #[test]
        fn whatever_text_holds_is_shown_on_one_line(foreign: String) {
            let shown = text(&foreign);
            prop_assert!(!shown.contains(char::is_control));
            prop_assert_eq!(text(&shown), shown);
        }
    }
}
