//! Plans, with the patterns that stand above it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod group;
mod pairs;
mod parts;
mod rails;
mod request;
mod topology;
