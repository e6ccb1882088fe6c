//! Runs of `rpc`: what the load did to requests of all lengths, and to each.

use super::Rpc;
use super::cases::connections_of;
use super::lengths::{Lengths, OfSize, Short};
use super::spec::{Slowdown, Spec};
use super::workload::Workload;
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::report::model::{
    Axis, Cell, Data, Field, Note, OfRun, Plot, Point, Section, Series, Show, Style, Table,
    TableField, Unit, figure, number, own, text,
};
use crate::report::number::{
    GIGABITS, PERCENT, THOUSANDS, US, bytes, count, quantile_name, short, time,
};
use crate::report::view::PatternView;
use crate::stats::Summary;
use crate::transport::Role;

/// Lengths of one run that the terminal shows; the page has all.
const MOST_LENGTHS: usize = 20;
/// As records name the pattern.
const NAME: &str = "rpc";
/// Labels along the axis of lengths.
const TICKS: u32 = 10;

/// A run with what it sends, and what the record says of its lengths.
#[derive(Clone, Copy)]
struct Sent<'a> {
    run: &'a Run,
    rpc: &'a Spec,
    lengths: &'a Lengths,
}

/// One length of it.
struct Length<'a> {
    sent: Sent<'a>,
    of: &'a OfSize,
}

impl OfRun for Sent<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

impl OfRun for Length<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.sent.run)
    }
}

impl<'a> Sent<'a> {
    /// All requests.
    fn summary(&self) -> Option<&'a Summary> {
        self.run.summary(self.lengths.metric)
    }

    /// The mean slowdown by the definition of the run; of unloaded requests there is none.
    fn slowdown(&self) -> Cell {
        let mut known = self.lengths.slowdowns.iter().filter(|_| !self.rpc.unloaded);
        match known.find(|one| one.by == self.rpc.slowdown) {
            Some(found) => Cell::figure(found.mean.value, found.mean.interval, 1.0),
            None => Cell::None,
        }
    }

    fn load(&self) -> Cell {
        match self.run.case.schedule.rate() {
            _ if self.rpc.unloaded => "unloaded".into(),
            Some(rate) => {
                let bits = rate.0 * self.rpc.workload.mean() * GIGABITS;
                format!("{bits:.3} Gb/s").into()
            }
            None => format!("{} clients", self.rpc.clients).into(),
        }
    }

    fn lengths(self) -> impl Iterator<Item = Length<'a>> {
        self.lengths.sizes.iter().map(move |of| Length { sent: self, of })
    }
}

impl Length<'_> {
    /// What its times are held against; of unloaded requests nothing.
    fn base_ns(&self) -> Option<f64> {
        self.of.unloaded.by(self.sent.rpc.slowdown).filter(|_| !self.sent.rpc.unloaded)
    }

    fn unloaded(&self) -> Cell {
        let is_median = self.sent.rpc.slowdown == Slowdown::UnloadedP50;
        let interval = self.of.unloaded.p50_interval.filter(|_| is_median);
        self.base_ns().map_or(Cell::None, |ns| Cell::figure(ns, interval, US))
    }

    fn slowdown(&self, p: f64) -> Cell {
        let found =
            self.of.slowdown(self.sent.rpc.slowdown, p).filter(|_| self.base_ns().is_some());
        found.map_or(Cell::None, |(ratio, interval)| Cell::figure(ratio, interval, 1.0))
    }
}

impl PatternView for Rpc {
    fn section(&self, record: &Record) -> Option<Section> {
        section(record)
    }
}

/// All that a record says of them; `None` where there are no such runs.
fn section(record: &Record) -> Option<Section> {
    let read = |run: &Run| {
        let lengths: Lengths = serde_json::from_value(run.details.clone()?).ok()?;
        Some((run.case.spec::<Spec>(NAME)?, lengths))
    };
    let known: Vec<(&Run, (Spec, Lengths))> =
        record.runs.iter().filter_map(|run| Some((run, read(run)?))).collect();
    let sent = known.iter().map(|(run, (rpc, lengths))| Sent { run, rpc, lengths });
    let runs: Vec<Sent<'_>> = sent.collect();
    let mut section = Section::new("rpc", "Requests by message size");
    let mut own = record.runs.iter().filter(|run| run.case.pattern == NAME);
    section.distributions = own.by_ref().map(|run| run.index).collect();
    section.rates = section.distributions.clone();
    section.results.extend(requests(record, &runs));
    section.tables.extend(lengths(record, &runs));
    section.tables.extend(runs.iter().filter_map(|sent| lengths_of(*sent)));
    section.plots = plots(&runs);
    section.data.push(data(&runs));
    section.filled()
}

/// What tells a run from the others.
fn place<'a, T: OfRun + 'a>(sent: impl Fn(&T) -> Sent<'_> + Copy + 'a) -> [TableField<'a, T>; 4] {
    [
        text("transport", move |row: &T| {
            let case = &sent(row).run.case;
            let control = case.settings.text("congestion");
            let transport = case.transport.name();
            control.map_or(transport.to_string(), |name| format!("{transport} {name}"))
        }),
        text("wait", move |row: &T| sent(row).run.case.wait.name()),
        text("workload", move |row: &T| sent(row).rpc.workload.label()),
        text("load", move |row: &T| sent(row).load()),
    ]
}

/// All requests of each run.
fn requests(record: &Record, runs: &[Sent<'_>]) -> Option<Table> {
    let rate = |metric, scale| move |sent: &Sent<'_>| Cell::rate(Some(sent.run), metric, scale);
    let quantile = |p| move |sent: &Sent<'_>| Cell::quantile(sent.summary(), p);
    let short = |p| move |sent: &Sent<'_>| Cell::quantile(sent.run.summary(Metric::Short), p);
    let fields = [
        text("ports", |sent: &Sent<'_>| {
            let topology = &sent.run.case.topology;
            let (own, others) = (sent.run.case.threads(), topology.threads_of(Role::Server));
            match connections_of(topology) {
                1 => format!("{own}:{others}"),
                each => format!("{own}:{others} x {each}"),
            }
        }),
        number("offered", "k/s", rate(RateMetric::OfferedRate, THOUSANDS)),
        figure("answered", "k/s", rate(RateMetric::MessageRate, THOUSANDS)),
        figure("Gb/s", "", rate(RateMetric::Bandwidth, GIGABITS)),
        text("metric", |sent: &Sent<'_>| sent.lengths.metric.name()).show(Show::Page),
        figure("p50", "us", quantile(0.5)),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)),
        number("max", "us", |sent: &Sent<'_>| Cell::maximum(sent.summary())).show(Show::Page),
        figure("slowdown", "", Sent::slowdown),
        figure("short p50", "us", short(0.5)),
        figure("short p99", "us", short(0.99)),
        number("n", "", |sent: &Sent<'_>| Cell::Count(sent.summary().map_or(0, |all| all.count))),
        number("lost", "", |sent: &Sent<'_>| Cell::lost(sent.run.counts.lost)),
    ];
    let own = own(record).into_iter().chain(place(|sent: &Sent<'_>| *sent));
    let table = Table::of(runs.iter().copied(), own.chain(fields))?;
    let by = runs.first()?.rpc.slowdown;
    let notes = [format!("slowdown: the mean over all answered requests of {}", explained(by))];
    let caption = Note::new("Requests of all lengths; short: the shortest tenth", Show::Page);
    Some(table.caption(caption).notes(notes))
}

/// What the times of each length are held against.
fn explained(by: Slowdown) -> &'static str {
    match by {
        Slowdown::UnloadedP50 => "its time over the median of unloaded requests of its length",
        Slowdown::UnloadedMin => "its time over the shortest of unloaded requests of its length",
        Slowdown::Serialisation => {
            "its time over that of the shortest unloaded request and both messages on the link"
        }
    }
}

/// The columns of one length, the times named after `metric`.
fn fields<'a>(metric: &str) -> Vec<TableField<'a, Length<'a>>> {
    let time = |p| move |row: &Length<'_>| Cell::quantile(Some(&row.of.summary), p);
    let slower = |p| move |row: &Length<'_>| row.slowdown(p);
    vec![
        number("size", "B", |row: &Length<'_>| Cell::Size(row.of.size.into())),
        number("share", "%", |row: &Length<'_>| Cell::fixed(PERCENT * row.of.share, 2)),
        figure(&format!("{metric}p50"), "us", time(0.5)),
        figure(&format!("{metric}p99"), "us", time(0.99)),
        figure(&format!("{metric}p99.9"), "us", time(0.999)),
        figure("unloaded", "us", Length::unloaded),
        figure("slowdown p50", "", slower(0.5)),
        figure("slowdown p99", "", slower(0.99)),
        figure("slowdown p99.9", "", slower(0.999)),
        number("n", "", |row: &Length<'_>| Cell::Count(row.of.summary.count)),
        number("lost", "", |row: &Length<'_>| Cell::lost(row.of.summary.lost)),
    ]
}

/// Some lengths of each run, for the terminal. The unloaded times stand beside those that are held
/// against them.
fn lengths(record: &Record, runs: &[Sent<'_>]) -> Option<Table> {
    let several = |sent: &&Sent<'_>| sent.rpc.workload.steps.len() > 1 && !sent.rpc.unloaded;
    let runs: Vec<&Sent<'_>> = runs.iter().filter(several).collect();
    let rows = runs.iter().flat_map(|sent| {
        shown(&sent.lengths.sizes).into_iter().map(|of| Length { sent: **sent, of })
    });
    let own = own(record).into_iter().chain(place(|row: &Length<'_>| row.sent));
    let table = Table::of(rows, own.chain(fields("")))?;
    let is_cut = runs.iter().any(|sent| sent.lengths.sizes.len() > MOST_LENGTHS);
    let cut = format!("{MOST_LENGTHS} lengths of each run are shown; the record has all");
    Some(table.show(Show::Terminal).notes(is_cut.then_some(cut)))
}

/// All lengths of one run, for the page.
fn lengths_of(sent: Sent<'_>) -> Option<Table> {
    let table = Table::of(sent.lengths(), fields(&format!("{} ", sent.lengths.metric.name())))?;
    let mut notes = vec![sent.rpc.workload.what.clone()];
    if let Cell::Figure(mean) = sent.slowdown() {
        let interval = crate::report::number::interval(mean.interval, short);
        let (mean, by) = (short(mean.value.0), explained(sent.rpc.slowdown));
        notes.push(format!("Mean slowdown: {mean} {interval}, of each answered request {by}."));
    }
    let table = table.caption(sent.run.label.as_str()).notes(notes).show(Show::Page);
    Some(Table { folded: true, ..table })
}

/// Lengths that are spread over the shares of all requests.
fn shown(sizes: &[OfSize]) -> Vec<&OfSize> {
    if sizes.len() <= MOST_LENGTHS {
        return sizes.iter().collect();
    }
    let mut shown: Vec<&OfSize> = Vec::new();
    for step in 1..=MOST_LENGTHS {
        let share = step as f64 / MOST_LENGTHS as f64;
        let at = sizes.partition_point(|of| of.share < share - 1e-9).min(sizes.len() - 1);
        if shown.last().is_none_or(|last| last.size != sizes[at].size) {
            shown.push(&sizes[at]);
        }
    }
    shown
}

/// The plots: those of each workload, whose lengths are the axis, and the tail of the short ones.
fn plots(runs: &[Sent<'_>]) -> Vec<Plot> {
    let mut workloads: Vec<Vec<Sent<'_>>> = Vec::new();
    for sent in runs {
        let same =
            |group: &&mut Vec<Sent<'_>>| group[0].rpc.workload.steps == sent.rpc.workload.steps;
        match workloads.iter_mut().find(same) {
            Some(group) => group.push(*sent),
            None => workloads.push(vec![*sent]),
        }
    }
    let several = workloads.len() > 1;
    let mut plots = Vec::new();
    for (at, own) in workloads.iter().enumerate() {
        let name = &own[0].rpc.workload.name;
        let of = if several { format!(", {name}") } else { String::new() };
        let number = if at == 0 { String::new() } else { format!("-{}", at + 1) };
        plots.extend(plots_of(own).into_iter().map(|mut plot| {
            plot.title.push_str(&of);
            plot.id.push_str(&number);
            plot
        }));
    }
    plots.extend(tail(runs));
    plots
}

/// How much each length is slowed down, and how long each takes.
fn plots_of(runs: &[Sent<'_>]) -> Vec<Plot> {
    let loaded: Vec<Sent<'_>> = runs.iter().copied().filter(|sent| !sent.rpc.unloaded).collect();
    let Some(some) = loaded.iter().find(|sent| sent.lengths.sizes.len() > 1) else {
        return Vec::new();
    };
    let x = axis(&some.rpc.workload);
    let plot = |id: &str, title: &str, note: String, label: &str, unit, series| Plot {
        id: id.into(),
        title: title.into(),
        note,
        height: 340,
        x: x.clone(),
        y: Axis { label: label.into(), unit, log: true, ..Axis::default() },
        series,
        ..Plot::default()
    };
    let metric = some.lengths.metric;
    let times = if metric == Metric::Rtt { "Round trips" } else { "Responses" };
    let mut plots = Vec::new();
    if loaded.iter().any(|sent| sent.lengths().any(|row| row.base_ns() > Some(0.0))) {
        let mut by: Vec<&str> = loaded.iter().map(|sent| explained(sent.rpc.slowdown)).collect();
        by.dedup();
        let note = format!("Of each request: {}. p50 solid, p99 dashed.", by.join(", or "));
        let ratio = |row: &Length<'_>, ns: f64| ns / row.base_ns().unwrap_or(f64::NAN);
        let series = steps(&loaded, ratio, |v| format!("{}×", short(v)));
        let title = "Slowdown against message size";
        plots.push(plot("rpc-slowdown", title, note, "slowdown", Unit::Times, series));
    }
    let note = format!("{times}. p50 solid, p99 dashed.");
    let series = steps(runs, |_, ns| ns, time);
    let title = "Time against message size";
    plots.push(plot("rpc-time", title, note, metric.name(), Unit::Time, series));
    plots
}

/// Linear in the number of messages, so that each length is as wide as its share.
fn axis(workload: &Workload) -> Axis {
    let ticks: Vec<f64> = (0..=TICKS).map(|tick| f64::from(tick) / f64::from(TICKS)).collect();
    let size = |share: &f64| {
        let reaches = |(_, up_to): &&(crate::units::Bytes, f64)| *up_to >= share - 1e-9;
        let found = workload.steps.iter().find(reaches).or(workload.steps.last());
        found.map_or(String::new(), |(size, _)| bytes(size.0))
    };
    Axis {
        label: "message size, by the share of messages that are no longer".into(),
        range: Some([0.0, 1.0]),
        labels: ticks.iter().map(size).collect(),
        ticks,
        ..Axis::default()
    }
}

/// A step for each length of each run, `value` of its quantiles.
fn steps(
    runs: &[Sent<'_>],
    value: impl Fn(&Length<'_>, f64) -> f64,
    shown: impl Fn(f64) -> String,
) -> Vec<Series> {
    let mut all = Vec::new();
    for (at, sent) in runs.iter().enumerate() {
        for (dash, p) in [0.5, 0.99].into_iter().enumerate() {
            let name = quantile_name(p);
            let (mut points, mut before) = (Vec::new(), 0.0);
            for row in sent.lengths() {
                // By the workload, for unloaded requests too, of which each length is as frequent.
                let step =
                    sent.rpc.workload.steps.iter().find(|step| step.0.0 == u64::from(row.of.size));
                let to = step.map_or(row.of.share, |step| step.1);
                let x = std::mem::replace(&mut before, to);
                let found = row.of.summary.quantiles.iter().find(|quantile| quantile.p == p);
                let found = found.and_then(|quantile| quantile.value);
                let y = found.map_or(f64::NAN, |ns| value(&row, ns.0));
                if !(y > 0.0 && y.is_finite()) {
                    continue;
                }
                let lost = match row.of.summary.lost {
                    0 => String::new(),
                    lost => format!(", {lost} lost"),
                };
                let (size, n) = (bytes(row.of.size.into()), count(row.of.summary.count));
                let text = format!("{size}: {name} {}, n = {n}{lost}", shown(y));
                points.push(Point { x, to: Some(to), y, text, ..Point::default() });
            }
            let name = format!("{} {name}", sent.run.label);
            let (style, colour) = (Style::Path, Some(at));
            all.push(Series { name, style, colour, dash, points, ..Series::default() });
        }
    }
    all
}

/// The fraction of the short requests that took longer.
fn tail(runs: &[Sent<'_>]) -> Option<Plot> {
    fn short_of<'a>(sent: &Sent<'a>) -> Option<(Sent<'a>, &'a Short)> {
        Some((*sent, sent.lengths.short.as_ref().filter(|one| one.tail.len() > 1)?))
    }
    let own = || runs.iter().filter_map(short_of);
    let longest = own().map(|(_, short)| short.longest).max()?;
    let series = own().enumerate().map(|(at, (sent, short_ones))| {
        let n = count(sent.run.summary(Metric::Short).map_or(0, |summary| summary.count));
        let usable = short_ones.tail.iter().filter(|(ns, above)| *above > 0.0 && ns.is_finite());
        let point = |&(ns, above): &(f64, f64)| Point {
            x: ns,
            y: above,
            text: format!("{} % took longer than {}, n = {n}", short(PERCENT * above), time(ns)),
            ..Point::default()
        };
        let (name, style, colour) = (sent.run.label.clone(), Style::Path, Some(at));
        Series { name, style, colour, points: usable.map(point).collect(), ..Series::default() }
    });
    let series: Vec<Series> = series.collect();
    let lowest = series.iter().flat_map(|one| &one.points).map(|point| point.y);
    let lowest = lowest.fold(1.0, f64::min);
    Some(Plot {
        id: "rpc-short".into(),
        title: "Short requests: the share that took longer".into(),
        note: format!(
            "The shortest tenth of all requests, up to {}. Lost ones took longer than all.",
            bytes(longest.into())
        ),
        height: 340,
        x: Axis { label: "time".into(), unit: Unit::Time, log: true, ..Axis::default() },
        y: Axis {
            label: "took longer".into(),
            log: true,
            range: Some([lowest / 1.5, 1.0]),
            ..Axis::default()
        },
        series,
        ..Plot::default()
    })
}

fn data(runs: &[Sent<'_>]) -> Data {
    let mut data = Data::new([
        "run",
        "label",
        "size_bytes",
        "reply_bytes",
        "share",
        "figure",
        "value_ns",
        "low",
        "high",
        "count",
        "lost",
        "unloaded_p50_ns",
        "unloaded_min_ns",
        "serialisation_ns",
    ]);
    for row in runs.iter().flat_map(|sent| sent.lengths()) {
        let Length { sent, of } = row;
        for quantile in &of.summary.quantiles {
            let [value, low, high] = Field::quantile(Some(quantile));
            let known = |ns: Option<f64>| ns.unwrap_or(f64::NAN).into();
            data.rows.push(vec![
                sent.run.index.into(),
                sent.run.label.as_str().into(),
                of.size.into(),
                of.reply.into(),
                of.share.into(),
                quantile_name(quantile.p).into(),
                value,
                low,
                high,
                of.summary.count.into(),
                of.summary.lost.into(),
                known(of.unloaded.p50_ns),
                known(of.unloaded.min_ns),
                known(of.unloaded.serialisation_ns),
            ]);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::super::lengths::Unloaded;
    use super::*;
    use crate::stats::{Interval, Value, summarize};

    fn sizes(count: u32) -> Vec<OfSize> {
        let of = |size: u32| OfSize {
            size,
            reply: size,
            share: f64::from(size) / f64::from(count),
            summary: summarize(&[vec![f64::from(size)]], f64::INFINITY),
            unloaded: Unloaded::default(),
        };
        (1..=count).map(of).collect()
    }

    #[test]
    fn many_lengths_are_shown_by_their_shares_and_the_longest_always() {
        let many = sizes(842);
        let shown = shown(&many);
        assert_eq!(shown.len(), MOST_LENGTHS);
        assert_eq!(shown.last().unwrap().size, 842);
        assert!(shown.windows(2).all(|two| two[0].size < two[1].size));
        assert_eq!(super::shown(&sizes(7)).len(), 7);
    }

    #[test]
    fn a_slowdown_needs_both_times_and_has_the_error_of_both() {
        let mut of = sizes(1).remove(0);
        let rounds: Vec<Vec<f64>> = [29.0, 30.0, 31.0].map(|ns| vec![ns; 100]).to_vec();
        of.summary = summarize(&rounds, f64::INFINITY);
        assert_eq!(of.slowdown(Slowdown::UnloadedP50, 0.5), None);
        of.unloaded.p50_ns = Some(10.0);
        of.unloaded.min_ns = Some(10.0);
        let width = |of: &OfSize, by| {
            let (ratio, interval) = of.slowdown(by, 0.5).unwrap();
            assert_eq!(ratio, 3.0);
            let interval = interval.unwrap();
            assert!(interval.low.0 < 3.0 && interval.high.0 > 3.0);
            interval.high.0 - interval.low.0
        };
        let alone = width(&of, Slowdown::UnloadedP50);
        of.unloaded.p50_interval = Some(Interval { low: Value(8.0), high: Value(12.0) });
        assert!(width(&of, Slowdown::UnloadedP50) > alone);
        assert_eq!(width(&of, Slowdown::UnloadedMin), alone, "of which no interval is known");
        assert_eq!(of.slowdown(Slowdown::UnloadedP50, 0.999), None, "n is too small");
    }
}
