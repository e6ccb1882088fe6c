//! What both kinds of ends have in common: sends and receives of the process, and what two ends
//! tell each other beside the messages.

use super::memory::Memory;
use super::process::{Process, Tags};
use crate::counter::{CounterValue, FinalCounters};
use crate::{Link, Result, SetupError};
use fabric_sys::mpi::{MPI_SUCCESS, Status};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// What the other end tells when it goes away; otherwise how many messages it has taken.
const GOING: u64 = u64::MAX;
/// Messages to the other end beside those that are measured which may be on their way.
const TELLING: usize = 4;
/// How long an end that goes away waits for what it has on its way. The other end reads until the
/// round is over, so that only one that is gone takes so long.
pub const LAST_SENDS: Duration = Duration::from_millis(300);

/// Memory for so many messages of this size.
pub fn memory(messages: usize, size: usize) -> Result<Memory> {
    Memory::new(messages, size).map_err(SetupError::system("mapping memory for messages"))
}

/// The calls towards one rank, and what has become of them.
pub struct Line {
    pub process: &'static Process,
    /// The rank, of all.
    pub peer: c_int,
    pub link: Link,
    failed: Option<String>,
}

impl Line {
    /// Towards this rank.
    pub fn new(process: &'static Process, peer: c_int) -> Line {
        Line { process, peer, link: Link::Up, failed: None }
    }

    /// Starts to receive a message of this tag, of at most so many bytes, that begins at `at`.
    #[inline(always)]
    pub fn receive(&mut self, at: *mut u8, bytes: usize, tag: c_int) -> usize {
        let (call, known) = (&self.process.mpi.call, &self.process.mpi.constants);
        let mut request = 0;
        let (count, world) = (bytes as c_int, known.comm_world);
        // SAFETY: MPI is initialised; the buffer has as many bytes, is this end's own, and is not
        // used before the request has completed (the ends' `Drop` ends those that are left).
        let code = unsafe {
            (call.MPI_Irecv)(at.cast(), count, known.byte, self.peer, tag, world, &mut request)
        };
        if code != MPI_SUCCESS {
            self.fail(code, "MPI_Irecv");
        }
        request
    }

    /// Starts to send.
    #[inline(always)]
    pub fn send(&mut self, at: *const u8, bytes: usize, tag: c_int) -> Option<usize> {
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
    pub fn is_done(&mut self, request: &mut usize, status: Option<&mut Status>) -> bool {
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

    /// Keeps what the first call that failed was told.
    #[cold]
    #[inline(never)]
    pub fn fail(&mut self, code: c_int, call: &str) {
        let said = || format!("{call}: {}", self.process.mpi.error(code));
        self.failed = self.failed.take().or_else(|| Some(said()));
        self.link = Link::Failed(rustix::io::Errno::IO.raw_os_error());
    }

    /// Whether all calls so far have succeeded.
    pub fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), |why| Err(SetupError::Refused(why)))
    }

    /// The call that failed.
    pub fn counters(&self) -> FinalCounters {
        let failed = self.failed.iter().map(|why| ("error.mpi", why.clone()));
        BTreeMap::from_iter(failed.map(|(name, why)| (name.to_string(), CounterValue::Text(why))))
    }
}

/// How far a sender may be ahead.
pub enum Ahead {
    /// So many messages more than have been answered, each answer being for so many.
    OfAnswers { most: u64, every: u64 },
    /// As many as the other end has buffers for, beyond what it has told to have taken.
    OfBuffers { most: u64, taken: u64 },
}

impl Ahead {
    /// How many messages may be sent in all, when so many have been received.
    #[inline(always)]
    pub fn limit(&self, received: u64) -> u64 {
        match *self {
            Ahead::OfAnswers { most, every } => most + received * every,
            Ahead::OfBuffers { most, taken } => most + taken,
        }
    }

    /// Takes what the other end has told.
    pub fn tell(&mut self, word: u64, sent: u64) {
        if let Ahead::OfBuffers { taken, .. } = self {
            *taken = word.clamp(*taken, sent);
        }
    }

    /// Whether to tell the other end how many were taken, of which so many were told.
    #[inline(always)]
    pub fn is_due(&self, taken: u64, told: u64) -> bool {
        match *self {
            Ahead::OfAnswers { .. } => false,
            Ahead::OfBuffers { most, .. } => taken - told >= (most / 2).max(1),
        }
    }
}

/// What the ends tell each other beside the messages.
pub struct Beside {
    own: Tags,
    theirs: Tags,
    words: Memory,
    /// The receive of the other end's next word, in the last place of the memory.
    hears: usize,
    /// Words on their way, by their places.
    tells: [usize; TELLING],
    /// The last word that was told.
    pub told: u64,
    /// The last word that the other end has told.
    pub heard: u64,
    /// When the other end was seen to go.
    closed: Option<Instant>,
}

impl Beside {
    /// Of an end with these tags, and the other's.
    pub fn new(line: &mut Line, (own, theirs): (Tags, Tags)) -> Result<Beside> {
        let null = line.process.mpi.constants.request_null;
        let words = memory(TELLING + 1, 8)?;
        let tells = [null; TELLING];
        let mut beside =
            Beside { own, theirs, words, hears: null, tells, told: 0, heard: 0, closed: None };
        beside.hear(line);
        Ok(beside)
    }

    /// Posts the receive of the other end's next word.
    fn hear(&mut self, line: &mut Line) {
        self.hears = line.receive(self.words.at(TELLING), 8, self.own.control);
    }

    /// The last of what the other end has told since the last look. Moves all messages of the
    /// process.
    pub fn look(&mut self, line: &mut Line) -> Option<u64> {
        let mut last = None;
        let mut request = self.hears;
        while line.link == Link::Up && line.is_done(&mut request, None) {
            let word = self.words.message(TELLING);
            let word = word.try_into().map_or(GOING, u64::from_le_bytes);
            self.hears = line.process.mpi.constants.request_null;
            if word == GOING {
                (line.link, self.closed) = (Link::Closed, Some(Instant::now()));
                break;
            }
            last = Some(word);
            self.heard = word;
            self.hear(line);
            request = self.hears;
        }
        last
    }

    /// Tells a word, where one of the places is free; else it is told later.
    #[inline(never)]
    pub fn tell(&mut self, line: &mut Line, word: u64) -> bool {
        for place in 0..TELLING {
            let mut request = self.tells[place];
            if !line.is_done(&mut request, None) {
                continue;
            }
            self.words.message(place).copy_from_slice(&word.to_le_bytes());
            let sent = line.send(self.words.at(place), 8, self.theirs.control);
            self.tells[place] = sent.unwrap_or(line.process.mpi.constants.request_null);
            if sent.is_some() {
                self.told = word;
            }
            return sent.is_some();
        }
        false
    }

    /// Tells that this end goes, and waits until the deadline for the other's word of that: it must
    /// not arrive where nobody waits for it any more.
    pub fn leave(&mut self, line: &mut Line, deadline: Instant) {
        let _ = line.link == Link::Up && self.tell(line, GOING);
        while line.link == Link::Up && Instant::now() < deadline {
            self.look(line);
        }
    }

    /// Tells that this end goes, and waits for the other's word of that: whether both go now, so
    /// that each may wait for the other without a bound. Where one has waited for half of the
    /// patience before this one came, it may give up meanwhile.
    pub fn leave_together(&mut self, line: &mut Line, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        if self.closed.is_some_and(|at| at.elapsed() > patience / 2) {
            return false;
        }
        let is_failed = |line: &Line| matches!(line.link, Link::Failed(_));
        while !is_failed(line) && !self.tell(line, GOING) && Instant::now() < deadline {}
        while line.link == Link::Up && Instant::now() < deadline {
            self.look(line);
        }
        line.link == Link::Closed
    }

    /// Ends what is left: these receives are cancelled, and these sends awaited. Whether all have
    /// ended; else MPI may still use their memory, and this one's stays.
    pub fn end(&mut self, line: &mut Line, mut left: Vec<usize>, sends: Vec<usize>) -> bool {
        left.push(self.hears);
        let null = line.process.mpi.constants.request_null;
        for request in left.iter_mut().filter(|request| **request != null) {
            // SAFETY: the request is a receive of this end that has not completed.
            let _ = unsafe { (line.process.mpi.call.MPI_Cancel)(request) };
        }
        left.extend(sends);
        left.extend(self.tells);
        let deadline = Instant::now() + LAST_SENDS;
        let all_done = left.iter_mut().all(|request| {
            while !line.is_done(request, None) {
                if Instant::now() >= deadline {
                    return false;
                }
            }
            true
        });
        if !all_done {
            self.words.stay();
        }
        all_done
    }
}
