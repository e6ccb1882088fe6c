//! Numbers as texts.

use std::fmt;

/// A number in the shortest decimals that read back as the same: `{:?}`, which writes 2 as `2.0`
/// and 1e300 as that, so that no reader takes one number of a column for a whole one.
pub(super) struct Number {
    pub value: f64,
    /// What stands for NaN.
    pub missing: &'static str,
    /// What stands around an infinity, which is no number of strict JSON.
    pub quote: &'static str,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number { value, missing, quote } = *self;
        match value {
            _ if value.is_nan() => f.write_str(missing),
            _ if value.is_infinite() => write!(f, "{quote}{value}{quote}"),
            _ => fmt::Debug::fmt(&value, f),
        }
    }
}
