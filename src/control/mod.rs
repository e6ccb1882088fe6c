//! What the controller and its agents say to each other: messages, their frames, the run's secret.
//!
//! The control channel is parked while a round runs.

pub mod fault;
pub mod frame;
pub mod patience;
pub mod protocol;
pub mod secret;
