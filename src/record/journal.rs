//! What a run has left so far, for the case that it cannot end: a line for each round, in a file
//! beside the samples, until the record is written.
//!
//! A line is added when a round is over and its samples have been handed to the system: it costs no
//! time of a measurement, and the same for each round. It holds the round as the record will, and
//! the part of the samples' footer that describes the round's rows, so that a file without its end
//! can be completed. A line that a killed process has left in part does not count. What a power
//! failure leaves depends on the file system: only the end of a run waits for the disk.

use super::error::{RecordError, shown};
use super::sample_reader::groups_of;
use super::samples::{footer, properties};
use super::schema::{RateFigure, Record, RecordedWarning, Round};
use crate::host::open_file;
use crate::stats::Metric;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The journal's file in a run directory that is not complete.
pub const JOURNAL_FILE: &str = "rounds.jsonl";

/// Longest journal that is read: the longest record, several times.
const LONGEST: u64 = 256 << 20;
/// Bytes of a samples' file before its first row.
const MAGIC: u64 = 4;

/// A round that is over, and what its run shows so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedRound {
    /// Its run.
    pub run: u32,
    /// The round.
    pub round: Round,
    /// When it was saved, RFC 3339, UTC.
    pub at: String,
    /// The distributions that its samples have, the one that answers the question first.
    pub metrics: Vec<Metric>,
    /// The rates of its run so far.
    pub rates: Vec<RateFigure>,
    /// What weakens the figures of its run so far.
    pub warnings: Vec<RecordedWarning>,
}

/// What a run has left that did not end.
pub struct Saved {
    /// The record without rounds.
    pub record: Record,
    /// Its rounds, in the order of time.
    pub rounds: Vec<SavedRound>,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The record without rounds. It takes the place of an earlier one.
    Record(Box<Record>),
    Round(Box<RoundLine>),
}

#[derive(Serialize, Deserialize)]
struct RoundLine {
    saved: SavedRound,
    /// How long the samples' file was with its rows.
    bytes: u64,
    /// A footer of its row groups alone, in Base64.
    footer: String,
}

/// The journal of a running run. It is locked, so that `recover` refuses it until the run ends.
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn create(dir: &Path) -> Result<Journal, RecordError> {
        let path = dir.join(JOURNAL_FILE);
        let file = File::create_new(&path).map_err(|e| RecordError::writing(&path, e))?;
        // File systems without locks exist; there the run's number in the name must do.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Journal(file))
    }

    /// Adds the record without rounds.
    pub(super) fn record(&mut self, dir: &Path, record: &Record) -> Result<(), RecordError> {
        self.line(dir, &Line::Record(Box::new(record.clone())))
    }

    /// Adds a round, with the length of the samples' file and the footer of its row groups.
    pub(super) fn round(
        &mut self,
        dir: &Path,
        saved: &SavedRound,
        (bytes, footer): (u64, Vec<u8>),
    ) -> Result<(), RecordError> {
        let footer = BASE64.encode(footer);
        let line = RoundLine { saved: saved.clone(), bytes, footer };
        self.line(dir, &Line::Round(Box::new(line)))
    }

    fn line(&mut self, dir: &Path, line: &Line) -> Result<(), RecordError> {
        let text = serde_json::to_string(line).map_err(std::io::Error::from);
        let written = text.and_then(|text| self.0.write_all((text + "\n").as_bytes()));
        written.map_err(|e| RecordError::writing(&dir.join(JOURNAL_FILE), e))
    }
}

/// Reads what a run left in `dir`, and completes the samples' file with the rounds that are whole.
pub(super) fn complete(dir: &Path, path: &Path, epoch: &str) -> Result<Saved, RecordError> {
    let (record, mut lines) = read(dir)?;
    let failed = |source| RecordError::reading(path, source);
    let length = open_file(path).and_then(|file| file.metadata()).map_err(failed)?.len();
    // After a power failure the file may be shorter than the journal says.
    let whole = lines.iter().take_while(|line| (MAGIC..=length).contains(&line.bytes)).count();
    lines.truncate(whole);
    let Some(last) = lines.last() else {
        let dir = shown(dir);
        return Err(RecordError::Refused(format!(
            "{dir} has no finished round, so there is nothing to recover: delete it"
        )));
    };
    let end = last.bytes;
    let mut groups = Vec::new();
    for line in &lines {
        let undecodable = |_| RecordError::samples(path, "its journal is damaged");
        groups.extend(groups_of(path, &BASE64.decode(&line.footer).map_err(undecodable)?)?);
    }
    let footer = footer(&groups, &properties(epoch))
        .map_err(|e| RecordError::samples(path, e.to_string()))?;
    let write = || {
        let mut file = File::options().write(true).open(path)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(&footer)?;
        file.sync_all()
    };
    write().map_err(|e| RecordError::writing(path, e))?;
    Ok(Saved { record, rounds: lines.into_iter().map(|line| line.saved).collect() })
}

/// The lines of a journal, up to the first that is not whole.
fn read(dir: &Path) -> Result<(Record, Vec<RoundLine>), RecordError> {
    let path = dir.join(JOURNAL_FILE);
    let file = match open_file(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(RecordError::Refused(format!(
                "{} is not the directory of an unfinished run, since it has no {JOURNAL_FILE}: \
                 name one such as .NAME.partial-PID",
                shown(dir)
            )));
        }
        opened => opened.map_err(|e| RecordError::reading(&path, e))?,
    };
    let is_running = flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    ensure!(!is_running, "the run that writes {} is still running: wait until it ends", shown(dir));
    let (mut record, mut rounds) = (None, Vec::new());
    for line in BufReader::new(file.take(LONGEST)).split(b'\n') {
        let line = line.map_err(|e| RecordError::reading(&path, e))?;
        match serde_json::from_slice(&line) {
            Ok(Line::Record(found)) => record = Some(*found),
            Ok(Line::Round(round)) => rounds.push(*round),
            Err(_) => break,
        }
    }
    let damaged = || format!("{} is damaged: its first line is not a record", shown(&path));
    Ok((record.ok_or_else(damaged)?, rounds))
}
