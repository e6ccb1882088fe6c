//! The row about operations of all ranks: two ways to time them, of which one gives what cannot be.

use super::simulate::run;
use super::{Fallible, Outcome};
use crate::pattern::collective::{
    self, CollectiveOperation, CollectiveRequest, Spec, Sync, of_ranks,
};
use crate::pattern::latency;
use crate::plan::{Bound, Request};
use crate::sample::join::pool;
use crate::sample::{Flags, RoundSamples, Sample};
use crate::stats::Metric;
use crate::stats::metric::durations;
use crate::units::{Bytes, Span};

/// A message between two ranks takes so long, and nothing that needs one takes less.
const WAY_NS: f64 = 1000.0;
/// What a rank does itself.
const OWN_NS: f64 = 50.0;
/// Ranks, and operations.
const RANKS: u32 = 4;
const OPERATIONS: u64 = 1000;
/// How much later than the first the last rank leaves a barrier, and enters in a window.
const AFTER_BARRIER_NS: f64 = 3000.0;
const IN_WINDOW_NS: f64 = 100.0;

/// An allreduce of simulated ranks which enter it within `skew_ns`: a rank leaves when it has heard
/// from all others.
fn allreduce(skew_ns: f64) -> Vec<RoundSamples> {
    let entry = |rank: u32, number: u64| {
        let begin = number as f64 * 1e6;
        // Each operation has another rank as its last.
        let place = (u64::from(rank) + number) % u64::from(RANKS);
        begin + skew_ns * place as f64 / f64::from(RANKS - 1)
    };
    let sample = |rank: u32, number: u64| {
        let heard = |other: u32| {
            let way = if other == rank { 0.0 } else { WAY_NS };
            entry(other, number) + way
        };
        let exit = (0..RANKS).map(heard).fold(0.0, f64::max) + OWN_NS;
        let none = f64::NAN;
        Sample::new(number, 8, [none, entry(rank, number), none, exit, none], Flags::default())
    };
    let of_rank = |rank| RoundSamples {
        samples: (0..OPERATIONS).map(|number| sample(rank, number)).collect(),
        ..RoundSamples::default()
    };
    (0..RANKS).map(of_rank).collect()
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// T24: with known inputs, and with the MPI that is installed.
pub fn t24_collectives() -> Outcome {
    let window = durations(&of_ranks(&allreduce(IN_WINDOW_NS)), Metric::Collective);
    let barrier = durations(&pool(allreduce(AFTER_BARRIER_NS)), Metric::AfterBarrier);
    let (window, barrier) = (least(&window), least(&barrier));
    let known = barrier < WAY_NS && (WAY_NS..=WAY_NS + OWN_NS + IN_WINDOW_NS).contains(&window);
    let (here, is_right) = here()?;
    let measured =
        format!("{window:.0} ns; after a barrier {barrier:.0} ns, which cannot be; {here}");
    Ok((format!(">= {WAY_NS:.0} ns"), measured, known && is_right))
}

/// The shortest allreduce of two ranks on this machine, by both ways.
fn here() -> Fallible<(String, bool)> {
    let of = |sync| {
        let spec = Spec { sync, ..Spec::default() };
        let operations = vec![CollectiveOperation::Allreduce];
        let asked = CollectiveRequest { spec, operations, ranks: vec![2] };
        let bound = Bound { count: None, time: Some(Span(100_000_000)) };
        let sizes = vec![Bytes(32)];
        Request { usual_bound: bound, rounds: Some(1), sizes, ..collective::request(asked) }
    };
    let transport = of(Sync::Window).transports.first().copied().ok_or("no transport")?;
    if let Err(why) = (transport.descriptor().available)(&Default::default()) {
        return Ok((format!("not checked here: {why}"), true));
    }
    let trips = latency::request(Default::default());
    let trips =
        Request { transports: vec![transport], rounds: Some(1), count: Some(20_000), ..trips };
    let window = shortest(of(Sync::Window), Metric::Collective)?;
    let barrier = shortest(of(Sync::Barrier), Metric::AfterBarrier)?;
    let half = shortest(trips, Metric::HalfRtt)?;
    let said = format!("here {window:.0} ns, {barrier:.0} ns, half a round trip {half:.0} ns");
    Ok((said, window >= barrier))
}

/// The shortest time of a request's run, ns.
fn shortest(request: Request, metric: Metric) -> Fallible<f64> {
    let record = run(&request.plan()?, &mut |_: &RoundSamples| Ok(()))?;
    let found = record.runs.first().and_then(|run| run.summary(metric));
    // Of a machine whose CPUs are taken no operation may be entered in time.
    Ok(found.map_or(f64::INFINITY, |summary| summary.min.0))
}
