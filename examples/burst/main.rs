//! A pattern of its own, from the command line to the HTML page, with no edit of the library:
//! messages that are posted together, and the time until all answers are there.
//!
//! `cargo run --release --example burst -- burst --messages 16 --transport shm,tcp`

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use wiregauge::agent::error::AgentError;
use wiregauge::agent::execution::*;
use wiregauge::agent::rows::{MESSAGES_PER_SECOND, rows};
use wiregauge::clock::{Clock, TickSpan};
use wiregauge::command::program;
use wiregauge::loops::compiled::{self, Compiled};
use wiregauge::loops::waiter::Waiter;
use wiregauge::loops::{Ended, Loop, closed};
use wiregauge::options::{Given, OptionDef, OptionTable, UsageError};
use wiregauge::pattern::options::{PatternOptions, SIZE, with_sizes};
use wiregauge::pattern::{Pattern, registry};
use wiregauge::plan::{self, *};
use wiregauge::record::schema::{RateFigure, Record, Run};
use wiregauge::report::model::{Cell, Section, Table, ends, number, own};
use wiregauge::report::view::PatternView;
use wiregauge::run::analysis::{Collector, PatternAnalysis, RoundSeen, RunSoFar};
use wiregauge::sample::recorder::Recorder;
use wiregauge::stats::Metric;
use wiregauge::transport::{Descriptor, Endpoint, Role, Traffic};
use wiregauge::units::{Bytes, Span};

/// The pattern.
struct Burst;

/// The specification of a case: messages posted together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Spec {
    messages: u32,
}

const MESSAGES: OptionDef =
    OptionDef::count("messages", "Messages posted together").limits(1, 64).default("8");

impl PatternOptions for Burst {
    fn about(&self) -> &'static str {
        "Measure the round trips of messages that are posted together"
    }

    fn examples(&self) -> &'static str {
        "\n  burst burst --messages 16 --transport tcp"
    }

    fn options(&self) -> OptionTable {
        &[MESSAGES, SIZE]
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let spec = Spec { messages: given.count32("messages").unwrap_or(8) };
        Ok(with_sizes(given, Request::new(PatternRef(&Burst), spec, Bytes(64))))
    }
}

impl PatternSpec for Burst {
    fn name(&self) -> &'static str {
        "burst"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        let spec: Spec = serde_json::from_value(json).map_err(|error| error.to_string())?;
        match spec.messages {
            1..=64 => Ok(plan::Spec::new(spec)),
            more => Err(format!("a burst has 1 to 64 messages, not {more}")),
        }
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 })
    }

    fn traffic(&self, _: &Case) -> Traffic {
        Traffic::Echo { every: 1 }
    }

    fn queue_depth(&self, case: &Case) -> u32 {
        case.spec::<Spec>().messages
    }
}

impl PatternRequest for Spec {
    fn usual_bound(&self) -> Bound {
        Bound { count: Some(10_000), time: None }
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_schedule()
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, *self)]
    }
}

impl PatternExecution for Burst {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        if role == Role::Server { 0 } else { rows(case, MESSAGES_PER_SECOND) }
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        Ok(Box::new(Bursts { spec: *thread.case.spec(), role: thread.role }))
    }
}

struct Bursts {
    spec: Spec,
    role: Role,
}

impl RoleLoop for Bursts {
    fn tune(&self, plan: &mut Loop, _: &dyn Fn(Span) -> TickSpan) {
        plan.burst = self.spec.messages.into();
        plan.window = plan.window.max(plan.burst);
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock, role) = (context.waiter(), context.clock, self.role);
        compiled::run(endpoints.end(0), waiter, clock, Measured { role, context, recorder })
    }
}

struct Measured<'a, 'r, 'm> {
    role: Role,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, end: &mut E, waiter: W, clock: C) -> Ended {
        let (gate, plan) = (self.context.gate, self.context.plan);
        match self.role {
            Role::Client => closed::client(end, waiter, clock, gate, plan, self.recorder),
            Role::Server => {
                closed::server::<_, _, _, false>(end, waiter, clock, gate, plan, self.recorder)
            }
        }
    }
}

impl PatternAnalysis for Burst {
    fn metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Rtt]
    }

    fn measured(&self, _: &Case) -> Vec<&'static str> {
        vec![Metric::Rtt.name()]
    }

    fn collector(&self, _: &Case) -> Box<dyn Collector> {
        Box::new(NoRates)
    }
}

struct NoRates;

impl Collector for NoRates {
    fn take(&mut self, _: &RoundSeen<'_>) {}

    fn rates(&self, _: &RunSoFar) -> Vec<RateFigure> {
        Vec::new()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PatternView for Burst {
    fn section(&self, record: &Record) -> Option<Section> {
        let runs = || record.runs.iter().filter(|run| run.case.pattern == "burst");
        let messages = |run: &&Run| run.case.spec::<Spec>("burst").map(|spec| spec.messages);
        let fields = [
            number("messages", "", move |run| Cell::Count(messages(run).unwrap_or(0).into())),
            number("n", "", |run: &&Run| Cell::Count(run.counts.received)),
        ];
        let table = Table::of(runs(), own(record).into_iter().chain(ends()).chain(fields))?;
        let numbers: Vec<u32> = runs().map(|run| run.index).collect();
        let section = Section::new("bursts", "Bursts");
        Some(Section { results: vec![table], distributions: numbers, ..section })
    }
}

impl Pattern for Burst {}

fn main() -> std::process::ExitCode {
    registry::add(&[&Burst]);
    program::main()
}
