//! Messages one way, stamped at both ends by clocks that agree.

mod execution;
mod figures;
mod options;
pub mod sender;
mod spec;
pub mod window;

pub(crate) use figures::{SCHEDULED, samples};
pub use spec::{Oneway, Spec, request};
pub(crate) use spec::{WINDOW, refuse_one_sided, refuse_threads};
