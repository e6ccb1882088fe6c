//! How far a run is: one line on stderr, and only on a terminal.

use crate::conduct::Watcher;
use crate::plan::Rounds;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The line.
pub struct Progress {
    bar: ProgressBar,
    label: String,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Hidden where stderr is no terminal.
    pub fn new() -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} rounds, {eta} left  {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress { bar, label: String::new() }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for Progress {
    fn round(&mut self, _: u32, rounds: Rounds, cases: usize) {
        self.bar.set_length(u64::from(rounds.most) * cases as u64);
    }

    fn case(&mut self, label: &str) {
        self.label = label.to_string();
        self.bar.set_message(self.label.clone());
        self.bar.inc(1);
    }

    fn messages(&mut self, messages: u64) {
        self.bar.set_message(format!("{} ({messages} messages)", self.label));
    }
}
