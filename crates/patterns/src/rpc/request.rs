//! What is asked of rpc, and the cases that it becomes: lists of workloads, loads and connections,
//! the cases that run at the same time, and those that measure the unloaded times.

use super::cases;
use super::draws::Draws;
use super::spec::{LONGEST, MOST_RECEIVERS, Reply, SHORTEST, Spec};
use super::workload::Workload;
use crate::load::{MOST_BUFFERS, MOST_OUTSTANDING};
use crate::oneway::refuse_one_sided;
use crate::options::{check_descriptors, check_watched};
use crate::prelude::*;
use wiregauge_base::units::counted;
use wiregauge_plan::topology::{MAX_ENDPOINTS as MOST_CONNECTIONS, Wiring};

/// The pattern.
pub struct Rpc;

/// Time of a round where nothing else is asked for.
const TIME: Span = Span(1_000_000_000);
/// Memory for the sending slots of one connection.
const SLOT_BYTES: u64 = 4 << 20;

/// What was asked for: lists are cases.
#[derive(Clone, Debug)]
pub struct RpcRequest {
    /// What all cases have; the workload, the clients and the receivers are those of each.
    pub spec: Spec,
    /// The lengths of requests, not cut.
    pub workloads: Vec<Workload>,
    /// Longer messages are cut to this; `None`: those of a distribution to [`LONGEST`].
    pub longest: Option<Bytes>,
    /// Offered loads in requests per second.
    pub rates: Vec<MessageRate>,
    /// Numbers of requests that each port keeps outstanding, each a closed loop.
    pub clients: Vec<u32>,
    /// Offered loads in 10^9 bits of requests per second.
    pub gbps: Vec<f64>,
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
}

/// A request with the defaults.
pub fn request(asked: RpcRequest) -> Request {
    let usual_bound = Bound { count: None, time: Some(TIME) };
    Request { usual_bound, ..Request::new(&Rpc, asked, SHORTEST) }
}

/// Slots of one connection: few enough for their memory to fit into a cache, since the
/// kernel's buffers, or the ring's, are queues of their own.
fn slots(longest: Bytes) -> u32 {
    (SLOT_BYTES / longest.0.max(1)).clamp(2, u64::from(MOST_BUFFERS)) as u32
}

impl PatternSpec for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, |spec: &Spec| {
            let steps = &spec.workload.steps;
            let are_long = !steps.is_empty() && steps.iter().all(|step| step.0 >= SHORTEST);
            ensure!(are_long, "a message of rpc has at least {SHORTEST}");
            within("--receivers", Some(spec.receivers), 0, MOST_RECEIVERS)?;
            within("--outstanding", Some(spec.window), 1, MOST_OUTSTANDING.into())
        })
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let spec = case.spec::<Spec>();
        // Foreign steps need not rise.
        let longest = spec.workload.steps.iter().map(|step| step.0).max().unwrap_or_default();
        let fits = longest.max(spec.longest()) <= case.size;
        ensure!(fits, "a message of rpc is no longer than its slot");
        Ok(())
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 }) && !descriptor.one_process
    }

    fn connection_of(&self, case: &Case, thread: u32) -> Box<dyn Fn(u64) -> u32> {
        let draws = Draws::of(case, thread);
        Box::new(move |sequence| draws.connection(sequence) as u32)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let spec = case.spec::<Spec>();
        let reply = match spec.reply {
            Reply::Echo => None,
            Reply::Short(length) => Some(length),
        };
        CaseProfile {
            followed: Some(Followed::RoundTrips { reply }),
            reads_payloads: true,
            has_many_lengths: true,
            ending: Ending::ServersAfterClients,
            queue_depth: slots(case.size),
            outruns_window: true,
            cpus_before: spec.beside,
            clients: (spec.clients > 0).then_some(spec.clients),
            is_preparation: spec.unloaded || !spec.loads.is_empty(),
            ..CaseProfile::of(case)
        }
    }

    fn point(&self, case: &Case) -> Option<String> {
        let spec = case.spec::<Spec>();
        let load = match case.schedule.rate() {
            _ if spec.unloaded => "unloaded".to_string(),
            Some(rate) => format!("at {}/s", rate.0.round()),
            None => format!("of {}", counted(spec.clients, "client")),
        };
        Some(format!("{} {load}", spec.workload.label()))
    }

    fn label(&self, case: &Case) -> String {
        let spec = case.spec::<Spec>();
        let servers = case.topology.threads_of(Role::Server);
        let each = case.topology.connections_each();
        let clients = case.topology.ranks_of(Role::Client);
        let (hosts, own) = clients.fold((0, 0), |(hosts, _), rank| (hosts + 1, rank.threads));
        let mut ports = match (own, servers, each) {
            (1, 1, 1) => String::new(),
            (own, others, 1) => format!(" {own} to {others} ports"),
            (own, others, each) => format!(" {own} to {others} ports, {each} connections each"),
        };
        if hosts > 1 {
            ports.push_str(&format!(" {hosts} hosts"));
        }
        if spec.receivers > 0 {
            ports.push_str(&format!(" {} receivers", spec.receivers));
        }
        // The settings that tell cases of a plan apart.
        let control = case.settings.text("congestion").map(|name| format!(" {name}"));
        let mss = case.settings.size("mss").map(|mss| format!(" mss {}", mss.0));
        let settings: String = control.into_iter().chain(mss).collect();
        let point = self.point(case).unwrap_or_default();
        format!("rpc {}{settings} {} {point}{ports}", case.transport, case.wait.name())
    }

    fn memory(&self, case: &Case, role: Role) -> u64 {
        // Room for two messages that arrive, for each connection.
        let endpoints = u64::from(case.topology.endpoints_of_role(role));
        case.size.0.saturating_mul(2).saturating_mul(endpoints)
    }

    /// Counts the receivers, each of which has a connection at least.
    fn helper_threads(&self, case: &Case, role: Role) -> u32 {
        let receivers = if role == Role::Client { case.spec::<Spec>().receivers } else { 0 };
        receivers.min(case.topology.endpoints_of_role(role))
    }

    fn shown(&self, case: &Case) -> Vec<Case> {
        match self.profile(case).is_preparation {
            true => cases::carried_shares(case, MessageRate(1.0)),
            false => vec![case.clone()],
        }
    }
}

impl RpcRequest {
    /// A workload as it is sent.
    fn cut(&self, workload: &Workload) -> Workload {
        let is_fixed = workload.steps.len() == 1;
        let usual = if is_fixed { workload.longest() } else { LONGEST };
        workload.within(SHORTEST, self.longest.unwrap_or(usual))
    }

    /// What is offered of a workload: the schedule, or the clients of a closed loop.
    fn loads(&self, request: &Request, workload: &Workload) -> Vec<(Schedule, u32)> {
        let mean = self.cut(workload).mean();
        let by_bits = self.gbps.iter().map(|gbps| MessageRate(gbps * 1e9 / 8.0 / mean));
        let open = self.rates.iter().copied().chain(by_bits);
        let open = open.map(|rate| (request.schedule.at(rate), 0));
        // As many as may be outstanding keep the path full.
        let full = (!self.spec.loads.is_empty()).then_some(self.spec.window);
        let closed = self.clients.iter().copied().chain(full);
        let closed = closed.map(|clients| (Schedule::ClosedLoop, clients));
        let traced = request.trace.as_ref().map(|_| (request.schedule, 0));
        closed.chain(open).chain(traced).collect()
    }

    fn check_numbers(&self, request: &Request) -> Result<(), UsageError> {
        let ports = request.threads.iter().chain(&self.server_ports).max();
        let fit = u64::from(MOST_CONNECTIONS / ports.map_or(1, |ports| (*ports).max(1))).max(1);
        within("--connections", self.connections.iter().copied(), 1, fit)?;
        within("--receivers", self.receivers.iter().copied(), 0, MOST_RECEIVERS)?;
        within("--longest", self.longest.map(|longest| longest.0), SHORTEST.0, 64 << 20)?;
        if let Reply::Short(length) = self.spec.reply {
            within("--reply", Some(length.0), SHORTEST.0, 64 << 20)?;
        }
        refuse_found(self.gbps.iter().find(|gbps| !(**gbps > 0.0 && **gbps <= 1e6)), |gbps| {
            format!("--gbps: '{gbps}' is out of range: use above 0, at most 1000000")
        })?;
        let loads = &self.spec.loads;
        refuse_found(loads.iter().find(|share| !(**share > 0.0 && **share <= 10.0)), |share| {
            format!(
                "--load: '{share}' is out of range: use shares of the capacity such as 0.5,0.8, \
                 each above 0 and at most 10"
            )
        })
    }

    fn check_relations(&self, request: &Request) -> Result<(), UsageError> {
        let has_one = request.threads.iter().all(|ports| *ports <= 1);
        let fits = request.trace.is_none() || (has_one && request.place.client_hosts() <= 1);
        ensure!(fits, "--trace is the schedule of one port: use one host and --ports 1");
        ensure!(
            !self.both || self.spec.loads.is_empty(),
            "--load does not work with --both, since each alone carries more than both at once: \
             use --gbps"
        );
        let several = self.congestions.len().max(1) + request.transports.len();
        ensure!(
            !self.both || several >= 3,
            "--both needs two to run at the same time: use two transports, or two congestion \
             controls such as --congestion cubic,bbr"
        );
        let has_any = request.transports.iter().any(|one| has_congestion(*one));
        refuse_found(self.congestions.first().filter(|_| !has_any), |_| {
            let all = TransportKind::ALL.iter().filter(|one| has_congestion(**one));
            let names: Vec<&str> = all.map(|one| one.name()).collect();
            format!("none of these transports supports --congestion: use {}", names.join(" or "))
        })
    }
}

/// Each of the one with each of the other.
fn combined<A: Copy, B: Copy>(some: &[A], others: &[B]) -> Vec<(A, B)> {
    some.iter().flat_map(|one| others.iter().map(move |other| (*one, *other))).collect()
}

/// Whether congestion controls can be compared over a transport.
fn has_congestion(transport: TransportKind) -> bool {
    transport.has_setting("congestion")
}

impl PatternRequest for RpcRequest {
    fn has_many_clients(&self) -> bool {
        true
    }

    fn sizes(&self, _: &Request) -> Result<Vec<Bytes>, UsageError> {
        // How long messages are follows from the workload.
        Ok(vec![SHORTEST])
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_stamps()?;
        refuse_one_sided(request)?;
        self.check_numbers(request)?;
        self.check_relations(request)
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        let descriptor = over.descriptor();
        let largest = Bytes(descriptor.largest_with(&request.settings));
        let longest = |workload: &Workload| self.cut(workload).longest();
        let mut workloads = self.workloads.iter();
        refuse_found(workloads.find(|workload| longest(workload) > largest), |workload| {
            let (longest, name) = (longest(workload), &workload.name);
            format!(
                "a message of {name} has up to {longest}, and {over} carries {largest}: use \
                 --longest {}B to cut longer ones",
                largest.0
            )
        })?;
        if let Reply::Short(length) = self.spec.reply {
            ensure!(
                length <= largest,
                "--reply: {length} exceeds the largest message of {over}: use up to {largest}"
            );
        }
        let ports = [&request.threads, &self.server_ports, &self.connections];
        let has_many = ports.into_iter().flatten().any(|ports| *ports > 1);
        ensure!(
            descriptor.splits || self.receivers.iter().all(|receivers| *receivers == 0),
            "{over} does not support --receivers, since a connection belongs to one thread: use \
             --receivers 0"
        );
        check_watched(request, has_many, over)?;
        // Ports are threads of one process, and a receiver has a second handle.
        let handles = 1 + u32::from(self.receivers.iter().any(|receivers| *receivers > 0));
        let clients = request.threads.iter().copied().max().unwrap_or(1);
        let servers = self.server_ports.iter().copied().max().unwrap_or(1);
        let of_each = clients.saturating_mul(servers).saturating_mul(handles);
        check_descriptors(&self.connections, of_each, over)
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let controls: Vec<Option<&String>> = match has_congestion(of.transport) {
            true if !self.congestions.is_empty() => self.congestions.iter().map(Some).collect(),
            _ => vec![None],
        };
        let wirings = combined(&self.server_ports, &self.connections);
        let mut cases = Vec::new();
        for workload in &self.workloads {
            let loads = self.loads(request, workload);
            for ((servers, each), receivers) in combined(&wirings, &self.receivers) {
                let wiring = Wiring::Mesh { each };
                let topology = Topology::client_server(of.threads, servers, wiring)
                    .with_clients(of.client_hosts);
                for (congestion, (schedule, clients)) in combined(&controls, &loads) {
                    let (workload, own) = (self.cut(workload), self.spec.clone());
                    let spec = Spec { workload, clients, receivers, ..own };
                    let size = spec.longest();
                    let at = Request { schedule, ..request.clone() };
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
                    before += case.topology.most_threads();
                    *case = case.with_spec(Spec { beside, ..case.spec::<Spec>().clone() });
                }
            }
            concurrent.extend(groups);
        }
        if !self.baseline {
            return;
        }
        cases.extend(each_once(cases.iter().map(cases::unloaded)));
    }
}

/// Cases that differ in nothing but the transport and its settings.
fn side_by_side(cases: &[Case]) -> Vec<Vec<u32>> {
    let alike = |a: &Case, b: &Case| {
        let same = Case { transport: a.transport, settings: a.settings.clone(), ..b.clone() };
        *a == same
    };
    grouped(0..cases.len() as u32, |a, b| alike(&cases[*a as usize], &cases[*b as usize]))
}
