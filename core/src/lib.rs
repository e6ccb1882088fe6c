//! The lower half of `wiregauge`: what measures, from the options to the patterns.
//!
//! Other programs use the package `wiregauge`, which exports these modules. The two halves are
//! packages of their own so that a build is short: reports and commands are compiled while this
//! half, which has the measured loops, is optimised.

/// Returns early with an error, or with one made of a sentence, unless a condition holds.
#[doc(hidden)]
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $sentence:literal $($arguments:tt)*) => {
        $crate::ensure!($holds, format!($sentence $($arguments)*))
    };
    ($holds:expr, $error:expr) => {
        let holds: bool = $holds;
        if !holds {
            return Err($error.into());
        }
    };
}

#[doc(hidden)]
pub mod shipped;

pub mod units;

pub mod options;

pub mod warning;

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod host;

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

#[doc(hidden)]
pub mod explain;

pub mod record;

#[doc(hidden)]
pub mod run;

pub mod view;

pub mod pattern;

// What the programs of tests/ share with the tests in here names the crate as they do.
#[cfg(test)]
extern crate self as wiregauge;
#[cfg(test)]
#[path = "../../tests/support/bounded.rs"]
mod bounded;
