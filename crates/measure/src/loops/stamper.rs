//! A thread that keeps writing the time into a message until the adapter has taken it: what the
//! receiver then reads is the last moment at which the message was still here.
//!
//! The loop arms it before the post and disarms it when the answer has come; disarming waits until
//! the thread has let go, so that nobody else looks at the bytes while it writes.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use wiregauge_clock::{Clock, Ticks};
use wiregauge_transport::optional::LiveWord;

/// Where in a message the time stands: behind its number.
pub const AT: usize = 8;
/// Times written between two looks whether to go on.
const WRITES: u32 = 16;

/// What the loop and the thread share.
#[derive(Debug, Default)]
pub struct Stamper {
    armed: AtomicBool,
    writes: AtomicBool,
    over: AtomicBool,
}

impl Stamper {
    /// The thread may write.
    #[inline]
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// The thread must not write; back when it does not.
    #[inline]
    pub fn disarm(&self) {
        // SeqCst, here and in `run`: either this sees that it writes, or it sees that it must not.
        self.armed.store(false, Ordering::SeqCst);
        while self.writes.load(Ordering::SeqCst) {
            spin_loop();
        }
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// The thread: writes while it is armed, until the end.
    pub fn run<C: Clock>(&self, word: &LiveWord, clock: C) {
        while !self.over.load(Ordering::Acquire) {
            if !self.armed.load(Ordering::Acquire) {
                // Not a spin: there may be no CPU of its own for it.
                std::thread::yield_now();
                continue;
            }
            self.writes.store(true, Ordering::SeqCst);
            if self.armed.load(Ordering::SeqCst) {
                for _ in 0..WRITES {
                    word(clock.now().0);
                }
            }
            self.writes.store(false, Ordering::SeqCst);
        }
    }
}

/// Writes a first time, before the thread does.
#[inline]
pub fn write(message: &mut [u8], now: Ticks) {
    if let Some(bytes) = message.get_mut(AT..AT + 8) {
        bytes.copy_from_slice(&now.0.to_le_bytes());
    }
}

/// Reads what the thread has written last.
#[inline(always)]
pub fn read(message: &[u8]) -> u64 {
    let bytes = message.get(AT..AT + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_stands_behind_the_number_and_a_short_message_has_none() {
        let mut message = [0u8; 24];
        message[8..16].copy_from_slice(&77u64.to_le_bytes());
        assert_eq!(read(&message), 77);
        assert_eq!(read(&message[..15]), 0);
    }
}
