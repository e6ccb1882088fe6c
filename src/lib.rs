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
extern crate wiregauge_base;

#[doc(inline)]
pub use wiregauge_base::{options, units, warning};
#[doc(inline)]
pub use wiregauge_figures::{record, view};
#[doc(inline)]
pub use {
    wiregauge_patterns as pattern, wiregauge_plan as plan, wiregauge_report as report,
    wiregauge_stats as stats, wiregauge_transport as transport,
};

// For the program and its tests alone.
#[doc(hidden)]
pub use wiregauge_figures::explain;
#[doc(hidden)]
pub use wiregauge_measure::{agent, control, loops};
#[doc(hidden)]
pub use {
    wiregauge_analysis as analysis, wiregauge_clock as clock, wiregauge_host as host,
    wiregauge_remote as remote, wiregauge_run as run, wiregauge_sample as sample,
    wiregauge_signal as signal, wiregauge_testbed as testbed,
};

#[doc(hidden)]
pub mod cli;

#[doc(hidden)]
pub mod command;

mod shipped;

pub use command::CommandError;
pub use command::library::{measure, serve_as_agent};
