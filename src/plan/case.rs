//! One measurement with fixed parameters. Pure.

use super::topology::{HostPair, Topology};
use super::{PatternRef, Schedule, Spec, TimerKind, Trace};
use crate::transport::{Role, Settings, TransportKind, Wait};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::any::Any;

/// When a round ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Messages after the warm-up.
    pub count: Option<u64>,
    /// Time after the warm-up.
    pub time: Option<Span>,
}

/// What all patterns have of one measurement, and the pattern's own specification. A run executes
/// a case in several rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The question.
    pub pattern: PatternRef,
    /// What the pattern asks beyond the rest.
    pub spec: Spec,
    /// How messages move.
    pub transport: TransportKind,
    /// How all ends wait.
    pub wait: Wait,
    /// Who talks to whom.
    pub topology: Topology,
    /// Payload of one message; the longest where they differ.
    pub size: Bytes,
    /// When a round of a thread ends.
    pub bound: Bound,
    /// Messages at the start of each round that are kept but left out of the figures.
    pub warmup: u64,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that is read from a file.
    pub trace: Option<Trace>,
    /// What waits for the intended times.
    pub timer: TimerKind,
    /// Whether the receiver verifies the payload.
    pub check: bool,
    /// A message that has not arrived by then is lost (transports that lose messages).
    pub loss_after: Span,
    /// A round without progress for so long has stalled.
    pub timeout: Span,
    /// Settings of the transport.
    pub settings: Settings,
    /// Random seed.
    pub seed: u64,
}

impl Case {
    /// The specification as the pattern's own type. Only the pattern of a case knows the type, and
    /// makes it ([`super::PatternSpec::read_spec`]).
    pub fn spec<T: Any>(&self) -> &T {
        #[expect(clippy::expect_used, reason = "a pattern is only called with cases it has made")]
        let spec = self.spec.get().expect("a case holds the specification of its own pattern");
        spec
    }

    /// The same case with another specification.
    #[must_use]
    pub fn with_spec(&self, spec: impl super::Specification) -> Case {
        Case { spec: Spec::new(spec), ..self.clone() }
    }

    /// The host of a role; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<u32> {
        self.topology.host_of(role)
    }

    /// The hosts of its client and its server.
    pub fn hosts(&self) -> HostPair {
        self.topology.hosts()
    }

    /// Threads of a role.
    pub fn threads_of(&self, role: Role) -> u32 {
        self.topology.threads_of(role)
    }

    /// Threads that measure: the client's.
    pub fn threads(&self) -> u32 {
        self.threads_of(Role::Client).max(1)
    }

    /// Threads of the end that has more of them.
    pub fn most_threads(&self) -> u32 {
        self.topology.most_threads()
    }

    /// Whether only one end of a connection acts.
    pub fn is_one_sided(&self) -> bool {
        self.pattern.is_one_sided(self)
    }

    /// Messages for one sample.
    pub fn stride(&self) -> u64 {
        self.pattern.stride(self)
    }

    /// A short name that tells the case from the others of a plan.
    pub fn label(&self) -> String {
        self.pattern.label(self)
    }

    /// The usual form of such a name: what is measured, over what, of which size.
    pub fn label_as(&self, what: &str, more: &str) -> String {
        let point = self.pattern.point(self).map(|point| format!(" {point}")).unwrap_or_default();
        let threads = match self.threads() {
            1 => String::new(),
            several => format!(" {several} threads"),
        };
        let (transport, wait, size) = (self.transport, self.wait.name(), self.size.0);
        format!("{what}{more} {transport} {wait} {size} B{point}{threads}")
    }
}
