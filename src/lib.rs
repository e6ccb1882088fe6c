//! wiregauge measures what an interconnect really gives a program.
//!
//! The modules are the stages of a measurement, in the order in which data passes through them:
//!
//! ```text
//! cli --parse--> plan --launch--> agents --transport--> endpoints
//! endpoints + clock --pattern--> samples --record--> run directory --stats--> figures, warnings
//!                                                                  --report--> tables, HTML
//! ```
//!
//! A stage uses those that stand before it and none that stands after it; `tests/tidy.rs` holds
//! the table and guards it. Start reading at [`transport`]: its contract is what all else serves.

pub mod units;

pub mod options;

pub mod warning;

pub mod clock;
pub mod host;

pub mod testbed;

pub mod signal;

pub mod transport;

pub mod plan;

pub mod sample;

pub mod loops;

pub mod control;

pub mod agent;

pub mod remote;

pub mod stats;

pub mod record;

pub mod run;

pub mod report;

pub mod pattern;

pub mod cli;

pub mod command;

#[cfg(test)]
#[path = "../tests/support/bounded.rs"]
mod bounded;
