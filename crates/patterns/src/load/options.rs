//! What the options of load ask for.

use super::spec::OPTIONS;
use super::{Buffers, Load, LoadRequest, MOST_BUFFERS, Search, Spec, request};
use crate::options::connections;
use crate::prelude::*;
use crate::schedule_options::{ArrivalProcess, schedule};

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
            true => schedule(given, rate, ArrivalProcess::Poisson)?,
            false => {
                ensure!(
                    !["arrivals", "on", "off"].iter().any(|name| given.is_given(name)),
                    "--clients is a closed loop: use it without --arrivals, --on and --off"
                );
                (Schedule::ClosedLoop, None)
            }
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
        let connections = connections(given)?;
        let request = request(LoadRequest { spec, rates, clients, connections });
        Ok(Request { schedule, trace, timer: given.choice("timer"), ..request })
    }
}
