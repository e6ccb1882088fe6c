//! How it is told: from a record and its samples alone.

pub mod curves;
pub mod html;
