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
    /// Returns which of several is the best, and the next: "shm is fastest: p50 0.18 us; next
    /// unix, 1.9 us". Where the intervals do not show which of several it is, they are named
    /// together. `None` where there are fewer than two.
    pub fn best(self, all: &[Named]) -> Option<String> {
        let mut sorted: Vec<&Named> = all.iter().filter(|one| one.value.is_finite()).collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        if self.more_is_better {
            sorted.reverse();
        }
        let (best, others) = sorted.split_first().filter(|(_, others)| !others.is_empty())?;
        let (apart, alike): (Vec<&Named>, Vec<&Named>) =
            others.iter().partition(|one| self.is_better(best, one));
        let (name, what, first) = (&best.name, self.what, self.text(best));
        let next = if apart.is_empty() { String::new() } else { "; next ".to_owned() };
        let next = next + &self.next(&apart);
        Some(match alike.as_slice() {
            [] => format!("{name} is {}: {what} {first}{next}.", self.word),
            [one] => format!(
                "{name} and {} cannot be distinguished: {what} {first} and {}{next}.",
                one.name,
                self.text(one)
            ),
            several => format!(
                "{name} has {what} {first}; {} cannot be distinguished from it{next}.",
                listed(several)
            ),
        })
    }

    fn text(self, one: &Named) -> String {
        one.text(self.scale, self.unit)
    }

    /// Whether the intervals show that one is better than the other.
    fn is_better(self, one: &Named, other: &Named) -> bool {
        if self.more_is_better { other.is_below(one) } else { one.is_below(other) }
    }

    /// The first of those that follow the best, with all that may be before it.
    fn next(self, sorted: &[&Named]) -> String {
        let [next, others @ ..] = sorted else { return String::new() };
        let alike: Vec<&Named> =
            others.iter().copied().filter(|one| !self.is_better(next, one)).collect();
        let (name, first) = (&next.name, self.text(next));
        match alike.as_slice() {
            [] => format!("{name}, {first}"),
            [one] => format!(
                "{name} and {}, which cannot be distinguished, {first} and {}",
                one.name,
                self.text(one)
            ),
            several => format!(
                "{name}, {first}, and {} that cannot be distinguished from it",
                listed(several)
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

/// Names that are listed; of more, their number.
const MAX_LISTED: usize = 3;

/// Returns the names of several: `a, b and c`, or `5 others`.
fn listed(all: &[&Named]) -> String {
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() && names.len() <= MAX_LISTED => {
            format!("{} and {last}", first.join(", "))
        }
        _ => format!("{} others", names.len()),
    }
}

/// Returns short names of runs; where two are alike, with what tells them apart: `tcp busy
/// (cubic)`. Where even these are alike, the whole labels.
pub fn told_apart(runs: &[&Run], short: impl Fn(&Run) -> String) -> Vec<String> {
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    names_apart(runs.iter().map(|run| short(run)).collect(), &labels)
}

fn names_apart(mut names: Vec<String>, labels: &[&str]) -> Vec<String> {
    if each_once(&names).len() == names.len() {
        return names;
    }
    let split: Vec<Vec<&str>> = labels.iter().map(|label| words(label)).collect();
    for (name, label) in names.iter_mut().zip(&split) {
        let own = label.iter().filter(|word| !split.iter().all(|other| other.contains(word)));
        let own: Vec<&str> = own.copied().filter(|word| !words(name).contains(word)).collect();
        if !own.is_empty() {
            // That of a series stands before a colon.
            *name = format!("{name} ({})", own.join(" ").trim_end_matches(':'));
        }
    }
    match each_once(&names).len() == names.len() {
        true => names,
        false => labels.iter().map(|label| (*label).to_owned()).collect(),
    }
}

/// Returns the words of a label; a number and the unit behind it are one.
pub fn words(label: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = label.trim();
    while !rest.is_empty() {
        let mut end = rest.find(' ').unwrap_or(rest.len());
        let is_number = rest[..end].bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if is_number && end < rest.len() {
            let after = &rest[end + 1..];
            end += 1 + after.find(' ').unwrap_or(after.len());
        }
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
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
            "shm and null cannot be distinguished: p50 0.183 ±0.012 us and 0.190 ±0.010 us; next \
             unix, 1.87 ±0.27 us."
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
    fn a_rival_of_a_wide_interval_does_not_hide_a_closer_one() {
        let all = [named("shm", 200.0, 10.0), named("unix", 1900.0, 50.0), named("tcp", 4e3, 5e3)];
        let said = fastest("p50").best(&all).unwrap();
        let known = "shm and tcp cannot be distinguished: p50 0.200 ±0.010 us and 4.0 \
                     (unresolved) us; next unix, 1.900 ±0.050 us.";
        assert_eq!(said, known);
    }

    #[test]
    fn cases_are_named_by_what_was_swept() {
        for (short, labels, expected) in [
            (
                ["tcp busy"; 2],
                ["rpc tcp cubic busy 1000 B", "rpc tcp bbr busy 1000 B"],
                ["tcp busy (cubic)", "tcp busy (bbr)"],
            ),
            (
                ["tcp busy"; 2],
                ["bandwidth tcp busy 64 B", "bandwidth tcp busy 64 B 2 threads"],
                ["tcp busy", "tcp busy (2 threads)"],
            ),
            (["tcp", "shm"], ["a", "b"], ["tcp", "shm"]),
            (["tcp"; 2], ["a b", "b a"], ["a b", "b a"]),
        ] {
            assert_eq!(names_apart(short.map(str::to_owned).to_vec(), &labels), expected);
        }
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
            "shm is fastest: p50 0.0800 ±0.0050 us; next unix, 1.70 ±0.20 us, and unixgram and udp \
             that cannot be distinguished from it."
        );
    }
}
