//! The daemon's log on stderr: one line per session, and a bounded number for rejected peers.

use crate::locked;
use jiff::{Timestamp, Unit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wiregauge_base::wall_clock;
use wiregauge_plan::written::{one_line, shortened};

/// Rejected peers per second that get a line of their own; one more line counts the others.
const LINES: u64 = 20;
const SECOND: Duration = Duration::from_secs(1);
/// Characters of a line that are shown: a session's names and refusal may be any peer's.
const LONGEST: usize = 500;

/// One line that no terminal obeys, whatever a peer has sent.
fn shown(words: &str) -> String {
    shortened(&one_line(words), LONGEST)
}

/// Writes a time as RFC 3339 in UTC, all with the same number of digits: such lines sort by time.
fn written(time: Timestamp) -> String {
    format!("{:.3}", time.round(Unit::Millisecond).unwrap_or(time))
}

pub struct Log {
    quiet: bool,
    /// A time, and how many peers were rejected since.
    rejected: Mutex<(Instant, u64)>,
}

impl Log {
    pub fn new(quiet: bool) -> Log {
        Log { quiet, rejected: Mutex::new((Instant::now(), 0)) }
    }

    fn line(&self, words: &dyn Display) {
        if self.quiet {
            return;
        }
        let words = shown(&words.to_string());
        let _ = writeln!(io::stderr(), "{} {words}", written(wall_clock::now()));
    }

    /// Logs a finished session.
    pub fn session(&self, from: SocketAddr, who: &str, what: &str, result: &str) {
        self.line(&format!("{from} {who}: {what}: {result}"));
    }

    /// Logs a rejected peer.
    pub fn rejected(&self, from: SocketAddr, why: &dyn Display) {
        self.sum_up();
        let mut rejected = locked(&self.rejected);
        rejected.1 += 1;
        let is_shown = rejected.1 <= LINES;
        drop(rejected);
        if is_shown {
            self.line(&format!("{from} rejected: {why}"));
        }
    }

    /// Logs how many peers of a past second were not shown. Whether more are pending.
    fn sum_up(&self) -> bool {
        let mut rejected = locked(&self.rejected);
        let more = rejected.1.saturating_sub(LINES);
        if rejected.0.elapsed() < SECOND {
            return more > 0;
        }
        *rejected = (Instant::now(), 0);
        drop(rejected);
        if more > 0 {
            self.line(&format!("{more} more rejected"));
        }
        false
    }

    /// Sleeps until a connection arrives; logs pending counts meanwhile.
    pub fn await_readable(&self, listener: &TcpListener) {
        loop {
            let wait = self.sum_up().then_some(Timespec { tv_sec: 1, tv_nsec: 0 });
            let mut wanted = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut wanted, wait.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // accept(2) reports any other error.
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_they_follow_each_other() {
        let begin = Timestamp::from_second(1_795_881_600).unwrap();
        let times: Vec<String> =
            (0..2100).map(|ms| written(begin + jiff::SignedDuration::from_millis(ms))).collect();
        assert!(times.is_sorted());
        assert_eq!(
            (&*times[0], &*times[580]),
            ("2026-11-28T16:00:00.000Z", "2026-11-28T16:00:00.580Z")
        );
        assert_eq!(written(Timestamp::MAX).len(), times[0].len());
    }

    #[test]
    fn a_session_has_one_line_of_the_log_whatever_its_peer_says() {
        let line = shown(&"\u{1b}[2J\u{202e}\u{61c}\n".repeat(100_000));
        assert!(line.chars().count() < 600, "{}", line.len());
        assert!(!line.contains(wiregauge_plan::written::is_obeyed) && !line.contains('\n'));
        assert_eq!(shown("me: latency tcp: ended"), "me: latency tcp: ended");
    }
}
