//! The probe of `load`: a flow of few and small requests beside the load, on a connection of its
//! own, that shows what a small message suffers from it. Pure.

use super::load::{Load, OBJECT_SIZE};
use super::request::{Refusal, WARMUP, WARMUP_SHARE, refuse};
use super::{Bound, Case, Pattern, Plan, Request, Schedule};
use crate::units::{MessageRate, Span};

impl Case {
    /// The probe beside this point: small requests at this rate, as long as the point lasts.
    pub fn probe(&self, rate: MessageRate) -> Case {
        let time = self.lasts();
        let messages = (rate.0 * time.0 as f64 / 1e9) as u64;
        let object_size = self.load.object_size.min(OBJECT_SIZE);
        let load = Load {
            clients: 0,
            object_size,
            buffers: None,
            probe: true,
            objects: self.load.objects,
        };
        Case {
            size: load.message(),
            bound: Bound { count: None, time: Some(time) },
            warmup: self.warmup.min(messages / WARMUP_SHARE).min(WARMUP),
            schedule: Schedule::Poisson { rate },
            trace: None,
            load,
            ..self.clone()
        }
    }

    /// How long a round of a point lasts: as asked for, or as long as its trace.
    fn lasts(&self) -> Span {
        let last = self.trace.as_ref().and_then(|trace| trace.times_ns.last().copied());
        self.bound.time.unwrap_or(Span(last.unwrap_or(0).max(1)))
    }
}

impl Request {
    /// Adds the probes of the cases from `first` on: one beside each, and one that is alone, with
    /// which the others compare.
    pub(super) fn add_probes(
        &self,
        cases: &mut Vec<Case>,
        first: usize,
        beside: &mut Vec<Vec<u32>>,
    ) {
        let Some(rate) = self.search.probe else { return };
        let points = first..cases.len();
        cases.extend(cases.get(first).map(|point| point.probe(rate)));
        for point in points {
            beside.push(vec![point as u32, cases.len() as u32]);
            cases.push(cases[point].probe(rate));
        }
    }

    pub(super) fn check_probe(&self) -> Result<(), Refusal> {
        if self.search.probe.is_none() {
            return Ok(());
        }
        if self.pattern != Pattern::Load {
            return refuse("--probe is allowed for load only");
        }
        if self.count.is_some() {
            return refuse(
                "--probe with --count is not allowed: the probe lasts as long as the load beside \
                 it; write --time",
            );
        }
        if self.place.pairs().is_some() {
            return refuse(
                "--probe with --all-pairs or --bisection is not allowed: it is beside one load",
            );
        }
        match self.transports.iter().find(|one| one.descriptor().one_process) {
            None => Ok(()),
            Some(simulated) => refuse(format!(
                "--probe is not possible over {simulated}, where nothing runs at the same time"
            )),
        }
    }
}

impl Plan {
    /// Flows of an end at the same time, at most: its threads, and the probe's beside them.
    pub fn flows(&self) -> u32 {
        let of = |case: &Case| case.most_threads() + case.rpc.as_ref().map_or(0, |rpc| rpc.beside);
        let threads = self.cases.iter().map(of).max().unwrap_or(1);
        threads + u32::from(self.cases.iter().any(|case| case.load.probe))
    }

    /// The point beside which a probe runs; `None` where it is alone.
    pub fn probed(&self, probe: usize) -> Option<usize> {
        let is_of = |group: &&Vec<u32>| group.contains(&(probe as u32));
        let group = self.at_once.iter().find(is_of)?;
        let mut points = group.iter().map(|number| *number as usize);
        points.find(|number| self.cases.get(*number).is_some_and(|case| !case.load.probe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportKind;
    use crate::units::Bytes;

    fn request() -> Request {
        let mut request = Request::new(Pattern::Load);
        request.load.object_size = Bytes(1000);
        request.sizes = vec![request.load.message()];
        request.rates = vec![MessageRate(1e4), MessageRate(1e5)];
        request.schedule = Schedule::Periodic { rate: MessageRate(1e4) };
        request.search.probe = Some(MessageRate(500.0));
        request.time = Some(Span(2_000_000_000));
        request
    }

    #[test]
    fn each_point_has_a_probe_of_small_requests_at_the_same_time_and_one_is_alone() {
        let plan = request().plan().unwrap();
        assert_eq!((plan.cases.len(), &*plan.at_once), (5, &[vec![0, 3], vec![1, 4]][..]));
        assert_eq!([2, 3, 4].map(|probe| plan.probed(probe)), [None, Some(0), Some(1)]);
        let probes: Vec<&Case> = plan.cases.iter().filter(|case| case.load.probe).collect();
        for probe in probes {
            assert_eq!((probe.size, probe.bound.time), (Bytes(116), Some(Span(2_000_000_000))));
            assert_eq!(probe.schedule, Schedule::Poisson { rate: MessageRate(500.0) });
            assert_eq!(probe.warmup, 100);
        }
        assert_eq!(plan.flows(), 2);
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
