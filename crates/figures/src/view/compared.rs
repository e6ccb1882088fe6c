//! Which of several figures is the best, in a sentence.
//!
//! It says "fastest" only where the intervals of the two do not overlap.

use super::curves::headline;
use super::number::{Room, US, compact};
use crate::record::schema::Run;
use wiregauge_base::options::each_once;
use wiregauge_stats::Interval;

/// A figure of a run, or of what a row of a table is about, by its name.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub value: f64,
    pub interval: Option<Interval>,
}

impl Named {
    /// The figure with its error, in the unit that `scale` leads to.
    pub fn text(&self, scale: f64, unit: &str) -> String {
        let (value, error) = compact(self.value, self.interval, scale, Room::Enough);
        let error = error.map_or_else(String::new, |error| format!(" {error}"));
        format!("{value}{error} {unit}").trim_end().to_owned()
    }

    /// Whether the intervals show that it is below the other.
    pub fn is_below(&self, other: &Named) -> bool {
        match (self.interval, other.interval) {
            (Some(own), Some(other)) => own.high.0 < other.low.0,
            _ => false,
        }
    }
}

/// What is compared: in which words, and in which unit.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// What the best is called: `fastest`.
    pub word: &'a str,
    /// The figure.
    pub what: &'a str,
    /// What turns it into the unit.
    pub scale: f64,
    pub unit: &'a str,
    pub more_is_better: bool,
}

impl Compared<'_> {
    /// Which of several is the best, and the next: "shm is fastest: p50 0.18 us; next unix, 1.9
    /// us". Where the intervals do not show which of several it is, they are named together.
    /// `None` where there are fewer than two.
    pub fn best(self, all: &[Named]) -> Option<String> {
        let mut sorted: Vec<&Named> = all.iter().filter(|one| one.value.is_finite()).collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        if self.more_is_better {
            sorted.reverse();
        }
        let (best, others) = sorted.split_first().filter(|(_, others)| !others.is_empty())?;
        let (apart, alike): (Vec<&Named>, Vec<&Named>) =
            others.iter().partition(|one| self.is_better(best, one));
        let text = |one: &Named| one.text(self.scale, self.unit);
        let (name, what, first) = (&best.name, self.what, text(best));
        Some(match alike.as_slice() {
            [] => format!("{name} is {}: {what} {first}; next {}.", self.word, self.next(&apart)),
            [one] => format!(
                "{name} and {} cannot be distinguished: {what} {first} and {}.",
                one.name,
                text(one)
            ),
            several => format!(
                "{name} has {what} {first}; {} others cannot be distinguished from it.",
                several.len()
            ),
        })
    }

    /// Whether the intervals show that one is better than the other.
    fn is_better(self, one: &Named, other: &Named) -> bool {
        if self.more_is_better { other.is_below(one) } else { one.is_below(other) }
    }

    /// The first of those that follow the best, with all that may be before it.
    fn next(self, sorted: &[&Named]) -> String {
        let [next, others @ ..] = sorted else { return String::new() };
        let text = |one: &Named| one.text(self.scale, self.unit);
        let alike: Vec<&Named> =
            others.iter().copied().filter(|one| !self.is_better(next, one)).collect();
        let (name, first) = (&next.name, text(next));
        match alike.as_slice() {
            [] => format!("{name}, {first}"),
            [one] => format!(
                "{name} and {}, which cannot be distinguished, {first} and {}",
                one.name,
                text(one)
            ),
            several => format!(
                "{name}, {first}, and {} others that cannot be distinguished from it",
                several.len()
            ),
        }
    }
}

/// Medians of latencies, in us.
pub fn fastest(what: &str) -> Compared<'_> {
    Compared { word: "fastest", what, scale: US, unit: "us", more_is_better: false }
}

/// The median of the metric that represents a run.
pub fn median(run: &Run, name: String) -> Option<Named> {
    let summary = run.summary(headline(run)?)?;
    let found = summary.quantile(0.5)?;
    Some(Named { name, value: found.value?.0, interval: found.interval })
}

/// The transport and how its ends wait.
pub fn ends_of(run: &Run) -> String {
    format!("{} {}", run.case.transport.name(), run.case.wait.name())
}

/// Short names of runs, or their labels where two short ones are alike.
pub fn told_apart(runs: &[&Run], short: impl Fn(&Run) -> String) -> Vec<String> {
    let names: Vec<String> = runs.iter().map(|run| short(run)).collect();
    match each_once(&names).len() == names.len() {
        true => names,
        false => runs.iter().map(|run| run.label.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_stats::Value;

    fn named(name: &str, value: f64, half: f64) -> Named {
        let interval = Interval { low: Value(value - half), high: Value(value + half) };
        Named { name: name.into(), value, interval: Some(interval) }
    }

    #[test]
    fn fastest_is_said_only_where_intervals_are_apart() {
        let said = |all: &[Named]| fastest("p50").best(all).unwrap();
        let (shm, unix) = (named("shm", 183.0, 12.0), named("unix", 1870.0, 270.0));
        let near = named("null", 190.0, 10.0);
        assert_eq!(
            said(&[unix.clone(), shm.clone()]),
            "shm is fastest: p50 0.183 ±0.012 us; next unix, 1.87 ±0.27 us."
        );
        assert_eq!(
            said(&[near.clone(), unix.clone(), shm.clone()]),
            "shm and null cannot be distinguished: p50 0.183 ±0.012 us and 0.190 ±0.010 us."
        );
        let open = Named { interval: None, ..unix };
        assert!(!said(&[open, shm.clone()]).contains("fastest"), "of which nothing is known");
        assert_eq!(fastest("p50").best(&[shm]), None);
        let rates = [named("tcp", 5e9, 1e8), named("shm", 9e9, 1e8)];
        let highest = Compared {
            word: "highest",
            what: "bandwidth",
            scale: 8e-9,
            unit: "Gb/s",
            more_is_better: true,
        };
        assert_eq!(
            highest.best(&rates).unwrap(),
            "shm is highest: bandwidth 72.00 ±0.80 Gb/s; next tcp, 40.00 ±0.80 Gb/s."
        );
    }

    #[test]
    fn the_next_is_said_only_where_its_interval_is_apart() {
        let said = |all: &[Named]| fastest("p50").best(all).unwrap();
        let shm = named("shm", 80.0, 5.0);
        let unix = named("unix", 1700.0, 200.0);
        let unixgram = named("unixgram", 1860.0, 370.0);
        let tcp = named("tcp", 3760.0, 500.0);
        assert_eq!(
            said(&[tcp.clone(), shm.clone(), unixgram.clone(), unix.clone()]),
            "shm is fastest: p50 0.0800 ±0.0050 us; next unix and unixgram, which cannot be \
             distinguished, 1.70 ±0.20 us and 1.86 ±0.37 us."
        );
        let udp = named("udp", 1900.0, 300.0);
        assert_eq!(
            said(&[tcp, shm, unixgram, unix, udp]),
            "shm is fastest: p50 0.0800 ±0.0050 us; next unix, 1.70 ±0.20 us, and 2 others that \
             cannot be distinguished from it."
        );
    }
}
