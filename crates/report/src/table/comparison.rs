//! A comparison of two runs: the verdicts, the answer, the changes, and what else differs.

use super::section::{self, VERBOSE};
use super::{Columns, Layout, Text, Tone, warnings};
use crate::comparison::{Comparison, Condition, Line, change, largest};
use crate::model::{Cell, OfRun, Rank, Table, figure, prose, text};
use crate::number::PERCENT;
use crate::scale::Scale;
use crate::view::names::own_words;
use crate::warnings::grouped;
use std::collections::BTreeMap;
use wiregauge_base::options::each_once;
use wiregauge_base::units::counted;
use wiregauge_figures::view::compared::words;
use wiregauge_stats::Difference;

/// Sentences of runs, and conditions, that are printed before the others are counted.
const MOST_LINES: usize = 16;
/// Conditions that a terminal shows where not everything is to be told.
const FEW_LINES: usize = 6;

impl Line {
    /// Returns the figure of one side, 0 for A and 1 for B, with its interval.
    fn estimate(&self, side: usize) -> Option<Cell> {
        let found = self.estimates[side]?;
        Some(Cell::figure(found.value, found.interval, self.scale.factor()))
    }
}

impl OfRun for &Line {}
impl OfRun for &Condition {}

/// A row of what answers the question: the figures of one pair of runs.
struct CaseChanges<'a> {
    /// Both names of the sides.
    sides: &'a [String; 2],
    lines: Vec<&'a Line>,
}

impl OfRun for CaseChanges<'_> {}

/// Lays out a comparison: the verdicts, what changed, and a row for each case. All figures are
/// there where everything is to be told, or the text goes to a program.
pub fn whole(all: &Comparison, layout: &Layout) -> Text {
    let columns = if layout.verbose { Columns::All } else { Columns::Fitting };
    let layout = &Layout { columns, ..layout.clone() };
    let is_whole = tells_all(layout);
    let mut text = Text::default();
    for line in sentences(all, is_whole) {
        text.append(layout.sentence(&line, Tone::Plain));
    }
    let cases = cases(all);
    if !cases.is_empty() {
        text.end_line();
        text.append(table_of_cases(cases, layout));
    }
    if is_whole && !all.rows.is_empty() {
        text.end_line();
        text.append(differences(all, layout));
    }
    if !all.conditions.is_empty() {
        text.end_line();
        text.append(conditions(all, layout));
    }
    let found = all.warnings.iter().map(|warning| (warning, None));
    text.append(warnings(&grouped(found), layout));
    text
}

/// Returns the verdicts, and what changed in all cases together and in each; where not everything
/// is to be told, the rows of several cases are enough.
fn sentences(all: &Comparison, is_whole: bool) -> Vec<String> {
    let mut lines: Vec<String> = all.verdict_words().map(str::to_owned).into_iter().collect();
    for limit in &all.limits {
        lines.push(format!("limit {} ({}): {}", limit.limit, limit.runs, limit.sentence));
    }
    if !all.summary.is_empty() {
        lines.push(all.summary.clone());
    }
    if all.pairs > 1 && !is_whole {
        return lines;
    }
    for answer in all.answers.iter().take(MOST_LINES) {
        lines.push(format!("{}: {}", answer.runs, answer.sentence));
    }
    let others = all.answers.len().saturating_sub(MOST_LINES);
    if others > 0 {
        lines.push(format!("{others} more are in the table below"));
    }
    lines
}

/// Returns the cases, those that changed most first.
fn cases(all: &Comparison) -> Vec<CaseChanges<'_>> {
    let mut cases: Vec<CaseChanges<'_>> = Vec::new();
    for line in all.rows.iter().filter(|line| line.is_headline) {
        match cases.last_mut() {
            Some(case) if case.lines[0].pair == line.pair => case.lines.push(line),
            _ => cases.push(CaseChanges { sides: &all.names, lines: vec![line] }),
        }
    }
    cases.sort_by(|a, b| b.largest_change().total_cmp(&a.largest_change()));
    cases
}

impl CaseChanges<'_> {
    /// Returns the largest change that its figures show, as a share; 0: they show none.
    fn largest_change(&self) -> f64 {
        let shown = self.lines.iter().filter(|line| line.differs == Some(true));
        let relatives = shown.map(|line| line.difference.as_ref().and_then(|found| found.relative));
        relatives.fold(0.0, |most, one| most.max(one.map_or(f64::INFINITY, |one| one.0.abs())))
    }

    fn line(&self, figure: &str) -> Option<&Line> {
        self.lines.iter().copied().find(|line| line.figure == figure)
    }

    /// Returns a figure of one side, 0 for A and 1 for B, with its interval.
    fn value(&self, figure: &str, side: usize) -> Option<Cell> {
        self.line(figure)?.estimate(side)
    }
}

/// A row for each case, with two columns for each figure: what the judged run measured, and by how
/// much it changed. Where there is room, what the other one measured, too.
fn table_of_cases(cases: Vec<CaseChanges<'_>>, layout: &Layout) -> Text {
    let figures = each_once(cases.iter().flat_map(|case| {
        case.lines.iter().map(|line| (line.figure.as_str(), line.scale)).collect::<Vec<_>>()
    }));
    let figures: Vec<(String, Scale)> =
        figures.into_iter().map(|(figure, scale)| (figure.to_owned(), scale)).collect();
    let metrics = each_once(figures.iter().map(|(figure, _)| metric_of(figure)));
    let metric = if metrics.len() == 1 { metrics[0] } else { "" };
    let [a, b] = cases[0].sides;
    let labels: Vec<&str> = cases.iter().map(|case| case.lines[0].runs.as_str()).collect();
    let (shared, names) = short_names(&labels);
    let named: BTreeMap<usize, String> =
        cases.iter().map(|case| case.lines[0].pair).zip(names).collect();
    let mut fields =
        vec![text("case", |case: &CaseChanges<'_>| named.get(&case.lines[0].pair).cloned())];
    for (figure, scale) in &figures {
        // Of one metric alone, its quantile is enough.
        let short = figure.strip_prefix(metric).and_then(|rest| rest.strip_prefix('.'));
        let name = short.unwrap_or(figure);
        let unit = scale.unit();
        for (side, (own, rank)) in [(a, Rank::More), (b, Rank::Main)].into_iter().enumerate() {
            let head = format!("{name} {own}");
            let value =
                self::figure(&head, unit, move |case: &CaseChanges<'_>| case.value(figure, side));
            fields.push(value.rank(rank));
        }
        let change = text(&format!("{name} change %"), move |case: &CaseChanges<'_>| {
            case.line(figure)
                .map_or(Cell::None, |line| change(line.difference.as_ref(), line.missing))
        });
        fields.push(change.rank(Rank::Main));
    }
    let shows_none = cases.iter().flat_map(|case| &case.lines).any(|line| is_none_shown(line));
    let note = if shows_none {
        "change: of the geometric means of the rounds, with its 95 % interval; none (≤4): no \
         change shown, it is at most 4 %"
    } else {
        "change: of the geometric means of the rounds, with its 95 % interval"
    };
    let table = Table::of(cases, fields).unwrap_or_default().notes([note]);
    let mut text = Text::default();
    if !shared.is_empty() {
        text.append(layout.sentence(&format!("all: {shared}"), Tone::Head));
    }
    text.append(section::table(&table, layout, VERBOSE).unwrap_or_default());
    text
}

/// Returns the words that all labels have in common, which would take the room of a figure, and the
/// other words of each label; whole labels where these do not tell them apart.
fn short_names(labels: &[&str]) -> (String, Vec<String>) {
    let own: Option<Vec<String>> = own_words(labels).into_iter().collect();
    match own {
        None => (String::new(), labels.iter().map(|label| (*label).to_owned()).collect()),
        Some(own) => {
            let split: Vec<Vec<&str>> = labels.iter().map(|label| words(label)).collect();
            let mut shared = split.first().cloned().unwrap_or_default();
            shared.retain(|word| split.iter().all(|label| label.contains(word)));
            (shared.join(" "), own)
        }
    }
}

/// Returns the metric of a figure: `half_rtt` of `half_rtt.p50`.
fn metric_of(figure: &str) -> &str {
    figure.split_once('.').map_or(figure, |(metric, _)| metric)
}

fn is_none_shown(line: &Line) -> bool {
    let found = line.difference.as_ref();
    found.is_some_and(|found| !found.excludes_zero() && largest(found).is_some())
}

/// Lays out what differs beside the figures, the worst first.
fn conditions(comparison: &Comparison, layout: &Layout) -> Text {
    let [a, b] = &comparison.names;
    let most = if tells_all(layout) { MOST_LINES } else { FEW_LINES };
    let fields = [
        text("differs", |one: &&Condition| one.what.clone()),
        text("severity", |one: &&Condition| one.severity.name()),
        prose(a, |one: &&Condition| one.shown()[0].clone()).rank(Rank::Label),
        prose(b, |one: &&Condition| one.shown()[1].clone()).rank(Rank::Label),
    ];
    let table = Table::of(comparison.conditions.iter().take(most), fields).unwrap_or_default();
    let mut text = section::table(&table, layout, VERBOSE).unwrap_or_default();
    let others = comparison.conditions.len().saturating_sub(most);
    if others > 0 {
        let where_to = if tells_all(layout) { "--json lists all" } else { "--verbose, or --json" };
        let line = format!("{} in which they differ: {where_to}", counted(others, "more setting"));
        text.append(layout.sentence(&line, Tone::Plain));
    }
    text
}

/// Returns true where every figure is to be told, or the text goes to a program.
fn tells_all(layout: &Layout) -> bool {
    layout.verbose || layout.width.is_none()
}

/// Lays out all figures, but for those that say again what another one says.
fn differences(all: &Comparison, layout: &Layout) -> Text {
    let [a, b] = &all.names;
    let fields = [
        text("run", |line: &&Line| line.runs.as_str()),
        text("figure", |line: &&Line| line.figure.as_str()),
        text("unit", |line: &&Line| line.scale.unit()),
        figure(a, "", |line: &&Line| line.estimate(0)),
        figure(b, "", |line: &&Line| line.estimate(1)),
        figure("change", "", |line: &&Line| {
            cell(line, |found, scale| Cell::figure(found.absolute.0, found.interval, scale))
        }),
        figure("change %", "", |line: &&Line| {
            let relative = |found: &Difference| {
                Some(Cell::figure(found.relative?.0, found.relative_interval, PERCENT))
            };
            line.difference.as_ref().and_then(relative)
        }),
        text("differs", |line: &&Line| differs(line)),
    ];
    let lines = all.rows.iter().filter(|line| !line.is_repeated);
    let table = Table::of(lines, fields).unwrap_or_default();
    section::table(&table, layout, VERBOSE).unwrap_or_default()
}

/// The difference and its interval; empty where only one of the two was measured.
fn cell(line: &Line, of: impl Fn(&Difference, f64) -> Cell) -> Cell {
    line.difference.as_ref().map_or(Cell::None, |found| of(found, line.scale.factor()))
}

fn differs(line: &Line) -> Cell {
    match &line.difference {
        Some(found) if found.excludes_zero() => "yes".into(),
        Some(Difference { interval: Some(_), .. }) => "no evidence".into(),
        Some(_) => "not known".into(),
        None => change(None, line.missing),
    }
}
