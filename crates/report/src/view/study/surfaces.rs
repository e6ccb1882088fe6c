//! Surfaces of a study's graphs, and the figures of a graph for other programs.

use super::lines::{Line, MANY_MISSED, scale};
use super::plots::{is_rate, note, word};
use crate::model::{Axis, Data, Surface, SurfacePoint, Unit, bounds, fields};
use crate::number::{interval, per_second, quantile_name};
use wiregauge_figures::record::schema::RateMetric;
use wiregauge_plan::study::{Axis as Against, Graph};
use wiregauge_stats::Value;

/// A surface for each series.
pub fn surfaces(graph: &Graph, lines: &[Line<'_>], index: usize) -> Vec<Surface> {
    let several = graph.series.len() > 1;
    let surface = |(at, name): (usize, &String)| {
        let own = lines.iter().filter(|line| line.series == name && line.metric == graph.metric);
        let points: Vec<SurfacePoint> = own.filter_map(|line| surface_point(graph, line)).collect();
        (!points.is_empty()).then(|| Surface {
            id: if several { format!("study-{index}-{at}") } else { format!("study-{index}") },
            title: if several { format!("{}: {name}", graph.title) } else { graph.title.clone() },
            note: format!(
                "{} Framed and in red: more than 10 % of the steps were missed.",
                note(graph)
            ),
            x: Axis::log("samples per second", Unit::PerSecond),
            y: Axis::log("values per sample", Unit::Count),
            z: Axis { log: !is_rate(graph), ..scale(graph).axis() },
            points,
            data: 0,
        })
    };
    graph.series.iter().enumerate().filter_map(surface).collect()
}

fn surface_point(graph: &Graph, line: &Line<'_>) -> Option<SurfacePoint> {
    let [rate, values] = line.at[..] else { return None };
    let text = |value: f64| scale(graph).text(value);
    let shown = match line.figure {
        Some((value, bounds)) => format!("{} {}", text(value), interval(value, bounds, text)),
        None => "n too small".into(),
    };
    let missed = line.missed().unwrap_or(0.0);
    let percent = 100.0 * missed;
    Some(SurfacePoint {
        x: rate,
        y: values,
        z: line.figure.map(|(value, _)| value).filter(|value| value.is_finite()),
        flag: if missed > MANY_MISSED { format!("{percent:.0} % missed") } else { String::new() },
        text: format!(
            "{}, {}: {shown}, {percent:.2} % of the steps missed",
            per_second(rate),
            word(Against::Values, values)
        ),
    })
}

/// The figures of a graph, each published one beside ours.
pub fn data(graph: &Graph, lines: &[Line<'_>]) -> Data {
    let rows = lines.iter().flat_map(|line| {
        let known = |axis: Against| line.run.case.on_axis(axis);
        let (rate, values) = (known(Against::Rate), known(Against::Values));
        let is_rate = RateMetric::from_name(line.metric).is_some();
        let figure = match () {
            _ if is_rate => "rate".into(),
            _ if graph.above => "above_threshold".into(),
            _ if !graph.over.is_empty() => format!("{}_ratio", quantile_name(graph.quantile)),
            _ if !graph.less.is_empty() => {
                format!("{}_difference", quantile_name(graph.quantile))
            }
            _ => quantile_name(graph.quantile),
        };
        let [low, high] = bounds(line.figure.and_then(|(_, bounds)| bounds));
        let (run, size, clients) = (line.run.index, line.run.case.size.0, known(Against::Clients));
        let value = line.figure.map(|(value, _)| Value(value));
        let row = move |published: Option<f64>, source: &str| {
            fields! {
                graph.title, line.series, run, size, rate, values, clients, line.metric, figure,
                value, low, high, published, source
            }
        };
        let own = row(None, "");
        let beside = line.beside.iter();
        let beside = beside.map(move |one| row(Some(one.figure.value), &one.reference.source));
        std::iter::once(own).chain(beside)
    });
    Data::new(
        "graph series run size_bytes offered_per_s values clients metric figure value low \
         high published source",
        rows,
    )
}
