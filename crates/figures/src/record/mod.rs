//! The run directory: everything that a run stores.
//!
//! Takes [`wiregauge_sample::RoundSamples`] while a run goes on and the [`schema::Record`] at its
//! end; reads both back for reports. A directory appears complete or not at all. Its files are
//! untrusted when they are read: reading is bounded, and every error is one sentence.

mod against_samples;
pub mod baseline;
mod case;
mod client_host;
pub mod directory;
mod impact;
pub mod journal;
pub mod losses;
mod pairs;
mod plausible;
mod round;
pub mod schema;
mod sealed;
mod upgrade;

pub use baseline::Baseline;
pub use directory::{RunDirectory, Writer, read_record};
pub use wiregauge_sample_file::{
    RecordError, SampleReader, SampleWriter, error, sample_reader, samples,
};

use std::time::SystemTime;

impl schema::Record {
    /// How long the run took, its preparations included; `None` where the record does not say.
    pub fn seconds(&self) -> Option<f64> {
        let took = self.finished_at()?.duration_since(self.started_at()?).ok()?;
        Some(took.as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }

    /// When it was started; `None` where the record does not say.
    pub fn started_at(&self) -> Option<SystemTime> {
        time(&self.started)
    }

    /// When it ended; `None` where the record does not say.
    pub fn finished_at(&self) -> Option<SystemTime> {
        time(&self.finished)
    }
}

/// A time as RFC 3339 writes it.
fn time(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}
