//! `samples.parquet`: the samples of a run on disk, and the errors of its whole directory.
//!
//! A package of its own, because each stored sample passes through it.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod error;
pub mod sample_reader;
pub mod samples;

pub use error::RecordError;
pub use sample_reader::SampleReader;
pub use samples::SampleWriter;
