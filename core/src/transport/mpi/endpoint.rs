//! The data path of `mpi`: sends and posted receives, each in a queue of its own.

use super::memory::Memory;
use super::process::{Process, Tags};
use super::queue::Queue;
use crate::transport::counter::{CounterValue, FinalCounters};
use crate::transport::{
    Endpoint, Events, Lengths, Link, MOST_EVENTS, Posted, Result, Setup, SetupError, Slot,
};
use fabric_sys::mpi::{MPI_SUCCESS, Status};
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// Polls that found nothing between two looks at what the other end tells beside: a look costs as
/// much as a poll.
const LOOK: u32 = 64;
/// How long an end that goes away waits for what it has on its way. The other end reads until the
/// round is over, so that only one that is gone takes so long.
const LAST_SENDS: Duration = Duration::from_millis(300);
/// What the other end tells when it goes away; otherwise how many messages it has taken.
const GOING: u64 = u64::MAX;
/// Messages to the other end beside those that are measured which may be on their way.
const TELLING: usize = 4;

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

/// How far a sender may be ahead.
enum Ahead {
    /// So many messages more than have been answered, each answer being for so many.
    OfAnswers { most: u64, every: u64 },
    /// As many as the other end has buffers for, beyond what it has told to have taken.
    OfBuffers { most: u64, taken: u64 },
}

/// What the ends tell each other beside the messages.
struct Beside {
    tags: (Tags, Tags),
    words: Memory,
    /// The receive of the other end's next word, in the last place of the memory.
    hears: usize,
    /// Words on their way, by their places.
    tells: [usize; TELLING],
}

/// A connected end.
pub struct MpiEndpoint {
    process: &'static Process,
    peer: c_int,
    tags: (Tags, Tags),
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
    /// Messages whose buffers were posted again, and how many of those were told.
    taken: u64,
    told: u64,
    /// Polls that found nothing since the last look.
    idle: u32,
    beside: Beside,
    link: Link,
    failed: Option<String>,
}

impl MpiEndpoint {
    /// The end of these settings whose other end is this rank, with its tags and the other's.
    pub(super) fn connect(
        process: &'static Process,
        setup: &Setup,
        receives: usize,
        (peer, own, theirs): (c_int, Tags, Tags),
    ) -> Result<MpiEndpoint> {
        let size = setup.size.max(1);
        let slots = (setup.window as usize).clamp(1, MOST_EVENTS);
        let memory = |messages, size| {
            Memory::new(messages, size).map_err(SetupError::system("mapping memory for messages"))
        };
        let ahead = match setup.traffic.answered_every() {
            Some(every) => Ahead::OfAnswers {
                most: u64::from(setup.window.max(every)).max(receives as u64),
                every: every.into(),
            },
            None => Ahead::OfBuffers { most: receives as u64, taken: 0 },
        };
        let tags = (own, theirs);
        let hears = process.mpi.constants.request_null;
        let beside =
            Beside { tags, words: memory(TELLING + 1, 8)?, hears, tells: [hears; TELLING] };
        let mut endpoint = MpiEndpoint {
            process,
            peer,
            tags,
            size,
            slots: slots as u32,
            has_many_lengths: setup.lengths == Lengths::Varied,
            outgoing: memory(slots, size)?,
            incoming: memory(receives, size)?,
            sends: Queue::new(slots + receives),
            posted: Queue::new(receives),
            handed: Vec::with_capacity(receives),
            buffers: vec![Buffer::default(); receives].into_boxed_slice(),
            ahead,
            sent: 0,
            received: 0,
            taken: 0,
            told: 0,
            idle: 0,
            beside,
            link: Link::Up,
            failed: None,
        };
        (0..receives as u32).for_each(|buffer| endpoint.post_receive(buffer));
        endpoint.hear();
        match endpoint.failed.take() {
            None => Ok(endpoint),
            Some(why) => Err(SetupError::Refused(why)),
        }
    }

    /// Posts a receive into a buffer that nobody uses.
    #[inline(always)]
    fn post_receive(&mut self, buffer: u32) {
        let at = self.incoming.at(buffer as usize);
        let request = self.receive(at, self.size, self.tags.0.data);
        self.posted.push(Receive { request, buffer });
    }

    #[inline(always)]
    fn receive(&mut self, at: *mut u8, bytes: usize, tag: c_int) -> usize {
        let (call, known) = (&self.process.mpi.call, &self.process.mpi.constants);
        let mut request = 0;
        let (count, world) = (bytes as c_int, known.comm_world);
        // SAFETY: MPI is initialised; the buffer has as many bytes, is this end's own, and is not
        // used before the request has completed (`Drop` ends those that are left).
        let code = unsafe {
            (call.MPI_Irecv)(at.cast(), count, known.byte, self.peer, tag, world, &mut request)
        };
        if code != MPI_SUCCESS {
            self.fail(code, "MPI_Irecv");
        }
        request
    }

    #[inline(always)]
    fn send(&mut self, at: *const u8, bytes: usize, tag: c_int) -> Option<usize> {
        let (call, known) = (&self.process.mpi.call, &self.process.mpi.constants);
        let mut request = 0;
        let (count, world) = (bytes as c_int, known.comm_world);
        // SAFETY: MPI is initialised; the message lies at `at`, and the contract of endpoints
        // leaves it unwritten until the send has completed.
        let code = unsafe {
            (call.MPI_Isend)(at.cast(), count, known.byte, self.peer, tag, world, &mut request)
        };
        if code != MPI_SUCCESS {
            self.fail(code, "MPI_Isend");
            return None;
        }
        Some(request)
    }

    /// Whether a request has completed; one that has becomes `MPI_REQUEST_NULL`. This is also what
    /// moves messages: MPI has no thread of its own.
    #[inline(always)]
    fn is_done(&mut self, request: &mut usize, status: Option<&mut Status>) -> bool {
        let known = &self.process.mpi.constants;
        let status = match status {
            Some(status) => std::ptr::from_mut(status),
            None => known.status_ignore as *mut Status,
        };
        let mut flag = 0;
        // SAFETY: MPI is initialised, and the request is one of this end that was not freed; the
        // status is one of the largest form, or the constant that asks for none.
        let code = unsafe { (self.process.mpi.call.MPI_Test)(request, &mut flag, status) };
        if code != MPI_SUCCESS {
            self.fail(code, "MPI_Test");
            return false;
        }
        flag != 0
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, code: c_int, call: &str) {
        let said = || format!("{call}: {}", self.process.mpi.error(code));
        self.failed = self.failed.take().or_else(|| Some(said()));
        self.link = Link::Failed(rustix::io::Errno::IO.raw_os_error());
    }

    /// Gives back what the last poll handed over.
    #[inline(always)]
    fn give_back(&mut self) {
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
            if !self.is_done(&mut request, None) {
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
        let mut status = Status::default();
        while !events.is_full() {
            let Some(oldest) = self.posted.front().copied() else { return };
            let mut request = oldest.request;
            let wanted = if self.has_many_lengths { Some(&mut status) } else { None };
            if !self.is_done(&mut request, wanted) {
                return;
            }
            self.posted.pop();
            self.received += 1;
            self.handed.push(oldest.buffer);
            let length = if self.has_many_lengths { self.length(&status) } else { self.size };
            events.arrive(Slot::arrived(oldest.buffer), length as u32);
        }
    }

    #[inline(always)]
    fn length(&self, status: &Status) -> usize {
        let mut count = 0;
        let byte = self.process.mpi.constants.byte;
        // SAFETY: the status is one that a completed receive has filled in.
        let _ = unsafe { (self.process.mpi.call.MPI_Get_count)(status, byte, &mut count) };
        usize::try_from(count).unwrap_or(0).min(self.size)
    }

    /// How many more messages may be sent.
    #[inline(always)]
    fn room(&self) -> u64 {
        match self.ahead {
            Ahead::OfAnswers { most, every } => {
                most.saturating_sub(self.sent.saturating_sub(self.received * every))
            }
            Ahead::OfBuffers { most, taken } => most.saturating_sub(self.sent - taken),
        }
    }

    /// Posts the receive of the other end's next word.
    fn hear(&mut self) {
        let at = self.beside.words.at(TELLING);
        self.beside.hears = self.receive(at, 8, self.tags.0.control);
    }

    /// Looks whether the other end has told anything.
    #[inline(never)]
    fn look(&mut self) {
        self.idle = 0;
        let mut request = self.beside.hears;
        while self.link == Link::Up && self.is_done(&mut request, None) {
            let word = self.beside.words.message(TELLING);
            let word = word.try_into().map_or(GOING, u64::from_le_bytes);
            self.beside.hears = self.process.mpi.constants.request_null;
            if word == GOING {
                self.link = Link::Closed;
                return;
            }
            if let Ahead::OfBuffers { taken, .. } = &mut self.ahead {
                *taken = word.clamp(*taken, self.sent);
            }
            self.hear();
            request = self.beside.hears;
        }
    }

    /// Tells the other end of buffers that it may fill again, once there are some.
    #[inline(always)]
    fn tell_taken(&mut self) {
        let Ahead::OfBuffers { most, .. } = self.ahead else { return };
        if self.taken - self.told >= (most / 2).max(1) {
            self.tell(self.taken);
        }
    }

    /// Tells a word, where one of the places is free; else it is told later.
    #[inline(never)]
    fn tell(&mut self, word: u64) -> bool {
        for place in 0..TELLING {
            let mut request = self.beside.tells[place];
            if !self.is_done(&mut request, None) {
                continue;
            }
            self.beside.words.message(place).copy_from_slice(&word.to_le_bytes());
            let at = self.beside.words.at(place);
            let sent = self.send(at, 8, self.beside.tags.1.control);
            self.beside.tells[place] = sent.unwrap_or(self.process.mpi.constants.request_null);
            if sent.is_some() {
                self.told = word;
            }
            return sent.is_some();
        }
        false
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
        if self.room() == 0 || self.sends.is_full() {
            return Posted::Full;
        }
        let number = slot.number();
        let has_arrived = slot.has_arrived();
        let memory = if has_arrived { &self.incoming } else { &self.outgoing };
        let at = memory.at(number).cast_const();
        let Some(request) = self.send(at, length.min(self.size), self.tags.1.data) else {
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
        if self.room() == 0 {
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
            self.idle += 1;
            if self.idle >= LOOK || self.room() == 0 {
                self.look();
            }
            // What the other end sent before it went away comes first.
            if self.link == Link::Closed {
                self.arrive(events);
            }
        }
        if events.arrivals().is_empty() {
            events.link = self.link;
        }
        events.any()
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
        let failed = self.failed.iter().map(|why| ("error.mpi", why.clone()));
        failed.map(|(name, why)| (name.to_string(), CounterValue::Text(why))).collect()
    }
}

impl Drop for MpiEndpoint {
    /// Sees what is on its way out, tells the other end, and ends the receives. MPI must not write
    /// into memory that is gone: where a request does not end, the memory stays.
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_SENDS;
        while self.link == Link::Up && self.sends.len() > 0 && Instant::now() < deadline {
            let _ = self.complete();
        }
        let _ = self.link == Link::Up && self.tell(GOING);
        // Its word, too, must not arrive where nobody waits for it any more.
        while self.link == Link::Up && Instant::now() < deadline {
            self.look();
        }
        let mut left = Vec::new();
        while let Some(Receive { request, .. }) = self.posted.front().copied() {
            self.posted.pop();
            left.push(request);
        }
        left.push(self.beside.hears);
        let null = self.process.mpi.constants.request_null;
        for request in left.iter_mut().filter(|request| **request != null) {
            // SAFETY: the request is a receive of this end that has not completed.
            let _ = unsafe { (self.process.mpi.call.MPI_Cancel)(request) };
        }
        while let Some(Sent { request, .. }) = self.sends.front().copied() {
            self.sends.pop();
            left.push(request);
        }
        left.extend(self.beside.tells);
        let deadline = Instant::now() + LAST_SENDS;
        let all_done = left.iter_mut().all(|request| {
            while !self.is_done(request, None) {
                if Instant::now() >= deadline {
                    return false;
                }
            }
            true
        });
        if !all_done {
            let all = [&mut self.outgoing, &mut self.incoming, &mut self.beside.words];
            all.into_iter().for_each(Memory::stay);
        }
    }
}
