//! The options of oneway.

use super::spec::{BURST, OUTSTANDING};
use super::{Oneway, Spec, request};
use crate::prelude::*;
use crate::schedule_options::{ARRIVALS, ArrivalProcess, OFF, ON, TIMER, TRACE, schedule};
use wiregauge_base::units::InjectedClockError;

const OPTIONS: OptionTable = &[
    SIZE,
    BURST,
    PAUSE,
    OUTSTANDING,
    OptionDef::parsed::<MessageRate>(
        "rate",
        "Messages per second of an open loop, such as 500, 10k or 1.5M",
    )
    .metavar("RATE")
    .default_note("closed loop")
    .common(),
    ARRIVALS.default_note("periodic").common(),
    ON,
    OFF,
    TRACE,
    TIMER,
    OptionDef::parsed::<InjectedClockError>(
        "injected-clock-error",
        "Inject a known error into the remote clock, to test that it is detected",
    )
    .metavar("SPEC")
    .hidden(),
];

impl PatternOptions for Oneway {
    fn about(&self) -> &'static str {
        "Measure one-way latency"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge oneway --transport shm,unix
  wiregauge oneway --transport udp --rate 10k --arrivals poisson --time 1s
  wiregauge oneway --transport shm --outstanding 64 --burst 8000 --count 80k"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let (schedule, trace) = schedule(given, given.get("rate"), ArrivalProcess::Periodic)?;
        let spec: Spec = given.fields()?;
        // What the default is stands in the record of a closed loop.
        let burst = spec.burst.or(spec.outstanding.is_none().then_some(1));
        let request = with_sizes(given, request(Spec { burst, ..spec }));
        let (timer, injected_clock_error) =
            (given.choice("timer"), given.get("injected-clock-error"));
        Ok(Request { schedule, trace, timer, injected_clock_error, ..request })
    }
}
