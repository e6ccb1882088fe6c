//! What load asks: who sends requests, what the server reads, and through how many buffers.

use super::probe;
use crate::plan::request::{refuse, within};
use crate::plan::{
    self, Axis, Bound, Case, CasesSoFar, Combination, PatternRef, PatternRequest, PatternSpec,
    Plan, Refusal, Request, Schedule, Settings, Slo, Wait,
};
use crate::transport::{Descriptor, Role, Traffic, TransportKind};
use crate::units::{Bytes, MessageRate, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The pattern.
pub struct Load;

/// Bytes in front of an object: the number of the request and the key of the object.
pub const HEAD: u64 = 16;
/// Bytes of an object where nothing else is asked for.
pub const OBJECT_SIZE: Bytes = Bytes(100);
/// Objects of the table where nothing else is asked for.
pub const OBJECTS: u64 = 100_000;
/// Most bytes of a table.
pub const MOST_TABLE: u64 = 1 << 30;
/// Most buffers of a pool: an endpoint has so many slots.
pub const MOST_BUFFERS: u32 = crate::transport::MOST_EVENTS as u32;
/// Most requests that may be outstanding: what the client keeps of them takes 2 MiB.
pub const MOST_OUTSTANDING: u32 = 1 << 16;
/// Clients of the closed loop with which a search begins: as many as there are buffers, so that
/// the server never waits for a request.
pub const SATURATING: u32 = MOST_BUFFERS;
/// Time of a round where neither a time nor a count is given.
const TIME: Span = Span(200_000_000);
/// Bytes of an index for each object, about: key and place in a table that is at least half full.
const INDEX_BYTES: u64 = 34;

/// The server's pools of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Replies that are posted and not completed, at most.
    pub transmit: u32,
    /// Requests that have arrived and are not answered, at most.
    pub receive: u32,
}

/// A search for the load at which responses grow: points are added to the plan while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The schedule of the points that are added, at any rate.
    pub arrivals: Schedule,
}

/// The specification of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Clients that each send their next request when the last was answered (a closed loop); 0: a
    /// schedule says when.
    pub clients: u32,
    /// Objects of the server's table.
    pub objects: u64,
    /// Bytes of each.
    pub object_size: Bytes,
    /// The server's pools; `None`: as many as the transport has slots, and they are not measured.
    pub buffers: Option<Buffers>,
    /// Most requests outstanding.
    pub window: u32,
    /// Whether it is the probe beside the load of another case.
    pub probe: bool,
    /// Rate of the probe beside this point, and beside those that follow from it.
    pub probe_rate: Option<MessageRate>,
    /// The limit that the highest rate is wanted for.
    pub slo: Option<Slo>,
    /// Set where points are added.
    pub search: Option<Search>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            clients: 0,
            objects: OBJECTS,
            object_size: OBJECT_SIZE,
            buffers: None,
            window: MOST_OUTSTANDING,
            probe: false,
            probe_rate: None,
            slo: None,
            search: None,
        }
    }
}

impl Spec {
    /// Bytes of a request and of its answer: a connection's messages have one size.
    pub fn message(&self) -> Bytes {
        Bytes(self.object_size.0.saturating_add(HEAD))
    }

    fn check_numbers(&self) -> Result<(), Refusal> {
        within("--objects", Some(self.objects), 1, u64::from(u32::MAX))?;
        within("--object-size", Some(self.object_size.0), 1, MOST_TABLE)?;
        let most = u64::from(MOST_OUTSTANDING);
        within("--window", Some(u64::from(self.window)), 1, most)?;
        if self.objects.saturating_mul(self.object_size.0) > MOST_TABLE {
            return refuse(format!(
                "{} objects of {} are more than {}; write fewer or smaller ones",
                self.objects,
                self.object_size,
                Bytes(MOST_TABLE)
            ));
        }
        let Some(buffers) = self.buffers else { return Ok(()) };
        let most = u64::from(MOST_BUFFERS);
        within("--tx-buffers", Some(u64::from(buffers.transmit)), 1, most)?;
        within("--rx-buffers", Some(u64::from(buffers.receive)), 1, most)
    }
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// What all cases have.
    pub spec: Spec,
    /// Rates, each a case.
    pub rates: Vec<MessageRate>,
    /// Numbers of clients, each a case.
    pub clients: Vec<u32>,
}

/// A request with the defaults.
pub fn request(asked: Asked) -> Request {
    let size = asked.spec.message();
    Request::new(PatternRef(&Load), asked, size)
}

impl PatternSpec for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        let spec: Spec = serde_json::from_value(json).map_err(|error| error.to_string())?;
        spec.check_numbers().map_err(|wrong| wrong.to_string())?;
        Ok(plan::Spec::new(spec))
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        match case.size == case.spec::<Spec>().message() {
            true => Ok(()),
            false => Err("a message of load is as long as an object and its header".into()),
        }
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 })
    }

    fn traffic(&self, _: &Case) -> Traffic {
        Traffic::Echo { every: 1 }
    }

    fn queue_depth(&self, _: &Case) -> u32 {
        MOST_BUFFERS
    }

    /// The pools are the server's queues, and the client's are as deep as without them.
    fn settings_of(&self, case: &Case, role: Role) -> Settings {
        let pools = case.spec::<Spec>().buffers.filter(|_| role == Role::Server);
        let depths = pools.map_or_else(Vec::new, |pools| {
            let of = |depth: u32| depth.to_string();
            vec![("send-depth", of(pools.transmit)), ("receive-depth", of(pools.receive))]
        });
        let depths = depths.iter().map(|(name, depth)| (*name, depth.as_str()));
        with_defaults(&case.settings, case.transport, depths)
    }

    fn point(&self, case: &Case) -> Option<String> {
        let clients = case.spec::<Spec>().clients;
        let rate = case.schedule.rate().filter(|_| clients == 0);
        Some(match rate {
            Some(rate) => format!("at {}/s", rate.0.round()),
            None => format!("of {clients} clients"),
        })
    }

    fn label(&self, case: &Case) -> String {
        let name = if case.spec::<Spec>().probe { "probe" } else { self.name() };
        case.label_as(name, "")
    }

    fn label_in(&self, plan: &Plan, number: usize) -> Option<String> {
        let case = plan.cases.get(number).filter(|case| case.spec::<Spec>().probe)?;
        Some(match probe::probed(plan, number) {
            Some(point) => {
                let beside = plan.cases.get(point).map(Case::label).unwrap_or_default();
                format!("{}, beside {beside}", case.label())
            }
            None => format!("{}, alone", case.label()),
        })
    }

    fn server_memory(&self, case: &Case) -> u64 {
        let spec = case.spec::<Spec>();
        spec.objects.saturating_mul(spec.object_size.0.saturating_add(INDEX_BYTES))
    }

    fn cpus_before(&self, case: &Case) -> u32 {
        u32::from(case.spec::<Spec>().probe)
    }

    fn on_axis(&self, case: &Case, axis: Axis) -> Option<f64> {
        let clients = case.spec::<Spec>().clients;
        (axis == Axis::Clients && clients > 0).then_some(f64::from(clients))
    }
}

/// Settings with more of them, where the transport has those and they were not given.
fn with_defaults<'a>(
    settings: &Settings,
    transport: TransportKind,
    defaults: impl Iterator<Item = (&'a str, &'a str)>,
) -> Settings {
    let mut settings = settings.clone();
    for (name, text) in defaults.filter(|(name, _)| transport.has_setting(name)) {
        let set = settings.set_default(name, text);
        debug_assert!(set.is_ok(), "{set:?}");
    }
    settings
}

impl PatternRequest for Asked {
    fn usual_bound(&self) -> Bound {
        Bound { count: None, time: Some(TIME) }
    }

    fn check(&self, request: &Request) -> Result<(), Refusal> {
        self.spec.check_numbers()?;
        let most = u64::from(MOST_OUTSTANDING);
        for clients in &self.clients {
            within("--clients", Some(u64::from(*clients)), 1, most)?;
        }
        request.refuse_stamps()?;
        if request.threads.iter().any(|threads| *threads > 1) {
            return refuse("load has one thread of each end; write --threads 1");
        }
        probe::check(self, request)?;
        let Some(buffers) = self.spec.buffers else { return Ok(()) };
        for transport in &request.transports {
            let least = transport.descriptor().least_receives;
            if buffers.receive < least {
                return refuse(format!(
                    "--rx-buffers {} is not possible over {transport}, whose queues have {least} \
                     receives at least",
                    buffers.receive
                ));
            }
        }
        match request.waits.iter().find(|wait| **wait != Wait::Busy) {
            None => Ok(()),
            Some(wait) => refuse(format!(
                "--tx-buffers counts and times polls, which --wait {} does not make; allowed is \
                 --wait busy",
                wait.name()
            )),
        }
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let at = |schedule: Schedule, spec: Spec| {
            let scheduled = Request { schedule, ..request.clone() };
            let mut case = scheduled.case(of, spec);
            case.settings = self.settings(request, of.transport);
            case
        };
        let spec = self.spec;
        if spec.search.is_some() {
            // It begins with what the server can do.
            return vec![at(Schedule::ClosedLoop, Spec { clients: SATURATING, ..spec })];
        }
        let closed = self
            .clients
            .iter()
            .map(|clients| at(Schedule::ClosedLoop, Spec { clients: *clients, ..spec }));
        let open = self
            .rates
            .iter()
            .map(|rate| at(request.schedule.at(*rate), Spec { clients: 0, ..spec }));
        let cases: Vec<Case> = closed.chain(open).collect();
        if cases.is_empty() { vec![at(request.schedule, spec)] } else { cases }
    }

    fn check_in_study(&self) -> Result<(), Refusal> {
        match self.spec.search {
            None => Ok(()),
            Some(_) => refuse(
                "a study has no search over load; write rate, clients or trace for each [[load]]",
            ),
        }
    }

    fn add_beside(&self, so_far: &mut CasesSoFar, first: usize) {
        probe::add(self, so_far, first);
    }
}

impl Asked {
    /// The transport's settings. Where the pools are the server's real queues each reply has a
    /// completion of its own, and its buffer is in use until then, unless something else was asked
    /// for.
    fn settings(&self, request: &Request, transport: TransportKind) -> Settings {
        let pools = [("signal-every", "1"), ("inline", "off")];
        let pools = pools.iter().filter(|_| self.spec.buffers.is_some());
        with_defaults(&request.settings, transport, pools.copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_verbs_the_pools_are_the_queues_of_the_server_alone() {
        let pools = |receive, signal| {
            let buffers = Some(Buffers { transmit: 8, receive });
            let spec = Spec { buffers, ..Spec::default() };
            let mut request = request(Asked { spec, ..Asked::default() });
            request.transports = vec![TransportKind::Verbs];
            if let Some(every) = signal {
                request.settings.set("signal-every", every).unwrap();
            }
            request.plan()
        };
        let case = pools(24, None).unwrap().cases.remove(0);
        let ends = [Role::Client, Role::Server];
        let [client, server] = ends.map(|role| case.pattern.settings_of(&case, role));
        let depths = |end: &Settings| (end.count("send-depth"), end.count("receive-depth"));
        assert_eq!(depths(&server), (Some(8), Some(24)));
        assert_eq!(depths(&client), (None, None));
        // Each reply completes by itself, and its buffer is in use until then.
        for end in [client, server] {
            assert_eq!((end.text("signal-every"), end.text("inline")), (Some("1"), Some("off")));
        }
        let typed = pools(24, Some("4")).unwrap().cases.remove(0);
        assert_eq!(typed.settings.text("signal-every"), Some("4"));
        assert!(pools(15, None).unwrap_err().0.contains("16 receives at least"));
    }
}
