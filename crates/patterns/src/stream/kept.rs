//! The file in which the receiver of a stream keeps its samples: opened before the round, written
//! by a thread beside the loop, and counted at the end.

use super::Spec;
use crate::prelude::*;
use wiregauge_signal::file::{Kept, Sink, Writing};

/// Samples of the file, among what the server has counted.
const WRITTEN: &str = "file.samples";
/// Its bytes.
const BYTES: &str = "file.bytes";
/// Samples that it lacks.
pub const LEFT_OUT: &str = "file.left_out";
/// Why it ends before the stream.
pub const FAULT: &str = "file.fault";
/// There where it was written on the receiver's own CPU.
pub const BESIDE: &str = "file.beside";

/// A file that is being written.
pub(super) struct KeptFile {
    pub sink: Sink,
    writing: Writing,
    /// Whether the file is written where the loop measures.
    is_beside: bool,
}

impl KeptFile {
    /// Opens the file in which this end keeps what arrives; `None`: it keeps nothing.
    ///
    /// The file is written on a CPU on which neither end measures; without a free one, on that of
    /// the loop which it serves: the source then keeps its CPU, and what arrives while the writer
    /// runs waits in the transport, as far as that has room.
    pub fn open(spec: &Spec, thread: &ThreadContext<'_>) -> Result<Option<KeptFile>, AgentError> {
        let Some(keep) = &spec.keep else { return Ok(None) };
        // A controller on another host names no files of this one.
        let elsewhere = "the file of a stream is written on the controller's host only";
        ensure!(!thread.is_remote, AgentError::Refused(elsewhere.into()));
        let free = thread.free_cpu;
        let prepare = move || {
            if let Some(cpu) = free {
                // Where that fails it runs beside the loop.
                let _ = wiregauge_host::pin_to(cpu);
            }
        };
        let values = spec.values as usize;
        let started = Writing::start(keep, values, *thread.time, thread.epoch_of_day_ns, prepare);
        let (sink, writing) = started.map_err(|error| {
            let path = keep.path.display();
            AgentError::Refused(format!("the file '{path}' could not be created: {error}"))
        })?;
        Ok(Some(KeptFile { sink, writing, is_beside: free.is_none() }))
    }

    /// What became of the file, as the record has it, once all is written.
    pub fn finish(self) -> FinalCounters {
        let KeptFile { sink, writing, is_beside } = self;
        let Kept { written, bytes, left_out, fault } = writing.end(sink);
        let counts = [(WRITTEN, written), (BYTES, bytes), (LEFT_OUT, left_out)];
        let counts = counts.map(|(name, count)| (name, CounterValue::Events(count)));
        let fault = fault.map(|fault| (FAULT, CounterValue::Text(fault)));
        let beside = is_beside.then(|| (BESIDE, CounterValue::Text(true.to_string())));
        let all = counts.into_iter().chain(fault).chain(beside);
        all.map(|(name, value)| (name.to_string(), value)).collect()
    }
}
