//! The answer of a record in a sentence or two, from its figures and their intervals.
//!
//! A sentence says "fastest" or "grows" only where the intervals of the two do not overlap.

use super::PatternView;
use crate::curves::headline;
use crate::number::{PERCENT, Room, US, compact, quantile_name};
use crate::warnings::share_hit;
use wiregauge_base::options::{each_once, grouped};
use wiregauge_base::units::Bytes;
use wiregauge_figures::record::schema::{Metric, Noise, OtherHost, Record, Run};
use wiregauge_figures::view::compared::{Named, ends_of, fastest, median, told_apart};
use wiregauge_stats::{Basis, Summary};

/// Most sentences about figures.
const MOST: usize = 3;
/// A CPU that loses more than this share of its time has a say in the tail.
const NOISY: f64 = 0.01;
/// Below this share of messages the quantile has two more digits.
const FEW_HIT: f64 = 0.01;
/// The highest quantile that is named.
const LAST: f64 = 0.9999;

/// The sentences; none where there is nothing to say.
pub fn answer(record: &Record, patterns: &[&dyn PatternView]) -> Vec<String> {
    let mut lines: Vec<String> = super::explain::answer(record);
    lines.extend(super::impact::answer(record));
    if lines.is_empty() {
        lines.extend(super::study::answer(record));
    }
    lines.extend(super::together::answer(record));
    lines.extend(super::pairs::answer(record));
    if lines.is_empty() && record.runs.is_empty() {
        lines.extend(super::clocks::answer(record));
    }
    if lines.is_empty() {
        lines.extend(super::parts::answer(record));
    }
    if lines.is_empty() {
        lines.extend(super::sweep::answer(record));
        lines.extend(patterns.iter().flat_map(|pattern| pattern.answer(record)));
    }
    if lines.is_empty() && record.plan.pairs.is_none() {
        lines.extend(latencies(record));
    }
    lines.truncate(MOST);
    lines.extend(super::tail::answer(record).take(MOST));
    let says_times = record.runs.iter().any(|run| !run.figures.is_empty());
    let hit =
        |noise: &Noise| record.runs.iter().map(|run| share_hit(noise, run)).fold(0.0, f64::max);
    let of_machine = noise(&record.noise, &record.hosts, hit, is_throttled(record));
    lines.extend(of_machine.filter(|_| says_times));
    lines
}

/// Returns whether a CPU quota stopped ends of a run.
fn is_throttled(record: &Record) -> bool {
    let mut all = record.runs.iter().flat_map(|run| &run.warnings);
    all.any(|warning| warning.kind == "throttled")
}

/// What the machine has a say in: the CPU that the warnings name too, the first of the noisiest.
fn noise(
    own: &[Noise],
    hosts: &[OtherHost],
    hit: impl Fn(&Noise) -> f64,
    is_throttled: bool,
) -> Option<String> {
    let own = own.iter().map(|noise| (String::new(), noise));
    let others = hosts
        .iter()
        .flat_map(|host| host.noise.iter().map(move |noise| (format!(" of {}", host.name), noise)));
    let (host, worst) =
        own.chain(others).reduce(|a, b| if b.1.share() > a.1.share() { b } else { a })?;
    (worst.share() > NOISY).then(|| noise_sentence(worst, &host, hit(worst), is_throttled))
}

/// Says from which quantile on latencies may be the machine's: `hit` is the share of the messages
/// that gaps may have held up.
fn noise_sentence(noise: &Noise, host: &str, hit: f64, is_throttled: bool) -> String {
    let percent = compact(noise.share(), None, PERCENT, Room::Little).0;
    let steps = if hit < FEW_HIT { 1e4 } else { 1e2 };
    let from = ((1.0 - hit).min(LAST) * steps).floor() / steps;
    let which = match from {
        0.0 => "all latencies".to_owned(),
        from => format!("from {} on, latencies", quantile_name(from)),
    };
    let who = if is_throttled { "The CPU quota or other work" } else { "Other work" };
    format!("{who} takes {percent} % of CPU {}{host}: {which} may be the machine's.", noise.cpu)
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

fn at(what: &str, size: Bytes, several: bool) -> String {
    if several { format!("{what} at {size}") } else { what.to_owned() }
}

fn alone(run: &Run, metric: Metric) -> Option<String> {
    let summary = run.summary(metric)?;
    let p50 = quantile(summary, 0.5)?;
    let tail = quantile(summary, 0.99).map_or_else(String::new, |p99| format!(", p99 {p99}"));
    let is_of_one_round = summary.quantile(0.5).is_some_and(|p50| p50.basis == Basis::OneRound);
    let within = if is_of_one_round { " (one round: within one process)" } else { "" };
    Some(format!("{}, {}: {} p50 {p50}{tail}{within}.", ends_of(run), run.case.size, metric.name()))
}

/// A quantile in us with its interval.
fn quantile(summary: &Summary, p: f64) -> Option<String> {
    let found = summary.quantile(p)?;
    let (value, interval) = (found.value?.0, found.shown_interval());
    Some(Named { name: String::new(), value, interval }.text(US, "us"))
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

    #[test]
    fn only_noise_that_reaches_a_shown_quantile_is_in_the_answer() {
        let seen = |lost_ns| Noise { cpu: 3, observed_ns: 1e9, lost_ns, ..Noise::default() };
        assert_eq!(noise(&[seen(5e6)], &[], |_| 0.04, false), None);
        assert_eq!(
            noise(&[seen(5e6), seen(3.4e7)], &[], |_| 0.034, false).unwrap(),
            "Other work takes 3.4 % of CPU 3: from p96 on, latencies may be the machine's."
        );
        let said = noise(&[seen(3.4e7)], &[], |_| 0.034, true).unwrap();
        assert!(said.starts_with("The CPU quota or other work takes 3.4 % of CPU 3: "), "{said}");
        let said = noise(&[seen(3.4e7)], &[], |_| 0.0004, false).unwrap();
        assert!(said.ends_with("from p99.96 on, latencies may be the machine's."), "{said}");
        let said = noise(&[seen(3.4e7)], &[], |_| 0.0, false).unwrap();
        assert!(said.ends_with("from p99.99 on, latencies may be the machine's."), "{said}");
    }

    #[test]
    fn a_record_that_was_made_up_has_no_share_beyond_the_whole() {
        let seen = Noise { cpu: 1, observed_ns: 0.0, lost_ns: 5.3e16, ..Noise::default() };
        let said = noise_sentence(&seen, " of node07", 1.0, false);
        assert_eq!(
            said,
            "Other work takes 100 % of CPU 1 of node07: all latencies may be the machine's."
        );
        assert_eq!(Noise::default().share(), 0.0);
    }
}
