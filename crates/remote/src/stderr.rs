//! The last lines that ssh, or what it ran, wrote to standard error.

use super::locked;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_plan::written::is_of_a_line;

/// How long the output that ssh wrote before its exit may take to be read.
const LAST_LINE: Duration = Duration::from_millis(200);
/// Interval between two checks for the end of the output.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes that are kept.
const TAIL: usize = 2048;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 300;

/// The end of what a process writes to its standard error.
pub(crate) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    pub fn of(mut errors: impl Read + Send + 'static) -> io::Result<Tail> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let reader = threads::spawn("read a process's standard error", move || {
            let mut some = [0; 512];
            while let Ok(got @ 1..) = errors.read(&mut some) {
                let mut kept = locked(&shared);
                kept.extend_from_slice(&some[..got]);
                let over = kept.len().saturating_sub(TAIL);
                kept.drain(..over);
            }
        })?;
        Ok(Tail { kept, reader })
    }

    /// The last line that is not empty, without control characters. Does not wait for the end of
    /// the pipe, which a master connection of ssh may hold open.
    pub fn last_line(&self) -> Option<String> {
        let deadline = Instant::now() + LAST_LINE;
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        last_line(&locked(&self.kept))
    }

    /// The last line that says something of this run: launchers frame what they say by lines of
    /// dashes, and end with advice. The line of a rank that aborts all says most.
    pub fn telling_line(&self) -> Option<String> {
        telling_line(self.text().as_bytes())
    }

    /// All that is kept.
    pub fn text(&self) -> String {
        let _ = self.last_line();
        String::from_utf8_lossy(&locked(&self.kept)).into_owned()
    }
}

/// What launchers say whatever has happened: MPICH's, and Open MPI's of `MPI_Abort`.
const ADVICE: [&str; 4] = [
    "Please see the FAQ page",
    "This typically refers to a problem",
    "You may or may not see output from other processes",
    "exactly when Open MPI kills them",
];
/// What Open MPI and MPICH say of a rank that calls `MPI_Abort`.
const ABORTS: [&str; 2] = ["MPI_ABORT was invoked", "application called MPI_Abort"];

/// Returns the line of a launcher's output that says most of this run.
pub fn telling_line(text: &[u8]) -> Option<String> {
    last_line_with(text, tells_of_abort).or_else(|| last_line_with(text, is_telling))
}

fn tells_of_abort(line: &str) -> bool {
    ABORTS.iter().any(|aborts| line.contains(aborts))
}

fn is_telling(line: &str) -> bool {
    line.contains(char::is_alphanumeric) && !ADVICE.iter().any(|advice| line.starts_with(advice))
}

/// The last line that is not empty.
pub fn last_line(text: &[u8]) -> Option<String> {
    last_line_with(text, |line| !line.is_empty())
}

fn last_line_with(text: &[u8], tells: impl Fn(&str) -> bool) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().rev().map(shown).find(|line| tells(line))
}

/// Returns a line as it is shown: of one that is nothing but control characters nothing is left.
fn shown(line: &str) -> String {
    let plain: String = line.chars().filter(|sign| is_of_a_line(*sign)).collect();
    plain.trim().chars().take(LONGEST_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_s_frame_and_advice_are_passed_over() {
        let said = b"=   PID 7 RUNNING AT vm\nTHE EXIT STRING: Killed (signal 9)\nThis typically \
                     refers to a problem with your application.\nPlease see the FAQ page for \
                     debugging suggestions\n=====\n";
        let line = last_line_with(said, is_telling);
        assert_eq!(line.as_deref(), Some("THE EXIT STRING: Killed (signal 9)"));
        let said = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith \
                    errorcode 7.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI \
                    processes.\nYou may or may not see output from other processes, depending \
                    on\nexactly when Open MPI kills them.\n";
        let tail = Tail::of(io::Cursor::new(said)).unwrap();
        let line = tail.telling_line().unwrap_or_default();
        assert_eq!(line, "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD");
    }

    #[test]
    fn the_last_line_is_shown_without_what_a_terminal_obeys() {
        assert_eq!(last_line(b"one\r\ntwo \x1b[31mred\r\n\n"), Some("two [31mred".into()));
        let turned = "a\u{202e}b\u{61c}c\u{2066}d".as_bytes();
        assert_eq!(last_line(turned), Some("abcd".into()));
        assert_eq!(last_line(b"\n \n"), None);
        // Codes that end a colour say nothing.
        assert_eq!(last_line(b"lost\n\x1b\x07\n"), Some("lost".into()));
        assert_eq!(last_line("\x1b \u{202e}\n".as_bytes()), None);
        assert_eq!(last_line(&[b'x'; 1000]).map(|line| line.len()), Some(LONGEST_LINE));
    }
}
