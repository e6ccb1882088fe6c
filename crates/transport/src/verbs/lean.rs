//! The lean data path: one queue pair with receives of its own, and what else
//! [`lean_operation`](super::path::lean_operation) asks for.
//!
//! It does what [`endpoint`](super::endpoint) does, with requests that were written beforehand and
//! without what cannot happen here. What is seldom needed is done by the general endpoint inside.

mod receives;

use super::endpoint::{LOOK_AFTER, READ_ASYNC_AFTER, VerbsEndpoint};
use super::lent::Lent;
use super::memory::{GRH, LINE};
use super::path::Lean;
use super::prepared::{self, Receive, Sends, Towards};
use super::queues::codes_of;
use super::service::Service;
use super::single::{NOTHING, Single};
use crate::counter::FinalCounters;
use crate::optional::{LiveWord, Watched};
use crate::*;
use fabric_sys::verbs::inline::DataPath;
use fabric_sys::verbs::types::*;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Polls without a message after which completions are looked for, where they come with the next
/// message.
const REAP_AFTER: u32 = 16;

/// A connected end with a lean path.
pub struct LeanEndpoint<L: Lean> {
    /// What is connected, and its memory.
    end: VerbsEndpoint,
    /// Of `end`, without the way there.
    pair: *mut ibv_qp,
    sent: *mut ibv_cq,
    received: *mut ibv_cq,
    calls: DataPath,
    sends: Box<Sends>,
    receives: Box<[Receive]>,
    order: Single,
    /// The flags of every send.
    flags: u32,
    /// Polls in a row that found nothing.
    idle: u32,
    /// Slots that the last poll handed over, to be given back.
    handed: [u32; MOST_EVENTS],
    handed_count: usize,
    /// Whether messages are seen in memory.
    watches: bool,
    /// As [`EndpointConfig::reaps_late`](super::endpoint::EndpointConfig::reaps_late).
    reaps_late: bool,
    /// Bytes that come before a message.
    header: u32,
    /// Whether the adapter reads an answer from where the message arrived.
    lends: bool,
    /// The slots of such answers.
    lent: Lent,
    operation: PhantomData<L>,
}

// SAFETY: the requests hold pointers into themselves (boxed, so they stay where they are) and into
// registered memory, and the queues are those of `end`: the endpoint owns all of it.
unsafe impl<L: Lean> Send for LeanEndpoint<L> {}

impl<L: Lean> LeanEndpoint<L> {
    /// The lean path of a connected end that has posted its receives, in the order of slots.
    pub(super) fn new(end: VerbsEndpoint) -> LeanEndpoint<L> {
        let (key, _) = end.memory.registration.keys();
        let (opcode, _) = codes_of(end.config.operation);
        let (pair, inline) = (end.queues.pairs[0].raw(), end.queues.inline);
        let answered = end.config.answered;
        let (layout, base) = (end.memory.layout, end.memory.address(0));
        let header = if end.has_header() { GRH } else { 0 };
        LeanEndpoint {
            pair,
            sent: end.queues.send.raw(),
            received: end.queues.receive.raw(),
            // SAFETY: a live queue pair.
            calls: unsafe { DataPath::of(pair) },
            sends: prepared::sends(opcode, key, &towards(&end)),
            receives: prepared::receives(&layout, base, key, header),
            order: Single::new(end.config.send_depth, end.config.signal_every, inline, answered),
            flags: if inline { IBV_SEND_INLINE } else { 0 },
            idle: 0,
            handed: [0; MOST_EVENTS],
            handed_count: 0,
            watches: end.config.watches_memory,
            reaps_late: end.config.reaps_late,
            header: header as u32,
            // The next message says that the answer is there, and comes before this receive is used
            // again: others were posted before it.
            lends: !L::REMOTE && !inline && !answered,
            lent: Lent::of(layout.arriving),
            operation: PhantomData,
            end,
        }
    }

    /// Takes at most `most` completions of a queue into the list of `end`; how many.
    #[inline(always)]
    fn poll_queue(&mut self, queue: *mut ibv_cq, most: usize) -> usize {
        let into = &mut self.end.lists.completions[..most];
        // SAFETY: a live queue, and room for as many completions.
        let found = unsafe { (self.calls.poll_cq)(queue, most as c_int, into.as_mut_ptr()) };
        if found < 0 {
            self.end.refuse(-found);
            return 0;
        }
        (found as usize).min(most)
    }

    /// Looks for messages that the other end's adapter has written here.
    #[inline(always)]
    fn watch(&mut self, events: &mut Events) {
        while !events.is_full() {
            let Some(Arrival { slot, length }) = self.watch_one() else { return };
            events.arrive(slot, length);
        }
    }

    /// Looks for the next one. Its slot is the cache line that it begins on: that is there, and the
    /// number of a slot costs a multiplication at each use.
    #[inline(always)]
    fn watch_one(&mut self) -> Option<Arrival> {
        if !self.watches {
            return None;
        }
        let line = self.end.watch_one()?.at / LINE;
        let length = self.end.memory.layout.size as u32;
        Some(Arrival { slot: Slot::arrived(line as u32), length })
    }

    /// Where a slot's payload begins.
    #[inline(always)]
    fn place_of(&self, slot: Slot) -> usize {
        match L::REMOTE && slot.has_arrived() {
            true => slot.number() * LINE,
            false => self.end.memory.layout.at(slot),
        }
    }

    /// Takes the completion of a receive: a message. The last was given back.
    #[inline(always)]
    fn receive_one(&mut self) -> Option<Arrival> {
        if self.poll_queue(self.received, 1) == 0 {
            return None;
        }
        self.handed_count = 0;
        self.hand_over(0)
    }

    /// Hands over what came with this completion of the list.
    #[inline(always)]
    fn hand_over(&mut self, number: usize) -> Option<Arrival> {
        let completion = &self.end.lists.completions[number];
        if completion.status != IBV_WC_SUCCESS {
            self.end.failed(number, "receive");
            return None;
        }
        let slot = completion.wr_id as u32;
        *self.handed.get_mut(self.handed_count)? = slot;
        self.handed_count += 1;
        let length = completion.byte_len.saturating_sub(self.header);
        Some(Arrival { slot: Slot::arrived(slot), length })
    }

    /// Takes completions of sends.
    #[inline(never)]
    fn reap(&mut self) {
        let found = self.poll_queue(self.sent, MOST_EVENTS);
        for number in 0..found {
            let completion = &self.end.lists.completions[number];
            if completion.status == IBV_WC_SUCCESS {
                self.order.completed(completion.wr_id);
            } else {
                self.end.failed(number, self.end.config.operation.name());
            }
        }
        if found > 0 {
            self.order.settle();
        }
    }

    /// Takes one completion of a send, if it is there.
    #[inline(always)]
    fn reap_one(&mut self) {
        if self.poll_queue(self.sent, 1) == 0 {
            return;
        }
        let completion = &self.end.lists.completions[0];
        if completion.status == IBV_WC_SUCCESS {
            self.order.settle_one(completion.wr_id);
        } else {
            self.end.failed(0, self.end.config.operation.name());
        }
    }

    /// Writes the next send into the list, as its end.
    #[inline(always)]
    fn write_send(&mut self, place: usize, slot: Slot, length: usize, signalled: u32) {
        let number = self.order.posted;
        let at = self.place_of(slot);
        let mut length = length;
        // Before the rest: behind a store into a slot the compiler reads all again.
        if L::REMOTE && self.watches {
            self.end.memory.bytes(at + length, 1)[0] = self.end.target.marker;
            length += 1;
        }
        let send = &mut self.sends[place];
        if L::REMOTE {
            // Where an atomic has it, too.
            send.request.wr.rdma.remote_addr = self.end.target.at;
            self.end.target.advance();
        }
        send.piece.addr = self.end.memory.address(at);
        send.piece.length = length as u32;
        send.request.wr_id = number;
        send.request.send_flags = self.flags | signalled;
        send.request.next = std::ptr::null_mut();
    }

    /// Hands the list to the adapter.
    #[inline(always)]
    fn ring(&mut self) {
        let mut bad = MaybeUninit::uninit();
        let list = &mut self.sends[0].request;
        // SAFETY: a live queue pair; the list is linked in place, and its memory is registered and
        // left alone until the sends complete. What is bad is written and not read.
        let error = unsafe { (self.calls.post_send)(self.pair, list, bad.as_mut_ptr()) };
        if error != 0 {
            self.end.refuse(error.abs());
        }
    }

    /// Whether the send queue takes one more.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        self.order.posted < self.order.limit || self.has_room_now()
    }

    /// Looks for more room in a full send queue. Who only posts must see it drain too: completions
    /// are taken here, and reported by the next poll.
    #[cold]
    #[inline(never)]
    fn has_room_now(&mut self) -> bool {
        self.reap();
        self.order.posted < self.order.limit
    }

    /// The sends that have completed since the last poll: one more at most than have been seen.
    #[inline(always)]
    fn take_completed(&mut self) -> u32 {
        if self.order.awaits() {
            self.reap_one();
        }
        self.order.report()
    }

    /// Counts a poll that found nothing, and looks elsewhere from time to time.
    #[inline(always)]
    fn found_nothing(&mut self) {
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(LOOK_AFTER) {
            self.look_elsewhere();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_elsewhere(&mut self) {
        self.look_after_sends();
        if self.idle.is_multiple_of(READ_ASYNC_AFTER) {
            self.end.read_async_events();
        }
    }

    /// Checks unsignalled sends: an error makes a completion by itself, and a signalled empty send
    /// after them shows that they have completed.
    #[cold]
    #[inline(never)]
    fn look_after_sends(&mut self) {
        self.reap();
        // A payload that was copied is free already.
        let may_ask = !self.end.queues.inline && self.end.config.service != Service::Ud;
        let asks = may_ask && self.order.staged == 0 && self.order.is_silent();
        if asks && self.end.post_nothing(0, NOTHING) {
            self.order.ask();
        }
    }
}

/// Where the sends of this end go.
fn towards(end: &VerbsEndpoint) -> Towards {
    match (end.config.operation, &end.route) {
        (Operation::FetchAdd, _) => Towards::Words(end.other.key),
        (Operation::Write | Operation::Read, _) => Towards::Memory(end.other.key),
        (_, Some((handle, key))) if end.config.names_receiver => {
            let pair = end.other.pairs.first().map_or(0, |pair| pair.0);
            Towards::Datagrams { handle: handle.raw(), pair, key: *key }
        }
        _ => Towards::Connected,
    }
}

impl<L: Lean> Endpoint for LeanEndpoint<L> {
    #[inline]
    fn slots(&self) -> u32 {
        self.end.slots()
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let (at, size) = (self.place_of(slot), self.end.memory.layout.size);
        self.end.memory.bytes(at, size)
    }

    #[inline(always)]
    fn message(&mut self, arrival: &Arrival) -> &[u8] {
        let memory = self.payload(arrival.slot);
        match L::REMOTE {
            // Each is as long as its slot.
            true => memory,
            false => &memory[..(arrival.length as usize).min(memory.len())],
        }
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if !self.has_room() {
            return Posted::Full;
        }
        let place = self.order.staged as usize;
        if place == MOST_EVENTS {
            return Posted::Full;
        }
        let signalled = if self.order.signals_next() { IBV_SEND_SIGNALED } else { 0 };
        self.write_send(place, slot, length, signalled);
        self.order.take();
        let request = &raw mut self.sends[place].request;
        if let Some(before) = place.checked_sub(1).and_then(|before| self.sends.get_mut(before)) {
            before.request.next = request;
        }
        if slot.has_arrived() && self.lends {
            self.lend(slot.number() as u32);
        }
        Posted::Accepted
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.order.staged != 0 {
            self.order.hand_over();
            self.ring();
        }
    }

    /// An ordinary send reads and writes less than others.
    #[inline(always)]
    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        if self.order.posted < self.order.ordinary {
            self.write_send(0, slot, length, 0);
            self.order.take_ordinary();
        } else if self.order.posted < self.order.alone {
            self.write_send(0, slot, length, IBV_SEND_SIGNALED);
            self.order.take_alone();
            if slot.has_arrived() && self.lends {
                self.lend(slot.number() as u32);
            }
        } else {
            let posted = self.post(slot, length);
            self.flush();
            return posted;
        }
        self.ring();
        Posted::Accepted
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        if L::REMOTE {
            self.watch(events);
        } else {
            self.give_back();
            let most = events.most();
            let found = if most == 0 { 0 } else { self.poll_queue(self.received, most) };
            for number in 0..found {
                if let Some(Arrival { slot, length }) = self.hand_over(number) {
                    events.arrive(slot, length);
                }
            }
        }
        if !events.arrivals().is_empty() {
            self.order.arrived();
        }
        if self.order.awaits() {
            self.reap();
        }
        events.completed = self.order.report();
        events.link = self.end.link;
        if events.any() {
            self.idle = 0;
            return true;
        }
        self.found_nothing();
        false
    }

    #[inline(always)]
    fn poll_one(&mut self, _: &mut Events) -> Polled {
        let arrival = if L::REMOTE {
            self.watch_one()
        } else {
            self.give_back();
            self.receive_one()
        };
        // Twice, and not once before the match: the compiler then looks at the arrival once.
        let Some(arrival) = arrival else {
            let looks = !self.reaps_late || self.idle % REAP_AFTER == REAP_AFTER - 1;
            let completed = if looks { self.take_completed() } else { 0 };
            let polled = Polled { arrival: None, completed, link: self.end.link };
            if polled.any() {
                self.idle = 0;
            } else {
                self.found_nothing();
            }
            return polled;
        };
        self.idle = 0;
        self.order.arrived();
        Polled { arrival: Some(arrival), completed: self.take_completed(), link: Link::Up }
    }

    fn watched(&self) -> Option<Watched<'_>> {
        self.end.watched()
    }

    fn arm(&mut self, was_readable: bool) -> bool {
        self.look_after_sends();
        let has_news = self.order.has_news();
        let polls = self.end.polls_for_sends(self.order.awaits());
        self.end.arm_after(was_readable) && !has_news && !polls
    }

    fn live_word(&mut self, slot: Slot, at: usize) -> Option<LiveWord> {
        self.end.live_word(slot, at)
    }

    fn final_counters(&self) -> FinalCounters {
        self.end.final_counters()
    }

    fn wait(&mut self, events: &mut Events) {
        if self.poll(events) {
            return;
        }
        self.look_after_sends();
        // An event between the last poll and the arming would be missed.
        self.end.ask_for_events();
        if self.poll(events) || (self.end.config.reaps_busily && self.order.awaits()) {
            return;
        }
        self.end.sleep(self.end.config.patience);
        self.poll(events);
    }
}
