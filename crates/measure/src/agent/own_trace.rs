//! The kernel's stamps of this process, for a controller that does not share its kernel.
//!
//! Must never: be attached in a round for which the controller has not asked for it.

use super::error::AgentError;
use crate::control::frame;
use crate::control::protocol::FromAgent;
use std::io;
use wiregauge_clock::Anchor;
use wiregauge_clock::exchange::Local;
use wiregauge_host::trace::report::{MOST_STAMPS, STAMPS_PER_FRAME, TraceReport, TraceRequest};
use wiregauge_host::trace::{Tracer, Whose};

/// Environment variable by which a daemon denies its processes the kernel's stamps.
pub const KERNEL_STAMPS_VARIABLE: &str = "WIREGAUGE_KERNEL_STAMPS";
/// Value of [`KERNEL_STAMPS_VARIABLE`] that denies them.
pub const KERNEL_STAMPS_DENIED: &str = "denied";
/// The sentence for the controller.
const DENIED: &str = "this agent gives no stamps of its kernel, which carry names of other \
                      processes: start it with --kernel-stamps";

/// The attached tracer and the time at which it was attached, or why it could not be.
pub(super) struct OwnTrace(Result<(Tracer, Anchor), String>);

impl OwnTrace {
    /// Begins. Threads that are started from now on are stamped.
    pub fn begin(request: &TraceRequest, clock: &Local) -> OwnTrace {
        if std::env::var_os(KERNEL_STAMPS_VARIABLE).is_some_and(|said| said == KERNEL_STAMPS_DENIED)
        {
            return OwnTrace(Err(DENIED.into()));
        }
        let begin = || {
            let mut tracer = Tracer::load(&request.kinds, request.copied)?;
            let anchor = stated(Anchor::monotonic(clock.source.clock()), clock);
            tracer.attach(Whose::Itself)?;
            Ok((tracer, anchor))
        };
        OwnTrace(begin().map_err(|error: wiregauge_host::trace::TraceError| error.to_string()))
    }

    /// Ends, and sends what was stamped.
    pub fn send(self, clock: &Local, output: &mut impl io::Write) -> Result<(), AgentError> {
        let ended = self.0.and_then(|(mut tracer, begin)| {
            let trace = tracer.detach().map_err(|error| error.to_string())?;
            let anchors = [begin, stated(Anchor::monotonic(clock.source.clock()), clock)];
            Ok((tracer, trace, anchors))
        });
        let (tracer, mut trace, anchors) = match ended {
            Ok(ended) => ended,
            Err(why) => return Ok(frame::write(output, &FromAgent::Traced(Err(why)))?),
        };
        if trace.stamps.len() > MOST_STAMPS {
            trace.stamps.truncate(MOST_STAMPS);
            let last = trace.stamps.last().map(|stamp| stamp.time_ns);
            trace.full_ns = [trace.full_ns, last].into_iter().flatten().min();
        }
        for stamps in trace.stamps.chunks(STAMPS_PER_FRAME) {
            frame::write(output, &FromAgent::Stamps(stamps.to_vec()))?;
        }
        let report = TraceReport {
            kinds: tracer.programs().into_iter().map(|(kind, _)| kind).collect(),
            missing: tracer.missing().to_vec(),
            anchors,
            stamps: trace.stamps.len() as u64,
            full_ns: trace.full_ns,
            names: trace.names.into_iter().collect(),
            interrupts: trace.interrupts.into_iter().collect(),
        };
        Ok(frame::write(output, &FromAgent::Traced(Ok(Box::new(report.bounded()))))?)
    }
}

/// An anchor by the clock as it is told to others.
fn stated(anchor: Anchor, clock: &Local) -> Anchor {
    Anchor { ticks: clock.stamp(anchor.ticks), ..anchor }
}
