//! The run directory: `record.json`, `samples.parquet`, `report.html`.
//!
//! It is written under a hidden name beside its own and renamed when all of it is on the disk, so
//! that nobody ever sees half a record. `.NAME.partial-PID` is what a killed run leaves.

use super::error::{RecordError, quoted, shown};
use super::journal::{self, Completed, JOURNAL_FILE, Journal, Saved, SavedRound, Stored};
use super::samples::SampleWriter;
use super::schema::{Record, SCHEMA, SamplesFile, VERSION};
use super::sealed::Hashed;
use super::upgrade::upgrade;
use super::{plausible, sealed};
use jiff::Timestamp;
use rustix::fs::{CWD, RenameFlags, renameat_with, statvfs};
use rustix::io::Errno;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wiregauge_base::units::Bytes;
use wiregauge_host::open_file;
use wiregauge_plan::host_spec::typed_path;
use wiregauge_sample::RoundSamples;

/// The record's file in a run directory.
pub const RECORD_FILE: &str = "record.json";
/// The samples' file in a run directory.
pub const SAMPLES_FILE: &str = "samples.parquet";
/// The report's file in a run directory.
pub const REPORT_FILE: &str = "report.html";
/// Where run directories go that nobody named.
pub const DEFAULT_BASE: &str = "wiregauge-runs";
/// What the stamps of `samples.parquet` count from, as its metadata says.
pub const EPOCH: &str = "nanoseconds since the epoch of the run's clock; see docs/record.md";

/// Largest `record.json` that is read: a run of a case takes about 10 KB, so thousands of them.
pub const RECORD_LIMIT: u64 = 64 << 20;
/// Most runs of one second and one name.
const NAMES_LIMIT: u32 = 1000;
/// Longest name part that is taken over into a directory's name: file names end at 255 bytes.
const NAME_LIMIT: usize = 100;

/// Makes run directories.
pub struct RunDirectory;

impl RunDirectory {
    /// Prepares the directory that will appear at `path`, which must not exist.
    ///
    /// Whatever can be refused is refused here, before the run: an existing target, a parent that
    /// cannot be written, and less free space than `need`.
    pub fn create(path: &Path, need: Bytes) -> Result<Writer, RecordError> {
        let name = path.file_name().ok_or_else(|| {
            let path = shown(path);
            format!("'{path}' is not the path of a directory: use one that ends in a plain name")
        })?;
        let named = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = named.unwrap_or(Path::new(".")).to_path_buf();
        ensure!(path.symlink_metadata().is_err(), RecordError::Exists(path.into()));
        let refused = |source| RecordError::Parent { parent: parent.clone(), source };
        fs::create_dir_all(&parent).map_err(refused)?;
        let space = statvfs(&parent).map_err(|e| refused(e.into()))?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        ensure!(
            free >= need.0,
            "{} has {free} bytes free and the run may write {}; free some, name a directory on \
             another disk, or measure fewer messages",
            shown(&parent),
            need.0
        );
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".partial-{}", std::process::id()));
        let hidden = parent.join(hidden);
        fs::create_dir(&hidden).map_err(refused)?;
        let partial = Hidden::open(hidden, false)?;
        let target = path.with_file_name(name);
        let file = partial.path.join(SAMPLES_FILE);
        let sink = File::create_new(&file).map_err(|e| RecordError::writing(&file, e))?;
        let samples = Some(SampleWriter::new(Hashed::new(sink), &file, EPOCH)?);
        let journal = Some(Journal::create(&partial.path)?);
        let partial = Some(partial);
        Ok(Writer {
            parent,
            partial,
            target,
            samples,
            sealed: None,
            journal,
            completed: None,
            stem: None,
        })
    }

    /// Takes over the directory `.NAME.partial-PID` that a run has left, with what it had saved.
    /// The samples are complete then, and [`Writer::finish`] lets the directory appear as NAME.
    pub fn recover(path: &Path) -> Result<(Writer, Saved), RecordError> {
        let target = target_of_hidden(path)?;
        let parent = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => parent.to_path_buf(),
            None => PathBuf::from("."),
        };
        let (saved, completed) = journal::complete(path, &path.join(SAMPLES_FILE), EPOCH)?;
        let partial = Some(Hidden::open(path.to_path_buf(), true)?);
        let sealed = Some(completed.sealed.clone());
        let (stem, completed) = (Some(target.clone()), Some(completed));
        let (samples, journal) = (None, None);
        Ok((Writer { parent, partial, target, samples, sealed, journal, completed, stem }, saved))
    }

    /// Lets the directory `.NAME.partial-PID` appear whose record is complete, since its run failed
    /// at nothing but that; `None`: it has no such record.
    pub fn recover_complete(path: &Path) -> Result<Option<(Record, PathBuf)>, RecordError> {
        let target = target_of_hidden(path)?;
        let lock = journal::open(path)?;
        // The record is written after all else.
        let is_whole = path.join(SAMPLES_FILE).exists();
        let Some(record) = read_record(path).ok().filter(|_| is_whole) else { return Ok(None) };
        let kept = appear(path, target.clone(), Some(&target))?;
        let _ = fs::remove_file(kept.join(JOURNAL_FILE));
        drop(lock);
        sync_directory(
            kept.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )?;
        Ok(Some((record, kept)))
    }

    /// Prepares `BASE/TIME-NAME`, with `-2`, `-3` ... after it where that is taken.
    pub fn create_named(
        base: &Path,
        name: &str,
        started: Timestamp,
        need: Bytes,
    ) -> Result<Writer, RecordError> {
        let stem = base.join(default_name(name, started));
        for attempt in 1..NAMES_LIMIT {
            match RunDirectory::create(&numbered(&stem, attempt), need) {
                Ok(writer) => return Ok(Writer { stem: Some(stem), ..writer }),
                Err(RecordError::Exists(_)) => {}
                Err(RecordError::Parent { source, .. })
                    if source.kind() == io::ErrorKind::AlreadyExists && base.is_dir() => {}
                Err(other) => return Err(other),
            }
        }
        Err(RecordError::Exists(stem))
    }
}

/// The path at which the directory appears that a run has left under a hidden name.
fn target_of_hidden(path: &Path) -> Result<PathBuf, RecordError> {
    let hidden = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix('.')?.rsplit_once(".partial-").map(|(name, _)| name));
    let name = hidden.filter(|name| !name.is_empty()).ok_or_else(|| {
        format!(
            "{} is not the directory of an unfinished run: name one such as .NAME.partial-PID",
            shown(path)
        )
    })?;
    Ok(path.with_file_name(name))
}

/// Most entries of a directory among which runs are looked for that have left settings.
const MAX_ENTRIES: usize = 10_000;

/// Finds the runs in the directory of `path` that were killed before they restored their settings:
/// the directory of each, and the command that does it.
pub fn unrestored_beside(path: &Path) -> Vec<(PathBuf, String)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let dir = entry.path();
        let due = target_of_hidden(&dir).ok().and_then(|_| journal::restore_due(&dir));
        found.extend(due.map(|command| (dir, command)));
    }
    found
}

/// The path of the run of this number among those of one second and one name.
fn numbered(stem: &Path, number: u32) -> PathBuf {
    let mut name = stem.as_os_str().to_os_string();
    if number > 1 {
        name.push(format!("-{number}"));
    }
    name.into()
}

/// `20261121T055243Z-survey`: sorts by time and needs no quotes in a shell.
pub fn default_name(name: &str, started: Timestamp) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().take(NAME_LIMIT).map(plain).collect();
    format!("{}-{name}", started.strftime("%Y%m%dT%H%M%SZ"))
}

/// The hidden directory, removed when this is dropped unless there is something to recover; nobody
/// could be told of an error then. A path that was given as a relative one stays so: an absolute
/// one needs access to every folder above.
struct Hidden {
    path: PathBuf,
    /// The directory itself: one that cleans temporary files may rename it.
    dir: File,
    is_recoverable: bool,
}

impl Hidden {
    /// Opens the directory, to find it again wherever it is moved.
    fn open(path: PathBuf, is_recoverable: bool) -> Result<Hidden, RecordError> {
        let dir = File::open(&path).map_err(|e| RecordError::writing(&path, e))?;
        Ok(Hidden { path, dir, is_recoverable })
    }

    /// Finds the path that the directory has now.
    fn find(&mut self) -> Result<&Path, RecordError> {
        let own = self.dir.metadata().map_err(|e| RecordError::writing(&self.path, e))?;
        let is_here = |path: &Path| {
            path.metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == (own.dev(), own.ino()))
        };
        if !is_here(&self.path) {
            // A thread may have descriptors of its own.
            let link = format!("/proc/thread-self/fd/{}", self.dir.as_raw_fd());
            let found = fs::read_link(link).ok().filter(|path| is_here(path));
            self.path = found.ok_or_else(|| RecordError::Disk {
                sentence: format!(
                    "{} was removed while the run went on, so nothing can be kept: name a \
                     directory that is not cleaned of temporary files (--out)",
                    shown(&self.path)
                ),
                kind: io::ErrorKind::NotFound,
            })?;
        }
        Ok(&self.path)
    }

    /// Leaves it behind when it is dropped.
    fn leave_behind(&mut self) -> &Path {
        self.is_recoverable = true;
        &self.path
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let is_kept = self.is_recoverable;
        if let Some(path) = self.find().ok().filter(|_| !is_kept) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// A run directory that is being written. Dropped before [`Writer::finish`] it keeps the saved
/// rounds for [`RunDirectory::recover`]; without a saved round it removes the directory.
pub struct Writer {
    parent: PathBuf,
    /// `None` once an error has made the record useless.
    partial: Option<Hidden>,
    target: PathBuf,
    /// `None` when their file is complete, and after an error.
    samples: Option<SampleWriter<Hashed>>,
    /// Length and hash of what was written to their file, once it is complete.
    sealed: Option<SamplesFile>,
    /// `None` after an error.
    journal: Option<Journal>,
    /// The samples of a run that is recovered, which are complete.
    completed: Option<Completed>,
    /// What is counted on from, where nobody named the directory.
    stem: Option<PathBuf>,
}

impl Writer {
    /// Saves the record without rounds, before the first and when cases have been added.
    pub fn begin(&mut self, record: &Record) -> Result<(), RecordError> {
        self.write(|writer, dir| writer.journal()?.record(dir, record))
    }

    /// Adds the samples of a round. After an error nothing more is written.
    pub fn append(&mut self, round: &RoundSamples) -> Result<(), RecordError> {
        self.write(|writer, _| writer.samples()?.append(round))
    }

    /// Saves the round whose samples were added last: from now on it can be recovered.
    pub fn save(&mut self, round: &SavedRound) -> Result<(), RecordError> {
        self.write(|writer, dir| {
            let samples = writer.samples()?;
            let (bytes, footer) = samples.save()?;
            let stored = Stored { bytes, footer, sha256: samples.sink().part() };
            writer.journal()?.round(dir, round, &stored)
        })?;
        self.partial.as_mut().map(Hidden::leave_behind);
        Ok(())
    }

    /// Notes the shell command that restores the settings of the run, before they are changed;
    /// `None`: it has been run.
    pub fn note_restore(&mut self, due: Option<&str>) -> Result<(), RecordError> {
        self.write(|writer, dir| writer.journal()?.restore(dir, due))
    }

    /// Says that the times of all rounds are wrong, and why: `recover` refuses to make a record of
    /// them. Gives what is left of the run; `None`: nothing was saved.
    pub fn refuse_clock(&mut self, why: &str) -> Option<PathBuf> {
        let noted = self.write(|writer, dir| writer.journal()?.clock(dir, why));
        let partial = self.partial.as_ref().filter(|partial| partial.is_recoverable);
        noted.ok().and(partial).map(|partial| partial.path.clone())
    }

    fn samples(&mut self) -> Result<&mut SampleWriter<Hashed>, RecordError> {
        self.samples.as_mut().ok_or_else(|| given_up(&self.target))
    }

    fn journal(&mut self) -> Result<&mut Journal, RecordError> {
        self.journal.as_mut().ok_or_else(|| given_up(&self.target))
    }

    /// Writes something into the hidden directory; an error gives the rest up.
    fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Writer, &Path) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let mut partial = self.partial.take().ok_or_else(|| given_up(&self.target))?;
        let found = partial.find().map(Path::to_path_buf).inspect_err(|_| self.give_up());
        match write(self, &found?) {
            Ok(written) => {
                self.partial = Some(partial);
                Ok(written)
            }
            Err(error) => {
                self.give_up();
                Err(match partial.is_recoverable {
                    true => error.with(&format!(
                        "the rounds before are saved: `wiregauge recover {}` makes their record",
                        typed_path(&partial.path)
                    )),
                    false => error.with("nothing of the record was kept"),
                })
            }
        }
    }

    /// Closes the files: nothing more is written.
    fn give_up(&mut self) {
        (self.samples, self.journal) = (None, None);
    }

    /// Where the samples lie until the directory appears.
    pub fn samples_file(&self) -> PathBuf {
        if let Some(completed) = &self.completed {
            return completed.path.clone();
        }
        let partial = self.partial.as_ref().map(|partial| partial.path.join(SAMPLES_FILE));
        partial.unwrap_or_else(|| self.target.join(SAMPLES_FILE))
    }

    /// Completes the samples' file, and says where it lies until the directory appears: a report
    /// is made from the samples as their readers will see them.
    pub fn close_samples(&mut self) -> Result<PathBuf, RecordError> {
        let samples = self.samples.take().ok_or_else(|| given_up(&self.target))?;
        self.write(|writer, dir| {
            let path = dir.join(SAMPLES_FILE);
            let (file, sealed) = samples.finish()?.finish();
            file.sync_all().map_err(|e| RecordError::writing(&path, e))?;
            writer.sealed = Some(sealed);
            Ok(path)
        })
    }

    /// Writes what is left, waits until all is on the disk, and lets the directory appear.
    pub fn finish(
        mut self,
        record: &Record,
        page: impl FnOnce(&Record) -> String,
    ) -> Result<PathBuf, RecordError> {
        if self.samples.is_some() {
            self.close_samples()?;
        }
        // Where they are by now.
        self.write(|_, _| Ok(()))?;
        let samples = self.samples_file();
        let sealed = self.sealed.take().ok_or_else(|| given_up(&self.target))?;
        if let Err(why) = sealed::check_written(&samples, &sealed) {
            return Err(self.unreadable(&why));
        }
        let mut record = Record { samples: Some(sealed), ..record.clone() };
        let json = match readable(&record, &samples) {
            Ok(json) => json,
            Err(why) => {
                let why = format!("the record would not be readable ({why})");
                return Err(self.unreadable(&why));
            }
        };
        record.sha256 = sealed::hash(json.as_bytes());
        let html = page(&record);
        self.write(|writer, dir| {
            writer.put_recovered(dir)?;
            // The record comes last: where it is whole, all is.
            write_file(&dir.join(REPORT_FILE), html.as_bytes())?;
            write_file(&dir.join(RECORD_FILE), json.as_bytes())?;
            sync_directory(dir)
        })?;
        let dir = self.partial.as_mut().map(Hidden::leave_behind).map(Path::to_path_buf);
        let dir = dir.ok_or_else(|| given_up(&self.target))?;
        let kept = appear(&dir, mem::take(&mut self.target), self.stem.as_deref())?;
        // All that it says is in the record now; left behind it does no harm.
        let _ = fs::remove_file(kept.join(JOURNAL_FILE));
        sync_directory(&self.parent)?;
        Ok(kept)
    }

    /// Why no record is written, and where the samples stay.
    fn unreadable(&mut self, why: &str) -> RecordError {
        let has_rounds = self.partial.as_ref().is_some_and(|partial| partial.is_recoverable);
        let dir = self.partial.as_mut().map(Hidden::leave_behind);
        let dir = dir.map(typed_path).unwrap_or_default();
        let what = if has_rounds && self.completed.is_none() {
            format!("`wiregauge recover {dir}` makes a record of the rounds that are whole")
        } else {
            format!("its samples are kept in {dir}")
        };
        RecordError::Disk { sentence: format!("{why}; {what}"), kind: io::ErrorKind::InvalidData }
    }

    /// Puts the samples of a recovered run in their place, and removes what the run may have begun
    /// to write.
    fn put_recovered(&self, dir: &Path) -> Result<(), RecordError> {
        let Some(completed) = &self.completed else { return Ok(()) };
        for file in [RECORD_FILE, REPORT_FILE].map(|name| dir.join(name)) {
            journal::remove_if_there(&file).map_err(|e| RecordError::writing(&file, e))?;
        }
        let samples = dir.join(SAMPLES_FILE);
        fs::rename(&completed.path, &samples).map_err(|e| RecordError::writing(&samples, e))
    }
}

/// Lets a directory appear whose record is complete; where. A run that named itself in the second
/// of another counts on from `stem`.
fn appear(
    partial: &Path,
    mut target: PathBuf,
    stem: Option<&Path>,
) -> Result<PathBuf, RecordError> {
    let mut appeared = publish(partial, &target);
    for attempt in 2..NAMES_LIMIT {
        let Some(stem) = stem.filter(|_| matches!(appeared, Err(RecordError::Exists(_)))) else {
            break;
        };
        target = numbered(stem, attempt);
        appeared = publish(partial, &target);
    }
    let dir = typed_path(partial);
    let how = format!("the record is complete, and `wiregauge recover {dir}` publishes it");
    match appeared {
        Ok(()) => Ok(target),
        // Nothing was asked wrongly: there was no such directory when the run began.
        Err(RecordError::Exists(path)) => Err(RecordError::Disk {
            sentence: format!(
                "{} appeared while the run went on, and is never overwritten; {how} as another",
                shown(&path)
            ),
            kind: io::ErrorKind::AlreadyExists,
        }),
        Err(other) => Err(other.with(&how)),
    }
}

fn given_up(target: &Path) -> RecordError {
    let path = shown(target);
    let sentence = format!(
        "the record {path} was abandoned after an earlier error; nothing more is written to it"
    );
    RecordError::Disk { sentence, kind: io::ErrorKind::Other }
}

/// The record as text that [`read_record`] takes, with these samples: all that a reader would
/// refuse is found here. A NaN or infinity where the schema has a plain number, for one, would
/// become `null` and lock the record for ever.
fn readable(record: &Record, samples: &Path) -> Result<String, String> {
    let mut json = serde_json::to_string_pretty(record).map_err(|e| e.to_string())?;
    json.push('\n');
    let size = json.len() as u64;
    ensure!(size <= RECORD_LIMIT, "it has {size} bytes, above the limit of {RECORD_LIMIT}");
    let read = read(json.as_bytes()).map_err(|e| e.to_string())?;
    plausible::check(&read)?;
    sealed::check_content(samples, &read).map_err(|e| e.to_string())?;
    Ok(json)
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), RecordError> {
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(|e| RecordError::writing(path, e))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), RecordError> {
    let sync = || File::open(path)?.sync_all();
    sync().map_err(|e| RecordError::writing(path, e))
}

/// Renames without ever replacing: an empty directory that somebody made meanwhile would
/// otherwise be taken over silently.
pub fn publish(partial: &Path, target: &Path) -> Result<(), RecordError> {
    match renameat_with(CWD, partial, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(RecordError::Exists(target.into())),
        // File systems without the flag (some network ones) get the nearest thing.
        Err(Errno::INVAL | Errno::NOSYS) if target.symlink_metadata().is_err() => {
            fs::rename(partial, target).map_err(|e| RecordError::writing(target, e))
        }
        Err(Errno::INVAL | Errno::NOSYS) => Err(RecordError::Exists(target.into())),
        Err(e) => Err(RecordError::writing(target, e.into())),
    }
}

/// Reads `record.json` of a run directory, and checks it against itself and against the samples
/// beside it.
pub fn read_record(dir: &Path) -> Result<Record, RecordError> {
    let path = dir.join(RECORD_FILE);
    let file = open_file(&path).map_err(|source| not_opened(dir, &path, source))?;
    let failed = |source| RecordError::reading(&path, source);
    let meta = file.metadata().map_err(failed)?;
    let mut text = Vec::new();
    // The file may grow while it is read.
    file.take(RECORD_LIMIT + 1).read_to_end(&mut text).map_err(failed)?;
    let (name, size) = (shown(&path), meta.len().max(text.len() as u64));
    let fits = text.len() as u64 <= RECORD_LIMIT;
    ensure!(fits, "{name} has {size} bytes, above the limit of {RECORD_LIMIT}");
    let record = Record { sha256: sealed::hash(&text), ..parse_record(&path, &text)? };
    sealed::check(&dir.join(SAMPLES_FILE), &record)?;
    Ok(record)
}

/// Reads the bytes of a `record.json`; `path` is how sentences name it.
pub fn parse_record(path: &Path, text: &[u8]) -> Result<Record, RecordError> {
    /// What is asked before anything else: whose file it is.
    #[derive(Deserialize)]
    struct Head {
        schema: Option<serde_json::Value>,
        version: Option<serde_json::Value>,
    }
    if text.trim_ascii().is_empty() {
        return Err(RecordError::Refused(format!("{} is empty: {INSTEAD}", shown(path))));
    }
    let head: Head = serde_json::from_slice(text).map_err(|e| RecordError::json(path, &e))?;
    let is_ours = head.schema.as_ref().and_then(|s| s.as_str()) == Some(SCHEMA);
    let found = head.schema.map_or("none".into(), |schema| quoted(&schema.to_string()));
    let name = shown(path);
    ensure!(found != "none", "{name} is no record: {INSTEAD}");
    ensure!(is_ours, "{name} has the schema {found}: expected \"{SCHEMA}\"");
    let record = match head.version.and_then(|v| v.as_u64()) {
        Some(found) if found > u64::from(VERSION) => Err(RecordError::Refused(format!(
            "{name} has version {found} of its schema and this build reads up to {VERSION}; read \
             it with the wiregauge that wrote it or a newer one"
        ))),
        Some(found) if found < u64::from(VERSION) => {
            let newer = serde_json::from_slice(text).map(|older| upgrade(older, found));
            let newer = newer.and_then(|newer| serde_json::to_vec(&newer));
            // The place would be one of the upgraded text.
            newer.and_then(|text| read(&text)).map_err(|e| RecordError::upgraded(path, found, &e))
        }
        _ => read(text).map_err(|e| RecordError::json(path, &e)),
    }?;
    plausible::check(&record).map_err(|why| RecordError::implausible(path, &why))?;
    Ok(record)
}

/// The one place where a record is read: a copy of the code for each kind of input has 400 kB.
fn read(text: &[u8]) -> serde_json::Result<Record> {
    serde_json::from_slice(text)
}

/// Why there is no `record.json` to open, as far as the directory shows it.
fn not_opened(dir: &Path, path: &Path, source: io::Error) -> RecordError {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let is_partial = name.contains(".partial-");
    let is_missing = source.kind() == io::ErrorKind::NotFound;
    match dir.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            RecordError::Refused(format!("{} does not exist: name a run directory", shown(dir)))
        }
        Ok(meta) if !meta.is_dir() => not_a_directory(dir, "it is a file"),
        Ok(_) if is_missing && is_partial => RecordError::Refused(format!(
            "{} was left by an interrupted run and has no record.json: `wiregauge recover {}` \
             makes one of the rounds that had ended",
            shown(dir),
            typed_path(dir)
        )),
        Ok(_) if is_missing => {
            let is_empty = dir.read_dir().is_ok_and(|mut entries| entries.next().is_none());
            let why = if is_empty { "it is empty" } else { "it holds no record.json" };
            not_a_directory(dir, why)
        }
        _ => RecordError::reading(path, source),
    }
}

/// What to do about a place that holds no record.
const INSTEAD: &str =
    "use a run directory, or `wiregauge recover DIR` for one that an interrupted run left";

fn not_a_directory(dir: &Path, why: &str) -> RecordError {
    RecordError::Refused(format!("{} is not a run directory: {why}; {INSTEAD}", shown(dir)))
}
