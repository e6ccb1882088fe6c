//! The daemon's log on stderr: one line per session, and a bounded number for rejected peers.

use crate::remote::locked;
use jiff::{Timestamp, Unit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Rejected peers per second that get a line of their own; one more line counts the others.
const LINES: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

pub struct Log {
    quiet: bool,
    rejected: Mutex<Rejected>,
}

/// Rejected peers of the current second.
struct Rejected {
    since: Instant,
    shown: u32,
    counted: u64,
}

impl Log {
    pub fn new(quiet: bool) -> Log {
        let rejected = Rejected { since: Instant::now(), shown: 0, counted: 0 };
        Log { quiet, rejected: Mutex::new(rejected) }
    }

    fn line(&self, words: &dyn Display) {
        if self.quiet {
            return;
        }
        let now = Timestamp::now();
        let now = now.round(Unit::Millisecond).unwrap_or(now);
        // One line, whatever a peer has sent.
        let words = words.to_string().replace(char::is_control, " ");
        let _ = writeln!(io::stderr(), "{now} {words}");
    }

    /// Logs a finished session.
    pub fn session(&self, from: SocketAddr, who: &str, what: &str, result: &str) {
        self.line(&format!("{from} {who}: {what}: {result}"));
    }

    /// Logs a rejected peer.
    pub fn rejected(&self, from: SocketAddr, why: &dyn Display) {
        self.sum_up();
        let mut rejected = locked(&self.rejected);
        if rejected.shown < LINES {
            rejected.shown += 1;
            drop(rejected);
            self.line(&format!("{from} rejected: {why}"));
        } else {
            rejected.counted += 1;
        }
    }

    /// Logs the uncounted rejected peers of a past second. Whether more are pending.
    fn sum_up(&self) -> bool {
        let mut rejected = locked(&self.rejected);
        if rejected.since.elapsed() < SECOND {
            return rejected.counted > 0;
        }
        let counted = std::mem::take(&mut rejected.counted);
        (rejected.since, rejected.shown) = (Instant::now(), 0);
        drop(rejected);
        if counted > 0 {
            self.line(&format!("{counted} more rejected"));
        }
        false
    }

    /// Sleeps until a connection arrives; logs pending counts meanwhile.
    pub fn await_readable(&self, listener: &TcpListener) {
        loop {
            let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
            let wait = self.sum_up().then_some(wait);
            let mut wanted = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut wanted, wait.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // accept(2) reports any other error.
                _ => return,
            }
        }
    }
}
