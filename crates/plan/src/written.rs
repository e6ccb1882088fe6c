//! A TOML text whose every value knows its place, so that a refusal can point at it.
//!
//! A table is read field by field; what is left over at its end is unknown, and refused with the
//! names that would have been allowed.

use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wiregauge_base::options::{Named, names};

/// Bytes of a text from which to which something stands.
pub type Place = Range<usize>;
/// A text, and where it stands.
pub type Text = (String, Place);

/// Longest text in bytes: one of 1000 entries has a tenth of it.
pub const LONGEST: usize = 1 << 20;
/// Characters of a line that are shown where something in it is wrong.
const SHOWN: usize = 160;

/// What is wrong in a file, where it stands, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {sentence}")]
pub struct Misplaced {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong and what is allowed, on one line.
    pub sentence: String,
    /// The line itself.
    pub text: String,
    /// How many characters of it are meant.
    pub width: usize,
}

impl Misplaced {
    /// The line with what is meant underlined, to be printed below the sentence.
    pub fn marked(&self) -> String {
        let number = self.line.to_string();
        let gap = " ".repeat(number.len());
        let before: String = self.text.chars().take(self.column - 1).map(blank).collect();
        let mark = "^".repeat(self.width.max(1));
        format!("{gap} |\n{number} | {}\n{gap} | {before}{mark}\n", self.text)
    }
}

/// What keeps a mark below its text: a tab is as wide in both lines.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// A text and the name of the file that it stands in.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file as it was named.
    pub file: String,
    /// The text.
    pub text: String,
}

impl Written {
    /// A refusal that points at a place.
    pub fn wrong(&self, place: &Place, sentence: impl AsRef<str>) -> Misplaced {
        let start = floor(&self.text, place.start);
        let begin = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[begin..].lines().next().unwrap_or_default();
        let column = self.text[begin..start].chars().count() + 1;
        let end = floor(&self.text, place.end.clamp(start, begin + line.len().max(start - begin)));
        let plain = |c: char| if is_obeyed(c) && c != '\t' { '\u{fffd}' } else { c };
        let text: String = line.chars().take(SHOWN).map(plain).collect();
        let room = text.chars().count().saturating_sub(column - 1);
        let width = self.text[start..end].chars().count().clamp(1, room.max(1));
        let sentence = one_line(sentence.as_ref());
        let line = self.text[..begin].matches('\n').count() + 1;
        Misplaced { file: self.file.clone(), line, column, sentence, text, width }
    }

    /// The whole text as a table that is called `what` in refusals.
    pub fn fields(&self, what: &str) -> Result<Fields<'_>, Misplaced> {
        let sentence = format!("{what} exceeds the limit of {LONGEST} B");
        ensure!(self.text.len() <= LONGEST, self.wrong(&(LONGEST..LONGEST), sentence));
        let table = DeTable::parse(&self.text).map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            self.wrong(&place, format!("invalid TOML: {}", error.message()))
        })?;
        let (left, what) = (table.into_inner(), what.to_owned());
        Ok(Fields { written: self, place: 0..0, what, left, asked: Vec::new() })
    }
}

/// The last boundary of characters that is not behind `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A sentence on one line, whatever it quotes.
pub fn one_line(text: &str) -> String {
    escaped(&text.replace('\n', " "))
}

/// Lines of text that a terminal shows and does not obey, whatever they quote: what would move the
/// cursor, change the colour or turn the order of the letters round is escaped.
pub fn escaped(text: &str) -> String {
    if !text.contains(is_obeyed) {
        return text.to_owned();
    }
    let shown = |c: char| match is_obeyed(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Whether a terminal does something at a character but to show it or to end the line. Those above
/// 0x9f turn the direction of what follows (UAX 9, table 4), or end a line for some programs only.
pub fn is_obeyed(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let turns = is_mark || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c != '\n' && (c.is_control() || turns)
}

/// Whether a character may stand in a text of one line.
pub fn is_of_a_line(c: char) -> bool {
    c != '\n' && !is_obeyed(c)
}

/// JSON in which a terminal obeys nothing: it leaves most of those characters as they are, which
/// stand in its texts only.
pub fn escaped_json(text: String) -> String {
    if !text.contains(is_obeyed) {
        return text;
    }
    let shown = |c: char| match is_obeyed(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Stands in the place of what is left out, with its number.
const LEFT_OUT: &str = " characters left out";

/// A text of at most about `most` characters: of a longer one the begin, which says what is wrong,
/// and the end, which says what is allowed.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    // A sentence about few characters would be longer than they are.
    if length <= most + LEFT_OUT.len() {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most / 2).collect();
    let end: String = text.chars().skip(length - most / 2).collect();
    format!("{begin} [{}{LEFT_OUT}] {end}", length - most / 2 * 2)
}

/// A value and where it stands.
pub type Field<'a> = Spanned<DeValue<'a>>;

/// The fields of a table that have not been read yet.
pub struct Fields<'a> {
    /// The text.
    pub written: &'a Written,
    /// Where the table stands.
    pub place: Place,
    /// What it is called in refusals.
    pub what: String,
    left: DeTable<'a>,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Takes a field.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.asked.push(key);
        self.left.remove(key)
    }

    /// All that is left, in the order in which it is written: names and values.
    pub fn rest(&mut self) -> Vec<(Spanned<Cow<'a, str>>, Field<'a>)> {
        let mut rest: Vec<_> = std::mem::take(&mut self.left).into_iter().collect();
        rest.sort_by_key(|(key, _)| key.span().start);
        rest
    }

    /// Takes a field as what its type reads in it.
    pub fn get<T: Read<'a>>(&mut self, key: &'static str) -> Result<T, Misplaced> {
        match self.take(key) {
            Some(field) => T::read(self.written, key, field),
            None => T::missing().ok_or_else(|| {
                self.written.wrong(&self.place, format!("{} needs '{key}'", self.what))
            }),
        }
    }

    /// Refuses what has not been asked for.
    pub fn done(self) -> Result<(), Misplaced> {
        let first = self.left.keys().min_by_key(|key| key.span().start);
        let Some(key) = first else { return Ok(()) };
        let (name, allowed) = (key.get_ref(), self.asked.join(", "));
        let sentence = format!("{} has no key '{name}': use {allowed}", self.what);
        Err(self.written.wrong(&key.span(), sentence))
    }
}

/// What the value of a field can be read as.
pub trait Read<'a>: Sized {
    /// What a missing field means; `None`: it must be there.
    fn missing() -> Option<Self> {
        None
    }

    /// Reads the value of a field of this name.
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced>;
}

impl<'a> Read<'a> for Field<'a> {
    fn read(_: &'a Written, _: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        Ok(field)
    }
}

impl<'a> Read<'a> for Text {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        match field.get_ref() {
            DeValue::String(text) => Ok((text.clone().into_owned(), field.span())),
            other => Err(written.kind(&field.span(), key, other, "a text in quotes")),
        }
    }
}

impl<'a> Read<'a> for String {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        Text::read(written, key, field).map(|(text, _)| text)
    }
}

/// A number, and where it stands.
impl<'a> Read<'a> for (f64, Place) {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        let digits = match field.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
            DeValue::Float(number) => Some(number.as_str()),
            _ => None,
        };
        let number = digits.and_then(|digits| digits.replace('_', "").parse().ok());
        number
            .map(|number| (number, field.span()))
            .ok_or_else(|| written.kind(&field.span(), key, field.get_ref(), "a number"))
    }
}

impl<'a> Read<'a> for bool {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        match field.get_ref() {
            DeValue::Boolean(is) => Ok(*is),
            other => Err(written.kind(&field.span(), key, other, "true or false")),
        }
    }
}

/// A list, empty if the key is missing.
impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    fn missing() -> Option<Self> {
        Some(Vec::new())
    }

    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        let place = field.span();
        match field.into_inner() {
            DeValue::Array(parts) => {
                parts.into_iter().map(|part| T::read(written, key, part)).collect()
            }
            other => Err(written.kind(&place, key, &other, "a list in [ ]")),
        }
    }
}

impl<'a, T: Read<'a>> Read<'a> for Option<T> {
    fn missing() -> Option<Self> {
        Some(None)
    }

    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        T::read(written, key, field).map(Some)
    }
}

/// A table, called by its key in refusals.
impl<'a> Read<'a> for Fields<'a> {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        let (place, what) = (field.span(), format!("a {key}"));
        match field.into_inner() {
            DeValue::Table(left) => Ok(Fields { written, place, what, left, asked: Vec::new() }),
            other => Err(written.kind(&place, key, &other, "a table")),
        }
    }
}

impl Written {
    /// The value that a word names.
    pub fn one_of<T: Named>(&self, key: &str, word: Text) -> Result<T, Misplaced> {
        let (word, place) = word;
        T::from_name(&word).ok_or_else(|| {
            self.wrong(&place, format!("unknown {key} '{word}': use {}", names(T::ALL)))
        })
    }

    /// A text that is not empty and not long, on one line.
    pub fn short(&self, (text, place): Text, most: usize) -> Result<String, Misplaced> {
        let length = text.chars().count();
        let is_line = (1..=most).contains(&length) && text.chars().all(is_of_a_line);
        let sentence = format!("write one line of 1 to {most} characters");
        is_line.then_some(text).ok_or_else(|| self.wrong(&place, sentence))
    }

    /// Refuses a value of the wrong kind.
    pub fn kind(&self, place: &Place, key: &str, value: &DeValue<'_>, write: &str) -> Misplaced {
        self.wrong(place, format!("'{key}' is {}: write {write}", article(value.type_str())))
    }
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> Written {
        Written { file: "a.toml".into(), text: text.into() }
    }

    #[test]
    fn a_refusal_points_at_its_place() {
        let written = written("one = 1\n\ttwo = \"zwei\"\n");
        let wrong = written.wrong(&(15..21), "what\nnow");
        assert_eq!(wrong.to_string(), "a.toml:2:8: what now");
        assert_eq!(wrong.marked(), "  |\n2 | \ttwo = \"zwei\"\n  | \t      ^^^^^^\n");
    }

    #[test]
    fn what_is_not_asked_for_is_refused_with_what_is_allowed() {
        let written = written("one = 1\nthree = 3\n");
        let mut fields = written.fields("a thing").unwrap();
        assert!(fields.take("one").is_some() && fields.take("two").is_none());
        let sentence = "a.toml:2:1: a thing has no key 'three': use one, two";
        assert_eq!(fields.done().unwrap_err().to_string(), sentence);
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let text = "a\u{1b}[2J\u{9b}31m\u{202e}b\r\n\u{7f}é 通";
        assert_eq!(escaped(text), "a\\u{1b}[2J\\u{9b}31m\\u{202e}b\\r\n\\u{7f}é 通");
        assert_eq!(one_line("a\nb\tc"), "a b\\tc");
    }

    #[test]
    fn a_long_text_keeps_its_begin_and_its_end() {
        let text = format!("unknown '{}': use w1", "é".repeat(1 << 20));
        let short = shortened(&text, 40);
        assert!(short.starts_with("unknown 'é") && short.ends_with("é': use w1"), "{short}");
        assert!(short.contains("characters left out") && short.chars().count() < 80, "{short}");
        assert_eq!(shortened("short", 5), "short");
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_can_be_shown(text in "\\PC{0,20}(\n\\PC{0,20}){0,3}",
                                              start in 0usize..70, width in 0usize..70) {
            let wrong = written(&text).wrong(&(start..start + width), "so");
            prop_assert!(wrong.line >= 1 && wrong.column >= 1);
            prop_assert_eq!(wrong.marked().lines().count(), 3);
        }
    }
}
