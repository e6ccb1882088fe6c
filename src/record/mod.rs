//! Everything that a run leaves in its directory.
pub mod schema;
