//! Requests and replies of many lengths over many connections, and how much load slows each length
//! down.

pub mod receivers;
pub mod loops;
mod execution;
mod cases;
mod draws;
mod figures;
mod lengths;
mod spec;
pub mod workload;
#[cfg(test)]
mod tests;

pub use cases::{carried_shares, is_baseline_of, share_of, unloaded};
pub use draws::Draws;
pub use lengths::{Lengths, MeanSlowdown, OfSize, Short, Unloaded};
pub use spec::{
    Asked, LONGEST, OUTSTANDING, Reply, Rpc, SHORTEST, Slowdown, Spec, request,
};

impl super::Pattern for Rpc {}
