//! The data path of `mpi`: sends and posted receives, each in a queue of its own.

use super::beside::{Ahead, Beside, LAST_SENDS, Line, memory};
use super::memory::Memory;
use super::process::Tags;
use super::queue::Queue;
use crate::counter::FinalCounters;
use crate::{
    Arrival, Endpoint, Events, Lengths, Link, MOST_EVENTS, Polled, Posted, Result, Setup, Slot,
};
use fabric_sys::mpi::Status;
use std::ffi::c_int;
use std::time::Instant;

/// Polls that found nothing between two looks at what the other end tells beside: a look costs as
/// much as a poll.
const LOOK: u32 = 64;
/// Tests of a receive in a poll that is to find one message: about 0.2 us, so that a loop that does
/// something else between its polls is as late by no more.
const TESTS: u32 = 8;

/// A send on its way.
#[derive(Clone, Copy, Default)]
struct Sent {
    request: usize,
    /// The receive buffer that it goes from, and one more; 0: a sending slot.
    from_arrival: u32,
}

/// A receive that is posted.
#[derive(Clone, Copy, Default)]
struct Receive {
    request: usize,
    buffer: u32,
}

/// A receive buffer.
#[derive(Clone, Copy, Default)]
struct Buffer {
    /// Sends on their way from it.
    sends: u32,
    /// Whether the caller has given it back, but a send has not.
    is_retained: bool,
}

/// A connected end.
pub struct MpiEndpoint {
    line: Line,
    /// The tag of messages to this end, and to the other.
    tags: (c_int, c_int),
    size: usize,
    slots: u32,
    has_many_lengths: bool,
    outgoing: Memory,
    incoming: Memory,
    sends: Queue<Sent>,
    posted: Queue<Receive>,
    /// Buffers that the last poll handed over, oldest first.
    handed: Vec<u32>,
    buffers: Box<[Buffer]>,
    ahead: Ahead,
    /// Messages sent and received.
    sent: u64,
    received: u64,
    /// Messages that may be sent in all, by what was received and told so far.
    limit: u64,
    /// Whether the oldest receive has completed and was handed over, and is not counted yet.
    has_come: bool,
    /// Messages whose buffers were posted again.
    taken: u64,
    /// Polls that found nothing since the last look.
    idle: u32,
    beside: Beside,
}

impl MpiEndpoint {
    /// The end of these settings at the end of a line, with its tags and the other's.
    pub(super) fn connect(
        mut line: Line,
        setup: &Setup,
        receives: usize,
        tags: (Tags, Tags),
    ) -> Result<MpiEndpoint> {
        let size = setup.size.max(1);
        let slots = (setup.window as usize).clamp(1, MOST_EVENTS);
        let ahead = match setup.traffic.answered_every() {
            Some(every) => Ahead::OfAnswers {
                most: u64::from(setup.window.max(every)).max(receives as u64),
                every: every.into(),
            },
            None => Ahead::OfBuffers { most: receives as u64, taken: 0 },
        };
        let beside = Beside::new(&mut line, tags)?;
        let mut endpoint = MpiEndpoint {
            line,
            tags: (tags.0.data, tags.1.data),
            size,
            slots: slots as u32,
            has_many_lengths: setup.lengths == Lengths::Varied,
            outgoing: memory(slots, size)?,
            incoming: memory(receives, size)?,
            sends: Queue::new(slots + receives),
            posted: Queue::new(receives),
            handed: Vec::with_capacity(receives),
            buffers: vec![Buffer::default(); receives].into_boxed_slice(),
            sent: 0,
            received: 0,
            limit: ahead.limit(0),
            ahead,
            has_come: false,
            taken: 0,
            idle: 0,
            beside,
        };
        (0..receives as u32).for_each(|buffer| endpoint.post_receive(buffer));
        endpoint.line.check()?;
        Ok(endpoint)
    }

    /// Posts a receive into a buffer that nobody uses.
    #[inline(always)]
    fn post_receive(&mut self, buffer: u32) {
        let at = self.incoming.at(buffer as usize);
        let request = self.line.receive(at, self.size, self.tags.0);
        self.posted.push(Receive { request, buffer });
    }

    /// Gives back what the last poll handed over.
    #[inline(always)]
    fn give_back(&mut self) {
        self.count_arrival();
        for place in 0..self.handed.len() {
            let number = self.handed[place];
            let buffer = &mut self.buffers[number as usize];
            if buffer.sends == 0 {
                self.post_receive(number);
                self.taken += 1;
            } else {
                buffer.is_retained = true;
            }
        }
        self.handed.clear();
    }

    /// Takes the sends that have completed, oldest first; how many.
    #[inline(always)]
    fn complete(&mut self) -> u32 {
        let mut completed = 0;
        while let Some(oldest) = self.sends.front().copied() {
            let mut request = oldest.request;
            if !self.line.is_done(&mut request, None) {
                break;
            }
            self.sends.pop();
            completed += 1;
            if oldest.from_arrival != 0 {
                self.release(oldest.from_arrival - 1);
            }
        }
        completed
    }

    /// A send from a receive buffer has completed.
    #[inline(always)]
    fn release(&mut self, number: u32) {
        let buffer = &mut self.buffers[number as usize];
        buffer.sends -= 1;
        if buffer.sends == 0 && buffer.is_retained {
            buffer.is_retained = false;
            self.post_receive(number);
            self.taken += 1;
        }
    }

    /// Takes the messages that have arrived, in the order of their sending: that of the receives.
    #[inline(always)]
    fn arrive(&mut self, events: &mut Events) {
        while !events.is_full() {
            let Some(Arrival { slot, length }) = self.arrive_one() else { return };
            self.count_arrival();
            events.arrive(slot, length);
        }
    }

    /// Takes the next message, if it has arrived. What `count_arrival` does comes later: the answer
    /// to the message does not wait for it.
    #[inline(always)]
    fn arrive_one(&mut self) -> Option<Arrival> {
        let Receive { mut request, buffer } = self.posted.front().copied()?;
        let mut length = self.size;
        if self.has_many_lengths {
            let mut status = Status::default();
            if !self.line.is_done(&mut request, Some(&mut status)) {
                return None;
            }
            length = self.length(&status);
        } else if !self.line.is_done(&mut request, None) {
            return None;
        }
        self.has_come = true;
        Some(Arrival { slot: Slot::arrived(buffer), length: length as u32 })
    }

    /// Counts the message that the last `arrive_one` took, before any other is taken.
    #[inline(always)]
    fn count_arrival(&mut self) {
        if !self.has_come {
            return;
        }
        self.has_come = false;
        if let Some(Receive { buffer, .. }) = self.posted.front().copied() {
            self.posted.pop();
            self.handed.push(buffer);
        }
        self.received += 1;
        self.limit = self.ahead.limit(self.received);
    }

    #[inline(always)]
    fn length(&self, status: &Status) -> usize {
        let mut count = 0;
        let mpi = &self.line.process.mpi;
        // SAFETY: the status is one that a completed receive has filled in.
        let _ = unsafe { (mpi.call.MPI_Get_count)(status, mpi.constants.byte, &mut count) };
        usize::try_from(count).unwrap_or(0).min(self.size)
    }

    /// Whether no message may be sent now.
    #[inline(always)]
    fn is_ahead(&self) -> bool {
        self.sent >= self.limit
    }

    /// Looks whether the other end has told anything.
    #[inline(never)]
    fn look(&mut self) {
        self.idle = 0;
        if let Some(word) = self.beside.look(&mut self.line) {
            self.ahead.tell(word, self.sent);
            self.limit = self.ahead.limit(self.received);
        }
    }

    /// Tells the other end of buffers that it may fill again, once there are some.
    #[inline(always)]
    fn tell_taken(&mut self) {
        if self.ahead.is_due(self.taken, self.beside.told) {
            self.beside.tell(&mut self.line, self.taken);
        }
    }

    /// After a poll that found nothing.
    #[inline(always)]
    fn idle(&mut self) {
        self.idle += 1;
        if self.idle >= LOOK || self.is_ahead() {
            self.look();
        }
    }
}

impl Endpoint for MpiEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.slots
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        memory.message(slot.number())
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if self.is_ahead() || self.sends.is_full() {
            return Posted::Full;
        }
        let number = slot.number();
        let has_arrived = slot.has_arrived();
        let memory = if has_arrived { &self.incoming } else { &self.outgoing };
        let at = memory.at(number).cast_const();
        let Some(request) = self.line.send(at, length.min(self.size), self.tags.1) else {
            return Posted::Full;
        };
        let from_arrival = if has_arrived { number as u32 + 1 } else { 0 };
        if has_arrived {
            self.buffers[number].sends += 1;
        }
        self.sends.push(Sent { request, from_arrival });
        self.sent += 1;
        Posted::Accepted
    }

    /// A send is on its way when it was posted. One that found no room may find it next time.
    #[inline(always)]
    fn flush(&mut self) {
        if self.is_ahead() {
            self.look();
        }
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.give_back();
        self.tell_taken();
        events.completed = self.complete();
        self.arrive(events);
        if events.completed == 0 && events.arrivals().is_empty() {
            self.idle();
            // What the other end sent before it went away comes first.
            if self.line.link == Link::Closed {
                self.arrive(events);
            }
        }
        if events.arrivals().is_empty() {
            events.link = self.line.link;
        }
        events.any()
    }

    /// The receive is tested some times more than once: what a poll does besides would lie between
    /// two tests, and a message that comes then is seen later by it.
    #[inline(always)]
    fn poll_one(&mut self, _: &mut Events) -> Polled {
        self.give_back();
        self.tell_taken();
        let completed = self.complete();
        for _ in 0..TESTS {
            let arrival = self.arrive_one();
            if arrival.is_some() {
                return Polled { arrival, completed, link: Link::Up };
            }
            if completed != 0 || self.line.link != Link::Up {
                break;
            }
        }
        self.idle();
        // What the other end sent before it went away comes first.
        let is_closed = self.line.link == Link::Closed;
        let arrival = if is_closed { self.arrive_one() } else { None };
        let link = if arrival.is_some() { Link::Up } else { self.line.link };
        Polled { arrival, completed, link }
    }

    /// MPI cannot sleep: it comes back with nothing where there is nothing.
    #[inline]
    fn wait(&mut self, events: &mut Events) {
        self.poll(events);
    }

    /// A look at a request moves all messages of the process.
    fn progress(&mut self) {
        self.look();
    }

    fn final_counters(&self) -> FinalCounters {
        self.line.counters()
    }
}

impl Drop for MpiEndpoint {
    /// Sees what is on its way out, tells the other end, and ends the receives. MPI must not write
    /// into memory that is gone: where a request does not end, the memory stays.
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_SENDS;
        self.count_arrival();
        while self.line.link == Link::Up && self.sends.len() > 0 && Instant::now() < deadline {
            let _ = self.complete();
        }
        self.beside.leave(&mut self.line, deadline);
        let (mut receives, mut sends) = (Vec::new(), Vec::new());
        while let Some(Receive { request, .. }) = self.posted.front().copied() {
            self.posted.pop();
            receives.push(request);
        }
        while let Some(Sent { request, .. }) = self.sends.front().copied() {
            self.sends.pop();
            sends.push(request);
        }
        if !self.beside.end(&mut self.line, receives, sends) {
            [&mut self.outgoing, &mut self.incoming].into_iter().for_each(Memory::stay);
        }
    }
}
