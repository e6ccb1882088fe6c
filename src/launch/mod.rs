//! Where: processes that play roles, and what the driver says to them.
//!
//! Takes a [`Case`](crate::plan::Case); gives the sample memory and the outcome of both roles.
//! Every role runs in its own fresh process ([`agent`]), also on one machine, so that two processes
//! are what is measured and a crash is contained. The control channel ([`protocol`], [`frame`]) is
//! parked while a round runs.

pub mod agent;
pub mod frame;
pub mod local;
pub mod protocol;
pub mod rehearse;
pub mod round;
pub mod secret;
