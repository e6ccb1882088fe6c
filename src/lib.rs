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
//! A stage uses only those before it; `tests/tidy.rs` checks that, and ARCHITECTURE.md explains it.
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

/// Returns early with an error, or with one made of a sentence, unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $sentence:literal $($arguments:tt)*) => {
        ensure!($holds, format!($sentence $($arguments)*))
    };
    ($holds:expr, $error:expr) => {
        let holds: bool = $holds;
        if !holds {
            return Err($error.into());
        }
    };
}

pub mod units;

pub mod options;

pub mod warning;

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod host;

#[doc(hidden)]
pub mod testbed;

#[doc(hidden)]
pub mod signal;

pub mod transport;

pub mod plan;

#[doc(hidden)]
pub mod sample;

#[doc(hidden)]
pub mod loops;

#[doc(hidden)]
pub mod control;

#[doc(hidden)]
pub mod agent;

#[doc(hidden)]
pub mod remote;

pub mod stats;

pub mod record;

#[doc(hidden)]
pub mod run;

pub mod report;

pub mod pattern;

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
