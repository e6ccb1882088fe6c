//! As many messages as the transport takes, one way or both.

pub mod one_sided;
pub mod loops;
mod execution;
mod figures;
mod spec;
mod window;

pub use spec::{Asked, Bandwidth, Direction, Spec, request};

impl super::Pattern for Bandwidth {}
