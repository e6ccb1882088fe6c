//! Units, options and warnings: the words that all other packages share; and the start of threads.

/// Returns early with an error, or with one made of a sentence, unless a condition holds.
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

pub mod options;
pub mod threads;
pub mod units;
pub mod wall_clock;
pub mod warning;
