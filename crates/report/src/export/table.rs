//! The tables that are exported: their columns, with the same names in every format.

use super::rows::Row;
use wiregauge_sample::Flags;

/// A column: its name, and what it has in a row.
pub(super) struct Column {
    pub name: &'static str,
    pub cell: Cell,
}

/// What a column has in a row.
pub(super) enum Cell {
    /// A text.
    Text(for<'a> fn(&Row<'a>) -> &'a str),
    /// A whole number; `None` is a missing value.
    Whole(for<'a> fn(&Row<'a>) -> Option<i64>),
    /// A number; NaN is a missing value.
    Number(for<'a> fn(&Row<'a>) -> f64),
    /// Yes or no.
    Flag(for<'a> fn(&Row<'a>) -> bool),
}

const fn text(name: &'static str, cell: for<'a> fn(&Row<'a>) -> &'a str) -> Column {
    Column { name, cell: Cell::Text(cell) }
}

const fn whole(name: &'static str, cell: for<'a> fn(&Row<'a>) -> Option<i64>) -> Column {
    Column { name, cell: Cell::Whole(cell) }
}

const fn number(name: &'static str, cell: for<'a> fn(&Row<'a>) -> f64) -> Column {
    Column { name, cell: Cell::Number(cell) }
}

/// What was measured, and on what.
const CASE: [Column; 8] = [
    whole("run", |row| Some(row.context.run.into())),
    text("case", |row| &row.context.case),
    text("pattern", |row| &row.context.pattern),
    text("transport", |row| row.context.transport),
    text("wait", |row| row.context.wait),
    whole("size_bytes", |row| Some(row.sample.size.into())),
    number("offered_per_s", |row| row.context.offered_per_s),
    whole("clients", |row| row.context.clients),
];

/// Which message it was.
const MESSAGE: [Column; 5] = [
    whole("round", |row| Some(row.round.into())),
    text("role", |row| row.role),
    whole("thread", |row| Some(row.sample.thread.into())),
    whole("sequence", |row| i64::try_from(row.sample.sequence).ok()),
    whole("messages", |row| i64::try_from(row.messages()).ok()),
];

/// The value that was observed.
const VALUE: [Column; 4] = [
    number("time_ns", |row| row.time_ns),
    text("metric", |row| row.metric),
    number("value", |row| row.value_ns),
    text("unit", |_| "ns"),
];

/// The stamps of the message, in the order of time.
const STAMPS: [Column; 5] = [
    number("intended_ns", |row| row.sample.intended_ns),
    number("submit_ns", |row| row.sample.submit_ns),
    number("send_ns", |row| row.sample.send_ns),
    number("receive_ns", |row| row.sample.receive_ns),
    number("complete_ns", |row| row.sample.complete_ns),
];

/// What became of it.
const FATE: [Column; 3] = [
    Column { name: "warmup", cell: Cell::Flag(|row| row.sample.flags.has(Flags::WARMUP)) },
    text("outcome", |row| row.outcome()),
    whole("flags", |row| Some(row.sample.flags.0.into())),
];

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// One measured value each.
    #[default]
    Values,
    /// One message each, with its stamps.
    Stamps,
}

impl Rows {
    /// The columns, in order.
    pub(super) fn columns(self) -> impl Iterator<Item = &'static Column> + Clone {
        let middle: &'static [Column] = match self {
            Rows::Values => &VALUE,
            Rows::Stamps => &STAMPS,
        };
        CASE.iter().chain(&MESSAGE).chain(middle).chain(&FATE)
    }

    /// Their names, in order.
    pub fn names(self) -> Vec<&'static str> {
        self.columns().map(|column| column.name).collect()
    }
}
