//! What a run has left so far, for the case that it cannot end: a line for each round, in a file
//! beside the samples, until the record is written.
//!
//! A line is added when a round is over and its samples have been handed to the system: it costs no
//! time of a measurement, and the same for each round. It holds the round as the record will, and
//! the part of the samples' footer that describes the round's rows, so that a file without its end
//! can be completed, and the hash of these rows as they were written, so that a round whose samples
//! changed on the disk is left out. Each line has a checksum. A last line that a killed process has
//! left in part does not count; any other that differs from what was written is refused. What a
//! power failure leaves depends on the file system: only the end of a run waits for the disk.

use super::error::{RecordError, shown};
use super::sample_reader::groups_of;
use super::samples::{footer, properties};
use super::schema::{RateFigure, Record, RecordedWarning, Round, SamplesFile};
use super::sealed::{Hashed, read_all};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::digest::{Context, SHA256};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use wiregauge_host::{open_file, open_file_to_lock};
use wiregauge_plan::written::one_line;
use wiregauge_stats::Metric;

/// The journal's file in a run directory that is not complete.
pub const JOURNAL_FILE: &str = "rounds.jsonl";

/// The samples of the saved rounds, until they take the place of the original.
const COMPLETED_FILE: &str = "samples.parquet.recovered";
/// Longest journal that is read: the longest record, several times.
const LONGEST: u64 = 256 << 20;
/// First bytes of a samples' file, as of every Parquet file.
const MAGIC: &[u8] = b"PAR1";

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
    /// The rates of its run so far; of the values of single rounds those that no line before has.
    pub rates: Vec<RateFigure>,
    /// What weakens the figures of its run and no line before has.
    pub warnings: Vec<RecordedWarning>,
    /// Why the stamps of the run so far are not to be believed, if they are not.
    pub clock_fault: Option<String>,
    /// How many rounds its run needs, where the first ones have said it (`--until`).
    #[serde(default)]
    pub enough: Option<u32>,
    /// Why its run needs no further round; `None`: it does, or has failed.
    #[serde(default)]
    pub stopped: Option<String>,
}

/// What a run has left that did not end.
pub struct Saved {
    /// The record without rounds.
    pub record: Record,
    /// Rounds whose samples are as they were written, in the order of time.
    pub rounds: Vec<SavedRound>,
    /// The run and the number of each round whose samples are not.
    pub damaged: Vec<(u32, u32)>,
    /// The shell command that restores the settings that the run has left.
    pub restore: Option<String>,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The record without rounds. It takes the place of an earlier one.
    Record(Box<Record>),
    Round(Box<RoundLine>),
    /// Why the clock of the run is not to be believed.
    Clock(String),
    /// The shell command that restores the settings of the run; `None`: it has been run.
    Restore(Option<String>),
}

#[derive(Serialize, Deserialize)]
struct RoundLine {
    saved: SavedRound,
    /// How long the samples' file was with its rows.
    bytes: u64,
    /// SHA-256, in hex, of the file's bytes from the end of the round before to this one's; older
    /// builds wrote none.
    #[serde(default)]
    sha256: String,
    /// A footer of its row groups alone, in Base64.
    footer: String,
}

/// The place of a round's samples in their file.
pub(super) struct Stored {
    /// The length of the samples' file with them.
    pub bytes: u64,
    /// SHA-256, in hex, of what the file has gained by them.
    pub sha256: String,
    /// The footer of their row groups alone.
    pub footer: Vec<u8>,
}

/// The journal of a running run. It is locked, so that `recover` refuses it until the run ends.
pub(super) struct Journal {
    file: File,
    /// The checksum of its last line.
    sum: String,
}

impl Journal {
    pub(super) fn create(dir: &Path) -> Result<Journal, RecordError> {
        let path = dir.join(JOURNAL_FILE);
        let file = File::create_new(&path).map_err(|e| RecordError::writing(&path, e))?;
        // File systems without locks exist; there the run's number in the name must do.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Journal { file, sum: String::new() })
    }

    /// Adds the record without rounds.
    pub(super) fn record(&mut self, dir: &Path, record: &Record) -> Result<(), RecordError> {
        self.line(dir, &Line::Record(Box::new(record.clone())))
    }

    /// Adds a round and what stores its samples.
    pub(super) fn round(
        &mut self,
        dir: &Path,
        saved: &SavedRound,
        stored: &Stored,
    ) -> Result<(), RecordError> {
        let footer = BASE64.encode(&stored.footer);
        let sha256 = stored.sha256.clone();
        let line = RoundLine { saved: saved.clone(), bytes: stored.bytes, sha256, footer };
        self.line(dir, &Line::Round(Box::new(line)))
    }

    /// Says that the clock of the run is not to be believed, and why.
    pub(super) fn clock(&mut self, dir: &Path, fault: &str) -> Result<(), RecordError> {
        self.line(dir, &Line::Clock(fault.to_string()))
    }

    /// Notes the shell command that restores the settings of the run; `None`: it has been run.
    pub(super) fn restore(&mut self, dir: &Path, due: Option<&str>) -> Result<(), RecordError> {
        self.line(dir, &Line::Restore(due.map(str::to_string)))
    }

    fn line(&mut self, dir: &Path, line: &Line) -> Result<(), RecordError> {
        let text = serde_json::to_string(line).map_err(io::Error::from);
        let line = text.map(|text| sealed(&mut self.sum, &text));
        let written = line.and_then(|line| self.file.write_all(line.as_bytes()));
        written.map_err(|e| RecordError::writing(&dir.join(JOURNAL_FILE), e))
    }
}

/// The samples of the saved rounds, in a file of their own beside the original: what a run has left
/// is not changed before its record is written. The journal stays locked, so that no other process
/// recovers the same run meanwhile.
pub(super) struct Completed {
    /// The file.
    pub path: PathBuf,
    /// Length and hash of the file as it was written.
    pub sealed: SamplesFile,
    _lock: File,
}

impl Drop for Completed {
    fn drop(&mut self) {
        // After the rename onto the original this path no longer exists.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads what a run left in `dir`, and copies the rows of the rounds that are whole into a complete
/// samples' file. Nothing is changed that the run has left.
pub(super) fn complete(
    dir: &Path,
    path: &Path,
    epoch: &str,
) -> Result<(Saved, Completed), RecordError> {
    let file = open(dir)?;
    let all = lines(dir, &file)?;
    let due = all.restore.clone();
    let result = complete_from(dir, path, epoch, (file, all));
    result.map_err(|error| match error {
        RecordError::Refused(sentence) => {
            RecordError::Refused(with_restore(sentence, due.as_deref()))
        }
        other => other,
    })
}

/// Does this with the lines of a journal.
fn complete_from(
    dir: &Path,
    path: &Path,
    epoch: &str,
    (file, all): (File, Lines),
) -> Result<(Saved, Completed), RecordError> {
    let (journal, lines) = read(dir, all)?;
    let is_older = lines.iter().any(|line| line.sha256.is_empty());
    ensure!(
        !is_older,
        "{} was written by an older wiregauge, which kept no checksum of the samples: recover it \
         with that one",
        shown(&dir.join(JOURNAL_FILE))
    );
    // Its target would be another file.
    let is_link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    ensure!(!is_link, "{} is a symbolic link: put the file itself there", shown(path));
    let source = open_file(path).map_err(|e| RecordError::reading(path, e))?;
    let pieces = pieces(dir, path, &source, &lines)?;
    let has_any = pieces.iter().any(|piece| piece.is_whole);
    ensure!(
        lines.is_empty() || has_any,
        "the samples in {} are damaged in each of its {} rounds, so nothing was recovered and \
         nothing changed: restore them from a copy",
        shown(dir),
        lines.len()
    );
    ensure!(
        has_any,
        "{} has no finished round, so there is nothing to recover: delete it",
        shown(dir)
    );
    let mut groups = Vec::new();
    for line in lines.iter().zip(&pieces).filter(|(_, piece)| piece.is_whole).map(|(line, _)| line)
    {
        let undecodable = |_| RecordError::samples(path, "its journal is damaged");
        groups.extend(groups_of(path, &BASE64.decode(&line.footer).map_err(undecodable)?)?);
    }
    let footer = footer(&groups, &properties(epoch))
        .map_err(|e| RecordError::samples(path, e.to_string()))?;
    let to = dir.join(COMPLETED_FILE);
    // An attempt that was killed may have left one.
    let sealed = remove_if_there(&to).and_then(|()| copy(&source, &pieces, &footer, &to));
    let sealed = sealed.map_err(|e| RecordError::writing(&to, e))?;
    let completed = Completed { path: to, sealed, _lock: file };
    let mut rounds = Vec::new();
    let mut damaged = Vec::new();
    for (line, piece) in lines.into_iter().zip(pieces) {
        if piece.is_whole {
            rounds.push(line.saved);
        } else {
            damaged.push((line.saved.run, line.saved.round.index));
        }
    }
    let Left { record, restore, .. } = journal;
    Ok((Saved { record, rounds, damaged, restore }, completed))
}

/// A round's part of the samples' file.
struct Piece {
    bytes: u64,
    sha256: String,
    /// Is set where the file still has what was written.
    is_whole: bool,
}

/// The pieces of the samples' file that the lines of a journal speak of, in their order.
fn pieces(
    dir: &Path,
    path: &Path,
    source: &File,
    lines: &[RoundLine],
) -> Result<Vec<Piece>, RecordError> {
    let mut source = source;
    source.rewind().map_err(|e| RecordError::reading(path, e))?;
    let mut begin = 0;
    let mut pieces = Vec::new();
    for line in lines {
        let is_rising = line.bytes >= begin.max(MAGIC.len() as u64);
        ensure!(
            is_rising,
            "{} is damaged: its lengths do not rise",
            shown(&dir.join(JOURNAL_FILE))
        );
        let bytes = line.bytes - begin;
        // After a power failure the file may be shorter than the journal says.
        let found = read_all(source.take(bytes)).map_err(|e| RecordError::reading(path, e))?;
        let sha256 = line.sha256.clone();
        let is_whole = found == SamplesFile { bytes, sha256: sha256.clone() };
        pieces.push(Piece { bytes, sha256, is_whole });
        begin = line.bytes;
    }
    Ok(pieces)
}

/// Writes a samples' file of the pieces that are whole, with zeros in the place of the others: row
/// groups stay where their footers say. Their hashes are compared once more, with what is written.
fn copy(mut source: &File, pieces: &[Piece], footer: &[u8], to: &Path) -> io::Result<SamplesFile> {
    let mut file = Hashed::new(File::create_new(to)?);
    let mut begin = 0;
    // The file ends with the last that is whole: the lengths of others are only claimed.
    let last = pieces.iter().rposition(|piece| piece.is_whole).map_or(0, |last| last + 1);
    for piece in pieces.iter().take(last) {
        let end = begin + piece.bytes;
        if piece.is_whole {
            source.seek(SeekFrom::Start(begin))?;
            io::copy(&mut source.take(piece.bytes), &mut file)?;
        } else {
            // The first piece begins with the magic word of the file.
            let magic = if begin == 0 { MAGIC } else { &[] };
            file.write_all(magic)?;
            io::copy(&mut io::repeat(0).take(piece.bytes - magic.len() as u64), &mut file)?;
        }
        let is_same = file.part() == piece.sha256 || !piece.is_whole;
        ensure!(is_same, io::Error::other("the samples changed while they were read: try again"));
        begin = end;
    }
    file.write_all(footer)?;
    let (file, sealed) = file.finish();
    file.sync_all()?;
    Ok(sealed)
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A journal that nobody writes, and its record without rounds.
struct Left {
    record: Record,
    restore: Option<String>,
}

/// Returns the command that restores the settings which a run has left in `dir`, if it left any and
/// runs no longer.
pub fn restore_due(dir: &Path) -> Option<String> {
    let file = open(dir).ok()?;
    lines(dir, &file).ok()?.restore
}

/// Adds to a sentence which command restores the settings that a run has left.
fn with_restore(sentence: String, restore: Option<&str>) -> String {
    match restore {
        Some(command) => format!("{sentence}; {}", not_restored(command)),
        None => sentence,
    }
}

/// Says which command restores settings.
pub fn not_restored(command: &str) -> String {
    format!("the run's settings were not restored: run `{}`", one_line(command))
}

/// Opens a journal, and locks it: NFS does so only with a file that can be written (flock(2)).
pub(super) fn open(dir: &Path) -> Result<File, RecordError> {
    let path = dir.join(JOURNAL_FILE);
    let file = match open_file_to_lock(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(RecordError::Refused(format!(
                "{} is not the directory of an unfinished run, since it has no {JOURNAL_FILE}: \
                 name one such as .NAME.partial-PID",
                shown(dir)
            )));
        }
        opened => opened.map_err(|e| RecordError::reading(&path, e))?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // A file system without locks.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(RecordError::Refused(format!(
                "the run that writes {} is still running, or another `wiregauge recover` is: wait \
                 until it ends",
                shown(dir)
            )));
        }
        Err(error) => return Err(RecordError::reading(&path, error.into())),
    }
    let length = file.metadata().map_err(|e| RecordError::reading(&path, e))?.len();
    ensure!(length <= LONGEST, "{} has {length} bytes, above the limit of {LONGEST}", shown(&path));
    Ok(file)
}

/// The lines of a journal, as far as they go.
#[derive(Default)]
struct Lines {
    record: Option<Record>,
    rounds: Vec<RoundLine>,
    /// Why the clock is not to be believed.
    clock: Option<String>,
    /// The command that restores settings and has not been run.
    restore: Option<String>,
    is_empty: bool,
}

/// Reads the lines of a journal. The last one may have been written in part, without its line feed;
/// any other that is not as it was written is refused.
fn lines(dir: &Path, file: &File) -> Result<Lines, RecordError> {
    let path = dir.join(JOURNAL_FILE);
    let mut all = Lines { is_empty: true, ..Lines::default() };
    let mut sum = String::new();
    // The file may grow while it is read.
    let mut lines = BufReader::new(file.take(LONGEST));
    for number in 1.. {
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).map_err(|e| RecordError::reading(&path, e))?;
        all.is_empty &= line.is_empty();
        // Without its end it was written in part.
        let Some((b'\n', line)) = line.split_last() else { break };
        let refused = || {
            let sentence = format!(
                "{} is damaged in line {number}, so nothing was recovered and nothing changed: \
                 restore it from a copy",
                shown(&path)
            );
            RecordError::Refused(with_restore(sentence, all.restore.as_deref()))
        };
        match unsealed(&mut sum, line).ok_or_else(refused)? {
            Line::Record(found) => all.record = Some(*found),
            Line::Round(round) => {
                all.clock.clone_from(&round.saved.clock_fault);
                all.rounds.push(*round);
            }
            Line::Clock(fault) => all.clock = Some(fault),
            Line::Restore(due) => all.restore = due,
        }
    }
    Ok(all)
}

/// Checks that the lines of a journal give a record.
fn read(dir: &Path, all: Lines) -> Result<(Left, Vec<RoundLine>), RecordError> {
    let Lines { record, rounds, clock, restore, is_empty } = all;
    let record = record.ok_or_else(|| {
        let (path, dir) = (shown(&dir.join(JOURNAL_FILE)), shown(dir));
        if is_empty || restore.is_some() {
            format!(
                "{path} has no record, since the run ended before its first round: delete {dir}"
            )
        } else {
            format!("{path} is damaged: its first line is not a record")
        }
    })?;
    ensure!(
        clock.is_none(),
        "the times in {} are wrong, so no record is made of them: {}",
        shown(dir),
        clock.unwrap_or_default()
    );
    Ok((Left { record, restore }, rounds))
}

/// The text around the checksum of a line.
const SEAL: [&str; 2] = ["{\"sha256\":\"", "\","];

/// The checksum of a line: of its text, and of the checksum of the line before, so that no line can
/// be missing.
fn checksum(before: &str, text: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(before.as_bytes());
    context.update(text);
    hex::encode(context.finish())
}

/// The line of a journal that holds this JSON object. Its checksum takes the place of `sum`, that
/// of the line before.
pub fn sealed(sum: &mut String, text: &str) -> String {
    *sum = checksum(sum, text.as_bytes());
    // An object begins with a brace.
    format!("{}{sum}{}{}\n", SEAL[0], SEAL[1], text.get(1..).unwrap_or_default())
}

/// What a line holds, if it is as it was written behind the line of the checksum `sum`.
fn unsealed(sum: &mut String, line: &[u8]) -> Option<Line> {
    let rest = line.strip_prefix(SEAL[0].as_bytes())?;
    let (found, rest) = rest.split_at_checked(2 * SHA256.output_len())?;
    let text = [b"{", rest.strip_prefix(SEAL[1].as_bytes())?].concat();
    *sum = checksum(sum, &text);
    if found != sum.as_bytes() {
        return None;
    }
    serde_json::from_slice(&text).ok()
}
