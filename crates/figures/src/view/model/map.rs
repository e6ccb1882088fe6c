//! Figures over two dimensions: a matrix of hosts, a surface over two axes.

use super::{Axis, Show, extent};
use serde::Serialize;
use std::collections::BTreeMap;
use wiregauge_stats::{Interval, Value};

/// A figure of each pair of two lists of names, shaded by how bad it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    pub title: String,
    /// The unit of the shown values, and what a value of the record is multiplied with.
    pub unit: String,
    pub scale: f64,
    pub more_is_better: bool,
    /// What the rows and the columns are.
    pub axes: String,
    pub names: Vec<String>,
    /// By row, then by column.
    pub cells: BTreeMap<(usize, usize), HeatCell>,
    /// Whether the terminal shows it, too.
    pub show: Show,
}

/// A figure with its interval, and its run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatCell {
    pub value: Value,
    /// 95 %; `None`: it has none, as that of a single round.
    pub interval: Option<Interval>,
    pub run: u32,
}

impl HeatMap {
    pub fn cell(&self, row: usize, column: usize) -> Option<&HeatCell> {
        self.cells.get(&(row, column))
    }

    /// Whether any of its figures has an interval.
    pub fn has_intervals(&self) -> bool {
        self.cells.values().any(|cell| cell.interval.is_some())
    }

    /// The least and the most of its finite values.
    pub fn range(&self) -> Option<(f64, f64)> {
        extent(self.cells.values().map(|cell| cell.value.0))
    }

    /// How bad a value is among the others: 0 the best, 1 the worst.
    pub fn heat(&self, value: f64) -> f64 {
        let Some((low, high)) = self.range() else { return 0.0 };
        let place = if high > low { (value - low) / (high - low) } else { 0.0 };
        let heat = if self.more_is_better { 1.0 - place } else { place };
        if heat.is_nan() { 1.0 } else { heat.clamp(0.0, 1.0) }
    }
}

/// A figure over two axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Surface {
    /// Unique within a page; the file that its button saves has this name.
    pub id: String,
    pub title: String,
    pub note: String,
    pub x: Axis,
    pub y: Axis,
    pub z: Axis,
    pub points: Vec<SurfacePoint>,
    /// Which of the section's data is behind it.
    pub data: usize,
}

/// One point of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SurfacePoint {
    pub x: f64,
    pub y: f64,
    /// `None`: not measured, or too few samples.
    pub z: Option<f64>,
    /// What is wrong with it, in two words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub flag: String,
    /// What is read out there.
    pub text: String,
}
