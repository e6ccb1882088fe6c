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
//! Start reading at [`transport`].

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

// What the programs of tests/ share with the tests in here names the crate as they do.
#[cfg(test)]
extern crate self as wiregauge;
#[cfg(test)]
#[path = "../tests/support/bounded.rs"]
mod bounded;
