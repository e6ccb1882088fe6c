//! Where a run stores its samples and rounds while it is measured.

use std::path::PathBuf;
use wiregauge_figures::record::journal::SavedRound;
use wiregauge_figures::record::schema::Record;
use wiregauge_figures::record::{RecordError, Writer};
use wiregauge_sample::RoundSamples;

/// Takes what a run leaves, as it comes: the samples of a round, then the round.
pub trait Keeper {
    /// The record without rounds, before the first and when cases have been added.
    fn begin(&mut self, _record: &Record) -> Result<(), RecordError> {
        Ok(())
    }

    /// The samples of a round.
    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError>;

    /// The round that these samples are of.
    fn round(&mut self, _round: &SavedRound) -> Result<(), RecordError> {
        Ok(())
    }

    /// Takes note that the clock of all rounds is not to be believed; where they lie, if they do.
    fn refuse_clock(&mut self, _why: &str) -> Option<PathBuf> {
        None
    }
}

/// Takes samples alone.
impl<F: FnMut(&RoundSamples) -> Result<(), RecordError>> Keeper for F {
    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError> {
        self(samples)
    }
}

/// Keeps all in a run directory; `None`: keeps nothing.
impl Keeper for Option<Writer> {
    fn begin(&mut self, record: &Record) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.begin(record))
    }

    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.append(samples))
    }

    fn round(&mut self, round: &SavedRound) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.save(round))
    }

    fn refuse_clock(&mut self, why: &str) -> Option<PathBuf> {
        self.as_mut()?.refuse_clock(why)
    }
}
