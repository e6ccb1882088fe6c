//! The values that were given.

use super::{Kind, Named, OptionDef, OptionTable, UsageError, parse_count};
use crate::units::{Bytes, Span};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Values by the names of their options, as they were typed. All are checked against their
/// definitions when they are set; where none was given, the getters give the default.
#[derive(Clone)]
pub struct Given {
    definitions: Arc<[&'static OptionDef]>,
    values: BTreeMap<&'static str, String>,
}

impl PartialEq for Given {
    fn eq(&self, other: &Given) -> bool {
        self.values == other.values
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

impl Given {
    /// Nothing given of these tables. Where two have an option of one name, the first counts.
    pub fn of_tables(tables: impl IntoIterator<Item = OptionTable>) -> Given {
        let mut definitions: Vec<&'static OptionDef> = Vec::new();
        for definition in tables.into_iter().flatten() {
            if definitions.iter().all(|known| known.name != definition.name) {
                definitions.push(definition);
            }
        }
        Given::of_definitions(definitions.into())
    }

    /// The same of definitions whose names differ.
    pub fn of_definitions(definitions: Arc<[&'static OptionDef]>) -> Given {
        Given { definitions, values: BTreeMap::new() }
    }

    /// The options that can be given.
    pub fn definitions(&self) -> &[&'static OptionDef] {
        &self.definitions
    }

    /// The definition of an option.
    pub fn definition(&self, name: &str) -> Option<&'static OptionDef> {
        self.definitions.iter().copied().find(|definition| definition.name == name)
    }

    /// Gives an option a value.
    pub fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), UsageError> {
        let (text, definition) = (text.into(), self.definition(name));
        let definition =
            definition.ok_or_else(|| UsageError(format!("there is no option --{name}")))?;
        definition.check(&text).map_err(UsageError::of_option(name))?;
        self.values.insert(definition.name, definition.with_names(text));
        Ok(())
    }

    /// Takes a value back.
    pub fn unset(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// Whether these options go together.
    pub fn check_together(&self) -> Result<(), UsageError> {
        for definition in self.values.keys().filter_map(|name| self.definition(name)) {
            let name = definition.name;
            if let Some(other) = definition.excludes.iter().find(|other| self.is_given(other)) {
                return Err(UsageError(format!(
                    "--{name} and --{other} exclude each other: use one of them"
                )));
            }
            if let Some(other) = definition.needs.iter().find(|other| !self.is_given(other)) {
                return Err(UsageError(format!("--{name} needs --{other}: use both")));
            }
        }
        Ok(())
    }

    /// What was given, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Whether a value was given.
    pub fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A value as it was typed, or the default.
    pub fn text(&self, name: &str) -> Option<&str> {
        let default = || self.definition(name).and_then(|definition| definition.default);
        debug_assert!(self.definition(name).is_some(), "no table has an option --{name}");
        self.values.get(name).map(String::as_str).or_else(default)
    }

    /// What a function reads in a value.
    pub fn read<T, E>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.text(name).and_then(|text| parse(text).ok())
    }

    /// What a type reads in a value.
    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.read(name, str::parse)
    }

    /// What a function reads in each value of a list.
    pub fn read_list<T, E>(&self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let Some((text, definition)) = self.text(name).zip(self.definition(name)) else {
            return Vec::new();
        };
        definition.parts(text).into_iter().filter_map(|one| parse(one).ok()).collect()
    }

    /// A type whose fields are named as options: each has the value of its option.
    pub fn fields<T: DeserializeOwned>(&self) -> Result<T, UsageError> {
        serde_json::from_value(self.named().into()).map_err(|error| UsageError(error.to_string()))
    }

    /// The same for all types.
    fn named(&self) -> Map<String, Value> {
        let field = |one: &&'static OptionDef| {
            let text = self.text(one.name)?;
            let value: Value = match one.kind {
                Kind::Number { unit, .. } => unit.parse(text).ok()?.into(),
                Kind::Text(_) => text.parse::<f64>().ok()?.into(),
                _ => text.into(),
            };
            Some((one.name.replace('-', "_"), value))
        };
        self.definitions.iter().filter_map(field).collect()
    }

    /// What a type reads in each value of a list.
    pub fn list<T: FromStr>(&self, name: &str) -> Vec<T> {
        self.read_list(name, str::parse)
    }

    /// Whether a flag was given.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("on")
    }

    /// Whether a switch is on.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text == "on")
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.read(name, parse_count)
    }

    /// The same, of an option whose limits fit the type.
    pub fn count32(&self, name: &str) -> Option<u32> {
        self.count(name).and_then(|count| count.try_into().ok())
    }

    /// A list of them.
    pub fn counts32(&self, name: &str) -> Vec<u32> {
        let counts = self.read_list(name, parse_count).into_iter();
        counts.filter_map(|count| count.try_into().ok()).collect()
    }

    /// A number of bytes.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        self.get(name)
    }

    /// A length of time.
    pub fn time(&self, name: &str) -> Option<Span> {
        self.get(name)
    }

    /// The value of a name.
    pub fn choice<T: Named>(&self, name: &str) -> Option<T> {
        self.text(name).and_then(T::from_name)
    }

    /// The values of a list of names, each once, in the order in which they were typed.
    pub fn choices<T: Named + PartialEq>(&self, name: &str) -> Vec<T> {
        each_once(self.read_list(name, |text| T::from_name(text).ok_or(())))
    }
}

/// The values of a list in the order in which they were typed, each once.
pub fn each_once<T: PartialEq>(typed: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in typed {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// Items in groups of those that are alike, each in the order in which they came.
pub fn grouped<T>(
    items: impl IntoIterator<Item = T>,
    alike: impl Fn(&T, &T) -> bool,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| alike(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        Green,
    }

    impl Named for Colour {
        const ALL: &'static [Colour] = &[Colour::Red, Colour::Green];

        fn name(self) -> &'static str {
            match self {
                Colour::Red => "red",
                Colour::Green => "green",
            }
        }
    }

    const TABLE: OptionTable = &[
        OptionDef::flag("quiet", "Print nothing").excludes(&["depth"]),
        OptionDef::switch("nodelay", "Send at once").default("on"),
        OptionDef::count("depth", "Queue depth").limits(1, 64).default("16"),
        OptionDef::size("mss", "Segment size").limits(88, 32767),
        OptionDef::time("pause", "Pause"),
        OptionDef::choice::<Colour>("colour", "Colours").list().default("red"),
        OptionDef::parsed::<f64>("gain", "Gain").needs(&["pause"]),
    ];

    fn given(values: &[(&str, &str)]) -> Result<Given, UsageError> {
        let mut given = Given::of_tables([TABLE]);
        values.iter().try_for_each(|(name, text)| given.set(name, *text))?;
        given.check_together().map(|()| given)
    }

    #[test]
    fn a_value_is_read_by_its_type_and_defaults_come_from_the_table() {
        let none = given(&[]).unwrap();
        assert_eq!((none.count("depth"), none.switch("nodelay")), (Some(16), Some(true)));
        assert_eq!((none.size("mss"), none.flag("quiet")), (None, false));
        assert_eq!(none.choices::<Colour>("colour"), [Colour::Red]);
        let values =
            [("mss", "1kB"), ("quiet", "on"), ("colour", "GREEN,red,green"), ("nodelay", "Off")];
        let some = given(&values).unwrap();
        assert_eq!((some.size("mss"), some.flag("quiet")), (Some(Bytes(1000)), true));
        assert_eq!(some.choices::<Colour>("colour"), [Colour::Green, Colour::Red]);
        assert_eq!((some.switch("nodelay"), some.text("nodelay")), (Some(false), Some("off")));
        assert!(some.is_given("mss") && !some.is_given("depth"));
    }

    #[test]
    fn a_name_may_be_typed_in_any_case_unless_two_differ_by_it_alone() {
        let transport = OptionDef::one_of("transport", || vec!["tcp", "udp"], "");
        assert_eq!(transport.with_names("TCP,Udp".into()), "tcp,udp");
        let unit = OptionDef::one_of("unit", || vec!["Gb/s", "GB/s", "GiB/s"], "");
        assert_eq!(unit.with_names("GB/s".into()), "GB/s");
        assert_eq!((unit.check("GB/s"), unit.check("Gb/s")), (Ok(()), Ok(())));
        let refused = unit.check("gb/S").unwrap_err();
        assert!(refused.ends_with("whose case matters: use Gb/s or GB/s"), "{refused}");
        let refused = unit.check("gib/s").unwrap_err();
        assert!(refused.ends_with("whose case matters: use GiB/s"), "{refused}");
    }

    #[test]
    fn commas_within_brackets_part_no_list_of_hosts() {
        let hosts = OptionDef::path("hosts", "").bracketed_list();
        assert_eq!(hosts.parts("n[1-4,7],login"), ["n[1-4,7]", "login"]);
        assert_eq!(hosts.parts("a,,b["), ["a", "", "b["]);
        assert_eq!(hosts.parts("]a,b"), ["]a", "b"]);
        assert_eq!(OptionDef::path("files", "").list().parts("a[1,2]"), ["a[1", "2]"]);
        assert_eq!(OptionDef::path("file", "").parts("a,b"), ["a,b"]);
    }

    #[test]
    fn fields_have_the_values_of_the_options_of_their_names() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Fields {
            depth: u32,
            colour: String,
            pause: Span,
            gain: f64,
        }
        let given = given(&[("depth", "8"), ("pause", "2us"), ("gain", "1.5")]).unwrap();
        let colour = "red".to_string();
        assert_eq!(given.fields(), Ok(Fields { depth: 8, colour, pause: Span(2000), gain: 1.5 }));
    }

    #[test]
    fn what_is_not_allowed_is_a_sentence_that_says_what_is() {
        for (values, says) in [
            (vec![("depth", "65")], "--depth: '65' is out of range: use 1 to 64"),
            (vec![("depth", "x")], "--depth: invalid number 'x': use a whole number"),
            (vec![("mss", "9")], "--mss: '9' is out of range: use 88 B to 32767 B"),
            (vec![("colour", "red,blue")], "--colour: unknown value 'blue': use red, green"),
            (vec![("nodelay", "yes")], "--nodelay: unknown value 'yes': use on, off"),
            (vec![("size", "1")], "there is no option --size"),
            (vec![("gain", "1.5")], "--gain needs --pause: use both"),
            (vec![("quiet", "on"), ("depth", "1")], "--quiet and --depth exclude each other"),
        ] {
            let refused = given(&values).unwrap_err().0;
            assert!(refused.starts_with(says), "{refused}");
        }
    }

    #[test]
    fn help_has_limits_and_default() {
        let depth = TABLE.iter().find(|one| matches!(one.kind, Kind::Number { .. })).unwrap();
        assert_eq!(depth.help_text(), "Queue depth [range: 1 to 64] [default: 16]");
    }
}
