//! Fuzz targets: each gets bytes as they may come from outside and checks the claim of its first
//! line.
//!
//! The program `fuzz` runs them under libFuzzer (`fuzz/run`). The tests of this package run each on
//! its seeds and on mutations of them, in an ordinary build.
#![allow(clippy::expect_used)]

#[cfg(test)]
mod dictionary;
#[cfg(test)]
mod mutate;
mod targets;

/// A function that is fuzzed.
#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    /// Panics where the claim does not hold for the input.
    pub run: fn(&[u8]),
    /// Folders with inputs to start from, relative to the root of the project.
    pub seeds: &'static [&'static str],
    /// A file with words of its format, in the form of libFuzzer's dictionaries.
    pub dictionary: &'static str,
}

/// Declares the table, and one test for each target. A target whose input has the format of another
/// one's shares its dictionary.
macro_rules! targets {
    (@dictionary $name:ident) => { concat!("fuzz/dictionaries/", stringify!($name)) };
    (@dictionary $name:ident $other:ident) => { targets!(@dictionary $other) };
    ($($name:ident: $seeds:tt $(as $other:ident)?;)+) => {
        /// All targets, sorted by name.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: targets::$name::run,
            seeds: &$seeds,
            dictionary: targets!(@dictionary $name $($other)?),
        }),+];

        #[cfg(test)]
        mod tests {
            $(
                #[test]
                fn $name() {
                    crate::mutate::run_mutations(stringify!($name));
                }
            )+
        }
    };
}

targets! {
    agent_frames: ["fuzz/seeds/agent_frames"];
    agent_inspector: ["fuzz/seeds/agent_inspector"];
    clock_datagrams: ["fuzz/seeds/clock_datagrams"];
    command_line: ["fuzz/seeds/command_line"];
    control_frames: ["fuzz/seeds/control_frames"];
    data_connections: ["fuzz/seeds/data_connections"];
    exchange_files: ["fuzz/seeds/exchange_files"];
    homa_timetrace: ["fuzz/seeds/homa_timetrace"];
    host_files: ["fuzz/seeds/host_files"];
    hosts_file: ["fuzz/seeds/hosts_file"];
    journal: ["fuzz/seeds/journal"] as record_json;
    launchers: ["fuzz/seeds/launchers"];
    limit: ["fuzz/seeds/limit"];
    netlink_replies: ["fuzz/seeds/netlink_replies"];
    pairing: ["fuzz/seeds/pairing"];
    record_json: ["fuzz/seeds/record_json", "tests/records"];
    reference: ["fuzz/seeds/reference", "references"];
    report_page: ["fuzz/seeds/record_json", "tests/records"] as record_json;
    samples_parquet: ["fuzz/seeds/samples_parquet"];
    stream_formats: ["fuzz/seeds/stream_formats"];
    study: ["studies"];
    sweep: ["fuzz/seeds/sweep"];
    synthetic_spec: ["fuzz/seeds/synthetic_spec"];
    trace: ["fuzz/seeds/trace"];
    verbs_address: ["fuzz/seeds/verbs_address"];
    workload: ["fuzz/seeds/workload"];
}

/// Returns the target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Returns the longest beginning that is UTF-8.
fn valid_text(data: &[u8]) -> &str {
    match str::from_utf8(data) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
    }
}
