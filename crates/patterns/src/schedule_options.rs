//! The options of a schedule: when the messages of an open loop are sent, and what waits for it.

use std::path::Path;
use wiregauge_base::options::{Given, OptionDef, UsageError, named_enum};
use wiregauge_base::units::MessageRate;
use wiregauge_plan::request::refuse;
use wiregauge_plan::{Schedule, TimerKind, Trace, trace};

const SCHEDULE: &str = "Schedule (open loop)";

named_enum! {
    /// The intervals of a schedule.
    pub enum ArrivalProcess {
        Periodic = "periodic",
        Poisson = "poisson",
        OnOff = "on-off",
    }
}

pub const ARRIVALS: OptionDef = OptionDef::choice::<ArrivalProcess>(
    "arrivals",
    "Arrival process: intervals between send times",
)
.metavar("KIND")
.heading(SCHEDULE);

pub const ON: OptionDef =
    OptionDef::time("on", "With --arrivals on-off: time of a burst, such as 1ms")
        .limits(1, u64::MAX)
        .heading(SCHEDULE);

pub const OFF: OptionDef = OptionDef::time("off", "With --arrivals on-off: time between bursts")
    .limits(1, u64::MAX)
    .heading(SCHEDULE);

pub const TRACE: OptionDef = OptionDef::path(
    "trace",
    "Send at the times in this file: one message per line, its time since the start (12us) and, on \
     every line or none, its size",
)
.metavar("FILE")
.excludes(&["arrivals", "on", "off"])
.heading(SCHEDULE);

pub const TIMER: OptionDef =
    OptionDef::choice::<TimerKind>("timer", "Timer that waits for each send time")
        .default_note("busy")
        .heading(SCHEDULE);

/// The schedule of a rate, or of a trace; without both a closed loop.
pub fn schedule(
    given: &Given,
    rate: Option<MessageRate>,
    usual: ArrivalProcess,
) -> Result<(Schedule, Option<Trace>), UsageError> {
    if let Some(path) = given.text("trace") {
        ensure!(rate.is_none(), "--trace sets the send times: use it without --rate");
        let unreadable = |why| UsageError(format!("--trace: cannot read '{path}' ({why})"));
        let text =
            wiregauge_host::read_text(Path::new(path), trace::LONGEST_FILE).map_err(unreadable)?;
        let trace = Trace::parse(path, &text).map_err(UsageError)?;
        return Ok((Schedule::Trace { rate: trace.rate() }, Some(trace)));
    }
    let Some(rate) = rate else {
        let needing = ["arrivals", "on", "off"].into_iter().find(|name| given.is_given(name));
        return match needing {
            None => Ok((Schedule::ClosedLoop, None)),
            Some(name) => refuse(format!(
                "--{name} needs --rate: use both, such as --rate 10k --arrivals poisson"
            )),
        };
    };
    let arrivals = given.choice("arrivals").unwrap_or(usual);
    let schedule = match (arrivals, given.time("on"), given.time("off")) {
        (ArrivalProcess::OnOff, Some(on), Some(off)) => Schedule::OnOff { rate, on, off },
        (ArrivalProcess::OnOff, ..) => {
            return refuse("--arrivals on-off needs --on and --off, such as --on 1ms --off 9ms");
        }
        (_, None, None) if arrivals == ArrivalProcess::Periodic => Schedule::Periodic { rate },
        (_, None, None) => Schedule::Poisson { rate },
        _ => return refuse("--on and --off need --arrivals on-off"),
    };
    Ok((schedule, None))
}
