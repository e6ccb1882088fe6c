//! The graphs of a study as tables: ours, what was published, and their ratio.

use super::number::{self, TOO_SMALL};
use super::{Cell, Grid};
use crate::plan::study::Graph;
use crate::record::schema::Record;
use crate::report::study::{Line, Scale, lines, shown};

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
    let mut head: Vec<String> = ["series", "size B"].into_iter().map(String::from).collect();
    head.extend([format!("{} {}", shown(graph), scale.unit()), "±".into()]);
    if compared {
        let published = format!("published {}", scale.unit());
        head.extend([published, "ratio".into(), "published in".into()]);
    }
    let mut grid = Grid::new(head);
    for line in lines {
        let own = || {
            let figure = match line.figure {
                Some((value, interval)) => number::with_error(value, interval, scale.factor()),
                None if line.is_measured() => [TOO_SMALL.into(), Cell::none()],
                None => [Cell::none(), Cell::none()],
            };
            [Cell::from(line.series), Cell::count(line.run.case.size.0)].into_iter().chain(figure)
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
