//! The agent: the process that runs one role of one round, commanded by the controller.
//!
//! Every role runs in a process of its own, also on one machine, so that two processes are what is
//! measured and a crash is contained. [`serve`] keeps the control channel, [`thread`] runs the
//! loop.

mod channel;
mod clock_answers;
pub mod connections;
mod device_stamps;
pub mod error;
pub mod execution;
mod host_probe;
pub mod own_trace;
mod preflight;
pub mod rehearse;
pub mod remote_memory;
pub mod rows;
pub mod serve;
pub mod setup;
pub mod thread;
