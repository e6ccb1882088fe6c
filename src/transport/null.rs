//! `null`: no transport at all. A message arrives as it is posted, so what a pattern measures on it
//! is the instrument: the loop, the clock's readings, the recorder.
//!
//! An arrival lies in the slot that it was posted from: writing that slot again ends it.

use super::*;
use crate::units::Bytes;

/// The null transport. The one process that opens it plays the client; the answer is the message.
pub struct Null;

/// Both the half-open end and the endpoint: there is nothing to connect.
pub struct NullEndpoint {
    memory: Box<[u8]>,
    size: usize,
    /// The slots that were posted since the last poll.
    posted: [Slot; MOST_EVENTS],
    pending: u32,
    every: u32,
    since_answer: u32,
}

const DESCRIPTOR: Descriptor = Descriptor {
    about: "no transport: a message arrives as it is posted (the instrument's own floor)",
    largest: Bytes::MIB.0,
    traffic: &[Traffic::Echo { every: 1 }],
    one_process: true,
    is_instrument: true,
    path: "nothing but the loop itself",
    ..Descriptor::BASE
};

impl Transport for Null {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let every = match setup.traffic {
            Traffic::Echo { every } => every.max(1),
            Traffic::Forward | Traffic::Both | Traffic::OneSided => 1,
        };
        Ok(Box::new(NullEndpoint {
            memory: vec![0; setup.size * MOST_EVENTS].into_boxed_slice(),
            size: setup.size,
            posted: [Slot::default(); MOST_EVENTS],
            pending: 0,
            every,
            since_answer: 0,
        }))
    }
}

impl Opening for NullEndpoint {
    fn address(&self) -> Blob {
        Blob::default()
    }

    fn connect(self: Box<Self>, _: &Blob) -> Result<Connected, SetupError> {
        Ok(Connected::new(*self))
    }
}

impl Endpoint for NullEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        MOST_EVENTS as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() % MOST_EVENTS * self.size;
        &mut self.memory[at..at + self.size]
    }

    #[inline]
    fn post(&mut self, slot: Slot, _: usize) -> Posted {
        let Some(place) = self.posted.get_mut(self.pending as usize) else { return Posted::Full };
        *place = slot;
        self.pending += 1;
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {}

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        for slot in &self.posted[..self.pending as usize] {
            self.since_answer += 1;
            if self.since_answer == self.every {
                self.since_answer = 0;
                events.arrive(Slot::arrived(slot.number() as u32), self.size as u32);
            }
        }
        events.completed = self.pending;
        self.pending = 0;
        events.any()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        let _ = self.poll(events);
    }
}
