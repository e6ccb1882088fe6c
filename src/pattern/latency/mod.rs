//! Ping-pong: one message (or one burst) there and back before the next.

mod execution;
mod figures;
pub mod one_sided;
pub(in crate::pattern) mod options;
mod spec;

pub(in crate::pattern) use figures::{Nothing, batching};
pub(in crate::pattern) use spec::check_burst;
pub use spec::{Asked, Latency, Spec, request};

impl super::Pattern for Latency {}
