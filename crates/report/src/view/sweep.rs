//! Figures against the size of the message, where a record has enough sizes.

use super::figures::{self, Figure};
use crate::model::{Axis, Data, Plot, Point, Section, Series, Unit, bounds, distinct, fields};
use crate::number::{bytes, count, interval, pace};
use crate::scale::Scale;
use wiregauge_base::options::grouped;
use wiregauge_figures::record::schema::{RateMetric, Record};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_stats::Value;

/// Fewest sizes that make a curve.
const LEAST: usize = 3;

/// A plot of latencies and one of each rate; `None` where there are too few sizes.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("sweep", "By message size");
    let bars = "Bars: 95 % intervals.";
    let times = record.runs.iter().flat_map(figures::quantiles).collect();
    let rates = |metric| record.runs.iter().filter_map(|run| figures::rate(run, metric)).collect();
    let note = format!("p50 solid, p99 dashed. {bars}");
    add(&mut section, ["latency", "Latency"], note, Scale::Time, times);
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let note = format!("{} = {} of payload. {bars}", unit.name(), unit.meaning());
    let found = rates(RateMetric::Bandwidth);
    add(&mut section, ["bandwidth", "Bandwidth"], note, Scale::Bytes, found);
    let found = rates(RateMetric::MessageRate);
    add(&mut section, ["rate", "Message rate"], bars.into(), Scale::Messages, found);
    section.filled()
}

/// What the figures of a curve have in common.
fn who(figure: &Figure<'_>) -> String {
    let case = &figure.run.case;
    let pace = case.schedule.rate().map_or(String::new(), |rate| format!(" at {}", pace(rate.0)));
    format!("{} {}{pace}", case.transport, case.wait.name())
}

/// Those that differ in nothing but their size, by it.
fn groups(figures: Vec<Figure<'_>>) -> Vec<Vec<Figure<'_>>> {
    let named = figures.into_iter().map(|figure| (who(&figure), figure));
    let groups = grouped(named, |(who, a), (other, b)| a.name == b.name && who == other);
    let without_names = |group: Vec<(String, _)>| group.into_iter().map(|(_, one)| one).collect();
    let mut groups: Vec<Vec<Figure<'_>>> = groups.into_iter().map(without_names).collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(|figure| figure.run.case.size));
    let is_same_size = |a: &Figure<'_>, b: &Figure<'_>| a.run.case.size == b.run.case.size;
    groups.retain(|group| group.chunk_by(is_same_size).count() >= LEAST);
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
    let mut names: Vec<String> = groups.iter().map(|group| who(&group[0])).collect();
    names.dedup();
    let series = groups.iter().map(|group| {
        let (who, name) = (who(&group[0]), shown(&group[0], scale));
        Series {
            name: format!("{who} {name}").trim().into(),
            colour: names.iter().position(|other| *other == who),
            dash: usize::from(name == "p99"),
            points: group.iter().filter_map(|figure| point(figure, scale)).collect(),
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.collect();
    let ticks = distinct(series.iter().flat_map(|one| &one.points).map(|point| point.x));
    let plot = Plot {
        x: Axis { ticks, ..Axis::log("message payload size", Unit::Bytes) },
        y: match scale {
            Scale::Time => Axis::log("latency", Unit::Time),
            _ => Axis { log: true, ..scale.axis() },
        },
        series,
        ..Plot::new(format!("sweep-{id}"), format!("{title} against size"), note, 320)
    };
    section.draw(plot, data(&groups, scale));
}

/// The name of a quantile; a plot of a rate shows no other.
fn shown<'a>(figure: &'a Figure<'_>, scale: Scale) -> &'a str {
    if scale == Scale::Time { &figure.name } else { "" }
}

fn point(figure: &Figure<'_>, scale: Scale) -> Option<Point> {
    let (x, y) = (figure.run.case.size.0 as f64, figure.value);
    let text = || {
        let interval = interval(y, figure.interval, |bound| scale.text(bound));
        let size = bytes(figure.run.case.size.0);
        format!("{size}: {} {interval}, n = {}", scale.text(y), count(figure.count))
    };
    let usable = x > 0.0 && y > 0.0 && y.is_finite();
    usable.then(|| Point { x, y, text: text(), ..Point::default() }.within(figure.interval))
}

fn data(groups: &[Vec<Figure<'_>>], scale: Scale) -> Data {
    let rows = groups.iter().flatten().map(|figure| {
        let Figure { run, value, interval, count, .. } = figure;
        let ([low, high], size) = (bounds(*interval), run.case.size.0);
        let (who, name) = (who(figure), shown(figure, scale));
        fields![run.index, who, name, size, Value(*value), low, high, count]
    });
    Data::new("run transport_wait figure size_bytes value low high count", rows)
}
