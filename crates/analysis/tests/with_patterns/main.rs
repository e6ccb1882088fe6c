//! Runs, with the patterns that stand above it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod figures;
mod impact;
mod overhead;
mod recovered;
mod so_far;
mod warnings;
