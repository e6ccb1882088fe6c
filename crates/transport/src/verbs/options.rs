//! What can be asked of the verbs transport; `checks` has what of it goes together.

use super::memory_kind::MemoryKind;
pub use super::order::MOST_QUEUE_PAIRS;
pub use super::service::Service;
use crate::per_end::{DeviceName, Number, PerEnd};
use crate::{Role, Settings, settings};
use wiregauge_base::options::{OptionDef, OptionTable, named_enum, parse_count};
use wiregauge_base::units::{BitRate, Bytes, Span};

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
    .default_note("classic; extended for dc and what else needs it"),
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
    OptionDef::flag("same-buffer", "Send from one buffer and receive into one, as perftest does"),
    OptionDef::one_of("mtu", || vec!["256", "512", "1024", "2048", "4096"], "Path MTU in bytes")
        .metavar("N")
        .default_note("the smaller of the two ports' MTUs"),
    OptionDef::count("service-level", "Service level (SL)").limits(0, 15),
    OptionDef::count("traffic-class", "Traffic class of the global route header").limits(0, 255),
    OptionDef::count("flow-label", "Flow label of the global route header")
        .limits(0, MOST_FLOW_LABEL),
    OptionDef::count(
        "qp-timeout",
        "Wait 4.096 us x 2^N for an acknowledgement; 0: for ever (rc, xrc, dc)",
    )
    .limits(0, 31)
    .default(TIMEOUT),
    OptionDef::count("retries", "Retries of a packet that is not acknowledged (rc, xrc, dc)")
        .limits(0, 7)
        .default(RETRIES),
    OptionDef::count(
        "rnr-retries",
        "Retries while the receiver is not ready; 7: for ever (rc, xrc, dc, srd)",
    )
    .limits(0, 7)
    .default(RNR_RETRIES),
    OptionDef::count(
        "rnr-timer",
        "Code of the time that a receiver asks for that is not ready (rc, xrc, dc)",
    )
    .limits(0, 31)
    .default(RNR_TIMER),
    OptionDef::count(
        "read-depth",
        "Outstanding reads and atomics of each queue pair (rc, xrc, dc)",
    )
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

/// Queue pairs of an end that have an address.
pub fn addressed(settings: &Settings) -> u32 {
    service(settings).addressed(settings.count32("queue-pairs").unwrap_or(1))
}

/// Whether messages arrive in the order of their posts: those of one queue pair, where the service
/// keeps it.
pub fn keeps_order(settings: &Settings) -> bool {
    service(settings).keeps_order() && settings.count32("queue-pairs").unwrap_or(1) == 1
}

/// Whether all queue pairs of an end receive from one queue.
pub fn shares_receives(settings: &Settings) -> bool {
    settings.flag("shared-receive-queue") || service(settings).shares_receives()
}

/// Which calls post: those that the service needs.
pub fn posting(settings: &Settings) -> CallStyle {
    match service(settings).needs_extended(settings.operation()) {
        true => CallStyle::Extended,
        false => settings.choice("post").unwrap_or_default(),
    }
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
