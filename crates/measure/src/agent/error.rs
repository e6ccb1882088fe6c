//! Why an agent cannot do its part.

use crate::control::frame::FrameError;
use std::fmt::Display;
use wiregauge_transport::SetupError;

/// Why an agent ends before its round is over.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("{0}")]
    Refused(String),
    #[error("no controller greeted this agent: wiregauge starts its agents itself")]
    NotGreeted,
    #[error("{0}")]
    Unable(String),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl From<SetupError> for AgentError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::NotAllowed(sentence) => AgentError::Refused(sentence),
            error => AgentError::Unable(error.to_string()),
        }
    }
}

/// An error with what was tried.
pub fn unable<E: Display>(what: &'static str) -> impl FnOnce(E) -> AgentError {
    move |error| AgentError::Unable(format!("{what}: {error}"))
}
