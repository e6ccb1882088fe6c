//! The values of samples as words of a text.

use crate::signal::{Kind, MOST_VALUES, Value};
use std::io::Write;

/// The version of `villas.binary`.
pub const VERSION: u8 = 2;

/// Why a text or a message is no sample. What is found in a measured loop is no sentence yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// It ends within a sample.
    #[error("it ends within a sample")]
    Short,
    /// A datagram or file of another version.
    #[error("version {0} of villas.binary; {known} is known", known = VERSION)]
    Version(u8),
    /// More values than a sample has.
    #[error("a sample of {0} values; at most {most} are allowed", most = MOST_VALUES)]
    Values(usize),
    /// A second has fewer nanoseconds.
    #[error("{0} ns of a second")]
    Nanoseconds(u64),
    /// Something else stands where it should.
    #[error("{0}")]
    Wrong(String),
}

pub fn wrong<T>(what: impl Into<String>) -> Result<T, Foreign> {
    Err(Foreign::Wrong(what.into()))
}

/// The value of a word, as the kind of its signal says.
pub fn value(word: &str, kind: Kind) -> Result<Value, Foreign> {
    let parsed = match kind {
        Kind::Float => word.parse().ok().map(Value::Float),
        Kind::Integer => word.parse().ok().map(Value::Integer),
        Kind::Boolean => match word {
            "0" | "false" => Some(Value::Boolean(false)),
            "1" | "true" => Some(Value::Boolean(true)),
            _ => None,
        },
        Kind::Complex => complex(word),
    };
    parsed.map_or_else(|| wrong(format!("'{word}' is no {}", kind.name())), Ok)
}

/// `1.5-2i`, `1.5` or `2i`.
fn complex(word: &str) -> Option<Value> {
    let Some(both) = word.strip_suffix('i') else {
        return Some(Value::Complex(word.parse().ok()?, 0.0));
    };
    // The sign that parts them is the last that begins no exponent.
    let is_sign = |(at, sign): &(usize, char)| {
        matches!(sign, '+' | '-') && *at > 0 && !both[..*at].ends_with(['e', 'E'])
    };
    Some(match both.char_indices().rfind(is_sign) {
        Some((at, _)) => Value::Complex(both[..at].parse().ok()?, both[at..].parse().ok()?),
        None => Value::Complex(0.0, both.parse().ok()?),
    })
}

/// A value as a word. Numbers are the shortest that read back as the same.
pub fn word(value: Value, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = match value {
        Value::Float(value) => write!(out, "{value:?}"),
        Value::Integer(value) => write!(out, "{value}"),
        Value::Boolean(value) => write!(out, "{}", u8::from(value)),
        Value::Complex(re, im) => write!(out, "{re:?}{im:+?}i"),
    };
}
