//! The formats in which VILLASnode writes and reads samples, so that files can be exchanged and the
//! other end of a stream may be one of its socket nodes. Facts of the formats: its documentation
//! (VILLASframework, "Formats"); `docs/stream.md` has them with what is lost in each.

pub mod binary;
mod csv;
mod human;
mod json;
mod words;

use super::{Kind, MOST_VALUES, Sample};
use serde::{Deserialize, Serialize};
pub use words::Foreign;
use words::wrong;

/// A format.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `villas.binary`: of each value 32 bits, so that numbers lose precision.
    Binary,
    /// `villas.human`: a line a sample, for people.
    Human,
    /// `csv`: a line a sample, commas.
    #[default]
    Csv,
    /// `json`: a line a sample.
    Json,
}

crate::options::named!(Format);

impl Format {
    /// All.
    pub const ALL: [Format; 4] = [Format::Binary, Format::Human, Format::Csv, Format::Json];

    /// The word as typed and recorded, which is VILLASnode's.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Binary => "villas.binary",
            Format::Human => "villas.human",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }

    /// What stands before the first sample of a file.
    pub fn head(self, values: usize, out: &mut Vec<u8>) {
        let (fields, separator) = match self {
            Format::Binary | Format::Json => return,
            Format::Human => ("# seconds.nanoseconds+offset(sequence)", '\t'),
            Format::Csv => ("# secs,nsecs,offset,sequence", ','),
        };
        let names = (0..values).map(|index| format!("{separator}signal{index}"));
        out.extend(format!("{fields}{}\n", names.collect::<String>()).into_bytes());
    }

    /// Appends a sample.
    pub fn write(self, sample: &Sample, out: &mut Vec<u8>) {
        match self {
            Format::Binary => binary::write(sample, out),
            Format::Human => human::write(sample, out),
            Format::Csv => csv::write(sample, out),
            Format::Json => json::write(sample, out),
        }
    }

    /// Reads the samples of a file or a message.
    ///
    /// # Errors
    /// What is no sample of this format, with the number of the sample or line.
    pub fn read(self, bytes: &[u8], kind: Kind) -> Result<Vec<Sample>, Foreign> {
        match self {
            Format::Binary => binary::read(bytes, kind),
            Format::Human => lines(bytes, |line| human::read(line, kind)),
            Format::Csv => lines(bytes, |line| csv::read(line, kind)),
            Format::Json => lines(bytes, json::read),
        }
    }
}

/// Reads a sample of each line that is neither empty nor a comment.
fn lines(
    bytes: &[u8],
    read: impl Fn(&str) -> Result<Sample, Foreign>,
) -> Result<Vec<Sample>, Foreign> {
    let Ok(text) = std::str::from_utf8(bytes) else { return wrong("it is not UTF-8") };
    let known = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let numbered = text.lines().enumerate().filter(|(_, line)| known(line));
    numbered
        .map(|(number, line)| {
            let sample = read(line).and_then(|sample| match sample.values.len() {
                0..=MOST_VALUES => Ok(sample),
                many => Err(Foreign::Values(many)),
            });
            sample.map_err(|error| Foreign::Wrong(format!("line {}: {error}", number + 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests;
