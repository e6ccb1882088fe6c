//! How it is told: everything here reads a run directory and nothing else.
pub mod export;
