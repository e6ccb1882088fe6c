//! The way of a message through the kernel: which trace points it passes, in their order.

use super::apart::Kernels;
use wiregauge_host::trace::{CopiedAt, Kind};
use wiregauge_plan::Case;
use wiregauge_plan::Followed;
use wiregauge_sample::{Flags, Sample};
use wiregauge_transport::{KernelPath, LENGTH_PREFIX};

/// How the stamp of a step is told from those of other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The first of this flow that carries payload.
    Packet,
    /// The first of this flow.
    Flow,
    /// The last of this flow that carries payload before the socket is readable: a switch passes
    /// such trace points before.
    LastPacket,
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
    /// The last of other messages that were in the socket before this one.
    Ahead,
    /// The program's own, by the number of the message and its thread.
    Numbered,
    /// The same of the return of the call that posts, or where the other end was woken or had the
    /// message before it returned, that.
    Returned,
    /// The last of the thread that sends with which it worked on other messages: of a server that
    /// answers what it took together.
    Served,
}

impl Match {
    /// Whether it is found by what it covers of a connection's stream, where several messages are
    /// on the way.
    pub fn is_in_stream(self) -> bool {
        let packets = [Match::Packet, Match::LastPacket, Match::LastBeforeReady];
        packets.contains(&self) || [Match::Flow, Match::Sender, Match::Receiver].contains(&self)
    }

    /// Whether it is a stamp of other messages, for which this one waits.
    pub fn is_of_others(self) -> bool {
        matches!(self, Match::Ahead | Match::Served)
    }
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
const NETIF_RX: Step = step(Kind::NetifRx, "driver", Half::Send, Match::LastPacket);
const GRO: Step = step(Kind::Gro, "adapter, wire and interrupt", Half::Receive, Match::LastPacket);
const RECEIVE: Step = step(Kind::Receive, "SoftIRQ and NAPI", Half::Receive, Match::LastPacket);
const WAKING: Step =
    Step { optional: true, ..step(Kind::Waking, "wake-up call", Half::Receive, Match::Wake) };
const RUNNING: Step =
    Step { optional: true, ..step(Kind::Switch, "wake-up", Half::Receive, Match::Takes) };
const AHEAD: Step = Step {
    optional: true,
    ..step(Kind::Copied, "behind others in the socket buffer", Half::Receive, Match::Ahead)
};
/// Any stamp of the thread: the kind stands for all of them.
const SERVED: Step = Step {
    optional: true,
    ..step(Kind::Queue, "behind others in the server", Half::Send, Match::Served)
};
const RETURN: Step = step(Kind::SysExit, "return", Half::Receive, Match::ReturnOfReceiver);

/// TCP.
const SEGMENTS: &[Step] = &[
    SERVED,
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
    AHEAD,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// UDP.
const DATAGRAMS: &[Step] = &[
    SERVED,
    CALL,
    step(Kind::Queue, "system call, UDP and IP send", Half::Send, Match::Packet),
    XMIT,
    NETIF_RX,
    GRO,
    RECEIVE,
    step(Kind::Ready, "IP and UDP receive", Half::Receive, Match::Flow),
    WAKING,
    RUNNING,
    AHEAD,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// Sockets within this host.
const LOCAL: &[Step] = &[
    SERVED,
    CALL,
    step(Kind::Ready, "system call and send", Half::Send, Match::Sender),
    WAKING,
    RUNNING,
    AHEAD,
    step(Kind::Copied, "poll and copy", Half::Receive, Match::Receiver),
    RETURN,
];

/// What passes by the kernel.
const BYPASSED: &[Step] = &[
    Step { optional: true, ..step(Kind::Post, "turn-round", Half::Send, Match::Numbered) },
    step(Kind::Posted, "post", Half::Send, Match::Returned),
    Step { optional: true, ..step(Kind::Taken, "adapter reads it", Half::Send, Match::Numbered) },
    Step { name: "way, to the wake-up call", ..WAKING },
    RUNNING,
    step(Kind::Arrived, "way and poll", Half::Receive, Match::Numbered),
];

/// What the kernel stamps of a socket's messages for any user.
const STAMPED_SOCKET: &[Step] = &[
    step(Kind::TxQueue, "call, transport and IP send", Half::Send, Match::Flow),
    step(Kind::TxDriver, "device queue (qdisc) and driver", Half::Send, Match::Flow),
    step(Kind::RxHost, "wire and interrupt", Half::Receive, Match::Flow),
    step(Kind::Arrived, "IP and transport receive, wake-up and copy", Half::Receive, Match::Flow),
];

/// The way of a case's messages.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// What they pass.
    pub path: KernelPath,
    /// The steps of a leg.
    pub steps: &'static [Step],
    /// How many there are at a time, and whether they come back.
    pub followed: Followed,
    /// Bytes in front of each message of a stream.
    pub framing: u32,
    /// Whether a schedule says when each is due: its time counts from then.
    pub is_scheduled: bool,
    /// Whose kernels stamp it.
    pub kernels: Kernels,
}

impl Way {
    /// That of a case; `None`: its messages are not followed.
    pub fn of(case: &Case) -> Option<Way> {
        let profile = case.profile();
        let path = case.transport.descriptor().kernel_path;
        let is_stream = matches!(path, KernelPath::Segments | KernelPath::LocalStream);
        let framing = if is_stream && profile.has_many_lengths { LENGTH_PREFIX as u32 } else { 0 };
        let is_scheduled = case.schedule.is_open();
        let followed = profile.followed?;
        let kernels = Kernels::One;
        Some(Way { path, steps: steps(path), followed, framing, is_scheduled, kernels })
    }

    /// The same by what the kernel stamps of a socket for any user.
    #[must_use]
    pub fn by_sockets(self) -> Way {
        Way { steps: STAMPED_SOCKET, ..self }
    }

    /// Whether the program stamps where they are.
    pub fn is_stamped_by_program(&self) -> bool {
        self.path == KernelPath::Bypassed
    }

    /// Whether its messages go over a network device.
    pub fn has_packets(&self) -> bool {
        matches!(self.path, KernelPath::Segments | KernelPath::Datagrams)
    }

    /// There, or there and back.
    pub fn legs(&self) -> usize {
        if self.followed == Followed::OneWay { 1 } else { 2 }
    }

    /// Whether a message has both of its stamps and belongs to the figures.
    pub fn is_measured(&self, sample: &Sample) -> bool {
        let outside =
            [Flags::WARMUP, Flags::LOST, Flags::DUPLICATE, Flags::UNSENT, Flags::UNFINISHED];
        !outside.iter().any(|flag| sample.flags.has(*flag)) && self.total_ns(sample).is_finite()
    }

    /// When its time begins.
    pub fn start_ns(&self, sample: &Sample) -> f64 {
        if self.is_scheduled { sample.intended_ns } else { sample.submit_ns }
    }

    /// What it took.
    pub fn total_ns(&self, sample: &Sample) -> f64 {
        sample.receive_ns - self.start_ns(sample)
    }
}

/// The steps of a transport's messages; none where the kernel does not see them.
pub fn steps(path: KernelPath) -> &'static [Step] {
    match path {
        KernelPath::None => &[],
        KernelPath::Bypassed => BYPASSED,
        KernelPath::Segments => SEGMENTS,
        KernelPath::Datagrams => DATAGRAMS,
        KernelPath::LocalStream | KernelPath::LocalDatagrams => LOCAL,
    }
}

/// Where the kernel shows that the receiving thread has its bytes.
pub fn copied_at(path: KernelPath) -> CopiedAt {
    match path {
        KernelPath::Segments => CopiedAt::Stream,
        KernelPath::Datagrams => CopiedAt::Datagram,
        KernelPath::None
        | KernelPath::Bypassed
        | KernelPath::LocalStream
        | KernelPath::LocalDatagrams => CopiedAt::Local,
    }
}

/// The step by which the begin of a leg is found: the first that each message must pass, of those
/// that are stamped.
pub fn begin(steps: &[Step], is_stamped: impl Fn(Kind) -> bool) -> Option<&Step> {
    steps.iter().find(|step| step.kind != Kind::SysEnter && !step.optional && is_stamped(step.kind))
}

/// What disturbs messages, whatever their way: the evidence of causes. Nothing that each message of
/// a thread that polls passes.
pub const DISTURBANCES: [Kind; 11] = [
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
    Kind::Frequency,
];
/// The same of the way of packets.
const HELD_UP: [Kind; 2] = [Kind::Retransmit, Kind::Qdisc];

/// The trace points for a way. A thread that polls makes a system call for each look, so what every
/// call passes is stamped only where it sleeps. That a datagram was copied, which looks that find
/// nothing pass too, is also stamped where several messages are on the way, which are told apart by
/// it, and where an end `is_apart` (in another network namespace), which is known by it.
pub fn kinds(way: &Way, sleeps: bool, is_apart: bool) -> Vec<Kind> {
    let needs_copies = way.followed != Followed::Alone || is_apart;
    let is_call = |kind: Kind| match kind {
        Kind::SysEnter | Kind::SysExit => true,
        Kind::Copied => copied_at(way.path) == CopiedAt::Datagram && !needs_copies,
        _ => false,
    };
    let is_stamped = |step: &&Step| !step.by.is_of_others() && !step.kind.is_of_program();
    let own = way.steps.iter().filter(is_stamped).map(|step| step.kind);
    let mut kinds: Vec<Kind> = own.filter(|kind| sleeps || !is_call(*kind)).collect();
    let more = DISTURBANCES.into_iter().chain(HELD_UP);
    let more: Vec<Kind> = more.filter(|kind| !kinds.contains(kind)).collect();
    kinds.extend(more);
    match way.path {
        KernelPath::Datagrams => kinds.push(Kind::Dropped),
        // Of a thread that sleeps the call itself shows it; TCP is told the same byte again.
        KernelPath::LocalStream | KernelPath::LocalDatagrams if !sleeps => {
            kinds.push(Kind::Refused);
        }
        _ => {}
    }
    // Over loopback a message that is alone is the only one of its poll.
    if needs_copies && way.has_packets() {
        kinds.push(Kind::Napi);
    }
    kinds
}
