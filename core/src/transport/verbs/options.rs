//! What can be asked of the verbs transport, and what of it goes together.

use super::memory_kind::MemoryKind;
pub use super::order::MOST_QUEUE_PAIRS;
use super::order::check_requests;
use crate::options::{OptionDef, OptionTable, named_enum, names, parse_count};
use crate::transport::per_end::{DeviceName, Number, PerEnd};
use crate::transport::{Operation, Role, Settings, Traffic, TransportRequest, settings};
use crate::units::{BitRate, Bytes, Span};

named_enum! {
    /// The service type of a queue pair.
    #[derive(Default)]
    pub enum Service {
        /// Reliable connection.
        #[default]
        Rc = "rc",
        /// Unreliable connection: what is lost stays lost.
        Uc = "uc",
        /// Unreliable datagram: messages up to the MTU, each with its own address.
        Ud = "ud",
    }
}

impl Service {
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

/// Up to which size payloads are copied into the work requests instead of being read by the
/// adapter, which must grant it; `None`: up to [`INLINE_AUTO`] where the adapter can.
fn inline_up_to(text: &str) -> Result<Option<u32>, String> {
    let size = || u32::try_from(text.parse::<Bytes>().ok()?.0).ok();
    let invalid = || format!("invalid size '{text}': use auto, off or a size such as 128");
    match text {
        "auto" => Ok(None),
        "off" => Ok(Some(0)),
        _ => size().map(Some).ok_or_else(invalid),
    }
}

/// The largest message that is sent inline where nothing is asked for: above 128 B the copy costs
/// more than the adapter's read saves on the adapters of the published measurements.
pub const INLINE_AUTO: u32 = 128;

/// Each how many sends make a completion; `None`: half of the send queue, so that it never
/// overflows.
fn signal_every(text: &str) -> Result<Option<u32>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let every = u32::try_from(parse_count(text)?).ok().filter(|every| *every > 0);
    every.map(Some).ok_or_else(|| format!("'{text}' is out of range: use auto, or 1 or more"))
}

named_enum! {
    /// Which calls post and take completions.
    #[derive(Default)]
    pub enum CallStyle {
        /// `ibv_post_send` with a list, and `ibv_poll_cq`.
        #[default]
        Classic = "classic",
        /// `ibv_wr_start` to `ibv_wr_complete`, and `ibv_start_poll` to `ibv_end_poll`.
        Extended = "extended",
    }
}

named_enum! {
    /// Which registered memory has pages that are locked only when they are used.
    pub enum OnDemand {
        /// That of the messages.
        Explicit = "explicit",
        /// The whole address space, registered once.
        Implicit = "implicit",
    }
}

/// The largest flow label: 20 bits (InfiniBand specification, volume 1, 8.3).
const MOST_FLOW_LABEL: u64 = (1 << 20) - 1;

/// The deepest queue that may be asked for.
pub const MOST_DEPTH: u32 = 32_768;

/// How an unanswered packet is waited for where nothing is asked for, 4.096 us x 2^14 = 67 ms:
/// perftest's, too.
const TIMEOUT: &str = "14";
/// How often it is sent again.
const RETRIES: &str = "7";
/// How often a receiver that is not ready is tried: 7 is for ever. A full receiver is flow control.
const RNR_RETRIES: &str = "7";
/// What a receiver that is not ready asks for: 12 is 0.64 ms (InfiniBand specification, volume 1,
/// table 45).
const RNR_TIMER: &str = "12";

/// The options of this transport.
pub const TABLE: OptionTable = &[
    OptionDef::parsed::<PerEnd<DeviceName>>(
        "device",
        "RDMA device of both ends, such as mlx5_0, or of the client and the server, such as \
         mlx5_0,mlx5_1",
    )
    .metavar("NAME")
    .per_end()
    .default_note("the first whose port is up"),
    OptionDef::parsed::<PerEnd<Number<1>>>("port", "Port of the device; A,B: of each end")
        .metavar("N")
        .per_end()
        .default_note("the first that is up"),
    OptionDef::parsed::<PerEnd<Number<0>>>(
        "gid-index",
        "Index in the port's GID table; A,B: of each end",
    )
    .metavar("N")
    .per_end()
    .default_note("RoCE v2 before v1, IPv4 before IPv6"),
    OptionDef::parsed::<PerEnd<Number<0>>>(
        "pkey-index",
        "Index in the port's table of partition keys; A,B: of each end",
    )
    .metavar("N")
    .per_end()
    .default("0"),
    OptionDef::choice::<Service>("service", "Service type of the queue pairs").default("rc"),
    settings::OPERATION,
    OptionDef::one_of(
        "connect",
        || vec!["exchange", "cm"],
        "Connect queue pairs by the control channel (exchange) or the RDMA connection manager (cm)",
    )
    .default("exchange"),
    OptionDef::text(
        "inline",
        |text| inline_up_to(text).map(drop),
        "Send payloads inline: off, auto (up to 128 B), or up to this size",
    )
    .metavar("SIZE")
    .default("auto"),
    OptionDef::text(
        "signal-every",
        |text| signal_every(text).map(drop),
        "Signal every Nth send: auto (half of the send queue), or 1 or more",
    )
    .metavar("N")
    .default("auto"),
    OptionDef::count("send-depth", "Depth of the send queue")
        .limits(1, MOST_DEPTH as u64)
        .default_note("128"),
    OptionDef::count("receive-depth", "Posted receives")
        .limits(1, MOST_DEPTH as u64)
        .default_note("512 for a stream, else twice the burst"),
    OptionDef::choice::<CallStyle>(
        "post",
        "Post by ibv_post_send (classic) or ibv_wr_* (extended)",
    )
    .default("classic"),
    OptionDef::choice::<CallStyle>(
        "poll",
        "Poll by ibv_poll_cq (classic) or ibv_start_poll (extended)",
    )
    .default_note("classic"),
    OptionDef::count("queue-pairs", "Queue pairs that messages use in turn")
        .limits(1, MOST_QUEUE_PAIRS as u64)
        .default("1"),
    OptionDef::flag("shared-receive-queue", "Use one receive queue for all queue pairs of an end"),
    OptionDef::parsed::<PerEnd<MemoryKind>>(
        "memory",
        "Memory of payloads: host, device (the adapter's own), cuda[:N] or rocm[:N] (a GPU's); \
         A,B: of each end",
    )
    .metavar("KIND")
    .per_end()
    .default("host"),
    OptionDef::flag("huge-pages", "Register memory of huge pages (2 MiB)"),
    OptionDef::one_of("mtu", || vec!["256", "512", "1024", "2048", "4096"], "Path MTU in bytes")
        .metavar("N")
        .default_note("the smaller of the two ports' MTUs"),
    OptionDef::count("service-level", "Service level (SL)").limits(0, 15),
    OptionDef::count("traffic-class", "Traffic class of the global route header").limits(0, 255),
    OptionDef::count("flow-label", "Flow label of the global route header")
        .limits(0, MOST_FLOW_LABEL),
    OptionDef::count("qp-timeout", "Wait 4.096 us x 2^N for an acknowledgement; 0: for ever (rc)")
        .limits(0, 31)
        .default(TIMEOUT),
    OptionDef::count("retries", "Retries of a packet that is not acknowledged (rc)")
        .limits(0, 7)
        .default(RETRIES),
    OptionDef::count("rnr-retries", "Retries while the receiver is not ready; 7: for ever (rc)")
        .limits(0, 7)
        .default(RNR_RETRIES),
    OptionDef::count(
        "rnr-timer",
        "Code of the time that a receiver asks for that is not ready (rc)",
    )
    .limits(0, 31)
    .default(RNR_TIMER),
    OptionDef::count("read-depth", "Outstanding reads and atomics of each queue pair (rc)")
        .limits(1, 255)
        .default_note("as many as both devices allow"),
    OptionDef::flag(
        "ece",
        "Exchange options of the adapters' vendor (ECE) before queue pairs connect (rc, uc)",
    ),
    OptionDef::one_of(
        "send-wait",
        || vec!["busy", "block"],
        "Wait mode for completions of sends: poll for them, or sleep until one comes",
    )
    .default_note("as --wait"),
    OptionDef::parsed::<BitRate>(
        "rate-limit",
        "Send rate of each queue pair, enforced by the adapter, such as 10gbit",
    )
    .metavar("RATE"),
    OptionDef::choice::<OnDemand>(
        "on-demand",
        "Lock pages when they are used: of the messages' memory, or of all (implicit)",
    )
    .default_note("all pages are locked"),
    OptionDef::count("cq-count", "Completions for which a queue raises one event")
        .limits(1, u16::MAX as u64)
        .default_note("1"),
    OptionDef::time("cq-period", "Longest time until a queue raises an event, such as 16us")
        .limits(0, u16::MAX as u64 * 1000)
        .default_note("not limited"),
    OptionDef::flag("relaxed-ordering", "Register memory with relaxed PCIe ordering"),
    OptionDef::flag(
        "stamp-send",
        "Rewrite the timestamp in the message until the adapter reads it: adds metric transfer",
    ),
    OptionDef::one_of(
        "stamp-complete",
        || vec!["cpu", "device"],
        "Clock that stamps send completions: the CPU's, or the device's (oneway only)",
    )
    .metavar("CLOCK")
    .default("cpu"),
];

/// The device of an end; `None`: chosen.
pub fn device(settings: &Settings, role: Role) -> Option<DeviceName> {
    settings.get::<PerEnd<DeviceName>>("device").map(|both| both.of(role).clone())
}

/// How pages are locked; `None`: all of them, beforehand.
pub fn on_demand(settings: &Settings) -> Option<OnDemand> {
    settings.choice("on-demand")
}

/// Completions for which a queue raises one event, and the microseconds after which it does anyway;
/// `None`: for each.
pub fn moderation(settings: &Settings) -> Option<(u16, u16)> {
    let (count, period) = (settings.get("cq-count"), settings.time("cq-period"));
    let us = period.and_then(|Span(ns)| u16::try_from(ns / 1000).ok());
    (count.is_some() || us.is_some()).then(|| (count.unwrap_or(1), us.unwrap_or(0)))
}

/// The service type that is asked for.
pub fn service(settings: &Settings) -> Service {
    settings.choice("service").unwrap_or_default()
}

/// Up to which size payloads are sent inline; `None`: chosen.
pub fn inline(settings: &Settings) -> Option<u32> {
    settings.read("inline", inline_up_to).flatten()
}

/// Each how many sends are signalled; `None`: chosen.
pub fn signalled(settings: &Settings) -> Option<u32> {
    settings.read("signal-every", signal_every).flatten()
}

/// Whether completions of sends are stamped by the device's own clock.
pub fn stamps_complete(settings: &Settings) -> bool {
    settings.text("stamp-complete") == Some("device")
}

/// Whether the connection manager connects.
pub fn by_manager(settings: &Settings) -> bool {
    settings.text("connect") == Some("cm")
}

/// Which calls take completions: those that the stamps need.
pub fn polling(settings: &Settings) -> CallStyle {
    match stamps_complete(settings) {
        true => CallStyle::Extended,
        false => settings.choice("poll").unwrap_or_default(),
    }
}

/// The shortest message that has room for a number and a time.
pub const STAMPED_SIZE: u64 = 16;

/// Refuses what memory that is not this host's cannot: the CPU neither reads nor writes it.
fn check_memory(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { traffic, settings, .. } = *request;
    let Some(kind) = MemoryKind::foreign(settings) else { return Ok(()) };
    ensure!(
        traffic == Traffic::OneSided,
        "--memory {kind} is supported by operations that the other CPU takes no part in, since it \
         cannot read the number of a message there: use bandwidth --operation write or read, or \
         latency --operation read"
    );
    let given = ["huge-pages", "stamp-send"].into_iter().find(|name| settings.flag(name));
    let given = given.or(on_demand(settings).map(|_| "on-demand"));
    let given = given.or(inline(settings).filter(|bytes| *bytes > 0).map(|_| "inline"));
    given.map_or(Ok(()), |name| {
        Err(format!(
            "--{name} does not work with --memory {kind}: use --memory host, or leave it out"
        ))
    })
}

/// The largest path MTU of InfiniBand.
const LARGEST_MTU: u64 = 4096;

/// Checks what goes together; the error says what is supported.
pub fn check(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { size, wait, traffic, settings } = *request;
    let one_sided = traffic == Traffic::OneSided;
    let (service, operation) = (service(settings), settings.operation());
    let (by, with) = (service.name(), operation.name());
    let supported = service.operations();
    let largest = settings.get("mtu").unwrap_or(LARGEST_MTU);
    let is_inline = inline(settings).is_some_and(|bytes| u64::from(bytes) >= size);
    let sends_and_receives = matches!(traffic, Traffic::Echo { .. } | Traffic::Both);
    let (stamps_send, stamps_complete) = (settings.stamps_send(), stamps_complete(settings));
    let number = |name| settings.get(name).unwrap_or(1);
    check_requests(number("queue-pairs"), number("send-depth"))?;
    check_memory(request)?;
    Err(if !supported.contains(&operation) {
        format!("--service {by} does not support --operation {with}: use {}", names(supported))
    } else if operation.is_atomic() && size != 8 {
        format!(
            "--size {size} B is not allowed with --operation {with}: use 8, the size of an atomic"
        )
    } else if service == Service::Ud && size > largest {
        format!("--size {size} B is not allowed with --service ud: use 1 to {largest} B, one MTU")
    } else if stamps_send && !operation.carries_payload() {
        format!("--operation {with} does not support --stamp-send: use an operation that sends")
    } else if stamps_send && size < STAMPED_SIZE {
        format!("--size {size} B is not allowed with --stamp-send: use {STAMPED_SIZE} B or more")
    } else if stamps_send && is_inline {
        "--inline does not work with --stamp-send, since an inline payload is copied when it is \
         posted: use --inline off"
            .into()
    } else if stamps_complete && signalled(settings).is_some_and(|every| every > 1) {
        "--stamp-complete device needs a completion of every send: use --signal-every 1".into()
    } else if stamps_complete && settings.choice("poll") == Some(CallStyle::Classic) {
        "--stamp-complete device needs timestamps in completions: use --poll extended".into()
    } else if service == Service::Uc && by_manager(settings) {
        "--service uc does not support --connect cm: use --connect exchange".into()
    } else if service == Service::Uc && settings.flag("shared-receive-queue") {
        "--service uc does not support --shared-receive-queue: use --service rc or ud".into()
    } else if settings.flag("ece") && (service == Service::Ud || by_manager(settings)) {
        "--ece is supported by --service rc and uc with --connect exchange: leave it out".into()
    } else if settings.text("send-wait") == Some("block") && !wait.sleeps() && sends_and_receives {
        "--send-wait block with --wait busy is supported for ends that receive nothing (bandwidth, \
         stream, oneway --outstanding): use it there, or --wait block"
            .into()
    } else if operation == Operation::Write && !one_sided && wait.sleeps() {
        format!(
            "--operation write does not support --wait {}, since its receiver polls memory: use \
             --wait busy, or --operation write_imm",
            wait.name()
        )
    } else {
        return Ok(());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Wait;

    fn refused(values: &[(&str, &str)], size: u64) -> Option<String> {
        let settings = Settings::of_values(values.iter().copied());
        let settings = &settings.unwrap();
        let traffic = Traffic::Echo { every: 1 };
        check(&TransportRequest { size, wait: Wait::Busy, traffic, settings }).err()
    }

    #[test]
    fn what_a_service_does_not_support_is_refused_in_a_sentence() {
        let with =
            |service, operation| refused(&[("service", service), ("operation", operation)], 64);
        assert_eq!(
            with("ud", "write").unwrap(),
            "--service ud does not support --operation write: use send, send_imm"
        );
        assert!(with("uc", "read").is_some());
        assert_eq!(with("rc", "read"), None);
        assert!(refused(&[("service", "uc"), ("connect", "cm")], 64).is_some());
        assert!(refused(&[("service", "uc"), ("shared-receive-queue", "on")], 64).is_some());
        let with_ece = |more| refused(&[("ece", "on"), more], 64);
        assert_eq!(with_ece(("service", "uc")), None);
        assert!(with_ece(("service", "ud")).is_some() && with_ece(("connect", "cm")).is_some());
    }

    #[test]
    fn an_end_that_polls_for_messages_does_not_sleep_for_sends() {
        let settings = Settings::of_values([("send-wait", "block")]).unwrap();
        let allowed = |wait, traffic| {
            check(&TransportRequest { size: 64, wait, traffic, settings: &settings }).is_ok()
        };
        let echo = Traffic::Echo { every: 1 };
        assert!(!allowed(Wait::Busy, echo) && !allowed(Wait::Busy, Traffic::Both));
        assert!(allowed(Wait::Block, echo) && allowed(Wait::Adaptive, echo));
        assert!(allowed(Wait::Busy, Traffic::Forward) && allowed(Wait::Busy, Traffic::OneSided));
    }

    #[test]
    fn a_device_stamps_every_send_and_its_completions_carry_the_time() {
        let with = |name, text| refused(&[("stamp-complete", "device"), (name, text)], 64);
        assert_eq!(with("service", "rc"), None);
        assert!(with("signal-every", "4").unwrap().contains("--signal-every 1"));
        assert!(with("poll", "classic").unwrap().contains("--poll extended"));
    }

    #[test]
    fn memory_that_the_cpu_does_not_read_is_for_one_sided_operations() {
        let of = |traffic, more: (&str, &str)| {
            let settings = Settings::of_values([("memory", "cuda:1,host"), more]).unwrap();
            check(&TransportRequest { size: 64, wait: Wait::Busy, traffic, settings: &settings })
        };
        let plain = ("operation", "write");
        assert_eq!(of(Traffic::OneSided, plain), Ok(()));
        let refused = of(Traffic::Forward, plain).unwrap_err();
        assert!(refused.contains("--memory cuda:1") && refused.contains("bandwidth --operation"));
        for more in [("inline", "64"), ("huge-pages", "on"), ("on-demand", "explicit")] {
            assert!(of(Traffic::OneSided, more).unwrap_err().contains(more.0));
        }
        assert_eq!(of(Traffic::OneSided, ("inline", "off")), Ok(()));
    }

    #[test]
    fn an_atomic_operation_has_eight_bytes_and_a_datagram_fits_the_mtu() {
        let atomic = |size| refused(&[("operation", "fetch_add")], size);
        assert!(atomic(8).is_none() && atomic(16).is_some());
        let datagram = |mtu, size| refused(&[("service", "ud"), ("mtu", mtu)], size);
        assert!(datagram("4096", 4096).is_none() && datagram("4096", 4097).is_some());
        assert!(datagram("1024", 1025).is_some());
        assert!(refused(&[("service", "ud")], 4097).is_some());
    }

    #[test]
    fn a_stamp_needs_room_and_a_message_that_is_read_late() {
        let with = |name, text, size| refused(&[("stamp-send", "on"), (name, text)], size);
        assert_eq!(with("inline", "off", 64), None);
        assert!(with("inline", "128", 64).unwrap().contains("--inline off"));
        assert!(with("inline", "off", 8).unwrap().contains("16 B or more"));
        assert!(with("operation", "read", 64).unwrap().contains("--stamp-send"));
    }
}
