//! The data path: work requests, completions, arrivals.
//!
//! `post` writes a work request into a list that was linked beforehand, `flush` rings the doorbell
//! once for the list, `poll` takes completions. A receive is given back by the poll after the one
//! that handed its message over, in one list for all of a poll.

use super::address::Address;
use super::cm::Connection;
use super::counters::{self, Counters};
use super::credits::Credits;
use super::errors::Errors;
use super::lent::Lent;
use super::memory::{Memory, Ring};
use super::numbers::Numbers;
use super::options::CallStyle;
use super::order::Order;
use super::queues::{Queues, codes_of};
use super::resources::AddressHandle;
use super::service::Service;
use crate::counter::FinalCounters;
use crate::optional::{DeviceClock, LiveWord, Watched};
use crate::*;
use fabric_sys::verbs::types::*;
use rustix::event::Timespec;
use std::os::fd::{AsFd, OwnedFd};

/// A list of receives for one call, linked once.
pub(super) struct Lists {
    pub sends: [ibv_send_wr; MOST_EVENTS],
    pub send_pieces: [ibv_sge; MOST_EVENTS],
    pub receives: [ibv_recv_wr; MOST_EVENTS],
    pub receive_pieces: [ibv_sge; MOST_EVENTS],
    pub completions: [ibv_wc; MOST_EVENTS],
    /// When the device says that each was completed, where it stamps.
    pub stamps: [u64; MOST_EVENTS],
}

/// The configuration of a connected end.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndpointConfig {
    /// Which end of the connection it is.
    pub role: Role,
    pub service: Service,
    pub operation: Operation,
    /// Whether each classic work request names its receiver, which takes the place of the remote
    /// memory there: sends of datagrams.
    pub names_receiver: bool,
    /// Whether payloads are numbered and not read.
    pub is_numbered: bool,
    pub posting: CallStyle,
    pub polling: CallStyle,
    /// Every n-th send of a queue pair makes a completion.
    pub signal_every: u64,
    /// Whether a message that arrives says that all sends before it have completed.
    pub answered: bool,
    /// Whether a completion is mostly there when the next message arrives, and of no use before.
    pub reaps_late: bool,
    /// Sends that may be on their way, over all queue pairs.
    pub send_depth: u64,
    /// Receives of each queue pair.
    pub receives: usize,
    /// Whether arrivals are seen in memory instead of by completions.
    pub watches_memory: bool,
    /// Whether the ends tell each other how many messages they have taken.
    pub is_told: bool,
    /// How many more writes a message that arrives lets go, at an end whose writes are answered: no
    /// more are unanswered than there are slots. Else 0.
    pub answers: u64,
    /// Whether a message may be shorter than its slot.
    pub has_many_lengths: bool,
    /// Whether nothing arrives at this end.
    pub send_only: bool,
    /// Whether one slot for arrivals has no receive ([`VerbsEndpoint::post_receives`]).
    pub spares_slot: bool,
    /// Whether send completions are polled busily, whatever the case's wait mode.
    pub reaps_busily: bool,
    /// Whether a poll that finds nothing sleeps until a send completes, at an end to which nothing
    /// comes.
    pub sleeps_for_sends: bool,
    /// How long a wait may last where messages may be lost.
    pub patience: Option<Timespec>,
}

/// Connected queue pairs with their queues and memory.
pub struct VerbsEndpoint {
    // Dropped in this order: what others are made of comes last.
    pub(super) queues: Queues,
    pub(super) route: Option<(AddressHandle, u32)>,
    pub(super) memory: Memory,
    /// What the connection manager keeps of the connections.
    #[allow(dead_code, reason = "kept alive")]
    pub(super) connection: Option<Connection>,
    pub(super) lists: Box<Lists>,
    pub(super) config: EndpointConfig,
    pub(super) other: Address,
    /// Sends in the list, not yet posted.
    pub(super) staged: usize,
    /// The queue pair of the first of them.
    pub(super) first: usize,
    pub(super) order: Order,
    /// The numbers of messages whose payloads are not read.
    pub(super) numbers: Option<Box<Numbers>>,
    /// The completed sends that polls have reported.
    reported: u64,
    idle: u32,
    /// Slots that the last poll handed over, to be given back.
    pub(super) handed: [u32; MOST_EVENTS],
    pub(super) handed_count: usize,
    /// Those that an answer is sent from.
    pub(super) lent: Lent,
    /// Receives in the list, not yet posted, and the queue pair that they are for.
    pub(super) giving: usize,
    pub(super) giving_to: usize,
    /// Where the next message goes at the other end.
    pub(super) target: Ring,
    /// The flags of every send.
    flags: u32,
    /// Where memory is watched for the next arrival, and how far ahead of it was looked last.
    pub(super) awaited: Ring,
    pub(super) ahead: u64,
    /// What the ends tell each other of messages that they have taken, and the sends that the other
    /// end has slots for.
    pub(super) credits: Option<Box<Credits>>,
    pub(super) limit: u64,
    /// What the messages that the last poll handed over let go, once their slots are given back.
    pub(super) let_go: u64,
    pub(super) link: Link,
    pub(super) errors: Errors,
    /// The port's, when the ends were connected.
    before: Counters,
    /// What a thread sleeps on that has several ends.
    pub(super) alarm: Option<OwnedFd>,
}

// SAFETY: the lists hold pointers into themselves (boxed, so they stay where they are) and into
// registered memory, which the endpoint owns or shares with ends that use other slots of it.
unsafe impl Send for VerbsEndpoint {}

/// Polls that found nothing before unsignalled sends are checked.
pub(super) const LOOK_AFTER: u32 = 64;
/// Polls that found nothing before the device's async events are read, which is a system call: some
/// ten milliseconds.
pub(super) const READ_ASYNC_AFTER: u32 = 1 << 20;

impl VerbsEndpoint {
    /// The endpoint of queue pairs that may send. What is routed has a route to the other end, and
    /// datagrams its key.
    pub(super) fn new(
        queues: Queues,
        memory: Memory,
        other: Address,
        route: Option<(AddressHandle, u32)>,
        config: EndpointConfig,
        before: Counters,
    ) -> VerbsEndpoint {
        // SAFETY: numbers, null pointers and unions of them, as their defaults are.
        let lists: Lists = unsafe { std::mem::zeroed() };
        let target = Ring::new(other.memory, other.stride, other.slots.into());
        let target = target.written_by(config.role);
        let credits = memory.layout.words_at.map(|at| {
            let theirs = (other.word, u64::from(other.slots));
            Box::new(Credits::new(at, memory.layout.arriving as u64, theirs))
        });
        let awaited = memory.layout.arrivals().written_by(config.role.other());
        let limit = match (&credits, config.answers) {
            (Some(_), _) => 0,
            (None, 0) => u64::MAX,
            (None, of_each) => target.slots().min(awaited.slots() * of_each),
        };
        let mut endpoint = VerbsEndpoint {
            order: match config.service.completes_each() {
                true => Order::scattered(queues.pairs.len(), config.send_depth),
                false => Order::new(queues.pairs.len(), config.signal_every),
            },
            numbers: None,
            lent: Lent::of(memory.layout.arriving),
            queues,
            route,
            memory,
            connection: None,
            lists: Box::new(lists),
            config,
            other,
            staged: 0,
            first: 0,
            reported: 0,
            idle: 0,
            handed: [0; MOST_EVENTS],
            handed_count: 0,
            giving: 0,
            giving_to: 0,
            target,
            flags: 0,
            awaited,
            ahead: 0,
            limit,
            let_go: 0,
            credits,
            link: Link::Up,
            errors: Errors::default(),
            before,
            alarm: None,
        };
        endpoint.prepare();
        endpoint
    }

    /// Writes what no message changes.
    fn prepare(&mut self) {
        let (key, _) = self.memory.registration.keys();
        let (opcode, _) = codes_of(self.config.operation);
        self.flags = if self.queues.inline { IBV_SEND_INLINE } else { 0 };
        let lists = &mut *self.lists;
        for number in 0..MOST_EVENTS {
            lists.send_pieces[number].lkey = key;
            lists.receive_pieces[number].lkey = key;
            let send = &mut lists.sends[number];
            send.sg_list = &mut lists.send_pieces[number];
            send.num_sge = 1;
            send.opcode = opcode;
            if matches!(self.config.operation, Operation::Write | Operation::Read) {
                send.wr.rdma = rdma(0, self.other.key);
            }
            if self.config.names_receiver
                && let Some((route, key_of_other)) = &self.route
            {
                send.wr.ud.ah = route.raw();
                send.wr.ud.remote_qkey = *key_of_other;
            }
            if self.config.service == Service::Xrc {
                send.qp_type.xrc.remote_srqn = self.other.shared;
            }
            let receive = &mut lists.receives[number];
            receive.sg_list = &mut lists.receive_pieces[number];
            receive.num_sge = 1;
        }
        for number in 0..MOST_EVENTS - 1 {
            lists.receives[number].next = &mut lists.receives[number + 1];
        }
        self.link_sends(0..MOST_EVENTS);
    }

    /// Whether the send queue takes no more. Who only posts must see it drain too: completions are
    /// taken here, and reported by the next poll.
    #[inline(always)]
    fn is_full(&mut self) -> bool {
        if self.order.posted - self.order.retired < self.config.send_depth {
            return false;
        }
        self.reap();
        self.order.posted - self.order.retired >= self.config.send_depth
    }

    /// Whether completions are to come.
    #[inline(always)]
    fn awaits(&self) -> bool {
        self.order.awaits() || self.credits.as_ref().is_some_and(|credits| credits.is_telling)
    }

    /// Whether a receive puts a header before the payload.
    #[inline(always)]
    pub(super) fn has_header(&self) -> bool {
        self.config.service.has_header()
    }

    /// The number of the message that has arrived in this slot, where payloads are not read.
    #[inline(never)]
    fn number_of(&self, slot: Slot) -> Option<u64> {
        let (numbers, slot) = (self.numbers.as_ref()?, slot.number());
        let handed = &self.handed[..self.handed_count];
        let place = match self.config.operation {
            // It lies elsewhere than its receive: its slot tells the number.
            Operation::WriteImm => 0,
            _ => handed.iter().position(|place| *place as usize == slot)?,
        };
        Some(numbers.number(place, slot))
    }

    /// A message that is not read: its number, as much of it as fits.
    #[inline(never)]
    fn numbered(&mut self, arrival: &Arrival) -> &[u8] {
        let number = self.number_of(arrival.slot).unwrap_or(u64::MAX).to_le_bytes();
        let at = self.memory.layout.at(arrival.slot);
        let length = (arrival.length as usize).min(self.memory.layout.size);
        let message = self.memory.bytes(at, length);
        let front = length.min(number.len());
        message[..front].copy_from_slice(&number[..front]);
        message
    }

    /// Sends that count as completed. A payload that was copied when it was posted may be written
    /// again at once, in the order of the signalled ones.
    #[inline(always)]
    fn completed(&self) -> u64 {
        let done = self.order.retired;
        if self.queues.inline && self.config.signal_every > 1 {
            let flushed = self.order.posted - self.staged as u64;
            return done.max(self.order.next_signalled.min(flushed));
        }
        done
    }

    /// Reports what has completed.
    #[inline(always)]
    pub(super) fn report(&mut self, events: &mut Events) {
        let done = self.completed();
        events.completed = (done - self.reported) as u32;
        self.reported = done;
        events.link = self.link;
    }
}

impl Endpoint for VerbsEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.memory.layout.sending as u32
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let layout = self.memory.layout;
        self.memory.bytes(layout.at(slot), layout.size)
    }

    #[inline(always)]
    fn message(&mut self, arrival: &Arrival) -> &[u8] {
        if self.config.is_numbered {
            return self.numbered(arrival);
        }
        let memory = self.payload(arrival.slot);
        &memory[..(arrival.length as usize).min(memory.len())]
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let place = self.staged;
        if place == MOST_EVENTS || self.is_full() {
            return Posted::Full;
        }
        if self.order.posted >= self.limit && self.has_no_slot_there() {
            return Posted::Full;
        }
        let at = self.memory.layout.at(slot);
        let mut length = length;
        let (number, pair) = (self.order.posted, self.order.turn);
        let target = self.target;
        if self.config.operation == Operation::Write && self.config.watches_memory {
            self.memory.bytes(at + length, 1)[0] = target.marker;
            length += 1;
        }
        // An answer carries the number of what it answers.
        let mut carried = number as u32;
        if slot.has_arrived() {
            if self.config.is_numbered {
                carried = self.number_of(slot).map_or(carried, |number| number as u32);
            }
            self.lend(slot.number() as u32);
        }
        let signalled =
            if self.order.take(self.queues.pairs.len() == 1) { IBV_SEND_SIGNALED } else { 0 };
        let operation = self.config.operation;
        let address = target.at;
        if operation != Operation::Send {
            self.target.advance();
        }
        let (lists, addr) = (&mut *self.lists, self.memory.address(at));
        let piece = &mut lists.send_pieces[place];
        piece.addr = addr;
        piece.length = length as u32;
        let send = &mut lists.sends[place];
        send.wr_id = number;
        send.send_flags = self.flags | signalled;
        if self.config.names_receiver {
            send.wr.ud.remote_qpn = self.other.pairs[pair].0;
        }
        match operation {
            Operation::Send => {}
            Operation::SendImm => send.__bindgen_anon_1.imm_data = carried.to_be(),
            Operation::WriteImm => {
                send.__bindgen_anon_1.imm_data = (target.slot() as u32).to_be();
                send.wr.rdma = rdma(address, self.other.key);
            }
            // The key is there.
            Operation::Write | Operation::Read => send.wr.rdma.remote_addr = address,
            Operation::FetchAdd | Operation::CompareSwap => {
                send.wr.atomic = ibv_send_wr__bindgen_ty_2__bindgen_ty_2 {
                    remote_addr: address,
                    compare_add: 1,
                    swap: number,
                    rkey: self.other.key,
                };
            }
        }
        self.staged = place + 1;
        Posted::Accepted
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.staged == 0 {
            return;
        }
        let error = match self.config.posting {
            CallStyle::Classic => self.ring_classic(),
            CallStyle::Extended => self.ring_extended(),
        };
        self.staged = 0;
        self.first = self.order.turn;
        if error != 0 {
            self.refuse(error.abs());
        }
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        if self.config.watches_memory {
            self.pass_taken();
            self.watch(events);
        } else if !self.config.send_only {
            self.give_back();
            self.receive(events);
        }
        if self.awaits() {
            self.reap();
        }
        self.report(events);
        if events.any() {
            self.idle = 0;
            return true;
        }
        if self.config.sleeps_for_sends && self.order.awaits() {
            return self.sleep_for_sends(events);
        }
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(LOOK_AFTER) {
            self.look_after_sends();
            if self.idle.is_multiple_of(READ_ASYNC_AFTER) {
                self.read_async_events();
            }
        }
        false
    }

    fn watched(&self) -> Option<Watched<'_>> {
        self.alarm.as_ref().map(|alarm| Watched::Armed(alarm.as_fd()))
    }

    fn arm(&mut self, was_readable: bool) -> bool {
        self.look_after_all_sends();
        let has_news = self.completed() > self.reported;
        self.arm_after(was_readable) && !has_news && !self.polls_for_sends(self.order.awaits())
    }

    fn live_word(&mut self, slot: Slot, at: usize) -> Option<LiveWord> {
        let layout = self.memory.layout;
        let fits = !self.queues.inline && !slot.has_arrived() && at + 8 <= layout.size;
        let at = layout.sending_at(slot.number()) + at;
        fits.then(|| self.memory.live(at)).flatten()
    }

    fn device_clock(&self) -> Option<&dyn DeviceClock> {
        self.queues.stamps.as_ref().map(|stamps| stamps as &dyn DeviceClock)
    }

    /// Errors, and what the port has counted since the connection.
    fn final_counters(&self) -> FinalCounters {
        let mut all = self.errors.counters();
        if matches!(self.link, Link::Failed(_)) {
            counters::settle();
        }
        all.extend(self.before.moved());
        all
    }

    fn wait(&mut self, events: &mut Events) {
        if self.poll(events) {
            return;
        }
        self.look_after_all_sends();
        // An event between the last poll and the arming would be missed.
        self.ask_for_events();
        if self.poll(events) {
            return;
        }
        if self.config.reaps_busily && self.order.awaits() {
            return;
        }
        self.sleep(self.config.patience);
        self.poll(events);
    }
}

#[inline(always)]
fn rdma(remote_addr: u64, rkey: u32) -> ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
    ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr, rkey }
}
