//! The probe of `load`: a flow of few and small requests beside the load, on a connection of its
//! own, that shows what a small message suffers from it. Pure.

use super::spec::{Asked, OBJECT_SIZE, Spec};
use crate::plan::request::{WARMUP, WARMUP_SHARE, refuse};
use crate::plan::{Bound, Case, CasesSoFar, Plan, Refusal, Request, Schedule};
use crate::units::{MessageRate, Span};

/// The probe beside a point: small requests at this rate, as long as the point lasts.
pub(super) fn probe(point: &Case, rate: MessageRate) -> Case {
    let time = lasts(point);
    let messages = (rate.0 * time.0 as f64 / 1e9) as u64;
    let of = point.spec::<Spec>();
    let spec = Spec {
        clients: 0,
        object_size: of.object_size.min(OBJECT_SIZE),
        buffers: None,
        probe: true,
        search: None,
        ..*of
    };
    Case {
        size: spec.message(),
        bound: Bound { count: None, time: Some(time) },
        warmup: point.warmup.min(messages / WARMUP_SHARE).min(WARMUP),
        schedule: Schedule::Poisson { rate },
        trace: None,
        ..point.with_spec(spec)
    }
}

/// How long a round of a point lasts: as asked for, or as long as its trace.
fn lasts(point: &Case) -> Span {
    let last = point.trace.as_ref().and_then(|trace| trace.times_ns.last().copied());
    point.bound.time.unwrap_or(Span(last.unwrap_or(0).max(1)))
}

/// Adds the probes of the cases from `first` on: one beside each, and one that runs alone, with
/// which the others compare.
pub(super) fn add(asked: &Asked, so_far: &mut CasesSoFar, first: usize) {
    let Some(rate) = asked.spec.probe_rate else { return };
    let CasesSoFar { cases, concurrent } = so_far;
    let points = first..cases.len();
    let alone = cases.get(first).map(|point| probe(point, rate));
    cases.extend(alone);
    for point in points {
        concurrent.push(vec![point as u32, cases.len() as u32]);
        cases.push(probe(&cases[point], rate));
    }
}

/// Refuses a probe where it cannot run beside the load.
pub(super) fn check(asked: &Asked, request: &Request) -> Result<(), Refusal> {
    if asked.spec.probe_rate.is_none() {
        return Ok(());
    }
    if request.count.is_some() {
        return refuse(
            "--probe with --count is not allowed: the probe lasts as long as the load beside it; \
             write --time",
        );
    }
    if request.place.pairs().is_some() {
        return refuse(
            "--probe with --all-pairs or --bisection is not allowed: it is beside one load",
        );
    }
    match request.transports.iter().find(|one| one.descriptor().one_process) {
        None => Ok(()),
        Some(simulated) => refuse(format!(
            "--probe is not possible over {simulated}, where nothing runs at the same time"
        )),
    }
}

/// The point beside which a probe runs; `None` where it runs alone.
pub fn probed(plan: &Plan, probe: usize) -> Option<usize> {
    let group = plan.concurrent.iter().find(|group| group.contains(&(probe as u32)))?;
    let mut points = group.iter().map(|number| *number as usize);
    points.find(|number| plan.cases.get(*number).is_some_and(|case| !case.spec::<Spec>().probe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::load;
    use crate::transport::TransportKind;
    use crate::units::Bytes;

    fn request() -> Request {
        let asked = Asked {
            spec: Spec {
                object_size: Bytes(1000),
                probe_rate: Some(MessageRate(500.0)),
                ..Spec::default()
            },
            rates: vec![MessageRate(1e4), MessageRate(1e5)],
            clients: Vec::new(),
        };
        let mut request = load::request(asked);
        request.schedule = Schedule::Periodic { rate: MessageRate(1e4) };
        request.time = Some(Span(2_000_000_000));
        request
    }

    #[test]
    fn each_point_has_a_probe_of_small_requests_at_the_same_time_and_one_is_alone() {
        let plan = request().plan().unwrap();
        assert_eq!((plan.cases.len(), &*plan.concurrent), (5, &[vec![0, 3], vec![1, 4]][..]));
        assert_eq!([2, 3, 4].map(|probe| probed(&plan, probe)), [None, Some(0), Some(1)]);
        let probes: Vec<&Case> =
            plan.cases.iter().filter(|case| case.spec::<Spec>().probe).collect();
        for probe in probes {
            assert_eq!((probe.size, probe.bound.time), (Bytes(116), Some(Span(2_000_000_000))));
            assert_eq!(probe.schedule, Schedule::Poisson { rate: MessageRate(500.0) });
            assert_eq!(probe.warmup, 100);
        }
        assert_eq!(plan.cpus_at_once(), 2);
        let labels: Vec<String> = (0..5).map(|case| plan.label(case)).collect();
        assert_eq!(labels[2], "probe tcp busy 116 B at 500/s, alone");
        assert_eq!(labels[4], format!("probe tcp busy 116 B at 500/s, beside {}", labels[1]));
    }

    #[test]
    fn a_probe_that_cannot_be_beside_a_load_is_refused() {
        let refused = |request: Request| request.plan().unwrap_err().0;
        let counted = Request { count: Some(10), time: None, ..request() };
        assert!(refused(counted).contains("write --time"));
        let simulated = Request { transports: vec![TransportKind::Synthetic], ..request() };
        assert!(refused(simulated).contains("not possible over synthetic"));
    }
}
