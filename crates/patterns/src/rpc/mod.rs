//! Requests and replies of many lengths over many connections, and how much load slows each length
//! down.

mod cases;
mod draws;
mod execution;
mod figures;
mod lengths;
pub mod loops;
mod options;
pub mod receivers;
mod request;
mod spec;
#[cfg(test)]
mod tests;
mod view;
pub mod workload;

pub use cases::{carried_shares, is_baseline_of, unloaded};
pub use draws::Draws;
pub use lengths::{Lengths, MeanSlowdown, OfSize, Short, Unloaded};
pub use request::{Rpc, RpcRequest, request};
pub use spec::{LONGEST, OUTSTANDING, Reply, SHORTEST, Slowdown, Spec};
