//! Messages one way, stamped at both ends by clocks that agree.

mod execution;
mod figures;
mod options;
pub mod sender;
mod spec;
pub mod window;

pub(in crate::pattern) use figures::{SCHEDULED, samples};
pub use spec::{Oneway, Spec, request};
pub(in crate::pattern) use spec::{WINDOW, refuse_one_sided, refuse_threads};
