//! Figures against the size of the message, where a record has enough sizes.

use crate::record::schema::{RateMetric, Record, Run};
use crate::report::curves::headline;
use crate::report::model::{
    Axis, Data, Field, Plot, Point, Section, Series, Unit, distinct, fields,
};
use crate::report::number::{bytes, count, interval, pace, quantile_name};
use crate::report::scale::Scale;
use crate::stats::Interval;

/// Fewest sizes that make a curve.
const LEAST: usize = 3;

/// One figure of one run.
struct Figure<'a> {
    run: &'a Run,
    name: String,
    value: f64,
    interval: Option<Interval>,
    count: u64,
}

/// Those that differ in nothing but their size.
struct Group<'a> {
    who: String,
    figures: Vec<Figure<'a>>,
}

/// A plot of latencies and one of each rate; `None` where there are too few sizes.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("sweep", "By message size");
    let note = "Bars: 95 % intervals.";
    let time = format!("p50 solid, p99 dashed. {note}");
    let bytes = format!("MB/s = 10⁶ B/s of payload. {note}");
    let rate = |metric| move |run| rate(run, metric).into_iter().collect();
    let [bandwidth, messages] = [RateMetric::Bandwidth, RateMetric::MessageRate];
    add(&mut section, ["latency", "Latency"], time, Scale::Time, groups(record, quantiles));
    let found = groups(record, rate(bandwidth));
    add(&mut section, ["bandwidth", "Bandwidth"], bytes, Scale::Bytes, found);
    let found = groups(record, rate(messages));
    add(&mut section, ["rate", "Message rate"], note.into(), Scale::Messages, found);
    section.filled()
}

fn quantiles(run: &Run) -> Vec<Figure<'_>> {
    let Some(summary) = headline(run).and_then(|metric| run.summary(metric)) else {
        return Vec::new();
    };
    let figure = |p| {
        let found = summary.quantile(p)?;
        let value = found.value.map_or(f64::NAN, |value| value.0);
        let (interval, count) = (found.interval, summary.count);
        Some(Figure { run, name: quantile_name(p), value, interval, count })
    };
    [0.5, 0.99].into_iter().filter_map(figure).collect()
}

fn rate(run: &Run, metric: RateMetric) -> Option<Figure<'_>> {
    let rate = run.rate(metric)?;
    let (value, interval, count) = (rate.value, rate.interval, rate.rounds.len() as u64);
    Some(Figure { run, name: String::new(), value, interval, count })
}

fn groups<'a>(record: &'a Record, of: impl Fn(&'a Run) -> Vec<Figure<'a>>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for figure in record.runs.iter().flat_map(of) {
        let case = &figure.run.case;
        let pace =
            case.schedule.rate().map_or(String::new(), |rate| format!(" at {}", pace(rate.0)));
        let who = format!("{} {}{pace}", case.transport, case.wait.name());
        let same = |group: &&mut Group<'_>| {
            group.who == who && group.figures.iter().all(|other| other.name == figure.name)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.figures.push(figure),
            None => groups.push(Group { who, figures: vec![figure] }),
        }
    }
    for group in &mut groups {
        group.figures.sort_by_key(|figure| figure.run.case.size);
    }
    let enough = |group: &Group<'_>| {
        let mut sizes: Vec<u64> = group.figures.iter().map(|one| one.run.case.size.0).collect();
        sizes.dedup();
        sizes.len() >= LEAST
    };
    groups.retain(enough);
    groups
}

fn add(
    section: &mut Section,
    [id, title]: [&str; 2],
    note: String,
    scale: Scale,
    groups: Vec<Group<'_>>,
) {
    if groups.is_empty() {
        return;
    }
    let mut names: Vec<&str> = groups.iter().map(|group| group.who.as_str()).collect();
    names.dedup();
    let series = groups.iter().map(|group| {
        let name = group.figures.first().map_or("", |figure| figure.name.as_str());
        Series {
            name: format!("{} {name}", group.who).trim().into(),
            colour: names.iter().position(|who| *who == group.who),
            dash: usize::from(name == "p99"),
            points: group.figures.iter().filter_map(|figure| point(figure, scale)).collect(),
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.collect();
    let ticks = distinct(series.iter().flat_map(|one| &one.points).map(|point| point.x));
    let plot = Plot {
        id: format!("sweep-{id}"),
        title: format!("{title} against size"),
        note,
        height: 320,
        x: Axis { ticks, ..Axis::log("message payload size", Unit::Bytes) },
        y: match scale {
            Scale::Time => Axis::log("latency", Unit::Time),
            _ => Axis { log: true, ..scale.axis() },
        },
        series,
        ..Plot::default()
    };
    section.draw(plot, data(&groups));
}

fn point(figure: &Figure<'_>, scale: Scale) -> Option<Point> {
    let (x, y) = (figure.run.case.size.0 as f64, figure.value);
    let text = || {
        let interval = interval(figure.interval, |bound| scale.text(bound));
        let size = bytes(figure.run.case.size.0);
        format!("{size}: {} {interval}, n = {}", scale.text(y), count(figure.count))
    };
    let usable = x > 0.0 && y > 0.0 && y.is_finite();
    usable.then(|| Point { x, y, text: text(), ..Point::default() }.within(figure.interval))
}

fn data(groups: &[Group<'_>]) -> Data {
    let mut data = Data::new("run transport_wait figure size_bytes value low high count");
    for (group, figure) in
        groups.iter().flat_map(|group| group.figures.iter().map(move |figure| (group, figure)))
    {
        let [low, high] = Field::bounds(figure.interval);
        let Figure { run, name, value, count, .. } = figure;
        let (who, size) = (&group.who, run.case.size.0);
        data.rows.push(fields![run.index, who, name, size, *value, low, high, *count]);
    }
    data
}
