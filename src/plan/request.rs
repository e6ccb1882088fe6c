//! From what was asked for to a plan that can be run as it stands, or to one sentence that says
//! why not.

use super::{
    Bound, Case, CpuPair, Direction, Ends, Pattern, Place, Plan, Rounds, Schedule, Settings, Wait,
};
use super::{Load, Stream, TimerKind, Trace, load, rpc};
use super::{cpus, sweep};
use crate::transport::{Traffic, TransportKind, TransportRequest};
use crate::units::{Bytes, MessageRate, Span, Untrue};

pub use crate::options::UsageError as Refusal;

/// Most messages of one round: their samples are all kept, 640 MB of memory for each role.
pub const MOST_COUNT: u64 = 16_000_000;
/// Most rounds.
pub const MOST_ROUNDS: u32 = 1000;
/// Most threads of an end.
pub const MOST_THREADS: u32 = 64;
/// Most messages posted and not completed.
pub const MOST_WINDOW: u32 = 65_536;
/// Most rounds of all cases together, each thread counted: what a record's readers hold at once.
pub const MOST_IN_ALL: u64 = 8000;
/// Rounds where nothing else is asked for.
pub const ROUNDS: u32 = 5;
/// Most rounds where an interval's width ends them and nothing else is asked for.
pub const ROUNDS_UNTIL: u32 = 30;
/// Messages of a round where nothing else is asked for: the least for which p99.9 is shown.
pub const COUNT: u64 = 10_000;
/// Time of a bandwidth round where nothing else is asked for.
pub const BANDWIDTH_TIME: Span = Span(200_000_000);
/// Warm-up where nothing else is asked for: so many messages ...
pub const WARMUP: u64 = 1000;
/// ... but at most this share of the count.
pub const WARMUP_SHARE: u64 = 10;

/// What was asked for. `None`: the default of the pattern.
#[derive(Clone, Debug)]
pub struct Request {
    /// The question.
    pub pattern: Pattern,
    /// Transports, each a case.
    pub transports: Vec<TransportKind>,
    /// Sizes, each a case.
    pub sizes: Vec<Bytes>,
    /// Whether each size also gets its neighbours.
    pub perturb: bool,
    /// Wait modes, each a case.
    pub waits: Vec<Wait>,
    /// Numbers of threads of each end, each a case.
    pub threads: Vec<u32>,
    /// Messages of a round.
    pub count: Option<u64>,
    /// Time of a round.
    pub time: Option<Span>,
    /// Messages of the warm-up.
    pub warmup: Option<u64>,
    /// Pause between bursts.
    pub pause: Span,
    /// Messages posted together.
    pub burst: u32,
    /// Most messages posted and not completed.
    pub window: u32,
    /// One way or both.
    pub direction: Direction,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that was written down.
    pub trace: Option<Trace>,
    /// The rates of `load` and of streams, each a case; empty: `schedule` alone.
    pub rates: Vec<MessageRate>,
    /// The numbers of clients of `load`, each a case.
    pub clients: Vec<u32>,
    /// What `load` reads.
    pub load: Load,
    /// What the messages of a stream are; `None`: it is none.
    pub stream: Option<Stream>,
    /// What `rpc` sends; `None`: it is none.
    pub rpc: Option<rpc::Wanted>,
    /// Whether the rates of `load` are searched for.
    pub search: load::Search,
    /// What waits for the intended times; `None`: the busy one.
    pub timer: Option<TimerKind>,
    /// Whether payloads are verified.
    pub check: bool,
    /// When a message counts as lost.
    pub loss_after: Span,
    /// When a round counts as stalled.
    pub timeout: Span,
    /// Rounds.
    pub rounds: Option<u32>,
    /// The interval width at which rounds end.
    pub until: Option<f64>,
    /// CPUs, a pair for each thread; none: chosen.
    pub cpus: Vec<CpuPair>,
    /// The hosts of both ends.
    pub place: Place,
    /// What the other hosts' clocks are made wrong by.
    pub untrue_clock: Option<Untrue>,
    /// What counts as slow.
    pub threshold: Span,
    /// Settings of the transport.
    pub settings: Settings,
    /// The seed.
    pub seed: u64,
}

impl Request {
    /// A request with the defaults of a pattern.
    pub fn new(pattern: Pattern) -> Request {
        Request {
            pattern,
            transports: vec![TransportKind::default()],
            sizes: vec![match pattern {
                Pattern::Bandwidth => Bytes(64 << 10),
                Pattern::Latency | Pattern::Oneway => Bytes(64),
                Pattern::Load => Load::default().message(),
            }],
            perturb: false,
            waits: vec![Wait::Busy],
            threads: vec![1],
            count: None,
            time: None,
            warmup: None,
            pause: Span(0),
            burst: 1,
            window: match pattern {
                Pattern::Load => load::MOST_OUTSTANDING,
                _ => 64,
            },
            direction: Direction::Uni,
            schedule: Schedule::ClosedLoop,
            trace: None,
            rates: Vec::new(),
            clients: Vec::new(),
            load: Load::default(),
            stream: None,
            rpc: None,
            search: load::Search::default(),
            timer: None,
            check: false,
            loss_after: Span(100_000_000),
            timeout: Span(10_000_000_000),
            rounds: None,
            until: None,
            cpus: Vec::new(),
            place: Place::Here,
            untrue_clock: None,
            threshold: Span(10_000),
            settings: Settings::default(),
            seed: 1,
        }
    }

    /// The plan, or why there is none.
    pub fn plan(self) -> Result<Plan, Refusal> {
        // Messages of rpc have the lengths of their own lines.
        let traced = self.trace.as_ref().filter(|_| self.rpc.is_none());
        let traced = traced.map_or(Ok(None), Trace::size).map_err(Refusal)?;
        if let Some(size) = traced.filter(|size| self.sizes != [*size]) {
            return Request { sizes: vec![size], ..self }.plan();
        }
        let sizes = match self.perturb {
            true => sweep::perturbed(&self.sizes),
            false => self.sizes.clone(),
        };
        self.check_numbers()?;
        let rounds = self.rounds();
        let combinations = [self.transports.len(), self.waits.len(), sizes.len()];
        let pairs = self.place.count(self.pattern, self.direction);
        let cases = combinations.into_iter().fold(pairs, |all, one| all.saturating_mul(one as u64));
        let threads: u64 = self.threads.iter().map(|threads| u64::from(*threads)).sum();
        let in_all = cases.saturating_mul(threads).saturating_mul(u64::from(rounds.most));
        if !(1..=MOST_IN_ALL).contains(&in_all) {
            return refuse(format!(
                "{cases} combinations of transport, wait mode, size and hosts in up to {} rounds \
                 are {in_all}; 1 to {MOST_IN_ALL} are allowed",
                rounds.most
            ));
        }
        let layout = self.place.layout(self.pattern, self.direction, self.seed)?;
        let (mut cases, mut at_once) = (Vec::new(), Vec::new());
        for transport in &self.transports {
            self.check_place(*transport)?;
            self.check_transport(*transport)?;
            self.check_rpc_over(*transport)?;
            for wait in &self.waits {
                for size in &sizes {
                    check_size(*transport, *size)?;
                    self.check_together(*transport, *wait, *size)?;
                    for threads in &self.threads {
                        let first = cases.len();
                        for pace in self.paces(*transport) {
                            at_once.extend(layout.groups_from(cases.len() as u32));
                            let of =
                                |ends: &Ends| pace.case(*transport, *wait, *size, *threads, *ends);
                            cases.extend(layout.ends.iter().map(of));
                        }
                        self.add_probes(&mut cases, first, &mut at_once);
                    }
                }
            }
        }
        self.complete_rpc(&mut cases, &mut at_once);
        cpus::check(&self.cpus, &cases)?;
        let name = cases.first().map_or(self.pattern.name(), Case::command).to_string();
        let (cpus, seed, threshold, search) = (self.cpus, self.seed, self.threshold, self.search);
        Ok(Plan {
            name,
            cases,
            rounds,
            cpus,
            hosts: layout.hosts,
            pairs: self.place.pairs(),
            at_once,
            untrue_clock: self.untrue_clock,
            seed,
            threshold,
            search,
            study: None,
        })
    }

    fn rounds(&self) -> Rounds {
        match (self.rounds, self.until) {
            (rounds, None) => {
                let rounds = rounds.unwrap_or(ROUNDS);
                Rounds { least: rounds, most: rounds, until: None }
            }
            (rounds, until) => {
                let most = rounds.unwrap_or(ROUNDS_UNTIL);
                Rounds { least: ROUNDS.min(most), most, until }
            }
        }
    }

    /// Messages of a round, where they are known before it.
    fn expected(&self, bound: Bound) -> Option<u64> {
        let by_time = bound.time.zip(self.schedule.rate());
        let by_time = by_time.map(|(time, rate)| (rate.0 * time.0 as f64 / 1e9) as u64);
        let by_trace = self.trace.as_ref().map(|trace| trace.times_ns.len() as u64);
        bound.count.into_iter().chain(by_time).chain(by_trace).min()
    }

    fn case(
        &self,
        transport: TransportKind,
        wait: Wait,
        size: Bytes,
        threads: u32,
        ends: Ends,
    ) -> Case {
        let bound = match (self.pattern, self.count, self.time) {
            (Pattern::Bandwidth | Pattern::Load, None, None) if self.trace.is_none() => {
                let time = self.rpc.as_ref().map_or(BANDWIDTH_TIME, |_| rpc::TIME);
                Bound { count: None, time: Some(time) }
            }
            (_, None, None) => {
                let lines = self.trace.as_ref().map(|trace| trace.times_ns.len() as u64);
                Bound { count: lines.or(Some(COUNT)), time: None }
            }
            (_, count, time) => Bound { count, time },
        };
        let rpc = self.rpc.as_ref().and_then(rpc::Wanted::first);
        let size = rpc.as_ref().map_or(size, rpc::Rpc::longest);
        let share = u64::from(threads.max(1)) * WARMUP_SHARE;
        let share = self.expected(bound).map_or(WARMUP, |messages| messages / share);
        Case {
            pattern: self.pattern,
            transport,
            wait,
            threads,
            size,
            bound,
            warmup: self.warmup.unwrap_or(WARMUP.min(share)),
            pause: self.pause,
            burst: self.burst,
            window: self.window,
            direction: self.direction,
            schedule: self.schedule,
            trace: self.trace.clone(),
            timer: self.timer.unwrap_or_default(),
            load: self.load,
            stream: self.stream.clone().map(|stream| stream.of(size)),
            rpc,
            check: self.check,
            loss_after: self.loss_after,
            timeout: self.timeout,
            settings: self.settings(transport),
            seed: self.seed,
            ends,
        }
    }

    fn check_numbers(&self) -> Result<(), Refusal> {
        within("--count", self.count, 1, MOST_COUNT)?;
        within("--warmup", self.warmup, 0, MOST_COUNT)?;
        within("--rounds", self.rounds.map(u64::from), 1, u64::from(MOST_ROUNDS))?;
        within("--burst", Some(u64::from(self.burst)), 1, super::MOST_BURST as u64)?;
        within("--window", Some(u64::from(self.window)), 1, u64::from(MOST_WINDOW))?;
        self.check_threads()?;
        if self.time == Some(Span(0)) {
            return refuse("--time 0 is not allowed; a round must last longer than 0");
        }
        if let Some(until) = self.until
            && !(until > 0.0 && until < 1.0)
        {
            return refuse(format!(
                "--until {}% is not allowed; write a width above 0% and below 100%",
                until * 100.0
            ));
        }
        if self.timeout.0 == 0 || self.loss_after.0 == 0 {
            return refuse("--timeout 0 and --loss-after 0 are not allowed; both must be above 0");
        }
        let closed = !self.schedule.is_open();
        if self.settings.text("stamp-complete") == Some("device") && self.pattern != Pattern::Oneway
        {
            return refuse("--stamp-complete device is allowed for oneway only");
        }
        let stamps = self.settings.stamps_send();
        if stamps && (self.pattern != Pattern::Oneway || !closed || self.burst > 1 || self.check) {
            return refuse(
                "--stamp-send is allowed for oneway only, without --rate, --burst and --check",
            );
        }
        if !closed && !matches!(self.pattern, Pattern::Oneway | Pattern::Load) {
            return refuse("--rate is allowed for oneway and load, which are sent by a schedule");
        }
        if !closed && (self.burst > 1 || self.pause.0 > 0) {
            return refuse(
                "--rate with --burst or --pause is not allowed: the rate sets the times",
            );
        }
        self.check_timer()?;
        self.check_load()?;
        self.check_rpc()?;
        self.check_stream()?;
        if self.pattern == Pattern::Bandwidth && self.pause.0 > 0 {
            return refuse("--pause is not allowed for bandwidth; it is for latency and oneway");
        }
        Ok(())
    }

    /// What the transport itself has to say of options, size and wait mode together.
    fn check_together(
        &self,
        transport: TransportKind,
        wait: Wait,
        size: Bytes,
    ) -> Result<(), Refusal> {
        let settings = &self.settings;
        let one_sided = settings.operation().is_one_sided(self.pattern == Pattern::Bandwidth);
        if one_sided && self.pattern == Pattern::Oneway {
            return refuse(format!(
                "oneway is not possible with --operation {}, which the other end takes no part in; \
                 write latency",
                settings.operation().name()
            ));
        }
        let request = TransportRequest { size: size.0, wait, one_sided, settings };
        transport.check(&request).map_err(Refusal)
    }

    /// Whether the server's end may be where it is to be.
    fn check_place(&self, transport: TransportKind) -> Result<(), Refusal> {
        if !self.place.is_remote() {
            return Ok(());
        }
        if !self.cpus.is_empty() && self.place.pairs().is_some() {
            return refuse(
                "--cpus with --all-pairs or --bisection is not allowed: each host plays both roles",
            );
        }
        if !transport.descriptor().between_hosts {
            let reaching = TransportKind::ALL.iter().filter(|one| one.descriptor().between_hosts);
            let names: Vec<&str> = reaching.map(|one| one.name()).collect();
            return refuse(format!(
                "another host is not possible over {transport}, which joins processes of one host; \
                 allowed are {}",
                names.join(", ")
            ));
        }
        Ok(())
    }

    fn check_transport(&self, transport: TransportKind) -> Result<(), Refusal> {
        let descriptor = transport.descriptor();
        if descriptor.one_process && self.threads.iter().any(|threads| *threads > 1) {
            return refuse(format!(
                "--threads is not possible over {transport}, which simulates both ends in one \
                 thread; write --threads 1"
            ));
        }
        let closed = !self.schedule.is_open();
        let needs = match (self.pattern, self.direction) {
            (Pattern::Latency | Pattern::Load, _) => Traffic::Echo { every: 1 },
            (Pattern::Oneway, _) if closed => Traffic::Echo { every: 1 },
            (Pattern::Bandwidth, Direction::Bi) => Traffic::Both,
            (Pattern::Oneway | Pattern::Bandwidth, _) => Traffic::Forward,
        };
        let samples = descriptor.samples_only && self.stream.is_some();
        let carried = samples || self.pattern.is_carried_by(transport);
        if !carried || !descriptor.traffic.iter().any(|traffic| traffic.same_kind(needs)) {
            let allowed = super::commands_over(transport);
            if carried && self.direction == Direction::Bi {
                return refuse(format!(
                    "--direction bi is not possible over {transport}; write --direction uni"
                ));
            }
            return refuse(format!(
                "{} is not possible over {transport}; allowed there: {}",
                self.pattern.name(),
                allowed.join(", ")
            ));
        }
        transport.check_settings(&self.settings)
    }
}

/// Rounds of all cases, each thread counted.
pub fn in_all(cases: &[Case], rounds: Rounds) -> u64 {
    let threads: u64 = cases.iter().map(|case| u64::from(case.threads)).sum();
    threads * u64::from(rounds.most)
}

fn check_size(transport: TransportKind, size: Bytes) -> Result<(), Refusal> {
    let largest = transport.descriptor().largest;
    if (1..=largest).contains(&size.0) {
        return Ok(());
    }
    refuse(format!(
        "--size {} B is not allowed over {transport}; a message there has 1 to {largest} B",
        size.0
    ))
}

pub(super) fn within(name: &str, value: Option<u64>, least: u64, most: u64) -> Result<(), Refusal> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            refuse(format!("{name} {value} is not allowed; write {least} to {most}"))
        }
        _ => Ok(()),
    }
}

pub(super) fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MessageRate;

    #[test]
    fn a_trace_is_played_to_its_end() {
        let lines: String = (0..30_000).map(|n| format!("{n}us\n")).collect();
        let trace = Trace::parse("t", &lines).unwrap();
        let schedule = Schedule::Trace { rate: trace.rate() };
        for pattern in [Pattern::Oneway, Pattern::Load] {
            let trace = Some(trace.clone());
            let request = Request { trace, schedule, ..Request::new(pattern) };
            assert_eq!(request.plan().unwrap().cases[0].bound.count, Some(30_000));
        }
    }

    #[test]
    fn the_warm_up_is_at_most_a_tenth_of_what_is_expected() {
        let warmup = |count, time, schedule| {
            let request = Request { count, time, schedule, ..Request::new(Pattern::Oneway) };
            request.plan().unwrap().cases[0].warmup
        };
        let slow = Schedule::Periodic { rate: MessageRate(5e3) };
        let tenth_of_a_second = Some(Span(100_000_000));
        assert_eq!(warmup(None, None, Schedule::ClosedLoop), 1000);
        assert_eq!(warmup(Some(500), None, Schedule::ClosedLoop), 50);
        assert_eq!(warmup(None, tenth_of_a_second, Schedule::ClosedLoop), 1000);
        assert_eq!(warmup(None, tenth_of_a_second, slow), 50);
        assert_eq!(warmup(Some(100), tenth_of_a_second, slow), 10);
    }
}
