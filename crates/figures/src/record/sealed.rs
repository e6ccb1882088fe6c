//! Verifies that `samples.parquet` is the file that the record was made with.
//!
//! The record has the SHA-256 of the whole file, so that no bit of it can change unnoticed. The
//! format has checksums for each page, but the library that writes it makes none.

use super::error::RecordError;
use super::sample_reader::SampleReader;
use super::schema::{Record, SamplesFile};
use ring::digest::{Context, SHA256, digest};
use std::io::{self, Read};
use std::path::Path;
use wiregauge_host::open_file;

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// Computes the length and the hash of `samples.parquet`.
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
        let found = read(path).map_err(|e| RecordError::reading(path, e))?;
        let differs =
            "its SHA-256 is not the one in record.json, so one of the two files was replaced";
        ensure!(found == *written, RecordError::samples(path, differs));
    }
    check_rows(path, record)
}

/// Checks how many samples each round has, against the record.
pub(super) fn check_rows(path: &Path, record: &Record) -> Result<(), RecordError> {
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
