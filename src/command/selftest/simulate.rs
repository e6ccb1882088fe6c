//! One round on the synthetic transport in this process: the same set-up, loops, recorder and join
//! as in an agent, on the virtual clock. The patterns that the self-test asks are named here alone.

use super::Fallible;
use crate::agent::execution::ThreadContext;
use crate::cli::RunOptions;
use crate::clock::{AnyClock, Ticks, Timebase};
use crate::command::process::context;
use crate::loops::Ended;
use crate::loops::gate::Gate;
use crate::pattern::{bandwidth, latency, load, oneway, registry};
use crate::plan::{Bound, Case, Plan, Request, Schedule};
use crate::record::schema::Record;
use crate::run::{self, Keeper, Silent};
use crate::sample::RoundSamples;
use crate::sample::arena::Arena;
use crate::sample::join::Times;
use crate::sample::recorder::MessageCounts;
use crate::stats::metric::durations;
use crate::stats::{Metric, Summary, summarize};
use crate::transport::{Role, TransportKind};
use crate::units::{Bytes, MessageRate, Span};
use std::sync::atomic::AtomicBool;

/// Bytes of a message.
const SIZE: Bytes = Bytes(8);

/// A request for round trips.
pub fn round_trips() -> Request {
    latency::request(Default::default())
}

/// Round trips on the synthetic transport: `count` messages of 8 B, no warm-up.
pub fn ping_pong(synthetic: &str, count: u64) -> Fallible<Case> {
    case(Request { sizes: vec![SIZE], ..round_trips() }, synthetic, count)
}

/// The same as a plan.
pub fn ping_pong_plan(synthetic: &str, count: u64) -> Fallible<Plan> {
    plan(Request { sizes: vec![SIZE], ..round_trips() }, synthetic, count)
}

/// The same with pauses between messages.
pub fn with_pause(case: &Case, pause: Span) -> Case {
    case.with_spec(latency::Spec { pause, ..*case.spec::<latency::Spec>() })
}

/// Requests to a server, of which one is outstanding at a time.
pub fn one_request_at_a_time(synthetic: &str, count: u64) -> Fallible<Case> {
    let spec = load::Spec { object_size: SIZE, window: 1, ..load::Spec::default() };
    let asked = load::LoadRequest { spec, ..load::LoadRequest::default() };
    case(load::request(asked), synthetic, count)
}

/// Messages one way by a schedule.
pub fn scheduled(synthetic: &str, count: u64, schedule: Schedule) -> Fallible<Case> {
    let request = Request { sizes: vec![SIZE], ..oneway::request(oneway::Spec::default()) };
    let bound = Bound { count: Some(count), time: None };
    Ok(Case { schedule, bound, ..case(request, synthetic, count)? })
}

fn case(request: Request, synthetic: &str, count: u64) -> Fallible<Case> {
    let case = plan(request, synthetic, count)?.cases.into_iter().next();
    case.ok_or_else(|| "no case".into())
}

/// One round of a request, without a warm-up.
fn plan(request: Request, spec: &str, count: u64) -> Fallible<Plan> {
    Simulated { spec, count, warmup: 0, rounds: 1 }.plan(request)
}

/// How a request is simulated.
#[derive(Clone, Copy)]
pub struct Simulated<'a> {
    /// What the transport does.
    pub spec: &'a str,
    /// Messages of each round ...
    pub count: u64,
    /// ... after so many.
    pub warmup: u64,
    /// Rounds.
    pub rounds: u32,
}

impl Simulated<'_> {
    /// The plan of a request.
    pub fn plan(self, mut request: Request) -> Fallible<Plan> {
        request.transports = vec![TransportKind::SIMULATED];
        (request.warmup, request.count) = (Some(self.warmup), Some(self.count));
        request.rounds = Some(self.rounds);
        request.settings.set("synthetic", self.spec)?;
        Ok(request.plan()?)
    }
}

/// A request for messages one way, so many per second at equal intervals.
pub fn scheduled_messages(per_second: f64) -> Request {
    let schedule = Schedule::Periodic { rate: MessageRate(per_second) };
    Request { schedule, ..oneway::request(oneway::Spec::default()) }
}

/// A request for a server with one client, whose next request follows the answer.
pub fn closed_load() -> Request {
    let spec = load::Spec { object_size: SIZE, ..load::Spec::default() };
    load::request(load::LoadRequest { spec, clients: vec![1], ..load::LoadRequest::default() })
}

/// A request for messages of 64 B as fast as they are accepted.
pub fn flows() -> Request {
    Request { sizes: vec![Bytes(64)], ..bandwidth::request(bandwidth::Spec::default()) }
}

/// Runs a plan by agents, as a command does.
pub fn run(plan: &Plan, keep: &mut dyn Keeper) -> Fallible<Record> {
    let interrupted = AtomicBool::new(false);
    let context = context(&RunOptions::default(), &interrupted, &[], Vec::new())?;
    Ok(run::run(plan, &context, keep, &mut Silent)?)
}

/// What a simulated round left.
pub struct Played {
    /// Its samples.
    pub samples: RoundSamples,
    /// What the client saw.
    pub client: MessageCounts,
    /// What the server saw, where it had its turn.
    pub server: MessageCounts,
    /// Why the client ended.
    pub ended: Ended,
}

impl Played {
    /// Its samples, summarised.
    pub fn summary(&self, metric: Metric) -> Summary {
        summarize(&[durations(&self.samples, metric)], f64::INFINITY)
    }
}

/// A quantile in ns; NaN if the run cannot resolve it.
pub fn quantile(summary: &Summary, p: f64) -> f64 {
    let found = summary.quantile(p).and_then(|quantile| quantile.value);
    found.map_or(f64::NAN, |value| value.0)
}

/// Runs a case.
pub fn play(case: &Case) -> Fallible<Played> {
    let most = case.bound.count.map_or(1 << 20, |count| count + case.warmup) as usize;
    let memory = |rows| Arena::create(rows).map_err(|error| format!("sample memory: {error}"));
    let name = case.pattern.name();
    let unknown = || format!("no pattern '{name}'");
    let analysis = registry::analysis(name).ok_or_else(unknown)?;
    let with_server = case.profile().stamps_at_server;
    let mut client = memory(most)?;
    let mut server = memory(if with_server { most } else { 0 })?;
    let (client_seen, ended) = one_role(case, Role::Client, &mut client)?;
    let server_seen = match with_server {
        true => one_role(case, Role::Server, &mut server)?.0,
        false => MessageCounts::default(),
    };
    let epoch = client.rows().first().map_or(Ticks(0), |row| row.submit);
    let time = Timebase::nanoseconds(epoch);
    let rows = [client.rows(), server.rows()];
    let samples = analysis.samples(case, 0, rows, Times::of_one_host(&time));
    let samples = RoundSamples { samples, ..RoundSamples::default() };
    Ok(Played { samples, client: client_seen, server: server_seen, ended })
}

fn one_role(case: &Case, role: Role, arena: &mut Arena) -> Fallible<(MessageCounts, Ended)> {
    let execution = registry::execution(case.pattern.name()).ok_or("an unknown pattern")?;
    let time = Timebase::nanoseconds(Ticks(0));
    let context = ThreadContext {
        case,
        role,
        thread: 0,
        time: &time,
        epoch_of_day_ns: 0,
        rows: arena.capacity() as u64,
        free_cpu: None,
        cpu_beside: None,
        shares_cpu: false,
        is_remote: false,
    };
    let clock =
        case.transport.descriptor().virtual_clock.ok_or("the transport simulates no time")?;
    let (clock, gate) = (AnyClock::Virtual(clock()), Gate::default());
    Ok(context.simulate(execution, [0; 32], clock, &gate, arena)?)
}
