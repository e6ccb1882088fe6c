//! The plots of a study's graphs. What was published is hollow and dashed, in the colour of the
//! series that it is compared with; ours is solid.

use super::lines::{
    Beside, Line, columns, is_beside, is_of_one_size, rates_differ, references, scale,
};
use crate::model::{
    Axis, Curve, CurveKind, Plot, Point, Series, Shape, Style, Unit, distinct, extent,
};
use crate::number::{bytes, count, interval, pace, quantile_name};
use crate::scale::Scale;
use wiregauge_base::options::grouped;
use wiregauge_base::units::counted;
use wiregauge_figures::record::schema::{Metric, Run};
use wiregauge_plan::study::{
    Axis as Against, Graph, GraphKind, Point as Figure, Reference, Spread,
};
use wiregauge_stats::{Interval, Value};

/// Half the width of a bar.
const HALF: f64 = 0.28;
/// Most bars that are named; more are numbered.
const NAMED: usize = 16;

/// The plot of a graph that is no surface.
pub fn plot(graph: &Graph, lines: &[Line<'_>], index: usize) -> Plot {
    let plot = match graph.kind {
        GraphKind::Cdf => cdf(graph, lines),
        GraphKind::Histogram => histogram(graph, lines),
        GraphKind::Bars => bars(graph, lines),
        _ => against(graph, lines),
    };
    let (id, title, note) = (format!("study-{index}"), graph.title.clone(), note(graph));
    Plot { id, title, note, height: 340, ..plot }
}

pub(super) fn is_rate(graph: &Graph) -> bool {
    scale(graph) != Scale::Time
}

fn has_deciles(graph: &Graph) -> bool {
    matches!(graph.kind.axes(), [_]) && graph.spread == Spread::Deciles && !is_rate(graph)
}

pub(super) fn note(graph: &Graph) -> String {
    let metrics = graph.metrics().collect::<Vec<_>>().join(", ");
    let what = match graph.kind {
        GraphKind::Cdf | GraphKind::Histogram => metrics,
        _ if graph.above => format!("{metrics}, share above the threshold"),
        _ if !graph.over.is_empty() => {
            let pair = |[own, base]: &[String; 2]| format!("{own} over {base}");
            let pairs = graph.over.iter().map(pair).collect::<Vec<_>>().join(", ");
            format!("{metrics} {}: {pairs}", quantile_name(graph.quantile))
        }
        _ if !graph.less.is_empty() => {
            let all =
                graph.less.iter().map(|all| all.join(" less ")).collect::<Vec<_>>().join(", ");
            format!("{metrics} {}: {all}", quantile_name(graph.quantile))
        }
        _ if graph.each_way => format!("{metrics} of each way, half of the sum"),
        _ if is_rate(graph) => metrics,
        _ => format!("{metrics} {}", quantile_name(graph.quantile)),
    };
    let bars = match graph.kind {
        _ if has_deciles(graph) => " Bars: from p10 to p90 of the messages.",
        GraphKind::Cdf | GraphKind::Surface => "",
        GraphKind::Histogram => " Messages in each bin, 20 bins per decade.",
        _ => " Bars: 95 % intervals.",
    };
    let published = match references(graph).next() {
        Some(_) => " Hollow and dashed: published.",
        None => "",
    };
    format!("{what}.{bars}{published}")
}

/// How a reference is drawn: the colour of its series, a shape and dashes of its own among those
/// that stand beside the same series.
fn published(graph: &Graph, reference: &Reference, style: Style, points: Vec<Point>) -> Series {
    let mut beside = references(graph).filter(|other| other.beside == reference.beside);
    let at = beside.position(|other| other == reference).unwrap_or(0);
    let own = |name: &String| graph.series.iter().position(|series| series == name);
    Series {
        name: reference.name.clone(),
        style,
        colour: reference.beside.as_ref().and_then(own),
        dash: at,
        shape: (style != Style::PublishedLevel).then_some(Shape::ALL[at % Shape::ALL.len()]),
        source: format!("{}. Measured on: {}", reference.source, reference.system),
        points,
        ..Series::default()
    }
}

fn published_point(graph: &Graph, reference: &Reference, figure: &Figure, x: f64, y: f64) -> Point {
    let size = figure.size.map_or("all sizes".into(), |size| bytes(size.0));
    let value = scale(graph).text(figure.value);
    let text = format!("{size}: {value}, {}", reference.source);
    Point { x, y, text, ..Point::default() }
}

/// A figure of ours with its bars; `None` where it has no place on the axis.
fn point(graph: &Graph, line: &Line<'_>, x: f64, is_linear: bool) -> Option<Point> {
    let (value, bounds) = line.figure?;
    if !(value.is_finite() && (value > 0.0 || is_linear && value == 0.0)) {
        return None;
    }
    let text = |value: f64| scale(graph).text(value);
    let quantile = |p| Some(line.run.quantile(Metric::from_name(line.metric)?, p)?.0);
    let deciles = has_deciles(graph).then(|| Some((quantile(0.1)?, quantile(0.9)?))).flatten();
    let spread = deciles
        .map_or_else(String::new, |(low, high)| format!(", p10 {}, p90 {}", text(low), text(high)));
    let n = match line.summary() {
        Some(summary) => format!("n = {}", count(summary.count)),
        None => format!("{} rounds", line.rounds()),
    };
    let (words, interval) = (words(graph, line), interval(value, bounds, text));
    let text = format!("{words}: {} {interval}{spread}, {n}", text(value));
    let bars = match deciles {
        Some((low, high)) => Some(Interval { low: Value(low), high: Value(high) }),
        None => bounds,
    };
    Some(Point { x, y: value, text, ..Point::default() }.within(bars))
}

/// The place of a figure on the axes, in words.
fn words(graph: &Graph, line: &Line<'_>) -> String {
    let places = columns(graph.kind).iter().zip(&line.at);
    places.map(|(axis, at)| word(*axis, *at)).collect::<Vec<_>>().join(", ")
}

pub(super) fn word(axis: Against, at: f64) -> String {
    match axis {
        Against::Size => bytes(at as u64),
        Against::Values if at == 1.0 => "1 value".into(),
        Against::Values => format!("{} values", count(at as u64)),
        Against::Rate | Against::Answered => pace(at),
        Against::Clients => format!("{} clients", count(at as u64)),
        Against::Connections => counted(at as u64, "connection"),
    }
}

/// Lines of one series and metric that differ only in their place on the axis.
struct Track<'a> {
    series: usize,
    /// Among those of its series, and whether it is its only one.
    number: usize,
    name: String,
    lines: Vec<&'a Line<'a>>,
}

/// A size says nothing beside the number of values that it is made of.
fn tracks<'a>(graph: &Graph, lines: &'a [Line<'a>]) -> Vec<Track<'a>> {
    let mut tracks: Vec<Track<'a>> = Vec::new();
    for (series, name) in graph.series.iter().enumerate() {
        let own: Vec<&Line<'_>> = lines.iter().filter(|line| line.series == name).collect();
        let differ =
            |axis: Against| own.windows(2).any(|two| of(axis, two[0].run) != of(axis, two[1].run));
        let mut differing = vec![Against::Size, Against::Values, Against::Rate, Against::Clients];
        differing.retain(|axis| tells_apart(graph.kind, *axis) && differ(*axis));
        let name = |line: &Line<'_>| {
            let apart = differing.iter().filter_map(|axis| Some((*axis, of(*axis, line.run)?)));
            let apart: Vec<String> = apart.map(|(axis, at)| word(axis, at)).collect();
            let metric = if graph.also.is_empty() { "" } else { line.metric };
            let mut words = vec![line.of_series.clone(), apart.join(" "), metric.into()];
            words.retain(|word| !word.is_empty());
            words.join(", ")
        };
        let named = own.iter().map(|line| (name(line), *line));
        let alike = grouped(named, |a, b| a.0 == b.0).into_iter().enumerate();
        tracks.extend(alike.map(|(number, lines)| {
            let name = lines[0].0.clone();
            Track { series, number, name, lines: lines.into_iter().map(|one| one.1).collect() }
        }));
    }
    tracks
}

/// Whether a graph's curves may differ in a quantity.
fn tells_apart(kind: GraphKind, axis: Against) -> bool {
    let answered = kind == GraphKind::AgainstAnswered && axis == Against::Rate;
    let values = kind == GraphKind::AgainstValues && axis == Against::Size;
    !kind.axes().contains(&axis) && !answered && !values
}

fn of(axis: Against, run: &Run) -> Option<f64> {
    let has_values = axis == Against::Size && run.case.on_axis(Against::Values).is_some();
    run.case.on_axis(axis).filter(|_| !has_values)
}

/// A figure over one quantity.
fn against(graph: &Graph, lines: &[Line<'_>]) -> Plot {
    // Shares, costs and counts may be 0, and say more from there.
    let is_linear = is_rate(graph) && graph.kind != GraphKind::AgainstSize;
    let tracks = tracks(graph, lines);
    // Of one series each line has a colour, of several each series.
    let by_line = graph.series.len() == 1 && tracks.len() > 1;
    let ours = tracks.iter().map(|track| {
        let usable = track.lines.iter().filter(|line| line.x() > 0.0);
        let series = &graph.series[track.series];
        Series {
            name: match (by_line, track.name.is_empty()) {
                (true, _) => track.name.clone(),
                (false, true) => series.clone(),
                (false, false) => format!("{series}, {}", track.name),
            },
            colour: Some(if by_line { track.number } else { track.series }),
            dash: if by_line { 0 } else { track.number },
            points: usable.filter_map(|line| point(graph, line, line.x(), is_linear)).collect(),
            ..Series::default()
        }
    });
    let mut series: Vec<Series> = ours.filter(|one| !one.points.is_empty()).collect();
    let ends: Vec<f64> = series.iter().flat_map(|one| &one.points).flat_map(ends(graph)).collect();
    let by_size = graph.kind == GraphKind::AgainstSize;
    series.extend(references(graph).map(|reference| {
        let made = |figure: &Figure, x| published_point(graph, reference, figure, x, figure.value);
        match reference.points.iter().find(|figure| figure.size.is_none()) {
            Some(level) => {
                published(graph, reference, Style::PublishedLevel, vec![made(level, 1.0)])
            }
            None => {
                let sized = reference.points.iter().filter(|_| by_size);
                let points = sized.filter_map(|one| Some(made(one, one.size?.0 as f64))).collect();
                published(graph, reference, Style::Published, points)
            }
        }
    }));
    let placed = series.iter().filter(|one| one.style != Style::PublishedLevel);
    // Also where a point has no value: what was asked for is on the axis.
    let asked = lines.iter().map(Line::x).filter(|x| x.is_finite() && *x > 0.0);
    let ticks = distinct(placed.flat_map(|one| &one.points).map(|point| point.x).chain(asked));
    let values =
        || series.iter().flat_map(|one| &one.points).map(|point| point.y).chain(ends.clone());
    let range = match is_linear {
        true => [0.0, values().fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1],
        false => around(values(), 1.4),
    };
    let (label, unit) = match graph.kind.axes().first() {
        Some(Against::Values) => ("values per sample", Unit::Count),
        Some(Against::Rate) => ("messages offered per second", Unit::PerSecond),
        Some(Against::Answered) => ("messages answered per second", Unit::PerSecond),
        Some(Against::Clients) => ("clients", Unit::Count),
        _ => ("message payload size", Unit::Bytes),
    };
    let own_ticks = graph.kind != GraphKind::AgainstAnswered;
    Plot {
        x: Axis {
            range: Some(around(ticks.iter().copied(), 1.5)),
            ticks: if own_ticks { ticks } else { Vec::new() },
            ..Axis::log(label, unit)
        },
        y: Axis { log: !is_linear, range: Some(range), ..scale(graph).axis() },
        series,
        ..Plot::default()
    }
}

/// How far the bars of a point widen the axis: an infinite one must not.
fn ends(graph: &Graph) -> impl Fn(&Point) -> Vec<f64> {
    let factor = if is_rate(graph) { 2.0 } else { 10.0 };
    let widens = is_rate(graph) || has_deciles(graph);
    move |point| {
        let high = point.high.filter(|_| widens).map(|high| high.min(factor * point.y));
        let low = point.low.filter(|_| widens).map(|low| low.max(point.y / factor));
        [high, low].into_iter().flatten().collect()
    }
}

/// The ends of a logarithmic axis that holds all values with some room.
fn around(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let (low, high) = extent(values.filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
    [low / room, high * room]
}

/// A figure of each series, side by side.
fn bars(graph: &Graph, lines: &[Line<'_>]) -> Plot {
    let several_rates = rates_differ(graph, lines);
    let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.metric == graph.metric).collect();
    let differ = |two: &[&Line<'_>]| two[0].run.case.size != two[1].run.case.size;
    let several = is_of_one_size(graph) && lines.windows(2).any(differ);
    let name = |slot: usize| {
        let line = lines[slot];
        let size = several.then(|| bytes(line.run.case.size.0));
        let rate = line.run.case.on_axis(Against::Rate).filter(|_| several_rates).map(pace);
        match lines.len() > NAMED {
            true => format!("#{slot}"),
            false => {
                let words = [Some(line.name()), size, rate];
                words.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        }
    };
    let mut series = Vec::new();
    for (slot, line) in lines.iter().enumerate() {
        series.push(Series {
            name: line.series.into(),
            style: Style::Column,
            half: Some(HALF),
            colour: graph.series.iter().position(|name| name == line.series),
            hidden: true,
            points: point(graph, line, slot as f64, true).into_iter().collect(),
            ..Series::default()
        });
    }
    for reference in references(graph) {
        let points = lines.iter().enumerate().filter_map(|(slot, line)| {
            let Beside { figure, .. } =
                line.beside.iter().find(|one| one.reference == reference)?;
            Some(published_point(graph, reference, figure, slot as f64, figure.value))
        });
        let made = published(graph, reference, Style::PublishedBars, points.collect());
        series.push(Series { half: Some(1.5 * HALF), ..made });
    }
    let points = || series.iter().flat_map(|one| &one.points);
    let highs = points().map(|point| point.high.unwrap_or(point.y).min(2.0 * point.y));
    let most = points().map(|point| point.y).chain(highs).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    Plot {
        x: Axis::names((0..lines.len()).map(name).collect(), 0.6),
        y: scale(graph).axis().between(0.0, most * 1.12),
        series,
        ..Plot::default()
    }
}

/// A curve for each run, as the page has its order statistics.
fn curves(graph: &Graph, lines: &[Line<'_>], kind: CurveKind, style: Style) -> Vec<Series> {
    let curve = |line: &Line<'_>| {
        let mut same = lines.iter().filter(|other| other.series == line.series);
        let several = same.clone().nth(1).is_some();
        let at = same.position(|other| other.run.index == line.run.index).unwrap_or(0);
        let size = bytes(line.run.case.size.0);
        Series {
            name: if several { format!("{} {size}", line.series) } else { line.series.into() },
            style,
            colour: graph.series.iter().position(|name| name == line.series),
            dash: at,
            curve: Some(Curve { run: line.run.index, metric: line.metric.into(), kind }),
            ..Series::default()
        }
    };
    lines.iter().filter(|line| line.metric == graph.metric).map(curve).collect()
}

/// The published figures of messages as long as those whose curves are drawn.
fn beside_curves(graph: &Graph, lines: &[Line<'_>], style: Style, y: f64) -> Vec<Series> {
    let all = references(graph).map(|reference| {
        let is_shown = |figure: &&Figure| {
            let own = |line: &&Line<'_>| is_beside(reference, line.series);
            let sizes = || lines.iter().filter(own).map(|line| line.run.case.size);
            figure.size.is_none_or(|size| sizes().any(|own| own == size))
        };
        let shown = reference.points.iter().filter(is_shown);
        let points = shown.map(|one| published_point(graph, reference, one, one.value, y));
        published(graph, reference, style, points.collect())
    });
    all.collect()
}

fn cdf(graph: &Graph, lines: &[Line<'_>]) -> Plot {
    let mut series = curves(graph, lines, CurveKind::Cdf, Style::Steps);
    series.extend(beside_curves(graph, lines, Style::PublishedPoints, 0.5));
    Plot {
        x: Axis::log("latency", Unit::Time),
        y: Axis {
            ticks: vec![0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
            ..Axis::linear("cumulative share of messages", Unit::Share, [0.0, 1.02])
        },
        series,
        ..Plot::default()
    }
}

fn histogram(graph: &Graph, lines: &[Line<'_>]) -> Plot {
    let counts = lines.iter().filter_map(|line| Some(line.summary()?.count as f64));
    let most = counts.fold(10.0, f64::max);
    let mut series = curves(graph, lines, CurveKind::Histogram, Style::Steps);
    series.extend(beside_curves(graph, lines, Style::PublishedUpright, most));
    Plot {
        x: Axis::log("latency", Unit::Time),
        y: Axis::log("messages", Unit::Count).between(0.6, most * 2.0),
        series,
        ..Plot::default()
    }
}
