//! What agents send to their controller: each frame is taken or refused in one line, and a round of
//! what was taken becomes a record, its tables and its page, whatever the figures are.
//!
//! The first byte chooses the case, and with its highest bit that tables and page are made, which
//! takes most of the time. A byte before each frame names the rank that sends it.

use std::path::Path;
use std::sync::OnceLock;
use wiregauge::analysis::pattern::{PatternAnalysis, RunSoFar};
use wiregauge::analysis::result::{RankResult, RoundResult, ThreadResult};
use wiregauge::analysis::{counts, figures::Seen, marks};
use wiregauge::cli::{self, Command};
use wiregauge::clock::{Ticks, Timebase};
use wiregauge::control::fault::Fault;
use wiregauge::control::frame::read_plain;
use wiregauge::control::limits;
use wiregauge::control::protocol::{FromAgent, HostProbe};
use wiregauge::host::CpuPair;
use wiregauge::host::trace::{Stamp, report::is_possible};
use wiregauge::pattern::registry;
use wiregauge::plan::{Case, Plan};
use wiregauge::record::directory::parse_record;
use wiregauge::record::schema::{self, Record};
use wiregauge::report::table::Layout;
use wiregauge::report::{html, table};
use wiregauge::sample::RoundSamples;
use wiregauge::sample::arena::Arena;
use wiregauge::sample::join::{End, Times};
use wiregauge::transport::Role;
use wiregauge::transport::preflight::{
    MAX_PACKET, PathNeeds, PeerReport, PreflightAddresses, PreflightPeer,
};

/// One of each way from rows to figures.
const COMMANDS: [&str; 8] = [
    "latency --transport tcp --count 8",
    "oneway --transport udp --rate 1000 --count 8",
    "bandwidth --transport tcp --size 1KiB --count 8",
    "load --transport tcp --rate 1000 --count 8",
    "rpc --transport tcp --connections 2 --count 8",
    "exchange --transport tcp --nodes 3 --time 10ms",
    "collective --transport mpi --count 8",
    "stream --transport udp --count 8",
];
/// Rows of a thread: few, since each is as good as another.
const ROWS: usize = 64;
/// Messages that measured the overhead.
const OVERHEAD: u32 = 100;
/// The least first byte with which tables and page are made.
const WITH_PAGE: u8 = 0x80;
/// Frames of one input.
const FRAMES: usize = 64;

/// The plan of each command.
fn plans() -> &'static [Plan] {
    static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let plan = |command: &str| {
            let words = format!("wiregauge {command} --rounds 2");
            let words: Vec<_> = words.split(' ').map(Into::into).collect();
            let Ok(Command::Measure { request, .. }) = cli::parse(&words) else { return None };
            request.plan().ok()
        };
        COMMANDS.into_iter().map(plan).collect::<Option<_>>().expect("each is a valid command")
    })
}

/// What the agents have said so far, taken as the controller takes it.
struct Round {
    ranks: Vec<RankResult>,
    stamps: Vec<Stamp>,
    probe: Option<HostProbe>,
    /// The end of a pre-flight that was opened last.
    path: Option<PreflightAddresses>,
}

impl Round {
    fn new(case: &Case) -> Round {
        let rank = |rank: &wiregauge::plan::topology::Rank| {
            let thread = |_| {
                let arena = Arena::create(ROWS).expect("memory for a few rows");
                ThreadResult { arena, outcome: None, host: None, effective_settings: Vec::new() }
            };
            RankResult { role: rank.role, threads: (0..rank.threads).map(thread).collect() }
        };
        let ranks = case.topology.ranks.iter().map(rank).collect();
        Round { ranks, stamps: Vec::new(), probe: None, path: None }
    }

    /// Checks reports of an end that was to reach one like it: what passes is of sizes that both
    /// try.
    fn check_paths(&self, reports: &[PeerReport]) -> Result<(), &'static str> {
        let own = self.path.as_ref().ok_or("it has opened no path")?;
        let needs = PathNeeds { tcp: true, udp: true };
        let peer = PreflightPeer { number: 0, addresses: own.clone(), cookie: [7; 32], needs };
        limits::check_reports(reports, own, &[peer])?;
        let sizes = reports.iter().flat_map(|one| one.received.iter().chain(&one.acknowledged));
        assert!(sizes.max().is_none_or(|size| *size <= MAX_PACKET), "{reports:?}");
        Ok(())
    }

    fn take(&mut self, rank: usize, said: FromAgent) -> Result<(), String> {
        let count = self.ranks.len();
        let threads = &mut self.ranks[rank % count].threads;
        let unknown = "it has no such thread";
        match said {
            FromAgent::Connected(each) if each.len() == threads.len() => {
                for (thread, settings) in threads.iter_mut().zip(each) {
                    limits::check_settings(&settings)?;
                    thread.effective_settings = settings;
                }
            }
            FromAgent::Ended { thread, outcome } => {
                limits::check_outcome(&outcome, OVERHEAD)?;
                let thread = threads.get_mut(thread as usize).ok_or(unknown)?;
                thread.outcome = Some(*outcome);
            }
            FromAgent::Rows { thread, rows } => {
                let thread = threads.get_mut(thread as usize).ok_or(unknown)?;
                let has_room = thread.outcome.is_none() && thread.arena.extend(&rows);
                return if has_room { Ok(()) } else { Err("more rows than a round has".into()) };
            }
            FromAgent::Stamps(stamps) if stamps.iter().all(is_possible) => self.stamps = stamps,
            FromAgent::Traced(Ok(report)) => report.check(&self.stamps)?,
            FromAgent::Probed(probe) => self.probe = Some(*probe),
            FromAgent::PathOpened(addresses) => {
                limits::check_path(&addresses, true)?;
                self.path = Some(addresses);
            }
            FromAgent::PathTried(reports) => self.check_paths(&reports)?,
            _ => {}
        }
        Ok(())
    }
}

/// Takes the samples of a round and makes figures of them.
fn figures(plan: &Plan, case: &Case, seen: Round) -> schema::Run {
    let analysis = registry::analysis(case.pattern.name()).expect("the pattern is known");
    let base = Timebase::nanoseconds(Ticks(0));
    let theirs = seen.probe.map_or(base, |probe| probe.local.time);
    let (client, server) = (End { time: &base, offset: None }, End { time: &theirs, offset: None });
    let times = Times { client, server, nodes: &[], apart: false, compared: false };
    let mut ranks: Vec<RankResult> = Vec::new();
    for rank in seen.ranks {
        match ranks.iter_mut().find(|one| one.role == rank.role) {
            Some(known) => known.threads.extend(rank.threads),
            None => ranks.push(rank),
        }
    }
    let mut finished = RoundResult {
        ranks,
        traces: Vec::new(),
        fault: None,
        start: None,
        ran: None,
        suspended: Default::default(),
    };
    marks::forgive(case, &mut finished);
    let mut round = schema::Round { stride: case.profile().stride, ..Default::default() };
    let (each, all): (Vec<_>, Vec<_>) =
        threads(case, analysis, &finished, times).into_iter().unzip();
    all.iter().for_each(|one| counts::add(&mut round.counts, one));
    analysis.complete_counts(case, &finished, &mut round.counts);
    let samples = analysis.join(case, each);
    let mut run = RunSoFar::new(0, case, analysis, &[CpuPair { client: 0, server: 1 }], 1);
    run.take(case, round, finished, Seen { counts: all, samples, times });
    let _ = run.saved(None);
    run.decide(plan.rounds);
    let runs = [run];
    let done = analysis.complete(plan, &runs, 0);
    let _ = analysis.next_cases(plan, &runs);
    let [run] = runs;
    run.into_run(plan, done, &record_of_a_run().instrument, &Fault::Interrupted)
}

/// The samples and counts of each thread.
fn threads(
    case: &Case,
    analysis: &dyn PatternAnalysis,
    finished: &RoundResult,
    times: Times<'_>,
) -> Vec<(RoundSamples, schema::Counts)> {
    let [clients, servers] = [Role::Client, Role::Server].map(|role| finished.threads_of(role));
    let thread = |(number, client): (usize, &ThreadResult)| {
        let server = servers.get(number);
        let rows = [client.arena.rows(), server.map_or(&[][..], |server| server.arena.rows())];
        let mut samples = analysis.samples(case, number, rows, times);
        marks::mark(case, analysis.is_rate(), times.are_common(), &mut samples);
        let mut all = counts::counts(case, analysis.arrivals(case), client, server, &samples);
        if marks::is_ended_by_user(case, finished) {
            let left_out = marks::leave_out_under_way(case, None, &mut samples);
            counts::leave_out_under_way(case, left_out, &samples, &mut all);
        }
        analysis.complete_thread_counts(case, &samples, &mut all);
        (RoundSamples { run: 0, round: 0, samples }, all)
    };
    clients.iter().enumerate().map(thread).collect()
}

/// Returns the record of a real run, of which the rest of one is taken.
fn record_of_a_run() -> Record {
    static RECORD: OnceLock<Record> = OnceLock::new();
    let text = include_bytes!("../../seeds/record_json/latency");
    let read = || parse_record(Path::new("record.json"), text).expect("the seed is a record");
    RECORD.get_or_init(read).clone()
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let Some((choice, mut channel)) = data.split_first() else { return };
    let plan = &plans()[usize::from(*choice) % COMMANDS.len()];
    let case = &plan.cases[0];
    let mut round = Round::new(case);
    for _ in 0..FRAMES {
        let Some((rank, rest)) = channel.split_first() else { break };
        channel = rest;
        let Ok(said) = read_plain::<FromAgent>(&mut channel) else { break };
        if let Err(wrong) = round.take(usize::from(*rank), said) {
            assert!(!wrong.is_empty() && !wrong.contains('\n'), "{wrong:?}");
        }
    }
    if let Some(probe) = &round.probe {
        probe.environment.warnings(&probe.cpus);
        let findings = probe.checkup.iter().flat_map(|checkup| &checkup.findings);
        findings.for_each(|finding| {
            drop((finding.what(), finding.cost_and_source(), finding.remedy()))
        });
    }
    let mut threads = round.ranks.iter().flat_map(|rank| &rank.threads);
    if threads.all(|thread| thread.outcome.is_none() && thread.arena.rows().is_empty()) {
        return;
    }
    let run = figures(plan, case, round);
    let record = Record { runs: vec![run], ..record_of_a_run() };
    let text = serde_json::to_vec(&record).expect("a record can be written");
    // One that a reader refuses is not kept; what it says is shown all the same.
    if let Err(refused) = parse_record(Path::new("record.json"), &text) {
        assert!(!refused.to_string().contains('\n'));
    }
    if *choice < WITH_PAGE {
        return;
    }
    let views = registry::views();
    let layout = Layout { verbose: true, ..Layout::default() };
    assert!(!table::report(&record, &views, &layout).to_string().is_empty());
    html::render(&record, &views, std::iter::empty::<Result<_, String>>());
}
