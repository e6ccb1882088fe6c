//! Where: processes that play roles, and what the driver says to them.
//!
//! Takes a [`Case`](crate::plan::Case); gives the sample memory and the outcome of both roles.
//! Every role runs in its own fresh process ([`agent`]), also on one machine, so that two processes
//! are what is measured and a crash is contained. The control channel ([`protocol`], [`frame`]) is
//! parked while a round runs. The server's agent may be on another host ([`far`]): then the channel
//! is that of ssh, and the agent brings its own memory and clock, which [`clocks`] compares with
//! this host's. A host without ssh has an agent that stands ([`standing`]) and starts the others.

pub mod agent;
mod apart;
pub mod clocks;
pub mod conditions;
pub mod ends;
pub mod far;
mod fault;
pub mod frame;
pub mod job;
pub mod kept;
mod patience;
pub mod process;
pub mod protocol;
pub mod rehearse;
pub mod round;
pub mod rows;
pub mod secret;
pub mod standing;
mod thread;
pub mod together;
