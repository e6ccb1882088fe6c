//! Who stamps in a traced round: the kernel's trace points, or without the right to these the
//! kernel's stamps of the run's own sockets.

use super::super::CommandError;
use crate::clock::{Anchor, Source};
use crate::explain::KernelClock;
use crate::explain::path::{self, Way};
use crate::host::trace::{Kind, Trace, TraceError, Tracer, Whose};
use crate::loops::socket_stamped::LONGEST;
use crate::plan::{Case, Followed};
use crate::transport::{KernelPath, Role};
use crate::units::Bytes;

/// Who stamps.
pub(super) enum Stamper {
    /// Programs at trace points of the kernel.
    Tracer(Box<Tracer>),
    /// The kernel, of the run's own sockets alone; why.
    Sockets(String),
}

impl Stamper {
    /// The kernel's trace points, or where it refuses and the case has sockets, these.
    pub(super) fn new(case: &Case, way: &Way) -> Result<Stamper, CommandError> {
        let is_apart = case.topology.is_between_hosts();
        let kinds = path::kinds(way, case.wait.sleeps(), is_apart);
        match Tracer::load(&kinds, path::copied_at(way.path)) {
            Ok(tracer) => Ok(Stamper::Tracer(Box::new(tracer))),
            Err(error) if is_for_sockets(case, way) => Ok(Stamper::Sockets(error.to_string())),
            Err(error) => Err(CommandError::Unable(format!("{error}; {WITHOUT_RIGHTS}"))),
        }
    }

    pub(super) fn is_sockets(&self) -> bool {
        matches!(self, Stamper::Sockets(_))
    }

    pub(super) fn kinds(&self) -> Vec<(Kind, &'static str)> {
        match self {
            Stamper::Tracer(tracer) => tracer.programs(),
            Stamper::Sockets(_) => SOCKET_KINDS.iter().map(|kind| (*kind, kind.name())).collect(),
        }
    }

    pub(super) fn missing(&self) -> &[String] {
        match self {
            Stamper::Tracer(tracer) => tracer.missing(),
            Stamper::Sockets(_) => &[],
        }
    }

    pub(super) fn begin(&mut self, whose: Whose, clock: Source) -> Result<Anchor, TraceError> {
        match self {
            Stamper::Tracer(tracer) => {
                tracer.attach(whose)?;
                Ok(KernelClock::anchor(clock))
            }
            Stamper::Sockets(_) => Ok(KernelClock::realtime_anchor(clock)),
        }
    }

    /// When the round has ended, and what was stamped at trace points.
    pub(super) fn end(&mut self, clock: Source) -> Result<(Anchor, Trace), TraceError> {
        match self {
            Stamper::Tracer(tracer) => Ok((KernelClock::anchor(clock), tracer.detach()?)),
            Stamper::Sockets(_) => Ok((KernelClock::realtime_anchor(clock), Trace::default())),
        }
    }
}

/// What the kernel stamps of a socket, and the program of what it found there.
const SOCKET_KINDS: [Kind; 4] = [Kind::TxQueue, Kind::TxDriver, Kind::RxHost, Kind::Arrived];
/// What can be explained without rights.
const WITHOUT_RIGHTS: &str = "without it, explain splits latency over tcp or udp alone, with one \
                              thread, both ends on this machine and messages of at most 8 KiB";

/// Whether the stamps of its own sockets split the messages of a case.
fn is_for_sockets(case: &Case, way: &Way) -> bool {
    let topology = &case.topology;
    way.followed == Followed::Alone
        && matches!(way.path, KernelPath::Segments | KernelPath::Datagrams)
        && topology.threads_of(Role::Client) == 1
        && topology.endpoints_of_role(Role::Client) == 1
        && !topology.is_between_hosts()
        && case.size <= Bytes(LONGEST as u64)
}
