//! The options of a schedule: when the messages of an open loop are sent, and what waits for it.

use super::args::WHAT;
use super::values::{self, Arrivals};
use crate::plan::{Refusal, Schedule, TimerKind, Trace, trace};
use crate::units::{MessageRate, Span};
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};

const SCHEDULE: &str = "Schedule (open loop)";

/// When messages are sent.
#[derive(Debug, Args)]
pub struct ScheduleArguments {
    /// The intervals of the schedule [default: periodic for oneway, poisson for load
    /// and rpc]
    #[arg(long, value_name = "KIND", help_heading = SCHEDULE)]
    #[arg(value_parser = values::arrivals())]
    pub arrivals: Option<Arrivals>,
    /// With --arrivals on-off: how long the source is on, as 1ms
    #[arg(long, value_name = "TIME", help_heading = SCHEDULE)]
    pub on: Option<Span>,
    /// With --arrivals on-off: how long it is off
    #[arg(long, value_name = "TIME", help_heading = SCHEDULE)]
    pub off: Option<Span>,
    /// Send at the times of this file, a line a message: its time since the start as 12us and, if
    /// it is on every line, its size
    #[arg(long, value_name = "FILE", help_heading = SCHEDULE)]
    pub trace: Option<PathBuf>,
}

/// What waits for the intended times.
#[derive(Debug, Args)]
pub struct TimerArguments {
    /// What waits for the intended times [default: busy]
    #[arg(long, value_name = "NAME", help_heading = SCHEDULE)]
    #[arg(value_parser = values::timers())]
    pub timer: Option<TimerKind>,
}

/// Bursts and pauses.
#[derive(Debug, Args)]
pub struct PaceArguments {
    /// Messages posted together [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub burst: Option<u32>,
    /// Pause between two messages or bursts, as 10us
    #[arg(long, value_name = "TIME", help_heading = WHAT)]
    pub pause: Option<Span>,
}

impl ScheduleArguments {
    /// The schedule of a rate, or of a trace; what both lack is a closed loop.
    pub fn schedule(
        &self,
        rate: Option<MessageRate>,
        usual: Arrivals,
    ) -> Result<(Schedule, Option<Trace>), Refusal> {
        if let Some(path) = &self.trace {
            return self.traced(path, rate);
        }
        let Some(rate) = rate else {
            let asked = [
                ("--arrivals", self.arrivals.is_some()),
                ("--on", self.on.is_some()),
                ("--off", self.off.is_some()),
            ];
            return match asked.into_iter().find(|(_, asked)| *asked) {
                None => Ok((Schedule::ClosedLoop, None)),
                Some((name, _)) => refuse(format!(
                    "{name} needs --rate; write both as --rate 10k --arrivals poisson"
                )),
            };
        };
        let arrivals = self.arrivals.unwrap_or(usual);
        let schedule = match (arrivals, self.on, self.off) {
            (Arrivals::OnOff, Some(on), Some(off)) if on.0 > 0 && off.0 > 0 => {
                Schedule::OnOff { rate, on, off }
            }
            (Arrivals::OnOff, ..) => {
                return refuse(
                    "--arrivals on-off needs both lengths, each above 0; write as --on 1ms --off \
                     9ms",
                );
            }
            (_, None, None) if arrivals == Arrivals::Periodic => Schedule::Periodic { rate },
            (_, None, None) => Schedule::Poisson { rate },
            _ => return refuse("--on and --off are for --arrivals on-off"),
        };
        Ok((schedule, None))
    }

    fn traced(
        &self,
        path: &Path,
        rate: Option<MessageRate>,
    ) -> Result<(Schedule, Option<Trace>), Refusal> {
        let others =
            self.arrivals.is_some() || self.on.is_some() || self.off.is_some() || rate.is_some();
        if others {
            return refuse(
                "--trace sets the times; it goes without --rate, --arrivals, --on, --off",
            );
        }
        let name = path.display().to_string();
        let unreadable = |why: String| Refusal(format!("--trace: '{name}' cannot be read ({why})"));
        let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
        let mut bytes = Vec::new();
        let read = file.take(trace::LONGEST_FILE + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > trace::LONGEST_FILE {
            return Err(unreadable(format!("more than {} B", trace::LONGEST_FILE)));
        }
        let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".into()))?;
        let trace = Trace::parse(&name, &text).map_err(Refusal)?;
        Ok((Schedule::Trace { rate: trace.rate() }, Some(trace)))
    }
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}
