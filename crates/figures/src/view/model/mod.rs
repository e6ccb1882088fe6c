//! What a report shows, as plain data: tables, plots, heat maps and surfaces.
//!
//! A view makes a [`Section`] of a record; the terminal, the page's tables and the page's scripts
//! each render it and know nothing of what is in it. Numbers are made here once: a figure keeps its
//! exact value, its interval and its scale, and each renderer rounds them by [`super::number`].
//!
//! Must never: read or write anything, or know a pattern or a transport by name.

#![allow(missing_docs)] // Most names say it.

mod map;
mod plot;
mod table;

use crate::record::schema::Run;

pub use map::{HeatCell, HeatMap, Surface, SurfacePoint};
pub use plot::fields;
pub use plot::{Axis, Curve, CurveKind, Data, Mark, Plot, Point, Series, Shape, Style, Unit};
pub use plot::{bounds, quantile_fields};
pub use table::{Cell, Column, Field as TableField, Figure, OfRun, Rank, Row, Source, Table};
pub use table::{POOLED, WITHIN, ends, figure, number, own, prose, text};

/// The least and the greatest of the finite values.
pub fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Each value once, rising.
pub fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Where something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    #[default]
    Everywhere,
    Terminal,
    Page,
}

impl Show {
    pub fn on_terminal(self) -> bool {
        self != Show::Page
    }

    pub fn on_page(self) -> bool {
        self != Show::Terminal
    }
}

/// A sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub show: Show,
}

impl Note {
    pub fn new(text: impl Into<String>, show: Show) -> Note {
        Note { text: text.into(), show }
    }

    pub fn is_on_page(&self) -> bool {
        self.show.on_page()
    }
}

impl<T: Into<String>> From<T> for Note {
    fn from(text: T) -> Note {
        Note::new(text, Show::Everywhere)
    }
}

/// What belongs together below one title.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Unique within a page; its plots are named after it.
    pub id: String,
    pub title: String,
    /// Tables that answer the question: a report begins with those of all sections.
    pub results: Vec<Table>,
    /// Above all that stands below the title.
    pub notes: Vec<Note>,
    pub plots: Vec<Plot>,
    pub surfaces: Vec<Surface>,
    pub tables: Vec<Table>,
    pub maps: Vec<HeatMap>,
    /// What the buttons below the plots save, by its position.
    pub data: Vec<Data>,
    pub parts: Vec<Section>,
    /// Runs whose distributions its tables show, which no other table repeats ...
    pub distributions: Vec<u32>,
    /// ... and those whose rates they show.
    pub rates: Vec<u32>,
}

impl Section {
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), ..Section::default() }
    }

    /// With the distributions and the rates of these runs.
    pub fn of_runs<'a>(mut self, runs: impl IntoIterator<Item = &'a Run>) -> Section {
        self.distributions = runs.into_iter().map(|run| run.index).collect();
        self.rates = self.distributions.clone();
        self
    }

    /// Adds a plot and what the button below it saves.
    pub fn draw(&mut self, plot: Plot, data: Data) {
        self.plots.push(Plot { data: self.data.len(), ..plot });
        self.data.push(data);
    }

    /// Whether there is nothing below its title.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
            && !self.has_drawings()
            && self.tables.is_empty()
            && self.maps.is_empty()
            && self.parts.is_empty()
    }

    pub fn has_drawings(&self) -> bool {
        !self.plots.is_empty() || !self.surfaces.is_empty()
    }

    /// `None` where it shows nothing.
    pub fn filled(self) -> Option<Section> {
        (!self.is_empty() || !self.results.is_empty()).then_some(self)
    }
}
