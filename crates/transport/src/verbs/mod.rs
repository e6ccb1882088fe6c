//! `verbs`: RDMA through libibverbs, by the service types RC, UC, UD, XRC, and of two providers DC
//! and SRD.
//!
//! * Control: `service` (what each type supports), `options` and `checks` (what goes together),
//!   `adapter` (device, port, GID), `resources` (what the library makes), `queue_pair` (and what
//!   makes one, `srd` of EFA), `queues` (how deep), `bounds` (at most), `address` (what the ends
//!   tell each other), `states` (of a queue pair) and `asked` (its attributes), `cm` (the
//!   connection manager instead), `ece` (a vendor's options), `memory_kind`, `foreign` and `gpu`
//!   (memory that is not this host's) and `numbers` (of messages there), this file.
//! * Data: `endpoint`, with `sends`, `receives`, `completions`, `extended` for the other way of
//!   posting, `order` for several queue pairs, `watch` for writes and `credits` for how many there
//!   may be, `memory` for the slots. For one queue pair there is `lean` instead, with `prepared`
//!   requests and its own order (`single`); `path` says when.
//!
//! Operations that the other end takes no part in (reads, atomics, writes of `bandwidth`) give no
//! arrivals: their traffic is [`Traffic::OneSided`]. Other writes are seen in memory: one byte
//! behind the payload, another in each lap, is what the receiver polls.

mod adapter;
pub mod address;
mod asked;
mod bounds;
mod checks;
mod cm;
mod completions;
mod counters;
mod credits;
mod ece;
mod endpoint;
mod errors;
mod extended;
mod foreign;
mod gpu;
mod lean;
mod lent;
mod memory;
mod memory_kind;
mod numbers;
mod options;
mod order;
mod path;
mod prepared;
mod queue_pair;
mod queues;
mod receives;
mod resources;
mod sends;
mod service;
mod single;
mod sleeps;
mod srd;
mod stamps;
mod states;
mod watch;

use crate::*;
use adapter::{Adapter, is_ethernet, port_folder};
use address::Address;
use cm::Connection;
use counters::Counters;
use ece::EceOptions;
use endpoint::EndpointConfig;
pub use endpoint::VerbsEndpoint;
pub use lean::LeanEndpoint;
use memory::{Layout, Memory};
use memory_kind::MemoryKind;
use numbers::{Numbered, Numbers};
use path::lean_operation;
pub use path::{Lean, LeanRemote, LeanSend};
use queues::{Depths, Queues};
use resources::{QueuePair, SharedReceives};
use service::Service;
use states::{End, Part};
use std::net::Ipv6Addr;
use std::sync::Arc;
use wiregauge_base::units::Bytes;
use wiregauge_host::{Tree, rdma_file, rdma_node};

/// One end before it is connected.
struct HalfOpen {
    // Dropped in this order.
    queues: Queues,
    memory: Memory,
    connection: Option<Connection>,
    adapter: Adapter,
    own: Address,
    depths: Depths,
    setup: Setup,
    /// Whether it is the one that fills the receives, where several ends share them.
    fills_receives: bool,
}

/// What is registered to see whether it can be: twice the largest message of the usual sweeps.
const TRIED_BYTES: usize = 128 << 10;

/// The verbs transport.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "RDMA verbs: RC, UC, UD, XRC, DC and SRD, by message, write, read and atomic",
    largest: Bytes::MIB.0 * 1024,
    traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both, Traffic::OneSided],
    loses: true,
    between_hosts: true,
    watchable: true,
    // Two of its context, its completion channel, its alarm, and that of the connection manager.
    descriptors: 5,
    least_receives: queues::LEAST_RECEIVES_OF_ECHO,
    settings: options::TABLE,
    kernel_path: KernelPath::Bypassed,
    path: "ibv_post_send, the adapter, the wire, the adapter, a completion that is polled",
    memory_beside_slots,
    least_buffer_bytes,
    least_registered_bytes,
    // Its completion channel: ends that share receives share the context.
    least_descriptors: 1,
    queues: options::addressed,
    available,
    check: checks::check,
    loses_with: |settings| options::service(settings).loses(),
    ordered: false,
    ordered_with: options::keeps_order,
    completes_each: |settings| {
        let each = options::signalled(settings) == Some(1) || options::stamps_complete(settings);
        each || options::service(settings).completes_each()
    },
    numa_node: |settings, role| {
        rdma_node(&Tree::default(), options::device(settings, role).as_deref())
    },
    device_path: |settings| {
        let (_, device) = settings.iter().find(|(name, _)| name == "device")?;
        Some((device.clone(), rdma_file(&Tree::default(), device)?))
    },
    open_several: Some(open_several),
    counter_warnings: counters::warnings,
    ..Descriptor::opened_by(open)
};

/// What a work request and its completion take in the queues of an adapter's library, at most: 64 B
/// to 1 KiB, by the adapter and what is inline.
const QUEUED_BYTES: u64 = 1 << 10;

/// All slots and queues, of a device without limits.
fn memory_beside_slots(setup: &Setup) -> u64 {
    let depths = Depths::of_most(setup);
    let pairs = u64::from(depths.pairs);
    let queued =
        pairs.saturating_mul(u64::from(depths.send)).saturating_add(depths.receives.into());
    let layout = layout_of(setup, depths, 1, true);
    (layout.mapped_bytes() as u64).saturating_add(queued.saturating_mul(QUEUED_BYTES))
}

/// Returns the fewest bytes of the slots that an end maps and touches: on a device with few of
/// everything, and of slots that the ends of a thread share its part.
fn least_slot_bytes(setup: &Setup) -> u64 {
    let sharing = if shares_slots(&setup.settings) { setup.ends.max(1) } else { 1 };
    let depths = Depths::of_least(setup, sharing);
    let has_header = options::service(&setup.settings).has_header();
    let layout = layout_of(setup, depths, sharing as usize, has_header);
    layout.touched_bytes(setup.settings.flag("huge-pages")) as u64 / u64::from(sharing)
}

/// Returns the fewest bytes that count against the memory of a host. Queues do not: those of
/// Soft-RoCE are the kernel's, for which no control group is charged. Huge pages were reserved
/// beforehand, and what fits into an adapter's own memory shows when that is opened.
fn least_buffer_bytes(setup: &Setup) -> u64 {
    let is_device = MemoryKind::of(&setup.settings, setup.role) == MemoryKind::Device;
    if is_device || setup.settings.flag("huge-pages") { 0 } else { least_slot_bytes(setup) }
}

/// Returns the fewest bytes that are locked: none of an adapter's or a GPU's memory, and none with
/// on-demand paging.
fn least_registered_bytes(setup: &Setup) -> u64 {
    let is_host = MemoryKind::of(&setup.settings, setup.role) == MemoryKind::Host;
    let is_locked = is_host && options::on_demand(&setup.settings).is_none();
    if is_locked { least_slot_bytes(setup) } else { 0 }
}

fn available(_: &Settings) -> Result<(), String> {
    let tried = Adapter::choose(&Settings::default(), Role::Client).and_then(|adapter| {
        // A limit on locked memory is only met by registering some.
        let layout = Layout::new(TRIED_BYTES, 1, 1, false);
        Memory::new(&adapter, layout, MemoryKind::Host).map(drop)
    });
    tried.map_err(|error| error.to_string())
}

fn open(setup: &Setup) -> Result<Opening> {
    let adapter = Adapter::choose(&setup.settings, setup.role)?;
    let kind = MemoryKind::of(&setup.settings, setup.role);
    let of_device = (kind == MemoryKind::Device)
        .then(|| foreign::device_bytes(&adapter.domain.parent, &adapter.name))
        .transpose()?;
    let depths = Depths::of(setup, &adapter.device, of_device, 1);
    credits::check_burst(setup, depths.receives).map_err(SetupError::NotAllowed)?;
    let memory = memory_of(setup, &adapter, depths, (kind, 1))?;
    open_on(setup, adapter, Parts { depths, memory, shared: None, fills_receives: true })
}

/// Returns true if the messages of all ends of a thread arrive in the same slots.
fn shares_slots(settings: &Settings) -> bool {
    settings.flag("shared-receive-queue") && !options::service(settings).shares_receives()
}

/// Opens the ends of a thread. With `--shared-receive-queue` each has queue pairs and completion
/// queues of its own, and their messages arrive in the same slots: a server of many clients has as
/// many receives as it was given, however many clients there are.
fn open_several(setup: &Setup, ends: u32) -> Result<Vec<Opening>> {
    if !shares_slots(&setup.settings) {
        return (0..ends).map(|_| open(setup)).collect();
    }
    let operation = setup.settings.operation();
    ensure!(
        matches!(operation, Operation::Send | Operation::SendImm),
        SetupError::NotAllowed(format!(
            "--shared-receive-queue of several connections does not support --operation {}, whose \
             messages lie where the sender says: use --operation send or send_imm",
            operation.name()
        ))
    );
    let adapter = Adapter::choose(&setup.settings, setup.role)?;
    let depths = Depths::of(setup, &adapter.device, None, ends);
    let memory = memory_of(setup, &adapter, depths, (MemoryKind::Host, ends as usize))?;
    let receives = Arc::new(SharedReceives::new(&adapter.domain, depths.receives)?);
    let one = |number: u32| {
        let memory = memory.part(number as usize, ends as usize);
        let (shared, fills_receives) = (Some(Arc::clone(&receives)), number == 0);
        open_on(setup, adapter.clone(), Parts { depths, memory, shared, fills_receives })
    };
    (0..ends).map(one).collect()
}

/// What an end is made of.
struct Parts {
    depths: Depths,
    memory: Memory,
    /// The receives that it shares with other ends.
    shared: Option<Arc<SharedReceives>>,
    fills_receives: bool,
}

/// The memory of so many ends that take their messages from the same slots, within the bounds of
/// the device and of this host.
fn memory_of(
    setup: &Setup,
    adapter: &Adapter,
    depths: Depths,
    (kind, ends): (MemoryKind, usize),
) -> Result<Memory> {
    let service = options::service(&setup.settings);
    let all = service.addressed(depths.pairs);
    bounds::check_pairs((depths.pairs, all), 1 + depths.beside, &adapter.name, &adapter.device)?;
    let layout = layout_of(setup, depths, ends, service.has_header());
    bounds::check_memory(&layout, &depths, setup.settings.flag("huge-pages"))?;
    Memory::new(adapter, layout, kind)
}

/// Where the slots of so many ends lie.
fn layout_of(setup: &Setup, depths: Depths, ends: usize, headed: bool) -> Layout {
    let (size, receives) = (setup.size.max(1), depths.receives as usize);
    let layout = Layout::new(size, depths.slots * ends, receives, headed);
    match setup.settings.flag("same-buffer") {
        true => layout.in_one_buffer(),
        false if credits::are_told(setup) => layout.with_words(),
        false => layout,
    }
}

fn open_on(setup: &Setup, adapter: Adapter, parts: Parts) -> Result<Opening> {
    let settings = &setup.settings;
    let service = options::service(settings);
    let mtu = address::offered_mtu(&adapter)?;
    if service == Service::Ud && setup.size as u64 > u64::from(mtu) {
        return Err(SetupError::NotAllowed(format!(
            "--size {} B is not allowed with --service ud: the MTU of {} is {mtu} B",
            setup.size, adapter.name
        )));
    }
    let Parts { depths, memory, shared, fills_receives } = parts;
    let layout = memory.layout;
    let target_key = states::target_key(&setup.cookie);
    let queues = Queues::new(setup, &adapter, depths, (shared, target_key))?;
    let initialise =
        |qp, part| states::initialise(qp, &adapter, (service, part), cm::datagram_key(setup));
    queues.pairs.iter().try_for_each(|qp| initialise(qp, Part::Sends))?;
    for qp in &queues.receivers {
        initialise(qp, Part::Receives)?;
        if service == Service::Dc {
            states::ready_target(qp, &adapter, mtu)?;
        }
    }
    let mut connection =
        options::by_manager(settings).then(|| Connection::new(setup)).transpose()?;
    let cm = match (&mut connection, setup.role) {
        (Some(connection), Role::Server) => Some(connection.listen(&adapter)?),
        _ => None,
    };
    let own = Address {
        service,
        operation: settings.operation(),
        size: setup.size.max(1) as u64,
        pairs: numbered(&queues.pairs)?,
        receivers: numbered(&queues.receivers)?,
        shared: queues.shared_number,
        target_key,
        lid: if is_ethernet(&adapter.attributes) { 0 } else { adapter.attributes.lid },
        gid: adapter.gid,
        mtu,
        memory: memory.address(layout.arrival_at(0)),
        key: memory.registration.keys().1,
        slots: depths.receives,
        stride: layout.arrive_stride as u64,
        word: layout.words_at.map_or(0, |at| memory.address(at)),
        ece: offered_options(settings, &queues, &adapter.name)?,
        answers: adapter.device.max_qp_rd_atom.clamp(0, 255) as u8,
        cm,
    };
    own.ip().map_or(Ok(()), check_own)?;
    let (address, setup) = (own.blob(), setup.clone());
    let end = HalfOpen { queues, memory, connection, adapter, own, depths, setup, fills_receives };
    Ok(Opening::new(address, move |other| end.connect(other)))
}

/// The numbers of queue pairs, each with that of its first packet, which has 24 bits.
fn numbered(pairs: &[QueuePair]) -> Result<Vec<(u32, u32)>> {
    let of = |qp: &QueuePair| Ok((qp.number(), u32::from_le_bytes(setup::random()?) & 0x00ff_ffff));
    pairs.iter().map(of).collect()
}

/// The options of its vendor that the adapter offers, where they are asked for.
fn offered_options(
    settings: &Settings,
    queues: &Queues,
    device: &str,
) -> Result<Option<EceOptions>> {
    let first = queues.pairs.first().filter(|_| settings.flag("ece"));
    first.map(|qp| EceOptions::of(qp, device)).transpose()
}

/// Connects the queue pairs of this end to those of the other.
fn connect_pairs(
    queues: &Queues,
    end: &End<'_>,
    connection: Option<&mut Connection>,
) -> Result<()> {
    let (pairs, End { adapter, own, other, .. }) = (&queues.pairs, end);
    if let Some((offered, others)) = own.ece.zip(other.ece) {
        let agreed = offered.and(others);
        pairs.iter().try_for_each(|qp| agreed.set(qp, &adapter.name))?;
    }
    match connection {
        Some(connection) => connection.join(pairs, end)?,
        None => pairs.iter().enumerate().try_for_each(|pair| states::connect(pair, end))?,
    }
    if own.service == Service::Xrc {
        let mut receivers = queues.receivers.iter().enumerate();
        receivers.try_for_each(|pair| states::connect_receiver(pair, end))?;
    }
    pairs.iter().try_for_each(|qp| states::limit_rate(qp, adapter))
}

impl HalfOpen {
    fn connect(self, other: &Blob) -> Result<Connected> {
        let other = Address::read(other, &self.own)?;
        other.ip().into_iter().chain(other.cm.map(|at| at.ip())).try_for_each(check_peer)?;
        let config = self.config();
        let mut effective_settings = self.effective_settings(&config, &other);
        let fills_receives = self.fills_receives;
        let HalfOpen { queues, memory, mut connection, adapter, own, setup, .. } = self;
        let route = (config.service.is_routed())
            .then(|| adapter.domain.address(states::route(&adapter, &other)))
            .transpose()?;
        let route = route.map(|route| (route, cm::datagram_key(&setup)));
        let before = Counters::below(Tree::default(), port_folder(&adapter.name, adapter.port));
        let numbers = Numbers::of(&setup, memory.layout.arriving as u64);
        let mut endpoint = VerbsEndpoint::new(queues, memory, other, route, config, before);
        endpoint.numbers = numbers;
        if fills_receives && !config.send_only && !config.watches_memory {
            resources::done(endpoint.post_receives().err().unwrap_or(0), "posting receives")?;
        }
        let (queues, other) = (&endpoint.queues, &endpoint.other);
        let sets_rnr_retries = queues.maker.sets_rnr_retries();
        let end = End { adapter: &adapter, own: &own, other, sets_rnr_retries };
        connect_pairs(queues, &end, connection.as_mut())?;
        let granted = states::granted(queues, &end)?.into_iter();
        effective_settings.extend(granted.map(|(name, value)| (name.to_string(), value)));
        if let Some(options) = offered_options(&setup.settings, &endpoint.queues, &adapter.name)? {
            effective_settings.push(("ece".into(), options.to_string()));
        }
        endpoint.connection = connection;
        let sleeps = setup.wait.sleeps();
        endpoint.alarm = sleeps.then(|| endpoint.queues.receive.channel().alarm()).transpose()?;
        let connected = match lean_operation(&endpoint.config, &endpoint.queues) {
            Some(Operation::Send) => Connected::new(LeanEndpoint::<LeanSend>::new(endpoint)),
            Some(_) => Connected::new(LeanEndpoint::<LeanRemote>::new(endpoint)),
            _ => Connected::new(endpoint),
        };
        Ok(Connected { effective_settings, ..connected })
    }

    fn config(&self) -> EndpointConfig {
        let (setup, settings) = (&self.setup, &self.setup.settings);
        let (service, operation) = (self.own.service, self.own.operation);
        let one_sided = setup.traffic == Traffic::OneSided;
        let receives_nothing =
            one_sided || (setup.traffic == Traffic::Forward && setup.role == Role::Client);
        let answered = matches!(setup.traffic, Traffic::Echo { .. });
        let depths = self.depths;
        let depth = u64::from(depths.send);
        // A slot whose payload the adapter reads later is free when its send has completed, and
        // that completion must come in time.
        let most = match (self.queues.inline, answered || service == Service::Ud) {
            _ if service.completes_each() => 1,
            (true, _) => depth.div_ceil(2),
            (false, true) => 1,
            (false, false) => (depths.slots as u64 / (2 * u64::from(depths.pairs))).max(1),
        };
        let signal_every = |most| match options::signalled(settings) {
            _ if options::stamps_complete(settings) => 1,
            None => most,
            Some(every) => u64::from(every).clamp(1, most),
        };
        let may_lose = service.loses() && setup.role == Role::Client;
        let patience = Some(setup.loss_after).filter(|_| may_lose && answered);
        let sends = matches!(operation, Operation::Send | Operation::SendImm);
        let config = EndpointConfig {
            role: setup.role,
            service,
            operation,
            names_receiver: sends && matches!(service, Service::Ud | Service::Srd),
            is_numbered: self.numbered_by().is_some(),
            posting: options::posting(settings),
            polling: options::polling(settings),
            signal_every: signal_every(most),
            answered: false,
            reaps_late: false,
            send_depth: depth * u64::from(depths.pairs),
            receives: depths.receive as usize,
            watches_memory: operation == Operation::Write && !one_sided,
            is_told: self.memory.layout.words_at.is_some(),
            answers: credits::answers(setup, self.depths.receives),
            has_many_lengths: setup.lengths == Lengths::Varied,
            send_only: one_sided,
            spares_slot: operation == Operation::WriteImm
                && setup.traffic == Traffic::Both
                && depths.pairs == 1
                && depths.receive > 1,
            reaps_busily: settings.text("send-wait") == Some("busy"),
            sleeps_for_sends: settings.text("send-wait") == Some("block") && receives_nothing,
            patience: patience.and_then(|span| span.duration().try_into().ok()),
        };
        match self.takes_turns() && lean_operation(&config, &self.queues).is_some() {
            true if operation == Operation::Send => EndpointConfig {
                answered: true,
                signal_every: signal_every(depth.div_ceil(2)),
                ..config
            },
            // Not of writes: over Soft-RoCE a ping-pong takes twice as long if the next is posted
            // before the last has completed, and perftest awaits each.
            is_lean => EndpointConfig { reaps_late: is_lean, ..config },
        }
    }

    /// Whether a message that arrives says that the last send has completed: each is answered, one
    /// is on its way, and the service loses none, so the answer is none to an earlier one. An end
    /// that sleeps has to hear of its last send too, and not from a later message.
    fn takes_turns(&self) -> bool {
        let Setup { traffic, window, wait, .. } = self.setup;
        let alone = traffic == Traffic::Echo { every: 1 } && window == 1 && !wait.sleeps();
        alone && self.own.service == Service::Rc && self.depths.receives > 1
    }

    /// What tells the number of a message, where payloads are not read.
    fn numbered_by(&self) -> Option<Numbered> {
        let numbers = Numbers::of(&self.setup, self.depths.receives.into());
        numbers.map(|numbers| numbers.by())
    }

    /// What the two ends have agreed on, and what the adapter allows.
    fn effective_settings(&self, config: &EndpointConfig, other: &Address) -> NamedValues {
        let adapter = &self.adapter;
        let rate = format!("{}/rate", port_folder(&adapter.name, adapter.port));
        let on = |is_on| if is_on { "on" } else { "off" }.to_string();
        let address = match self.own.lid {
            0 => ("gid", Ipv6Addr::from(adapter.gid).to_string()),
            lid => ("lid", lid.to_string()),
        };
        let settings = &self.setup.settings;
        let pages = if settings.flag("huge-pages") { "huge" } else { "normal" };
        let mut all = vec![
            ("device", adapter.name.clone()),
            ("port", adapter.port.to_string()),
            ("link_rate", wiregauge_host::Tree::default().text(&rate).unwrap_or_default()),
            ("service", config.service.name().into()),
            ("operation", config.operation.name().into()),
            ("connect", settings.text("connect").unwrap_or_default().into()),
            ("queue_pairs", self.depths.pairs.to_string()),
            ("shared_receive_queue", on(self.queues.shared.is_some())),
            ("order", if options::keeps_order(settings) { "kept" } else { "not kept" }.into()),
            ("mtu", address::path_mtu(&self.own, other).to_string()),
            ("inline", on(self.queues.inline)),
            ("inline_granted", self.queues.inline_granted.to_string()),
            ("signal_every", config.signal_every.to_string()),
            ("send_depth", self.depths.send.to_string()),
            ("receive_depth", self.depths.receive.to_string()),
            ("send_slots", self.depths.slots.to_string()),
            address,
            ("gid_index", adapter.gid_index.to_string()),
            ("post", config.posting.name().into()),
            ("poll", config.polling.name().into()),
            ("send_wait", settings.text("send-wait").unwrap_or(self.setup.wait.name()).into()),
            ("pages", pages.into()),
            ("same_buffer", on(settings.flag("same-buffer"))),
            ("memory", MemoryKind::of(settings, self.setup.role).to_string()),
            ("registered_by", self.memory.way.into()),
            ("on_demand", settings.text("on-demand").unwrap_or("off").into()),
            ("relaxed_ordering", on(settings.flag("relaxed-ordering"))),
        ];
        // No call gives these back: what the device has taken.
        if let Some(kilobits) = adapter.asked.rate {
            all.push(("rate_limit", format!("{kilobits} kbit/s")));
        }
        if let Some((count, period)) = options::moderation(settings) {
            all.push(("cq_count", count.to_string()));
            all.push(("cq_period", format!("{period} us")));
        }
        all.extend(self.numbered_by().map(|by| ("numbered_by", by.name().to_string())));
        let node = rdma_node(&Tree::default(), Some(&adapter.name));
        all.extend(node.map(|node| ("numa_node", node.to_string())));
        all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}
