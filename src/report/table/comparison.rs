//! Differences of two runs.

use super::section;
use crate::report::model::{Cell, OfRun, Table, figure, number, text};
use crate::report::number::PERCENT;
use crate::report::scale::Scale;
use crate::stats::Difference;
use serde::Serialize;

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Which runs.
    pub runs: String,
    /// Which figure.
    pub figure: String,
    /// What it is in.
    #[serde(skip)]
    pub scale: Scale,
    /// `None`: n is too small in one of the two.
    pub difference: Option<Difference>,
    /// Whether the interval of the difference excludes zero.
    pub differs: Option<bool>,
}

impl OfRun for &Line {}

impl Line {
    /// A difference of two runs, or of two groups of them.
    pub fn new(runs: &str, figure: String, scale: Scale, difference: Option<Difference>) -> Line {
        let differs = difference.as_ref().map(Difference::excludes_zero);
        Line { runs: runs.to_owned(), figure, scale, difference, differs }
    }

    /// What is of the difference; `None` where n is too small.
    fn cell(&self, of: impl Fn(&Difference, f64) -> Cell) -> Cell {
        self.difference.as_ref().map_or(Cell::None, |found| of(found, self.scale.factor()))
    }

    fn differs(&self) -> Cell {
        let Some(found) = &self.difference else { return Cell::TooSmall };
        match (found.interval, found.excludes_zero()) {
            (None, _) => "not known",
            (Some(_), true) => "yes",
            (Some(_), false) => "not shown",
        }
        .into()
    }
}

/// The table.
pub fn table<'a>(lines: &'a [Line]) -> String {
    let plain = |value: f64, scale| Cell::figure(value, None, scale);
    let fields = [
        text("run", |line: &&'a Line| line.runs.as_str()),
        text("figure", |line: &&'a Line| line.figure.as_str()),
        text("unit", |line: &&Line| line.scale.unit()),
        number("A", "", move |line: &&Line| line.cell(|found, scale| plain(found.a.0, scale))),
        number("B", "", move |line: &&Line| line.cell(|found, scale| plain(found.b.0, scale))),
        figure("B - A", "", |line: &&Line| {
            line.cell(|found, scale| Cell::figure(found.absolute.0, found.interval, scale))
        }),
        figure("B - A %", "", |line: &&Line| {
            let relative = |found: &Difference| {
                Some(Cell::figure(found.relative?.0, found.relative_interval, PERCENT))
            };
            line.difference.as_ref().and_then(relative)
        }),
        text("differs", |line: &&Line| line.differs()),
    ];
    let table = Table::of(lines, fields).unwrap_or_default();
    section::table(&table).unwrap_or_default()
}
