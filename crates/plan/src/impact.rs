//! A victim's case alone and beside congestors, as one plan. Pure.

use super::request::refuse;
use super::study::{self, Study};
use super::{Bound, Impact, Plan, Request, UsageError};
use wiregauge_base::units::Span;

/// From the start of the congestors to that of the victim: their queues are full by then.
pub const LEAD: Span = Span(100_000_000);
/// How much longer than the victim's time they run, beside their own warm-up: its last message may
/// take long.
const TAIL: Span = Span(200_000_000);
/// Time of a victim's round where nothing else is asked for.
const TIME: Span = Span(500_000_000);
/// The name of the series of the victim alone.
const ALONE: &str = "alone";

/// A plan of a victim's case alone and beside each congestor, whose name and request are given.
pub fn plan(mut victim: Request, congestors: Vec<(String, Request)>) -> Result<Plan, UsageError> {
    check_victim(&victim)?;
    victim.time.get_or_insert(TIME);
    let own = victim.clone().plan()?;
    let [case] = own.cases.as_slice() else {
        let cases = own.cases.len();
        return refuse(format!(
            "impact takes one victim, and these are {cases}: use one transport, wait mode and size"
        ));
    };
    let label = case.label();
    // On hosts of their own congestors have all CPUs.
    let cpus = if victim.place.nodes.is_empty() { case.topology.cpu_pairs() } else { 0 };
    let length = case.warmup_time().unwrap_or_default().0 + victim.time.unwrap_or(TIME).0;
    let mut requests = vec![(ALONE.to_owned(), victim.clone())];
    for (name, request) in &congestors {
        let request = Request {
            time: Some(Span(LEAD.0 + length + TAIL.0)),
            rounds: victim.rounds,
            until: victim.until,
            ..request.clone()
        };
        requests.push((format!("under {name}"), victim.clone()));
        requests.push((format!("congestor {name}"), request));
    }
    let study = Study {
        name: "impact".into(),
        title: format!("What {label} suffers from congestion"),
        source: None,
        quick: false,
        series: Vec::new(),
        graphs: Vec::new(),
    };
    let mut plan = Plan { name: "impact".into(), ..study::plan(study, &requests)? };
    let cases = |series: &str| {
        let own = plan.study.as_ref().map(|study| study.cases(series));
        own.unwrap_or_default().to_vec()
    };
    let mut found = Vec::new();
    for (name, _) in &congestors {
        let (under, beside) =
            (cases(&format!("under {name}")), cases(&format!("congestor {name}")));
        let ([under], [_]) = (under.as_slice(), beside.as_slice()) else {
            return refuse(format!("--congestor: {name} is {} cases: use one", beside.len()));
        };
        found.push(Impact { congestor: name.clone(), alone: 0, under: *under, beside });
    }
    for Impact { under, beside, .. } in &found {
        plan.cases[*under as usize].part.after = LEAD;
        for congestor in beside {
            plan.cases[*congestor as usize].part.cpus_before = cpus;
        }
        plan.concurrent.push(std::iter::once(*under).chain(beside.iter().copied()).collect());
    }
    plan.impacts = found;
    Ok(plan)
}

/// Refuses what no congestor can be measured beside.
pub fn check_victim(victim: &Request) -> Result<(), UsageError> {
    let name = victim.pattern.name();
    ensure!(
        victim.count.is_none() && victim.warmup.is_none(),
        "impact: congestors run for a known time: use --time instead of --count and --warmup"
    );
    let endless = Bound { count: None, time: Some(super::FOREVER) };
    ensure!(
        victim.time != endless.time,
        "impact measures alone and under congestion in turns: use --time instead of --forever"
    );
    ensure!(
        victim.simulated().is_none() && victim.injected_clock_error.is_none(),
        "impact needs real time at both ends: nothing runs beside {name} in a simulation, or by a \
         clock that was made wrong"
    );
    Ok(())
}
