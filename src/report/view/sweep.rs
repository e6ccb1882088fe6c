//! Figures against the size of the message, where a record has enough sizes.

use super::figures::{self, Figure};
use crate::record::schema::{RateMetric, Record};
use crate::report::model::{
    Axis, Data, Plot, Point, Section, Series, Unit, bounds, distinct, fields,
};
use crate::report::number::{bytes, count, interval, pace};
use crate::report::scale::Scale;
use crate::stats::Value;

/// Fewest sizes that make a curve.
const LEAST: usize = 3;

/// Those that differ in nothing but their size.
struct Group<'a> {
    who: String,
    /// The quantile or rate.
    name: String,
    figures: Vec<Figure<'a>>,
}

/// A plot of latencies and one of each rate; `None` where there are too few sizes.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("sweep", "By message size");
    let bars = "Bars: 95 % intervals.";
    let times = record.runs.iter().flat_map(figures::quantiles).collect();
    let rates = |metric| {
        record.runs.iter().filter_map(|run| figures::rate(run, metric)).collect::<Vec<_>>()
    };
    let note = format!("p50 solid, p99 dashed. {bars}");
    add(&mut section, ["latency", "Latency"], note, Scale::Time, times);
    let note = format!("MB/s = 10⁶ B/s of payload. {bars}");
    let found = rates(RateMetric::Bandwidth);
    add(&mut section, ["bandwidth", "Bandwidth"], note, Scale::Bytes, found);
    let found = rates(RateMetric::MessageRate);
    add(&mut section, ["rate", "Message rate"], bars.into(), Scale::Messages, found);
    section.filled()
}

fn groups(figures: Vec<Figure<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for figure in figures {
        let case = &figure.run.case;
        let pace =
            case.schedule.rate().map_or(String::new(), |rate| format!(" at {}", pace(rate.0)));
        let who = format!("{} {}{pace}", case.transport, case.wait.name());
        let same = |group: &&mut Group<'_>| (&group.who, &group.name) == (&who, &figure.name);
        match groups.iter_mut().find(same) {
            Some(group) => group.figures.push(figure),
            None => groups.push(Group { who, name: figure.name.clone(), figures: vec![figure] }),
        }
    }
    for group in &mut groups {
        group.figures.sort_by_key(|figure| figure.run.case.size);
    }
    let is_same_size = |a: &Figure<'_>, b: &Figure<'_>| a.run.case.size == b.run.case.size;
    groups.retain(|group| group.figures.chunk_by(is_same_size).count() >= LEAST);
    groups
}

fn add(
    section: &mut Section,
    [id, title]: [&str; 2],
    note: String,
    scale: Scale,
    figures: Vec<Figure<'_>>,
) {
    let groups = groups(figures);
    if groups.is_empty() {
        return;
    }
    let mut names: Vec<&str> = groups.iter().map(|group| group.who.as_str()).collect();
    names.dedup();
    let series = groups.iter().map(|group| {
        let name = shown(group, scale);
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
    section.draw(plot, data(&groups, scale));
}

/// The name of a quantile; a plot of a rate shows no other.
fn shown<'a>(group: &'a Group<'_>, scale: Scale) -> &'a str {
    if scale == Scale::Time { &group.name } else { "" }
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

fn data(groups: &[Group<'_>], scale: Scale) -> Data {
    let mut data = Data::new("run transport_wait figure size_bytes value low high count");
    for group in groups {
        let (who, name) = (&group.who, shown(group, scale));
        data.rows.extend(group.figures.iter().map(|figure| {
            let Figure { run, value, interval, count, .. } = figure;
            let ([low, high], size) = (bounds(*interval), run.case.size.0);
            fields![run.index, who, name, size, Value(*value), low, high, count]
        }));
    }
    data
}
