//! The way of a message through the kernel: which trace points it passes, in their order.

use crate::host::trace::{CopiedAt, Kind};
use crate::transport::KernelPath;

/// How the stamp of a step is told from those of other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The first of this flow that carries payload.
    Packet,
    /// The first of this flow.
    Flow,
    /// The last of this flow before the socket is readable: acknowledgements pass here too.
    LastBeforeReady,
    /// By the thread that sends: its last before it hands over.
    CallOfSender,
    /// The first by the thread that sends.
    Sender,
    /// The first by the thread that receives, after the socket is readable.
    Receiver,
    /// The last that wakes the thread that receives, before it copies.
    Wake,
    /// The first at which that thread takes a CPU, after it was woken.
    Takes,
    /// Of the thread that receives: the first after it copied.
    ReturnOfReceiver,
}

/// Who works during a stage, as a best-case timeline shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// On the way from the program to the wire.
    Send,
    /// On the way from the wire to the program.
    Receive,
}

/// A step: the stage that ends at a trace point.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub kind: Kind,
    pub name: &'static str,
    pub half: Half,
    pub by: Match,
    /// Whether a message may pass without it: a thread that does not sleep is not woken.
    pub optional: bool,
}

const fn step(kind: Kind, name: &'static str, half: Half, by: Match) -> Step {
    Step { kind, name, half, by, optional: false }
}

const CALL: Step = step(Kind::SysEnter, "application call", Half::Send, Match::CallOfSender);
const XMIT: Step = step(Kind::Xmit, "device queue (qdisc)", Half::Send, Match::Packet);
const NETIF_RX: Step = step(Kind::NetifRx, "driver", Half::Send, Match::Packet);
const GRO: Step = step(Kind::Gro, "adapter, wire and interrupt", Half::Receive, Match::Packet);
const RECEIVE: Step = step(Kind::Receive, "SoftIRQ and NAPI", Half::Receive, Match::Packet);
const WAKING: Step =
    Step { optional: true, ..step(Kind::Waking, "wake-up call", Half::Receive, Match::Wake) };
const RUNNING: Step =
    Step { optional: true, ..step(Kind::Switch, "wake-up", Half::Receive, Match::Takes) };
const RETURN: Step = step(Kind::SysExit, "return", Half::Receive, Match::ReturnOfReceiver);

/// TCP.
const SEGMENTS: &[Step] = &[
    CALL,
    step(Kind::Send, "system call", Half::Send, Match::Flow),
    step(Kind::Queue, "TCP and IP send", Half::Send, Match::Packet),
    XMIT,
    NETIF_RX,
    GRO,
    RECEIVE,
    step(Kind::TcpProbe, "IP receive", Half::Receive, Match::LastBeforeReady),
    step(Kind::Ready, "TCP receive", Half::Receive, Match::Flow),
    WAKING,
    RUNNING,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// UDP.
const DATAGRAMS: &[Step] = &[
    CALL,
    step(Kind::Queue, "system call, UDP and IP send", Half::Send, Match::Packet),
    XMIT,
    NETIF_RX,
    GRO,
    RECEIVE,
    step(Kind::Ready, "IP and UDP receive", Half::Receive, Match::Flow),
    WAKING,
    RUNNING,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// Sockets within this host.
const LOCAL: &[Step] = &[
    CALL,
    step(Kind::Ready, "system call and send", Half::Send, Match::Sender),
    WAKING,
    RUNNING,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// The steps of a transport's messages; none where the kernel does not see them.
pub fn steps(path: KernelPath) -> &'static [Step] {
    match path {
        KernelPath::None => &[],
        KernelPath::Segments => SEGMENTS,
        KernelPath::Datagrams => DATAGRAMS,
        KernelPath::LocalSocket => LOCAL,
    }
}

/// Where the kernel shows that the receiving thread has its bytes.
pub fn copied_at(path: KernelPath) -> CopiedAt {
    match path {
        KernelPath::Segments => CopiedAt::Stream,
        KernelPath::Datagrams => CopiedAt::Datagram,
        KernelPath::None | KernelPath::LocalSocket => CopiedAt::Local,
    }
}

/// The step by which the begin of a leg is found: the first that each message must pass, of those
/// that are stamped.
pub fn begin(steps: &[Step], is_stamped: impl Fn(Kind) -> bool) -> Option<&Step> {
    steps.iter().find(|step| step.kind != Kind::SysEnter && !step.optional && is_stamped(step.kind))
}

/// What disturbs messages, whatever their way: the evidence of causes.
const DISTURBANCES: [Kind; 12] = [
    Kind::Waking,
    Kind::Switch,
    Kind::IrqEntry,
    Kind::IrqExit,
    Kind::TimerEntry,
    Kind::TimerExit,
    Kind::SoftirqEntry,
    Kind::SoftirqExit,
    Kind::Migrate,
    Kind::Fault,
    Kind::Retransmit,
    Kind::Qdisc,
];

/// The trace points for a way. A thread that polls makes a system call for each look, so what every
/// call passes is stamped only where it sleeps.
pub fn kinds(path: KernelPath, sleeps: bool) -> Vec<Kind> {
    let is_call = |kind: Kind| match kind {
        Kind::SysEnter | Kind::SysExit => true,
        Kind::Copied => copied_at(path) == CopiedAt::Datagram,
        _ => false,
    };
    let own = steps(path).iter().map(|step| step.kind);
    let mut kinds: Vec<Kind> = own.filter(|kind| sleeps || !is_call(*kind)).collect();
    let more = DISTURBANCES.iter().filter(|kind| !kinds.contains(kind));
    let more: Vec<Kind> = more.copied().collect();
    kinds.extend(more);
    kinds
}
