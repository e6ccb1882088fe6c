//! The options of `stream`.

use super::args::{CommonArguments, WHAT};
use super::schedule_args::TimerArguments;
use super::values;
use crate::pattern::stream::{self, Asked};
use crate::plan::{Refusal, Request};
use crate::signal::Kind;
use crate::signal::file::Keep;
use crate::signal::format::Format;
use crate::signal::source::{Shape, Signal};
use clap::Args;
use std::path::PathBuf;

const SIGNAL: &str = "Signal";

#[derive(Debug, Args)]
pub struct StreamArguments {
    /// Samples per second, 10 to 1M: 25k, a list, or a sweep as 100..100k/8 (8 steps, logarithmic)
    /// [default: 10k]
    #[arg(long, value_name = "RATES", help_heading = WHAT, value_parser = values::rates)]
    pub rate: Option<values::Rates>,
    /// Values of a sample, 1 to 1024, or a list as 1,8,64; a message has 24 B and 8 B a value
    /// [default: 8]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = WHAT)]
    #[arg(value_parser = values::count32)]
    pub values: Vec<u32>,
    /// Write the samples that arrive to this new file; of several rounds each has its own, with its
    /// number before the extension
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    pub file: Option<PathBuf>,
    /// Its format, as VILLASnode names it [default: csv]
    #[arg(long, value_name = "FORMAT", help_heading = WHAT)]
    #[arg(value_parser = values::sample_formats())]
    pub format: Option<Format>,
    /// What the values are over time [default: mixed]
    #[arg(long, value_name = "NAME", help_heading = SIGNAL, value_parser = values::signals())]
    pub signal: Option<Signal>,
    /// What a value is [default: float]
    #[arg(long, value_name = "NAME", help_heading = SIGNAL, value_parser = values::kinds())]
    pub kind: Option<Kind>,
    /// Periods per second [default: 1]
    #[arg(long, value_name = "HZ", help_heading = SIGNAL)]
    pub frequency: Option<f64>,
    /// Amplitude [default: 1]
    #[arg(long, value_name = "VALUE", help_heading = SIGNAL)]
    pub amplitude: Option<f64>,
    /// Offset [default: 0]
    #[arg(long, value_name = "VALUE", help_heading = SIGNAL)]
    pub offset: Option<f64>,
    /// Phase in radians [default: 0]
    #[arg(long, value_name = "RADIANS", help_heading = SIGNAL)]
    pub phase: Option<f64>,
    /// Standard deviation of a step of the random walk [default: 0.2]
    #[arg(long, value_name = "VALUE", help_heading = SIGNAL)]
    pub deviation: Option<f64>,
    #[command(flatten)]
    pub common: CommonArguments,
    #[command(flatten)]
    pub timer: TimerArguments,
}

impl StreamArguments {
    /// The request, and the options that all patterns have.
    pub fn request(self) -> Result<(Request, CommonArguments), Refusal> {
        let usual = Shape::default();
        let shape = Shape {
            signal: self.signal.unwrap_or(usual.signal),
            kind: self.kind.unwrap_or(usual.kind),
            frequency: self.frequency.unwrap_or(usual.frequency),
            amplitude: self.amplitude.unwrap_or(usual.amplitude),
            offset: self.offset.unwrap_or(usual.offset),
            phase: self.phase.unwrap_or(usual.phase),
            deviation: self.deviation.unwrap_or(usual.deviation),
        };
        if self.format.is_some() && self.file.is_none() {
            let sentence = "--format is that of --file; write --file out.csv as well";
            return Err(Refusal(sentence.into()));
        }
        let format = self.format.unwrap_or_default();
        let keep = self.file.map(|path| Keep { path, format, kind: shape.kind });
        if let Some(keep) = &keep {
            is_free(keep)?;
        }
        let mut values = self.values;
        if values.is_empty() {
            values.push(stream::VALUES);
        }
        values.sort_unstable();
        values.dedup();
        let rates = self.rate.map_or_else(Vec::new, |rates| rates.0);
        let mut request = stream::request(Asked { shape, keep, rates }, &values);
        request.timer = self.timer.timer;
        Ok((request, self.common))
    }
}

/// A file is never overwritten.
fn is_free(keep: &Keep) -> Result<(), Refusal> {
    let paths = [keep.path.clone(), keep.of_round(0).path];
    let taken = paths.into_iter().find(|path| path.symlink_metadata().is_ok());
    match taken {
        Some(path) => Err(Refusal(format!(
            "--file: '{}' exists already and is never overwritten; name a file that does not",
            path.display()
        ))),
        None => Ok(()),
    }
}
