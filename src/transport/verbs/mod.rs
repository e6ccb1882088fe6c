//! `verbs`: RDMA through libibverbs, by the service types RC, UC and UD.
//!
//! * Control: `adapter` (device, port, GID), `resources` (what the library makes), `queues` (how
//!   deep), `address` (what the ends tell each other, and the states of a queue pair), `cm` (the
//!   connection manager instead), this file.
//! * Data: `endpoint`, with `sends`, `receives`, `completions`, `extended` for the other way of
//!   posting, `order` for several queue pairs, and `memory` for the slots.
//!
//! Operations that the other end takes no part in (reads, atomics, and writes in a stream) give no
//! arrivals: their traffic is [`Traffic::OneSided`]. A ping-pong by write is seen in memory: one
//! byte behind the payload, another in each lap, is what the receiver polls.

mod adapter;
mod address;
mod cm;
mod completions;
mod counters;
mod endpoint;
mod errors;
mod extended;
mod memory;
mod options;
mod order;
mod queues;
mod receives;
mod resources;
mod sends;
mod stamps;

use crate::transport::*;
use crate::units::Bytes;
use adapter::{Adapter, is_ethernet, port_folder};
use address::Address;
use cm::Connection;
use counters::Counters;
use endpoint::EndpointConfig;
pub use endpoint::VerbsEndpoint;
use memory::{Layout, Memory};
use options::{Polling, Service, VerbsOptions};
use queues::{Depths, Queues};
use resources::{Domain, QueuePair};
use stamps::Stamps;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The verbs transport.
pub struct Verbs;

/// One end before it is connected.
struct HalfOpen {
    // Dropped in this order.
    queues: Queues,
    memory: Memory,
    connection: Option<Connection>,
    domain: Arc<Domain>,
    adapter: Adapter,
    own: Address,
    depths: Depths,
    options: VerbsOptions,
    setup: Setup,
}

/// What is registered to see whether it can be: twice the largest message of the usual sweeps.
const TRIED_BYTES: usize = 128 << 10;

const DESCRIPTOR: Descriptor = Descriptor {
    about: "RDMA verbs: RC, UC and UD, by message, write, read and atomic",
    largest: Bytes::MIB.0 * 8,
    traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both, Traffic::OneSided],
    loses: true,
    between_hosts: true,
    least_receives: queues::LEAST_RECEIVES,
    settings: options::TABLE,
    path: "ibv_post_send, the adapter, the wire, the adapter, a completion that is polled",
    ..Descriptor::BASE
};

impl Transport for Verbs {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        let options = VerbsOptions::from(&Settings::default());
        let tried = Adapter::choose(&options).and_then(|adapter| {
            // A limit on locked memory is only met by registering some.
            let layout = Layout::new(TRIED_BYTES, 1, 1, false);
            Memory::new(&Domain::new(&adapter.context)?, layout, &options).map(drop)
        });
        tried.map_err(|error| error.to_string())
    }

    fn check(&self, request: &TransportRequest<'_>) -> Result<(), String> {
        let options = VerbsOptions::from(request.settings);
        options::check(&options, request.size)?;
        let by_memory = options.operation == Operation::Write && !request.one_sided;
        if by_memory && request.wait.sleeps() {
            return Err(format!(
                "--operation write does not support --wait {}, since its receiver polls memory: \
                 use --wait busy, or --operation write_imm",
                request.wait.name()
            ));
        }
        Ok(())
    }

    fn loses(&self, settings: &Settings) -> bool {
        VerbsOptions::from(settings).service.loses()
    }

    fn numa_node(&self, settings: &Settings) -> Option<u32> {
        crate::host::rdma_node(settings.text("device"))
    }

    fn completes_each(&self, settings: &Settings) -> bool {
        let options = VerbsOptions::from(settings);
        options.signal_every == Some(1) || options.stamps_complete()
    }

    fn open(&self, setup: &Setup) -> Result<Opening, SetupError> {
        let options = VerbsOptions::from(&setup.settings);
        let service = options.service;
        let adapter = Adapter::choose(&options)?;
        let mtu = address::offered_mtu(&adapter, &options)?;
        if service == Service::Ud && setup.size as u64 > u64::from(mtu) {
            return Err(SetupError::NotAllowed(format!(
                "--size {} B is not allowed with --service ud: the MTU of {} is {mtu} B",
                setup.size, adapter.name
            )));
        }
        let domain = Domain::new(&adapter.context)?;
        let depths = Depths::of(setup, &options, &adapter.device);
        let size = setup.size.max(1);
        let layout =
            Layout::new(size, depths.slots, depths.receives as usize, service == Service::Ud);
        let memory = Memory::new(&domain, layout, &options)?;
        let queues = Queues::new(setup, &options, &adapter, &domain, depths)?;
        let mut pairs = Vec::new();
        for qp in &queues.pairs {
            address::initialise(qp, &adapter, service, datagram_key(setup, &options))?;
            // The number of the first packet has 24 bits.
            pairs.push((qp.number(), u32::from_le_bytes(setup::random()?) & 0x00ff_ffff));
        }
        let mut connection = options
            .by_manager()
            .then(|| Connection::new(service, setup.timeout.duration()))
            .transpose()?;
        let cm = match (&mut connection, setup.role) {
            (Some(connection), Role::Server) => Some(connection.listen(&adapter)?),
            _ => None,
        };
        let own = Address {
            service,
            operation: options.operation,
            size: size as u64,
            pairs,
            lid: if is_ethernet(&adapter.attributes) { 0 } else { adapter.attributes.lid },
            gid: adapter.gid,
            mtu,
            memory: memory.address(layout.arrival_at(0)),
            key: memory.registration().remote_key(),
            slots: depths.receives,
            stride: layout.arrive_stride() as u64,
            answers: adapter.device.max_qp_rd_atom.clamp(0, 255) as u8,
            cm,
        };
        let (address, setup) = (own.blob(), setup.clone());
        let end =
            HalfOpen { queues, memory, connection, domain, adapter, own, depths, options, setup };
        Ok(Opening::new(address, move |other| end.connect(other)))
    }
}

/// The key that datagrams to this end carry.
fn datagram_key(setup: &Setup, options: &VerbsOptions) -> u32 {
    match options.by_manager() {
        true => cm::DATAGRAM_KEY,
        false => address::queue_key(&setup.cookie),
    }
}

impl HalfOpen {
    fn connect(self, other: &Blob) -> Result<Connected, SetupError> {
        let other = Address::read(other, &self.own)?;
        let options = &self.options;
        let config = self.config();
        let key = datagram_key(&self.setup, options);
        let route = match config.service {
            Service::Ud => Some(address::route(&self.adapter, &other, options)),
            Service::Rc | Service::Uc => None,
        };
        let route = route.map(|route| Ok((self.domain.address(route)?, key))).transpose()?;
        let effective_settings = self.effective_settings(&config, &other);
        let before = Counters::of_port(&self.adapter.name, self.adapter.port);
        let stamps = (options.stamps_complete() && self.setup.role == Role::Client)
            .then(|| Stamps::of(&self.adapter.context, &self.adapter.name))
            .transpose()?;
        let HalfOpen { queues, memory, connection, adapter, own, setup, options, .. } = self;
        let mut endpoint = VerbsEndpoint::new(queues, memory, other, route, config, before, stamps);
        if !config.send_only && !config.watches_memory {
            resources::done(endpoint.post_receives().err().unwrap_or(0), "posting receives")?;
        }
        let options = &options;
        let pairs: Vec<&QueuePair> = endpoint.pairs.iter().map(|(qp, _)| qp).collect();
        let end = cm::End {
            adapter: &adapter,
            own: &own,
            other: &endpoint.other,
            options,
            cookie: &setup.cookie,
        };
        match connection {
            Some(mut connection) => {
                match setup.role {
                    Role::Server => connection.accept(&pairs, &end)?,
                    Role::Client => connection.connect(&pairs, &end)?,
                }
                endpoint.connection = Some(connection);
            }
            None => {
                for pair in pairs.into_iter().enumerate() {
                    address::connect(pair, &adapter, &own, &endpoint.other, options)?;
                }
            }
        }
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }

    fn config(&self) -> EndpointConfig {
        let (setup, options) = (&self.setup, &self.options);
        let (service, operation) = (self.own.service, self.own.operation);
        let one_sided = setup.traffic == Traffic::OneSided;
        let answered = matches!(setup.traffic, Traffic::Echo { .. });
        let depths = self.depths;
        let depth = u64::from(depths.send);
        // A slot whose payload the adapter reads later is free when its send has completed, and
        // that completion must come in time.
        let most = match (self.queues.inline, answered || service == Service::Ud) {
            (true, _) => depth.div_ceil(2),
            (false, true) => 1,
            (false, false) => (depths.slots as u64 / (2 * u64::from(depths.pairs))).max(1),
        };
        let signal_every = match options.signal_every {
            _ if options.stamps_complete() => 1,
            None => most,
            Some(every) => u64::from(every).clamp(1, most),
        };
        let may_lose = service.loses() && setup.role == Role::Client;
        let patience = Some(setup.loss_after).filter(|_| may_lose && answered);
        EndpointConfig {
            service,
            operation,
            posting: options.posting,
            polling: match options.stamps_complete() {
                true => Polling::Extended,
                false => options.polling.unwrap_or_default(),
            },
            inline: self.queues.inline,
            signal_every,
            send_depth: depth * u64::from(depths.pairs),
            receives: depths.receive as usize,
            watches_memory: operation == Operation::Write && !one_sided,
            send_only: one_sided,
            reaps_busily: options.send_wait == Some(Wait::Busy),
            patience: patience.and_then(|span| span.duration().try_into().ok()),
        }
    }

    /// What the two ends have agreed on, and what the adapter allows.
    fn effective_settings(&self, config: &EndpointConfig, other: &Address) -> NamedValues {
        let adapter = &self.adapter;
        let rate = std::fs::read_to_string(port_folder(&adapter.name, adapter.port).join("rate"));
        let on = |is_on| if is_on { "on" } else { "off" }.to_string();
        let address = match self.own.lid {
            0 => ("gid", Ipv6Addr::from(adapter.gid).to_string()),
            lid => ("lid", lid.to_string()),
        };
        let pages = if self.options.huge_pages { "huge" } else { "normal" };
        let mut all = vec![
            ("device", adapter.name.clone()),
            ("port", adapter.port.to_string()),
            ("link_rate", rate.unwrap_or_default().trim().to_string()),
            ("service", config.service.name().into()),
            ("operation", config.operation.name().into()),
            ("connect", self.options.connect.name().into()),
            ("queue_pairs", self.depths.pairs.to_string()),
            ("shared_receive_queue", on(self.queues.shared.is_some())),
            ("mtu", address::path_mtu(&self.own, other).to_string()),
            ("inline", on(config.inline)),
            ("inline_granted", self.queues.inline_granted.to_string()),
            ("signal_every", config.signal_every.to_string()),
            ("send_depth", self.depths.send.to_string()),
            ("receive_depth", self.depths.receive.to_string()),
            ("send_slots", self.depths.slots.to_string()),
            address,
            ("gid_index", adapter.gid_index.to_string()),
            ("post", config.posting.name().into()),
            ("poll", config.polling.name().into()),
            ("pages", pages.into()),
        ];
        let node = crate::host::rdma_node(Some(&adapter.name));
        all.extend(node.map(|node| ("numa_node", node.to_string())));
        all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}
