//! The cases that measure for a case of rpc, and those that follow from it.

use super::Spec;
use crate::prelude::*;
use wiregauge_plan::request::WARMUP_SHARE;
use wiregauge_plan::topology::Wiring;

/// Requests of a round that measures the unloaded times, over all lengths ...
const UNLOADED: u64 = 20_000;
/// ... and of one length at least and at most.
const UNLOADED_OF_LENGTH: (u64, u64) = (20, 1000);

/// The case that measures the unloaded times of this one: the same messages over one connection,
/// one at a time.
pub fn unloaded(case: &Case) -> Case {
    let own = case.spec::<Spec>();
    let lengths = own.workload.steps.len().max(1) as u64;
    let (least, most) = UNLOADED_OF_LENGTH;
    let of_each = (UNLOADED / lengths).clamp(least, most);
    let spec = Spec {
        clients: 1,
        window: 1,
        receivers: 0,
        beside: 0,
        unloaded: true,
        loads: Vec::new(),
        ..own.clone()
    };
    let hosts = case.topology.hosts();
    Case {
        topology: Topology::client_server(1, 1, Wiring::Mesh { each: 1 }).on(hosts),
        schedule: Schedule::ClosedLoop,
        trace: None,
        bound: Bound { count: Some(of_each * lengths), time: None },
        // Each length once.
        warmup: lengths,
        ..case.with_spec(spec)
    }
}

/// Whether an unloaded case measures the times that another one's are compared with.
pub fn is_baseline_of(baseline: &Case, other: &Case) -> bool {
    let is_loaded = !other.spec::<Spec>().unloaded;
    // A quick study measures fewer of each length.
    let as_long = |one: Case| Case { bound: baseline.bound, warmup: baseline.warmup, ..one };
    baseline.spec::<Spec>().unloaded && is_loaded && as_long(unloaded(other)) == *baseline
}

/// The cases that are to follow one that has found how many requests per second the path carries.
pub fn carried_shares(case: &Case, carried: MessageRate) -> Vec<Case> {
    let own = case.spec::<Spec>();
    let seconds = case.bound.time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9);
    let of = |share: &f64| {
        let rate = share * carried.0;
        let expected = rate * seconds / f64::from(case.threads());
        Case {
            schedule: Schedule::Poisson { rate: MessageRate(rate) },
            // At most a tenth of what is expected, as everywhere.
            warmup: case.warmup.min((expected / WARMUP_SHARE as f64) as u64),
            ..case.with_spec(Spec { clients: 0, loads: Vec::new(), ..own.clone() })
        }
    };
    own.loads.iter().map(of).collect()
}
