//! What the figures of a metric are in, and how they are shown.

use super::model::Unit;
use super::number::{MEGABYTES, PERCENT, THOUSANDS, US, per_second, short, time, trimmed};
use crate::stats::RateMetric;

/// What a graph's figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shown in us.
    Time,
    /// Shown in MB/s.
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
        match metric {
            RateMetric::Bandwidth | RateMetric::Ceiling => Scale::Bytes,
            RateMetric::MessageRate | RateMetric::OfferedRate | RateMetric::AchievedRate => {
                Scale::Messages
            }
            RateMetric::CpuClient
            | RateMetric::CpuServer
            | RateMetric::BufferTime
            | RateMetric::EmptyPollTime
            | RateMetric::FullPollTime
            | RateMetric::BufferPollTime
            | RateMetric::BufferEmptyPollTime
            | RateMetric::BufferFullPollTime => Scale::Cost,
            RateMetric::CompletionsPerPoll | RateMetric::RequestsPerPoll => Scale::PerPoll,
            RateMetric::EmptyPolls | RateMetric::FullPolls => Scale::PerRead,
            RateMetric::Missed => Scale::Share,
            RateMetric::Slowdown => Scale::Ratio,
        }
    }

    /// The unit in which it is shown.
    pub fn unit(self) -> &'static str {
        match self {
            Scale::Time => "us",
            Scale::Bytes => "MB/s",
            Scale::Messages => "k msg/s",
            Scale::Cost => "ns",
            Scale::PerPoll => "1/poll",
            Scale::PerRead => "1/read",
            Scale::Share => "%",
            Scale::Ratio => "1",
        }
    }

    /// The same as the unit of an axis.
    pub fn on_axis(self) -> Unit {
        match self {
            Scale::Time | Scale::Cost => Unit::Time,
            Scale::Bytes => Unit::BytesPerSecond,
            Scale::Messages => Unit::MessagesPerSecond,
            Scale::PerPoll | Scale::PerRead => Unit::None,
            Scale::Share => Unit::Share,
            Scale::Ratio => Unit::Times,
        }
    }

    /// The label of an axis, where its ticks do not carry the unit.
    pub fn label(self) -> &'static str {
        match self {
            Scale::Time | Scale::Messages | Scale::Share | Scale::Ratio => "",
            Scale::Bytes => "MB/s",
            Scale::Cost => "per message or read",
            Scale::PerPoll => "per poll",
            Scale::PerRead => "per read",
        }
    }

    /// A figure in words.
    pub fn text(self, value: f64) -> String {
        match self {
            Scale::Time | Scale::Cost => time(value),
            Scale::Bytes => format!("{} MB/s", short(value * MEGABYTES)),
            Scale::Messages => per_second(value),
            Scale::PerPoll => format!("{} per poll", short(value)),
            Scale::PerRead => format!("{} per read", short(value)),
            Scale::Share => format!("{} %", trimmed(value * PERCENT)),
            Scale::Ratio => format!("{}×", trimmed(value)),
        }
    }

    /// What turns the record's figure into that unit.
    pub fn factor(self) -> f64 {
        match self {
            Scale::Time => US,
            Scale::Messages => THOUSANDS,
            Scale::Bytes => MEGABYTES,
            Scale::Cost | Scale::PerPoll | Scale::PerRead | Scale::Ratio => 1.0,
            Scale::Share => PERCENT,
        }
    }
}
