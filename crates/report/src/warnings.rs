//! The warnings of a record for a reader: the worst first, those of one kind together.

use super::model::{Cell, Source, Table};
use crate::curves::headline;
use std::cmp::Reverse;
use wiregauge_base::options::{self, each_once};
use wiregauge_base::warning::Severity;
use wiregauge_figures::record::schema::{
    Metric, Noise, RateMetric, Record, RecordedWarning, Run, Subject,
};

/// Labels of runs or hosts that are named in a line of text before the others are counted.
const NAMED: usize = 3;

/// The kind of a CPU that loses time to something else.
const NOISY_CORE: &str = "noisy_core";
/// The kind of a rate that differs from round to round.
const VARIED_RATE: &str = "rate_varies";
/// From this quantile on a latency is one of the tail.
const TAIL: f64 = 0.99;

/// Warnings of one kind.
pub struct Group<'a> {
    /// Those that differ in their sentences, the worst first.
    pub entries: Vec<Entry<'a>>,
}

/// A warning, and the runs or hosts that share it; none where it is about the whole record.
pub struct Entry<'a> {
    /// The warning.
    pub warning: &'a RecordedWarning,
    /// By which those of a kind are compared.
    magnitude: Option<f64>,
    /// Runs, or hosts as `on node07`.
    pub labels: Vec<String>,
}

/// All warnings of a record, and `more` that are found beside it.
pub fn of_record<'a>(record: &'a Record, more: &'a [RecordedWarning]) -> Vec<Group<'a>> {
    let found = |warning: &'a RecordedWarning, run: Option<&'a Run>| Found {
        magnitude: warning.magnitude.or_else(|| magnitude_in(record, run, warning)),
        ..Found::new(warning, run.map(|run| run.label.as_str()))
    };
    let whole = more.iter().chain(&record.warnings).map(|warning| found(warning, None));
    let runs = record.runs.iter();
    let runs = runs.flat_map(|run| run.warnings.iter().map(move |one| found(one, Some(run))));
    by_kind(whole.chain(runs))
}

/// The magnitude of a warning by the figures of its record, which an older build wrote without one.
fn magnitude_in(record: &Record, run: Option<&Run>, warning: &RecordedWarning) -> Option<f64> {
    match (warning.kind.as_str(), &warning.subject) {
        (NOISY_CORE, Some(Subject::Cpu(cpu))) => {
            record.noise.iter().find(|noise| noise.cpu == *cpu).map(Noise::share)
        }
        (VARIED_RATE, Some(Subject::Metric(name))) => {
            let rate = &run?.rates.iter().find(|rate| rate.metric.name() == name)?.rate;
            rate.interval?.reach(rate.value)
        }
        _ => None,
    }
}

/// A warning with the label of its run, or of its host.
struct Found<'a> {
    warning: &'a RecordedWarning,
    label: Option<String>,
    magnitude: Option<f64>,
}

impl<'a> Found<'a> {
    fn new(warning: &'a RecordedWarning, run: Option<&str>) -> Found<'a> {
        let host = match &warning.subject {
            Some(Subject::Host(host)) => Some(format!("on {host}")),
            _ => None,
        };
        let label = run.map(str::to_string).or(host);
        Found { warning, label, magnitude: warning.magnitude }
    }
}

/// Warnings by their kinds, each with the label of its run.
pub fn grouped<'a>(
    warnings: impl IntoIterator<Item = (&'a RecordedWarning, Option<&'a str>)>,
) -> Vec<Group<'a>> {
    by_kind(warnings.into_iter().map(|(warning, run)| Found::new(warning, run)))
}

fn by_kind<'a>(found: impl Iterator<Item = Found<'a>>) -> Vec<Group<'a>> {
    let entry = |alike: Vec<Found<'a>>| Entry {
        warning: alike[0].warning,
        magnitude: alike[0].magnitude,
        labels: alike.into_iter().filter_map(|one| one.label).collect(),
    };
    let group = |kind: Vec<Found<'a>>| {
        let sentences = options::grouped(kind, |a, b| {
            a.warning.sentence == b.warning.sentence && a.label.is_none() == b.label.is_none()
        });
        let mut entries: Vec<Entry<'a>> = sentences.into_iter().map(entry).collect();
        let magnitude = |entry: &Entry<'_>| entry.magnitude.unwrap_or(f64::NEG_INFINITY);
        entries.sort_by(|one, other| magnitude(other).total_cmp(&magnitude(one)));
        Group { entries }
    };
    let kinds = options::grouped(found, |a, b| a.warning.kind == b.warning.kind);
    let mut groups: Vec<Group<'a>> = kinds.into_iter().map(group).collect();
    // What weakens all figures comes before what weakens some, and those before one.
    groups.sort_by_key(|group| Reverse((group.first().severity, group.reach())));
    groups
}

impl<'a> Entry<'a> {
    /// Whether its labels are those of hosts.
    pub fn is_of_hosts(&self) -> bool {
        matches!(self.warning.subject, Some(Subject::Host(_)))
    }

    /// How often it was found.
    fn count(&self) -> usize {
        self.labels.len().max(1)
    }
}

impl<'a> Group<'a> {
    /// Stands for the kind, its severity and advice.
    pub fn first(&self) -> &'a RecordedWarning {
        self.entries[0].warning
    }

    /// Of how many the first is shown: `worst of 10`; empty where it is alone.
    pub fn place_of_first(&self) -> String {
        let place = if self.entries[0].magnitude.is_some() { "worst" } else { "one" };
        match self.entries.len() {
            0 | 1 => String::new(),
            _ => format!("{place} of {}", self.entries.iter().map(Entry::count).sum::<usize>()),
        }
    }

    /// How many runs it weakens.
    fn reach(&self) -> usize {
        match self.entries.iter().any(|entry| entry.labels.is_empty()) {
            true => usize::MAX,
            false => self.labels().len(),
        }
    }

    /// Of all runs or hosts, each once.
    pub fn labels(&self) -> Vec<&str> {
        each_once(self.entries.iter().flat_map(|entry| &entry.labels).map(String::as_str))
    }
}

/// Marks the figures that a warning weakens, by its subject. One about a metric is about that
/// metric of its run; one about a CPU or an end is about the tail, and one about nothing in
/// particular about all of its run. What weakens the whole record marks no figure: the answer says
/// from which quantile on the noise of a CPU may be in the latencies, and a mark at every figure
/// would say nothing.
pub fn mark<'a>(record: &Record, tables: impl Iterator<Item = &'a mut Table>) {
    let is_weak = |source: &Source| {
        let run = record.runs.iter().find(|run| run.index == source.run);
        let own =
            run.iter().flat_map(|run| &run.warnings).filter(|one| one.severity > Severity::Note);
        let mut weakens = own.map(|warning| match &warning.subject {
            Some(Subject::Metric(name)) => is_about(name, &source.name),
            Some(Subject::Role(_) | Subject::Cpu(_)) => source.quantile.is_some_and(|p| p >= TAIL),
            Some(Subject::Interface(_) | Subject::Host(_)) | None => true,
        });
        weakens.any(|weakens| weakens)
    };
    for row in tables.flat_map(|table| &mut table.rows) {
        for figure in row.cells.iter_mut().filter_map(Cell::figure_mut) {
            figure.is_weak = figure.source.as_ref().is_some_and(is_weak);
        }
    }
}

/// Returns the largest share of a run's messages that gaps of a CPU may have held up. A gap hits
/// the one message in flight: a share of all that is the gaps in the time of one. Where a
/// schedule sends, those that are due within gaps wait, too: the share of the time.
pub fn share_hit(noise: &Noise, run: &Run) -> f64 {
    let in_flight = headline(run).and_then(|metric| {
        // One message goes and comes in a round trip, of which the figure is half.
        let halves = if metric == Metric::HalfRtt { 2.0 } else { 1.0 };
        Some(halves * run.summary(metric)?.mean)
    });
    let under_way = noise.gaps as f64 / noise.observed_ns * in_flight.unwrap_or(0.0);
    let due = if run.case.schedule.is_open() { noise.share() } else { 0.0 };
    let hit = under_way + due;
    if hit.is_nan() { 0.0 } else { hit.min(1.0) }
}

/// Whether what weakens a metric weakens another: the bytes of equal messages and their number are
/// one rate.
fn is_about(warned: &str, name: &str) -> bool {
    let of_messages = [RateMetric::Bandwidth.name(), RateMetric::MessageRate.name()];
    warned == name || (of_messages.contains(&warned) && of_messages.contains(&name))
}

/// The first label, or few of them where there is room, and how many others there are.
pub fn named(labels: &[&str], has_room: bool) -> String {
    let most = if has_room { NAMED } else { 1 };
    let first = labels.iter().take(most).copied().collect::<Vec<_>>().join(", ");
    match labels.len().saturating_sub(most) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}
