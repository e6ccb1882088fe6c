//! The answer of a record in a sentence or two, from its figures and their intervals.
//!
//! A sentence says "fastest" or "grows" only where the intervals of the two do not overlap.

use super::PatternView;
use crate::options::{each_once, grouped};
use crate::record::schema::{Metric, Noise, OtherHost, Record, Run};
use crate::report::curves::headline;
use crate::report::number::{PERCENT, Room, US, compact, quantile_name};
use crate::stats::Interval;
use crate::units::Bytes;

/// Most sentences about figures.
const MOST: usize = 3;
/// A CPU that loses more than this share of its time has a say in the tail.
const NOISY: f64 = 0.01;

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
    fn is_below(&self, other: &Named) -> bool {
        match (self.interval, other.interval) {
            (Some(own), Some(other)) => own.high.0 < other.low.0,
            _ => false,
        }
    }
}

/// The sentences; none where there is nothing to say.
pub fn answer(record: &Record, patterns: &[&dyn PatternView]) -> Vec<String> {
    let mut lines: Vec<String> = super::study::answer(record);
    if lines.is_empty() {
        lines.extend(patterns.iter().flat_map(|pattern| pattern.answer(record)));
    }
    if lines.is_empty() && record.plan.pairs.is_none() {
        lines.extend(latencies(record));
    }
    lines.truncate(MOST);
    let says_times = record.runs.iter().any(|run| !run.figures.is_empty());
    lines.extend(noise(&record.noise, &record.hosts).filter(|_| says_times && !lines.is_empty()));
    lines
}

/// What the machine has a say in: the CPU that the warnings name too, the first of the noisiest.
fn noise(own: &[Noise], hosts: &[OtherHost]) -> Option<String> {
    let own = own.iter().map(|noise| (String::new(), noise));
    let others = hosts
        .iter()
        .flat_map(|host| host.noise.iter().map(move |noise| (format!(" of {}", host.name), noise)));
    let (host, worst) =
        own.chain(others).reduce(|a, b| if b.1.share() > a.1.share() { b } else { a })?;
    (worst.share() > NOISY).then(|| noise_sentence(worst, &host))
}

fn noise_sentence(noise: &Noise, host: &str) -> String {
    let lost = noise.share();
    let from = quantile_name(((1.0 - lost) * 100.0).floor() / 100.0);
    let percent = compact(lost, None, PERCENT, Room::Little).0;
    format!(
        "Other work takes {percent} % of CPU {}{host}: from {from} on, latencies may be the \
         machine's.",
        noise.cpu
    )
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

/// Medians: of one run, of several beside each other, and how they grow with the size.
fn latencies(record: &Record) -> Vec<String> {
    let timed = |run: &&Run| headline(run).is_some() && median(run, String::new()).is_some();
    let runs: Vec<&Run> = record.runs.iter().filter(timed).collect();
    let [first, others @ ..] = runs.as_slice() else { return Vec::new() };
    let Some(metric) = headline(first) else { return Vec::new() };
    if others.is_empty() {
        return alone(first, metric).into_iter().collect();
    }
    let place = |run: &&Run| (ends_of(run), run.case.threads(), run.case.point.clone());
    let named = runs.iter().map(|run| (place(run), *run));
    let series: Vec<Vec<&Run>> = grouped(named, |a, b| a.0 == b.0)
        .into_iter()
        .map(|group| group.into_iter().map(|(_, run)| run).collect())
        .collect();
    let sizes = each_once(runs.iter().map(|run| run.case.size));
    let what = format!("{} p50", metric.name());
    let mut lines = Vec::new();
    for size in [sizes.iter().min(), sizes.iter().max().filter(|_| sizes.len() > 1)] {
        let Some(size) = size else { continue };
        let of_size = |run: &&&Run| run.case.size == *size && headline(run) == Some(metric);
        let firsts: Vec<&Run> = series.iter().map(|group| group[0]).collect();
        let names = told_apart(&firsts, ends_of);
        let all = series
            .iter()
            .zip(&names)
            .filter_map(|(group, name)| median(group.iter().find(of_size)?, name.clone()));
        let all: Vec<Named> = all.collect();
        lines.extend(fastest(&at(&what, *size, sizes.len() > 1)).best(&all));
    }
    if series.len() <= 2 {
        lines.extend(series.iter().filter_map(|group| growth(group, &what)));
    }
    lines
}

/// Short names of runs, or their labels where two short ones are alike.
pub fn told_apart(runs: &[&Run], short: impl Fn(&Run) -> String) -> Vec<String> {
    let names: Vec<String> = runs.iter().map(|run| short(run)).collect();
    match each_once(&names).len() == names.len() {
        true => names,
        false => runs.iter().map(|run| run.label.clone()).collect(),
    }
}

fn at(what: &str, size: Bytes, several: bool) -> String {
    if several { format!("{what} at {size}") } else { what.to_owned() }
}

fn alone(run: &Run, metric: Metric) -> Option<String> {
    let p50 = median(run, String::new())?;
    let tail = run.summary(metric)?.quantile(0.99);
    let tail = tail.and_then(|found| {
        Some(Named { name: String::new(), value: found.value?.0, interval: found.interval })
    });
    let tail = tail.map_or_else(String::new, |tail| format!(", p99 {}", tail.text(US, "us")));
    let (name, size) = (ends_of(run), run.case.size);
    Some(format!("{name}, {size}: {} p50 {}{tail}.", metric.name(), p50.text(US, "us")))
}

/// How the median changes from the smallest to the largest message.
fn growth(runs: &[&Run], what: &str) -> Option<String> {
    let first = runs.iter().min_by_key(|run| run.case.size)?;
    let last = runs.iter().max_by_key(|run| run.case.size)?;
    if first.case.size == last.case.size {
        return None;
    }
    let (least, most) = (median(first, String::new())?, median(last, String::new())?);
    let (name, a, b) = (ends_of(first), least.text(US, "us"), most.text(US, "us"));
    let (from, to) = (first.case.size, last.case.size);
    Some(match (least.is_below(&most), most.is_below(&least)) {
        (true, _) => {
            let times = compact(most.value / least.value, None, 1.0, Room::Little).0;
            format!("{name}: {what} grows from {a} at {from} to {b} at {to}, {times} times.")
        }
        (_, true) => format!("{name}: {what} falls from {a} at {from} to {b} at {to}."),
        _ => format!("{name}: {what} of {from} and of {to} cannot be distinguished: {a} and {b}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Value;

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

    #[test]
    fn only_noise_that_reaches_a_shown_quantile_is_in_the_answer() {
        let seen = |lost_ns| Noise { cpu: 3, observed_ns: 1e9, lost_ns, ..Noise::default() };
        assert_eq!(noise(&[seen(5e6)], &[]), None);
        assert_eq!(
            noise(&[seen(5e6), seen(3.4e7)], &[]).unwrap(),
            "Other work takes 3.4 % of CPU 3: from p96 on, latencies may be the machine's."
        );
    }

    #[test]
    fn a_record_that_was_made_up_has_no_share_beyond_the_whole() {
        let seen = Noise { cpu: 1, observed_ns: 0.0, lost_ns: 5.3e16, ..Noise::default() };
        let said = noise_sentence(&seen, " of node07");
        assert_eq!(
            said,
            "Other work takes 100 % of CPU 1 of node07: from p0 on, latencies may be the machine's."
        );
        assert_eq!(Noise::default().share(), 0.0);
    }
}
