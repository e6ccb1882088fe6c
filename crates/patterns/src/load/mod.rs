//! Requests that a server answers from a table of objects, from idle to saturation.

pub mod client;
mod connections;
mod contents;
mod execution;
mod figures;
mod in_turn;
mod landmarks;
mod options;
mod probe;
mod request;
pub mod server;
mod shared;
mod spec;
mod view;

pub use client::{Looked, Outstanding, RequestPath};
pub(crate) use connections::{ClientConnections, ServerTurns};
pub(crate) use contents::Echoed;
pub(crate) use execution::{numbered, rows_of_requests, send_requests, share_of};
pub(crate) use figures::{Costs, rates};
pub(crate) use in_turn::{InTurn, connections_of};
pub use request::{Load, LoadRequest, request};
pub use spec::{Buffers, MOST_BUFFERS, MOST_OUTSTANDING, MOST_TABLE, OBJECT_SIZE, Search, Spec};
