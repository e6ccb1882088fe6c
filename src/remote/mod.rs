//! Where agents run: on this host, on another one by ssh or a daemon, or as ranks of a job.

pub mod clocks;
pub mod daemon;
pub mod host;
pub mod job;
pub mod process;
pub mod ssh;
mod stderr;
