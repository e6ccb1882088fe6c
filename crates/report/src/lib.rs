//! Reports and exports: in the terminal, as HTML, and as CSV, JSON or Parquet.
//!
//! Takes a record and its samples, from the run directory alone; gives text and files. Must never
//! measure, or know anything that is not in the run directory.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod comparison;
mod escape;
pub mod export;
pub mod history;
pub mod html;
pub mod markup;
pub mod scale;
pub mod several;
pub mod svg;
pub mod table;
pub mod view;
mod viewer;
pub mod warnings;

pub use wiregauge_figures::view::{curves, model, number};
