//! The run directory: everything that a run stores.
//!
//! Takes [`crate::sample::RoundSamples`] while a run goes on and the [`schema::Record`] at its
//! end; reads both back for reports. A directory appears complete or not at all. Its files are
//! untrusted when they are read: reading is bounded, and every error is one sentence.

mod case;
pub mod directory;
pub mod error;
pub mod journal;
mod plausible;
mod round;
pub mod sample_reader;
pub mod samples;
pub mod schema;
mod sealed;
mod upgrade;

pub use directory::{RunDirectory, Writer, read_record};
pub use error::RecordError;
pub use sample_reader::SampleReader;
pub use samples::SampleWriter;

impl schema::Record {
    /// How long the run took, its preparations included; `None` where the record does not say.
    pub fn seconds(&self) -> Option<f64> {
        let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
        let took = at(&self.finished)?.duration_since(at(&self.started)?);
        Some(took.as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }
}
