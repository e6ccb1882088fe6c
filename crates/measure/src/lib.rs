//! What runs while something is measured: the loops, the messages between controller and agents,
//! and the agents.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod agent;
pub mod control;
pub mod loops;
