//! What one option is.

use crate::units::{Bytes, Span, whole_number};
use std::fmt::Display;
use std::str::FromStr;

/// Options that belong together.
pub type OptionTable = &'static [OptionDef];

/// A type with few values, each of which has a name.
pub trait Named: Copy + 'static {
    /// All values, in the order in which help lists them.
    const ALL: &'static [Self];

    /// The name as typed and recorded.
    fn name(self) -> &'static str;

    /// The value of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// Returns the name that was typed: in any case where that tells the names apart. Of units it does
/// not: MB/s are eight Mb/s.
fn name_typed(names: &[&'static str], typed: &str) -> Option<&'static str> {
    if let Some(name) = names.iter().find(|name| **name == typed) {
        return Some(name);
    }
    let is_told_apart = names
        .iter()
        .enumerate()
        .all(|(at, name)| !names[..at].iter().any(|other| other.eq_ignore_ascii_case(name)));
    names.iter().find(|name| is_told_apart && name.eq_ignore_ascii_case(typed)).copied()
}

/// Refuses what is none of the names; one that differs from some by its case alone, with those.
fn check_name(names: &[&'static str], typed: &str) -> Result<(), String> {
    if name_typed(names, typed).is_some() {
        return Ok(());
    }
    let near: Vec<&str> =
        names.iter().filter(|name| name.eq_ignore_ascii_case(typed)).copied().collect();
    if near.is_empty() {
        return Err(format!("unknown value '{typed}': use {}", names.join(", ")));
    }
    Err(format!("unknown value '{typed}', whose case matters: use {}", near.join(" or ")))
}

/// What kind of value an option takes, and its limits.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// None: the option is given or not.
    Flag,
    /// `on` or `off`.
    Switch,
    /// A number within limits.
    Number {
        /// What it counts.
        unit: Unit,
        /// The least value.
        least: u64,
        /// The greatest value.
        most: u64,
    },
    /// One of these names.
    Choice(fn() -> Vec<&'static str>),
    /// A text that this check accepts.
    Text(fn(&str) -> Result<(), String>),
    /// A path, or another text that is checked where it is used.
    Path,
}

/// What a number counts, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things; written with `k` or `M` after it.
    One,
    /// Bytes.
    Byte,
    /// Nanoseconds.
    Nanosecond,
}

impl Unit {
    pub(super) fn parse(self, text: &str) -> Result<u64, String> {
        match self {
            Unit::One => parse_count(text),
            Unit::Byte => text.parse().map(|Bytes(bytes)| bytes),
            Unit::Nanosecond => text.parse().map(|Span(ns)| ns),
        }
    }

    fn show(self, number: u64) -> String {
        match self {
            Unit::One => number.to_string(),
            Unit::Byte => Bytes(number).to_string(),
            Unit::Nanosecond => Span(number).to_string(),
        }
    }
}

/// One option: its name, what it takes, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    /// The name, without dashes.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The word for its value in help.
    pub metavar: &'static str,
    /// One or two phrases without the default and the limits, which help adds.
    pub help: &'static str,
    /// The value where none is given, as it would be typed.
    pub default: Option<&'static str>,
    /// The same in words, where it depends on something.
    pub default_note: Option<&'static str>,
    /// The heading in help.
    pub heading: Option<&'static str>,
    /// Whether it takes a list with commas between.
    pub is_list: bool,
    /// True where commas within brackets part no list, as in lists of hosts.
    pub has_brackets: bool,
    /// Names that it takes and help leaves out: they are refused where it is read.
    pub hidden_names: &'static [&'static str],
    /// Whether help leaves it out.
    pub is_hidden: bool,
    /// Whether most people want it: it is in the short help.
    pub is_common: bool,
    /// Whether it must be given.
    pub is_required: bool,
    /// Whether it is everything after `--`.
    pub is_last: bool,
    /// Whether it is everything from the first word that is no option.
    pub is_rest: bool,
    /// Whether each end may have a value of its own: the client's and the server's with a comma
    /// between (`PerEnd` of the package `transport`).
    pub is_per_end: bool,
    /// Options that it cannot be given with.
    pub excludes: &'static [&'static str],
    /// Options that it must be given with.
    pub needs: &'static [&'static str],
}

/// Options under one heading of the help.
pub const fn under<const N: usize>(
    heading: &'static str,
    mut options: [OptionDef; N],
) -> [OptionDef; N] {
    let mut number = 0;
    while number < N {
        options[number].heading = Some(heading);
        number += 1;
    }
    options
}

/// Methods that set fields of an option.
macro_rules! setters {
    ($(
        $(#[$of:meta])* $name:ident($($value:ident: $type:ty)?) { $($field:ident: $to:expr),+ }
    )+) => {
        impl OptionDef {$(
            $(#[$of])*
            pub const fn $name(self $(, $value: $type)?) -> Self {
                OptionDef { $($field: $to,)+ ..self }
            }
        )+}
    };
}

setters! {
    /// With a word for its value.
    metavar(word: &'static str) { metavar: word }
    /// With another explanation.
    help(text: &'static str) { help: text }
    /// With a default.
    default(text: &'static str) { default: Some(text) }
    /// With a default that depends on something, in words.
    default_note(note: &'static str) { default_note: Some(note) }
    /// Below a heading.
    heading(heading: &'static str) { heading: Some(heading) }
    /// As a list.
    list() { is_list: true }
    /// Makes it a list whose commas within brackets part nothing.
    bracketed_list() { is_list: true, has_brackets: true }
    /// Not in help.
    hidden() { is_hidden: true }
    /// In the short help.
    common() { is_common: true }
    /// It must be given.
    required() { is_required: true }
    /// It is everything after `--`.
    last() { is_last: true, is_list: true }
    /// It is everything from the first word that is no option.
    rest() { is_rest: true, is_list: true }
    /// With a value for each end.
    per_end() { is_per_end: true }
    /// Not with these.
    excludes(names: &'static [&'static str]) { excludes: names }
    /// With these only.
    needs(names: &'static [&'static str]) { needs: names }
}

/// Functions that make an option of a kind, with the word for its value.
macro_rules! constructors {
    ($(
        $(#[$of:meta])* $name:ident($($value:ident: $type:ty)?) { $kind:expr, $metavar:literal }
    )+) => {
        impl OptionDef {$(
            $(#[$of])*
            pub const fn $name(
                name: &'static str,
                $($value: $type,)?
                help: &'static str,
            ) -> Self {
                Self::new(name, $kind, $metavar, help)
            }
        )+}
    };
}

constructors! {
    /// An option without a value.
    flag() { Kind::Flag, "" }
    /// An option that is on or off.
    switch() { Kind::Switch, "ON|OFF" }
    /// A whole number.
    count() { Kind::Number { unit: Unit::One, least: 0, most: u32::MAX as u64 }, "N" }
    /// A number that need not be whole.
    decimal() { Kind::Text(check_decimal), "VALUE" }
    /// A number of bytes.
    size() { Kind::Number { unit: Unit::Byte, least: 0, most: u64::MAX }, "SIZE" }
    /// A length of time above 0.
    duration() { Kind::Number { unit: Unit::Nanosecond, least: 1, most: u64::MAX }, "TIME" }
    /// A length of time.
    time() { Kind::Number { unit: Unit::Nanosecond, least: 0, most: u64::MAX }, "TIME" }
    /// One of these names.
    one_of(names: fn() -> Vec<&'static str>) { Kind::Choice(names), "NAME" }
    /// A text that a function accepts.
    text(check: fn(&str) -> Result<(), String>) { Kind::Text(check), "TEXT" }
    /// A path, or another text that is checked where it is used.
    path() { Kind::Path, "FILE" }
}

fn names_of<T: Named>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.name()).collect()
}

/// The names of values, with commas between.
pub fn names<'a, T: Named>(values: impl IntoIterator<Item = &'a T>) -> String {
    values.into_iter().map(|value| value.name()).collect::<Vec<_>>().join(", ")
}

fn parses<T: FromStr<Err: Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

impl OptionDef {
    const fn new(
        name: &'static str,
        kind: Kind,
        metavar: &'static str,
        help: &'static str,
    ) -> Self {
        OptionDef {
            name,
            kind,
            metavar,
            help,
            default: None,
            default_note: None,
            heading: None,
            is_list: false,
            has_brackets: false,
            hidden_names: &[],
            is_hidden: false,
            is_common: false,
            is_required: false,
            is_last: false,
            is_rest: false,
            is_per_end: false,
            excludes: &[],
            needs: &[],
        }
    }

    /// One of the values of a type.
    pub const fn choice<T: Named>(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Choice(names_of::<T>), "NAME", help)
    }

    /// What a type reads.
    pub const fn parsed<T: FromStr<Err: Display>>(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Text(parses::<T>), "VALUE", help)
    }

    /// With limits; of a time in nanoseconds.
    pub const fn limits(mut self, least: u64, most: u64) -> Self {
        if let Kind::Number { unit, .. } = self.kind {
            self.kind = Kind::Number { unit, least, most };
        }
        self
    }

    /// Whether it takes a value.
    pub const fn takes_value(&self) -> bool {
        !matches!(self.kind, Kind::Flag)
    }

    /// The names that it takes, where it takes names.
    pub fn choices(&self) -> Option<Vec<&'static str>> {
        match self.kind {
            Kind::Choice(names) => Some(names()),
            Kind::Switch => Some(vec!["on", "off"]),
            _ => None,
        }
    }

    /// The names that it takes and help shows, where it takes names.
    pub fn shown_choices(&self) -> Option<Vec<&'static str>> {
        let mut names = self.choices()?;
        names.retain(|name| !self.hidden_names.contains(name));
        Some(names)
    }

    /// Returns the values in a text: one, or those of a list.
    pub fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match (self.is_list, self.has_brackets) {
            (false, _) => vec![text],
            (true, false) => text.split(',').collect(),
            (true, true) => split_outside_brackets(text),
        }
    }

    /// Whether a text is a value of it; if not, why, in a sentence that says what to use.
    pub fn check(&self, text: &str) -> Result<(), String> {
        self.parts(text).into_iter().try_for_each(|one| self.check_one(one))
    }

    /// The same of one value of a list.
    pub fn check_one(&self, text: &str) -> Result<(), String> {
        match self.kind {
            Kind::Text(check) => check(text),
            Kind::Path => Ok(()),
            Kind::Number { unit, least, most } => {
                if (least..=most).contains(&unit.parse(text)?) {
                    return Ok(());
                }
                let allowed = self.shown_limits().unwrap_or_else(|| match unit {
                    Unit::Nanosecond => "a time above 0".into(),
                    _ => format!("{least} to {most}"),
                });
                Err(format!("'{text}' is out of range: use {allowed}"))
            }
            Kind::Flag | Kind::Switch | Kind::Choice(_) => {
                let names = self.choices().unwrap_or_else(|| vec!["on"]);
                check_name(&names, text)
            }
        }
    }

    /// Returns a value with its names as they are recorded: `TCP,shm` is `tcp,shm`.
    pub fn with_names(&self, text: String) -> String {
        let Some(names) = self.choices() else { return text };
        let written = text.split(',').map(|typed| name_typed(&names, typed).unwrap_or(typed));
        written.collect::<Vec<_>>().join(",")
    }

    /// Its limits in words, where it has any.
    pub fn shown_limits(&self) -> Option<String> {
        let Kind::Number { unit, least, most } = self.kind else { return None };
        // The range of a type is not a limit that help needs to state.
        match (least, most >= u64::from(u32::MAX)) {
            (0, true) => None,
            (1, _) if unit == Unit::Nanosecond => None,
            (least, true) => Some(format!("{} or more", unit.show(least))),
            (least, false) => Some(format!("{} to {}", unit.show(least), unit.show(most))),
        }
    }

    /// Its explanation with limits and default, as help and documents show it.
    pub fn help_text(&self) -> String {
        let mut text = self.help.to_owned();
        if let Some(limits) = self.shown_limits() {
            text.push_str(&format!(" [range: {limits}]"));
        }
        if let Some(default) = self.default.or(self.default_note) {
            text.push_str(&format!(" [default: {default}]"));
        }
        text
    }
}

/// Returns the parts of a text between commas that stand outside of brackets:
/// `n[1-4,7],login` has two.
pub fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let parts = text.split(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.collect()
}

fn check_decimal(text: &str) -> Result<(), String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(drop).ok_or_else(|| format!("invalid number '{text}': use one such as 0.5 or 50"))
}

/// A whole number, with k (10^3) or M (10^6) after it, or as 1e6.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match (text.strip_suffix('k'), text.strip_suffix('M')) {
        (Some(digits), _) => (digits, 1000),
        (_, Some(digits)) => (digits, 1_000_000),
        _ => (text, 1),
    };
    whole_number(digits).and_then(|number| number.checked_mul(factor)).ok_or_else(|| {
        format!("invalid number '{text}': use a whole number such as 500, 10k or 1M")
    })
}

/// Says that types with `ALL` and `name()` of their own are [`Named`].
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::options::Named for $type {
            const ALL: &'static [Self] = &<$type>::ALL;

            fn name(self) -> &'static str {
                <$type>::name(self)
            }
        }
    )+};
}
pub use named;

/// Declares a type with few values, each with the name by which it is typed and recorded.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$of_type:meta])* $visibility:vis enum $type:ident {
            $($(#[$of_value:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        $visibility enum $type { $($(#[$of_value])* #[serde(rename = $name)] $value,)+ }

        impl $type {
            /// All values, in the order in which help lists them.
            pub const ALL: &'static [$type] = &[$($type::$value,)+];

            /// The name as typed and recorded.
            pub const fn name(self) -> &'static str {
                match self { $($type::$value => $name,)+ }
            }
        }

        $crate::options::named!($type);
    };
}
pub use named_enum;
