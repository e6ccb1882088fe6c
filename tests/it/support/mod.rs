//! Shared by the tests: scratch folders, bounds on waiting, running the program, hosts, records.

mod clocks;
pub mod controller;
pub mod daemon;
pub mod far;
pub mod net;
pub mod program;
pub mod python;
pub mod records;
mod rpc;
mod scratch;
mod stream;
pub mod study;
pub mod testbed;

pub use records::*;
pub use scratch::Scratch;
