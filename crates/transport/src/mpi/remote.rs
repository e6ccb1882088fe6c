//! The data path of `mpi` on memory of the other rank: `MPI_Put`, `MPI_Get` and the atomics,
//! completed by `MPI_Win_flush`.
//!
//! MPI has no write that tells its target. Where the other end must notice one, it polls a byte
//! behind the message, another in each lap of the ring, which is put after a flush of the message:
//! two puts to the same rank have no order (MPI 4.1, 12.7).

use super::beside::{Ahead, Beside, Line, memory};
use super::memory::{Memory, stride};
use super::process::Tags;
use super::window::Window;
use crate::counter::FinalCounters;
use crate::{
    Endpoint, Events, Lengths, Link, MOST_EVENTS, Operation, Posted, Result, Setup, SetupError,
    Slot, Traffic,
};
use fabric_sys::mpi::MPI_SUCCESS;
use std::ffi::c_int;
use std::time::Duration;

/// Polls that found nothing between two that call MPI for its progress: the target of a library
/// that writes by messages has to, and that of shared memory need not.
const LOOK: u32 = 8;
/// How long an end that goes away waits for the other, with which it frees the window: as long as a
/// loaded machine may keep a process from its CPU.
const LAST_WORD: Duration = Duration::from_secs(5);
/// Bytes behind a message: its length, and the byte that tells that it is there.
const MARK: usize = 8;

/// How far apart the messages of a window begin.
fn step(size: usize) -> usize {
    stride(size + MARK)
}

/// Messages that this rank's memory holds.
fn places(setup: &Setup, receives: usize) -> usize {
    match (setup.traffic, setup.traffic.answered_every()) {
        // Those of a window, and of the next while they are looked at.
        (_, Some(every)) => 2 * setup.window.max(every) as usize,
        (Traffic::OneSided, _) => slots(setup),
        _ => receives,
    }
}

fn slots(setup: &Setup) -> usize {
    (setup.window as usize).clamp(1, MOST_EVENTS)
}

/// Bytes of this rank's memory, beside what a message and an answer take.
pub fn window_bytes(setup: &Setup, receives: usize) -> usize {
    places(setup, receives).saturating_mul(step(setup.size.max(1)))
}

/// What stands behind a message in a lap: never what fresh memory holds.
fn marker(lap: u64) -> u8 {
    (lap % 255) as u8 + 1
}

/// The places of the messages that are written, or awaited, in turn.
#[derive(Clone, Copy)]
struct Turn {
    place: usize,
    lap: u64,
    places: usize,
}

impl Turn {
    fn new(places: usize) -> Turn {
        Turn { place: 0, lap: 0, places }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.place += 1;
        if self.place == self.places {
            (self.place, self.lap) = (0, self.lap + 1);
        }
    }
}

/// An end whose posts are operations on the other rank's memory.
pub struct RemoteEndpoint {
    line: Line,
    beside: Beside,
    window: Option<Window>,
    operation: Operation,
    /// Whether messages that are written here are seen in memory.
    watches: bool,
    has_many_lengths: bool,
    size: usize,
    step: usize,
    slots: usize,
    outgoing: Memory,
    /// What an atomic gives, of each slot; then what it compares with. Of a write its length.
    operands: Memory,
    /// A byte of each value.
    markers: Memory,
    /// Where the next post goes, and where the next message comes.
    target: Turn,
    awaited: Turn,
    /// The first message whose marker was not put, and how many such there are.
    unmarked: Turn,
    staged: u32,
    /// Posts that have not completed, and those that have and were not reported.
    begun: u32,
    done: u32,
    ahead: Ahead,
    sent: u64,
    received: u64,
    taken: u64,
    handed: u64,
    idle: u32,
}

impl RemoteEndpoint {
    /// The end of these settings at the end of a line, with its tags and the other's.
    pub(super) fn connect(
        mut line: Line,
        setup: &Setup,
        receives: usize,
        tags: (Tags, Tags),
    ) -> Result<RemoteEndpoint> {
        let (process, peer) = (line.process, line.peer);
        if process.rank == peer {
            return Err(SetupError::Refused(
                "operations on memory need two ranks: start wiregauge without a launcher, or by \
                 mpirun -n 2"
                    .into(),
            ));
        }
        let size = setup.size.max(1);
        let (slots, places) = (slots(setup), places(setup, receives));
        let mut beside = Beside::new(&mut line, tags)?;
        meet(&mut line, &mut beside, 1, setup)?;
        // Messages have no use for this tag, and Open MPI 4 sends what it agrees on by it.
        let tag = if process.rank < peer { tags.0.data } else { tags.1.data };
        let window = Window::of_two(process, peer, tag, window_bytes(setup, receives))?;
        meet(&mut line, &mut beside, 2, setup)?;
        let operation = setup.settings.operation();
        let mut operands = memory(slots + 1, 8)?;
        operands.message(slots).fill(0);
        let mut markers = memory(1, 256)?;
        markers.message(0).iter_mut().zip(0..=u8::MAX).for_each(|(place, value)| *place = value);
        let most = places as u64;
        let mut endpoint = RemoteEndpoint {
            line,
            beside,
            window: Some(window),
            operation,
            watches: setup.traffic != Traffic::OneSided,
            has_many_lengths: setup.lengths == Lengths::Varied,
            size,
            step: step(size),
            slots,
            outgoing: memory(slots, size)?,
            operands,
            markers,
            target: Turn::new(places),
            awaited: Turn::new(places),
            unmarked: Turn::new(places),
            staged: 0,
            begun: 0,
            done: 0,
            ahead: match setup.traffic.answered_every() {
                Some(every) => Ahead::OfAnswers { most, every: every.into() },
                None => Ahead::OfBuffers { most, taken: 0 },
            },
            sent: 0,
            received: 0,
            taken: 0,
            handed: 0,
            idle: 0,
        };
        endpoint.touch(places);
        endpoint.line.check()?;
        meet(&mut endpoint.line, &mut endpoint.beside, 3, setup)?;
        Ok(endpoint)
    }

    /// Reads all of the other's memory once: where it is shared, this process has mapped its pages
    /// then.
    fn touch(&mut self, places: usize) {
        let operation = std::mem::replace(&mut self.operation, Operation::Read);
        for place in 0..places {
            if !self.fetch(0, self.size, place * self.step) || !self.flush_window() {
                break;
            }
        }
        self.operation = operation;
    }

    fn is_ahead(&self) -> bool {
        self.watches && self.sent >= self.ahead.limit(self.received)
    }

    #[inline(always)]
    fn succeeds(&mut self, code: c_int, call: &str) -> bool {
        if code != MPI_SUCCESS {
            self.line.fail(code, call);
        }
        code == MPI_SUCCESS
    }

    /// Begins to write so many bytes to a place of the other's memory.
    #[inline(always)]
    fn put(&mut self, from: *const u8, bytes: usize, place: usize) -> bool {
        let Some(window) = &self.window else { return false };
        let (mpi, bytes) = (&self.line.process.mpi, bytes as c_int);
        let (byte, peer) = (mpi.constants.byte, window.peer);
        // SAFETY: MPI is initialised and the window locked; the bytes are this end's own and are
        // not written before a flush. The place is checked by MPI, or is within the other's
        // memory, which has as many bytes as this one's.
        let code = unsafe {
            let (from, place) = (from.cast(), place as isize);
            (mpi.windows.MPI_Put)(from, bytes, byte, peer, place, bytes, byte, window.handle)
        };
        self.succeeds(code, "MPI_Put")
    }

    /// Begins an operation that brings something into a slot.
    fn fetch(&mut self, number: usize, bytes: usize, place: usize) -> bool {
        let Some(window) = &self.window else { return false };
        let mpi = &self.line.process.mpi;
        let (call, known, peer) = (&mpi.windows, &mpi.constants, window.peer);
        let (to, place, win) = (self.outgoing.at(number).cast(), place as isize, window.handle);
        let (operand, none) = (self.operands.at(number), self.operands.at(self.slots));
        // SAFETY: as of `put`; a slot of an atomic has eight bytes, as its operands have.
        let (code, name) = unsafe {
            match self.operation {
                Operation::FetchAdd => {
                    let (from, sum) = (operand.cast_const().cast(), known.sum);
                    let code =
                        (call.MPI_Fetch_and_op)(from, to, known.int64, peer, place, sum, win);
                    (code, "MPI_Fetch_and_op")
                }
                Operation::CompareSwap => {
                    let (from, with) = (operand.cast_const().cast(), none.cast_const().cast());
                    let code =
                        (call.MPI_Compare_and_swap)(from, with, to, known.int64, peer, place, win);
                    (code, "MPI_Compare_and_swap")
                }
                _ => {
                    let (bytes, byte) = (bytes as c_int, known.byte);
                    let code = (call.MPI_Get)(to, bytes, byte, peer, place, bytes, byte, win);
                    (code, "MPI_Get")
                }
            }
        };
        self.succeeds(code, name)
    }

    /// Begins the write of a message that the other end is to see.
    #[inline(always)]
    fn write(&mut self, slot: Slot, length: usize, place: usize) -> bool {
        let number = slot.number();
        let Some(window) = self.window.as_mut().filter(|_| slot.has_arrived()) else {
            let from = self.outgoing.at(number);
            return self.put_length(self.operands.at(number), length, place)
                && self.put(from, length, place);
        };
        let first = number * self.step;
        let word = window.at(first + self.step - MARK, 4);
        let from = window.at(first, length);
        self.put_length(word, length, place) && self.put(from, length, place)
    }

    /// Begins to write the length of a message by this word, where not all have one.
    #[inline(always)]
    fn put_length(&mut self, word: *mut u8, length: usize, place: usize) -> bool {
        if !self.has_many_lengths {
            return true;
        }
        let bytes = (length as u32).to_le_bytes();
        // SAFETY: the word is of this end's operands, or behind an arrival that the other end
        // writes again only after it was given back.
        unsafe { word.cast::<[u8; 4]>().write_unaligned(bytes) };
        self.put(word, 4, place + self.step - MARK)
    }

    /// Puts the markers of what was written, once that is there.
    fn mark(&mut self) {
        let staged = std::mem::take(&mut self.staged);
        if staged == 0 || !self.flush_window() {
            return;
        }
        for _ in 0..staged {
            let turn = self.unmarked;
            let from = self.markers.at(0).wrapping_add(usize::from(marker(turn.lap)));
            if !self.put(from, 1, (turn.place + 1) * self.step - 1) {
                return;
            }
            self.unmarked.advance();
        }
        if self.flush_window() {
            self.done += std::mem::take(&mut self.begun);
        }
    }

    #[inline(always)]
    fn flush_window(&mut self) -> bool {
        let code = self.window.as_ref().map_or(MPI_SUCCESS, Window::flush);
        self.succeeds(code, "MPI_Win_flush")
    }

    #[inline(always)]
    fn sync(&mut self) {
        let code = self.window.as_ref().map_or(MPI_SUCCESS, Window::sync);
        self.succeeds(code, "MPI_Win_sync");
    }

    #[inline(always)]
    fn is_written(&self) -> bool {
        let Turn { place, lap, .. } = self.awaited;
        let at = (place + 1) * self.step - 1;
        self.window.as_ref().is_some_and(|window| window.byte_now(at) == marker(lap))
    }

    /// Takes the messages that the other end has written.
    #[inline(always)]
    fn watch(&mut self, events: &mut Events) {
        self.taken += std::mem::take(&mut self.handed);
        if self.ahead.is_due(self.taken, self.beside.told) {
            self.beside.tell(&mut self.line, self.taken);
        }
        if events.is_full() || !self.is_written() {
            return self.sync();
        }
        // Of what came before the marker nothing may be read as it was.
        self.sync();
        while !events.is_full() && self.is_written() {
            let place = self.awaited.place;
            let length = if self.has_many_lengths { self.length(place) } else { self.size };
            self.awaited.advance();
            self.received += 1;
            self.handed += 1;
            events.arrive(Slot::arrived(place as u32), length as u32);
        }
    }

    fn length(&mut self, place: usize) -> usize {
        let at = (place + 1) * self.step - MARK;
        let word = self.window.as_mut().map(|window| <[u8; 4]>::try_from(window.bytes(at, 4)));
        let length = word.and_then(|word| word.ok()).map_or(0, u32::from_le_bytes);
        self.size.min(length as usize)
    }

    /// Calls MPI, which may have something to do for the other rank, and hears what that tells.
    #[inline(never)]
    fn look(&mut self) {
        self.idle = 0;
        if let Some(word) = self.beside.look(&mut self.line) {
            self.ahead.tell(word, self.sent);
        }
    }
}

/// Waits until the other end has come to this step: what follows waits for it without a bound. Each
/// step has its number, since the other end may tell the next one before this end looks.
fn meet(line: &mut Line, beside: &mut Beside, step: u64, setup: &Setup) -> Result<()> {
    let deadline = setup.deadline();
    beside.tell(line, step);
    // No message was taken yet.
    beside.told = 0;
    while beside.heard < step {
        beside.look(line);
        line.check()?;
        deadline.left("the other rank's part of the window")?;
    }
    Ok(())
}

impl Endpoint for RemoteEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        match (slot.has_arrived(), &mut self.window) {
            (true, Some(window)) => window.bytes(slot.number() * self.step, self.size),
            _ => self.outgoing.message(slot.number()),
        }
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if (self.begun + self.done) as usize >= self.slots || self.is_ahead() {
            return Posted::Full;
        }
        let (length, place) = (length.min(self.size), self.target.place * self.step);
        let begins = match self.operation {
            Operation::Write if self.watches => self.write(slot, length, place),
            Operation::Write => self.put(self.outgoing.at(slot.number()), length, place),
            Operation::FetchAdd | Operation::CompareSwap => {
                let operand = if self.operation == Operation::FetchAdd { 1 } else { self.sent };
                let number = slot.number();
                self.operands.message(number).copy_from_slice(&operand.to_le_bytes());
                self.fetch(number, length, place)
            }
            _ => self.fetch(slot.number(), length, place),
        };
        if !begins {
            return Posted::Full;
        }
        self.target.advance();
        self.sent += 1;
        self.begun += 1;
        self.staged += u32::from(self.watches);
        Posted::Accepted
    }

    /// What is seen in memory goes now. The rest is on its way when it was posted, as far as the
    /// library takes it; the next poll waits for it.
    #[inline(always)]
    fn flush(&mut self) {
        self.mark();
        if self.is_ahead() {
            self.look();
        }
    }

    /// MPI tells of all that was posted together, and waits for it.
    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        if self.watches {
            self.mark();
            self.watch(events);
        } else if self.begun > 0 && self.flush_window() {
            self.done += std::mem::take(&mut self.begun);
        }
        events.completed = std::mem::take(&mut self.done);
        if events.completed == 0 && events.arrivals().is_empty() {
            self.idle += 1;
            if self.idle >= LOOK || self.is_ahead() {
                self.look();
            }
            // What the other end wrote before it went away comes first.
            if self.line.link == Link::Closed && self.watches {
                self.watch(events);
            }
        }
        if events.arrivals().is_empty() {
            events.link = self.line.link;
        }
        events.any()
    }

    /// MPI cannot sleep: it comes back with nothing where there is nothing.
    #[inline]
    fn wait(&mut self, events: &mut Events) {
        self.poll(events);
    }

    fn progress(&mut self) {
        self.look();
    }

    fn serves_by_progress(&self) -> bool {
        true
    }

    fn final_counters(&self) -> FinalCounters {
        self.line.counters()
    }
}

impl Drop for RemoteEndpoint {
    /// Frees the window together with the other end. Where that does not come, MPI may still use
    /// the memory, and it stays.
    fn drop(&mut self) {
        self.mark();
        let Some(window) = self.window.take() else { return };
        let is_unlocked = window.unlock();
        let both_go = is_unlocked && self.beside.leave_together(&mut self.line, LAST_WORD);
        if both_go {
            window.free();
        }
        if !self.beside.end(&mut self.line, Vec::new(), Vec::new()) || !both_go {
            let all = [&mut self.outgoing, &mut self.operands, &mut self.markers];
            all.into_iter().for_each(Memory::stay);
        }
    }
}
