//! Why no further round of a case was made.

use crate::control::fault::Fault;
use crate::plan::Rounds;
use std::fmt;

/// Displayed as a sentence.
pub enum Stop {
    /// The rounds ended as planned: a sentence.
    Planned(String),
    /// Something went wrong.
    Fault(Fault),
}

impl Stop {
    /// Whether so many rounds are enough; the intervals may have to be narrow.
    pub fn after(done: u32, rounds: Rounds, is_narrow: impl FnOnce(f64) -> bool) -> Option<Stop> {
        if done < rounds.least {
            return None;
        }
        let percent = rounds.until.map_or(String::new(), |width| format!("{:.3} %", 100.0 * width));
        let sentence = match rounds.until.map(is_narrow) {
            Some(true) => {
                format!("after {done} rounds the intervals are within {percent} of the values")
            }
            _ if done < rounds.most => return None,
            None => format!("all {done} rounds were measured"),
            Some(false) => format!(
                "all {done} rounds were measured, and the intervals are wider than {percent} of \
                 the values"
            ),
        };
        Some(Stop::Planned(sentence))
    }

    /// Whether the rounds ended as planned.
    pub fn is_planned(&self) -> bool {
        matches!(self, Stop::Planned(_))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Planned(sentence) => f.write_str(sentence),
            Stop::Fault(fault) => fault.fmt(f),
        }
    }
}
