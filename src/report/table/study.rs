//! The graphs of a study as tables: ours, what was published, and their ratio.

use super::number::{self, TOO_SMALL};
use super::{Cell, Grid};
use crate::plan::study::{Axis, Graph, GraphKind};
use crate::record::schema::Record;
use crate::report::study::{Line, Scale, columns, head, lines, shown};

/// A table for each graph; `None` where the record is of no study.
pub fn tables(record: &Record) -> Option<String> {
    let study = record.plan.study.as_ref()?;
    let mut text = format!("study: {}\n", study.title);
    if let Some(source) = &study.source {
        text.push_str(&format!("reproduces: {source}\n"));
    }
    if study.quick {
        text.push_str("quick: shorter than the study is written, to see that all of it works\n");
    }
    for graph in &study.graphs {
        text.push_str(&format!("\ngraph: {}\n", graph.title));
        text.push_str(&table(graph, &lines(record, study, graph)));
        for note in &graph.notes {
            text.push_str(&format!("reference: {note}\n"));
        }
    }
    Some(text)
}

fn table(graph: &Graph, lines: &[Line<'_>]) -> String {
    let scale = Scale::of(&graph.metric);
    let compared = lines.iter().any(|line| !line.beside.is_empty());
    let mut grid = Grid::new(heads(graph, scale, compared));
    for line in lines {
        let own = || {
            let figure = match line.figure {
                Some((value, interval)) => number::with_error(value, interval, scale.factor()),
                None if line.is_measured() => [TOO_SMALL.into(), Cell::none()],
                None => [Cell::none(), Cell::none()],
            };
            own_cells(graph, line).chain(figure).chain(missed(graph, line))
        };
        if line.beside.is_empty() {
            grid.row(own());
        }
        for beside in &line.beside {
            let value = Cell::Number(number::short(beside.value * scale.factor()));
            let ratio = beside.ratio.map_or_else(Cell::none, |r| Cell::Number(number::short(r)));
            grid.row(own().chain([value, ratio, beside.reference.name.as_str().into()]));
        }
    }
    grid.to_string()
}

fn heads(graph: &Graph, scale: Scale, compared: bool) -> Vec<String> {
    let mut heads = vec!["series".to_owned()];
    heads.extend((!graph.also.is_empty()).then(|| "figure".to_owned()));
    let axis = |axis: &Axis| {
        let (name, unit) = head(*axis);
        format!("{name} {unit}").trim_end().to_owned()
    };
    heads.extend(columns(graph.kind).iter().map(axis));
    heads.extend([format!("{} {}", shown(graph), scale.unit()), "±".into()]);
    heads.extend((graph.kind == GraphKind::Surface).then(|| "missed %".to_owned()));
    if compared {
        let published = format!("published {}", scale.unit());
        heads.extend([published, "ratio".into(), "published in".into()]);
    }
    heads
}

/// The series, the metric where there are several, and where the figure stands.
fn own_cells(graph: &Graph, line: &Line<'_>) -> impl Iterator<Item = Cell> {
    let metric = (!graph.also.is_empty()).then(|| Cell::from(line.metric));
    let place = columns(graph.kind).iter().zip(&line.at).map(|(axis, at)| match axis {
        Axis::Rate | Axis::Answered => Cell::Number(number::short(at * number::THOUSANDS)),
        Axis::Size | Axis::Values | Axis::Clients => Cell::count(*at as u64),
    });
    let place: Vec<Cell> = place.collect();
    std::iter::once(Cell::from(line.series)).chain(metric).chain(place)
}

/// Of a surface the share of steps that were missed.
fn missed(graph: &Graph, line: &Line<'_>) -> Option<Cell> {
    let cell =
        || line.missed().map_or_else(Cell::none, |m| Cell::Number(format!("{:.2}", 100.0 * m)));
    (graph.kind == GraphKind::Surface).then(cell)
}
