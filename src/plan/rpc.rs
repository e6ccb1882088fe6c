//! What a case of `rpc` has beside the others: how long requests and replies are, over how many
//! connections they go, and what their times are held against. Pure.

mod case;
mod draws;

pub use draws::Draws;

use super::request::{MOST_THREADS, Refusal, Request, refuse, within};
use super::workload::Workload;
use super::{Case, Load, Schedule, Wait};
use crate::transport::TransportKind;
use crate::units::{ByteRate, Bytes, MessageRate, Span};
use serde::{Deserialize, Serialize};

/// Bytes that each request and each reply has at least: the number of the request and the length
/// of its reply.
pub const SHORTEST: Bytes = Bytes(8);
/// Longer messages are cut to this where nothing else is asked for: what Homa's cp_node does, whose
/// protocol carries no more.
pub const LONGEST: Bytes = Bytes(1_000_000);
/// Most connections of one thread.
pub const MOST_CONNECTIONS: u32 = 1024;
/// Most receiver threads of a port.
pub const MOST_RECEIVERS: u64 = 16;
/// Most requests on the way of a port where nothing else is asked for: cperf's client_max.
pub const OUTSTANDING: u32 = 200;
/// Time of a round where nothing else is asked for.
pub const TIME: Span = Span(1_000_000_000);
/// Requests of a round that measures the unloaded times, over all lengths ...
const UNLOADED: u64 = 20_000;
/// ... and of one length at least and at most.
const UNLOADED_OF_LENGTH: (u64, u64) = (20, 1000);

/// How long replies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// As long as the request.
    #[default]
    Echo,
    /// Of one length.
    Short(Bytes),
}

impl Reply {
    /// The length of the reply to a request.
    #[inline(always)]
    pub fn to(self, request: u32) -> u32 {
        match self {
            Reply::Echo => request,
            Reply::Short(Bytes(length)) => length as u32,
        }
    }
}

impl std::str::FromStr for Reply {
    type Err = String;

    fn from_str(text: &str) -> Result<Reply, String> {
        match text {
            "echo" => Ok(Reply::Echo),
            size => size.parse().map(Reply::Short).map_err(|_| {
                format!("'{text}' is not allowed; write echo, or the size of each reply as 100B")
            }),
        }
    }
}

/// What the time of a request is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slowdown {
    /// The median of unloaded requests of the same length, measured in the same run (USENIX ATC
    /// 2021).
    #[default]
    UnloadedP50,
    /// The shortest of these (SIGCOMM 2018, RAMCloud).
    UnloadedMin,
    /// The unloaded median of the shortest request and the time that request and reply take on a
    /// link of a known rate, each once.
    Serialisation,
}

impl Slowdown {
    /// All.
    pub const ALL: &'static [Slowdown] =
        &[Slowdown::UnloadedP50, Slowdown::UnloadedMin, Slowdown::Serialisation];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Slowdown::UnloadedP50 => "unloaded_p50",
            Slowdown::UnloadedMin => "unloaded_min",
            Slowdown::Serialisation => "serialisation",
        }
    }
}

/// What a case of `rpc` sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rpc {
    /// The lengths of requests.
    pub workload: Workload,
    /// Those of replies.
    pub reply: Reply,
    /// Threads of the server; each port of the client speaks to each of them.
    pub server_ports: u32,
    /// Connections from each port of the client to each of the server's.
    pub connections: u32,
    /// Threads of each port of the client that take its replies; 0: it takes them itself.
    #[serde(default)]
    pub receivers: u32,
    /// Threads of each end that others have which run at the same time, before its own: it takes
    /// the CPUs behind theirs.
    #[serde(default)]
    pub beside: u32,
    /// Whether it measures the unloaded times: each length in turn, one request at a time.
    pub unloaded: bool,
    /// What slowdowns are ratios to.
    pub slowdown: Slowdown,
    /// The rate of the link, for the last of them; `None`: found from the unloaded times.
    pub link: Option<ByteRate>,
    /// Of a closed loop that tells how much the path carries: the shares of it that are offered
    /// afterwards, as cases of their own.
    #[serde(default)]
    pub loads: Vec<f64>,
}

impl Rpc {
    /// Whether an end that knows nothing but this and the room for a message can play it.
    pub fn fits(&self, room: Bytes) -> bool {
        let steps = &self.workload.steps;
        let all = u64::from(self.connections).saturating_mul(self.server_ports.into());
        let longest = steps.iter().map(|step| step.0).max();
        longest.is_some_and(|longest| longest <= room && self.longest() <= room)
            && steps.iter().all(|step| step.0 >= SHORTEST)
            && (1..=u64::from(MOST_CONNECTIONS)).contains(&all)
            && u64::from(self.receivers) <= MOST_RECEIVERS
    }

    /// The longest message of either way.
    pub fn longest(&self) -> Bytes {
        let request = self.workload.longest().0;
        let reply = match self.reply {
            Reply::Echo => request,
            Reply::Short(length) => length.0,
        };
        Bytes(request.max(reply))
    }
}

/// What was asked for: lists are cases.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The lengths of requests, not cut.
    pub workloads: Vec<Workload>,
    /// Longer messages are cut to this; `None`: those of a distribution to [`LONGEST`].
    pub longest: Option<Bytes>,
    /// The lengths of replies.
    pub reply: Reply,
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

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            workloads: vec![Workload::fixed(Bytes(100))],
            longest: None,
            reply: Reply::Echo,
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

impl Wanted {
    /// A workload as it is sent.
    fn cut(&self, workload: &Workload) -> Workload {
        let is_fixed = workload.steps.len() == 1;
        let usual = if is_fixed { workload.longest() } else { LONGEST };
        workload.within(SHORTEST, self.longest.unwrap_or(usual))
    }

    /// What the first of each list makes.
    pub(super) fn first(&self) -> Option<Rpc> {
        Some(Rpc {
            workload: self.cut(self.workloads.first()?),
            reply: self.reply,
            server_ports: *self.server_ports.first()?,
            connections: *self.connections.first()?,
            receivers: *self.receivers.first()?,
            beside: 0,
            unloaded: false,
            slowdown: self.slowdown,
            link: self.link,
            loads: self.loads.clone(),
        })
    }

    /// The same once for each combination of its lists but the loads.
    fn each(&self) -> Vec<Wanted> {
        let mut all = Vec::new();
        for workload in &self.workloads {
            for server_ports in &self.server_ports {
                for connections in &self.connections {
                    all.extend(self.receivers.iter().map(|receivers| Wanted {
                        workloads: vec![workload.clone()],
                        server_ports: vec![*server_ports],
                        connections: vec![*connections],
                        receivers: vec![*receivers],
                        ..self.clone()
                    }));
                }
            }
        }
        all
    }
}

impl Request {
    /// The request once for each workload, number of ports and load of `rpc`.
    pub(super) fn rpc_paces(&self, wanted: &Wanted, transport: TransportKind) -> Vec<Request> {
        let mut paces = Vec::new();
        let has_congestion = transport.has_setting("congestion");
        let mut controls: Vec<Option<String>> =
            wanted.congestions.iter().filter(|_| has_congestion).cloned().map(Some).collect();
        if controls.is_empty() {
            controls.push(None);
        }
        for one in wanted.each() {
            let rpc = one.first();
            let mean = rpc.as_ref().map_or(1.0, |rpc| rpc.workload.mean());
            let by_bits = one.gbps.iter().map(|gbps| MessageRate(gbps * 1e9 / 8.0 / mean));
            let open = self.rates.iter().copied().chain(by_bits);
            let open = open.map(|rate| (self.schedule.at(rate), 0));
            // As many as may be on the way keep the path full.
            let full = (!one.loads.is_empty()).then_some(self.window);
            let closed = self.clients.iter().copied().chain(full);
            let closed = closed.map(|clients| (Schedule::ClosedLoop, clients));
            let traced = self.trace.as_ref().map(|_| (self.schedule, 0));
            let loads: Vec<(Schedule, u32)> = closed.chain(open).chain(traced).collect();
            for congestion in &controls {
                for (schedule, clients) in &loads {
                    let mut pace = Request { rpc: Some(one.clone()), ..self.clone() };
                    pace.schedule = *schedule;
                    pace.load = Load { clients: *clients, ..self.load };
                    if let Some(name) = congestion {
                        let set = pace.settings.set("congestion", name);
                        debug_assert!(set.is_ok(), "{set:?}");
                    }
                    paces.push(pace);
                }
            }
        }
        paces
    }

    /// Refuses what `rpc` cannot do, whatever the transport.
    pub(super) fn check_rpc(&self) -> Result<(), Refusal> {
        let Some(wanted) = &self.rpc else { return Ok(()) };
        let threads = u64::from(MOST_THREADS);
        for ports in &self.threads {
            within("--ports", Some(u64::from(*ports)), 1, threads)?;
        }
        for ports in &wanted.server_ports {
            within("--server-ports", Some(u64::from(*ports)), 1, threads)?;
        }
        let most = [&self.threads, &wanted.server_ports]
            .map(|ports| u64::from(ports.iter().copied().max().unwrap_or(1)));
        let fit = u64::from(MOST_CONNECTIONS) / most[0].max(most[1]);
        for connections in &wanted.connections {
            within("--connections", Some(u64::from(*connections)), 1, fit.max(1))?;
        }
        for receivers in &wanted.receivers {
            within("--receivers", Some(u64::from(*receivers)), 0, MOST_RECEIVERS)?;
        }
        within("--longest", wanted.longest.map(|longest| longest.0), SHORTEST.0, 64 << 20)?;
        if let Reply::Short(length) = wanted.reply {
            within("--reply", Some(length.0), SHORTEST.0, 64 << 20)?;
        }
        if let Some(gbps) = wanted.gbps.iter().find(|gbps| !(**gbps > 0.0 && **gbps <= 1e6)) {
            return refuse(format!("--gbps {gbps} is not allowed; write above 0 to 1000000"));
        }
        if let Some(share) = wanted.loads.iter().find(|share| !(**share > 0.0 && **share <= 10.0)) {
            return refuse(format!(
                "--load {share} is not allowed; write shares of what the path carries as 0.5,0.8, \
                 each above 0 to 10"
            ));
        }
        if self.trace.is_some() && self.threads.iter().any(|ports| *ports > 1) {
            return refuse("--trace is of one port; write --ports 1");
        }
        if wanted.both && !wanted.loads.is_empty() {
            return refuse(
                "--load with --both is not allowed: what each carries by itself is not what both \
                 do; write --gbps",
            );
        }
        let several = wanted.congestions.len().max(1) + self.transports.len();
        if wanted.both && several < 3 {
            return refuse(
                "--both needs two that run at the same time; write two transports, or two \
                 congestion controls as --congestion cubic,bbr",
            );
        }
        let knows = |one: &TransportKind| one.has_setting("congestion");
        if !wanted.congestions.is_empty() && !self.transports.iter().any(knows) {
            let all = TransportKind::ALL.iter().filter(|one| knows(one));
            let names: Vec<&str> = all.map(|one| one.name()).collect();
            return refuse(format!(
                "none of these transports supports --congestion; {} does",
                names.join(" or ")
            ));
        }
        Ok(())
    }

    /// Refuses what a transport cannot do of it.
    pub(super) fn check_rpc_over(&self, transport: TransportKind) -> Result<(), Refusal> {
        let Some(wanted) = &self.rpc else { return Ok(()) };
        let descriptor = transport.descriptor();
        if descriptor.one_process {
            return refuse(format!(
                "rpc is not possible over {transport}, which simulates the other end; allowed are \
                 those between two processes"
            ));
        }
        let largest = Bytes(descriptor.largest);
        for workload in &wanted.workloads {
            let longest = wanted.cut(workload).longest();
            if longest > largest {
                return refuse(format!(
                    "a message of {} has up to {longest}, and {transport} carries {largest}; write \
                     --longest {}B, which cuts longer ones",
                    workload.name, largest.0
                ));
            }
        }
        if let Reply::Short(length) = wanted.reply
            && length > largest
        {
            return refuse(format!("--reply {length} is more than {transport} carries: {largest}"));
        }
        let ends = |ports: &[u32]| ports.iter().any(|ports| *ports > 1);
        let has_many =
            ends(&self.threads) || ends(&wanted.server_ports) || ends(&wanted.connections);
        if wanted.receivers.iter().any(|receivers| *receivers > 0) && !descriptor.watchable {
            return refuse(format!(
                "--receivers is not possible over {transport}, whose connections are one thread's; \
                 write --receivers 0"
            ));
        }
        let sleeps = self.waits.iter().find(|wait| **wait != Wait::Busy);
        match sleeps.filter(|_| has_many && !descriptor.watchable) {
            Some(wait) => refuse(format!(
                "--wait {} over several connections of {transport} is not possible, which the \
                 kernel cannot watch together; write --wait busy",
                wait.name()
            )),
            None => Ok(()),
        }
    }

    /// Adds the cases that measure the unloaded times of others, each once; and says which of
    /// these others run at the same time.
    pub(super) fn complete_rpc(&self, cases: &mut Vec<Case>, at_once: &mut Vec<Vec<u32>>) {
        let Some(wanted) = &self.rpc else { return };
        if wanted.both {
            let groups = side_by_side(cases);
            for group in &groups {
                let mut before = 0;
                for number in group {
                    let case = &mut cases[*number as usize];
                    let threads = case.most_threads();
                    case.rpc.iter_mut().for_each(|rpc| rpc.beside = before);
                    before += threads;
                }
            }
            at_once.extend(groups);
        }
        if !wanted.baseline {
            return;
        }
        let mut baselines: Vec<Case> = Vec::new();
        for case in cases.iter() {
            if let Some(unloaded) = case.unloaded().filter(|one| !baselines.contains(one)) {
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

#[cfg(test)]
mod tests;
