//! Ping-pong: one message (or one burst) there and back before the next.

pub mod one_sided;
mod execution;
mod figures;
mod spec;

pub use spec::{Asked, Latency, Spec, request};
pub(in crate::pattern) use figures::{Nothing, batching};
pub(in crate::pattern) use spec::check_burst;

impl super::Pattern for Latency {}
