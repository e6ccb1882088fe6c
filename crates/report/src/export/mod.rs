//! A run directory in the formats that other programs read.
//!
//! Takes a run directory; gives one file or stream. Memory is bounded by a row group of the samples
//! and the record, however long the run was. `docs/export.md` describes what comes out.

mod csv;
mod hlog;
mod json;
mod number;
mod openmetrics;
mod parquet;
mod rows;
mod selection;
mod table;
mod trace;

pub use hlog::NEVER_NS;
pub use rows::Observable;
pub use selection::Selection;
pub use table::Rows;
pub use trace::MOST_MESSAGES;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use thiserror::Error;
use wiregauge_base::options::named_enum;
use wiregauge_base::threads;
use wiregauge_figures::record::directory::publish;
use wiregauge_figures::record::{RecordError, read_record};

named_enum! {
    /// What an export is written as.
    pub enum Format {
        /// Comma-separated values, lines end in LF. What is missing is an empty field, what is
        /// infinite `inf` or `-inf`.
        Csv = "csv",
        /// One object: `record` as in `record.json`, `samples` as an array of objects. What is
        /// missing is `null`, what is infinite the string `"inf"` or `"-inf"`.
        Json = "json",
        /// The same columns. What is missing is null.
        Parquet = "parquet",
        /// An HdrHistogram interval log: a histogram for each round and metric, in nanoseconds.
        Hlog = "hlog",
        /// OpenMetrics text: the figures of the record, in base units.
        Openmetrics = "openmetrics",
        /// A Chrome trace of one round, for Perfetto.
        Trace = "trace",
    }
}

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A part that the record does not have, or that the format does not take: a sentence.
    #[error("{0}")]
    Selection(String),
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

/// Exports to a new file, or to standard output if no file is named.
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
    selection.check_format(format)?;
    let record = read_record(dir)?;
    selection.check(dir, &record, format)?;
    let failed = |source| ExportError::Write { path: name.to_path_buf(), source };
    let rows = selection.rows;
    let mut out = BufWriter::new(sink);
    match format {
        Format::Csv => {
            csv::head(rows, &mut out).map_err(failed)?;
            let chosen = selection.open(dir, &record)?;
            chosen.each(|part| csv::body(rows, part, &mut out).map_err(failed))?;
        }
        Format::Json => {
            json::head(&record, &mut out).map_err(failed)?;
            let mut separator = "\n";
            let chosen = selection.open(dir, &record)?;
            chosen.each(|part| json::body(rows, part, &mut separator, &mut out).map_err(failed))?;
            json::foot(&mut out).map_err(failed)?;
        }
        Format::Parquet => {
            let mut writer = parquet::Writer::new(rows, &mut out).map_err(failed)?;
            let chosen = selection.open(dir, &record)?;
            chosen.each(|part| writer.group(part).map_err(failed))?;
            writer.finish().map_err(failed)?;
        }
        Format::Hlog => {
            // Its histograms are those of the figures.
            let figures = Selection { with_warmup: false, ..selection.of_all_metrics() };
            let chosen = figures.open(dir, &record)?;
            with_stack(|| hlog::write(&record, chosen, &mut out, failed))
                .map_err(failed)
                .flatten()?;
        }
        Format::Openmetrics => openmetrics::write(&record, selection, &mut out).map_err(failed)?,
        Format::Trace => trace::write(dir, &record, selection, &mut out, failed)?,
    }
    out.flush().map_err(failed)
}

/// Bytes of stack that the compression of a histogram gets: it moves tables of 217 KiB over the
/// stack, and the first thread may have as little as its user allows (`ulimit -s`).
const STACK_BYTES: usize = 2 << 20;

/// Does something on a thread with a stack that is large enough.
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let purpose = "write an export";
        let thread = threads::spawn_scoped_with_stack(purpose, STACK_BYTES, scope, work)?;
        thread.join().map_err(|panic| resume_unwind(panic))
    })
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
