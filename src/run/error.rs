//! Why there is no record at all.

use crate::control::fault::Fault;
use crate::record::RecordError;

/// Why there is no record at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A request that cannot be met.
    #[error("{0}")]
    Refused(String),
    /// The machine cannot.
    #[error("{0}")]
    Unable(String),
    /// The run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> Self {
        match fault.is_refused() {
            true => RunError::Refused(fault.to_string()),
            false => RunError::Unable(fault.to_string()),
        }
    }
}
