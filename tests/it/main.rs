//! The integration tests, in one program: what they share is compiled once, and linked once.
//!
//! Run some of them by their path: `cargo test --test it record::`. What they read (transcripts,
//! records of earlier versions, published settings) lies in `tests/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod ab;
mod agents;
mod ci;
mod cli;
mod clocks;
mod compare;
mod conformance;
mod connections;
mod containers;
mod coverage;
mod doctor;
mod documents;
mod evidence;
mod exchange;
mod explain;
mod export;
mod faults;
mod figures;
mod hostile;
mod hosts;
mod impact;
mod launchers;
mod live;
mod load;
mod loops;
mod mpi;
mod net;
mod options_doc;
mod page_faults;
mod pairs;
mod printed;
mod recompute;
mod record;
mod record_doc;
mod records;
mod report;
mod rounds;
mod rpc;
mod seeds;
mod stream;
mod studies;
mod tables;
mod testbed;
mod threads;
mod transcripts;
mod verbs;
mod warnings_doc;
mod wire;
