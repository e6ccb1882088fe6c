//! The interfaces of fabrics, shut in here: libraries that are opened at run time, so that one
//! program starts with and without them, and what their headers define.
//!
//! Nothing is linked and no header is needed to build: the types are committed (`verbs/types.rs`),
//! and made again by `cargo run --manifest-path xtask/Cargo.toml -- bindings`. Functions are looked
//! up by name; those that a header defines in line are written here again, through the same tables
//! of the provider that C uses, so that they cost the same one indirect call.

pub mod accelerator;
mod library;
pub mod mpi;
pub mod verbs;

pub use library::Missing;
