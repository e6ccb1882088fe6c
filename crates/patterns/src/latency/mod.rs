//! Ping-pong: one message (or one burst) there and back before the next.

mod execution;
mod figures;
pub mod one_sided;
mod spec;

pub use spec::{Latency, LatencyRequest, Spec, request};
