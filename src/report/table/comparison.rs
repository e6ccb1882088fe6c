//! Differences of two runs.

use super::section;
use crate::report::model::{Cell, OfRun, Table, figure, number, text};
use crate::report::number::PERCENT;
use crate::report::scale::Scale;
use crate::stats::Difference;

/// One line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Which runs.
    pub runs: &'a str,
    /// Which figure.
    pub figure: &'a str,
    /// What it is in.
    pub scale: Scale,
    /// `None`: n is too small in one of the two.
    pub difference: Option<&'a Difference>,
}

impl OfRun for Line<'_> {}

impl Line<'_> {
    /// What is of the difference; `None` where n is too small.
    fn cell(&self, of: impl Fn(&Difference, f64) -> Cell) -> Cell {
        self.difference.map_or(Cell::None, |found| of(found, self.scale.factor()))
    }

    fn differs(&self) -> Cell {
        let Some(found) = self.difference else { return Cell::TooSmall };
        match (found.interval, found.excludes_zero()) {
            (None, _) => "not known",
            (Some(_), true) => "yes",
            (Some(_), false) => "not shown",
        }
        .into()
    }
}

/// The table.
pub fn table<'a>(lines: impl IntoIterator<Item = Line<'a>>) -> String {
    let plain = |value: f64, scale| Cell::figure(value, None, scale);
    let fields = [
        text("run", |line: &Line<'_>| line.runs),
        text("figure", |line: &Line<'_>| line.figure),
        text("unit", |line: &Line<'_>| line.scale.unit()),
        number("A", "", move |line: &Line<'_>| line.cell(|found, scale| plain(found.a.0, scale))),
        number("B", "", move |line: &Line<'_>| line.cell(|found, scale| plain(found.b.0, scale))),
        figure("B - A", "", |line: &Line<'_>| {
            line.cell(|found, scale| Cell::figure(found.absolute.0, found.interval, scale))
        }),
        figure("B - A %", "", |line: &Line<'_>| {
            line.cell(|found, _| match found.relative {
                Some(relative) => Cell::figure(relative.0, found.relative_interval, PERCENT),
                None => Cell::None,
            })
        }),
        text("differs", Line::differs),
    ];
    let table = Table::of(lines, fields).unwrap_or_default();
    section::table(&table).unwrap_or_default()
}
