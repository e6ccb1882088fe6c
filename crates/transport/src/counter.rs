//! What an end has counted when a round is over.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Counters by their names in the record.
pub type FinalCounters = BTreeMap<String, CounterValue>;

/// What a counter says, and thereby how those of several ends are put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CounterValue {
    /// Events of this end: the sum.
    Events(u64),
    /// Events of a port, of which each end on it sees all: the largest.
    OfPort(u64),
    /// No number: the last.
    Text(String),
    /// A state of this end when its round was over: the largest, also of several hosts.
    Largest(u64),
}

impl CounterValue {
    fn merge(&mut self, other: &CounterValue) {
        match (self, other) {
            (CounterValue::Events(sum), CounterValue::Events(more)) => {
                *sum = sum.saturating_add(*more);
            }
            (CounterValue::OfPort(largest), CounterValue::OfPort(other))
            | (CounterValue::Largest(largest), CounterValue::Largest(other)) => {
                *largest = (*largest).max(*other);
            }
            (value, other) => *value = other.clone(),
        }
    }
}

impl fmt::Display for CounterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CounterValue::Events(count)
            | CounterValue::OfPort(count)
            | CounterValue::Largest(count) => count.fmt(f),
            CounterValue::Text(text) => f.write_str(text),
        }
    }
}

/// What stands before the name of a port's counter.
pub const PREFIX: &str = "counter.";

/// The counters of a port that moved. All ends of this host see them. One that is lower than before
/// was reset, or could not be read, and shows nothing.
pub fn moved(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> FinalCounters {
    BTreeMap::from_iter(now.iter().filter_map(|(name, now)| {
        let more = now.saturating_sub(before.get(name).copied().unwrap_or(0));
        (more != 0).then(|| (format!("{PREFIX}{name}"), CounterValue::OfPort(more)))
    }))
}

/// Counters of several ends, as those of one.
pub fn merged(all: impl IntoIterator<Item = FinalCounters>) -> FinalCounters {
    let mut merged = FinalCounters::new();
    for (name, value) in all.into_iter().flatten() {
        merged.entry(name).and_modify(|known| known.merge(&value)).or_insert(value);
    }
    merged
}

/// Counters of several hosts, as those of one: ports of different hosts see different packets.
pub fn of_hosts(all: impl IntoIterator<Item = FinalCounters>) -> FinalCounters {
    let mut sums = FinalCounters::new();
    for (name, value) in all.into_iter().flatten() {
        match (sums.get_mut(&name), value) {
            (Some(CounterValue::OfPort(sum)), CounterValue::OfPort(more)) => {
                *sum = sum.saturating_add(more);
            }
            (Some(known), value) => known.merge(&value),
            (None, value) => drop(sums.insert(name, value)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_add_up_and_a_port_s_counters_do_not() {
        let end = |retries, packets, text: &str| {
            FinalCounters::from([
                ("error.send.retry_exc".to_string(), CounterValue::Events(retries)),
                ("counter.rx".to_string(), CounterValue::OfPort(packets)),
                ("event".to_string(), CounterValue::Text(text.to_string())),
            ])
        };
        assert_eq!(merged([end(1, 91, "a"), end(2, 90, "b")]), end(3, 91, "b"));
        assert_eq!(merged([end(1, 91, "a")]), end(1, 91, "a"));
        assert_eq!(of_hosts([end(1, 91, "a"), end(2, 90, "b")]), end(3, 181, "b"));
    }
}
