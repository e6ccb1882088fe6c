//! From what was asked for to a plan that can be run as it stands, or to one sentence that says
//! why not.

use super::{
    Bound, Case, CasesSoFar, Combination, CpuPair, HostPair, HostSpec, Part, PatternRef,
    PatternRequest, Place, Plan, Request, Rounds, Schedule, Settings, Spec, Specification,
    TimerKind, Topology, Wait,
};
use crate::rails::RailKind;
use std::sync::Arc;
use wiregauge_base::options::names;
use wiregauge_base::units::{Bytes, Span};
use wiregauge_transport::{Traffic, TransportKind, TransportRequest};

pub use super::topology::MOST_THREADS;
pub use wiregauge_base::options::{UsageError, refuse, refuse_found};

/// Most messages of one round: their samples are all kept, 640 MB of memory for each role.
pub const MOST_COUNT: u64 = 16_000_000;
/// Most rows of one round in `samples.parquet`, of all its threads, the warm-up included: a reader
/// holds a round, 64 bytes a row, so less than 1 GiB.
pub const MAX_ROUND_ROWS: u64 = 1 << 24;
/// Most rounds.
pub const MOST_ROUNDS: u32 = 1000;
/// Most messages posted and not completed.
pub const MOST_WINDOW: u32 = 65_536;
/// Most rounds of all cases together, each thread counted: what a record's readers hold at once.
pub const MOST_IN_ALL: u64 = 8000;
/// Rounds where nothing else is asked for.
pub const ROUNDS: u32 = 6;
/// Most rounds where an interval's width ends them and nothing else is asked for.
pub const ROUNDS_UNTIL: u32 = 30;
/// Default warm-up: this many messages ...
pub const WARMUP: u64 = 1000;
/// ... but at most this share of the count.
pub const WARMUP_SHARE: u64 = 10;
/// ... and it lasts no longer than that share of the time of a round, nor than this.
const WARMUP_TIME: Span = Span(1_000_000_000);

/// Messages of a round where nothing else is asked for: the least for which p99.9 is shown.
const COUNT: u64 = 10_000;

impl Request {
    /// A request of a pattern for messages of one size, with the defaults that all patterns share.
    pub fn new(pattern: PatternRef, asked: impl PatternRequest + 'static, size: Bytes) -> Request {
        Request {
            pattern,
            asked: Arc::new(asked),
            usual_bound: Bound { count: Some(COUNT), time: None },
            is_directed: true,
            measures_bisection: false,
            transports: vec![TransportKind::default()],
            sizes: vec![size],
            perturb: false,
            waits: vec![Wait::Busy],
            is_wait_chosen: false,
            threads: vec![1],
            count: None,
            time: None,
            warmup: None,
            schedule: Schedule::ClosedLoop,
            trace: None,
            timer: None,
            check: false,
            loss_after: Span(100_000_000),
            timeout: Span(10_000_000_000),
            rounds: None,
            until: None,
            cpus: Vec::new(),
            place: Place::default(),
            part: Part::default(),
            group: None,
            injected_clock_error: None,
            threshold: Span(10_000),
            settings: Settings::default(),
            seed: 1,
        }
    }

    /// The plan, or why the request is refused.
    pub fn plan(self) -> Result<Plan, UsageError> {
        let asked = Arc::clone(&self.asked);
        let sizes = asked.sizes(&self)?;
        self.check_numbers()?;
        asked.check(&self)?;
        let rounds = self.rounds();
        let combinations = [self.transports.len(), self.waits.len(), sizes.len()];
        let pairs = self.place.count(self.is_directed);
        let client_hosts = self.place.client_hosts();
        let cases = combinations.into_iter().fold(pairs, |all, one| all.saturating_mul(one as u64));
        let threads: u64 = self.threads.iter().map(|threads| u64::from(*threads)).sum();
        let in_all = cases.saturating_mul(threads).saturating_mul(u64::from(rounds.most));
        let in_all = in_all.saturating_mul(client_hosts.into());
        let most = rounds.most;
        ensure!(
            (1..=MOST_IN_ALL).contains(&in_all),
            "{cases} combinations of transport, wait mode, size and hosts in up to {most} rounds \
             are {in_all}: use 1 to {MOST_IN_ALL}"
        );
        let layout = self.place.layout(&self)?;
        let ends = self.place.ends(&layout);
        let on = |case: &Case, end: (HostPair, u32)| -> Result<Case, UsageError> {
            let settings = self.place.settings(&layout, end, case.transport, &case.settings)?;
            let topology = case.topology.clone().on(end.0).with_clients_on(&layout.clients);
            topology.check().map_err(UsageError)?;
            Ok(Case { topology, settings, ..case.clone() })
        };
        let (mut so_far, together) = (CasesSoFar::default(), &layout.concurrent);
        for &transport in &self.transports {
            self.check_place(transport, asked.has_many_clients())?;
            self.check_transport(transport)?;
            asked.check_over(&self, transport)?;
            for &wait in &self.waits {
                for &size in &sizes {
                    self.check_size(transport, size)?;
                    for &threads in &self.threads {
                        let first = so_far.cases.len();
                        let of = Combination { transport, wait, size, threads, client_hosts };
                        for case in asked.cases(&self, &of) {
                            check_spec(&case)?;
                            check_together(&case)?;
                            let on_all = ends.iter().map(|end| on(&case, *end));
                            so_far.add(on_all.collect::<Result<Vec<_>, _>>()?, together);
                        }
                        asked.add_beside(&mut so_far, first);
                    }
                }
            }
        }
        asked.complete(&mut so_far);
        let CasesSoFar { cases, concurrent } = so_far;
        self.check_ranks(&cases, &concurrent)?;
        check_endless(&cases)?;
        cases.iter().try_for_each(check_rows)?;
        check_cpus(&self.cpus, &cases)?;
        Ok(Plan {
            cases,
            pairs: self.place.pairs(),
            hosts: layout.hosts,
            rails: self.place.rails,
            concurrent,
            cpus: self.cpus,
            injected_clock_error: self.injected_clock_error,
            threshold: self.threshold,
            ..Plan::new(self.pattern.name(), rounds, self.seed)
        })
    }

    /// How many rounds it is given.
    pub fn rounds(&self) -> Rounds {
        let is_fixed = self.until.is_none();
        let most = self.rounds.unwrap_or(if is_fixed { ROUNDS } else { ROUNDS_UNTIL });
        let least = if is_fixed { most } else { ROUNDS.min(most) };
        Rounds { least, most, until: self.until }
    }

    /// Messages of its trace.
    fn traced(&self) -> Option<u64> {
        self.trace.as_ref().map(|trace| trace.times_ns.len() as u64)
    }

    /// Messages of a round, where they are known before it.
    fn expected(&self, bound: Bound) -> Option<u64> {
        let by_time = bound.time.zip(self.schedule.rate());
        let by_time = by_time.map(|(time, rate)| (rate.0 * time.0 as f64 / 1e9) as u64);
        [bound.count, by_time, self.traced()].into_iter().flatten().min()
    }

    /// A case of a combination with this specification, its threads connected one to one.
    pub fn case(&self, of: &Combination, spec: impl Specification) -> Case {
        let bound = match (self.count, self.time) {
            (None, None) if self.trace.is_none() => self.usual_bound,
            (None, None) => Bound { count: self.traced(), time: None },
            (count, time) => Bound { count, time },
        };
        let share = u64::from(of.threads.max(1)) * WARMUP_SHARE;
        let share = self.expected(bound).map_or(WARMUP, |messages| messages / share);
        Case {
            pattern: self.pattern,
            spec: Spec::new(spec),
            transport: of.transport,
            wait: of.wait,
            topology: Topology::pair(of.threads),
            part: self.part,
            size: of.size,
            bound,
            warmup: self.warmup.unwrap_or(WARMUP.min(share)),
            exact_warmup: self.warmup.is_some(),
            schedule: self.schedule,
            trace: self.trace.clone(),
            timer: self.timer.unwrap_or_default(),
            check: self.check,
            loss_after: self.loss_after,
            timeout: self.timeout,
            settings: self.settings.clone(),
            seed: self.seed,
        }
    }

    /// What the limits of single options do not say.
    fn check_numbers(&self) -> Result<(), UsageError> {
        self.check_threads()?;
        let wrong = self.until.filter(|until| !(*until > 0.0 && *until < 1.0));
        refuse_found(wrong.map(|until| until * 100.0), |percent| {
            format!("--until: {percent}% is out of range: use a width above 0% and below 100%")
        })?;
        self.check_timer()
    }

    /// Whether several threads can do what is asked.
    fn check_threads(&self) -> Result<(), UsageError> {
        let count = self.count.unwrap_or_default();
        let exceeds = |threads: &&u32| count.saturating_mul(u64::from(**threads)) > MOST_COUNT;
        refuse_found(self.threads.iter().find(exceeds), |threads| {
            format!(
                "--count is per thread: {count} messages in each of {threads} threads exceed the \
                 limit of {MOST_COUNT} per round"
            )
        })?;
        let fits = !self.has_threads() || !self.settings.stamps_send();
        ensure!(fits, "--stamp-send needs a second thread of its own: use --threads 1");
        Ok(())
    }

    fn has_threads(&self) -> bool {
        self.threads.iter().any(|threads| *threads > 1)
    }

    /// Whether what waits for the times of a schedule can.
    fn check_timer(&self) -> Result<(), UsageError> {
        let Some(timer) = self.timer else { return Ok(()) };
        let is_open = self.schedule.is_open();
        ensure!(is_open, "--timer needs a schedule: use --rate or --trace as well");
        refuse_found(self.simulated().filter(|_| timer != TimerKind::Busy), |transport| {
            let timer = timer.name();
            format!(
                "{transport} simulates time and does not support --timer {timer}: use --timer busy"
            )
        })
    }

    /// The first of its transports that simulates both ends in one process.
    pub fn simulated(&self) -> Option<&TransportKind> {
        self.transports.iter().find(|one| one.descriptor().one_process)
    }

    /// Refuses the options of loops that stamp messages on their way.
    pub fn refuse_stamps(&self) -> Result<(), UsageError> {
        let device = self.settings.text("stamp-complete") == Some("device");
        self.refuse_where(self.settings.stamps_send(), "--stamp-send")?;
        self.refuse_where(device, "--stamp-complete device")
    }

    /// Refuses a schedule, for patterns that send by the answers.
    pub fn refuse_schedule(&self) -> Result<(), UsageError> {
        self.refuse_where(self.schedule.is_open(), "--rate")
    }

    fn refuse_where(&self, is_given: bool, option: &str) -> Result<(), UsageError> {
        ensure!(!is_given, "{} does not support {option}", self.pattern.name());
        Ok(())
    }

    /// Whether the server's end may be where it is to be.
    fn check_place(&self, transport: TransportKind, many: bool) -> Result<(), UsageError> {
        if !self.place.is_remote() {
            return Ok(());
        }
        let (fits, name) = (many || self.place.more_clients.is_empty(), self.pattern.name());
        ensure!(fits, "{name} has one client: use --client-hosts with load or rpc");
        ensure!(
            self.cpus.is_empty() || self.place.pairs().is_none(),
            "--cpus does not work with --all-pairs and --bisection, where each host plays both \
             roles"
        );
        let reaches = |one: &&TransportKind| one.descriptor().between_hosts;
        refuse_found(Some(transport).filter(|one| !reaches(&one)), |local| {
            let can_name = |one: &&TransportKind| one.descriptor().launcher.is_none();
            let names = names(TransportKind::ALL.iter().filter(reaches).filter(can_name));
            format!("{local} connects processes of one host only: use {names} for remote hosts")
        })?;
        if transport.descriptor().launcher.is_some() {
            self.check_launch(transport)?;
        }
        if self.place.rails.is_none() {
            return Ok(());
        }
        let kind = RailKind::of_transport(transport);
        ensure!(
            kind.is_some(),
            "--rails needs a transport whose ends can be bound to a port: use {} instead of \
             {transport}",
            names(TransportKind::ALL.iter().filter(|one| RailKind::of_transport(**one).is_some()))
        );
        let first = self.transports.first().and_then(|first| RailKind::of_transport(*first));
        ensure!(
            first == kind,
            "--rails is either of RDMA ports or of network interfaces: use verbs alone, or the \
             transports over IP"
        );
        Ok(())
    }

    /// Refuses hosts over a transport whose ranks a launcher starts, but for those of a
    /// job: two, where the pattern has two ends.
    fn check_launch(&self, transport: TransportKind) -> Result<(), UsageError> {
        let are_ranks = self.place.all_nodes().flatten().all(HostSpec::is_rank);
        ensure!(
            are_ranks,
            "{transport} measures between the ranks of one launch: start wiregauge by mpirun or \
             srun instead of naming hosts"
        );
        let is_wrong = |ranks: &usize| *ranks != 2 && !self.asked.has_nodes();
        refuse_found(Some(self.place.all_nodes().count()).filter(is_wrong), |ranks| {
            let name = self.pattern.name();
            format!(
                "{name} over {transport} needs a launch of two ranks, and this one has {ranks}: \
                 use -n 2"
            )
        })
    }

    /// Refuses cases at the same time in the processes of a job that are the ranks of one launch.
    fn check_ranks(&self, cases: &[Case], concurrent: &[Vec<u32>]) -> Result<(), UsageError> {
        let of_launch = |case: &&Case| case.transport.descriptor().launcher.is_some();
        let are_shared = self.place.is_remote() && !concurrent.is_empty();
        refuse_found(cases.iter().find(of_launch).filter(|_| are_shared), |case| {
            format!(
                "the ranks of a job run one case at a time over {}: measure without others at \
                 the same time",
                case.transport
            )
        })
    }

    fn check_size(&self, transport: TransportKind, size: Bytes) -> Result<(), UsageError> {
        let largest = transport.descriptor().largest_with(&self.settings);
        refuse_found(Some(size.0).filter(|size| !(1..=largest).contains(size)), |size| {
            format!("--size: {size} B is out of range over {transport}: use 1 to {largest} B")
        })
    }

    fn check_transport(&self, transport: TransportKind) -> Result<(), UsageError> {
        let descriptor = transport.descriptor();
        let fits = !descriptor.one_process || !self.has_threads();
        ensure!(fits, "{transport} simulates both ends in one thread: use --threads 1");
        let (fits, name) = (self.pattern.is_carried_by(descriptor), self.pattern.name());
        ensure!(fits, "{transport} does not support {name}: use {}", carrying(self.pattern));
        transport.check_settings(&self.settings)
    }
}

impl<P, S> Case<P, S> {
    /// How long the warm-up lasts at most, whatever its messages: a tenth of the time of a round,
    /// and 1 s. `None`: as long as its messages take, since their number was asked for.
    pub fn warmup_time(&self) -> Option<Span> {
        let share = self.bound.time.map(|time| Span(time.0 / WARMUP_SHARE));
        let most = share.map_or(WARMUP_TIME, |share| share.min(WARMUP_TIME));
        (!self.exact_warmup).then_some(most)
    }
}

/// Refuses a round whose rows would be more than its file may hold. Of clients on several hosts
/// later messages go into a histogram.
fn check_rows(case: &Case) -> Result<(), UsageError> {
    let Some(count) = case.bound.count else { return Ok(()) };
    let Case { warmup, .. } = *case;
    let threads = case.threads();
    let of_thread = count.saturating_add(warmup) / case.profile().stride.max(1);
    // Of messages in both directions each end keeps its own.
    let receivers = 1 + u64::from(case.profile().traffic == Traffic::Both);
    let rows = of_thread.saturating_mul(threads.into()).saturating_mul(receivers);
    let fits = rows <= MAX_ROUND_ROWS || case.topology.has_several_clients();
    ensure!(
        fits,
        "{count} messages and {warmup} of warm-up in each of {threads} threads exceed the limit of \
         {MAX_ROUND_ROWS} samples per round: use fewer (--count, --warmup)"
    );
    Ok(())
}

/// Refuses what could not run until the user ends it.
fn check_endless(cases: &[Case]) -> Result<(), UsageError> {
    let Some(case) = cases.iter().find(|case| case.is_endless()) else { return Ok(()) };
    let (count, name) = (cases.len(), case.pattern.name());
    ensure!(
        count == 1,
        "--forever measures one case, and these are {count}: use one transport, wait mode, size, \
         rate and pair of hosts"
    );
    ensure!(
        !case.profile().is_one_way,
        "{name} keeps a row for each message and cannot run for ever: use --time, or --forever \
         with latency, load or bandwidth"
    );
    let (transport, descriptor) = (case.transport, case.transport.descriptor());
    let fits = !descriptor.one_process;
    ensure!(fits, "{transport} simulates both ends: use --time or --count instead of --forever");
    Ok(())
}

/// Refuses CPUs that were named for fewer threads than the cases have.
pub fn check_cpus(cpus: &[CpuPair], cases: &[Case]) -> Result<(), UsageError> {
    let threads = cases.iter().map(|case| case.topology.most_threads()).max().unwrap_or(1);
    let too_few = Some(cpus.len()).filter(|named| (1..threads as usize).contains(named));
    refuse_found(too_few, |named| {
        format!(
            "--cpus names CPUs for {named} of {threads} threads: use as many for each end, the \
             client's first, such as 0-3/4-7"
        )
    })
}

/// Whether a case is within the limits that hold for one from another host too: a request that was
/// built in code has passed no option table.
fn check_spec(case: &Case) -> Result<(), UsageError> {
    case.pattern.read_spec(case.spec.to_json()).map_err(UsageError)?;
    case.pattern.check_foreign(case).map_err(UsageError)
}

/// Most queue pairs of a rank: their addresses, of at most 8 B each, take half of a control frame.
pub const MOST_QUEUES: u64 = 1 << 16;

/// What pattern and transport have to say of options, size and wait mode together.
fn check_together(case: &Case) -> Result<(), UsageError> {
    let queues = case.queues();
    ensure!(
        queues <= MOST_QUEUES,
        "{queues} queue pairs of one process are too many: use --queue-pairs, --threads and \
         connections that make at most {MOST_QUEUES}"
    );
    let profile = case.profile();
    let request = TransportRequest {
        size: case.size.0,
        wait: case.wait,
        traffic: if profile.is_one_sided { Traffic::OneSided } else { profile.traffic },
        lengths: profile.lengths(),
        settings: &case.settings,
        reads_payloads: profile.reads_payloads,
    };
    (case.transport.descriptor().check)(&request).map_err(UsageError)
}

/// Rounds of all cases, each thread counted.
pub fn in_all(cases: &[Case], rounds: Rounds) -> u64 {
    let threads: u64 = cases.iter().map(|case| u64::from(case.threads())).sum();
    threads * u64::from(rounds.most)
}

/// Returns the names of the transports that carry a pattern.
pub fn carrying(pattern: PatternRef) -> String {
    names(TransportKind::ALL.iter().filter(|one| pattern.is_carried_by(one.descriptor())))
}

/// Refuses numbers outside of their limits.
pub fn within<T: Into<u64>>(
    name: &str,
    values: impl IntoIterator<Item = T>,
    least: u64,
    most: u64,
) -> Result<(), UsageError> {
    let mut values = values.into_iter().map(Into::into);
    refuse_found(values.find(|value| !(least..=most).contains(value)), |value| {
        format!("{name}: '{value}' is out of range: use {least} to {most}")
    })
}
