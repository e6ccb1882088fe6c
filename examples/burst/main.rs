//! A pattern of its own, from the command line to the HTML page, with no edit of the library:
//! messages that are posted together, and the time until all answers are there. What it does not
//! say is as the contracts have it: round trips over one connection, in a closed loop.
//!
//! `cargo run --release --example burst -- burst --messages 16 --transport shm,tcp`

use wiregauge::command::program;
use wiregauge::pattern::prelude::*;
use wiregauge::pattern::registry;

/// The pattern.
struct Burst;

/// The specification of a case: messages posted together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Spec {
    messages: u32,
}

const OPTIONS: OptionTable =
    &[OptionDef::count("messages", "Messages posted together").limits(1, 64).default("8"), SIZE];

impl PatternOptions for Burst {
    fn about(&self) -> &'static str {
        "Measure the round trips of messages that are posted together"
    }

    fn examples(&self) -> &'static str {
        "\n  burst burst --messages 16 --transport tcp"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let spec = Spec { messages: given.count32("messages").unwrap_or(8) };
        Ok(with_sizes(given, Request::new(&Burst, OneSpec(spec), Bytes(64))))
    }
}

impl PatternSpec for Burst {
    fn name(&self) -> &'static str {
        "burst"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read::<Spec>(json, OPTIONS)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        CaseProfile::of_bursts(case, case.spec::<Spec>().messages, Span(0))
    }
}

impl PatternExecution for Burst {}

impl PatternAnalysis for Burst {
    fn metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Rtt]
    }
}

impl PatternView for Burst {
    fn section(&self, record: &Record) -> Option<Section> {
        let runs = || record.runs.iter().filter(|run| run.case.pattern == self.name());
        let messages = |run: &&Run| run.case.spec::<Spec>("burst").map(|spec| spec.messages);
        let quantile = |p| move |run: &&Run| Cell::quantile(run.summary(Metric::Rtt), p);
        let fields = [
            number("messages", "", move |run| Cell::Count(messages(run).unwrap_or(0).into())),
            figure("p50", "us", quantile(0.5)),
            figure("p99", "us", quantile(0.99)),
            figure("p99.9", "us", quantile(0.999)),
            number("max", "us", |run: &&Run| Cell::maximum(run.summary(Metric::Rtt))),
            number("n", "", |run: &&Run| Cell::Count(run.counts.received)),
            number("lost", "", |run: &&Run| Cell::lost(run.counts.lost)),
        ];
        let table = Table::of(runs(), own(record).into_iter().chain(ends()).chain(fields))?;
        let table = table.caption("Bursts: round trips of messages that were posted together");
        let numbers = runs().map(|run| run.index).collect();
        let section = Section::new("bursts", "Bursts");
        Some(Section { results: vec![table], distributions: numbers, ..section })
    }
}

/// The program.
pub fn main() -> std::process::ExitCode {
    registry::add(&[&Burst]);
    program::main()
}
