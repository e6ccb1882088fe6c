//! Everything that a run leaves in its directory.
//!
//! Takes [`crate::sample::RoundSamples`] while a run goes on and the [`schema::Record`] at its
//! end; gives both back to whoever reports. A directory appears whole or not at all. What is read
//! comes from outside: it is bounded, and whatever is wrong with it is one sentence.

mod case;
pub mod directory;
pub mod error;
mod round_end;
pub mod sample_reader;
pub mod samples;
pub mod schema;
mod start;
mod upgrade;
mod warnings;

pub use directory::{RunDirectory, Writer, read_record};
pub use error::RecordError;
pub use sample_reader::SampleReader;
pub use samples::SampleWriter;
