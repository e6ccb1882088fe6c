//! How far a run is, on stderr: one line on a terminal, and a line every 10 s else.

use crate::plan::Rounds;
use crate::plan::written::one_line;
use crate::report::number::{per_second, time};
use crate::run::{SoFar, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is drawn at most. Drawing takes CPU time from what is measured, so no timer
/// does it and a person's patience sets the rate.
const MOST_DRAWN_HZ: u8 = 2;
/// How often a line is written where stderr is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The line.
pub struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
    label: String,
    /// What the case has shown so far, in words.
    so_far: String,
    /// Cases of all rounds that have begun.
    begun: u64,
    /// When the last line was written.
    written: Instant,
}

impl Progress {
    /// On stderr, whatever it is.
    pub fn new() -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let target = match is_terminal {
            true => ProgressDrawTarget::stderr_with_hz(MOST_DRAWN_HZ),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        // The last part is cut where the terminal ends.
        let style = ProgressStyle::with_template("{bar:10} {pos}/{len} {eta} left  {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let (label, so_far) = (String::new(), String::new());
        Progress { bar, is_terminal, label, so_far, begun: 0, written: Instant::now() }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows what the case has shown so far, and `more`.
    fn show(&mut self, more: &str) {
        let message = format!("{}{}{more}", self.label, self.so_far);
        if !self.is_terminal && self.written.elapsed() >= BETWEEN_LINES {
            self.written = Instant::now();
            let line = line(self.bar.position(), self.bar.length(), self.bar.eta(), &message);
            // Where even stderr cannot be written, the record has all of it.
            let _ = writeln!(std::io::stderr(), "wiregauge: {line}");
        }
        self.bar.set_message(message);
    }
}

/// Where a run is, for a log.
fn line(done: u64, of: Option<u64>, left: Duration, message: &str) -> String {
    let of = of.unwrap_or_default();
    format!("{done} of {of} rounds, about {} s left: {message}", left.as_secs())
}

/// A running figure.
fn shown(so_far: SoFar) -> String {
    match so_far {
        SoFar::Times { metric, p50_ns, p99_ns } => {
            format!(": {} p50 {}, p99 {}", metric.name(), time(p50_ns), time(p99_ns))
        }
        SoFar::Rate(rate) => format!(": {}", per_second(rate)),
    }
}

impl Watcher for Progress {
    fn cpus(&mut self, choice: &str) {
        // Where even stderr cannot be written, the record has them.
        let write = || writeln!(std::io::stderr(), "wiregauge: {choice}");
        let _ = self.bar.suspend(write);
    }

    fn round(&mut self, round: u32, rounds: Rounds, cases: usize) {
        let cases = cases as u64;
        self.bar.set_length(u64::from(rounds.most).saturating_mul(cases));
        // Cases that have enough are passed over.
        self.begun = u64::from(round).saturating_mul(cases);
    }

    fn case(&mut self, label: &str, so_far: Option<SoFar>) {
        // It may quote a study or another host.
        self.label = one_line(label);
        self.so_far = so_far.map_or_else(String::new, shown);
        self.bar.set_position(self.begun);
        self.begun += 1;
        self.show("");
    }

    fn messages(&mut self, messages: u64) {
        self.show(&format!(" ({messages} messages)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Metric;

    #[test]
    fn a_line_says_where_a_run_is_and_what_its_case_has_shown() {
        let so_far = SoFar::Times { metric: Metric::HalfRtt, p50_ns: 3360.0, p99_ns: 5460.0 };
        let message = format!("latency tcp busy 64 B{}", shown(so_far));
        let text = line(12, Some(180), Duration::from_millis(25_400), &message);
        assert_eq!(
            text,
            "12 of 180 rounds, about 25 s left: latency tcp busy 64 B: half_rtt p50 3.360 us, p99 \
             5.460 us"
        );
        assert_eq!(shown(SoFar::Rate(1.5e6)), ": 1.500 M msg/s");
    }
}
