//! Why no further round of a case was made.

use crate::control::fault::Fault;
use std::fmt;

/// Displayed as a sentence.
pub enum Stop {
    /// All rounds were made.
    All { rounds: u32 },
    /// The intervals are within this share of their values.
    Narrow { rounds: u32, width: f64 },
    /// All rounds were made, and the intervals are wider than was asked for.
    Wide { rounds: u32, width: f64 },
    /// Something went wrong.
    Fault(Fault),
}

impl Stop {
    /// Whether the rounds ended as planned.
    pub fn is_planned(&self) -> bool {
        !matches!(self, Stop::Fault(_))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |width: &f64| format!("{:.3} %", 100.0 * width);
        match self {
            Stop::All { rounds } => write!(f, "all {rounds} rounds were made"),
            Stop::Narrow { rounds, width } => {
                let percent = percent(width);
                write!(f, "after {rounds} rounds the intervals are within {percent} of the values")
            }
            Stop::Wide { rounds, width } => write!(
                f,
                "all {rounds} rounds were made, and the intervals are wider than {} of the values",
                percent(width)
            ),
            Stop::Fault(fault) => fault.fmt(f),
        }
    }
}
