//! The graphs of a study: ours, what was published, and their ratio, as plots and as tables.

mod lines;
mod plots;
mod surfaces;

use crate::model::{
    Cell, Note, OfRun, Rank, Section, Show, Table, TableField, extent, figure, number, prose, text,
};
use crate::number::{PERCENT, Room, THOUSANDS, compact, short};
use crate::scale::Scale;
use crate::warnings::mark;
use lines::{
    Beside, Line, MANY_MISSED, columns, is_of_one_size, lines, rates_differ, scale, shown,
};
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{Record, Run};
use wiregauge_plan::Study;
use wiregauge_plan::study::{Axis, Graph, GraphKind};

/// A figure that differs from a published one by at most this share is near it: machines of one
/// kind differ by as much.
const NEAR: f64 = 0.1;

/// A part for each graph; `None` where the record is of no study.
pub fn section(record: &Record) -> Option<Section> {
    let study = record.plan.study.as_ref()?;
    let mut section = Section::new("study", &study.title);
    section.notes.push(Note::new(format!("study: {}", study.title), Show::Terminal));
    section.notes.extend(study.source.iter().map(|source| format!("reproduces: {source}").into()));
    let quick = "quick: a shortened run, to check that everything works";
    section.notes.extend(study.quick.then(|| quick.into()));
    let graphs = study.graphs.iter().enumerate();
    section.parts = graphs.map(|(index, graph)| part(record, study, graph, index)).collect();
    mark(record, section.parts.iter_mut().flat_map(|part| &mut part.tables));
    Some(section)
}

/// What the study asks, and how far what it measured is from what was published; none where the
/// record is of no study, or nothing was published.
pub fn answer(record: &Record) -> Vec<String> {
    let Some(study) = &record.plan.study else { return Vec::new() };
    let graphs = || study.graphs.iter().map(|graph| lines(record, study, graph));
    let ratios: Vec<f64> = graphs()
        .flatten()
        .flat_map(|line| line.beside)
        .filter_map(|beside| beside.ratio.filter(|ratio| ratio.is_finite()))
        .collect();
    let Some((least, most)) = extent(ratios.iter().copied()) else { return Vec::new() };
    let near = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= NEAR).count();
    vec![format!(
        "{}: {near} of {} figures are within {} % of the published ones; ours are {} to {} times \
         them.",
        study.title.trim_end_matches(['.', '?']),
        ratios.len(),
        short(NEAR * PERCENT),
        compact(least, None, 1.0, Room::Enough).0,
        compact(most, None, 1.0, Room::Enough).0
    )]
}

fn part(record: &Record, study: &Study, graph: &Graph, index: usize) -> Section {
    let lines = lines(record, study, graph);
    let mut part = Section::new(format!("graph-{index}"), &graph.title);
    part.data = vec![surfaces::data(graph, &lines)];
    match graph.kind {
        GraphKind::Surface => part.surfaces = surfaces::surfaces(graph, &lines, index),
        _ => part.plots = vec![plots::plot(graph, &lines, index)],
    }
    let notes = |prefix: &'static str, show| {
        graph.notes.iter().map(move |note| Note::new(format!("{prefix}{note}"), show))
    };
    part.notes.push(Note::new(format!("graph: {}", graph.title), Show::Terminal));
    part.notes.extend(notes("", Show::Page));
    let figures =
        table(graph, &lines).map(|table| table.notes(notes("reference: ", Show::Terminal)));
    part.tables.extend(figures);
    part.tables.extend(sources(graph));
    part
}

/// One of ours beside one published figure, if there is any.
struct Row<'a> {
    line: &'a Line<'a>,
    beside: Option<&'a Beside<'a>>,
}

impl OfRun for Row<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.line.run)
    }

    fn is_complete(&self) -> bool {
        true
    }
}

fn table(graph: &Graph, lines: &[Line<'_>]) -> Option<Table> {
    let scale = scale(graph);
    let rows = lines.iter().flat_map(|line| {
        let alone = line.beside.is_empty().then_some(Row { line, beside: None });
        line.beside.iter().map(|beside| Row { line, beside: Some(beside) }).chain(alone)
    });
    let mut fields = vec![text("series", |row: &Row<'_>| row.line.name())];
    if !graph.also.is_empty() {
        fields.push(text("figure", |row: &Row<'_>| row.line.metric));
    }
    let axes = columns(graph.kind).iter().enumerate();
    let axes = axes.filter(|(_, axis)| **axis != Axis::Size || is_of_one_size(graph));
    fields.extend(axes.map(|(at, axis)| place(*axis, at)));
    // A sweep of rates against something else has rows of several.
    fields.extend(rates_differ(graph, lines).then(|| {
        let rate = |row: &Row<'_>| row.line.run.case.on_axis(Axis::Rate);
        number("offered", "k/s", move |row| Some(Cell::figure(rate(row)?, None, THOUSANDS)))
    }));
    let ours = move |row: &Row<'_>| match row.line.figure {
        Some((value, interval)) => {
            let quantile = (scale == Scale::Time).then_some(graph.quantile);
            let cell = Cell::figure(value, interval, scale.factor());
            cell.of(Some(row.line.run), row.line.metric, quantile)
        }
        None if row.line.is_measured() => Cell::TooSmall,
        None => Cell::None,
    };
    fields.push(figure(&shown(graph), scale.unit(), ours).key("ours"));
    if graph.kind == GraphKind::Surface {
        fields.push(number("missed %", "", |row: &Row<'_>| {
            let missed = row.line.missed();
            missed.map(|share| Cell::fixed(PERCENT * share, 2).bad_if(share > MANY_MISSED))
        }));
    }
    if lines.iter().any(|line| !line.beside.is_empty()) {
        let published = move |row: &Row<'_>| {
            row.beside.map(|beside| Cell::figure(beside.figure.value, None, scale.factor()))
        };
        let ratio = |row: &Row<'_>| Some(Cell::number(row.beside?.ratio?));
        let source =
            |row: &Row<'_>| row.beside.map(|beside| Cell::from(beside.reference.name.as_str()));
        fields.push(number("published", scale.unit(), published));
        fields.push(number("ratio", "", ratio));
        fields.push(text("published in", source).rank(Rank::More));
    }
    let table = Table::of(rows, fields)?;
    let caption = Note::new(format!("Figures: {}", graph.title), Show::Page);
    Some(Table { folded: true, ..table.caption(caption) })
}

/// The column of an axis.
fn place<'a>(axis: Axis, at: usize) -> TableField<'a, Row<'a>> {
    let value = move |row: &Row<'_>| row.line.at.get(at).copied().unwrap_or(f64::NAN);
    match axis {
        Axis::Size => {
            number("size", "B", move |row| Cell::Size(value(row) as u64)).rank(Rank::Label)
        }
        Axis::Values => number("values", "", move |row| Cell::Count(value(row) as u64)),
        Axis::Clients => number("clients", "", move |row| Cell::Count(value(row) as u64)),
        Axis::Connections => number("connections", "", move |row| Cell::Count(value(row) as u64)),
        Axis::Rate => {
            number("offered", "k/s", move |row| Cell::figure(value(row), None, THOUSANDS))
        }
        Axis::Answered => {
            number("answered", "k/s", move |row| Cell::figure(value(row), None, THOUSANDS))
        }
    }
}

/// A publication, with what was measured on and what must be known of its figures.
#[derive(PartialEq)]
struct Source<'a> {
    source: &'a str,
    system: &'a str,
    notes: String,
}

impl OfRun for Source<'_> {}

fn sources(graph: &Graph) -> Option<Table> {
    let rows = each_once(graph.references.iter().map(|reference| Source {
        source: &reference.source,
        system: &reference.system,
        notes: reference.notes.join(" "),
    }));
    let fields = [
        prose("source", |row: &Source<'_>| row.source),
        prose("measured on", |row: &Source<'_>| row.system),
        prose("notes", |row: &Source<'_>| row.notes.clone()),
    ];
    let table = Table::of(rows, fields)?.caption("Sources of the published figures");
    Some(Table { folded: true, show: Show::Page, ..table })
}
