//! The last lines that ssh, or what it ran, wrote to standard error.

use super::locked;
use crate::plan::written::is_of_a_line;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    pub fn of(mut errors: impl Read + Send + 'static) -> Tail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let reader = std::thread::spawn(move || {
            let mut some = [0; 512];
            while let Ok(got @ 1..) = errors.read(&mut some) {
                let mut kept = locked(&shared);
                kept.extend_from_slice(&some[..got]);
                let over = kept.len().saturating_sub(TAIL);
                kept.drain(..over);
            }
        });
        Tail { kept, reader }
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
    /// dashes, and MPICH's ends with advice.
    pub fn telling_line(&self) -> Option<String> {
        let _ = self.last_line();
        last_line_with(&locked(&self.kept), is_telling)
    }
}

/// What MPICH's launcher says whatever has happened.
const ADVICE: [&str; 2] = ["Please see the FAQ page", "This typically refers to a problem"];

fn is_telling(line: &str) -> bool {
    line.contains(char::is_alphanumeric) && !ADVICE.iter().any(|advice| line.starts_with(advice))
}

/// The last line that is not empty.
fn last_line(text: &[u8]) -> Option<String> {
    last_line_with(text, |line| !line.is_empty())
}

fn last_line_with(text: &[u8], tells: impl Fn(&str) -> bool) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).rfind(|line| tells(line))?;
    Some(line.chars().filter(|sign| is_of_a_line(*sign)).take(LONGEST_LINE).collect())
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
    }

    #[test]
    fn the_last_line_is_shown_without_what_a_terminal_obeys() {
        assert_eq!(last_line(b"one\r\ntwo \x1b[31mred\r\n\n"), Some("two [31mred".into()));
        let turned = "a\u{202e}b\u{61c}c\u{2066}d".as_bytes();
        assert_eq!(last_line(turned), Some("abcd".into()));
        assert_eq!(last_line(b"\n \n"), None);
        assert_eq!(last_line(&[b'x'; 1000]).map(|line| line.len()), Some(LONGEST_LINE));
    }
}
