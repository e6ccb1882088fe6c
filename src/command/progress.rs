//! How far a run is: one line on stderr, and only on a terminal.

use crate::plan::Rounds;
use crate::plan::written::one_line;
use crate::run::Watcher;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};

/// How often the line is drawn at most. Drawing takes CPU time from what is measured, so no timer
/// does it and a person's patience sets the rate.
const MOST_DRAWN_HZ: u8 = 2;

/// The line.
pub struct Progress {
    bar: ProgressBar,
    label: String,
    /// Cases of all rounds that have begun.
    begun: u64,
}

impl Progress {
    /// Hidden where stderr is no terminal.
    pub fn new() -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(MOST_DRAWN_HZ),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} rounds, {eta} left  {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress { bar, label: String::new(), begun: 0 }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
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

    fn case(&mut self, label: &str) {
        // It may quote a study or another host.
        self.label = one_line(label);
        self.bar.set_message(self.label.clone());
        self.bar.set_position(self.begun);
        self.begun += 1;
    }

    fn messages(&mut self, messages: u64) {
        self.bar.set_message(format!("{} ({messages} messages)", self.label));
    }
}
