//! A stream of samples as a real-time simulator sends them, one a step.

mod execution;
mod figures;
pub mod kept;
pub mod loops;
mod options;
mod spec;
mod view;

pub use spec::{RATE, Spec, Stream, StreamRequest, VALUES, message, request};
