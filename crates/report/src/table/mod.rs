//! A report as text, from plain data.
//!
//! Takes records and the sections of [`super::model`]; gives lines: first the answer, then tables,
//! then what weakens them. [`Layout`] says whether they are for a terminal of some width or for a
//! program. For a program a table is an interface: the fields of a line are parted by two spaces or
//! more and hold single ones at most (`awk -F'  +'`), each line of a table has all its fields,
//! units stand in the head, and decimal points stand under each other. On a terminal no line is
//! wider than it, a figure and its error are one field, and the columns that decide come first.
//!
//! Must never: know where the text goes, or anything that is not in the run directory.

mod column_names;
pub mod comparison;
mod field;
mod fit;
pub mod grid;
pub mod history;
mod layout;
mod notes;
mod section;
mod text;
mod warnings;

pub use super::model::Cell;
pub use grid::Grid;
pub use layout::{Columns, Layout};
pub use notes::notes;
pub use text::{Text, Tone};
pub use warnings::warnings;

use super::model::{Section, Table};
use super::view::{self, PatternView};
use wiregauge_base::options::each_once;
use wiregauge_base::units::counted;
use wiregauge_figures::record::schema::{Noise, Record};

/// All of it: the answer, the results, and what weakens them.
pub fn report(record: &Record, patterns: &[&dyn PatternView], layout: &Layout) -> Text {
    let mut text = Text::default();
    if !record.complete {
        text.append(layout.sentence(&incomplete(record), Tone::Bad));
    }
    text.append(answer(record, patterns, layout));
    text.append(runs(record, patterns, layout));
    text.append(notes(record, layout));
    text
}

/// What stands before the answer of a record that is not complete.
fn incomplete(record: &Record) -> String {
    match (record.runs.iter().filter(|run| run.complete).count(), record.runs.len()) {
        (_, 0) => "INCOMPLETE: see the faults below".to_owned(),
        (done, all) if done == all => "INCOMPLETE: see the warnings below".to_owned(),
        (done, all) => format!("INCOMPLETE: {done} of {} came to an end", counted(all, "run")),
    }
}

/// The answer, a sentence a line.
fn answer(record: &Record, patterns: &[&dyn PatternView], layout: &Layout) -> Text {
    let mut text = Text::default();
    for sentence in view::answer(record, patterns) {
        text.append(layout.sentence(&sentence, Tone::Plain));
    }
    if !text.is_empty() {
        text.end_line();
    }
    text
}

/// The results of a record: those of its runs by the views of patterns, and each graph.
pub fn runs(record: &Record, patterns: &[&dyn PatternView], layout: &Layout) -> Text {
    joined(section::blocks(&sections_of(record, patterns), layout))
}

/// What is wrong with the columns that a layout names: no table of the record has one of them.
pub fn unknown_column(
    record: &Record,
    patterns: &[&dyn PatternView],
    layout: &Layout,
) -> Option<String> {
    let columns = section::columns(&sections_of(record, patterns));
    let typed = layout.unknown(&columns).filter(|_| !columns.is_empty())?;
    let names = columns.iter().flatten().map(|name| (column_names::distance(typed, name), name));
    let near = names.min().filter(|(distance, _)| *distance <= (typed.len() / 3).max(1));
    let near = near.map_or_else(String::new, |(_, name)| format!(" (did you mean '{name}'?)"));
    let heads = each_once(columns.iter().map(|names| names[0].as_str())).join(", ");
    Some(format!("--columns: no table has '{typed}'{near}: use all, or some of {heads}"))
}

fn sections_of(record: &Record, patterns: &[&dyn PatternView]) -> Vec<Section> {
    let mut sections: Vec<_> = view::pairs(record).into_iter().collect();
    sections.extend(view::impact(record));
    sections.extend(view::parts(record));
    // A line for each of many pairs would hide what they show together; the page has them.
    if record.plan.pairs.is_none() {
        sections.extend(view::results(record, patterns));
    }
    sections.extend(view::explanation(record));
    sections.extend(view::tail_causes(record));
    sections.extend(view::losses(record));
    sections.extend(view::study(record));
    sections.extend(view::clocks(record));
    sections.extend(view::together(record));
    sections
}

/// Gaps that spinning cores saw.
pub fn noise(all: &[Noise], layout: &Layout) -> Text {
    joined(
        view::noise_tables(all)
            .iter()
            .filter_map(|table| section::table(table, layout, "--columns all")),
    )
}

/// Sections alone.
pub fn sections(sections: &[Section], layout: &Layout) -> Text {
    joined(section::blocks(sections, layout))
}

/// A table alone.
pub fn table(table: &Table, layout: &Layout) -> Text {
    section::table(table, layout, "--columns all").unwrap_or_default()
}

/// Texts with an empty line between two.
fn joined(all: impl IntoIterator<Item = Text>) -> Text {
    let mut whole = Text::default();
    for text in all {
        if !whole.is_empty() {
            whole.end_line();
        }
        whole.append(text);
    }
    whole
}
