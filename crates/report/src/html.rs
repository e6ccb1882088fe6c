//! The report as one HTML file: no network, no library to install, readable without scripts.
//!
//! Takes a record, the views of its patterns and its samples; gives the file's text. The templates
//! in `web/templates` are filled here, the plots are drawn by `web/` from the data of
//! [`super::model`] and from the curves of [`super::curves`]. A record is foreign input: every text
//! of it passes `super::escape` or `script_json`.

mod encode;
mod messages;
mod pictures;
mod several;

pub use pictures::pictures;
pub use several::{pictures_of_several, several};

use super::curves::{self, Reduced};
use super::model::{Cell, Column, Figure, HeatMap, Note, Row, Section, Table};
use super::number;
use super::svg::Picture;
use super::view::{self, PatternView};
use super::warnings::{self, Group};
use askama::Template;
use serde_json::{Value, json};
use std::fmt;
use wiregauge_base::units::counted;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{ClockOffset, PlanRecord, Record, RecordedWarning};
use wiregauge_figures::record::schema::{Round, RoundEnd, Run};
use wiregauge_sample::RoundSamples;

/// Most names of which the cells of a matrix show their numbers, and not their titles alone.
const MOST_NUMBERS: usize = 24;
/// The same of their intervals, which are twice as wide.
const MOST_INTERVALS: usize = 12;
/// Sentences above the drawing, which shall be on the first screen; the sections have the others.
const ANSWERS: usize = 2;
/// What is shown of a field of the environment that could not be read.
const UNKNOWN: &str = "unknown";
/// So many lines of the environment are shown at once; the others unfold.
const ENVIRONMENT_ROWS: usize = 48;

/// What the templates are filled with.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    record: &'a Record,
    reduced: &'a Reduced,
    warnings: Vec<Group<'a>>,
    pairs: Option<Section>,
    results: &'a [Section],
    /// What was found, in a sentence or two.
    answer: Vec<String>,
    /// The drawing on top.
    lead: Option<Section>,
    /// Of an explanation: where the time goes, which is what was asked.
    why: Option<Section>,
    /// The sections below it: their identifiers and titles.
    links: Vec<(String, String)>,
    middle: &'a [Section],
    /// The slowest messages of an explanation.
    messages: Vec<messages::Message>,
    overall: &'a [Section],
    runs: Option<Section>,
    /// Names and values: those that are shown at once, and the others.
    environment: Vec<&'a [(String, String)]>,
    /// As it can be pasted.
    command: String,
    /// As JSON.
    plan: String,
    /// The identifiers of what the scripts read, each with its JSON.
    data: Vec<(&'static str, String)>,
    /// What the buttons for SVG save.
    pictures: Vec<Picture>,
}

/// The sections of a page.
struct Sections {
    why: Option<Section>,
    results: Vec<Section>,
    middle: Vec<Section>,
    /// The drawing on top.
    lead: Option<Section>,
    pairs: Option<Section>,
    overall: Vec<Section>,
}

impl Sections {
    fn new(record: &Record, patterns: &[&dyn PatternView]) -> Sections {
        let results = view::results(record, patterns);
        let asked = [view::study(record), view::clocks(record), view::together(record)];
        let beside = view::impact(record).into_iter().chain(view::parts(record));
        let asked = beside.chain(asked.into_iter().flatten());
        let asked = view::tail_causes(record).into_iter().chain(view::losses(record)).chain(asked);
        let own = asked.chain(results.iter().cloned()).chain(view::sweeps(record));
        let mut middle: Vec<Section> = own.collect();
        let lead = match record.plan.pairs {
            Some(_) => None, // Their matrix leads.
            None => view::lead(record, &mut middle),
        };
        let overall = [view::rounds(record), view::noise(record)];
        let (overall, pairs) = (overall.into_iter().flatten().collect(), view::pairs(record));
        Sections { why: view::explanation(record), results, middle, lead, pairs, overall }
    }
}

/// The whole page. An error among the rounds ends their reading; the page shows it as a fault,
/// and all that came before it.
pub fn render<E: fmt::Display>(
    record: &Record,
    patterns: &[&dyn PatternView],
    rounds: impl IntoIterator<Item = Result<RoundSamples, E>>,
) -> String {
    let reduced = curves::reduce(record, rounds);
    let Sections { why, results, middle, lead, pairs, overall } = Sections::new(record, patterns);
    let drawn = [lead.as_slice(), why.as_slice(), pairs.as_slice(), &middle, &overall].concat();
    let words: Vec<String> = record.command.iter().map(|word| shell_word(word)).collect();
    let disagreements = disagreements(record, &reduced);
    let environment = environment(record);
    let known = environment.iter().take_while(|(_, value)| value != UNKNOWN).count();
    let (first, others) = environment.split_at(known.min(ENVIRONMENT_ROWS));
    let page = Page {
        record,
        reduced: &reduced,
        warnings: warnings::of_record(record, &disagreements),
        answer: view::answer(record, patterns).into_iter().take(ANSWERS).collect(),
        pairs,
        results: &results,
        middle: &middle,
        messages: messages::messages(record),
        overall: &overall,
        runs: view::runs(record).filter(|_| view::is_of_messages(record)),
        environment: [first, others].into_iter().filter(|rows| !rows.is_empty()).collect(),
        command: words.join(" "),
        plan: serde_json::to_string_pretty(&record.plan).unwrap_or_default(),
        data: data(record, &drawn, &reduced),
        pictures: pictures::of(record, &drawn, &reduced),
        links: links(record, &reduced, [why.as_slice(), &middle, &overall]),
        lead,
        why,
    };
    // A template fails only where what it is written to does, and a text does not.
    page.render().unwrap_or_default()
}

/// A table. A macro of a template is compiled again at each of its calls, and a page has many.
#[derive(Template)]
#[template(path = "table.html")]
struct TableText<'a> {
    table: &'a Table,
}

/// Returns a table as a part of a page.
fn table(table: &Table) -> String {
    TableText { table }.render().unwrap_or_default()
}

/// A matrix, for the same reason.
#[derive(Template)]
#[template(path = "matrix.html")]
struct MatrixText<'a> {
    map: &'a HeatMap,
}

/// Returns a matrix as a part of a page.
fn matrix(map: &HeatMap) -> String {
    MatrixText { map }.render().unwrap_or_default()
}

/// The tables that answer the question.
pub fn results(record: &Record, patterns: &[&dyn PatternView]) -> Vec<Table> {
    let Sections { why, results, middle, .. } = Sections::new(record, patterns);
    match results.iter().any(|section| !section.results.is_empty()) {
        true => results.into_iter().flat_map(|section| section.results).collect(),
        // Of clocks and of noise the tables are all there is.
        false => why.into_iter().chain(middle).flat_map(|section| section.tables).collect(),
    }
}

/// What a browser calls the page.
fn title(record: &Record) -> String {
    let study = record.plan.study.as_ref();
    let study = study.map_or_else(String::new, |study| format!(" {}", study.name));
    let whole = if record.complete { "" } else { " (incomplete)" };
    format!("wiregauge {}{study} on {}{whole}", record.plan.name, record.environment.host)
}

/// What the scripts read, as JSON by the identifiers of its elements.
fn data(record: &Record, sections: &[Section], reduced: &Reduced) -> Vec<(&'static str, String)> {
    let whole = serde_json::to_string(record).unwrap_or_else(|_| "null".to_owned());
    let plots = Some(plots(sections)).filter(|plots| plots != "[]");
    let all = [
        Some(("record", whole)),
        Some(("samples", encode::samples(reduced))),
        plots.map(|plots| ("plots", plots)),
    ];
    all.into_iter().flatten().map(|(id, json)| (id, script_json(&json))).collect()
}

/// What a reader may jump to, in the order of the page.
fn links(
    record: &Record,
    reduced: &Reduced,
    [why, middle, overall]: [&[Section]; 3],
) -> Vec<(String, String)> {
    let named = |all: &[Section]| -> Vec<(String, String)> {
        let shown = all.iter().filter(|section| !section.is_empty());
        shown.map(|section| (section.id.clone(), section.title.clone())).collect()
    };
    let fixed = |id: &str, title: &str| vec![(id.to_owned(), title.to_owned())];
    let drawn = |has: bool, id, title| if has { fixed(id, title) } else { Vec::new() };
    [
        named(why),
        drawn(view::is_of_messages(record), "results", "Results"),
        fixed("warnings", "Warnings"),
        named(middle),
        drawn(record.explanation.is_some(), "messages", "Slowest messages"),
        drawn(!reduced.curves.is_empty(), "distribution", "Distribution"),
        drawn(!reduced.densities.is_empty(), "density", "Latency over time"),
        named(overall),
        fixed("environment", "Environment"),
        fixed("plan", "Plan"),
        fixed("data", "Data"),
    ]
    .concat()
}

/// Everything in the environment, whatever it holds; what is not known comes last.
fn environment(record: &Record) -> Vec<(String, String)> {
    let value = serde_json::to_value(&record.environment).unwrap_or(Value::Null);
    let mut rows = Vec::new();
    flatten("", &value, &mut rows);
    let clock = &record.clock;
    rows.push(("clock fences".to_owned(), clock.fences.clone()));
    rows.push(("clock source".to_owned(), clock.reason.clone()));
    rows.push(("clock frequency".to_owned(), format!("{} Hz", clock.frequency_hz)));
    rows.sort_by_key(|(_, value)| value == UNKNOWN);
    rows
}

/// The rounds of each run that were completed, or the least and the most.
fn rounds(record: &Record) -> String {
    let went_well = |round: &&Round| !matches!(round.ended, RoundEnd::Fault(_));
    let rounds = || record.runs.iter().map(|run| run.rounds.iter().filter(went_well).count());
    from_to(rounds().min().unwrap_or(0), rounds().max().unwrap_or(0))
}

/// The rounds that each case was to have.
fn planned_rounds(record: &Record) -> String {
    let PlanRecord { rounds, cases, .. } = &*record.plan;
    let rounds = from_to(rounds.least as usize, rounds.most as usize);
    match cases.len() {
        1 => format!("{rounds} of one case"),
        cases => format!("{rounds} of each of {cases} cases"),
    }
}

fn from_to(least: usize, most: usize) -> String {
    let most_of_all = counted(most, "round");
    if least == most { most_of_all } else { format!("{least} to {most_of_all}") }
}

/// The clocks of two hosts that are the least known.
fn widest_clock(record: &Record) -> Option<&ClockOffset> {
    let clocks = record.runs.iter().filter_map(Run::widest_clock);
    clocks.max_by(|a, b| a.bound_ns.total_cmp(&b.bound_ns))
}

/// A column of the page with its position and what its cells have in common.
struct Place<'a> {
    column: &'a Column,
    at: usize,
    /// Characters of its longest fraction, the point included.
    fraction: usize,
    /// Whether its cells carry a unit of their own.
    has_sizes: bool,
}

impl Place<'_> {
    fn all(table: &Table) -> Vec<Place<'_>> {
        let shown = table.columns.iter().enumerate().filter(|(_, column)| column.show.on_page());
        let place = |(at, column)| {
            let cells = || table.rows.iter().filter_map(move |row| row.cells.get(at));
            let fraction = |cell: &Cell| match cell.without_mark() {
                Cell::Figure(figure) => number::at_point(&figure_text(figure)).1.len(),
                _ => 0,
            };
            let has_sizes = cells().any(|cell| matches!(cell, Cell::Size(_)));
            Place { column, at, fraction: cells().map(fraction).max().unwrap_or(0), has_sizes }
        };
        shown.map(place).collect()
    }

    fn cell<'r>(&self, row: &'r Row) -> &'r Cell {
        row.cells.get(self.at).unwrap_or(&Cell::None)
    }

    fn class(&self, cell: &Cell) -> String {
        let classes = [
            (self.column.is_number, "n"),
            (self.column.is_prose, "text"),
            (*cell == Cell::None, "none"),
            (matches!(cell, Cell::Bad(_)), "bad"),
        ];
        let own = classes.into_iter().filter_map(|(is_own, class)| is_own.then_some(class));
        own.collect::<Vec<_>>().join(" ")
    }
}

/// A figure in the unit of its column.
pub fn figure_text(figure: &Figure) -> String {
    number::on_page(figure.value.0 * figure.scale, figure.decimals)
}

/// Leaves of a JSON value with their path in words; a list of plain values is one leaf.
fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let below = |name: &str| {
        let name = name.replace('_', " ");
        if path.is_empty() { name } else { format!("{path} › {name}") }
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&below(k), v, out)),
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            for (i, v) in list.iter().enumerate() {
                flatten(&below(&i.to_string()), v, out);
            }
        }
        Value::Array(list) => {
            let text = list.iter().map(leaf).collect::<Vec<_>>().join(", ");
            out.push((path.to_owned(), if text.is_empty() { "none".to_owned() } else { text }));
        }
        leaf_value => out.push((path.to_owned(), leaf(leaf_value))),
    }
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => UNKNOWN.to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The plots of sections and of their parts, as JSON.
fn plots(sections: &[Section]) -> String {
    let all = sections.iter().flat_map(|section| std::iter::once(section).chain(&section.parts));
    let drawn = all.filter(|section| section.has_drawings()).map(|section| {
        let Section { id, plots, surfaces, data, .. } = section;
        json!({ "id": id, "plots": plots, "surfaces": surfaces, "data": data })
    });
    Value::Array(drawn.collect()).to_string()
}

/// Where the samples and the figures of the record differ: the page shows both, and a reader must
/// know that one of them is wrong.
fn disagreements(record: &Record, reduced: &Reduced) -> Vec<RecordedWarning> {
    let found = reduced.curves.iter().filter_map(|curve| {
        let run = record.runs.iter().find(|r| r.index == curve.run)?;
        let summary = run.summary(curve.metric)?;
        let left_out: u64 = run.rounds.iter().map(|r| r.samples_in_histogram_only).sum();
        let of = format!("{} {}", run.label, curve.metric.name());
        let (figures_ns, sample_ns) = (summary.max.0, curve.values.last().copied());
        if left_out > 0 {
            Some(Warning::CurveIncomplete { of, left_out, shown: curve.count })
        } else if curve.count != summary.count {
            let (figures, samples) = (summary.count, curve.count);
            Some(Warning::SampleCountDiffers { of, figures, samples })
        } else {
            let sample_ns = sample_ns.filter(|sample_ns| !same(*sample_ns, figures_ns))?;
            Some(Warning::MaximumDiffers { of, figures_ns, sample_ns })
        }
    });
    found.map(|warning| (&warning).into()).collect()
}

/// Equal but for the rounding of a difference of two stamps (1/64 ns after a day).
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 0.1
}

/// JSON that cannot end its script element. `<` occurs in JSON only within
/// strings, where the escape means the same.
fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::{HeatCell, HeatMap, Plot, Show, figure, number, text};
    use wiregauge_stats::Interval;

    #[derive(Template)]
    #[template(
        source = "{% import \"section.html\" as p %}{% call p::all(sections) %}{% endcall %}",
        ext = "html"
    )]
    struct Sections<'a> {
        sections: &'a [Section],
    }

    fn html(sections: &[Section]) -> String {
        Sections { sections }.render().unwrap()
    }

    #[test]
    fn json_cannot_end_its_script() -> Result<(), serde_json::Error> {
        let evil = "</script><script>alert(1)</script><!--";
        let json = script_json(&serde_json::to_string(evil)?);
        assert!(!json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&json)?, evil);
        Ok(())
    }

    struct Line(f64);

    impl crate::model::OfRun for Line {
        fn is_complete(&self) -> bool {
            self.0.is_finite()
        }
    }

    #[test]
    fn figures_keep_their_exact_values_and_align_on_the_point() {
        let interval = Interval {
            low: wiregauge_stats::Value(90.0),
            high: wiregauge_stats::Value(f64::INFINITY),
        };
        let fields = [
            text("<name>", |_: &Line| "<b>"),
            figure("p50", "us", move |row: &Line| Cell::figure(row.0, Some(interval), 1e-3)),
            number("lost", "", |_: &Line| Cell::lost(1000)),
            text("of rounds", |_: &Line| Cell::Range(1.1, f64::INFINITY)),
            number("n", "", |_: &Line| Cell::Count(1)).show(Show::Terminal),
        ];
        let mut section = Section::new("one", "One");
        section.tables.extend(Table::of([Line(100.0), Line(f64::INFINITY)], fields));
        let html = html(&[section]);
        assert!(html.contains("&lt;name&gt;") && html.contains("<th scope=\"row\">&lt;b&gt;</th>"));
        assert!(html.contains("<data value=\"100\">0<span class=\"f5\">.1000</span></data>"));
        assert!(html.contains("data-low=\"90\" data-high=\"inf\">0.0900 – ∞</span>"), "{html}");
        assert!(html.contains("<data value=\"inf\">∞<span class=\"f5\"></span></data>"), "{html}");
        assert!(html.contains("<td class=\"n bad\" data-k=\"lost\"><data value=\"1000\">"));
        assert_eq!(html.matches("incomplete").count(), 1);
        assert!(html.contains(">1.100..∞</td>"), "{html}");
        assert!(!html.contains("data-k=\"n\""));
    }

    #[test]
    fn a_matrix_is_darkest_where_it_is_worst() {
        let mut one = HeatMap { unit: "MB/s".into(), scale: 1e-6, ..HeatMap::default() };
        one.more_is_better = true;
        one.names = ["a", "<b>"].map(String::from).to_vec();
        let [low, high] = [3.9e9, 4.2e9].map(wiregauge_stats::Value);
        for (row, value, interval) in [(0, 1e9, None), (1, 4e9, Some(Interval { low, high }))] {
            let cell = HeatCell { value: wiregauge_stats::Value(value), interval, run: row as u32 };
            one.cells.insert((row, 1 - row), cell);
        }
        let of = |map: &HeatMap| html(&[Section { maps: vec![map.clone()], ..Section::default() }]);
        let small = of(&one);
        assert!(small.contains("--heat:1.000\" title=\"a to &lt;b&gt;: 1000 MB/s\""), "{small}");
        let title = "0.000\" title=\"&lt;b&gt; to a: 4000 MB/s; 95 % interval: 3900 – 4200\"";
        assert!(small.contains(title), "{small}");
        let below = "4000</data><span class=\"ci\" data-low=\"3900000000\" \
                     data-high=\"4200000000\">3900 – 4200</span></td>";
        assert!(small.contains(below) && small.matches("class=\"ci\"").count() == 1, "{small}");
        one.names.resize(MOST_INTERVALS + 1, String::new());
        let large = of(&one);
        assert!(large.contains(title) && !large.contains("class=\"ci\""), "{large}");
    }

    #[test]
    fn a_section_without_anything_is_nothing_and_its_parts_are_drawn_too() {
        assert_eq!(html(&[Section::new("empty", "Empty")]), "");
        let mut whole = Section::new("study", "A study");
        let mut part = Section::new("graph-0", "A graph");
        part.plots = vec![Plot { id: "study-0".into(), ..Plot::default() }];
        whole.parts = vec![part];
        assert!(html(std::slice::from_ref(&whole)).contains("<div data-plots=\"graph-0\"></div>"));
        let drawn: Value = serde_json::from_str(&plots(&[whole])).unwrap();
        assert_eq!(
            (drawn[0]["id"].as_str(), drawn.as_array().unwrap().len()),
            (Some("graph-0"), 1)
        );
        assert_eq!(drawn[0]["plots"][0]["id"], "study-0");
        assert_eq!(plots(&[Section::new("empty", "Empty")]), "[]");
    }
}
