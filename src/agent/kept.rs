//! What an agent of a stream has beside its loop: the samples that a source makes, and the file in
//! which the other end keeps them.

use crate::agent::error::AgentError;
use crate::clock::{Ticks, Timebase, epoch_of_day};
use crate::control::protocol::Assignment;
use crate::host;
use crate::loops::stream::{Steps, Streaming};
use crate::signal::file::{Kept, Sink, Writing};
use crate::signal::signal::Source;
use crate::signal::{METADATA, MOST_VALUES, TimeOfDay, message_bytes};
use crate::transport::Role;

/// Samples of the file, among what the server has seen.
const WRITTEN: &str = "file.samples";
/// Its bytes.
const BYTES: &str = "file.bytes";
/// Samples that it lacks.
pub const LEFT_OUT: &str = "file.left_out";
/// Why it ends before the stream.
pub const FAULT: &str = "file.fault";
/// There where it was written on the receiver's own CPU.
pub const BESIDE: &str = "file.beside";

/// Time of day at the epoch of the agent's clock: as the driver says, or as this host knows it.
fn epoch(assignment: &Assignment, time: &Timebase) -> u64 {
    assignment.epoch_of_day_ns.unwrap_or_else(|| epoch_of_day(assignment.clock, time))
}

/// The time of day at a reading of the agent's clock: that of a stream's origins.
pub(crate) fn time_of_day(assignment: &Assignment, time: &Timebase, at: Ticks) -> TimeOfDay {
    let since = time.local(at).0.max(0.0) as u64;
    TimeOfDay::from_ns(epoch(assignment, time).wrapping_add(since))
}

/// What an end of a stream has, and every other end has not.
pub(crate) struct Streamed {
    steps: Option<Steps>,
    writing: Option<(Sink, Writing)>,
    /// Whether the file is written where the loop measures.
    is_beside: bool,
}

impl Streamed {
    /// Of an end. The file is written on a CPU on which neither end measures; where there is none,
    /// on that of the loop which it serves: the source then keeps its CPU, and what comes while the
    /// writer runs waits in the transport, as far as that has room.
    pub fn of(assignment: &Assignment, time: &Timebase) -> Result<Streamed, AgentError> {
        let steps = steps(assignment, time)?;
        let is_beside = assignment.cpu_free().is_none();
        Ok(Streamed { steps, writing: writing(assignment, time)?, is_beside })
    }

    /// What the loop needs of it.
    pub fn begin(&mut self) -> Option<Streaming<'_>> {
        let to = self.writing.as_mut().map(|(sink, _)| Streaming::To(sink));
        self.steps.as_mut().map(Streaming::From).or(to)
    }

    /// What became of the file, as the record has it, once all is written.
    pub fn end(self) -> Vec<(String, String)> {
        let Some((sink, writing)) = self.writing else { return Vec::new() };
        let mut told = told(writing.end(sink));
        told.extend(self.is_beside.then(|| (BESIDE.to_string(), true.to_string())));
        told
    }
}

/// The samples that this end is to make; `None`: none.
fn steps(assignment: &Assignment, time: &Timebase) -> Result<Option<Steps>, AgentError> {
    let case = &assignment.case;
    let Some(stream) = case.stream.as_ref().filter(|_| assignment.role == Role::Client) else {
        return Ok(None);
    };
    let values = stream.values as usize;
    if !(1..=MOST_VALUES).contains(&values) || case.size.0 != message_bytes(values) as u64 {
        let sentence = format!(
            "a stream's message has {METADATA} B and 8 B for each of 1 to {MOST_VALUES} values"
        );
        return Err(AgentError::Refused(sentence));
    }
    let Some(rate) = case.schedule.rate() else {
        return Err(AgentError::Refused("a stream needs a schedule".into()));
    };
    let source = Source::new(stream.shape, values, case.seed);
    Ok(Some(Steps::new(source, rate.0, *time, epoch(assignment, time))))
}

/// Opens the file in which this end keeps what comes; `None`: it keeps nothing.
fn writing(
    assignment: &Assignment,
    time: &Timebase,
) -> Result<Option<(Sink, Writing)>, AgentError> {
    let Some(stream) = assignment.case.stream.as_ref() else { return Ok(None) };
    let Some(keep) = stream.keep.as_ref().filter(|_| assignment.role == Role::Server) else {
        return Ok(None);
    };
    if assignment.remote.is_some() {
        // A driver on another host names no files of this one.
        return Err(AgentError::Refused("the file of a stream is of the driver's host".into()));
    }
    let free = assignment.cpu_free();
    let prepare = move || {
        if let Some(cpu) = free {
            // Where that fails it runs beside the loop.
            let _ = host::pin_to(cpu);
        }
    };
    let started =
        Writing::start(keep, stream.values as usize, *time, epoch(assignment, time), prepare);
    let named = |error| format!("the file '{}' could not be made: {error}", keep.path.display());
    Ok(Some(started.map_err(|error| AgentError::Refused(named(error)))?))
}

fn told(kept: Kept) -> Vec<(String, String)> {
    let Kept { written, bytes, left_out, fault } = kept;
    let mut told = vec![
        (WRITTEN.to_string(), written.to_string()),
        (BYTES.to_string(), bytes.to_string()),
        (LEFT_OUT.to_string(), left_out.to_string()),
    ];
    told.extend(fault.map(|fault| (FAULT.to_string(), fault)));
    told
}
