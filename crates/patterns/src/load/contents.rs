//! The contents of requests: for an object of a table, or of messages that come back as they are.

use super::server;
use crate::prelude::*;

/// The contents of requests.
pub trait Contents {
    /// Writes the request of this number.
    fn write(&self, message: &mut [u8], sequence: u64, check: bool);

    /// Returns the number of the request that is answered; `sent` of them were sent.
    fn sequence(&self, message: &[u8], sent: u64) -> u64;

    /// Returns true if an answer is that of the request of this number.
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool;
}

/// Requests for one of this number of objects.
pub struct Objects(pub u64);

impl Contents for Objects {
    #[inline(always)]
    fn write(&self, message: &mut [u8], sequence: u64, _: bool) {
        server::ask(message, sequence, self.0);
    }

    #[inline(always)]
    fn sequence(&self, message: &[u8], _: u64) -> u64 {
        message.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number))
    }

    #[inline(always)]
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool {
        server::is_answer(message, sequence, self.0)
    }
}

/// Messages that come back as they are.
pub struct Echoed;

impl Contents for Echoed {
    #[inline(always)]
    fn write(&self, message: &mut [u8], sequence: u64, check: bool) {
        payload::write(message, sequence, check);
    }

    #[inline(always)]
    fn sequence(&self, message: &[u8], sent: u64) -> u64 {
        payload::sequence(message, sent)
    }

    #[inline(always)]
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool {
        payload::verify(message, sequence)
    }
}
