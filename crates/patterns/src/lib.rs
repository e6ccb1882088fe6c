//! The patterns: what is measured. Read this first.
//!
//! A pattern is a folder: its options as data, its specification (limits, what it needs of a
//! transport), its measured loops, how its samples become figures, its tables and plots. The stages
//! before it define what they need of a pattern as traits and are given the [`registry`]; none of
//! them knows a pattern by name. To add one: a folder, one line in the registry, one row in
//! METHOD.md.
#![warn(missing_docs)]

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod bandwidth;
pub mod collective;
pub mod exchange;
pub mod latency;
pub mod load;
pub mod oneway;
pub mod options;
pub mod prelude;
pub mod registry;
pub mod rpc;
mod schedule_options;
pub mod stream;
pub mod survey;

use options::PatternOptions;
use wiregauge_analysis::pattern::PatternAnalysis;
use wiregauge_figures::view::PatternView;

/// A pattern: all that the stages need of one.
pub trait Pattern: PatternAnalysis + PatternView + PatternOptions {}

impl<P: PatternAnalysis + PatternView + PatternOptions> Pattern for P {}
