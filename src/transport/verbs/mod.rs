//! `verbs`: RDMA through libibverbs, by the service types RC, UC and UD.
//!
//! * Control: `adapter` (device, port, GID), `resources` (what the library makes), `address`
//!   (what the ends tell each other, and the states of a queue pair), this file.
//! * Data: `endpoint`, with `sends`, `receives`, `extended` for the other way of posting, and
//!   `memory` for the slots.
//!
//! Operations that the other end takes no part in (reads, atomics, and writes in a stream) give no
//! arrivals: their traffic is [`Traffic::OneSided`]. A ping-pong by write is seen in memory: one
//! byte behind the payload, another in each lap, is what the receiver polls.

mod adapter;
mod address;
mod counters;
mod endpoint;
mod errors;
mod extended;
mod memory;
pub mod options;
mod receives;
mod resources;
mod sends;

use crate::transport::*;
use crate::units::Bytes;
use adapter::{Adapter, is_ethernet, port_folder};
use address::Address;
use counters::Counters;
use endpoint::{Made, Shape, VerbsEndpoint};
use fabric_sys::verbs::types::*;
pub use memory::LiveWord;
use memory::{Layout, Memory};
use options::{Connect, INLINE_AUTO, Inline, Posting, Service, Signal, VerbsOptions};
use resources::{Channel, CompletionQueue, Domain, QueuePair};
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The verbs transport.
pub struct Verbs;

/// One end before it is connected.
pub struct VerbsOpening {
    // Dropped in this order.
    qp: QueuePair,
    send_queue: CompletionQueue,
    receive_queue: CompletionQueue,
    memory: Memory,
    domain: Arc<Domain>,
    adapter: Adapter,
    own: Address,
    depths: Depths,
    inline: bool,
    inline_granted: u32,
    setup: Setup,
}

/// How deep the queues are.
#[derive(Clone, Copy)]
struct Depths {
    slots: usize,
    send: u32,
    receive: u32,
}

/// Sends on their way where nothing is asked for: perftest's transmit depth.
const SEND_DEPTH: u32 = 128;
/// Receives of a stream where nothing is asked for: perftest's receive depth.
const RECEIVE_DEPTH: u32 = 512;
/// The fewest.
const LEAST_DEPTH: u32 = 16;
/// Memory for one direction's slots, where so many messages of a size would be more.
const MOST_BYTES: usize = 64 << 20;

impl Depths {
    fn of(setup: &Setup, device: &ibv_device_attr) -> Depths {
        let options = &setup.options.verbs;
        let most = u32::try_from(device.max_qp_wr).unwrap_or(0).max(LEAST_DEPTH) - 1;
        let fit = (MOST_BYTES / (setup.size + 64)).clamp(2, 1 << 20) as u32;
        let window = setup.window.clamp(1, fit);
        let send = options.send_depth.unwrap_or(SEND_DEPTH.max(window)).min(most);
        let slots = window.min(send) as usize;
        let asked = options.receive_depth.unwrap_or(match setup.traffic {
            // Twice what is on the way: a slot is never overwritten while it is looked at.
            Traffic::Echo { .. } => 2 * window,
            Traffic::Forward | Traffic::Both => RECEIVE_DEPTH,
            Traffic::OneSided => slots as u32,
        });
        let receive = asked.max(LEAST_DEPTH.min(fit)).min(fit.max(2 * window)).min(most);
        Depths { slots, send, receive }
    }
}

impl Transport for Verbs {
    type Opening = VerbsOpening;

    const DESCRIPTOR: Descriptor = Descriptor {
        about: "RDMA verbs: RC, UC and UD, by message, write, read and atomic",
        largest: Bytes::MIB.0 * 8,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both, Traffic::OneSided],
        loses: true,
        ordered: true,
        one_process: false,
        between_hosts: true,
        options: options::NAMES,
        path: "ibv_post_send, the adapter, the wire, the adapter, a completion that is polled",
    };

    fn available() -> Result<(), String> {
        Adapter::choose(&VerbsOptions::default()).map(drop).map_err(|error| error.to_string())
    }

    fn check(asked: &Asked<'_>) -> Result<(), String> {
        let operation = asked.options.operation();
        options::refuse(&asked.options.verbs, operation, asked.size)?;
        let by_memory = operation == Operation::Write && !asked.one_sided;
        if by_memory && asked.wait.sleeps() {
            return Err(format!(
                "--wait {} is not possible with --operation write, whose receiver polls memory; \
                 write busy, or --operation write_imm",
                asked.wait.name()
            ));
        }
        Ok(())
    }

    fn loses(options: &Options) -> bool {
        options.verbs.service().loses()
    }

    fn completes_each(options: &Options) -> bool {
        options.verbs.signal == Some(Signal::Every(1))
    }

    fn open(setup: &Setup) -> Result<VerbsOpening, SetupError> {
        let options = &setup.options.verbs;
        let service = options.service();
        if options.connect == Some(Connect::Cm) {
            return Err(SetupError::Refused(
                "connecting by the RDMA connection manager is not built; write --connect exchange"
                    .into(),
            ));
        }
        let adapter = Adapter::choose(options)?;
        let mtu = address::offered_mtu(&adapter, options)?;
        if service == Service::Ud && setup.size as u64 > u64::from(mtu) {
            return Err(SetupError::NotAllowed(format!(
                "--size {} B is not allowed with --service ud; the MTU of {} is {mtu} B",
                setup.size, adapter.name
            )));
        }
        let domain = Domain::new(&adapter.context)?;
        let depths = Depths::of(setup, &adapter.device);
        let size = setup.size.max(1);
        let layout =
            Layout::new(size, depths.slots, depths.receive as usize, service == Service::Ud);
        let memory = Memory::new(&domain, layout, options.relaxed_ordering)?;
        let channel = Channel::new(&adapter.context)?;
        let send_queue = CompletionQueue::new(&channel, depths.send + 1)?;
        let receive_queue = CompletionQueue::new(&channel, depths.receive)?;
        let queues = (&send_queue, &receive_queue);
        let (qp, inline, inline_granted) = make_queue_pair(setup, &domain, queues, depths)?;
        address::initialise(&qp, &adapter, service, address::queue_key(&setup.cookie))?;
        let own = Address {
            service,
            operation: setup.options.operation(),
            size: size as u64,
            qp: qp.number(),
            psn: random_psn()?,
            lid: if is_ethernet(&adapter.attributes) { 0 } else { adapter.attributes.lid },
            gid: adapter.gid,
            mtu,
            memory: memory.address(layout.arrival_at(0)),
            key: memory.registration().remote_key(),
            slots: depths.receive,
            stride: layout.arrive_stride() as u64,
            answers: adapter.device.max_qp_rd_atom.clamp(0, 255) as u8,
            cm: None,
        };
        Ok(VerbsOpening {
            qp,
            send_queue,
            receive_queue,
            memory,
            domain,
            adapter,
            own,
            depths,
            inline,
            inline_granted,
            setup: setup.clone(),
        })
    }

    fn granted(endpoint: &VerbsEndpoint) -> Vec<(String, String)> {
        endpoint.granted.clone()
    }

    fn afterwards(endpoint: &VerbsEndpoint) -> Vec<(String, String)> {
        endpoint.afterwards()
    }
}

/// Makes the queue pair; whether its sends are inline, and how much the adapter grants.
fn make_queue_pair(
    setup: &Setup,
    domain: &Arc<Domain>,
    (send_queue, receive_queue): (&CompletionQueue, &CompletionQueue),
    depths: Depths,
) -> Result<(QueuePair, bool, u32), SetupError> {
    let options = &setup.options.verbs;
    let operation = setup.options.operation();
    let marker = usize::from(operation == Operation::Write);
    let length = (setup.size + marker) as u32;
    let asked = options.inline.unwrap_or_default();
    let most = match asked {
        Inline::Auto => INLINE_AUTO,
        Inline::Off => 0,
        Inline::UpTo(bytes) => bytes,
    };
    let inline = length <= most && operation.carries_payload() && !options.stamp_send;
    let extended = options.posting == Some(Posting::Extended);
    let attributes = |inline: u32| ibv_qp_init_attr_ex {
        send_cq: send_queue.raw(),
        recv_cq: receive_queue.raw(),
        cap: ibv_qp_cap {
            // One more for the send that asks what became of the others.
            max_send_wr: depths.send + 1,
            max_recv_wr: depths.receive,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: inline,
        },
        qp_type: match options.service() {
            Service::Rc => IBV_QPT_RC,
            Service::Uc => IBV_QPT_UC,
            Service::Ud => IBV_QPT_UD,
        },
        send_ops_flags: extended::calls_for(operation),
        ..ibv_qp_init_attr_ex::default()
    };
    let wanted = if inline { length.max(most) } else { 0 };
    match (QueuePair::new(domain, attributes(wanted), extended), asked) {
        (Ok((qp, granted)), _) => Ok((qp, inline && granted >= length, granted)),
        // An adapter that cannot so much may still be used without.
        (Err(_), Inline::Auto) if inline => {
            let (qp, granted) = QueuePair::new(domain, attributes(0), extended)?;
            Ok((qp, false, granted))
        }
        (Err(error), Inline::UpTo(bytes)) if inline => Err(SetupError::NotAllowed(format!(
            "{error}; --inline {bytes} may be more than the adapter allows: write auto, off or less"
        ))),
        (Err(error), _) => Err(error),
    }
}

fn random_psn() -> Result<u32, SetupError> {
    let mut bits = [0u8; 4];
    getrandom::fill(&mut bits)
        .map_err(|error| SetupError::Refused(format!("no random numbers to be had: {error}")))?;
    Ok(u32::from_le_bytes(bits) & 0x00ff_ffff)
}

impl Opening for VerbsOpening {
    type Endpoint = VerbsEndpoint;

    fn address(&self) -> Blob {
        self.own.blob()
    }

    fn connect(self, other: &Blob) -> Result<VerbsEndpoint, SetupError> {
        let other = Address::read(other, &self.own)?;
        let options = &self.setup.options.verbs;
        let shape = self.shape();
        let route = match shape.service {
            Service::Ud => {
                Some(self.domain.address(address::route(&self.adapter, &other, options))?)
            }
            Service::Rc | Service::Uc => None,
        };
        let granted = self.granted(&shape, &other);
        let before = Counters::of_port(&self.adapter.name, self.adapter.port);
        let (own, adapter, depths) = (self.own, self.adapter, self.depths);
        let setup = self.setup;
        let made = Made {
            qp: self.qp,
            route,
            send_queue: self.send_queue,
            receive_queue: self.receive_queue,
            memory: self.memory,
            shape,
            other,
            device: (adapter.name.clone(), adapter.port),
            before,
            granted,
        };
        let key = address::queue_key(&setup.cookie);
        let mut endpoint = VerbsEndpoint::new(made, key);
        if !shape.deaf && !shape.watches_memory {
            endpoint.post_receives(0..depths.receive).map_err(|errno| {
                SetupError::system("posting receives")(std::io::Error::from_raw_os_error(errno))
            })?;
        }
        let options = &setup.options.verbs;
        address::connect(&endpoint.qp, &adapter, &own, &endpoint.other, options)?;
        Ok(endpoint)
    }
}

impl VerbsOpening {
    fn shape(&self) -> Shape {
        let (setup, options) = (&self.setup, &self.setup.options.verbs);
        let (service, operation) = (self.own.service, self.own.operation);
        let one_sided = setup.traffic == Traffic::OneSided;
        let answered = matches!(setup.traffic, Traffic::Echo { .. });
        let depth = u64::from(self.depths.send);
        // A slot whose payload the adapter reads later is free when its send has completed, and
        // must be told so in time.
        let most = match (self.inline, answered || service == Service::Ud) {
            (true, _) => depth.div_ceil(2),
            (false, true) => 1,
            (false, false) => (self.depths.slots as u64 / 2).max(1),
        };
        let signal_every = match options.signal.unwrap_or_default() {
            Signal::Auto => most,
            Signal::Every(every) => u64::from(every).clamp(1, most),
        };
        let may_lose = service.loses() && setup.role == Role::Client;
        let patience = (may_lose && answered).then(|| {
            let span = setup.loss_after.duration();
            rustix::event::Timespec {
                tv_sec: span.as_secs() as i64,
                tv_nsec: i64::from(span.subsec_nanos()),
            }
        });
        Shape {
            service,
            operation,
            posting: options.posting.unwrap_or_default(),
            inline: self.inline,
            signal_every,
            send_depth: depth,
            watches_memory: operation == Operation::Write && !one_sided,
            deaf: one_sided,
            reaps_busily: options.send_wait == Some(Wait::Busy),
            patience,
        }
    }

    /// What the two ends have agreed on and the adapter has granted.
    fn granted(&self, shape: &Shape, other: &Address) -> Vec<(String, String)> {
        let adapter = &self.adapter;
        let rate = std::fs::read_to_string(port_folder(&adapter.name, adapter.port).join("rate"));
        let mut all = vec![
            ("device", adapter.name.clone()),
            ("port", adapter.port.to_string()),
            ("link_rate", rate.unwrap_or_default().trim().to_string()),
            ("service", shape.service.name().into()),
            ("operation", shape.operation.name().into()),
            ("connect", "exchange".into()),
            ("mtu", address::path_mtu(&self.own, other).to_string()),
            ("inline", if shape.inline { "on" } else { "off" }.into()),
            ("inline_granted", self.inline_granted.to_string()),
            ("signal_every", shape.signal_every.to_string()),
            ("send_depth", self.depths.send.to_string()),
            ("receive_depth", self.depths.receive.to_string()),
            ("send_slots", self.depths.slots.to_string()),
        ];
        all.push(match self.own.lid {
            0 => ("gid", Ipv6Addr::from(adapter.gid).to_string()),
            lid => ("lid", lid.to_string()),
        });
        all.push(("gid_index", adapter.gid_index.to_string()));
        let posting = match shape.posting {
            Posting::Classic => "classic",
            Posting::Extended => "extended",
        };
        all.push(("post", posting.into()));
        all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}
