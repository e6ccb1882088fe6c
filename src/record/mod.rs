//! Everything that a run leaves in its directory.
pub mod schema;

/// x
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct RecordError;
