//! What a curve over load shows beside its points, as the record keeps it: the knee, and the
//! highest rate that keeps a bound. Pure.

use super::{Load, Spec};
use crate::pattern::prelude::*;
use crate::plan::Slo;
use crate::run::analysis::Completion;
use crate::stats::knee::{self, Bracket, Found, Point};

/// The details of the first run of a curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Landmarks {
    /// `None`: the rates show no knee.
    pub(super) knee: Option<Landmark>,
    /// The highest rate that keeps the bound; `None`: no bound was asked for, or no rate says
    /// whether it is kept.
    pub(super) highest: Option<Landmark>,
}

/// A rate of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Landmark {
    /// The run at that rate.
    pub(super) run: u32,
    /// Requests per second that were offered.
    pub(super) offered: f64,
    /// Where the rate that was looked for is relative to it.
    #[serde(rename = "lies")]
    pub(super) bracket: Bracket,
}

impl Landmarks {
    /// Of the points of a curve, each with its run.
    pub(super) fn of(points: &[(u32, Point)], slo: Option<Slo>) -> Landmarks {
        let own: Vec<Point> = points.iter().map(|(_, point)| *point).collect();
        let landmark = |Found { at, bracket }: Found| {
            let (run, point) = points[at];
            Landmark { run, offered: point.offered, bracket }
        };
        Landmarks {
            knee: knee::knee(&own).map(landmark),
            highest: slo.and_then(|slo| knee::highest(&own, slo)).map(landmark),
        }
    }
}

impl Landmarks {
    /// Those that a run has in a record; `None`: they are of other points. Older versions put the
    /// curves of all pairs of hosts together.
    pub(super) fn of_record(details: &Value, points: &[(u32, Point)]) -> Option<Landmarks> {
        let kept = Landmarks::deserialize(details).ok()?;
        let mut runs = [kept.knee, kept.highest].into_iter().flatten().map(|at| at.run);
        runs.all(|run| points.iter().any(|(own, _)| *own == run)).then_some(kept)
    }
}

/// The name of a curve's series in a study.
pub(super) fn series<C>(plan: &Plan<C>, run: u32) -> Option<&str> {
    plan.study.as_ref()?.series_of(run).map(|series| series.name.as_str())
}

/// What the points of one curve share.
pub(super) fn place<P, S>(case: &Case<P, S>, spec: &Spec) -> impl Ord + use<P, S> {
    let buffers = spec.buffers.map_or((0, 0), |buffers| (buffers.transmit, buffers.receive));
    let hosts = case.topology.hosts();
    (case.transport.name(), case.wait.name(), case.size, hosts, buffers)
}

/// What the record keeps of the curve that begins with this run; nothing in its other runs.
pub(super) fn complete(plan: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
    let is_load =
        |run: &RunSoFar| run.case.pattern.name() == Load.name() && !run.case.spec::<Spec>().probe;
    let key = |run: &RunSoFar| (series(plan, run.index as u32), place(&run.case, run.case.spec()));
    let Some(first) = runs.get(number).filter(|run| is_load(run)) else {
        return Completion::default();
    };
    let mut curve = runs.iter().filter(|run| is_load(run) && key(run) == key(first)).peekable();
    if curve.peek().is_none_or(|run| run.index != number) {
        return Completion::default();
    }
    let slo = runs.iter().filter(|run| is_load(run)).find_map(|run| run.case.spec::<Spec>().slo);
    let bounded = slo.map_or(knee::BOUNDED, |slo| slo.quantile);
    let points: Vec<(u32, Point)> =
        curve.filter_map(|run| Some((run.index as u32, run.point(bounded)?))).collect();
    let found = Landmarks::of(&points, slo);
    let is_empty = found == Landmarks::default();
    let details = if is_empty { None } else { serde_json::to_value(found).ok() };
    Completion { details, ..Completion::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HostPair;

    #[test]
    fn a_record_keeps_a_knee_at_the_edge_as_a_bound() {
        let point = |offered: f64| Point {
            offered,
            achieved: offered,
            falls_short: false,
            p50_ns: 1e4,
            bounded_ns: 3e4,
            generator_bound: false,
        };
        let points = [(4, point(2e4)), (5, point(1e5)), (6, point(3e5))];
        let slo = Slo { quantile: 0.99, below: Span(20_000) };
        let json = serde_json::to_value(Landmarks::of(&points, Some(slo))).unwrap();
        let wanted = serde_json::json!({
            "knee": { "run": 6, "offered": 3e5, "lies": "at_least" },
            "highest": { "run": 4, "offered": 2e4, "lies": "at_most" },
        });
        assert_eq!(json, wanted);
    }

    #[test]
    fn the_same_load_between_other_hosts_is_another_curve() {
        let case =
            crate::pattern::load::request(Default::default()).plan().unwrap().cases.remove(0);
        let on = |server| {
            let topology = case.topology.clone().on(HostPair { client: None, server });
            Case { topology, ..case.clone() }
        };
        let is_one = |a: &Case, b: &Case| place(a, a.spec()) == place(b, b.spec());
        assert!(is_one(&on(Some(1)), &on(Some(1))));
        assert!(!is_one(&on(Some(0)), &on(Some(1))) && !is_one(&on(None), &on(Some(0))));
    }
}
