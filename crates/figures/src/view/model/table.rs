//! Tables: columns with their units, rows of cells.
//!
//! A view lists its columns, each with the function that gives its cells, so that a head and its
//! cells cannot drift apart.

use super::{Note, Show};
use crate::record::schema::{
    CauseFigures, ClockKnown, InterruptCount, Metric, Noise, RateMetric, Record, Run,
};
use crate::view::number::{US, short};
use wiregauge_base::options::each_once;
use wiregauge_plan::study::Series;
use wiregauge_stats::{Basis, Interval, Summary, Value};

/// One table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Unique within a page, or empty.
    pub id: String,
    pub caption: Note,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Below it.
    pub notes: Vec<Note>,
    pub show: Show,
    /// The page shows its caption alone until a reader opens it.
    pub folded: bool,
}

/// The head of a column, and how its cells are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    pub head: String,
    pub unit: String,
    /// How a script finds its cells; by default the head.
    pub key: String,
    /// Aligned on the decimal point; words else.
    pub is_number: bool,
    /// Sentences, which may take several lines.
    pub is_prose: bool,
    /// The terminal has a column for the error, the page an interval below each figure.
    pub with_error: bool,
    pub show: Show,
    pub rank: Rank,
}

impl Column {
    fn of_words(head: &str) -> Column {
        Column { head: head.into(), key: head.into(), rank: Rank::Label, ..Column::default() }
    }

    fn of_numbers(head: &str, unit: &str) -> Column {
        let column = Column::of_words(head);
        Column { unit: unit.into(), is_number: true, rank: Rank::Main, ..column }
    }
}

/// Which columns a terminal shows where not all fit: first those of the lowest rank, and among
/// these the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Says which row it is; always shown.
    Label,
    /// What decides.
    #[default]
    Main,
    /// The rest.
    More,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// The number of its run.
    pub run: Option<u32>,
    /// Whether its run lacks something that it was to measure.
    pub incomplete: bool,
}

/// One field of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// There is nothing to show.
    #[default]
    None,
    Text(String),
    Count(u64),
    /// Bytes.
    Size(u64),
    Figure(Figure),
    /// From the least to the greatest, in the unit of its column.
    Range(f64, f64),
    /// Too few samples for the quantile.
    TooSmall,
    /// The record lacks the quantile.
    NotComputed,
    /// What a reader must not pass over.
    Bad(Box<Cell>),
}

/// Behind the interval of a figure of one round: it is within one process.
pub const WITHIN: &str = "°";
/// Behind a quantile of all rounds' messages together.
pub const POOLED: &str = "*";

/// A number with its error.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// As in the record.
    pub value: Value,
    pub interval: Option<Interval>,
    /// What turns it into the unit of its column.
    pub scale: f64,
    /// Decimals, where not four significant digits.
    pub decimals: Option<usize>,
    /// In a few words, on the page.
    pub note: String,
    /// What it is of; `None`: no warning is about it alone.
    pub source: Option<Source>,
    /// Whether a warning weakens it.
    pub is_weak: bool,
    /// The way from its rounds to it, where that is to be said.
    pub basis: Option<Basis>,
}

/// The run, the metric or rate, and the quantile of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub run: u32,
    pub name: String,
    /// 1 of a maximum; `None` of a rate.
    pub quantile: Option<f64>,
}

macro_rules! cell_from {
    ($($variant:ident: $content:ty),+) => {$(
        impl From<$content> for Cell {
            fn from(content: $content) -> Cell {
                Cell::$variant(content.into())
            }
        }
    )+};
}
cell_from!(Text: &str, Text: String, Count: u32, Figure: Figure);

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::None, Into::into)
    }
}

impl Figure {
    pub fn new(value: f64, interval: Option<Interval>, scale: f64) -> Figure {
        Figure {
            value: Value(value),
            interval,
            scale,
            decimals: None,
            note: String::new(),
            source: None,
            is_weak: false,
            basis: None,
        }
    }
}

impl Figure {
    /// Returns the sign of an interval that is not over rounds: [`WITHIN`] or [`POOLED`].
    pub fn sign(&self) -> &'static str {
        match self.basis {
            Some(Basis::OneRound) if self.interval.is_some() => WITHIN,
            Some(Basis::Pooled) => POOLED,
            _ => "",
        }
    }

    /// Returns what [`Figure::sign`] means.
    pub fn sign_meaning(&self) -> &'static str {
        match self.sign() {
            WITHIN => "Of one round: the interval is within one process",
            POOLED => "Of all rounds' messages together: single rounds have too few",
            _ => "",
        }
    }
}

impl Cell {
    /// A number in the unit of its column.
    pub fn number(value: f64) -> Cell {
        Figure::new(value, None, 1.0).into()
    }

    /// The same with this number of decimals.
    pub fn fixed(value: f64, decimals: usize) -> Cell {
        Figure { decimals: Some(decimals), ..Figure::new(value, None, 1.0) }.into()
    }

    /// A figure with its error.
    pub fn figure(value: f64, interval: Option<Interval>, scale: f64) -> Cell {
        Figure::new(value, interval, scale).into()
    }

    /// A quantile of a metric of a run in us.
    pub fn of_run(run: Option<&Run>, metric: Metric, p: f64) -> Cell {
        let cell = Cell::quantile(run.and_then(|run| run.summary(metric)), p);
        cell.of(run, metric.name(), Some(p))
    }

    /// The true maximum of a metric of a run in us.
    pub fn maximum_of_run(run: Option<&Run>, metric: Metric) -> Cell {
        let cell = Cell::maximum(run.and_then(|run| run.summary(metric)));
        cell.of(run, metric.name(), Some(1.0))
    }

    /// Says what a figure is of.
    pub fn of(mut self, run: Option<&Run>, name: &str, quantile: Option<f64>) -> Cell {
        if let (Cell::Figure(figure), Some(run)) = (&mut self, run) {
            figure.source = Some(Source { run: run.index, name: name.to_owned(), quantile });
        }
        self
    }

    /// A quantile in us.
    pub fn quantile(summary: Option<&Summary>, p: f64) -> Cell {
        let Some(summary) = summary else { return Cell::None };
        match summary.quantile(p) {
            Some(found) => match found.value {
                Some(Value(ns)) => {
                    let figure = Figure::new(ns, found.shown_interval(), US);
                    Figure { basis: Some(found.basis), ..figure }.into()
                }
                None => Cell::TooSmall,
            },
            None => Cell::NotComputed,
        }
    }

    /// The true maximum in us.
    pub fn maximum(summary: Option<&Summary>) -> Cell {
        let Some(summary) = summary else { return Cell::None };
        let mut figure = Figure::new(summary.max.0, None, US);
        if !summary.max.0.is_finite() {
            figure.note = format!("{} of those that arrived", short(summary.max_finite.0 * US));
        }
        figure.into()
    }

    /// The least and the greatest of the rounds' maxima in us.
    pub fn maxima(summary: Option<&Summary>) -> Cell {
        let Some(summary) = summary.filter(|summary| summary.rounds.len() > 1) else {
            return Cell::None;
        };
        let all = || summary.rounds.iter().map(|round| round.max.0);
        let least = all().fold(f64::INFINITY, f64::min);
        let greatest = all().fold(f64::NEG_INFINITY, f64::max);
        Cell::Range(least * US, greatest * US)
    }

    /// A rate and its error.
    pub fn rate(run: Option<&Run>, metric: RateMetric, scale: f64) -> Cell {
        let found = run.and_then(|run| run.rate(metric));
        match found.filter(|rate| !rate.value.is_nan()) {
            Some(rate) => {
                Cell::figure(rate.value, rate.interval, scale).of(run, metric.name(), None)
            }
            None => Cell::None,
        }
    }

    /// Messages that were lost.
    pub fn lost(count: u64) -> Cell {
        Cell::Count(count).bad_if(count > 0)
    }

    /// The figure in it.
    pub fn figure_mut(&mut self) -> Option<&mut Figure> {
        match self {
            Cell::Figure(figure) => Some(figure),
            Cell::Bad(cell) => cell.figure_mut(),
            _ => None,
        }
    }

    /// Itself, or what must not be passed over.
    pub fn without_mark(&self) -> &Cell {
        if let Cell::Bad(cell) = self { cell } else { self }
    }

    pub fn bad_if(self, is_bad: bool) -> Cell {
        if is_bad { Cell::Bad(Box::new(self)) } else { self }
    }
}

/// What a row of a table is made of: the run to which it belongs, if any.
pub trait OfRun {
    fn run(&self) -> Option<&Run> {
        None
    }

    /// Whether all was measured that it is made of.
    fn is_complete(&self) -> bool {
        self.run().is_none_or(|run| run.complete)
    }
}

/// A row of several runs side by side.
impl<const N: usize> OfRun for [Option<&Run>; N] {
    fn run(&self) -> Option<&Run> {
        self.iter().flatten().copied().next()
    }

    fn is_complete(&self) -> bool {
        self.iter().flatten().all(|run| run.complete)
    }
}

impl OfRun for &Run {
    fn run(&self) -> Option<&Run> {
        Some(self)
    }
}

impl OfRun for &Noise {}
impl OfRun for &ClockKnown {}
impl OfRun for &CauseFigures {}
impl OfRun for &InterruptCount {}

/// A run, and what else a row shows of it.
impl<T> OfRun for (&Run, T) {
    fn run(&self) -> Option<&Run> {
        Some(self.0)
    }
}

/// A column with what gives its cells.
pub struct Field<'a, T> {
    column: Column,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
}

/// A column of words.
pub fn text<'a, T, C: Into<Cell>>(head: &str, cell: impl Fn(&T) -> C + 'a) -> Field<'a, T> {
    let column = Column::of_words(head);
    Field { column, cell: Box::new(move |row| cell(row).into()) }
}

/// A column of sentences.
pub fn prose<'a, T, C: Into<Cell>>(head: &str, cell: impl Fn(&T) -> C + 'a) -> Field<'a, T> {
    let mut field = text(head, cell);
    field.column.is_prose = true;
    field
}

/// A column of numbers without an error.
pub fn number<'a, T, C: Into<Cell>>(
    head: &str,
    unit: &str,
    cell: impl Fn(&T) -> C + 'a,
) -> Field<'a, T> {
    let column = Column::of_numbers(head, unit);
    Field { column, cell: Box::new(move |row| cell(row).into()) }
}

/// A column of figures with their errors.
pub fn figure<'a, T, C: Into<Cell>>(
    head: &str,
    unit: &str,
    cell: impl Fn(&T) -> C + 'a,
) -> Field<'a, T> {
    let mut field = number(head, unit, cell);
    field.column.with_error = true;
    field
}

impl<T> Field<'_, T> {
    /// The name by which scripts find its cells.
    pub fn key(mut self, key: &str) -> Self {
        self.column.key = key.into();
        self
    }

    pub fn show(mut self, show: Show) -> Self {
        self.column.show = show;
        self
    }

    /// How early a terminal shows it.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.column.rank = rank;
        self
    }
}

/// The columns that only some tables have: the series of a study, and the numbers of threads and of
/// connections where a run has several.
pub fn own<'a, T: OfRun>(record: &'a Record) -> Vec<Field<'a, T>> {
    let mut own = Vec::new();
    if let Some(study) = &record.plan.study {
        own.push(text("series", move |row: &T| {
            study.series_of(row.run()?.index).map(|series| series.name.as_str())
        }));
    }
    if record.plan.pairs.is_none() && has_pairs(record) {
        own.push(text("pair", |row: &T| {
            let of = row.run().filter(|run| !run.case.topology.has_nodes());
            of.map(|run| record.plan.hosts_of(&run.case))
        }));
    }
    if record.plan.rails.is_some() {
        own.push(text("rail", |row: &T| row.run().and_then(|run| record.plan.rail(&run.case))));
    }
    let has_threads = |run: &Run| run.case.threads() > 1 && !run.case.topology.has_nodes();
    if record.runs.iter().any(has_threads) {
        own.push(number("threads", "", |row: &T| {
            row.run().map(|run| Cell::Count(run.case.threads().into()))
        }));
    }
    if record.runs.iter().any(|run| run.case.topology.connections_each() > 1) {
        own.push(number("connections", "", |row: &T| {
            row.run().map(|run| Cell::Count(run.case.topology.connections_each().into()))
        }));
    }
    own
}

/// Whether a series of a study has runs between several pairs of hosts: parts of a topology.
fn has_pairs(record: &Record) -> bool {
    let Some(study) = &record.plan.study else { return false };
    let several = |series: &Series| {
        let own = record.runs.iter().filter(|run| series.cases.contains(&run.index));
        let pairs = own.filter(|run| !run.case.topology.has_nodes());
        each_once(pairs.map(|run| run.case.topology.hosts())).len() > 1
    };
    study.series.iter().any(several)
}

/// The transport and how the ends wait.
pub fn ends<'a, T: OfRun + 'a>() -> [Field<'a, T>; 2] {
    [
        text("transport", |row: &T| row.run().map(|run| run.case.transport.name())),
        text("wait", |row: &T| row.run().map(|run| run.case.wait.name())),
    ]
}

impl Table {
    /// A row for each of `rows`; `None` without rows.
    pub fn of<'a, T: OfRun>(
        rows: impl IntoIterator<Item = T>,
        fields: impl IntoIterator<Item = Field<'a, T>>,
    ) -> Option<Table> {
        let fields: Vec<Field<'a, T>> = fields.into_iter().collect();
        let row = |row: T| Row {
            cells: fields.iter().map(|field| (field.cell)(&row)).collect(),
            run: row.run().map(|run| run.index),
            incomplete: !row.is_complete(),
        };
        let rows: Vec<Row> = rows.into_iter().map(row).collect();
        let columns = fields.into_iter().map(|field| field.column).collect();
        (!rows.is_empty()).then(|| Table { columns, rows, ..Table::default() })
    }

    /// Empty where the page shows none.
    pub fn page_caption(&self) -> &str {
        if self.caption.is_on_page() { &self.caption.text } else { "" }
    }

    pub fn caption(mut self, caption: impl Into<Note>) -> Table {
        self.caption = caption.into();
        self
    }

    pub fn notes<N: Into<Note>>(mut self, notes: impl IntoIterator<Item = N>) -> Table {
        self.notes.extend(notes.into_iter().map(Into::into));
        self
    }

    pub fn show(mut self, show: Show) -> Table {
        self.show = show;
        self
    }
}
