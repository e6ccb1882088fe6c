//! wiregauge measures what an interconnect delivers to a program.
//!
//! The modules are the stages of a measurement, in the order in which data passes through them:
//!
//! ```text
//! command line --cli--> plan --run--> agents --transport--> endpoints
//! endpoints + schedule + clock --pattern--> samples --record--> run directory
//!                     --stats--> figures, warnings --report--> tables, HTML, exports
//! ```
//!
//! A stage uses only those before it; `tests/tidy/tidy.rs` checks that, and ARCHITECTURE.md
//! explains it.
//!
//! What other programs are meant to use:
//!
//! * [`measure`] measures what a command line says and returns the [`record`] (`examples/measure`).
//!   The samples of a record that was kept are read by [`record::SampleReader`].
//! * [`pattern`] and [`transport`] have the contracts of a pattern or transport of one's own
//!   (`examples/burst`).
//!
//! Modules that these documents leave out are public for the program and its tests alone, and
//! change without notice.

#[macro_use(ensure)]
extern crate wiregauge_core;

#[doc(hidden)]
pub use wiregauge_core::{
    agent, clock, control, explain, host, loops, remote, run, sample, shipped, signal,
};
#[doc(inline)]
pub use wiregauge_core::{options, pattern, plan, record, stats, transport, units, view, warning};

#[doc(hidden)]
pub mod testbed;

pub mod report;

#[doc(hidden)]
pub mod cli;

#[doc(hidden)]
pub mod command;

pub use command::CommandError;
pub use command::library::{measure, serve_as_agent};

// What the programs of tests/ share with the tests in here names the crate as they do.
#[cfg(test)]
extern crate self as wiregauge;
#[cfg(test)]
#[path = "../tests/support/bounded.rs"]
mod bounded;
