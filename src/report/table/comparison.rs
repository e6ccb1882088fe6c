//! Differences of two runs.

use super::number::{TOO_SMALL, US, short, with_error};
use super::{Cell, Grid};
use crate::report::study::Scale;
use crate::stats::{Difference, RateMetric};

/// What a figure is of, which decides its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A time, kept in ns.
    Time,
    /// A rate, kept in the unit of its metric.
    Rate(RateMetric),
}

impl Quantity {
    fn unit(self) -> (&'static str, f64) {
        match self {
            Quantity::Time => ("us", US),
            Quantity::Rate(metric) => {
                let scale = Scale::of_rate(metric);
                (scale.unit(), scale.factor())
            }
        }
    }
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Which runs.
    pub runs: &'a str,
    /// Which figure.
    pub figure: &'a str,
    /// What it is of.
    pub quantity: Quantity,
    /// `None`: it cannot be told, since n is too small in one of the two.
    pub difference: Option<&'a Difference>,
}

/// The table.
pub fn table<'a>(lines: impl IntoIterator<Item = Line<'a>>) -> String {
    let mut grid =
        Grid::new(["run", "figure", "unit", "A", "B", "B - A", "±", "B - A %", "±", "differs"]);
    for Line { runs, figure, quantity, difference } in lines {
        let (unit, scale) = quantity.unit();
        let head = [runs.into(), figure.into(), unit.into()];
        let Some(found) = difference else {
            let nothing = [Cell::none(), Cell::none(), Cell::none(), Cell::none()];
            let ends = [Cell::none(), Cell::none(), TOO_SMALL.into()];
            grid.row(head.into_iter().chain(nothing).chain(ends));
            continue;
        };
        let values = [found.a, found.b].map(|value| Cell::Number(short(value.0 * scale)));
        let absolute = with_error(found.absolute.0, found.interval, scale);
        let relative = match found.relative {
            Some(relative) => with_error(relative.0, found.relative_interval, 100.0),
            None => [Cell::none(), Cell::none()],
        };
        let differs = match (found.interval, found.excludes_zero()) {
            (None, _) => "not known",
            (Some(_), true) => "yes",
            (Some(_), false) => "not shown",
        };
        let figures = values.into_iter().chain(absolute).chain(relative);
        grid.row(head.into_iter().chain(figures).chain([differs.into()]));
    }
    grid.to_string()
}
