//! Pairs of several hosts: matrices, slow pairs, effective bisection bandwidth.

use crate::model::{
    Cell, HeatCell, HeatMap, Note, OfRun, Section, Show, Table, figure, number, text,
};
use crate::number::{PERCENT, quantile_name, short};
use crate::scale::Scale;
use std::collections::BTreeSet;
use wiregauge_base::options::{each_once, grouped};
use wiregauge_figures::record::schema::{Bisection, CaseRecord, Metric, Record, Run, SlowPair};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{Named, median};
use wiregauge_plan::{HostPair, Pairs};
use wiregauge_stats::{Interval, Rate, RateMetric, Value};

/// Slow pairs that are named before the others are counted.
const NAMED: usize = 20;

/// Slow pairs, bisection bandwidth, matrices; `None` where at most one pair was measured.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("pairs", "Pairs of hosts");
    section.notes = notes(record).into_iter().map(|line| Note::new(line, Show::Page)).collect();
    section.tables.extend(bisections(record));
    section.maps = matrices(record);
    section.filled()
}

/// Returns how far the pairs are apart, for each figure that answers their question, and the host
/// that is behind slow pairs.
pub fn answer(record: &Record) -> Vec<String> {
    if record.plan.pairs.is_none() {
        return Vec::new();
    }
    let of_pairs = record.runs.iter().filter(|run| run.case.part.pair.is_none());
    let figures =
        of_pairs.filter_map(|run| Some((run.case.label.as_str(), run, Spread::new(run)?)));
    let groups = grouped(figures, |a, b| a.0 == b.0 && a.2.0 == b.2.0);
    let mut lines: Vec<String> = groups.iter().filter_map(|group| spread(record, group)).collect();
    lines.extend(slow_host(record));
    lines
}

/// The figure of a pair: its name, its scale, and the figure with its interval.
struct Spread(String, Scale, Named);

impl Spread {
    fn new(run: &Run) -> Option<Spread> {
        let Some(metric) = metric_of(run) else {
            let rate = run.rate(RateMetric::Bandwidth).filter(|rate| rate.value.is_finite())?;
            let named = Named { name: String::new(), value: rate.value, interval: rate.interval };
            return Some(Spread("bandwidth".into(), Scale::Bytes, named));
        };
        let named = median(run, String::new())?;
        Some(Spread(format!("{} p50", metric.name()), Scale::Time, named))
    }

    /// Returns the figure with its interval and its unit.
    fn text(&self) -> String {
        self.2.text(self.1.factor(), self.1.unit())
    }
}

/// Says between which pairs a figure is the least and the greatest.
fn spread(record: &Record, group: &[(&str, &Run, Spread)]) -> Option<String> {
    let mut sorted: Vec<&(&str, &Run, Spread)> =
        group.iter().filter(|(.., spread)| spread.2.value.is_finite()).collect();
    sorted.sort_by(|a, b| a.2.2.value.total_cmp(&b.2.2.value));
    let middle = sorted.get(sorted.len() / 2)?;
    let [least, .., most] = sorted.as_slice() else { return None };
    let [first, last] = [least, most]
        .map(|one| format!("{} ({})", one.2.text(), record.plan.hosts_of(&one.1.case)));
    Some(format!(
        "{}, {} pairs: {} from {first} to {last}; the median pair has {}.",
        least.0,
        sorted.len(),
        least.2.0,
        middle.2.text()
    ))
}

/// Names the host that is in most of several slow pairs, if all of them are its own.
fn slow_host(record: &Record) -> Option<String> {
    let slow = &record.pairs.as_ref()?.slow;
    let runs = each_once(slow.iter().map(|slow| slow.run));
    let cases = runs.iter().filter_map(|run| record.plan.cases.get(*run as usize));
    let pairs: Vec<HostPair> = cases.map(|case| case.topology.hosts()).collect();
    let first = pairs.first().filter(|_| pairs.len() > 1)?;
    let is_in_all =
        |host: &Option<u32>| pairs.iter().all(|pair| pair.client == *host || pair.server == *host);
    let host = [first.client, first.server].into_iter().find(is_in_all)?;
    let name = record.plan.host(host);
    Some(format!("All {} slow pairs are those of {name}: look there first.", pairs.len()))
}

/// Pairs that were drawn at random and measured at the same time.
struct Halves<'a> {
    found: &'a Bisection,
    case: &'a CaseRecord,
}

impl OfRun for Halves<'_> {}

impl Halves<'_> {
    /// The bandwidth that was found; absent if no matching was whole.
    fn all(&self, scale: f64) -> Option<Cell> {
        let Rate { value, interval, .. } = self.found.bandwidth;
        (!value.is_nan()).then(|| Cell::figure(value, interval, scale))
    }

    fn matching(&self, better: fn(f64, f64) -> f64) -> f64 {
        let each = self.found.matchings.iter().map(|value| value.0).filter(|value| !value.is_nan());
        each.reduce(better).unwrap_or(f64::NAN)
    }
}

/// Effective bisection bandwidth; `None` where it was not measured.
fn bisections(record: &Record) -> Option<Table> {
    let rows = record.pairs.iter().flat_map(|pairs| &pairs.bisections).filter_map(|found| {
        Some(Halves { found, case: record.plan.cases.get(*found.runs.first()? as usize)? })
    });
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let alone =
        move |value: f64| (!value.is_nan()).then(|| Cell::figure(value, None, unit.factor()));
    let both = byte_rate::or_all(&[ByteRateUnit::Megabytes, ByteRateUnit::Gigabits]);
    let again = both.get(1).copied();
    let again =
        again.map(|unit| figure(unit.name(), "", move |row: &Halves<'_>| row.all(unit.factor())));
    let before = [
        text("transport", |row: &Halves<'_>| row.case.transport.name()),
        text("wait", |row: &Halves<'_>| row.case.wait.name()),
        number("size", "B", |row: &Halves<'_>| Cell::Size(row.case.size.0)),
        number("pairs", "", |row: &Halves<'_>| Cell::Count(row.found.pairs.into())),
        number("matchings", "", |row: &Halves<'_>| Cell::Count(row.found.matchings.len() as u64)),
        figure("all pairs", unit.name(), move |row: &Halves<'_>| row.all(unit.factor())),
    ];
    let after = [
        number("a pair", unit.name(), move |row: &Halves<'_>| {
            alone(row.found.bandwidth.value / f64::from(row.found.pairs.max(1)))
        }),
        number("least matching", unit.name(), move |row: &Halves<'_>| {
            alone(row.matching(f64::min))
        }),
        number("most", "", move |row: &Halves<'_>| alone(row.matching(f64::max))),
    ];
    let fields = before.into_iter().chain(again).chain(after);
    Some(Table::of(rows, fields)?.caption(Note::new("Effective bisection bandwidth", Show::Page)))
}

/// The slow pairs, a sentence each; and where not all pairs of a matching ran at the same time.
pub fn notes(record: &Record) -> Vec<String> {
    let Some(pairs) = &record.pairs else { return Vec::new() };
    let line = |slow: &SlowPair| {
        let label = record.runs.iter().find(|run| run.index == slow.run).map(|run| &run.label);
        let scale = Scale::of(&slow.metric);
        let (scale, unit) = (scale.factor(), scale.unit());
        format!(
            "slow pair: {}: {} {} {unit}, the median of all pairs is {} {unit}",
            label.map_or("unknown", String::as_str),
            slow.metric,
            short(slow.value * scale),
            short(slow.median * scale)
        )
    };
    let mut lines: Vec<String> = pairs.slow.iter().take(NAMED).map(line).collect();
    if pairs.slow.len() > NAMED {
        lines.push(format!("slow pairs: {} more", pairs.slow.len() - NAMED));
    }
    let overlap = pairs.bisections.iter().filter_map(|found| found.overlap).reduce(f64::min);
    lines.extend(overlap.map(|share| {
        format!(
            "bisection: all pairs of a matching ran during at least {} % of its time",
            short(PERCENT * share)
        )
    }));
    lines
}

/// p50 and p99 of each distribution, and each bandwidth, of all pairs that were measured alike;
/// none where not all pairs of several hosts were measured.
pub fn matrices(record: &Record) -> Vec<HeatMap> {
    if !matches!(record.plan.pairs, Some(Pairs::All { .. })) {
        return Vec::new();
    }
    let ends = record.plan.cases.iter().map(|case| case.topology.hosts());
    let hosts: BTreeSet<Option<u32>> = ends.flat_map(|ends| [ends.client, ends.server]).collect();
    let place = |host| hosts.iter().position(|one| *one == host).unwrap_or(0);
    let matrix = |alike: Vec<(&Run, HeatMap, Estimate)>| {
        let names = hosts.iter().map(|host| record.plan.host(*host).into()).collect();
        let mut matrix = HeatMap { names, ..alike[0].1.clone() };
        for (run, _, (value, interval)) in alike {
            let HostPair { client, server } = run.case.topology.hosts();
            let (row, column) = (place(client), place(server));
            let cell = HeatCell { value: Value(value), interval, run: run.index };
            matrix.cells.insert((row, column), cell);
            // A round trip is of both.
            if run.summary(Metric::HalfRtt).is_some() {
                matrix.cells.insert((column, row), cell);
                matrix.axes = "each pair was measured once and has both of its cells".into();
            }
        }
        matrix
    };
    let own = |run| figures(record, run).into_iter().map(move |(empty, found)| (run, empty, found));
    let all = record.runs.iter().flat_map(own);
    grouped(all, |a, b| a.1.title == b.1.title).into_iter().map(matrix).collect()
}

/// A figure with its interval.
type Estimate = (f64, Option<Interval>);

/// The figures of a run, each with its matrix.
fn figures(record: &Record, run: &Run) -> Vec<(HeatMap, Estimate)> {
    let rail = record.plan.rails.as_ref().and_then(|rails| rails.of_case(&run.case));
    let rail = rail.map(|rail| format!(" rail {rail}")).unwrap_or_default();
    let map = |name: &str, scale: Scale| HeatMap {
        title: format!("{name}, {}{rail}", run.case.label),
        unit: scale.unit().into(),
        scale: scale.factor(),
        more_is_better: scale == Scale::Bytes,
        axes: "client in the row, server in the column".into(),
        ..HeatMap::default()
    };
    let Some(metric) = metric_of(run) else {
        let rates = run.rates.iter().filter(|figure| figure.metric == RateMetric::Bandwidth);
        let map = |metric: RateMetric| map(metric.name(), Scale::of_rate(metric));
        let own = |rate: &Rate| (rate.value, rate.interval);
        return rates.map(|figure| (map(figure.metric), own(&figure.rate))).collect();
    };
    let quantile = |p: f64| {
        let name = format!("{} {}", metric.name(), quantile_name(p));
        let found = run.summary(metric)?.quantile(p)?;
        Some((map(&name, Scale::Time), (found.value?.0, found.shown_interval())))
    };
    [0.5, 0.99].into_iter().filter_map(quantile).collect()
}

/// The metric of a run that answers its question; `None`: a rate does. The figures of a run are in
/// the order of what they answer; a round trip is twice its half.
fn metric_of(run: &Run) -> Option<Metric> {
    let mut metrics = run.figures.iter().map(|figure| figure.metric);
    metrics.find(|metric| !matches!(metric, Metric::Rtt | Metric::Complete | Metric::Post))
}
