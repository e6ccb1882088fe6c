//! The agent's log: a line on stderr for every session, and for strangers as many as a person can
//! read.

use jiff::{Timestamp, Unit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Strangers of one second that get a line of their own; the others are counted in one.
const STRANGERS: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// The log.
pub struct Log {
    quiet: bool,
    strangers: Mutex<Strangers>,
}

/// Those of the current second.
struct Strangers {
    since: Instant,
    shown: u32,
    counted: u64,
}

impl Log {
    /// An empty one.
    pub fn new(quiet: bool) -> Log {
        let strangers = Strangers { since: Instant::now(), shown: 0, counted: 0 };
        Log { quiet, strangers: Mutex::new(strangers) }
    }

    fn line(&self, words: &dyn Display) {
        if self.quiet {
            return;
        }
        let now = Timestamp::now();
        let now = now.round(Unit::Millisecond).unwrap_or(now);
        // One line whatever a stranger has sent.
        let words = words.to_string().replace(char::is_control, " ");
        let _ = writeln!(io::stderr(), "{now} {words}");
    }

    /// A session that is over.
    pub fn session(&self, from: SocketAddr, who: &str, what: &str, result: &str) {
        self.line(&format!("{from} {who}: {what}: {result}"));
    }

    /// One who was turned away.
    pub fn stranger(&self, from: SocketAddr, why: &dyn Display) {
        self.sum_up();
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.shown < STRANGERS {
            strangers.shown += 1;
            drop(strangers);
            self.line(&format!("{from} stranger: turned away: {why}"));
        } else {
            strangers.counted += 1;
        }
    }

    /// Tells of the strangers of a second that is over. Whether there is more to be told.
    fn sum_up(&self) -> bool {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.since.elapsed() < SECOND {
            return strangers.counted > 0;
        }
        let counted = std::mem::take(&mut strangers.counted);
        (strangers.since, strangers.shown) = (Instant::now(), 0);
        drop(strangers);
        if counted > 0 {
            self.line(&format!("{counted} strangers more: turned away"));
        }
        false
    }

    /// Sleeps until somebody comes, and tells meanwhile what is to be summed up.
    pub fn await_readable(&self, listener: &TcpListener) {
        loop {
            let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
            let wait = self.sum_up().then_some(wait);
            let mut wanted = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut wanted, wait.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // What else is wrong, accept(2) says.
                _ => return,
            }
        }
    }
}
