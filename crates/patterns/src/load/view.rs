//! Runs of `load`: how the answers slow down as the load rises, and what the server's pools cost.

use super::landmarks::{self, Landmark, Landmarks};
use super::{Load, Spec};
use crate::prelude::*;
use wiregauge_figures::view::model::{Mark, Point as Dot, Rank, Shape, fields};
use wiregauge_figures::view::number::{
    THOUSANDS, count, interval, per_second, quantile_name, short, span, time,
};
use wiregauge_figures::view::{ShownLimit, client_hosts};
use wiregauge_plan::Slo;
use wiregauge_stats::knee::{self, Bracket, Point};

/// Fewest points of a curve that is drawn.
const LEAST: usize = 2;
/// The quantiles of each curve.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// What a schedule wanted, and what came of it.
const RATES: [(&str, RateMetric); 3] = [
    ("offered", RateMetric::OfferedRate),
    ("sent", RateMetric::AchievedRate),
    ("answered", RateMetric::MessageRate),
];

impl PatternView for Load {
    fn section(&self, record: &Record) -> Option<Section> {
        let curves = curves(record);
        let own = record.runs.iter().filter(|run| run.case.pattern == NAME);
        let mut section = Section::new("load", "Responses under load").of_runs(own);
        let found = found(record, &curves);
        section.results.extend(points(record));
        let hosts = client_hosts::table(record.runs.iter().filter(|run| is_load(run)));
        section.tables.extend([hosts, probes(record), pools(record)].into_iter().flatten());
        if curves.iter().any(|curve| curve.open.len() >= LEAST) {
            section.notes = found.into_iter().map(|line| Note::new(line, Show::Page)).collect();
            section.data.push(data(&curves));
            section.plots = plots(record, &curves).into();
        }
        section.filled()
    }

    /// The knee of each curve, and the highest rate within the bound.
    fn answer(&self, record: &Record) -> Vec<String> {
        let found = found(record, &curves(record)).into_iter().map(|line| line + ".");
        let hosts = client_hosts::answers(record.runs.iter().filter(|run| is_load(run)));
        found.chain(hosts).collect()
    }

    /// Returns the worst of all curves: each may keep the bound at some rate.
    fn limit(&self, record: &Record) -> ShownLimit {
        if slo(record).is_none() {
            return ShownLimit::Kept;
        }
        let curves = curves(record);
        let open = curves.iter().filter(|curve| !curve.open.is_empty());
        let worst = open.map(|curve| match curve.found.highest {
            Some(Landmark { bracket: Bracket::AtMost, .. }) => ShownLimit::Exceeded,
            Some(Landmark { bracket: Bracket::Within | Bracket::AtLeast, .. }) => ShownLimit::Kept,
            Some(Landmark { bracket: Bracket::Unresolved, .. }) | None => ShownLimit::Inconclusive,
        });
        worst.max().unwrap_or(ShownLimit::Inconclusive)
    }
}

/// The runs of one server, from idle to saturation.
struct Curve<'a> {
    /// What distinguishes it from the others: in a study the series, else transport, wait mode, and
    /// what else differs.
    name: String,
    /// Closed loops by their clients.
    closed: Vec<&'a Run>,
    /// Open loops by what they offered.
    open: Vec<(&'a Run, Point)>,
    /// The knee, and the highest rate that keeps the bound.
    found: Landmarks,
}

impl<'a> Curve<'a> {
    /// The run at a landmark.
    fn run(&self, at: Landmark) -> Option<&'a Run> {
        self.open.iter().find(|(run, _)| run.index == at.run).map(|(run, _)| *run)
    }

    /// The highest rate that was measured to keep the bound.
    fn kept(&self) -> Option<&'a Run> {
        let is_kept =
            |found: &Landmark| matches!(found.bracket, Bracket::Within | Bracket::AtLeast);
        self.run(self.found.highest.filter(is_kept)?)
    }
}

/// As records name the pattern.
const NAME: &str = "load";

/// What a run asked.
fn spec(run: &Run) -> Spec {
    run.case.spec(NAME).unwrap_or_default()
}

/// The limit that the highest rate was wanted for.
fn slo(record: &Record) -> Option<Slo> {
    record.runs.iter().find_map(|run| spec(run).slo)
}

/// The point beside which a probe ran; `None` where it ran alone.
fn probed(record: &Record, probe: &Run) -> Option<usize> {
    let group = record.plan.concurrent.iter().find(|group| group.contains(&probe.index))?;
    let mut points = group.iter().map(|number| *number as usize);
    points.find(|number| record.runs.get(*number).is_some_and(|run| !spec(run).probe))
}

fn is_load(run: &Run) -> bool {
    run.case.pattern == NAME && !spec(run).probe
}

/// The runs, curve by curve, each by its load.
fn runs(record: &Record) -> Vec<&Run> {
    let mut runs: Vec<&Run> = record.runs.iter().filter(|run| is_load(run)).collect();
    let offered = |run: &Run| run.case.schedule.rate().map_or(0.0, |rate| rate.0);
    let key = |run: &Run| (landmarks::place(&run.case, &spec(run)), spec(run).clients);
    runs.sort_by(|a, b| key(a).cmp(&key(b)).then(offered(a).total_cmp(&offered(b))));
    runs
}

fn curves<'a>(record: &'a Record) -> Vec<Curve<'a>> {
    let slo = slo(record);
    let bounded = slo.map_or(knee::BOUNDED, |slo| slo.quantile);
    let series = |run: &Run| landmarks::series(&record.plan, run.index);
    let place = |run: &Run| landmarks::place(&run.case, &spec(run));
    let groups = grouped(runs(record), |a, b| (series(a), place(a)) == (series(b), place(b)));
    let curve = |runs: Vec<&'a Run>| {
        let point = |run| Some((run, point(run, bounded)?));
        let open: Vec<(&Run, Point)> = runs.iter().filter_map(|run| point(*run)).collect();
        let points: Vec<_> = open.iter().map(|(run, point)| (run.index, *point)).collect();
        // As the record has them; a recovered or older one may not.
        let kept = runs.iter().find_map(|run| Landmarks::of_record(run.details.as_ref()?, &points));
        Curve {
            name: series(runs[0]).map_or_else(|| name(record, runs[0]), str::to_string),
            found: kept.unwrap_or_else(|| Landmarks::of(&points, slo)),
            open,
            closed: runs.into_iter().filter(|run| !run.case.schedule.is_open()).collect(),
        }
    };
    groups.into_iter().map(curve).collect()
}

/// `None` without a schedule.
fn point(run: &Run, bounded: f64) -> Option<Point> {
    let rates = [RateMetric::OfferedRate, RateMetric::AchievedRate, RateMetric::MessageRate];
    let rates = rates.map(|metric| run.rate(metric));
    let (requests, response) = (run.counts.requests(), run.summary(Metric::Response));
    Point::new(run.case.schedule, rates, requests, response, bounded)
}

/// The name of a curve outside a study, with its hosts where others have other ones.
fn name(record: &Record, run: &Run) -> String {
    let case = &run.case;
    let is_elsewhere = |other: &Run| other.case.topology.hosts() != case.topology.hosts();
    let hosts = match record.runs.iter().any(is_elsewhere) {
        true => format!(", {}", record.plan.hosts_of(case)),
        false => String::new(),
    };
    let buffers = spec(run).buffers.map_or_else(String::new, |buffers| {
        format!(" TX {} RX {}", buffers.transmit, buffers.receive)
    });
    let connections = match case.topology.connections_each() {
        1 => String::new(),
        several => format!(" {several} connections"),
    };
    format!("{} {}{buffers}{connections}{hosts}", case.transport, case.wait.name())
}

fn rate(run: &Run, metric: RateMetric) -> Option<f64> {
    run.rate(metric).map(|rate| rate.value)
}

/// What a client waits for: the response of an open loop, the round trip of a closed one.
fn main_metric(run: &Run) -> Metric {
    if run.case.schedule.is_open() { Metric::Response } else { Metric::Rtt }
}

fn main_summary(run: &Run) -> Option<&Summary> {
    run.summary(main_metric(run))
}

/// Those of a closed loop.
fn clients(run: &Run) -> Option<u32> {
    Some(spec(run).clients).filter(|clients| *clients > 0)
}

/// Messages behind a distribution.
fn behind(summary: Option<&Summary>) -> u64 {
    summary.map_or(0, |summary| summary.count)
}

/// A closed loop is named by its clients, an open one by what was offered.
fn points(record: &Record) -> Option<Table> {
    let main = |p| move |run: &&Run| Cell::of_run(Some(run), main_metric(run), p);
    let other = |metric| move |run: &&Run| Cell::of_run(Some(run), metric, 0.99);
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let pair =
        record.plan.pairs.map(|_| text("pair", |run: &&Run| record.plan.hosts_of(&run.case)));
    let fields = [
        number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)).show(Show::Page),
        number("object", "B", |run: &&Run| Cell::Size(spec(run).object_size.0)).rank(Rank::More),
        text("metric", |run: &&Run| main_metric(run).name()).show(Show::Page),
        number("clients", "", |run: &&Run| clients(run)).rank(Rank::Label),
        number("offered", "k/s", rate(RateMetric::OfferedRate, THOUSANDS)).rank(Rank::Label),
        number("sent", "k/s", rate(RateMetric::AchievedRate, THOUSANDS)).rank(Rank::More),
        figure("answered", "k/s", rate(RateMetric::MessageRate, THOUSANDS)),
        figure("p50", "us", main(0.5)),
        figure("p99", "us", main(0.99)),
        figure("p99.9", "us", main(0.999)).rank(Rank::More),
        number("max", "us", |run: &&Run| Cell::maximum_of_run(Some(run), main_metric(run)))
            .show(Show::Page),
        number("service p99", "us", other(Metric::Service)).rank(Rank::More),
        number("late p99", "us", other(Metric::Lateness)).rank(Rank::More),
        number("client", "ns/msg", rate(RateMetric::CpuClient, 1.0)).rank(Rank::More),
        number("server", "ns/msg", rate(RateMetric::CpuServer, 1.0)).rank(Rank::More),
        number("n", "", |run: &&Run| Cell::Count(behind(main_summary(run)))).rank(Rank::More),
        number("lost", "", |run: &&Run| Cell::lost(run.lost_of(main_metric(run)))).rank(Rank::More),
        number("unfinished", "", |run: &&Run| Cell::lost(run.unfinished_of(main_metric(run))))
            .rank(Rank::More),
        number("unsent", "", |run: &&Run| Cell::lost(run.counts.unsent)).rank(Rank::More),
    ];
    let fields = own(record).into_iter().chain(pair).chain(ends()).chain(fields);
    let table = Table::of(runs(record), fields)?;
    let caption = "Load: responses of open loops, round trips of closed ones (those with clients)";
    Some(table.caption(Note::new(caption, Show::Page)))
}

/// Small requests, and the point beside which they ran; `None`: alone.
type Probe<'a> = (&'a Run, Option<&'a Run>);

/// What a small message suffers beside each point, and where it is alone.
fn probes(record: &Record) -> Option<Table> {
    let points = std::iter::once(None).chain(runs(record).into_iter().map(Some));
    let all = || record.runs.iter().filter(|run| run.case.pattern == NAME && spec(run).probe);
    let rows = points.flat_map(|point: Option<&Run>| {
        let number = point.map(|run| run.index as usize);
        all().filter(move |run| probed(record, run) == number).map(move |run| (run, point))
    });
    let rows: Vec<Probe<'_>> = rows.collect();
    let response = Metric::Response;
    let quantile = |p| move |probe: &Probe<'_>| Cell::quantile(probe.0.summary(response), p);
    let offered = |run, scale| Cell::rate(run, RateMetric::OfferedRate, scale);
    let fields = [
        text("beside", |probe: &Probe<'_>| {
            let name = format!("{} {}", probe.0.case.transport, probe.0.case.wait.name());
            if probe.1.is_some() { name } else { format!("{name}, alone") }
        }),
        number("clients", "", |probe: &Probe<'_>| probe.1.map(clients)),
        number("offered", "k/s", move |probe: &Probe<'_>| offered(probe.1, THOUSANDS)),
        number("probe", "/s", move |probe: &Probe<'_>| offered(Some(probe.0), 1.0)),
        number("object", "B", |probe: &Probe<'_>| Cell::Size(spec(probe.0).object_size.0)),
        figure("p50", "us", quantile(0.5)),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)),
        number("n", "", move |probe: &Probe<'_>| Cell::Count(behind(probe.0.summary(response)))),
        number("lost", "", move |probe: &Probe<'_>| Cell::lost(probe.0.lost_of(response))),
        number("unsent", "", |probe: &Probe<'_>| Cell::lost(probe.0.counts.unsent)),
    ];
    let table = Table::of(rows, own(record).into_iter().chain(fields))?;
    Some(table.caption("probe: response of small requests beside the load"))
}

/// What the server's pools cost.
fn pools(record: &Record) -> Option<Table> {
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let fields = [
        text("transport", |run: &&Run| run.case.transport.name()),
        number("tx", "", |run: &&Run| spec(run).buffers.map(|pools| pools.transmit)),
        number("rx", "", |run: &&Run| spec(run).buffers.map(|pools| pools.receive)),
        number("clients", "", |run: &&Run| Cell::Count(spec(run).clients.into())),
        number("offered", "k/s", rate(RateMetric::OfferedRate, THOUSANDS)),
        figure("answered", "k/s", rate(RateMetric::MessageRate, THOUSANDS)),
        figure("completions/poll", "", rate(RateMetric::CompletionsPerPoll, 1.0)),
        figure("buffer", "ns/read", rate(RateMetric::BufferTime, 1.0)),
        number("empty polls", "ns/read", rate(RateMetric::EmptyPollTime, 1.0)),
        number("full polls", "ns/read", rate(RateMetric::FullPollTime, 1.0)),
        number("empty polls/read", "", rate(RateMetric::EmptyPolls, 1.0)),
        number("full polls/read", "", rate(RateMetric::FullPolls, 1.0)),
    ];
    let rows = runs(record).into_iter().filter(|run| spec(run).buffers.is_some());
    let table = Table::of(rows, own(record).into_iter().chain(fields))?;
    Some(table.caption(Note::new("The server's buffer pools", Show::Page)))
}

/// A sentence for each curve: its knee, and the highest rate within the bound.
fn found(record: &Record, curves: &[Curve<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    for curve in curves.iter().filter(|curve| !curve.open.is_empty()) {
        let name = &curve.name;
        out.extend(curve.found.knee.map(|knee| format!("knee: {name}: {}", knee_of(curve, knee))));
        let Some(slo) = slo(record) else { continue };
        let kept = match curve.found.highest {
            Some(at) => highest(curve, at),
            None => {
                "is neither shown to be met nor to be exceeded at the measured rates".to_string()
            }
        };
        out.push(format!("slo: {name}: {slo} {kept}"));
    }
    out
}

fn knee_of(curve: &Curve<'_>, knee: Landmark) -> String {
    let [low, high] = knee.alike.unwrap_or([knee.offered; 2]).map(|rate| short(rate * THOUSANDS));
    let best = short(knee.offered * THOUSANDS);
    match knee.bracket {
        Bracket::Within if low == high => format!(
            "{best} k/s has the highest ratio of rate to median response{}",
            next(curve, knee, "; the next measured rate is")
        ),
        Bracket::Within => format!(
            "{low} to {high} k/s: their ratio of rate to median response cannot be told from the \
             highest, at {best} k/s"
        ),
        Bracket::AtLeast => format!(
            "at least {low} k/s: the ratio of rate to median response is highest, or cannot be \
             told from that, at the highest rate that the server sustained"
        ),
        Bracket::AtMost => format!(
            "at most {high} k/s: the ratio of rate to median response is highest, or cannot be \
             told from that, at the lowest measured rate"
        ),
        Bracket::Unresolved => format!(
            "unresolved: no rate from {low} to {high} k/s has a ratio of rate to median response \
             that stands out; raise --rounds"
        ),
    }
}

fn highest(curve: &Curve<'_>, at: Landmark) -> String {
    let rate = short(at.offered * THOUSANDS);
    match at.bracket {
        Bracket::Within => {
            format!("is met up to {rate} k/s{}", next(curve, at, ", but not shown to be met at"))
        }
        Bracket::AtLeast => format!("is met up to at least {rate} k/s: no higher rate exceeded it"),
        Bracket::AtMost => format!("is not met at any measured rate, from {rate} k/s on"),
        Bracket::Unresolved => format!("is not resolved around {rate} k/s"),
    }
}

/// The next rate that was measured: how far a rate that was found may be wrong.
fn next(curve: &Curve<'_>, at: Landmark, words: &str) -> String {
    let offered = curve.open.iter().map(|(_, point)| point.offered);
    let next = offered.filter(|offered| *offered > at.offered).min_by(f64::total_cmp);
    next.map_or_else(String::new, |next| format!("{words} {} k/s", short(next * THOUSANDS)))
}

fn plots(record: &Record, curves: &[Curve<'_>]) -> [Plot; 2] {
    let slo = slo(record);
    let bound = slo.map_or_else(String::new, |slo| format!(" The horizontal line is {slo}."));
    let note = format!(
        "p50 solid, p99 dashed, p99.9 dotted; bars: 95 % intervals. The diamond is at the \
         highest ratio of rate to median response: the knee, or one of several rates that may be \
         it.{bound}"
    );
    let closed = match curves.iter().any(|curve| !curve.closed.is_empty()) {
        true => format!("{note} Hollow: closed loops, which have round trips and no schedule."),
        false => note.clone(),
    };
    let drawn = |metric| {
        let of_curve = move |(at, curve)| series(curve, at, metric);
        curves.iter().enumerate().flat_map(of_curve).collect()
    };
    let plot = |title: &str, word: &str, metric, note: String| Plot {
        x: Axis::log(format!("requests {word} per second"), Unit::PerSecond),
        y: Axis::log("latency", Unit::Time),
        series: drawn(metric),
        marks: slo.map_or_else(Vec::new, |slo| marks(curves, slo, metric, word)),
        ..Plot::new(format!("load-{word}"), title, note, 360)
    };
    [
        plot("Response against offered load", "offered", RateMetric::OfferedRate, note),
        plot("Response against answered load", "answered", RateMetric::MessageRate, closed),
    ]
}

/// What is drawn of one curve: its quantiles, its knee, and its closed loops where the axis has a
/// place for them.
fn series(curve: &Curve<'_>, at: usize, metric: RateMetric) -> Vec<Series> {
    let name = &curve.name;
    let open = |p| curve.open.iter().filter_map(move |(run, _)| dot(run, metric, p)).collect();
    let mut all: Vec<Series> = Vec::new();
    for (dash, p) in QUANTILES.into_iter().enumerate() {
        let name = format!("{name} {}", quantile_name(p));
        all.push(Series { name, dash, points: open(p), ..Series::default() });
    }
    let knee = curve.found.knee.filter(|knee| knee.bracket != Bracket::Unresolved);
    let knee = knee.and_then(|knee| curve.run(knee));
    all.push(Series {
        name: format!("{name} knee"),
        style: Style::Peak,
        shape: Some(Shape::Diamond),
        points: knee.and_then(|run| dot(run, metric, 0.5)).into_iter().collect(),
        ..Series::default()
    });
    // A closed loop offers nothing: it shows a round trip at the rate that it allows.
    let closed = |p| curve.closed.iter().filter_map(move |run| dot(run, metric, p)).collect();
    for (p, shape) in [(0.5, Shape::Circle), (0.99, Shape::Square)] {
        let name = format!("{name} closed loop, rtt {}", quantile_name(p));
        let (style, shape) = (Style::Marks, Some(shape));
        all.push(Series { name, style, shape, points: closed(p), ..Series::default() });
    }
    all.into_iter().map(|series| Series { colour: Some(at), ..series }).collect()
}

/// A point of a run; `None` where it has no place on logarithmic axes.
fn dot(run: &Run, metric: RateMetric, p: f64) -> Option<Dot> {
    let latency = main_metric(run);
    let summary = run.summary(latency)?;
    let found = summary.quantile(p)?;
    let (x, y) = (rate(run, metric)?, found.value?.0);
    let usable = |v: f64| v > 0.0 && v.is_finite();
    (usable(x) && usable(y)).then(|| {
        let rates = RATES.into_iter().filter_map(|(word, metric)| {
            Some(format!("{word} {}", per_second(rate(run, metric)?)))
        });
        let clients = clients(run).map_or(String::new(), |clients| format!("{clients} clients, "));
        let is_bound = point(run, p).is_some_and(|point| point.generator_bound);
        let text = format!(
            "{} {} {}, {clients}{}, n = {}{}",
            latency.name(),
            time(y),
            interval(y, found.interval, time),
            rates.collect::<Vec<_>>().join(", "),
            count(summary.count),
            if is_bound { ", the generator was the bottleneck" } else { "" }
        );
        Dot { x, y, text, ..Dot::default() }.within(found.interval)
    })
}

/// The bound, and up to where each curve keeps it.
fn marks(curves: &[Curve<'_>], slo: Slo, metric: RateMetric, word: &str) -> Vec<Mark> {
    let below = slo.below.0 as f64;
    let name = format!("{} < {}", quantile_name(slo.quantile), span(below));
    let text = format!("the limit {name}");
    let mut marks = vec![Mark { name: name.clone(), text, y: Some(below), ..Mark::default() }];
    for (at, curve) in curves.iter().enumerate() {
        let Some(x) = curve.kept().and_then(|run| rate(run, metric)) else { continue };
        let text = format!("{name} is met up to {} {word}", per_second(x));
        let (x, y, colour) = (Some(x).filter(|x| *x > 0.0), Some(below), Some(at));
        marks.push(Mark { name: String::new(), text, x, y, colour });
    }
    marks
}

fn data(curves: &[Curve<'_>]) -> Data {
    let rows = curves.iter().flat_map(|curve| {
        let open = curve.open.iter().map(|(run, _)| ("open", *run));
        let closed = curve.closed.iter().map(|run| ("closed", *run));
        let all = open.chain(closed).flat_map(|run| QUANTILES.map(|p| (run, p)));
        all.map(|((kind, run), p)| {
            let summary = main_summary(run);
            let [offered, sent, answered] = RATES.map(|(_, metric)| rate(run, metric));
            let [value, low, high] = quantile_fields(summary.and_then(|own| own.quantile(p)));
            let clients = clients(run).map(f64::from);
            let (metric, p) = (main_metric(run).name(), quantile_name(p));
            fields! {
                &curve.name, run.index, kind, clients, offered, sent, answered, metric, p,
                value, low, high, behind(summary)
            }
        })
    });
    Data::new(
        "curve run loop clients offered_per_s sent_per_s answered_per_s metric figure \
         value_ns low_ns high_ns count",
        rows,
    )
}
