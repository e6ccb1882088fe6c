//! `history`: the records of a folder over time, and where the level of a figure changed.

use super::console::{complain, layout, show};
use super::{CommandError, Exit};
use crate::cli::{Display, Typed};
use crate::options::refuse;
use crate::record::directory::{DEFAULT_BASE, RECORD_FILE};
use crate::record::read_record;
use crate::report::comparison::Side;
use crate::report::history::{Entry, History};
use crate::report::table::{Columns, history};
use std::path::{Path, PathBuf};

/// Most records of a history: a nightly run of three years. All are in memory at once.
const MOST_RECORDS: usize = 1000;

/// Reads all records of a folder and shows their history.
pub fn history(typed: &Typed) -> Result<Exit, CommandError> {
    let folder = typed.operands("DIR").first().map_or(PathBuf::from(DEFAULT_BASE), PathBuf::from);
    let shown = folder.display();
    let mut directories = directories(&folder)
        .map_err(|error| CommandError::Unable(format!("reading {shown}: {error}")))?;
    let found = directories.len();
    if found > MOST_RECORDS {
        complain(&format!("{shown} holds {found} records: the last {MOST_RECORDS} are read"));
        directories.drain(..found - MOST_RECORDS);
    }
    let read = directories.iter().filter_map(|path| match read_record(path) {
        Ok(record) => {
            let directory = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let side = Side::whole(directory.clone(), record);
            Some(Entry { directory, side })
        }
        Err(error) => {
            complain(&format!("left out: {error}"));
            None
        }
    });
    let mut entries: Vec<Entry> = read.collect();
    if entries.is_empty() {
        return refuse(format!("{shown} holds no run directories: use one such as wiregauge-runs"));
    }
    // RFC 3339 in UTC sorts as text; names of directories may be anybody's.
    entries.sort_by(|a, b| a.side.record.started.cmp(&b.side.record.started));
    let all = History::new(&entries, &typed.given.list("figure"));
    let verbose = typed.given.flag("verbose");
    let columns = if verbose { Columns::All } else { Columns::Fitting };
    let layout = layout(&Display { columns, verbose, ..Display::default() });
    show(typed.given.flag("json"), &all, |all| history::whole(all, &layout).to_string())
}

/// The run directories of a folder, in the order of their names: those that name themselves are
/// named by time. Hidden ones are not complete.
fn directories(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        if !is_hidden && path.join(RECORD_FILE).is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
