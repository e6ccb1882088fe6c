//! Requests that a server answers from a table of objects, from idle to saturation.

pub mod client;
mod execution;
mod figures;
mod options;
mod probe;
mod request;
pub mod server;
mod spec;
mod view;

pub use client::{Line, Looked};
pub(in crate::pattern) use execution::{ask, rows_of_requests};
pub(in crate::pattern) use figures::{Costs, metrics, rates};
pub use request::{Asked, Load, request};
pub use spec::{Buffers, MOST_BUFFERS, MOST_OUTSTANDING, MOST_TABLE, OBJECT_SIZE, Search, Spec};

impl super::Pattern for Load {}
