//! Where agents run: processes on this host, over ssh, through a daemon, or started by a launcher.

pub mod clocks;
pub mod daemon;
pub mod host;
pub mod job;
pub mod process;
pub mod ssh;
mod stderr;
