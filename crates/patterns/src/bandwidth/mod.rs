//! As many messages as the transport takes, one way or both.

mod execution;
mod figures;
pub mod loops;
pub mod one_sided;
mod spec;
mod view;
mod window;

pub use spec::{Bandwidth, Direction, Spec, request};
