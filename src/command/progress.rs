//! How far a run is, on stderr: one line on a terminal, and a line every 10 s else.

use crate::plan::Rounds;
use crate::plan::written::one_line;
use crate::report::number::{per_second, time};
use crate::run::{SoFar, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is drawn at most. Drawing takes CPU time from what is measured, so no timer
/// does it and a person's patience sets the rate.
pub const MOST_DRAWN_HZ: u8 = 2;
/// How often a line is written where stderr is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How much of a run is done, counted in rounds of all cases.
pub struct Extent {
    bar: ProgressBar,
    /// Rounds of cases that have started.
    started: u64,
}

impl Default for Extent {
    /// Counts without drawing.
    fn default() -> Extent {
        Extent::on(ProgressDrawTarget::hidden())
    }
}

impl Extent {
    fn on(target: ProgressDrawTarget) -> Extent {
        Extent { bar: ProgressBar::with_draw_target(Some(0), target), started: 0 }
    }

    /// Starts a round of this many cases.
    pub fn round(&mut self, round: u32, rounds: Rounds, cases: usize) {
        let cases = cases as u64;
        self.bar.set_length(u64::from(rounds.most).saturating_mul(cases));
        // Cases that have enough are passed over.
        self.started = u64::from(round).saturating_mul(cases);
    }

    /// Starts the next case of the round.
    pub fn case(&mut self) {
        self.bar.set_position(self.started);
        self.started += 1;
    }

    /// How many rounds of cases have started, and how many there are.
    pub fn started(&self) -> (u64, u64) {
        (self.started, self.bar.length().unwrap_or_default())
    }

    /// How long the rest takes, in words for after a count.
    pub fn left(&self) -> String {
        left(self.bar.elapsed(), self.bar.position(), self.bar.length().unwrap_or_default())
    }
}

/// How long the rest takes if it goes on as before, in words for after a count; nothing while
/// nothing is done. An estimator that forgets what is long ago takes one long round for an end.
fn left(elapsed: Duration, done: u64, of: u64) -> String {
    let left_s = elapsed.as_secs_f64() * of.saturating_sub(done) as f64 / done as f64;
    if done == 0 { String::new() } else { format!(", about {left_s:.0} s left") }
}

/// The line.
pub struct Progress {
    extent: Extent,
    is_terminal: bool,
    label: String,
    /// What the case has shown so far, in words.
    so_far: String,
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
        let extent = Extent::on(target);
        // The last part is cut where the terminal ends.
        let style = ProgressStyle::with_template("{bar:10} {pos}/{len}{left}  {wide_msg}");
        if let Ok(style) = style {
            let left = |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                let of = state.len().unwrap_or_default();
                let _ = to.write_str(&left(state.elapsed(), state.pos(), of));
            };
            extent.bar.set_style(style.with_key("left", left));
        }
        let (label, so_far) = (String::new(), String::new());
        Progress { extent, is_terminal, label, so_far, written: Instant::now() }
    }

    /// Shows what the case has shown so far, and `more`.
    fn show(&mut self, more: &str) {
        let message = format!("{}{}{more}", self.label, self.so_far);
        if !self.is_terminal && self.written.elapsed() >= BETWEEN_LINES {
            self.written = Instant::now();
            let bar = &self.extent.bar;
            let line = line(bar.position(), bar.length(), &self.extent.left(), &message);
            // Where even stderr cannot be written, the record has all of it.
            let _ = writeln!(std::io::stderr(), "wiregauge: {line}");
        }
        self.extent.bar.set_message(message);
    }
}

/// Where a run is, for a log.
fn line(done: u64, of: Option<u64>, left: &str, message: &str) -> String {
    format!("{done} of {} rounds{left}: {message}", of.unwrap_or_default())
}

/// A running figure.
pub fn shown(so_far: SoFar) -> String {
    match so_far {
        SoFar::Times { metric, p50_ns, p99_ns } => {
            format!(": {} p50 {}, p99 {}", metric.name(), time(p50_ns), time(p99_ns))
        }
        SoFar::Rate(rate) => format!(": {}", per_second(rate)),
    }
}

impl Drop for Progress {
    /// Takes the line away.
    fn drop(&mut self) {
        self.extent.bar.finish_and_clear();
    }
}

impl Watcher for Progress {
    fn cpus(&mut self, choice: &str) {
        // Where even stderr cannot be written, the record has them.
        let write = || writeln!(std::io::stderr(), "wiregauge: {choice}");
        let _ = self.extent.bar.suspend(write);
    }

    fn round(&mut self, round: u32, rounds: Rounds, cases: usize) {
        self.extent.round(round, rounds, cases);
    }

    fn case(&mut self, _case: usize, label: &str, so_far: Option<SoFar>) {
        // It may quote a study or another host.
        self.label = one_line(label);
        self.so_far = so_far.map_or_else(String::new, shown);
        self.extent.case();
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
        let is_left = |done| left(Duration::from_secs(20), done, 180);
        // 168 rounds of 20 s / 12.
        assert_eq!((is_left(0), is_left(12)), (String::new(), ", about 280 s left".into()));
        let text = line(12, Some(180), ", about 25 s left", &message);
        assert_eq!(
            text,
            "12 of 180 rounds, about 25 s left: latency tcp busy 64 B: half_rtt p50 3.360 us, p99 \
             5.460 us"
        );
        assert_eq!(shown(SoFar::Rate(1.5e6)), ": 1.500 M msg/s");
    }
}
