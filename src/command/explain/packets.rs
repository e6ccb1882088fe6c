//! `explain packets`: how long packets of the kernel's Homa live, by what its module traces and
//! counts by itself.

use super::super::console::{print_json, print_report, whole_layout};
use super::super::{CommandError, Exit};
use crate::cli::Color;
use crate::explain::packets::{Packets, Trace, TraceProblem, follow};
use crate::host::{Tree, open_file};
use crate::options::{UsageError, refuse};
use crate::report::table;
use crate::report::view::packets;
use crate::transport::homa;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The word after `explain`.
pub(super) const NAME: &str = "packets";
/// The module's trace on this host.
const OWN: &str = "/proc/timetrace";

/// What is printed as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    packets: &'a Packets,
    /// What the module of this host counted since it was loaded; none of traces that were kept.
    counters: &'a BTreeMap<String, u64>,
}

/// Reads the module's trace, or files with those of one host or two, and shows what they hold.
pub(super) fn explain(words: &[OsString]) -> Result<Exit, CommandError> {
    let (files, json) = read(words)?;
    let traces = match &files[..] {
        [] => vec![trace(OWN.as_ref())?],
        files => files.iter().map(|file| trace(file)).collect::<Result<_, _>>()?,
    };
    let lines: usize = traces.iter().map(|trace| trace.lines).sum();
    let found = follow(&traces[0], traces.get(1));
    let Some(found) = found else {
        let none = "no packets went from each of the two hosts to the other, so their clocks \
                    cannot be compared: give both traces of the same run, or one alone";
        return Err(CommandError::Unable(none.into()));
    };
    if found.lives.is_empty() && found.cut == 0 {
        return Err(CommandError::Unable(format!(
            "none of the {lines} events of the trace is of a packet: the module keeps the last \
             16384 of each CPU, and each poll of a socket is one (--wait busy): run with --wait \
             block, and read the trace at once"
        )));
    }
    let counters = match files.is_empty() {
        true => homa::counted(&Tree::default()),
        false => BTreeMap::new(),
    };
    if json {
        return print_json(&Shown { packets: &found, counters: &counters });
    }
    let section = packets::section(&found, &counters);
    print_report(&table::sections(&[section], &whole_layout()), Color::Auto)
}

/// The files, and whether JSON is wanted.
fn read(words: &[OsString]) -> Result<(Vec<PathBuf>, bool), UsageError> {
    let is_option = |word: &&OsString| word.to_string_lossy().starts_with("--");
    let (options, files): (Vec<_>, Vec<_>) = words.iter().partition(is_option);
    if let Some(other) = options.iter().find(|word| **word != "--json") {
        return refuse(format!("explain packets has no option '{}': only --json", other.display()));
    }
    if files.len() > 2 {
        return refuse("explain packets takes the trace of one host, or those of two");
    }
    Ok((files.into_iter().map(PathBuf::from).collect(), !options.is_empty()))
}

fn trace(path: &Path) -> Result<Trace, CommandError> {
    let name = path.display().to_string();
    let unable = |problem: TraceProblem| CommandError::Unable(problem.to_string());
    match open_file(path) {
        Ok(file) => Trace::read(BufReader::new(file), &name).map_err(unable),
        Err(error) if path == Path::new(OWN) && error.kind() == std::io::ErrorKind::NotFound => {
            let none = "this kernel has no trace of Homa's (/proc/timetrace): load its module, or \
                        give a file into which a host's was copied";
            Err(CommandError::Unable(none.into()))
        }
        Err(error) => Err(unable(TraceProblem::Unreadable(name, error))),
    }
}
