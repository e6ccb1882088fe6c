//! The fuzz targets, one a file; the table in `lib.rs` lists them.

pub(crate) mod agent_frames;
pub(crate) mod agent_inspector;
pub(crate) mod clock_datagrams;
pub(crate) mod command_line;
pub(crate) mod control_frames;
pub(crate) mod data_connections;
pub(crate) mod exchange_files;
pub(crate) mod homa_timetrace;
pub(crate) mod host_files;
pub(crate) mod hosts_file;
pub(crate) mod journal;
pub(crate) mod launchers;
pub(crate) mod limit;
pub(crate) mod netlink_replies;
pub(crate) mod pairing;
pub(crate) mod record_json;
pub(crate) mod reference;
pub(crate) mod report_page;
pub(crate) mod samples_parquet;
pub(crate) mod stream_formats;
pub(crate) mod study;
pub(crate) mod sweep;
pub(crate) mod synthetic_spec;
pub(crate) mod trace;
pub(crate) mod verbs_address;
pub(crate) mod workload;
