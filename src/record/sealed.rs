//! That `samples.parquet` is the file which the record was made with.
//!
//! The format's own checksums would be one for each page; the library that writes it makes none.
//! The hash of the whole file stands in the record, so that no bit of it can change unnoticed.

use super::error::RecordError;
use super::sample_reader::SampleReader;
use super::schema::{Record, SamplesFile};
use crate::host::open_file;
use ring::digest::{Context, SHA256};
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// What `samples.parquet` holds, read from its beginning.
pub(super) fn read(path: &Path) -> io::Result<SamplesFile> {
    let mut file = open_file(path)?;
    let (mut context, mut bytes) = (Context::new(&SHA256), 0);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => {
                context.update(&piece[..length]);
                bytes += length as u64;
            }
        }
    }
    Ok(SamplesFile { bytes, sha256: hex::encode(context.finish()) })
}

/// Checks the samples of a run directory against its record, where it has them: older records do
/// not say their hash.
pub(super) fn check(path: &Path, record: &Record) -> Result<(), RecordError> {
    // The figures can be shown without.
    let is_gone = path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if is_gone {
        return Ok(());
    }
    if let Some(written) = &record.samples {
        let found = read(path).map_err(|e| RecordError::reading(path, e))?;
        let differs = "it was changed since its record was written: their SHA-256 differ";
        ensure!(found == *written, RecordError::samples(path, differs));
    }
    let mut rows = SampleReader::open(path)?.rows_by_round()?;
    for (run, round) in record.runs.iter().flat_map(|run| run.rounds.iter().map(move |r| (run, r)))
    {
        let found = rows.remove(&(run.index, round.index)).unwrap_or(0);
        let (label, said, round) = (&run.label, round.samples, round.index);
        let why = || format!("round {round} of {label} has {found} rows, and {said} in the record");
        ensure!(found == said, RecordError::samples(path, why()));
    }
    let unknown = |((run, round), rows)| {
        let why =
            format!("it has {rows} rows of round {round} of run {run}, unknown to the record");
        Err(RecordError::samples(path, why))
    };
    rows.into_iter().find(|(_, rows)| *rows > 0).map_or(Ok(()), unknown)
}
