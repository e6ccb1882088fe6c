//! Rounds of several cases at the same time, on pairs of hosts.

use crate::conditions::Conditions;
use crate::period::Watched;
use crate::round;
use crate::start_barrier::{BarrierShared, CHECK};
use std::sync::atomic::{AtomicU64, Ordering};
use wiregauge_analysis::result::RoundResult;
use wiregauge_base::threads;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Case;

/// Runs a round of each case at the same time.
pub fn run(
    cases: &[Case],
    conditions: &Conditions<'_>,
    watch: &mut dyn FnMut(Watched),
) -> Vec<Result<RoundResult, Fault>> {
    let starts_together = cases.len() > 1 || cases.iter().any(has_several_clients);
    let clock = (starts_together && all_known(cases, conditions)).then_some(conditions.clock);
    let ranks = cases.iter().map(|case| case.topology.ranks.len()).sum();
    let shared = BarrierShared::new(cases.len(), ranks, clock);
    if let [case] = cases {
        return vec![round::run(case, conditions, shared.side(), watch)];
    }
    let messages: Vec<AtomicU64> = cases.iter().map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let one = |(number, case): (usize, &'_ Case)| {
            let (barrier, messages) = (shared.side(), &messages);
            let case = case.clone();
            threads::spawn_scoped("run a round beside others", scope, move || {
                let mut count = |now: Watched| {
                    messages[number].store(now.messages, Ordering::Relaxed);
                };
                round::run(&case, conditions, barrier, &mut count)
            })
        };
        let started: Vec<_> = cases.iter().enumerate().map(one).collect();
        while started.iter().flatten().any(|thread| !thread.is_finished()) {
            let messages = messages.iter().map(|one| one.load(Ordering::Relaxed)).sum();
            watch(Watched { messages, period: None });
            std::thread::sleep(CHECK);
        }
        let panicked = |_| Err(Fault::new("a thread of the controller panicked"));
        started.into_iter().map(|thread| thread?.join().unwrap_or_else(panicked)).collect()
    })
}

/// Whether clients on several hosts are to begin together.
pub fn has_several_clients(case: &Case) -> bool {
    case.topology.has_several_clients()
}

/// Whether the clock of each rank is known. A simulated transport has none, and with an injected
/// clock error an agent waits by another time than its clock shows.
fn all_known(cases: &[Case], conditions: &Conditions<'_>) -> bool {
    let is_known = |case: &Case| {
        let mut ranks = case.topology.ranks.iter();
        !case.transport.descriptor().one_process
            && ranks.all(|rank| conditions.clock_of(rank.host).is_some())
    };
    conditions.injected_clock_error.is_none() && cases.iter().all(is_known)
}

/// The fraction of the time from the first start to the last end in which all rounds ran.
pub fn overlap(finished: &[Result<RoundResult, Fault>]) -> Option<f64> {
    let ran: Option<Vec<_>> =
        finished.iter().map(|one| one.as_ref().ok().and_then(|one| one.ran)).collect();
    let ran = ran.filter(|ran| ran.len() > 1)?;
    let (first, last) = (ran.iter().map(|r| r.0).min()?, ran.iter().map(|r| r.1).max()?);
    let (begun, over) = (ran.iter().map(|r| r.0).max()?, ran.iter().map(|r| r.1).min()?);
    let whole = (last - first).as_secs_f64();
    (whole > 0.0).then(|| over.saturating_duration_since(begun).as_secs_f64() / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use wiregauge_analysis::result::ThreadResult;
    use wiregauge_transport::Role;

    #[test]
    fn the_overlap_is_what_all_have_in_common() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ran = |from, to| {
            let part = || ThreadResult {
                arena: wiregauge_sample::arena::Arena::create(1).unwrap(),
                outcome: None,
                host: None,
                effective_settings: Vec::new(),
            };
            let ran = Some((at(from), at(to)));
            let rank = |role| round::RankResult { role, threads: vec![part()] };
            let ranks = vec![rank(Role::Client), rank(Role::Server)];
            Ok(RoundResult { ranks, ran, ..RoundResult::default() })
        };
        let share = overlap(&[ran(0, 90), ran(10, 100)]).unwrap();
        assert!((share - 0.8).abs() < 1e-9, "{share}");
        assert_eq!(overlap(&[ran(0, 10), ran(20, 40)]), Some(0.0));
        assert_eq!(overlap(&[ran(0, 10)]), None);
    }
}
