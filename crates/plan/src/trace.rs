//! A schedule that was written down: a line a message, its time and, where one wants, its size.

use super::written::Written;
use serde::{Deserialize, Serialize};
use wiregauge_base::units::{Bytes, MessageRate, Span};

/// Most messages of a trace: it stands in the record and goes to the agents in one frame.
pub const MOST: usize = 50_000;
/// Most bytes of a trace's file: 50 000 lines of an ordinary length, and comments.
pub const LONGEST_FILE: u64 = 4 << 20;

/// A second.
const SECOND_NS: u64 = 1_000_000_000;

/// The messages of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The file that it was read from.
    pub file: String,
    /// When each message is intended, in nanoseconds since the start, not falling.
    pub times_ns: Vec<u64>,
    /// The payload of each message; empty where the file has none.
    pub sizes: Vec<Bytes>,
}

impl Trace {
    /// Reads the text of a trace.
    ///
    /// # Errors
    /// A sentence that begins with `file:line:column`.
    pub fn parse(file: &str, text: &str) -> Result<Trace, String> {
        let mut trace = Trace { file: file.into(), times_ns: Vec::new(), sizes: Vec::new() };
        let wrong = |word: &str, sentence: &str| {
            // A word is a slice of the text.
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            Written { file: file.into(), text: text.into() }.wrong(&(at..at), sentence).to_string()
        };
        for line in text.lines() {
            let (content, _) = line.split_once('#').unwrap_or((line, ""));
            let mut words = content.split_whitespace();
            let Some(time) = words.next() else { continue };
            let Span(ns) = time.parse().map_err(|error: String| wrong(time, &error))?;
            let rises = trace.times_ns.last().is_none_or(|last| *last <= ns);
            ensure!(rises, wrong(time, "a time before that of the line above: use rising times"));
            let size = words.next();
            let is_first = trace.times_ns.is_empty();
            let at = size.unwrap_or(&content[content.len()..]);
            let is_alike = is_first || size.is_none() == trace.sizes.is_empty();
            ensure!(is_alike, wrong(at, "write a size on every line or on none"));
            if let Some(size) = size {
                trace.sizes.push(size.parse().map_err(|error: String| wrong(size, &error))?);
            }
            if let Some(third) = words.next() {
                return Err(wrong(third, "a third field: a line has a time and at most a size"));
            }
            trace.times_ns.push(ns);
            let too_many = || wrong(line, &format!("a trace has at most {MOST} messages"));
            ensure!(trace.times_ns.len() <= MOST, too_many());
        }
        trace.check().map_err(|sentence| wrong(text, &sentence))?;
        Ok(trace)
    }

    /// Refuses what no trace is: it may come over a network.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        let Trace { times_ns, sizes, .. } = self;
        ensure!(times_ns.len() > 1, "a trace has at least 2 messages");
        let rises = times_ns.windows(2).all(|pair| pair[0] <= pair[1]);
        let is_whole =
            times_ns.len() <= MOST && (sizes.is_empty() || sizes.len() == times_ns.len());
        ensure!(rises && is_whole, "the trace's times must rise, with one size each or none");
        let lasts = times_ns.first() < times_ns.last();
        ensure!(lasts, "all times are equal, so the trace has no rate: use a later one");
        Ok(())
    }

    /// The one size of all its messages; `None` where it says none.
    ///
    /// # Errors
    /// More than one size: a sentence.
    pub fn size(&self) -> Result<Option<Bytes>, String> {
        let Some(first) = self.sizes.first() else { return Ok(None) };
        match self.sizes.iter().find(|size| *size != first) {
            None => Ok(Some(*first)),
            Some(other) => Err(format!(
                "--trace: '{}' has messages of {first} and of {other}; all messages of a \
                 connection have one size here",
                self.file
            )),
        }
    }

    /// Messages of the second that has most of them, or as many per second where the trace is
    /// shorter.
    pub fn highest_rate(&self) -> f64 {
        let (mut first, mut most) = (0, 0);
        for (last, ns) in self.times_ns.iter().enumerate() {
            while ns.saturating_sub(self.times_ns[first]) >= SECOND_NS {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        let ends = self.times_ns.first().zip(self.times_ns.last());
        let is_short = ends.is_none_or(|(first, last)| last.saturating_sub(*first) < SECOND_NS);
        if is_short { self.rate().0 } else { most as f64 }
    }

    /// Messages per second from the first to the last.
    pub fn rate(&self) -> MessageRate {
        let ends = self.times_ns.first().zip(self.times_ns.last());
        let ns = ends.map_or(0, |(first, last)| last.saturating_sub(*first));
        MessageRate((self.times_ns.len().saturating_sub(1)) as f64 * 1e9 / ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_and_sizes_are_read_and_comments_are_not() {
        let text = "# time size\n0ns 64\n\n10us 64B # the second\n1.5ms 64\n";
        let trace = Trace::parse("t.trace", text).unwrap();
        assert_eq!(trace.times_ns, [0, 10_000, 1_500_000]);
        assert_eq!(trace.size(), Ok(Some(Bytes(64))));
        assert!((trace.rate().0 - 2.0 / 0.0015).abs() < 1e-6);
        assert_eq!(Trace::parse("t", "0ns\n1us\n").unwrap().size(), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_column() {
        for (text, says) in [
            ("0ns\nsoon\n", "t:2:1: invalid time 'soon': use"),
            ("0ns\n2us\n  1us\n", "t:3:3: a time before that of the line above"),
            ("0ns 64\n1us big\n", "t:2:5: invalid size 'big': use"),
            ("0ns 64\n1us\n", "t:2:4: write a size on every line or on none"),
            ("0ns\n1us 64\n", "t:2:5: write a size on every line or on none"),
            ("0ns 64 7\n", "t:1:8: a third field"),
            ("0ns\n", "t:1:1: a trace has at least 2 messages"),
            ("", "t:1:1: a trace has at least 2 messages"),
            ("5us\n5us\n5us\n", "t:1:1: all times are equal, so the trace has no rate"),
        ] {
            let sentence = Trace::parse("t", text).unwrap_err();
            assert!(sentence.starts_with(says), "{text:?}: {sentence}");
        }
        let long = "1us\n".repeat(MOST + 1);
        let sentence = Trace::parse("t", &long).unwrap_err();
        assert!(sentence.contains("at most 50000 messages"), "{sentence}");
    }

    #[test]
    fn two_sizes_are_refused_where_one_is_needed() {
        let trace = Trace::parse("t", "0ns 64\n1us 65\n").unwrap();
        assert!(trace.size().unwrap_err().contains("64 B and of 65 B"));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_rises(text in "([0-9a-zµ#. ]{0,8}(us|ns|B)?\n){0,6}") {
            if let Ok(trace) = Trace::parse("t", &text) {
                prop_assert!(trace.times_ns.windows(2).all(|pair| pair[0] <= pair[1]));
                prop_assert!(trace.sizes.is_empty() || trace.sizes.len() == trace.times_ns.len());
            }
        }
    }
}
