//! A stream of samples as a real-time simulator sends them, one a step.

pub mod loops;
pub mod kept;
mod execution;
mod figures;
mod spec;

pub use spec::{Asked, RATE, Spec, Stream, VALUES, message, request};

impl super::Pattern for Stream {}
