//! The queues of an end, as deep as the case needs them.

use super::adapter::Adapter;
use super::credits;
use super::memory_kind::MemoryKind;
use super::options::{self, CallStyle, INLINE_AUTO};
use super::queue_pair::{self, Maker, XrcDomain};
use super::resources::{Channel, CompletionQueue, QueuePair, SharedReceives};
use super::service::Service;
use super::stamps::Stamps;
use crate::{Operation, Result, Role, Setup, SetupError, Traffic};
use fabric_sys::verbs::types::*;
use std::sync::Arc;

/// How deep the queues are.
#[derive(Clone, Copy)]
pub(super) struct Depths {
    /// Queue pairs.
    pub pairs: u32,
    /// Slots for sending, over all queue pairs.
    pub slots: usize,
    /// Sends of each queue pair.
    pub send: u32,
    /// Work requests of each beside messages: one that asks what became of the others, and a word
    /// that is told.
    pub beside: u32,
    /// Receives of each queue pair, or of the queue that they share.
    pub receive: u32,
    /// Receives of all.
    pub receives: u32,
}

/// Sends on their way where nothing is asked for: perftest's transmit depth.
const SEND_DEPTH: u32 = 128;
/// Receives of a stream where nothing is asked for: perftest's receive depth.
const RECEIVE_DEPTH: u32 = 512;
/// The fewest receives where nothing is asked for, and the fewest entries of any device's queues.
const LEAST_RECEIVES: u32 = 16;
/// The fewest receives of an end that answers: one message may come while an answer is sent from
/// another's slot.
pub const LEAST_RECEIVES_OF_ECHO: u32 = 2;
/// Sends on their way over all queue pairs where nothing is asked for: their queues take some
/// 64 MiB.
const SEND_DEPTHS: u32 = 1 << 18;
/// Entries that a queue of every adapter is assumed to have: those in use have thousands.
const FEW_ENTRIES: i32 = 1 << 10;
/// Most memory for one direction's slots.
const MOST_BYTES: usize = 64 << 20;

impl Depths {
    /// What a case needs, within what any device has: 2^15 work requests of a queue are usual.
    pub fn of_most(setup: &Setup) -> Depths {
        let most = 1 << 20;
        Depths::within(setup, [most; 3], MOST_BYTES, 1)
    }

    /// Returns the fewest that a case gets of a device, where `sharing` ends share the receives.
    pub fn of_least(setup: &Setup, sharing: u32) -> Depths {
        Depths::within(setup, [FEW_ENTRIES; 3], MOST_BYTES, sharing)
    }

    /// What a case needs, within what the device has, and its memory where the slots are in it.
    /// `sharing` is how many ends take their messages from one queue.
    pub fn of(
        setup: &Setup,
        device: &ibv_device_attr,
        device_bytes: Option<usize>,
        sharing: u32,
    ) -> Depths {
        // Both directions, each on pages of its own.
        let most = device_bytes.map_or(MOST_BYTES, |bytes| bytes.saturating_sub(4096) / 2);
        let limits = [device.max_qp_wr, device.max_cqe, device.max_srq_wr];
        Depths::within(setup, limits, most.min(MOST_BYTES), sharing)
    }

    /// The limits are those of a queue pair, a completion queue and a shared receive queue.
    fn within(
        setup: &Setup,
        [max_qp_wr, max_cqe, max_srq_wr]: [i32; 3],
        most_bytes: usize,
        sharing: u32,
    ) -> Depths {
        let settings = &setup.settings;
        let pairs = settings.count32("queue-pairs").unwrap_or(1);
        let shares_receives = options::shares_receives(settings);
        let limit = |of_device: i32| u32::try_from(of_device).unwrap_or(0).max(LEAST_RECEIVES) - 1;
        let beside = 1 + u32::from(credits::are_told(setup));
        // All queue pairs complete into one queue.
        let entries = limit(max_cqe) + 1;
        let most =
            (limit(max_qp_wr) + 1 - beside).min((entries / pairs).saturating_sub(beside).max(1));
        let fit = (most_bytes / (setup.size + 64)).clamp(2, 1 << 20) as u32;
        let window = setup.window.clamp(1, fit);
        let usual = SEND_DEPTH.max(window).min((SEND_DEPTHS / pairs).max(window.div_ceil(pairs)));
        let send = settings.count32("send-depth").unwrap_or(usual).min(most);
        let slots = window.min(send.saturating_mul(pairs)) as usize;
        let fit_each = (fit / pairs).max(2);
        let asked = settings.count32("receive-depth");
        let usual = || match setup.traffic {
            // Twice what is on the way: a slot is never overwritten while it is looked at.
            Traffic::Echo { .. } => window.saturating_mul(2).saturating_mul(sharing),
            Traffic::Forward | Traffic::Both => RECEIVE_DEPTH,
            Traffic::OneSided | Traffic::Collective => slots as u32,
        };
        let wanted = asked.unwrap_or_else(|| usual().max(LEAST_RECEIVES.min(fit_each)));
        let most = match shares_receives {
            true => limit(max_srq_wr).min(entries),
            false => limit(max_qp_wr).min((entries / pairs).max(1)),
        };
        let receive = wanted.min(fit_each.max(2 * window.div_ceil(pairs))).min(most);
        let receives = if shares_receives { receive } else { receive * pairs };
        Depths { pairs, slots, send, beside, receive, receives }
    }
}

/// The queues of an end.
pub(super) struct Queues {
    // Dropped in this order.
    pub pairs: Vec<QueuePair>,
    /// The queue pairs that receive where those that send do not: of XRC one for each, of DC one.
    pub receivers: Vec<QueuePair>,
    pub shared: Option<Arc<SharedReceives>>,
    /// The number of an XRC receive queue.
    pub shared_number: u32,
    #[allow(dead_code, reason = "kept alive")]
    pub domain: Option<XrcDomain>,
    pub send: CompletionQueue,
    pub receive: CompletionQueue,
    /// Whether payloads are copied into the work requests, and how much the adapter grants.
    pub inline: bool,
    pub inline_granted: u32,
    /// The device's own stamps of completed sends, where they were asked for.
    pub stamps: Option<Stamps>,
    /// Whose calls made the queue pairs.
    pub maker: Maker,
}

impl Queues {
    /// Makes them; with receives of its own, unless it takes messages from these. Initiators of
    /// dynamic connections show `key`.
    pub fn new(
        setup: &Setup,
        adapter: &Adapter,
        depths: Depths,
        (shared, key): (Option<Arc<SharedReceives>>, u64),
    ) -> Result<Queues> {
        let (domain, settings) = (&adapter.domain, &setup.settings);
        let maker = Maker::of(setup, adapter)?;
        let channel = Channel::new(&domain.parent)?;
        let stamps = options::stamps_complete(settings);
        let stamps = stamps.then(|| Stamps::of(&domain.parent, &adapter.name)).transpose()?;
        let is_extended = options::polling(settings) == CallStyle::Extended;
        // `ibv_next_poll` of Soft-RoCE in rdma-core 44 loses completions; one at a time is right.
        let at_once = if adapter.name.starts_with("rxe") { 1 } else { usize::MAX };
        let queue = |entries, stamps| {
            CompletionQueue::new(&channel, entries, is_extended.then_some(stamps), at_once)
        };
        let send = queue((depths.send + depths.beside) * depths.pairs, stamps.is_some())?;
        let receive = queue(depths.receives, false)?;
        if let Some((count, period)) = options::moderation(settings) {
            [&send, &receive].into_iter().try_for_each(|queue| queue.moderate(count, period))?;
        }
        let stamps = stamps.filter(|_| setup.role == Role::Client);
        let mut queues = Queues {
            pairs: Vec::new(),
            receivers: Vec::new(),
            shared,
            shared_number: 0,
            domain: None,
            send,
            receive,
            inline: false,
            inline_granted: 0,
            stamps,
            maker,
        };
        queues.add_receivers(setup, adapter, depths, key)?;
        for _ in 0..depths.pairs {
            queues.add_pair(setup, adapter, depths)?;
        }
        Ok(queues)
    }

    /// Makes the receive queue that all share, and what receives into it.
    fn add_receivers(
        &mut self,
        setup: &Setup,
        adapter: &Adapter,
        depths: Depths,
        key: u64,
    ) -> Result<()> {
        let (domain, service) = (&adapter.domain, options::service(&setup.settings));
        let lacks = |error| service.lacks(&adapter.name, &error);
        if service == Service::Xrc {
            let of = XrcDomain::new(&domain.parent).map_err(lacks)?;
            let (shared, number) = of.receives(domain, &self.receive, depths.receives)?;
            (self.shared, self.shared_number) = (Some(Arc::new(shared)), number);
            for _ in 0..depths.pairs {
                self.receivers.push(self.maker.receiver(domain, &of)?);
            }
            self.domain = Some(of);
        } else if self.shared.is_none() && options::shares_receives(&setup.settings) {
            self.shared = Some(Arc::new(SharedReceives::new(domain, depths.receives)?));
        }
        if let (Some(library), Some(shared)) = (self.maker.addresses(), &self.shared) {
            let queues = (&self.send, &self.receive);
            let target = queue_pair::target(library, domain, queues, shared, key).map_err(lacks)?;
            self.receivers.push(target);
        }
        Ok(())
    }

    /// The attributes of a queue pair that sends.
    fn attributes(&self, setup: &Setup, depths: Depths, inline: u32) -> ibv_qp_init_attr_ex {
        let service = options::service(&setup.settings);
        let receives_itself = self.receivers.is_empty();
        let shared = self.shared.as_deref().filter(|_| receives_itself);
        let receives = if receives_itself && shared.is_none() { depths.receive } else { 0 };
        let operations = codes_of(setup.settings.operation()).1;
        // The question after sends that make no completion is an empty write.
        let asks = if service == Service::Dc { IBV_QP_EX_WITH_RDMA_WRITE } else { 0 };
        ibv_qp_init_attr_ex {
            send_cq: self.send.raw(),
            recv_cq: self.receive.raw(),
            srq: shared.map_or(std::ptr::null_mut(), SharedReceives::raw),
            cap: ibv_qp_cap {
                max_send_wr: depths.send + depths.beside,
                max_recv_wr: receives,
                max_send_sge: 1,
                max_recv_sge: if receives_itself { 1 } else { 0 },
                max_inline_data: inline,
            },
            qp_type: match service {
                Service::Rc => IBV_QPT_RC,
                Service::Uc => IBV_QPT_UC,
                Service::Ud => IBV_QPT_UD,
                Service::Xrc => IBV_QPT_XRC_SEND,
                Service::Dc | Service::Srd => IBV_QPT_DRIVER,
            },
            send_ops_flags: u64::from(operations | asks),
            ..ibv_qp_init_attr_ex::default()
        }
    }

    fn add_pair(&mut self, setup: &Setup, adapter: &Adapter, depths: Depths) -> Result<()> {
        let settings = &setup.settings;
        let (operation, asked) = (settings.operation(), options::inline(settings));
        let marker = usize::from(operation == Operation::Write);
        let length = (setup.size + marker) as u32;
        let most = asked.unwrap_or(INLINE_AUTO);
        let most = most.min(self.maker.most_inline().unwrap_or(u32::MAX));
        let is_read_late =
            settings.stamps_send() || MemoryKind::of(settings, setup.role) != MemoryKind::Host;
        let wants = length <= most && operation.carries_payload() && !is_read_late;
        let extended = options::posting(settings) == CallStyle::Extended;
        let service = options::service(settings);
        let make = |inline| {
            let attributes = self.attributes(setup, depths, inline);
            self.maker.make((adapter, service), attributes, extended)
        };
        let wanted = if wants { length.max(most) } else { 0 };
        let (qp, granted) = match (make(wanted), asked) {
            (Ok(made), _) => made,
            // An adapter that cannot so much may still be used without.
            (Err(_), None) if wants => make(0)?,
            (Err(error), Some(bytes)) if wants => {
                return Err(SetupError::NotAllowed(format!(
                    "{error}; --inline {bytes} may be more than the adapter supports: use auto, \
                     off or less"
                )));
            }
            (Err(error), _) => return Err(error),
        };
        self.inline = wants && granted >= length;
        self.inline_granted = granted;
        self.pairs.push(qp);
        Ok(())
    }
}

/// The opcode of an operation, and the calls that it needs, as a flag of the queue pair.
pub(super) fn codes_of(operation: Operation) -> (ibv_wr_opcode, u32) {
    match operation {
        Operation::Send => (IBV_WR_SEND, IBV_QP_EX_WITH_SEND),
        Operation::SendImm => (IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM),
        Operation::Write => (IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE),
        Operation::WriteImm => (
            IBV_WR_RDMA_WRITE_WITH_IMM,
            IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
        ),
        Operation::Read => (IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ),
        Operation::FetchAdd => (IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD),
        Operation::CompareSwap => (IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP),
    }
}
