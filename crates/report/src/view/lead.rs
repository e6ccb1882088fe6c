//! The drawing on top of a page: what a reader came to compare.
//!
//! Where a section of the record's own draws something, its first drawing leads; else the curves
//! over the sizes; else all runs side by side.

use super::figures::{self, Figure};
use super::names::names;
use crate::model::{Axis, Data, Plot, Point, Section, Series, Style, bounds, fields};
use crate::number::interval;
use crate::scale::Scale;
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{RateMetric, Record, Run};
use wiregauge_stats::Value;

/// Most runs that are drawn side by side.
const MOST: usize = 24;
/// From the middle of a run's place to its second figure.
const ASIDE: f64 = 0.12;
const ID: &str = "lead";

/// The drawing, taken out of the section that had it; `None` where nothing can be drawn.
pub fn lead(record: &Record, sections: &mut [Section]) -> Option<Section> {
    let first = sections.iter_mut().find_map(take);
    first.or_else(|| side_by_side(record))
}

/// The first drawing of a section, of a section of parts its whole first part.
fn take(section: &mut Section) -> Option<Section> {
    if !section.plots.is_empty() {
        let mut lead = Section::new(ID, &section.title);
        let plot = section.plots.remove(0);
        let data = section.data.get(plot.data).cloned().unwrap_or_default();
        lead.draw(plot, data);
        return Some(lead);
    }
    let at = section.parts.iter().position(Section::has_drawings)?;
    Some(Section { parts: vec![section.parts.remove(at)], ..Section::new(ID, &section.title) })
}

/// p50 and p99 of each run, or its rate.
fn side_by_side(record: &Record) -> Option<Section> {
    let quantiles: Vec<Figure<'_>> = record.runs.iter().flat_map(figures::quantiles).collect();
    let of = |metric| -> Vec<Figure<'_>> {
        record.runs.iter().filter_map(|run| figures::rate(run, metric)).collect()
    };
    let (figures, scale) = match quantiles.is_empty() {
        false => (quantiles, Scale::Time),
        true => (of(RateMetric::Bandwidth), Scale::Bytes),
    };
    let mut runs: Vec<&Run> = figures.iter().map(|figure| figure.run).collect();
    runs.dedup_by_key(|run| run.index);
    if runs.len() > MOST {
        return None;
    }
    let kinds = each_once(figures.iter().map(|figure| figure.name.as_str()));
    let series = kinds.iter().enumerate().map(|(at, kind)| {
        let aside = (2.0 * at as f64 - (kinds.len() as f64 - 1.0)) * ASIDE;
        let own = figures.iter().filter(|figure| figure.name == *kind);
        let slot = |figure: &Figure<'_>| runs.iter().position(|run| run.index == figure.run.index);
        let points = own.filter_map(|figure| point(figure, slot(figure)? as f64 + aside, scale));
        Series {
            name: (*kind).to_owned(),
            style: Style::Dots,
            colour: Some(at),
            points: points.collect(),
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    if series.is_empty() {
        return None;
    }
    let (title, note) = match scale {
        Scale::Time => ("Latency", "Bars: 95 % intervals. Lower is better."),
        _ => ("Bandwidth", "Bars: 95 % intervals. Higher is better."),
    };
    let plot = Plot {
        x: Axis::names(names(&runs), 0.5),
        y: Axis { log: true, ..scale.axis() },
        series,
        ..Plot::new("side-by-side", title, note, 300)
    };
    let mut section = Section::new(ID, "Side by side");
    section.draw(plot, data(&figures));
    Some(section)
}

fn point(figure: &Figure<'_>, x: f64, scale: Scale) -> Option<Point> {
    let (label, name, y) = (&figure.run.label, &figure.name, figure.value);
    let shown = |value| scale.text(value);
    let interval = interval(y, figure.interval, shown);
    let text = format!("{label}: {name} {} {interval}", shown(y));
    let usable = y > 0.0 && y.is_finite();
    let known = figure.interval.filter(|both| both.low.0.is_finite() && both.high.0.is_finite());
    usable.then(|| Point { x, y, text, ..Point::default() }.within(known))
}

fn data(figures: &[Figure<'_>]) -> Data {
    let rows = figures.iter().map(|figure| {
        let Figure { run, name, value, interval, count, .. } = figure;
        let [low, high] = bounds(*interval);
        fields![run.index, run.label, name, Value(*value), low, high, count]
    });
    Data::new("run label figure value low high count", rows)
}
