//! A comparison as Markdown, for the summary of a CI job: the verdict, the limits, what differs.

use super::Comparison;
use crate::escape::escaped;

/// The rows of one table that are shown before the others are counted: a summary is read by a
/// person, and GitHub cuts one off at 1 MiB.
const MOST_ROWS: usize = 50;

/// The whole text.
pub fn text(all: &Comparison) -> String {
    let head = all.verdict_words().unwrap_or("comparison");
    let [a, b] = all.names.each_ref().map(String::as_str);
    let mut text = format!("## wiregauge: {head}\n\n");
    let answers = all.answers.iter().take(MOST_ROWS);
    let answers = answers.map(|one| format!("* {}: {}\n", cell(&one.runs), cell(&one.sentence)));
    text.extend(answers);
    text += &table(
        ["verdict", "limit", "run", "why"],
        all.limits.iter().map(|one| {
            let why = one.sentence.split_once(": ").map_or("", |(_, why)| why);
            [one.verdict().name(), &one.limit, &one.runs, why].map(cell)
        }),
    );
    text += &table(
        ["differs", "severity", a, b],
        all.conditions.iter().map(|one| [&one.what, one.severity.name(), &one.a, &one.b].map(cell)),
    );
    for warning in &all.warnings {
        text +=
            &format!("\n{}: {}; {}\n", warning.severity.name(), warning.sentence, warning.advice);
    }
    text + "\n"
}

fn table(head: [&str; 4], rows: impl ExactSizeIterator<Item = [String; 4]>) -> String {
    let count = rows.len();
    if count == 0 {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows.take(MOST_ROWS).map(|row| line(&row)).collect();
    let more = match count.saturating_sub(MOST_ROWS) {
        0 => String::new(),
        others => format!("\n{others} more\n"),
    };
    format!("\n{}|---|---|---|---|\n{rows}{more}", line(&head.map(str::to_owned)))
}

/// Text of a record as that of a cell: nothing in it is markup.
pub fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in escaped(text).chars() {
        match c {
            '\n' => cell.push(' '),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => cell.extend(['\\', c]),
            c => cell.push(c),
        }
    }
    cell
}
