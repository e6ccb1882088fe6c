//! A run directory's samples in the formats that other programs read: CSV, JSON, Parquet.
//!
//! Takes a run directory; gives one file or stream, a row a message. Memory is bounded by a row
//! group of the samples and the record, however long the run was.

use crate::options::named_enum;
use crate::record::directory::{EPOCH, SAMPLES_FILE, publish};
use crate::record::{RecordError, SampleReader, SampleWriter, read_record};
use crate::sample::{Flags, RoundSamples, Sample};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

named_enum! {
    /// What an export is written as.
    pub enum Format {
        /// RFC 4180, one row a message, the header names the units. A stamp that is missing is an
        /// empty field, an infinite one `inf` or `-inf`.
        Csv = "csv",
        /// One object: `record` as in `record.json`, `samples` as an array of objects. A stamp that
        /// is missing is `null`, an infinite one the string `"inf"` or `"-inf"`.
        Json = "json",
        /// The columns of `samples.parquet`. A stamp that is missing is null.
        Parquet = "parquet",
    }
}

/// Which samples are exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Numbers of the runs; all where empty.
    pub runs: Vec<u32>,
    /// Leaves the warm-up out.
    pub without_warmup: bool,
}

impl Selection {
    /// The part of a round that is selected, `None` where nothing is.
    fn of(&self, mut part: RoundSamples) -> Option<RoundSamples> {
        if !self.runs.is_empty() && !self.runs.contains(&part.run) {
            return None;
        }
        if self.without_warmup {
            part.samples.retain(|s| !s.flags.has(Flags::WARMUP));
        }
        (!part.samples.is_empty()).then_some(part)
    }
}

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A run that the record does not have.
    #[error("run {run} is not in {dir}: use {allowed}")]
    NoRun {
        /// The run directory.
        dir: PathBuf,
        /// What was asked for.
        run: u32,
        /// In words: what there is.
        allowed: String,
    },
    /// The target is already there.
    #[error("{path} exists already and is never overwritten: name another file or move it")]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// The system's refusal.
    #[error("writing {path}: {source}")]
    Write {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Exports to a new file, or to standard output where there is none.
///
/// A file appears when it is whole. A reader of standard output that has had enough (`| head`)
/// ends the export without an error.
pub fn export(
    dir: &Path,
    format: Format,
    selection: &Selection,
    target: Option<&Path>,
) -> Result<(), ExportError> {
    match target {
        None => {
            let written =
                export_to(dir, format, selection, Path::new("standard output"), &mut io::stdout());
            if written.as_ref().is_err_and(broken_pipe) { Ok(()) } else { written }
        }
        Some(path) => export_file(dir, format, selection, path),
    }
}

/// Exports to any sink; `name` is how sentences name it.
pub fn export_to(
    dir: &Path,
    format: Format,
    selection: &Selection,
    name: &Path,
    sink: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let record = read_record(dir)?;
    let has = |run: u32| record.runs.iter().any(|r| r.index == run);
    if let Some(&run) = selection.runs.iter().find(|&&run| !has(run)) {
        let allowed = match record.runs.len() {
            0 => "none".to_string(),
            n => format!("0 to {}", n - 1),
        };
        return Err(ExportError::NoRun { dir: dir.to_path_buf(), run, allowed });
    }
    let mut reader = SampleReader::open(&dir.join(SAMPLES_FILE))?;
    let all = std::iter::from_fn(|| reader.next_part());
    let parts = all.filter_map(|part| part.map(|part| selection.of(part)).transpose());
    if format == Format::Parquet {
        return parquet(parts, name, sink);
    }
    let mut out = Out { sink: BufWriter::new(sink), name };
    if format == Format::Csv {
        csv(parts, &mut out)?;
    } else {
        let record = serde_json::to_string(&record).map_err(|e| out.failed(e.into()))?;
        json(parts, &record, &mut out)?;
    }
    out.sink.flush().map_err(|e| out.failed(e))
}

fn export_file(
    dir: &Path,
    format: Format,
    selection: &Selection,
    path: &Path,
) -> Result<(), ExportError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists { path: path.to_path_buf() },
        _ => ExportError::Write { path: path.to_path_buf(), source },
    };
    ensure!(path.symlink_metadata().is_err(), ExportError::Exists { path: path.to_path_buf() });
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial-{}", std::process::id()));
    let mut file = File::create_new(&partial).map_err(failed)?;
    let written = export_to(dir, format, selection, path, &mut file)
        .and_then(|()| file.sync_all().map_err(failed))
        .and_then(|()| publish(&partial, path).map_err(ExportError::from));
    // The partial has done its work, or none; if it stays, its name says what it is.
    let _ = fs::remove_file(&partial);
    written
}

fn broken_pipe(error: &ExportError) -> bool {
    let kind = match error {
        ExportError::Write { source, .. } => source.kind(),
        ExportError::Record(RecordError::Disk { kind, .. }) => *kind,
        _ => return false,
    };
    kind == io::ErrorKind::BrokenPipe
}

/// A part of a round.
type Part = Result<RoundSamples, RecordError>;

struct Out<'a, W: Write> {
    sink: W,
    name: &'a Path,
}

impl<W: Write> Out<'_, W> {
    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Write { path: self.name.to_path_buf(), source }
    }

    fn put(&mut self, text: fmt::Arguments<'_>) -> Result<(), ExportError> {
        self.sink.write_fmt(text).map_err(|e| self.failed(e))
    }
}

/// The header of the CSV. Lines end in CR LF (RFC 4180); no field needs quotes.
pub const CSV_HEADER: &str = "run,round,thread,sequence,size_bytes,intended_ns,submit_ns,send_ns,\
    receive_ns,complete_ns,flags";

fn csv<W: Write>(
    parts: impl Iterator<Item = Part>,
    out: &mut Out<'_, W>,
) -> Result<(), ExportError> {
    out.put(format_args!("{CSV_HEADER}\r\n"))?;
    for part in parts {
        let RoundSamples { run, round, samples } = part?;
        for sample in samples {
            let Sample { thread, sequence, size, flags: Flags(flags), .. } = sample;
            let stamp = |ns| Stamp { ns, missing: "", quote: "" };
            let [a, b, c, d, e] = sample.stamps().map(stamp);
            out.put(format_args!(
                "{run},{round},{thread},{sequence},{size},{a},{b},{c},{d},{e},{flags}\r\n"
            ))?;
        }
    }
    Ok(())
}

fn json<W: Write>(
    parts: impl Iterator<Item = Part>,
    record: &str,
    out: &mut Out<'_, W>,
) -> Result<(), ExportError> {
    out.put(format_args!("{{\"record\":{record},\n\"samples\":["))?;
    let mut separator = "\n";
    for part in parts {
        let RoundSamples { run, round, samples } = part?;
        for sample in samples {
            let Sample { thread, sequence, size, flags: Flags(flags), .. } = sample;
            let stamp = |ns| Stamp { ns, missing: "null", quote: "\"" };
            let [a, b, c, d, e] = sample.stamps().map(stamp);
            out.put(format_args!(
                "{separator}{{\"run\":{run},\"round\":{round},\"thread\":{thread},\
                 \"sequence\":{sequence},\
                 \"size_bytes\":{size},\"intended_ns\":{a},\"submit_ns\":{b},\
                 \"send_ns\":{c},\"receive_ns\":{d},\"complete_ns\":{e},\"flags\":{flags}}}"
            ))?;
            separator = ",\n";
        }
    }
    out.put(format_args!("\n]}}\n"))
}

fn parquet(
    parts: impl Iterator<Item = Part>,
    name: &Path,
    sink: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let mut writer = SampleWriter::new(sink, name, EPOCH)?;
    for part in parts {
        writer.append(&part?)?;
    }
    let failed = |source| ExportError::Write { path: name.to_path_buf(), source };
    writer.finish()?.flush().map_err(failed)
}

/// A stamp in the shortest decimals that read back as the same number: `{:?}`, which writes 2 as
/// `2.0` and 1e300 as that, so that no reader takes one stamp of a column for a whole number.
struct Stamp {
    ns: f64,
    /// What stands for NaN.
    missing: &'static str,
    /// What stands around an infinity, which is no number of strict JSON.
    quote: &'static str,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp { ns, missing, quote } = *self;
        match ns {
            _ if ns.is_nan() => f.write_str(missing),
            _ if ns.is_infinite() => write!(f, "{quote}{ns}{quote}"),
            _ => fmt::Debug::fmt(&ns, f),
        }
    }
}
