//! What a figure stands against: the quantity of a case that a graph has below it.

use super::GraphKind;
use serde::{Deserialize, Serialize};

/// A quantity that tells the cases of a series apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Payload of a message, in bytes.
    Size,
    /// Values of a sample of a stream.
    Values,
    /// Messages that the schedule intends per second.
    Rate,
    /// Messages that were answered or arrived per second: measured, not asked for.
    Answered,
    /// Clients of a closed loop.
    Clients,
}

impl Axis {
    /// All.
    pub const ALL: [Axis; 5] =
        [Axis::Size, Axis::Values, Axis::Rate, Axis::Answered, Axis::Clients];

    /// What it is called in a refusal.
    pub const fn what(self) -> &'static str {
        match self {
            Axis::Size => "size",
            Axis::Values => "number of values",
            Axis::Rate => "rate",
            Axis::Answered => "rate of answers",
            Axis::Clients => "number of clients",
        }
    }

    /// Which cases have it.
    pub const fn of_what(self) -> &'static str {
        match self {
            Axis::Size => "every command",
            Axis::Values => "stream",
            Axis::Rate => "load, oneway and stream with rate",
            Axis::Answered => "load, and oneway and stream with rate",
            Axis::Clients => "load with clients",
        }
    }
}

impl GraphKind {
    /// What its figures stand against; none: they stand side by side, or are distributions.
    pub const fn axes(self) -> &'static [Axis] {
        match self {
            GraphKind::Cdf | GraphKind::Histogram | GraphKind::Bars => &[],
            GraphKind::AgainstSize => &[Axis::Size],
            GraphKind::AgainstValues => &[Axis::Values],
            GraphKind::AgainstRate => &[Axis::Rate],
            GraphKind::AgainstAnswered => &[Axis::Answered],
            GraphKind::AgainstClients => &[Axis::Clients],
            GraphKind::Surface => &[Axis::Rate, Axis::Values],
        }
    }
}
