//! What a case of a stream has beside the others: what its samples are, and where they are kept.

use super::request::{Refusal, refuse, within};
use super::{Request, Schedule};
use crate::signal::file::Keep;
use crate::signal::signal::Shape;
use crate::signal::{METADATA, MOST_VALUES, VALUE, message_bytes};
use crate::units::{Bytes, MessageRate};
use serde::{Deserialize, Serialize};

/// Fewest samples per second.
pub const LEAST_RATE: MessageRate = MessageRate(10.0);
/// Most samples per second.
pub const MOST_RATE: MessageRate = MessageRate(1e6);
/// The same where nothing else is asked for.
pub const RATE: MessageRate = MessageRate(10e3);
/// Values of a sample where nothing else is asked for.
pub const VALUES: u32 = 8;

/// The samples of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// What the values are over time.
    pub shape: Shape,
    /// Values of a sample.
    pub values: u32,
    /// The file in which the samples that arrive are kept.
    pub keep: Option<Keep>,
}

/// Bytes of the message of a sample.
pub fn message(values: u32) -> Bytes {
    Bytes(message_bytes(values as usize) as u64)
}

impl Stream {
    /// The same for messages of so many bytes.
    pub(super) fn of(self, message: Bytes) -> Stream {
        Stream { values: values_of(message) as u32, ..self }
    }
}

fn values_of(message: Bytes) -> u64 {
    message.0.saturating_sub(METADATA as u64) / VALUE as u64
}

impl Request {
    pub(super) fn check_stream(&self) -> Result<(), Refusal> {
        let Some(stream) = &self.stream else { return Ok(()) };
        for size in &self.sizes {
            within("--values", Some(values_of(*size)), 1, MOST_VALUES as u64)?;
        }
        let Schedule::Periodic { rate } = self.schedule else {
            return refuse("a stream has a step every 1/rate; write --rate");
        };
        let rates = if self.rates.is_empty() { vec![rate] } else { self.rates.clone() };
        let allowed = LEAST_RATE.0..=MOST_RATE.0;
        if let Some(rate) = rates.iter().find(|rate| !allowed.contains(&rate.0)) {
            return refuse(format!(
                "--rate {} is not allowed for a stream; write {} to {}",
                rate.0, LEAST_RATE.0, MOST_RATE.0
            ));
        }
        let Shape { frequency, amplitude, offset, phase, deviation, .. } = stream.shape;
        if ![frequency, amplitude, offset, phase, deviation].iter().all(|one| one.is_finite())
            || frequency < 0.0
            || deviation < 0.0
        {
            return refuse(
                "--frequency and --deviation must be 0 or above, and all of a signal finite",
            );
        }
        if self.check || self.perturb {
            return refuse(
                "--check and --perturb are not allowed for a stream, whose messages are samples",
            );
        }
        if stream.keep.is_some() { self.check_file() } else { Ok(()) }
    }

    fn check_file(&self) -> Result<(), Refusal> {
        let (transports, waits) = (self.transports.len(), self.waits.len());
        let cases = [transports, waits, self.sizes.len(), self.rates.len().max(1)];
        if cases.iter().product::<usize>() > 1 {
            return refuse(
                "--file is for one combination of transport, wait mode, rate and number of values; \
                 write one of each",
            );
        }
        if self.place.is_remote() {
            return refuse("--file is of this host; it is not allowed with ends on other hosts");
        }
        match self.transports.iter().find(|one| one.descriptor().one_process) {
            Some(simulated) => refuse(format!(
                "--file is not possible over {simulated}, which simulates both ends"
            )),
            None => Ok(()),
        }
    }
}
