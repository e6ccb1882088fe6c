//! Numbers of a sentence, as a person reads them.

use std::fmt;

/// A share, in percent.
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let digits = match percent {
            p if p >= 10.0 => 0,
            p if p >= 0.1 => 1,
            _ => 4,
        };
        write!(f, "{percent:.digits$} %")
    }
}

/// A time in ns, with three digits or more.
pub struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scales = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let (scale, unit) =
            scales.into_iter().find(|(s, _)| self.0.abs() >= *s).unwrap_or((1.0, "ns"));
        let x = self.0 / scale;
        let digits = match x.abs() {
            x if x >= 100.0 => 0,
            x if x >= 10.0 => 1,
            _ => 2,
        };
        write!(f, "{x:.digits$} {unit}")
    }
}

/// A number of things: `1 round`, `3 rounds`.
pub struct Many(pub u64, pub &'static str);

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}
