//! Results of threads, as the tests of this package and of the patterns make them up.

use crate::result::ThreadResult;
use wiregauge_host::ResourceUse;
use wiregauge_measure::control::protocol::Outcome;
use wiregauge_sample::arena::Arena;
use wiregauge_sample::recorder::MessageCounts;
use wiregauge_transport::counter::CounterValue;

/// A thread that was preempted so often.
pub fn finished_thread(switches: u64, pinned: bool, settings: &[&str]) -> ThreadResult {
    let pair = |value: &&str| (value[..1].to_string(), value.to_string());
    let usage =
        ResourceUse { user_ns: 5.0, involuntary_switches: switches, ..ResourceUse::default() };
    let mut part = reported(Default::default());
    part.effective_settings = settings.iter().map(pair).collect();
    if let Some(outcome) = &mut part.outcome {
        outcome.counters = [("event".to_string(), CounterValue::Events(switches + 1))].into();
        outcome.pinned = if pinned { Ok(()) } else { Err("no CPU".into()) };
        outcome.usage = usage;
    }
    part
}

/// One that has ended with these counts and has left no samples.
pub fn reported(counts: MessageCounts) -> ThreadResult {
    let outcome = Outcome {
        counters: Default::default(),
        ended: wiregauge_plan::Ended::Count,
        counts,
        server_counts: None,
        rejected_peers: 0,
        usage: Default::default(),
        suspension: Default::default(),
        pinned: Ok(()),
        shares_cpu: false,
        locked: Ok(()),
        own_descriptors: true,
        span: Default::default(),
        noise: None,
        overhead: Vec::new(),
        recording_ticks: 0.0,
        beyond: Default::default(),
        pool: Default::default(),
    };
    #[expect(clippy::expect_used, reason = "only tests call it")]
    let arena = Arena::create(1).expect("memory for one row");
    let outcome = Some(outcome);
    ThreadResult { arena, outcome, host: None, effective_settings: Vec::new() }
}
