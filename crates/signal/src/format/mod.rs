//! The formats in which VILLASnode writes and reads samples, so that it can read our files and the
//! other end of a stream may be one of its socket nodes. Facts of the formats: its documentation
//! (VILLASframework, "Formats"); `docs/stream.md` has them with what is lost in each.

pub mod binary;
mod text;

use super::Sample;
use serde::{Deserialize, Serialize};

/// A format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

wiregauge_base::options::named!(Format);

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
            Format::Human => text::human(sample, out),
            Format::Csv => text::csv(sample, out),
            Format::Json => text::json(sample, out),
        }
    }
}
