//! The section of a study: what it asks, a place for each graph, and its figures as a table.

use super::{escape, number};
use crate::plan::Study;
use crate::plan::study::{Axis, Graph, GraphKind};
use crate::record::schema::Record;
use crate::report::study::{Beside, Line, MANY_MISSED, Scale, columns, head, lines, shown};

/// The section; empty where the record is of no study.
pub fn section(record: &Record) -> String {
    let Some(study) = &record.plan.study else { return String::new() };
    let mut out = format!(
        "<section id=\"study\" aria-labelledby=\"h-study\">\n<h2 id=\"h-study\">{}</h2>\n",
        escape(&study.title)
    );
    if let Some(source) = &study.source {
        out.push_str(&format!("<p class=\"note\">Reproduces: {}.</p>\n", escape(source)));
    }
    if study.quick {
        out.push_str(
            "<p class=\"note\">A quick run: shorter than the study is written, to see that all \
             of it works.</p>\n",
        );
    }
    out.push_str("<div class=\"grid\">\n");
    for (index, graph) in study.graphs.iter().enumerate() {
        out.push_str(&place(record, study, graph, index));
    }
    out.push_str("</div>\n</section>\n");
    out
}

/// Where the viewer puts a graph, with its table and its sources below.
fn place(record: &Record, study: &Study, graph: &Graph, index: usize) -> String {
    let title = escape(&graph.title);
    let mut out = format!(
        "<div class=\"graph\" id=\"graph-{index}\">\n<noscript><h3>{title}</h3></noscript>\n\
         <details><summary>Figures: {title}</summary>\n{}</details>\n",
        table(graph, &lines(record, study, graph))
    );
    out.push_str(&sources(graph));
    for note in &graph.notes {
        out.push_str(&format!("<p class=\"note\">{}.</p>\n", escape(note)));
    }
    out.push_str("</div>\n");
    out
}

/// Each publication once, with what was measured on and what must be known of its figures.
fn sources(graph: &Graph) -> String {
    let mut items: Vec<String> = Vec::new();
    for reference in &graph.references {
        let mut text = format!(
            "{}<small>Measured on {}.",
            escape(&reference.source),
            escape(&reference.system)
        );
        for note in &reference.notes {
            text.push_str(&format!(" {}", escape(note)));
        }
        let item = format!("<li>{text}</small></li>");
        if !items.contains(&item) {
            items.push(item);
        }
    }
    match items.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>Sources of what was published</summary>\n<ul>{}</ul></details>\n",
            items.concat()
        ),
    }
}

fn table(graph: &Graph, lines: &[Line<'_>]) -> String {
    let unit = Scale::of(&graph.metric).unit();
    let compared = lines.iter().any(|line| !line.beside.is_empty());
    let mut head = "<th scope=\"col\">Series</th>".to_owned();
    head.push_str(if graph.also.is_empty() { "" } else { "<th scope=\"col\">Figure</th>" });
    head.extend(columns(graph.kind).iter().map(|axis| axis_head(*axis)));
    head.push_str(&format!(
        "<th scope=\"col\" class=\"n\">{}<small>{unit}</small></th>",
        escape(&shown(graph))
    ));
    if graph.kind == GraphKind::Surface {
        head.push_str("<th scope=\"col\" class=\"n\">missed<small>%</small></th>");
    }
    if compared {
        head.push_str(&format!(
            "<th scope=\"col\" class=\"n\">published<small>{unit}</small></th>\
             <th scope=\"col\" class=\"n\">ratio</th><th scope=\"col\">in</th>"
        ));
    }
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n",
        escape(&graph.title)
    );
    for line in lines {
        out.push_str(&rows(graph, line, compared));
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

/// A row for each published figure beside one of ours, or one without.
fn rows(graph: &Graph, line: &Line<'_>, compared: bool) -> String {
    let scale = Scale::of(&graph.metric).factor();
    let figure = match line.figure {
        Some((value, interval)) => format!(
            "<data value=\"{}\">{}</data>{}",
            number::plain(value),
            number::short(value * scale),
            number::interval(interval, scale)
        ),
        None if line.is_measured() => "<span class=\"small\">n too small</span>".to_owned(),
        None => "<span class=\"none\">–</span>".to_owned(),
    };
    let own = format!(
        "<tr data-run=\"{}\"><th scope=\"row\">{}</th>{}\
         <td class=\"n\" data-k=\"ours\">{figure}</td>{}",
        line.run.index,
        escape(line.series),
        own_cells(graph, line),
        missed(graph, line)
    );
    if line.beside.is_empty() {
        let none = if compared { "<td></td><td></td><td></td>" } else { "" };
        return format!("{own}{none}</tr>\n");
    }
    let row = |beside: &Beside<'_>| {
        format!(
            "{own}<td class=\"n\" data-k=\"published\"><data value=\"{}\">{}</data></td>\
             <td class=\"n\">{}</td><td>{}</td></tr>\n",
            number::plain(beside.value),
            number::short(beside.value * scale),
            beside.ratio.map_or_else(|| "–".to_owned(), number::short),
            escape(&beside.reference.name)
        )
    };
    line.beside.iter().map(row).collect()
}

fn axis_head(axis: Axis) -> String {
    let (name, unit) = head(axis);
    // A size carries its own unit.
    let unit = if axis == Axis::Size { "" } else { unit };
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    format!("<th scope=\"col\" class=\"n\">{first}{}<small>{unit}</small></th>", letters.as_str())
}

/// The metric where there are several, and where the figure stands.
fn own_cells(graph: &Graph, line: &Line<'_>) -> String {
    let metric = match graph.also.is_empty() {
        true => String::new(),
        false => format!("<td>{}</td>", escape(line.metric)),
    };
    let place = columns(graph.kind).iter().zip(&line.at).map(|(axis, at)| {
        let text = match axis {
            Axis::Size => number::bytes(*at as u64),
            Axis::Values | Axis::Clients => number::count(*at as u64),
            Axis::Rate | Axis::Answered => number::short(at * 1e-3),
        };
        format!("<td class=\"n\"><data value=\"{}\">{text}</data></td>", number::plain(*at))
    });
    metric + &place.collect::<String>()
}

/// Of a surface the share of steps that were missed, marked where it is large.
fn missed(graph: &Graph, line: &Line<'_>) -> String {
    if graph.kind != GraphKind::Surface {
        return String::new();
    }
    let Some(share) = line.missed() else {
        return "<td class=\"n none\">–</td>".to_owned();
    };
    let mark = if share > MANY_MISSED { " class=\"bad\"" } else { "" };
    format!("<td class=\"n\"><span{mark}>{:.2}</span></td>", 100.0 * share)
}
