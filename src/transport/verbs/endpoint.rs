//! The data path: work requests, completions, arrivals.
//!
//! `post` writes a work request into a list that was linked beforehand, `flush` rings the doorbell
//! once for the list, `poll` takes completions. A receive is given back by the poll after the one
//! that handed its message over, in one list for all of a poll.

use super::address::Address;
use super::counters::Counters;
use super::errors::Errors;
use super::memory::{GRH, Memory};
use super::options::{Posting, Service};
use super::resources::{AddressHandle, CompletionQueue, QueuePair};
use crate::transport::*;
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{Verbs, inline};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::c_int;

/// A list of receives for one call, linked once.
pub(super) struct Lists {
    pub sends: [ibv_send_wr; MOST_EVENTS],
    pub send_pieces: [ibv_sge; MOST_EVENTS],
    pub receives: [ibv_recv_wr; MOST_EVENTS],
    pub receive_pieces: [ibv_sge; MOST_EVENTS],
    pub completions: [ibv_wc; MOST_EVENTS],
}

/// What an end is, once it is connected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub service: Service,
    pub operation: Operation,
    pub posting: Posting,
    /// Whether payloads are copied into the work requests.
    pub inline: bool,
    /// Every so many sends make a completion.
    pub signal_every: u64,
    /// Sends that may be on their way.
    pub send_depth: u64,
    /// Whether arrivals are seen in memory instead of by completions.
    pub watches_memory: bool,
    /// Whether nothing arrives at this end.
    pub deaf: bool,
    /// Whether completions of sends are waited for busily, whatever the case's wait mode.
    pub reaps_busily: bool,
    /// How long a wait may last where messages may be lost.
    pub patience: Option<rustix::event::Timespec>,
}

/// A connected queue pair with its queues and memory.
pub struct VerbsEndpoint {
    // Dropped in this order: what others are made of comes last.
    pub(super) qp: QueuePair,
    pub(super) route: Option<AddressHandle>,
    pub(super) send_queue: CompletionQueue,
    pub(super) receive_queue: CompletionQueue,
    pub(super) memory: Memory,
    pub(super) lists: Box<Lists>,
    pub(super) shape: Shape,
    pub(super) other: Address,
    /// Sends in the list, not yet posted.
    pub(super) staged: usize,
    /// Sends taken by `post`.
    pub(super) posted: u64,
    /// Until the next signalled send.
    until_signal: u64,
    /// Sends up to and with the last signalled one.
    signalled: u64,
    /// Of the sends taken, those that are known to have completed.
    pub(super) retired: u64,
    /// Of those, what the pattern has been told.
    reported: u64,
    /// Whether a signalled nothing is on its way, to learn that all before it has completed.
    pub(super) nudged: bool,
    idle: u32,
    /// Slots that the last poll handed over, to be given back.
    pub(super) handed: [u32; MOST_EVENTS],
    pub(super) handed_count: usize,
    /// Of those that an answer is sent from: the send after which each may be given back.
    pub(super) lent: std::collections::VecDeque<(u64, u32)>,
    /// The next arrival that memory is watched for.
    expected: u64,
    pub(super) link: Link,
    errors: Errors,
    /// Name and port, for the counters.
    device: (String, u8),
    before: Counters,
    pub(super) granted: Vec<(String, String)>,
}

// SAFETY: the lists hold pointers into themselves (boxed, so they stay where they are) and into
// registered memory, all of which the endpoint owns.
unsafe impl Send for VerbsEndpoint {}

/// Polls that found nothing before a tail of unsignalled sends is asked for.
const NUDGE_AFTER: u32 = 64;
/// The work request that carries nothing.
pub(super) const NUDGE: u64 = u64::MAX;

/// What an endpoint is made of.
pub(super) struct Made {
    pub qp: QueuePair,
    pub route: Option<AddressHandle>,
    pub send_queue: CompletionQueue,
    pub receive_queue: CompletionQueue,
    pub memory: Memory,
    pub shape: Shape,
    pub other: Address,
    pub device: (String, u8),
    pub before: Counters,
    pub granted: Vec<(String, String)>,
}

impl VerbsEndpoint {
    /// The endpoint of a queue pair that may send.
    pub(super) fn new(made: Made, cookie_key: u32) -> VerbsEndpoint {
        let Made { qp, route, send_queue, receive_queue, memory, shape, other, .. } = made;
        let lists = Lists {
            sends: [ibv_send_wr::default(); MOST_EVENTS],
            send_pieces: [ibv_sge::default(); MOST_EVENTS],
            receives: [ibv_recv_wr::default(); MOST_EVENTS],
            receive_pieces: [ibv_sge::default(); MOST_EVENTS],
            completions: [ibv_wc::default(); MOST_EVENTS],
        };
        let mut endpoint = VerbsEndpoint {
            qp,
            route,
            send_queue,
            receive_queue,
            memory,
            lists: Box::new(lists),
            shape,
            other,
            staged: 0,
            posted: 0,
            until_signal: shape.signal_every,
            signalled: 0,
            retired: 0,
            reported: 0,
            nudged: false,
            idle: 0,
            handed: [0; MOST_EVENTS],
            handed_count: 0,
            lent: std::collections::VecDeque::with_capacity(4 * MOST_EVENTS),
            expected: 0,
            link: Link::Up,
            errors: Errors::default(),
            device: made.device,
            before: made.before,
            granted: made.granted,
        };
        endpoint.prepare(cookie_key);
        endpoint
    }

    /// The library.
    pub(super) fn verbs(&self) -> &'static Verbs {
        self.qp.domain.context.verbs()
    }

    /// Sends in the list.
    #[inline(always)]
    pub(super) fn staged(&self) -> usize {
        self.staged
    }

    /// Errors and what the port has counted since the connection.
    pub(super) fn afterwards(&self) -> Vec<(String, String)> {
        let (device, port) = (&self.device.0, self.device.1);
        let mut all = self.errors.told();
        all.extend(Counters::of_port(device, port).since(&self.before));
        all
    }

    /// Writes what no message changes.
    fn prepare(&mut self, cookie_key: u32) {
        let key = self.memory.registration().local_key();
        let opcode = opcode_of(self.shape.operation);
        let lists = &mut *self.lists;
        for number in 0..MOST_EVENTS {
            lists.send_pieces[number].lkey = key;
            lists.receive_pieces[number].lkey = key;
            let send = &mut lists.sends[number];
            send.sg_list = &mut lists.send_pieces[number];
            send.num_sge = 1;
            send.opcode = opcode;
            if let Some(route) = &self.route {
                send.wr.ud.ah = route.raw();
                send.wr.ud.remote_qpn = self.other.qp;
                send.wr.ud.remote_qkey = cookie_key;
            }
            let receive = &mut lists.receives[number];
            receive.sg_list = &mut lists.receive_pieces[number];
            receive.num_sge = 1;
        }
        for number in 0..MOST_EVENTS - 1 {
            lists.receives[number].next = &mut lists.receives[number + 1];
        }
    }

    /// Takes completions of receives.
    #[inline(always)]
    fn receive(&mut self, events: &mut Events) {
        let queue = self.receive_queue.raw();
        let most = MOST_EVENTS as c_int;
        // SAFETY: a live queue, and room for as many completions.
        let found = unsafe { inline::poll_cq(queue, most, self.lists.completions.as_mut_ptr()) };
        if found < 0 {
            self.link = Link::Failed(-found);
            return;
        }
        let header = if self.shape.service == Service::Ud { GRH as u32 } else { 0 };
        for number in 0..(found as usize).min(MOST_EVENTS) {
            let completion = self.lists.completions[number];
            if completion.status != IBV_WC_SUCCESS {
                self.failed(&completion, "receive");
                continue;
            }
            let slot = completion.wr_id as u32;
            self.handed[self.handed_count] = slot;
            self.handed_count += 1;
            let length = match self.shape.operation {
                // The message lies where the immediate value says, and not where the receive was.
                Operation::WriteImm => {
                    // SAFETY: a receive with an immediate value has it in this member.
                    let immediate = u32::from_be(unsafe { completion.__bindgen_anon_1.imm_data });
                    let at = immediate as usize % self.memory.layout.arriving;
                    events.arrive(Slot::arrived(at as u32), self.memory.layout.size as u32);
                    continue;
                }
                _ => completion.byte_len.saturating_sub(header),
            };
            events.arrive(Slot::arrived(slot), length);
        }
    }

    /// Looks for messages that another end's adapter has written here.
    #[inline(always)]
    fn watch(&mut self, events: &mut Events) {
        let size = self.memory.layout.size;
        while !events.is_full() {
            let mut number = self.expected;
            if !self.is_written(number, size) {
                // What is lost leaves a gap: the one after it may be there.
                number += 1;
                if !self.shape.service.loses() || !self.is_written(number, size) {
                    return;
                }
            }
            let slot = (number % self.memory.layout.arriving as u64) as u32;
            events.arrive(Slot::arrived(slot), size as u32);
            self.expected = number + 1;
        }
    }

    #[inline(always)]
    fn is_written(&self, number: u64, size: usize) -> bool {
        let slots = self.memory.layout.arriving as u64;
        let at = self.memory.layout.arrival_at((number % slots) as usize);
        self.memory.byte_now(at + size) == marker(number / slots)
    }

    /// Whether a send that makes a completion is on its way.
    #[inline(always)]
    pub(super) fn awaits_send(&self) -> bool {
        self.signalled > self.retired || self.nudged
    }

    /// Takes completions of sends, where one is on its way.
    #[inline(always)]
    fn reap(&mut self) {
        if !self.awaits_send() {
            return;
        }
        let (queue, most) = (self.send_queue.raw(), MOST_EVENTS as c_int);
        // SAFETY: a live queue, and room for as many completions.
        let found = unsafe { inline::poll_cq(queue, most, self.lists.completions.as_mut_ptr()) };
        if found < 0 {
            self.link = Link::Failed(-found);
            return;
        }
        for number in 0..(found as usize).min(MOST_EVENTS) {
            let completion = self.lists.completions[number];
            if completion.status != IBV_WC_SUCCESS {
                self.failed(&completion, self.shape.operation.name());
            } else if completion.wr_id == NUDGE {
                self.nudged = false;
                self.retired = self.retired.max(self.posted - self.staged as u64);
            } else {
                self.retired = self.retired.max(completion.wr_id + 1);
            }
        }
    }

    /// Whether the send queue takes no more. Who only posts must see it drain too: completions are
    /// taken here, and reported by the next poll.
    #[inline(always)]
    fn is_full(&mut self) -> bool {
        if self.posted - self.retired < self.shape.send_depth {
            return false;
        }
        self.reap();
        self.posted - self.retired >= self.shape.send_depth
    }

    #[cold]
    fn failed(&mut self, completion: &ibv_wc, what: &'static str) {
        let link = self.errors.note(what, completion);
        if self.link == Link::Up {
            self.link = link;
        }
    }

    /// Reports what has completed. A payload that was copied when it was posted may be written
    /// again at once, in the order of the signalled ones.
    #[inline(always)]
    fn report(&mut self, events: &mut Events) {
        let mut done = self.retired;
        let every = self.shape.signal_every;
        if self.shape.inline && every > 1 {
            let next_signalled = (self.retired / every + 1) * every - 1;
            done = done.max(next_signalled.min(self.posted - self.staged as u64));
        }
        events.completed = (done - self.reported) as u32;
        self.reported = done;
        events.link = self.link;
    }
}

/// What stands behind the payload of a write, for the other end to see that it has come: another in
/// each lap, and never what fresh memory holds.
#[inline(always)]
fn marker(lap: u64) -> u8 {
    (lap % 255) as u8 + 1
}

fn opcode_of(operation: Operation) -> ibv_wr_opcode {
    match operation {
        Operation::Send => IBV_WR_SEND,
        Operation::SendImm => IBV_WR_SEND_WITH_IMM,
        Operation::Write => IBV_WR_RDMA_WRITE,
        Operation::WriteImm => IBV_WR_RDMA_WRITE_WITH_IMM,
        Operation::Read => IBV_WR_RDMA_READ,
        Operation::FetchAdd => IBV_WR_ATOMIC_FETCH_AND_ADD,
        Operation::CompareSwap => IBV_WR_ATOMIC_CMP_AND_SWP,
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
        let at = match slot.has_arrived() {
            true => layout.arrival_at(slot.number()),
            false => layout.sending_at(slot.number()),
        };
        self.memory.bytes(at, layout.size)
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let place = self.staged;
        if place == MOST_EVENTS || self.is_full() {
            return Posted::Full;
        }
        let layout = self.memory.layout;
        let at = match slot.has_arrived() {
            true => layout.arrival_at(slot.number()),
            false => layout.sending_at(slot.number()),
        };
        let mut length = length;
        let target = self.posted % u64::from(self.other.slots);
        if self.shape.operation == Operation::Write && self.shape.watches_memory {
            let lap = self.posted / u64::from(self.other.slots);
            self.memory.bytes(at + length, 1)[0] = marker(lap);
            length += 1;
        }
        if slot.has_arrived() {
            self.lend(slot.number() as u32);
        }
        let piece = &mut self.lists.send_pieces[place];
        piece.addr = self.memory.address(at);
        piece.length = length as u32;
        let send = &mut self.lists.sends[place];
        send.wr_id = self.posted;
        send.send_flags = if self.shape.inline { IBV_SEND_INLINE } else { 0 };
        self.until_signal -= 1;
        if self.until_signal == 0 {
            self.until_signal = self.shape.signal_every;
            self.signalled = self.posted + 1;
            send.send_flags |= IBV_SEND_SIGNALED;
        }
        let address = self.other.memory + target * self.other.stride;
        match self.shape.operation {
            Operation::Send => {}
            Operation::SendImm => send.__bindgen_anon_1.imm_data = (self.posted as u32).to_be(),
            Operation::WriteImm => {
                send.__bindgen_anon_1.imm_data = (target as u32).to_be();
                send.wr.rdma = rdma(address, self.other.key);
            }
            Operation::Write | Operation::Read => send.wr.rdma = rdma(address, self.other.key),
            Operation::FetchAdd | Operation::CompareSwap => {
                send.wr.atomic = ibv_send_wr__bindgen_ty_2__bindgen_ty_2 {
                    remote_addr: address,
                    compare_add: 1,
                    swap: self.posted,
                    rkey: self.other.key,
                };
            }
        }
        self.staged = place + 1;
        self.posted += 1;
        Posted::Accepted
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.staged == 0 {
            return;
        }
        let error = match self.shape.posting {
            Posting::Classic => self.ring_classic(),
            Posting::Extended => self.ring_extended(),
        };
        self.staged = 0;
        if error != 0 {
            self.refuse(error.abs());
        }
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        if self.shape.watches_memory {
            self.watch(events);
        } else if !self.shape.deaf {
            self.give_back();
            self.receive(events);
        }
        self.reap();
        self.report(events);
        if events.any() {
            self.idle = 0;
            return true;
        }
        self.idle += 1;
        if self.idle >= NUDGE_AFTER {
            self.idle = 0;
            self.nudge();
        }
        false
    }

    fn live(&mut self, slot: Slot, at: usize) -> Option<LiveWord> {
        let layout = self.memory.layout;
        let fits = !self.shape.inline && !slot.has_arrived() && at + 8 <= layout.size;
        let at = layout.sending_at(slot.number()) + at;
        fits.then(|| self.memory.live(at)).flatten()
    }

    fn wait(&mut self, events: &mut Events) {
        if self.poll(events) {
            return;
        }
        self.nudge();
        // An event that comes between the last poll and the arming would never be told.
        // SAFETY: two live queues, each with a channel.
        let error = unsafe {
            inline::req_notify_cq(self.receive_queue.raw())
                | match self.shape.reaps_busily {
                    true => 0,
                    false => inline::req_notify_cq(self.send_queue.raw()),
                }
        };
        if error != 0 {
            self.refuse(error.abs());
        }
        if self.poll(events) {
            return;
        }
        if self.shape.reaps_busily && self.awaits_send() {
            return;
        }
        let channel = &self.receive_queue.channel;
        let descriptor = channel.descriptor();
        let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
        // EINTR comes back with nothing, as the contract allows.
        let _ = poll(&mut watched, self.shape.patience.as_ref());
        self.receive_queue.channel.drain();
        self.poll(events);
    }
}

#[inline(always)]
fn rdma(remote_addr: u64, rkey: u32) -> ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
    ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr, rkey }
}
