//! Helpers that the tests of several packages share.

pub mod bounded;
pub mod printed;
pub mod villas;
