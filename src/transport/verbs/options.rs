//! What can be asked of the verbs transport, and what of it goes together.

pub use super::order::MOST_QUEUE_PAIRS;
use crate::transport::{Operation, Wait};
use serde::{Deserialize, Serialize};

/// The service type of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection: what is lost stays lost.
    Uc,
    /// Unreliable datagram: messages up to the MTU, each with its own address.
    Ud,
}

impl Service {
    /// All.
    pub const ALL: &'static [Service] = &[Service::Rc, Service::Uc, Service::Ud];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Rc => "rc",
            Service::Uc => "uc",
            Service::Ud => "ud",
        }
    }

    /// The operations that it allows (InfiniBand specification, volume 1, table 38).
    pub const fn operations(self) -> &'static [Operation] {
        use Operation::*;
        match self {
            Service::Rc => Operation::ALL,
            Service::Uc => &[Send, SendImm, Write, WriteImm],
            Service::Ud => &[Send, SendImm],
        }
    }

    /// Whether a message may be lost without an error.
    pub const fn loses(self) -> bool {
        !matches!(self, Service::Rc)
    }
}

/// How the two queue pairs learn of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// By the control channel.
    #[default]
    Exchange,
    /// By the RDMA connection manager.
    Cm,
}

/// Whether a payload is copied into the work request instead of being read by the adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inline {
    /// Where the message is at most [`INLINE_AUTO`] bytes and the adapter can.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Messages of at most so many bytes, which the adapter must grant.
    UpTo(u32),
}

/// The largest message that is sent inline where nothing is asked for: above 128 B the copy costs
/// more than the adapter's read saves on the adapters of the published measurements.
pub const INLINE_AUTO: u32 = 128;

/// Which sends make a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Every so many: half of the send queue, so that it never overflows.
    #[default]
    Auto,
    /// Every so many; 1 is every send.
    Every(u32),
}

/// Which calls post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Posting {
    /// `ibv_post_send`, with a list.
    #[default]
    Classic,
    /// `ibv_wr_start` to `ibv_wr_complete`.
    Extended,
}

/// Which calls take completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Polling {
    /// `ibv_poll_cq`.
    #[default]
    Classic,
    /// `ibv_start_poll` to `ibv_end_poll`.
    Extended,
}

/// Whose clock says when a send has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampComplete {
    /// The CPU's, when the loop takes the completion.
    Cpu,
    /// The device's, when it completes.
    Device,
}

impl StampComplete {
    /// All.
    pub const ALL: [StampComplete; 2] = [StampComplete::Cpu, StampComplete::Device];

    /// The word as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            StampComplete::Cpu => "cpu",
            StampComplete::Device => "device",
        }
    }
}

/// Settings of the verbs transport.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerbsOptions {
    /// The device by name; `None`: the first that has a port which is up.
    pub device: Option<String>,
    /// Its port; `None`: the first that is up.
    pub port: Option<u8>,
    /// Index in the port's table of GIDs; `None`: chosen (RoCE v2 before v1, IPv4 before IPv6).
    pub gid_index: Option<u8>,
    /// The service type.
    pub service: Option<Service>,
    /// How the ends find each other.
    pub connect: Option<Connect>,
    /// Inline or not.
    pub inline: Option<Inline>,
    /// Which sends are signalled.
    pub signal: Option<Signal>,
    /// Work requests of the send queue.
    pub send_depth: Option<u32>,
    /// Receives that are posted.
    pub receive_depth: Option<u32>,
    /// Which calls post.
    pub posting: Option<Posting>,
    /// Which calls take completions.
    pub polling: Option<Polling>,
    /// How many queue pairs the messages go over in turn; `None`: one.
    pub queue_pairs: Option<u32>,
    /// All queue pairs of an end take their receives from one queue.
    pub shared_receives: bool,
    /// Registered memory is of huge pages.
    pub huge_pages: bool,
    /// Path MTU in bytes; `None`: the smaller of what the two ports have.
    pub mtu: Option<u32>,
    /// Service level.
    pub service_level: Option<u8>,
    /// Traffic class of the global route.
    pub traffic_class: Option<u8>,
    /// How the end waits for completions of sends; `None`: as for arrivals.
    pub send_wait: Option<Wait>,
    /// Memory is registered with relaxed ordering.
    pub relaxed_ordering: bool,
    /// A thread writes the time into the message until the adapter has taken it.
    pub stamp_send: bool,
    /// Whose clock says when a send has completed; `None`: the CPU's.
    #[serde(default)]
    pub stamp_complete: Option<StampComplete>,
}

impl VerbsOptions {
    /// The names, as typed, of those that were asked for.
    pub fn named(&self) -> impl Iterator<Item = &'static str> {
        [
            ("device", self.device.is_some()),
            ("port", self.port.is_some()),
            ("gid-index", self.gid_index.is_some()),
            ("service", self.service.is_some()),
            ("connect", self.connect.is_some()),
            ("inline", self.inline.is_some()),
            ("signal-every", self.signal.is_some()),
            ("send-depth", self.send_depth.is_some()),
            ("receive-depth", self.receive_depth.is_some()),
            ("post", self.posting.is_some()),
            ("poll", self.polling.is_some()),
            ("queue-pairs", self.queue_pairs.is_some()),
            ("shared-receive-queue", self.shared_receives),
            ("huge-pages", self.huge_pages),
            ("mtu", self.mtu.is_some()),
            ("service-level", self.service_level.is_some()),
            ("traffic-class", self.traffic_class.is_some()),
            ("send-wait", self.send_wait.is_some()),
            ("relaxed-ordering", self.relaxed_ordering),
            ("stamp-send", self.stamp_send),
            ("stamp-complete", self.stamp_complete.is_some()),
        ]
        .into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(name, _)| name)
    }

    /// The service type, where none is asked for RC.
    pub fn service(&self) -> Service {
        self.service.unwrap_or_default()
    }

    /// How many queue pairs an end has.
    pub fn pairs(&self) -> u32 {
        self.queue_pairs.unwrap_or(1).clamp(1, MOST_QUEUE_PAIRS)
    }

    /// Whether completions of sends are stamped by the device's own clock.
    pub fn stamps_complete(&self) -> bool {
        self.stamp_complete == Some(StampComplete::Device)
    }

    /// Whether the connection manager connects.
    pub fn by_manager(&self) -> bool {
        self.connect == Some(Connect::Cm)
    }
}

/// The names of all options that this transport knows.
pub const NAMES: &[&str] = &[
    "device",
    "port",
    "gid-index",
    "service",
    "operation",
    "connect",
    "inline",
    "signal-every",
    "send-depth",
    "receive-depth",
    "post",
    "poll",
    "queue-pairs",
    "shared-receive-queue",
    "huge-pages",
    "mtu",
    "service-level",
    "traffic-class",
    "send-wait",
    "relaxed-ordering",
    "stamp-send",
    "stamp-complete",
];

/// Path MTUs that there are.
pub const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// The deepest queue that may be asked for.
pub const MOST_DEPTH: u32 = 32_768;

/// The shortest message that has room for a number and a time.
pub const STAMPED_SIZE: u64 = 16;

/// Why `--stamp-send` cannot be met.
fn refuse_stamp(options: &VerbsOptions, operation: Operation, size: u64) -> Result<(), String> {
    let copies = matches!(options.inline, Some(Inline::UpTo(bytes)) if u64::from(bytes) >= size);
    match (operation.carries_payload(), size >= STAMPED_SIZE, copies) {
        (false, ..) => Err(format!(
            "--stamp-send means nothing to --operation {}; it is for operations that send",
            operation.name()
        )),
        (_, false, _) => Err(format!(
            "--size {size} B is not allowed with --stamp-send; write {STAMPED_SIZE} or more"
        )),
        (.., true) => Err("--stamp-send with --inline is not possible: a message that is copied \
                           when it is posted cannot be stamped later; write --inline off"
            .into()),
        (true, true, false) => Ok(()),
    }
}

/// Why these do not go together, in a sentence that says what is allowed.
pub fn refuse(options: &VerbsOptions, operation: Operation, size: u64) -> Result<(), String> {
    let service = options.service();
    if !service.operations().contains(&operation) {
        let names: Vec<&str> = service.operations().iter().map(|o| o.name()).collect();
        return Err(format!(
            "--operation {} is not possible with --service {}; allowed there: {}",
            operation.name(),
            service.name(),
            names.join(", ")
        ));
    }
    if operation.is_atomic() && size != 8 {
        return Err(format!(
            "--size {size} B is not allowed with --operation {}; an atomic operation has 8 B",
            operation.name()
        ));
    }
    let most = u64::from(options.mtu.unwrap_or(MTUS[4]));
    if service == Service::Ud && size > most {
        return Err(format!(
            "--size {size} B is not allowed with --service ud; a datagram has 1 to {most} B"
        ));
    }
    if options.stamp_send {
        refuse_stamp(options, operation, size)?;
    }
    if let Some(mtu) = options.mtu.filter(|mtu| !MTUS.contains(mtu)) {
        return Err(format!("--mtu {mtu} is not allowed; write 256, 512, 1024, 2048 or 4096"));
    }
    for (name, depth) in
        [("send-depth", options.send_depth), ("receive-depth", options.receive_depth)]
    {
        if let Some(depth) = depth.filter(|depth| !(1..=MOST_DEPTH).contains(depth)) {
            return Err(format!("--{name} {depth} is not allowed; write 1 to {MOST_DEPTH}"));
        }
    }
    if options.stamps_complete() && matches!(options.signal, Some(Signal::Every(2..))) {
        return Err("--stamp-complete device is of every send; write --signal-every 1".into());
    }
    if options.stamps_complete() && options.polling == Some(Polling::Classic) {
        return Err(
            "--stamp-complete device needs completions with a time; write --poll extended".into()
        );
    }
    if options.signal == Some(Signal::Every(0)) {
        return Err("--signal-every 0 is not allowed; write auto, or 1 or more".into());
    }
    if let Some(level) = options.service_level.filter(|level| *level > 15) {
        return Err(format!("--service-level {level} is not allowed; write 0 to 15"));
    }
    refuse_pairs(options)
}

/// Why these do not go together as to the queue pairs.
fn refuse_pairs(options: &VerbsOptions) -> Result<(), String> {
    let service = options.service();
    if service == Service::Uc && options.by_manager() {
        return Err(
            "--connect cm is not possible with --service uc; allowed there: exchange".into()
        );
    }
    if service == Service::Uc && options.shared_receives {
        return Err(
            "--shared-receive-queue is not possible with --service uc; it is for rc and ud".into(),
        );
    }
    match options.queue_pairs {
        Some(asked) if !(1..=MOST_QUEUE_PAIRS).contains(&asked) => {
            Err(format!("--queue-pairs {asked} is not allowed; write 1 to {MOST_QUEUE_PAIRS}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(service: Service) -> VerbsOptions {
        VerbsOptions { service: Some(service), ..VerbsOptions::default() }
    }

    #[test]
    fn what_a_service_does_not_allow_is_refused_in_a_sentence() {
        let refused = refuse(&with(Service::Ud), Operation::Write, 64).unwrap_err();
        assert_eq!(
            refused,
            "--operation write is not possible with --service ud; allowed there: send, send_imm"
        );
        assert!(refuse(&with(Service::Uc), Operation::Read, 64).is_err());
        assert!(refuse(&with(Service::Rc), Operation::Read, 64).is_ok());
    }

    #[test]
    fn a_device_stamps_every_send_and_its_completions_carry_the_time() {
        let stamped =
            VerbsOptions { stamp_complete: Some(StampComplete::Device), ..VerbsOptions::default() };
        assert!(refuse(&stamped, Operation::Send, 64).is_ok());
        let rarely = VerbsOptions { signal: Some(Signal::Every(4)), ..stamped.clone() };
        assert!(refuse(&rarely, Operation::Send, 64).unwrap_err().contains("--signal-every 1"));
        let classic = VerbsOptions { polling: Some(Polling::Classic), ..stamped };
        assert!(refuse(&classic, Operation::Send, 64).unwrap_err().contains("--poll extended"));
    }

    #[test]
    fn an_atomic_operation_has_eight_bytes_and_a_datagram_fits_the_mtu() {
        assert!(refuse(&with(Service::Rc), Operation::FetchAdd, 8).is_ok());
        assert!(refuse(&with(Service::Rc), Operation::FetchAdd, 16).is_err());
        assert!(refuse(&with(Service::Ud), Operation::Send, 4096).is_ok());
        assert!(refuse(&with(Service::Ud), Operation::Send, 4097).is_err());
        let small = VerbsOptions { mtu: Some(1024), ..with(Service::Ud) };
        assert!(refuse(&small, Operation::Send, 1025).is_err());
        let odd = VerbsOptions { mtu: Some(1500), ..with(Service::Rc) };
        assert!(refuse(&odd, Operation::Send, 64).is_err());
    }
}
