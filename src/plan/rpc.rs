//! What a case of `rpc` has beside the others: how long requests and replies are, over how many
//! connections they go, and what their times are held against. Pure.

use super::request::{MOST_THREADS, Refusal, Request, WARMUP_SHARE, refuse, within};
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
    /// Longer messages are cut to this.
    pub longest: Bytes,
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
            longest: LONGEST,
            reply: Reply::Echo,
            gbps: Vec::new(),
            loads: Vec::new(),
            server_ports: vec![1],
            connections: vec![1],
            congestions: Vec::new(),
            both: false,
            baseline: true,
            slowdown: Slowdown::default(),
            link: None,
        }
    }
}

impl Wanted {
    /// What the first of each list makes.
    pub(super) fn first(&self) -> Option<Rpc> {
        Some(Rpc {
            workload: self.workloads.first()?.within(SHORTEST, self.longest),
            reply: self.reply,
            server_ports: *self.server_ports.first()?,
            connections: *self.connections.first()?,
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
                    all.push(Wanted {
                        workloads: vec![workload.clone()],
                        server_ports: vec![*server_ports],
                        connections: vec![*connections],
                        ..self.clone()
                    });
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
        let is_tcp = transport == TransportKind::Tcp;
        let mut controls: Vec<Option<String>> =
            wanted.congestions.iter().filter(|_| is_tcp).cloned().map(Some).collect();
        if controls.is_empty() {
            controls.push(self.options.congestion.clone());
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
            let loads: Vec<(Schedule, u32)> = closed.chain(open).collect();
            for congestion in &controls {
                for (schedule, clients) in &loads {
                    let mut pace = Request { rpc: Some(one.clone()), ..self.clone() };
                    pace.schedule = *schedule;
                    pace.load = Load { clients: *clients, ..self.load };
                    pace.options.congestion = congestion.clone();
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
        within("--longest", Some(wanted.longest.0), SHORTEST.0, 64 << 20)?;
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
        if !wanted.congestions.is_empty() && !self.transports.contains(&TransportKind::Tcp) {
            return refuse("--congestion is for tcp, which is not among the transports");
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
            let longest = workload.within(SHORTEST, wanted.longest).longest();
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
            at_once.extend(side_by_side(cases));
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
        let same = Case { transport: a.transport, options: a.options.clone(), ..b.clone() };
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

impl Case {
    /// The threads of an end.
    pub fn threads_of(&self, role: crate::transport::Role) -> u32 {
        let server = self.rpc.as_ref().map_or(self.threads, |rpc| rpc.server_ports);
        role.pick(self.threads, server)
    }

    /// The threads of the end that has more of them.
    pub fn most_threads(&self) -> u32 {
        self.threads.max(self.rpc.as_ref().map_or(0, |rpc| rpc.server_ports))
    }

    /// Connections of each thread of an end.
    pub fn lanes_of(&self, role: crate::transport::Role) -> u32 {
        let each = self.rpc.as_ref().map(|rpc| rpc.connections * self.threads_of(role.other()));
        each.unwrap_or(1)
    }

    /// The case as the schedule of one of its client's ports knows it; `None`: it has one only.
    pub fn share_of(&self, port: u32) -> Option<Case> {
        let rate = self.schedule.rate().filter(|_| self.threads > 1)?;
        let rate = MessageRate(rate.0 / f64::from(self.threads));
        let seed = mixed(self.seed.wrapping_add(u64::from(port).wrapping_mul(GOLDEN)));
        Some(Case { schedule: self.schedule.at(rate), seed, ..self.clone() })
    }

    /// The case that measures the unloaded times of this one: the same messages over one
    /// connection, one at a time.
    pub fn unloaded(&self) -> Option<Case> {
        let rpc = self.rpc.as_ref()?;
        let lengths = rpc.workload.steps.len().max(1) as u64;
        let (least, most) = UNLOADED_OF_LENGTH;
        let of_each = (UNLOADED / lengths).clamp(least, most);
        let own = Rpc { server_ports: 1, connections: 1, unloaded: true, ..rpc.clone() };
        let rpc = Rpc { loads: Vec::new(), ..own };
        Some(Case {
            threads: 1,
            schedule: Schedule::ClosedLoop,
            trace: None,
            load: Load { clients: 1, ..self.load },
            bound: super::Bound { count: Some(of_each * lengths), time: None },
            // Each length once.
            warmup: lengths,
            window: 1,
            rpc: Some(rpc),
            ..self.clone()
        })
    }

    /// Whether an unloaded case measures the times that this one's are held against.
    pub fn is_baseline_of(&self, other: &Case) -> bool {
        let own = self.rpc.as_ref().is_some_and(|rpc| rpc.unloaded);
        let is_loaded = other.rpc.as_ref().is_some_and(|rpc| !rpc.unloaded);
        // A quick study measures fewer of each length.
        let as_long = |one: Case| Case { bound: self.bound, warmup: self.warmup, ..one };
        own && is_loaded && other.unloaded().map(as_long).as_ref() == Some(self)
    }

    /// Whether it is measured for the sake of others: graphs do not show it.
    pub fn prepares(&self) -> bool {
        self.rpc.as_ref().is_some_and(|rpc| rpc.unloaded || !rpc.loads.is_empty())
    }

    /// The cases that graphs show of it: itself, or those that are to follow it, at any rate.
    pub fn shown(&self) -> Vec<Case> {
        if self.prepares() { self.shares(MessageRate(1.0)) } else { vec![self.clone()] }
    }

    /// The cases that are to follow one that has told how many requests per second the path
    /// carries.
    pub fn shares(&self, carried: MessageRate) -> Vec<Case> {
        let Some(rpc) = &self.rpc else { return Vec::new() };
        let seconds = self.bound.time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9);
        let of = |share: &f64| {
            let rate = share * carried.0;
            let expected = rate * seconds / f64::from(self.threads.max(1));
            Case {
                schedule: Schedule::Poisson { rate: MessageRate(rate) },
                // At most a tenth of what is expected, as everywhere.
                warmup: self.warmup.min((expected / WARMUP_SHARE as f64) as u64),
                load: Load { clients: 0, ..self.load },
                rpc: Some(Rpc { loads: Vec::new(), ..rpc.clone() }),
                ..self.clone()
            }
        };
        rpc.loads.iter().map(of).collect()
    }
}

/// The lengths of a thread's requests and the connections that they go over: drawn from their
/// numbers, so that whoever knows the case knows them.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Upper ends of the lengths' shares of 2^64, with the lengths.
    steps: Box<[(u64, u32)]>,
    reply: Reply,
    in_turn: bool,
    lanes: u64,
    seed: u64,
}

impl Draws {
    /// Those of a thread of a case; `None`: it is none of `rpc`.
    pub fn of(case: &Case, thread: u32) -> Option<Draws> {
        let rpc = case.rpc.as_ref()?;
        let share = |cumulative: f64| match cumulative >= 1.0 {
            true => u64::MAX,
            false => (cumulative * 2f64.powi(64)) as u64,
        };
        let steps = rpc.workload.steps.iter();
        Some(Draws {
            steps: steps.map(|(size, cumulative)| (share(*cumulative), size.0 as u32)).collect(),
            reply: rpc.reply,
            in_turn: rpc.unloaded,
            lanes: u64::from(case.lanes_of(crate::transport::Role::Client)),
            seed: mixed(case.seed ^ u64::from(thread).wrapping_mul(0xa076_1d64_78bd_642f)),
        })
    }

    /// The length of a request.
    #[inline(always)]
    pub fn length(&self, sequence: u64) -> u32 {
        let at = match self.in_turn {
            true => (sequence % self.steps.len() as u64) as usize,
            false => {
                let drawn = mixed(self.seed.wrapping_add(sequence.wrapping_mul(GOLDEN)));
                self.steps.partition_point(|(share, _)| *share < drawn)
            }
        };
        self.steps.get(at).or(self.steps.last()).map_or(SHORTEST.0 as u32, |step| step.1)
    }

    /// The length of the reply to a request of a length.
    #[inline(always)]
    pub fn reply(&self, length: u32) -> u32 {
        self.reply.to(length)
    }

    /// The connection that a request goes over: all alike.
    #[inline(always)]
    pub fn lane(&self, sequence: u64) -> usize {
        if self.lanes == 1 {
            return 0;
        }
        let drawn = mixed(!self.seed ^ sequence.wrapping_mul(GOLDEN));
        // The high half of a product: uniform without a division.
        ((u128::from(drawn) * u128::from(self.lanes)) >> 64) as usize
    }
}

/// 2^64 over the golden ratio: the increment of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
/// generators, OOPSLA 2014): a draw that depends on its number alone.
#[inline(always)]
fn mixed(word: u64) -> u64 {
    let x = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
