//! One round on the synthetic transport in this process: the same set-up, loops, recorder and join
//! as in an agent, on the virtual clock.

use crate::clock::{AnyClock, TickSpan, Ticks, Timebase};
use crate::loops::gate::Gate;
use crate::loops::role::{self, LoopContext};
use crate::loops::schedule::Generator;
use crate::loops::{Ended, Loop};
use crate::plan::{Bound, Case, Pattern, Request, Schedule, Wait};
use crate::sample::RoundSamples;
use crate::sample::arena::Arena;
use crate::sample::join::{Shape, join};
use crate::sample::recorder::{MessageCounts, Recorder};
use crate::transport::{Blob, Role, TransportKind};
use crate::units::Bytes;

/// A case on the synthetic transport: so many messages of 8 B, no warm-up.
pub fn case(pattern: Pattern, spec: &str, count: u64) -> Result<Case, String> {
    let mut request = Request::new(pattern);
    request.transports = vec![TransportKind::simulated()];
    request.load.object_size = Bytes(8);
    request.sizes = match pattern {
        Pattern::Load => vec![request.load.message()],
        _ => vec![Bytes(8)],
    };
    request.waits = vec![Wait::Busy];
    request.warmup = Some(0);
    request.count = Some(count);
    request.settings.set("synthetic", spec).map_err(|wrong| wrong.0)?;
    let plan = request.plan().map_err(|refusal| refusal.to_string())?;
    plan.cases.into_iter().next().ok_or_else(|| "no case".to_string())
}

/// What a simulated round left.
pub struct Played {
    /// Its samples.
    pub samples: RoundSamples,
    /// What the client saw.
    pub client: MessageCounts,
    /// What the server saw, where it was played.
    pub server: MessageCounts,
    /// Why the client ended.
    pub ended: Ended,
}

/// Plays a case.
pub fn play(case: &Case) -> Result<Played, String> {
    let most = case.bound.count.map_or(1 << 20, |count| count + case.warmup) as usize;
    let memory = |rows| Arena::create(rows).map_err(|error| format!("sample memory: {error}"));
    let with_server = !matches!(case.pattern, Pattern::Latency | Pattern::Load);
    let mut client = memory(most)?;
    let mut server = memory(if with_server { most } else { 0 })?;
    let time = Timebase::nanoseconds(Ticks(0));
    let plan = Loop::of(case, |span| TickSpan(span.0 as i64));
    let generator = Generator::of(case, &time).map_err(|error| error.to_string())?;
    let (client_seen, ended) = one_role(case, Role::Client, &plan, generator, &mut client)?;
    let server_seen = match with_server {
        true => one_role(case, Role::Server, &plan, None, &mut server)?.0,
        false => MessageCounts::default(),
    };
    let shape = Shape {
        pattern: case.pattern,
        one_sided: false,
        direction: case.direction,
        size: case.size.0 as u32,
        stride: role::stride(case),
    };
    let epoch = client.rows().first().map_or(Ticks(0), |row| row.submit);
    let samples = join(shape, client.rows(), server.rows(), &Timebase::nanoseconds(epoch));
    Ok(Played { samples, client: client_seen, server: server_seen, ended })
}

fn one_role(
    case: &Case,
    role: Role,
    plan: &Loop,
    generator: Option<Generator>,
    arena: &mut Arena,
) -> Result<(MessageCounts, Ended), String> {
    let opening = case.transport.open(&role::setup(case, role, [0; 32]));
    let connected = opening.and_then(|opening| opening.connect(&Blob::default()));
    let mut endpoint = connected.map_err(|error| error.to_string())?.endpoint;
    let clock = case.transport.virtual_clock().ok_or("a transport that simulates no time")?;
    let mut recorder = Recorder::new(arena, case.warmup);
    let (store, stream, spin) = (None, None, TickSpan(0));
    let gate = &Gate::default();
    let context = LoopContext { case, role, gate, plan, generator, store, stream, spin };
    let ended = role::run(&mut endpoint, AnyClock::Virtual(clock), context, &mut recorder);
    Ok((recorder.seen, ended))
}

/// A schedule's case: one way.
pub fn scheduled(spec: &str, count: u64, schedule: Schedule) -> Result<Case, String> {
    let bound = Bound { count: Some(count), time: None };
    Ok(Case { schedule, bound, ..case(Pattern::Oneway, spec, count)? })
}
