//! Rounds become the runs of a record: samples, counts, figures, warnings. Nothing here starts a
//! process or opens a connection.
//!
//! [`pattern::PatternAnalysis`] is what a pattern adds to it.

pub mod client_hosts;
pub mod counts;
pub mod cpus;
mod evidence;
pub mod figures;
pub mod fixtures;
pub mod impact;
pub mod marks;
pub mod overhead;
pub mod pairs;
pub mod pattern;
pub mod rates;
pub mod recovered;
pub mod result;
pub mod saved;
pub mod search;
pub mod so_far;
pub mod stalls;
pub mod start;
pub mod threads;
pub mod warnings;
pub mod window;
