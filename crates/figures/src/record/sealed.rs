//! Verifies that `samples.parquet` is the file that the record was made with.
//!
//! The record has the SHA-256 of the whole file, so that no bit of it can change unnoticed. The
//! format has checksums for each page, but the library that writes it makes none. What is hashed is
//! what the program writes, never what it reads back: a file that changed on the disk would
//! otherwise be sealed as it then is.

use super::against_samples;
use super::error::{RecordError, shown};
use super::sample_reader::SampleReader;
use super::schema::{Record, SamplesFile};
use ring::digest::{Context, SHA256, digest};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use wiregauge_host::open_file;

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// A file that hashes what is written to it.
pub(super) struct Hashed {
    file: File,
    bytes: u64,
    /// All of it.
    whole: Context,
    /// The bytes since the last [`Hashed::part`].
    part: Context,
}

impl Hashed {
    pub(super) fn new(file: File) -> Hashed {
        Hashed { file, bytes: 0, whole: Context::new(&SHA256), part: Context::new(&SHA256) }
    }

    /// The SHA-256, in hex, of what was written since the last call.
    pub(super) fn part(&mut self) -> String {
        let part = std::mem::replace(&mut self.part, Context::new(&SHA256));
        hex::encode(part.finish())
    }

    /// The file, and the length and hash of all that was written to it.
    pub(super) fn finish(self) -> (File, SamplesFile) {
        let sha256 = hex::encode(self.whole.finish());
        (self.file, SamplesFile { bytes: self.bytes, sha256 })
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let bytes = bytes.get(..written).unwrap_or(bytes);
        self.whole.update(bytes);
        self.part.update(bytes);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Computes the length and the hash of what a reader gives.
pub(super) fn read_all(mut source: impl Read) -> io::Result<SamplesFile> {
    let mut context = Context::new(&SHA256);
    let mut bytes = 0;
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece)? {
            0 => break,
            length => {
                context.update(&piece[..length]);
                bytes += length as u64;
            }
        }
    }
    Ok(SamplesFile { bytes, sha256: hex::encode(context.finish()) })
}

/// Finds out in what `samples.parquet` differs from the file that was written. The length comes
/// first: hashing a file that is longer than any run makes it would take long.
fn difference(path: &Path, written: &SamplesFile) -> Result<Option<String>, RecordError> {
    let failed = |e| RecordError::reading(path, e);
    let file = open_file(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    ensure!(length > 0 || written.bytes == 0, RecordError::empty_samples(path));
    if length != written.bytes {
        let said = written.bytes;
        return Ok(Some(format!("it has {length} bytes, but {said} in record.json")));
    }
    // The file may grow while it is read.
    let found = read_all(file.take(written.bytes + 1)).map_err(failed)?;
    let differs = "its SHA-256 is not the one in record.json, so one of the two files was replaced";
    Ok((found != *written).then(|| differs.to_string()))
}

/// Checks that the file of a run that has just ended holds what the run has written.
pub(super) fn check_written(path: &Path, written: &SamplesFile) -> Result<(), String> {
    let difference = difference(path, written).map_err(|e| e.to_string())?;
    ensure!(
        difference.is_none(),
        "{} is not as it was written: the disk or another program changed it",
        shown(path)
    );
    Ok(())
}

/// The SHA-256 of a text in hexadecimal digits.
pub(super) fn hash(text: &[u8]) -> String {
    hex::encode(digest(&SHA256, text))
}

/// Checks the samples of a run directory against its record: their hash, which older records lack,
/// and the rows of each round.
pub(super) fn check(path: &Path, record: &Record) -> Result<(), RecordError> {
    // The figures are in the record and can be shown without samples.
    let is_gone = path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if is_gone {
        return Ok(());
    }
    if let Some(written) = &record.samples {
        let difference = difference(path, written)?;
        difference.map_or(Ok(()), |why| Err(RecordError::samples(path, why)))?;
    }
    check_content(path, record)
}

/// Checks how many samples each round has, and what the figures say of them, against the record.
pub(super) fn check_content(path: &Path, record: &Record) -> Result<(), RecordError> {
    check_rows(path, record)?;
    against_samples::check(path, record)
}

/// Checks how many samples each round has.
fn check_rows(path: &Path, record: &Record) -> Result<(), RecordError> {
    let mut rows = SampleReader::open(path)?.rows_by_round()?;
    for (run, round) in record.runs.iter().flat_map(|run| run.rounds.iter().map(move |r| (run, r)))
    {
        let found = rows.remove(&(run.index, round.index)).unwrap_or(0);
        let (label, said, round) = (&run.label, round.samples, round.index);
        let why =
            || format!("round {round} of {label} has {found} rows, but {said} in record.json");
        ensure!(found == said, RecordError::samples(path, why()));
    }
    let unknown = |((run, round), rows)| {
        let why =
            format!("it has {rows} rows of round {round} of run {run}, which record.json lacks");
        Err(RecordError::samples(path, why))
    };
    rows.into_iter().find(|(_, rows)| *rows > 0).map_or(Ok(()), unknown)
}
