//! Runs of `load`: how the answers slow down as the load rises, and what the server's pools cost.

use super::{Load, Spec};
use crate::pattern::prelude::*;
use crate::plan::Slo;
use crate::report::model::{Mark, Point as Dot, Shape, fields};
use crate::report::number::{
    THOUSANDS, count, interval, per_second, quantile_name, short, span, time,
};
use crate::stats::knee::{self, Point};

/// Fewest points of a curve that is drawn.
const LEAST: usize = 2;
/// The quantiles of each curve.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

impl PatternView for Load {
    fn section(&self, record: &Record) -> Option<Section> {
        section(record)
    }

    fn exceeds_limit(&self, record: &Record) -> bool {
        breaks_bound(record)
    }
}

/// All that a record says of them; `None` where there are no such runs.
fn section(record: &Record) -> Option<Section> {
    let curves = curves(record);
    let mut section = Section::new("load", "Responses under load");
    let found = found(record, &curves);
    let points = points(record);
    section.results.extend(points.map(|table| {
        table.notes(found.iter().map(|line| Note::new(line.as_str(), Show::Terminal)))
    }));
    section.tables.extend([probes(record), pools(record)].into_iter().flatten());
    if curves.iter().any(|curve| curve.open.len() >= LEAST) {
        section.notes = found.into_iter().map(|line| Note::new(line, Show::Page)).collect();
        section.data.push(data(&curves));
        section.plots = plots(record, &curves).to_vec();
    }
    let own = |run: &&Run| run.case.pattern == NAME;
    let own: Vec<u32> = record.runs.iter().filter(own).map(|run| run.index).collect();
    (section.distributions, section.rates) = (own.clone(), own);
    section.filled()
}

/// Whether there is a bound that some curve keeps at no rate.
fn breaks_bound(record: &Record) -> bool {
    let Some(slo) = slo(record) else { return false };
    let curves = curves(record);
    let mut open = curves.iter().filter(|curve| !curve.open.is_empty()).peekable();
    open.peek().is_none() || open.any(|curve| curve.highest(slo).is_none())
}

/// The runs of one server, from idle to saturation.
struct Curve<'a> {
    /// What tells it from the others: of a study the series, else transport and way to wait, and
    /// what else differs.
    name: String,
    /// Closed loops by their clients.
    closed: Vec<&'a Run>,
    /// Open loops by what they offered.
    open: Vec<(&'a Run, Point)>,
}

impl<'a> Curve<'a> {
    /// Where it bends; fewer than three points do not show it.
    fn knee(&self) -> Option<&(&'a Run, Point)> {
        if self.open.len() <= 2 {
            return None;
        }
        self.open.get(knee::knee(&self.points())?)
    }

    /// The highest rate that keeps a bound.
    fn highest(&self, slo: Slo) -> Option<&(&'a Run, Point)> {
        self.open.get(knee::highest(&self.points(), slo)?)
    }

    fn points(&self) -> Vec<Point> {
        self.open.iter().map(|(_, point)| *point).collect()
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

/// What the points of one curve share.
fn place(run: &Run) -> (&'static str, &'static str, Bytes, u32, u32) {
    let case = &run.case;
    let buffers = spec(run).buffers.map_or((0, 0), |buffers| (buffers.transmit, buffers.receive));
    (case.transport.name(), case.wait.name(), case.size, buffers.0, buffers.1)
}

/// The runs, curve by curve, each by its load.
fn runs(record: &Record) -> Vec<&Run> {
    let mut runs: Vec<&Run> = record.runs.iter().filter(|run| is_load(run)).collect();
    let offered = |run: &Run| run.case.schedule.rate().map_or(0.0, |rate| rate.0);
    runs.sort_by(|a, b| {
        place(a)
            .cmp(&place(b))
            .then(spec(a).clients.cmp(&spec(b).clients))
            .then(offered(a).total_cmp(&offered(b)))
    });
    runs
}

fn curves(record: &Record) -> Vec<Curve<'_>> {
    let bounded = slo(record).map_or(0.99, |slo| slo.quantile);
    let series = |run: &Run| record.plan.study.as_ref()?.series_of(run.index);
    let mut curves: Vec<(_, Curve<'_>)> = Vec::new();
    for run in runs(record) {
        let key = (series(run).map(|series| series.name.as_str()), place(run));
        let at = match curves.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let name = key.0.map_or_else(|| name(run), String::from);
                curves.push((key, Curve { name, closed: Vec::new(), open: Vec::new() }));
                curves.len() - 1
            }
        };
        let curve = &mut curves[at].1;
        match point(run, bounded) {
            Some(point) => curve.open.push((run, point)),
            None => curve.closed.push(run),
        }
    }
    curves.into_iter().map(|(_, curve)| curve).collect()
}

/// `None` without a schedule.
fn point(run: &Run, bounded: f64) -> Option<Point> {
    let achieved = rate(run, RateMetric::AchievedRate).unwrap_or(f64::NAN);
    let quantile = |p| run.quantile(Metric::Response, p).map_or(f64::NAN, |value| value.0);
    let counts = (run.counts.sent, run.counts.held_up);
    Point::new(run.case.schedule, achieved, counts, quantile, bounded)
}

/// The name of a curve outside a study.
fn name(run: &Run) -> String {
    let case = &run.case;
    let buffers = spec(run).buffers.map_or_else(String::new, |buffers| {
        format!(" TX {} RX {}", buffers.transmit, buffers.receive)
    });
    format!("{} {}{buffers}", case.transport, case.wait.name())
}

fn rate(run: &Run, metric: RateMetric) -> Option<f64> {
    run.rate(metric).map(|rate| rate.value)
}

/// What a client waits for: the response of an open loop, the round trip of a closed one.
fn main_metric(run: &Run) -> Metric {
    if run.case.schedule.is_open() { Metric::Response } else { Metric::Rtt }
}

fn clients(run: &Run) -> Cell {
    match spec(run).clients {
        0 => Cell::None,
        clients => Cell::Count(clients.into()),
    }
}

/// A closed loop is named by its clients, an open one by what was offered.
fn points(record: &Record) -> Option<Table> {
    let main = |run: &&Run, p: f64| Cell::quantile(run.summary(main_metric(run)), p);
    let other = |metric| move |run: &&Run| Cell::quantile(run.summary(metric), 0.99);
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let summary = |run: &&Run| run.summary(main_metric(run)).cloned();
    let fields = [
        number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)).show(Show::Page),
        number("object", "B", |run: &&Run| Cell::Size(spec(run).object_size.0)),
        text("metric", |run: &&Run| main_metric(run).name()).show(Show::Page),
        number("clients", "", |run: &&Run| match run.case.schedule.is_open() {
            true => Cell::None,
            false => Cell::Count(spec(run).clients.into()),
        }),
        number("offered", "k/s", rate(RateMetric::OfferedRate, THOUSANDS)),
        number("sent", "k/s", rate(RateMetric::AchievedRate, THOUSANDS)),
        figure("answered", "k/s", rate(RateMetric::MessageRate, THOUSANDS)),
        figure("p50", "us", move |run| main(run, 0.5)),
        figure("p99", "us", move |run| main(run, 0.99)),
        figure("p99.9", "us", move |run| main(run, 0.999)),
        number("max", "us", move |run| Cell::maximum(summary(run).as_ref())).show(Show::Page),
        number("service p99", "us", other(Metric::Service)),
        number("late p99", "us", other(Metric::Lateness)),
        number("client", "ns/msg", rate(RateMetric::CpuClient, 1.0)),
        number("server", "ns/msg", rate(RateMetric::CpuServer, 1.0)),
        number("n", "", move |run| Cell::Count(summary(run).map_or(0, |summary| summary.count))),
        number("lost", "", |run: &&Run| Cell::lost(run.counts.lost)),
    ];
    let table = Table::of(runs(record), own(record).into_iter().chain(ends()).chain(fields))?;
    Some(table.caption(Note::new(
        "Load: responses of open loops, round trips of closed ones (those with clients)",
        Show::Page,
    )))
}

/// Small requests beside a point.
struct Probe<'a> {
    run: &'a Run,
    /// `None`: it ran alone.
    beside: Option<&'a Run>,
}

impl OfRun for Probe<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

/// What a small message suffers beside each point, and where it is alone.
fn probes(record: &Record) -> Option<Table> {
    let beside = |probe: &Run| probed(record, probe);
    let points = std::iter::once(None).chain(runs(record).into_iter().map(Some));
    let all = || record.runs.iter().filter(|run| run.case.pattern == NAME && spec(run).probe);
    let rows = points.flat_map(|point: Option<&Run>| {
        let number = point.map(|run| run.index as usize);
        all().filter(move |run| beside(run) == number).map(move |run| Probe { run, beside: point })
    });
    let rows: Vec<Probe<'_>> = rows.collect();
    let quantile =
        |p| move |probe: &Probe<'_>| Cell::quantile(probe.run.summary(Metric::Response), p);
    let offered = |run, scale| Cell::rate(run, RateMetric::OfferedRate, scale);
    let fields = [
        text("beside", |probe: &Probe<'_>| {
            let name = format!("{} {}", probe.run.case.transport, probe.run.case.wait.name());
            if probe.beside.is_some() { name } else { format!("{name}, alone") }
        }),
        number("clients", "", |probe: &Probe<'_>| probe.beside.map_or(Cell::None, clients)),
        number("offered", "k/s", move |probe: &Probe<'_>| offered(probe.beside, THOUSANDS)),
        number("probe", "/s", move |probe: &Probe<'_>| offered(Some(probe.run), 1.0)),
        number("object", "B", |probe: &Probe<'_>| Cell::Size(spec(probe.run).object_size.0)),
        figure("p50", "us", quantile(0.5)),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)),
        number("n", "", |probe: &Probe<'_>| {
            let summary = probe.run.summary(Metric::Response);
            Cell::Count(summary.map_or(0, |summary| summary.count))
        }),
        number("lost", "", |probe: &Probe<'_>| Cell::lost(probe.run.counts.lost)),
    ];
    let table = Table::of(rows, own(record).into_iter().chain(fields))?;
    Some(table.caption("probe: response of small requests beside the load"))
}

/// What the server's pools cost.
fn pools(record: &Record) -> Option<Table> {
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let buffers = |run: &Run| spec(run).buffers.map(|pool| (pool.transmit, pool.receive));
    let pool = |size: Option<u32>| size.map_or(Cell::None, |size| Cell::Count(size.into()));
    let fields = [
        text("transport", |run: &&Run| run.case.transport.name()),
        number("tx", "", move |run: &&Run| pool(buffers(run).map(|both| both.0))),
        number("rx", "", move |run: &&Run| pool(buffers(run).map(|both| both.1))),
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
        if let Some((_, knee)) = curve.knee() {
            out.push(format!(
                "knee: {name}: {} k/s, where the rate over the median response is highest{}",
                short(knee.offered * THOUSANDS),
                next(curve, knee, "; the next rate measured is")
            ));
        }
        let Some(slo) = slo(record) else { continue };
        out.push(match curve.highest(slo) {
            Some((_, at)) => format!(
                "slo: {name}: {slo} holds up to {} k/s{}",
                short(at.offered * THOUSANDS),
                next(curve, at, ", and no longer at")
            ),
            None => format!("slo: {name}: {slo} holds at no rate that was measured"),
        });
    }
    out
}

/// The next rate that was measured: how far a rate that was found may be wrong.
fn next(curve: &Curve<'_>, at: &Point, words: &str) -> String {
    let offered = curve.open.iter().map(|(_, point)| point.offered);
    let next = offered.filter(|offered| *offered > at.offered).min_by(f64::total_cmp);
    next.map_or_else(String::new, |next| format!("{words} {} k/s", short(next * THOUSANDS)))
}

fn plots(record: &Record, curves: &[Curve<'_>]) -> [Plot; 2] {
    let slo = slo(record);
    let bound = slo.map_or_else(String::new, |slo| format!(" The horizontal line is {slo}."));
    let note = format!(
        "p50 solid, p99 dashed, p99.9 dotted; bars: 95 % intervals. The diamond is the knee: the \
         rate over the median response is highest there.{bound}"
    );
    let has_closed = curves.iter().any(|curve| !curve.closed.is_empty());
    let closed = " Hollow: closed loops, which have round trips and no schedule.";
    let plot = |title: &str, word: &str, metric, note: String| Plot {
        id: format!("load-{word}"),
        title: title.into(),
        note,
        height: 360,
        x: Axis::log(format!("requests {word} per second"), Unit::PerSecond),
        y: Axis::log("latency", Unit::Time),
        series: curves
            .iter()
            .enumerate()
            .flat_map(|(at, curve)| series(curve, at, metric))
            .collect(),
        marks: slo.map_or_else(Vec::new, |slo| marks(curves, slo, metric, word)),
        data: 0,
    };
    [
        plot("Response against offered load", "offered", RateMetric::OfferedRate, note.clone()),
        plot(
            "Response against answered load",
            "answered",
            RateMetric::MessageRate,
            if has_closed { note + closed } else { note },
        ),
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
    all.push(Series {
        name: format!("{name} knee"),
        style: Style::Peak,
        shape: Some(Shape::Diamond),
        points: curve.knee().and_then(|(run, _)| dot(run, metric, 0.5)).into_iter().collect(),
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
        let rates = [
            ("offered", RateMetric::OfferedRate),
            ("sent", RateMetric::AchievedRate),
            ("answered", RateMetric::MessageRate),
        ];
        let rates = rates.into_iter().filter_map(|(word, metric)| {
            Some(format!("{word} {}", per_second(rate(run, metric)?)))
        });
        let clients = match spec(run).clients {
            0 => String::new(),
            clients => format!("{clients} clients, "),
        };
        let is_bound = point(run, p).is_some_and(|point| point.generator_bound);
        let text = format!(
            "{} {} {}, {clients}{}, n = {}{}",
            latency.name(),
            time(y),
            interval(found.interval, time),
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
    let text = format!("the bound {name}");
    let mut marks = vec![Mark { name: name.clone(), text, y: Some(below), ..Mark::default() }];
    for (at, curve) in curves.iter().enumerate() {
        let Some(x) = curve.highest(slo).and_then(|(run, _)| rate(run, metric)) else { continue };
        let text = format!("{name} holds up to {} {word}", per_second(x));
        let (x, y, colour) = (Some(x).filter(|x| *x > 0.0), Some(below), Some(at));
        marks.push(Mark { name: String::new(), text, x, y, colour });
    }
    marks
}

fn data(curves: &[Curve<'_>]) -> Data {
    let mut data = Data::new(
        "curve run loop clients offered_per_s sent_per_s answered_per_s metric figure \
         value_ns low_ns high_ns count",
    );
    for curve in curves {
        let open = curve.open.iter().map(|(run, _)| ("open", *run));
        let closed = curve.closed.iter().map(|run| ("closed", *run));
        for (kind, run) in open.chain(closed) {
            let summary = run.summary(main_metric(run));
            for p in QUANTILES {
                let rate = |metric| rate(run, metric);
                let offered = rate(RateMetric::OfferedRate);
                let (sent, answered) =
                    (rate(RateMetric::AchievedRate), rate(RateMetric::MessageRate));
                let found = summary.and_then(|summary| summary.quantile(p));
                let [value, low, high] = quantile_fields(found);
                let clients = Some(f64::from(spec(run).clients)).filter(|n| *n > 0.0);
                let (metric, p) = (main_metric(run).name(), quantile_name(p));
                let count = summary.map_or(0, |summary| summary.count);
                data.rows.push(fields! {
                    &curve.name, run.index, kind, clients, offered, sent, answered, metric, p,
                    value, low, high, count
                });
            }
        }
    }
    data
}
