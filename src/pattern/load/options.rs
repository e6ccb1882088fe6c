//! The options of load.

use super::{
    Asked, Buffers, Load, MOST_BUFFERS, MOST_OUTSTANDING, MOST_TABLE, Search, Spec, request,
};
use crate::options::{Given, OptionDef, OptionTable, UsageError};
use crate::pattern::options::{MEASUREMENT, PatternOptions, WINDOW};
use crate::pattern::schedule_options::{ARRIVALS, Arrivals, OFF, ON, TIMER, TRACE, schedule};
use crate::plan::request::refuse;
use crate::plan::{Request, Schedule, Slo, sweep};
use crate::units::MessageRate;

const RATE: OptionDef = OptionDef::text(
    "rate",
    |text| sweep::rates(text).map(drop),
    "Requests per second: 50k, a list, or a sweep 1k..100k/8 (8 steps, logarithmic)",
)
.metavar("RATES")
.default_note("searched from idle to saturation, finer around the knee")
.heading(MEASUREMENT);

const CLIENTS: OptionDef = OptionDef::count(
    "clients",
    "Closed loop of this number of clients with one request each, such as 8 or 1,2,4,8",
)
.limits(1, MOST_OUTSTANDING as u64)
.list()
.excludes(&["rate", "trace", "slo"])
.heading(MEASUREMENT);

const OPTIONS: OptionTable = &[
    RATE,
    CLIENTS,
    OptionDef::parsed::<Slo>(
        "slo",
        "Find the highest rate that meets this bound, such as 'p99<50us'; exit code 1 if none",
    )
    .metavar("BOUND")
    .heading(MEASUREMENT),
    OptionDef::parsed::<MessageRate>(
        "probe",
        "Small requests per second on a connection of their own, beside the load",
    )
    .metavar("RATE")
    .heading(MEASUREMENT),
    OptionDef::count("objects", "Objects in the server's table")
        .limits(1, u32::MAX as u64)
        .default("100k")
        .heading(MEASUREMENT),
    OptionDef::size("object-size", "Size of an object; requests and responses add 16 B")
        .limits(1, MOST_TABLE)
        .default("100B")
        .heading(MEASUREMENT),
    OptionDef::count("tx-buffers", "Transmit buffers of the server; measures its buffer pools")
        .limits(1, MOST_BUFFERS as u64)
        .default_note("64")
        .heading(MEASUREMENT),
    OptionDef::count("rx-buffers", "Receive buffers of the server; measures its buffer pools")
        .limits(1, MOST_BUFFERS as u64)
        .default_note("64")
        .heading(MEASUREMENT),
    WINDOW.help("Maximum number of outstanding requests").default("65536"),
    ARRIVALS.default_note("poisson"),
    ON,
    OFF,
    TRACE,
    TIMER,
];

fn buffers(given: &Given) -> Option<Buffers> {
    let most = |name| given.count32(name).unwrap_or(MOST_BUFFERS);
    let measured = given.is_given("tx-buffers") || given.is_given("rx-buffers");
    measured.then(|| Buffers { transmit: most("tx-buffers"), receive: most("rx-buffers") })
}

impl PatternOptions for Load {
    fn about(&self) -> &'static str {
        "Measure response time against offered load, from idle to saturation"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge load --transport tcp --slo 'p99<100us'
  wiregauge load --transport shm,tcp --rate 10k..1M/8 --time 1s
  wiregauge load --transport tcp --clients 1,2,4,8 --tx-buffers 8 --rx-buffers 24"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let rates = given.read("rate", sweep::rates).unwrap_or_default();
        let clients = given.counts32("clients");
        let searches = rates.is_empty() && clients.is_empty() && !given.is_given("trace");
        // A search draws its own rates; the kind of its intervals is asked for by any.
        let rate = rates.first().copied().or(searches.then_some(MessageRate(1.0)));
        let (schedule, trace) = match clients.is_empty() {
            true => schedule(given, rate, Arrivals::Poisson)?,
            false if ["arrivals", "on", "off"].iter().any(|name| given.is_given(name)) => {
                return refuse(
                    "--clients is a closed loop: use it without --arrivals, --on and --off",
                );
            }
            false => (Schedule::ClosedLoop, None),
        };
        let usual = Spec::default();
        let spec = Spec {
            objects: given.count("objects").unwrap_or(usual.objects),
            object_size: given.size("object-size").unwrap_or(usual.object_size),
            buffers: buffers(given),
            window: given.count32("window").unwrap_or(usual.window),
            probe_rate: given.get("probe"),
            slo: given.get("slo"),
            search: searches.then_some(Search { arrivals: schedule }),
            ..usual
        };
        let request = request(Asked { spec, rates, clients });
        Ok(Request { schedule, trace, timer: given.choice("timer"), ..request })
    }
}
