//! The control protocol between the controller and its agents: messages, frames, secrets, faults.
//!
//! The control channel is idle while a round runs.

pub mod call_back;
pub mod fault;
pub mod frame;
pub mod limits;
pub mod patience;
pub mod program;
pub mod protocol;
pub mod secret;

pub use wiregauge_plan::case_frame as case;
