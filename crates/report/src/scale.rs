//! What the figures of a metric are in, and how they are shown.

use super::model::{Axis, Unit};
use super::number::{MEGABYTES, PERCENT, THOUSANDS, US, per_second, short, time, trimmed};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_stats::{RateMetric, RateUnit};

/// What a graph's figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shown in us.
    Time,
    /// Shown in MB/s, or in the unit that was chosen.
    Bytes,
    /// Shown in thousands of messages per second.
    Messages,
    /// Shown in ns for a message or a read.
    Cost,
    /// Shown as it is, for a poll.
    PerPoll,
    /// Shown as it is, for a read.
    PerRead,
    /// Shown in per cent.
    Share,
    /// Shown as it is, for one.
    Ratio,
}

impl Scale {
    /// That of a metric by its name.
    pub fn of(metric: &str) -> Scale {
        RateMetric::from_name(metric).map_or(Scale::Time, Scale::of_rate)
    }

    /// That of a rate.
    pub fn of_rate(metric: RateMetric) -> Scale {
        match metric.unit() {
            RateUnit::BytesPerSecond => Scale::Bytes,
            RateUnit::MessagesPerSecond => Scale::Messages,
            RateUnit::Nanoseconds => Scale::Cost,
            RateUnit::PerPoll => Scale::PerPoll,
            RateUnit::PerRead => Scale::PerRead,
            RateUnit::Share => Scale::Share,
            RateUnit::Ratio => Scale::Ratio,
        }
    }

    /// The unit in which it is shown, what turns the record's figure into that unit, the unit of an
    /// axis, and the label of an axis whose ticks do not carry the unit.
    fn words(self) -> (&'static str, f64, Unit, &'static str) {
        match self {
            Scale::Time => ("us", US, Unit::Time, ""),
            Scale::Bytes => {
                let unit = byte_rate::or(ByteRateUnit::Megabytes);
                (unit.name(), unit.factor(), Unit::BytesPerSecond, unit.name())
            }
            Scale::Messages => ("k msg/s", THOUSANDS, Unit::MessagesPerSecond, ""),
            Scale::Cost => ("ns", 1.0, Unit::Time, "per message or read"),
            Scale::PerPoll => ("1/poll", 1.0, Unit::None, "per poll"),
            Scale::PerRead => ("1/read", 1.0, Unit::None, "per read"),
            Scale::Share => ("%", PERCENT, Unit::Share, ""),
            Scale::Ratio => ("1", 1.0, Unit::Times, ""),
        }
    }

    /// The unit in which it is shown.
    pub fn unit(self) -> &'static str {
        self.words().0
    }

    /// What turns the record's figure into that unit.
    pub fn factor(self) -> f64 {
        self.words().1
    }

    /// An axis with its unit and label; how it is divided is the plot's.
    pub fn axis(self) -> Axis {
        let (_, factor, unit, label) = self.words();
        let is_chosen = self == Scale::Bytes && factor != MEGABYTES;
        Axis { label: label.into(), unit, factor: is_chosen.then_some(factor), ..Axis::default() }
    }

    /// A figure in words.
    pub fn text(self, value: f64) -> String {
        match self {
            Scale::Time | Scale::Cost => time(value),
            Scale::Bytes => format!("{} {}", short(value * self.factor()), self.unit()),
            Scale::Messages => per_second(value),
            Scale::PerPoll | Scale::PerRead => format!("{} {}", short(value), self.words().3),
            Scale::Share => format!("{} %", trimmed(value * PERCENT)),
            Scale::Ratio => format!("{}×", trimmed(value)),
        }
    }
}
