//! What is asked of rpc, and the cases that it becomes: lists of workloads, loads and connections,
//! the cases that run at the same time, and those that measure the unloaded times.

use super::cases;
use super::spec::{LONGEST, MOST_RECEIVERS, OUTSTANDING, Reply, SHORTEST, Slowdown, Spec};
use super::workload::Workload;
use crate::pattern::load::{MOST_BUFFERS, MOST_OUTSTANDING};
use crate::pattern::prelude::*;
use crate::plan::Axis;
use crate::plan::request::MOST_THREADS;
use crate::plan::topology::{MOST_ENDPOINTS as MOST_CONNECTIONS, Wiring};
use crate::units::ByteRate;

/// The pattern.
pub struct Rpc;

/// Time of a round where nothing else is asked for.
const TIME: Span = Span(1_000_000_000);
/// Memory for the sending slots of one connection.
const SLOT_BYTES: u64 = 4 << 20;
/// Bytes that a connection receives at once.
const RECEIVED: u64 = 128 << 10;

/// What was asked for: lists are cases.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The lengths of requests, not cut.
    pub workloads: Vec<Workload>,
    /// Longer messages are cut to this; `None`: those of a distribution to [`LONGEST`].
    pub longest: Option<Bytes>,
    /// The lengths of replies.
    pub reply: Reply,
    /// Offered loads in requests per second.
    pub rates: Vec<MessageRate>,
    /// Numbers of requests that each port keeps outstanding, each a closed loop.
    pub clients: Vec<u32>,
    /// Most requests outstanding of each port.
    pub outstanding: u32,
    /// Offered loads in 10^9 bits of requests per second.
    pub gbps: Vec<f64>,
    /// Offered loads as shares of what the path carries, which is measured first.
    pub loads: Vec<f64>,
    /// Threads of the server.
    pub server_ports: Vec<u32>,
    /// Connections of each pair of ports.
    pub connections: Vec<u32>,
    /// Threads of each port of the client that take its replies.
    pub receivers: Vec<u32>,
    /// Congestion controls of tcp; none: the system's.
    pub congestions: Vec<String>,
    /// Whether the transports and congestion controls run at the same time.
    pub both: bool,
    /// Whether the unloaded times are measured.
    pub baseline: bool,
    /// What slowdowns are ratios to.
    pub slowdown: Slowdown,
    /// The rate of the link, where it is known.
    pub link: Option<ByteRate>,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep {
            workloads: vec![Workload::fixed(Bytes(100))],
            longest: None,
            reply: Reply::Echo,
            rates: Vec::new(),
            clients: Vec::new(),
            outstanding: OUTSTANDING,
            gbps: Vec::new(),
            loads: Vec::new(),
            server_ports: vec![1],
            connections: vec![1],
            receivers: vec![0],
            congestions: Vec::new(),
            both: false,
            baseline: true,
            slowdown: Slowdown::default(),
            link: None,
        }
    }
}

/// A request with the defaults.
pub fn request(sweep: Sweep) -> Request {
    Request::new(&Rpc, sweep, SHORTEST)
}

/// Slots of one connection: so many that their memory stays within what a cache holds, since the
/// kernel's buffers, or the ring's, are queues of their own.
fn slots(longest: Bytes) -> u32 {
    (SLOT_BYTES / longest.0.max(1)).clamp(2, u64::from(MOST_BUFFERS)) as u32
}

/// The settings that tell cases of a plan apart.
fn settings_in_label(settings: &Settings) -> String {
    let control = settings.text("congestion").map(|name| format!(" {name}"));
    let mss = settings.size("mss").map(|mss| format!(" mss {}", mss.0));
    control.into_iter().chain(mss).collect()
}

impl PatternSpec for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        let spec: Spec = serde_json::from_value(json).map_err(|error| error.to_string())?;
        let steps = &spec.workload.steps;
        if steps.is_empty() || steps.iter().any(|step| step.0 < SHORTEST) {
            return Err(format!("a message of rpc has at least {SHORTEST}"));
        }
        within("--receivers", Some(u64::from(spec.receivers)), 0, MOST_RECEIVERS)
            .map_err(|wrong| wrong.to_string())?;
        within("--outstanding", Some(u64::from(spec.window)), 1, u64::from(MOST_OUTSTANDING))
            .map_err(|wrong| wrong.to_string())?;
        Ok(plan::Spec::new(spec))
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let spec = case.spec::<Spec>();
        // Foreign steps need not rise.
        let longest = spec.workload.steps.iter().map(|step| step.0).max().unwrap_or_default();
        match longest.max(spec.longest()) <= case.size {
            true => Ok(()),
            false => Err("a message of rpc is no longer than its slot".into()),
        }
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 }) && !descriptor.one_process
    }

    fn has_many_lengths(&self) -> bool {
        true
    }

    fn ending(&self, _: &Case) -> Ending {
        Ending::ServersAfterClients
    }

    fn queue_depth(&self, case: &Case) -> u32 {
        slots(case.size)
    }

    fn point(&self, case: &Case) -> Option<String> {
        let spec = case.spec::<Spec>();
        let load = match case.schedule.rate() {
            _ if spec.unloaded => "unloaded".to_string(),
            Some(rate) => format!("at {}/s", rate.0.round()),
            None => format!("of {} clients", spec.clients),
        };
        Some(format!("{} {load}", spec.workload.label()))
    }

    fn label(&self, case: &Case) -> String {
        let spec = case.spec::<Spec>();
        let settings = settings_in_label(&case.settings);
        let servers = case.threads_of(Role::Server);
        let each = cases::connections_of(&case.topology);
        let mut ports = match (case.threads(), servers, each) {
            (1, 1, 1) => String::new(),
            (own, others, 1) => format!(" {own} to {others} ports"),
            (own, others, each) => format!(" {own} to {others} ports, {each} connections each"),
        };
        if spec.receivers > 0 {
            ports.push_str(&format!(" {} receivers", spec.receivers));
        }
        let point = self.point(case).unwrap_or_default();
        format!("rpc {}{settings} {} {point}{ports}", case.transport, case.wait.name())
    }

    fn memory(&self, case: &Case, role: Role) -> u64 {
        // Room for two messages that arrive, and what is received at once, for each connection.
        let endpoints = u64::from(case.topology.endpoints_of_role(role));
        case.size.0.saturating_mul(2).saturating_add(RECEIVED).saturating_mul(endpoints)
    }

    fn cpus_before(&self, case: &Case) -> u32 {
        case.spec::<Spec>().beside
    }

    fn is_preparation(&self, case: &Case) -> bool {
        let spec = case.spec::<Spec>();
        spec.unloaded || !spec.loads.is_empty()
    }

    fn shown(&self, case: &Case) -> Vec<Case> {
        match self.is_preparation(case) {
            true => cases::carried_shares(case, MessageRate(1.0)),
            false => vec![case.clone()],
        }
    }

    fn on_axis(&self, case: &Case, axis: Axis) -> Option<f64> {
        let clients = case.spec::<Spec>().clients;
        (axis == Axis::Clients && clients > 0).then_some(f64::from(clients))
    }
}

impl Sweep {
    /// A workload as it is sent.
    fn cut(&self, workload: &Workload) -> Workload {
        let is_fixed = workload.steps.len() == 1;
        let usual = if is_fixed { workload.longest() } else { LONGEST };
        workload.within(SHORTEST, self.longest.unwrap_or(usual))
    }

    /// The settings of a workload and a number of receiver threads, at no load yet.
    fn spec(&self, workload: &Workload, receivers: u32) -> Spec {
        Spec {
            workload: self.cut(workload),
            reply: self.reply,
            clients: 0,
            window: self.outstanding,
            receivers,
            beside: 0,
            unloaded: false,
            slowdown: self.slowdown,
            link: self.link,
            loads: self.loads.clone(),
        }
    }

    /// What is offered of a workload: the schedule, or the clients of a closed loop.
    fn loads(&self, request: &Request, workload: &Workload) -> Vec<(Schedule, u32)> {
        let mean = self.cut(workload).mean();
        let by_bits = self.gbps.iter().map(|gbps| MessageRate(gbps * 1e9 / 8.0 / mean));
        let open = self.rates.iter().copied().chain(by_bits);
        let open = open.map(|rate| (request.schedule.at(rate), 0));
        // As many as may be outstanding keep the path full.
        let full = (!self.loads.is_empty()).then_some(self.outstanding);
        let closed = self.clients.iter().copied().chain(full);
        let closed = closed.map(|clients| (Schedule::ClosedLoop, clients));
        let traced = request.trace.as_ref().map(|_| (request.schedule, 0));
        closed.chain(open).chain(traced).collect()
    }

    /// Threads of the server and connections of each pair of threads, in all combinations.
    fn wirings(&self) -> Vec<(u32, u32)> {
        let of = |servers: &u32| {
            let servers = *servers;
            self.connections.iter().map(move |each| (servers, *each)).collect::<Vec<_>>()
        };
        self.server_ports.iter().flat_map(of).collect()
    }

    fn check_numbers(&self, request: &Request) -> Result<(), UsageError> {
        let threads = u64::from(MOST_THREADS);
        let ports = request.threads.iter().chain(&self.server_ports).max();
        let fit = u64::from(MOST_CONNECTIONS / ports.map_or(1, |ports| (*ports).max(1))).max(1);
        for (name, values, least, most) in [
            ("--ports", &request.threads, 1, threads),
            ("--server-ports", &self.server_ports, 1, threads),
            ("--connections", &self.connections, 1, fit),
            ("--receivers", &self.receivers, 0, MOST_RECEIVERS),
        ] {
            for value in values {
                within(name, Some(u64::from(*value)), least, most)?;
            }
        }
        within("--longest", self.longest.map(|longest| longest.0), SHORTEST.0, 64 << 20)?;
        if let Reply::Short(length) = self.reply {
            within("--reply", Some(length.0), SHORTEST.0, 64 << 20)?;
        }
        if let Some(gbps) = self.gbps.iter().find(|gbps| !(**gbps > 0.0 && **gbps <= 1e6)) {
            return refuse(format!(
                "--gbps: '{gbps}' is out of range: use above 0, at most 1000000"
            ));
        }
        if let Some(share) = self.loads.iter().find(|share| !(**share > 0.0 && **share <= 10.0)) {
            return refuse(format!(
                "--load: '{share}' is out of range: use shares of the capacity such as 0.5,0.8, \
                 each above 0 and at most 10"
            ));
        }
        Ok(())
    }

    fn check_relations(&self, request: &Request) -> Result<(), UsageError> {
        if request.trace.is_some() && request.threads.iter().any(|ports| *ports > 1) {
            return refuse("--trace is the schedule of one port: use --ports 1");
        }
        if self.both && !self.loads.is_empty() {
            return refuse(
                "--load does not work with --both, since each alone carries more than both at \
                 once: use --gbps",
            );
        }
        let several = self.congestions.len().max(1) + request.transports.len();
        if self.both && several < 3 {
            return refuse(
                "--both needs two to run at the same time: use two transports, or two congestion \
                 controls such as --congestion cubic,bbr",
            );
        }
        if !self.congestions.is_empty()
            && !request.transports.iter().any(|one| has_congestion(*one))
        {
            let all = TransportKind::ALL.iter().filter(|one| has_congestion(**one));
            let names: Vec<&str> = all.map(|one| one.name()).collect();
            return refuse(format!(
                "none of these transports supports --congestion: use {}",
                names.join(" or ")
            ));
        }
        Ok(())
    }
}

/// Whether congestion controls can be compared over a transport.
fn has_congestion(transport: TransportKind) -> bool {
    transport.has_setting("congestion")
}

impl PatternRequest for Sweep {
    fn usual_bound(&self) -> Bound {
        Bound { count: None, time: Some(TIME) }
    }

    fn sizes(&self, _: &Request) -> Result<Vec<Bytes>, UsageError> {
        // How long messages are follows from the workload.
        Ok(vec![SHORTEST])
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_stamps()?;
        self.check_numbers(request)?;
        self.check_relations(request)
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        let descriptor = over.descriptor();
        let largest = Bytes(descriptor.largest);
        for workload in &self.workloads {
            let longest = self.cut(workload).longest();
            if longest > largest {
                return refuse(format!(
                    "a message of {} has up to {longest}, and {over} carries {largest}: use \
                     --longest {}B to cut longer ones",
                    workload.name, largest.0
                ));
            }
        }
        if let Reply::Short(length) = self.reply
            && length > largest
        {
            return refuse(format!(
                "--reply: {length} exceeds the largest message of {over}: use \
                                   up to {largest}"
            ));
        }
        let ends = |ports: &[u32]| ports.iter().any(|ports| *ports > 1);
        let has_many =
            ends(&request.threads) || ends(&self.server_ports) || ends(&self.connections);
        if self.receivers.iter().any(|receivers| *receivers > 0) && !descriptor.watchable {
            return refuse(format!(
                "{over} does not support --receivers, since a connection belongs to one thread: \
                 use --receivers 0"
            ));
        }
        let sleeps = request.waits.iter().find(|wait| **wait != Wait::Busy);
        match sleeps.filter(|_| has_many && !descriptor.watchable) {
            Some(wait) => refuse(format!(
                "{over} does not support --wait {} over several connections, which the kernel \
                 cannot watch together: use --wait busy",
                wait.name()
            )),
            None => Ok(()),
        }
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let mut controls: Vec<Option<String>> = match has_congestion(of.transport) {
            true => self.congestions.iter().cloned().map(Some).collect(),
            false => Vec::new(),
        };
        if controls.is_empty() {
            controls.push(None);
        }
        let mut cases = Vec::new();
        for workload in &self.workloads {
            let loads = self.loads(request, workload);
            for (servers, each) in self.wirings() {
                let wiring = Wiring::Mesh { each };
                let topology = Topology::client_server(of.threads, servers, wiring);
                for receivers in &self.receivers {
                    for congestion in &controls {
                        for (schedule, clients) in &loads {
                            let clients = *clients;
                            let spec = Spec { clients, ..self.spec(workload, *receivers) };
                            let size = spec.longest();
                            let at = Request { schedule: *schedule, ..request.clone() };
                            let mut case = at.case(&Combination { size, ..*of }, spec);
                            case.topology = topology.clone();
                            if let Some(name) = congestion {
                                let set = case.settings.set("congestion", name);
                                debug_assert!(set.is_ok(), "{set:?}");
                            }
                            cases.push(case);
                        }
                    }
                }
            }
        }
        cases
    }

    fn complete(&self, so_far: &mut CasesSoFar) {
        let CasesSoFar { cases, concurrent } = so_far;
        if self.both {
            let groups = side_by_side(cases);
            for group in &groups {
                let mut before = 0;
                for number in group {
                    let case = &mut cases[*number as usize];
                    let beside = before;
                    before += case.most_threads();
                    *case = case.with_spec(Spec { beside, ..case.spec::<Spec>().clone() });
                }
            }
            concurrent.extend(groups);
        }
        if !self.baseline {
            return;
        }
        let mut baselines: Vec<Case> = Vec::new();
        for case in cases.iter() {
            let unloaded = cases::unloaded(case);
            if !baselines.contains(&unloaded) {
                baselines.push(unloaded);
            }
        }
        cases.append(&mut baselines);
    }
}

/// Cases that differ in nothing but the transport and its settings.
fn side_by_side(cases: &[Case]) -> Vec<Vec<u32>> {
    let alike = |a: &Case, b: &Case| {
        let same = Case { transport: a.transport, settings: a.settings.clone(), ..b.clone() };
        *a == same
    };
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let own = groups.iter_mut().find(|group| alike(case, &cases[group[0] as usize]));
        match own {
            Some(group) => group.push(number as u32),
            None => groups.push(vec![number as u32]),
        }
    }
    groups
}
