//! What a curve over load shows beside its points, as the record keeps it: the knee, and the
//! highest rate that keeps a bound. Pure.

use super::{Load, Spec};
use crate::prelude::*;
use wiregauge_analysis::pattern::Completion;
use wiregauge_plan::Slo;
use wiregauge_stats::knee::{self, Bracket, Found, Knee, Point};

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
    /// The lowest and the highest rate of those that cannot be told from a knee. `None` in older
    /// records, and of other landmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alike: Option<[f64; 2]>,
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
            Landmark { run, offered: point.offered, alike: None, bracket }
        };
        Landmarks {
            knee: knee::knee(&own).map(|Knee { best, lowest, highest, bracket }| Landmark {
                alike: Some([lowest, highest].map(|at| own[at].offered)),
                ..landmark(Found { at: best, bracket })
            }),
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
    let connections = case.topology.connections_each();
    (case.transport.name(), case.wait.name(), case.size, hosts, buffers, connections)
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
    use wiregauge_analysis::figures::Seen;
    use wiregauge_analysis::result::RoundResult;
    use wiregauge_clock::Timebase;
    use wiregauge_figures::record::schema::Round;
    use wiregauge_plan::{HostPair, study};
    use wiregauge_stats::compare::Estimate;
    use wiregauge_stats::{Interval, Value};

    fn exactly(value: f64) -> Estimate {
        (value, Some(Interval { low: Value(value), high: Value(value) })).into()
    }

    fn point(offered: f64) -> Point {
        Point {
            offered,
            achieved: exactly(offered),
            falls_short: false,
            p50: Some(exactly(1e4)),
            bounded_ns: 3e4,
            bounded_from_ns: 3e4,
            bounded_value_ns: 3e4,
            generator_bound: false,
        }
    }

    #[test]
    fn a_record_keeps_a_knee_at_the_edge_as_a_bound() {
        let points = [(4, point(2e4)), (5, point(1e5)), (6, point(3e5))];
        let slo = Slo { quantile: 0.99, below: Span(20_000) };
        let json = serde_json::to_value(Landmarks::of(&points, Some(slo))).unwrap();
        let wanted = serde_json::json!({
            "knee": { "run": 6, "offered": 3e5, "alike": [3e5, 3e5], "lies": "at_least" },
            "highest": { "run": 4, "offered": 2e4, "lies": "at_most" },
        });
        assert_eq!(json, wanted);
    }

    #[test]
    fn the_same_load_between_other_hosts_is_another_curve() {
        let case = crate::load::request(Default::default()).plan().unwrap().cases.remove(0);
        let on = |server| {
            let topology = case.topology.clone().on(HostPair { client: None, server });
            Case { topology, ..case.clone() }
        };
        let is_one = |a: &Case, b: &Case| place(a, a.spec()) == place(b, b.spec());
        assert!(is_one(&on(Some(1)), &on(Some(1))));
        assert!(!is_one(&on(Some(0)), &on(Some(1))) && !is_one(&on(None), &on(Some(0))));
    }

    #[test]
    fn a_record_whose_landmarks_are_runs_of_other_curves_has_none() {
        let at = |run| Landmark { run, offered: 1e5, alike: None, bracket: Bracket::AtLeast };
        let kept = Landmarks { knee: Some(at(4)), highest: Some(at(5)) };
        let details = serde_json::to_value(&kept).unwrap();
        let of = |runs: &[u32]| {
            let points: Vec<(u32, Point)> = runs.iter().map(|run| (*run, point(1e5))).collect();
            Landmarks::of_record(&details, &points)
        };
        assert_eq!((of(&[3, 4, 5]), of(&[3, 4, 6])), (Some(kept), None));
    }

    /// A run of 100 requests, of which each takes so long.
    fn run(index: usize, case: &Case, rate: f64, took_ns: f64) -> RunSoFar {
        let schedule = Schedule::Periodic { rate: MessageRate(rate) };
        let case = Case { schedule, ..case.clone() };
        let analysis = crate::registry::analysis(case.pattern.name()).unwrap();
        let sample = |number: u32| {
            let at = f64::from(number) / rate * 1e9;
            let stamps = [at, at, f64::NAN, at + took_ns, f64::NAN];
            Sample::new(number.into(), 64, stamps, Flags::default())
        };
        let samples =
            RoundSamples { samples: (0..100).map(sample).collect(), ..RoundSamples::default() };
        let counts = Counts { sent: 100, received: 100, ..Counts::default() };
        let time = Timebase::nanoseconds(Ticks(0));
        let seen = Seen { counts: Vec::new(), samples, times: Times::of_one_host(&time) };
        let finished = RoundResult::default();
        let mut run = RunSoFar::new(index, &case, analysis, &[], 1);
        run.take(&case, Round { counts, ..Round::default() }, finished, seen);
        run
    }

    #[test]
    fn the_first_run_of_a_curve_keeps_the_knee_of_its_points() {
        let mut plan = crate::load::request(Default::default()).plan().unwrap();
        let other = crate::latency::request(Default::default()).plan().unwrap();
        let load = plan.cases[0].clone();
        let longer = Case { size: Bytes(4000), ..load.clone() };
        let probe = load.with_spec(Spec { probe: true, ..*load.spec::<Spec>() });
        let runs = [
            run(0, &other.cases[0], 1e3, 1e3),
            run(1, &probe, 1e3, 1e3),
            run(2, &longer, 1e3, 1e3),
            run(3, &load, 1e4, 10e3),
            run(4, &load, 2e4, 11e3),
            run(5, &load, 4e4, 40e3),
        ];
        let knee = |plan: &Plan, number| {
            let details = complete(plan, &runs, number).details?;
            Some(Landmarks::deserialize(details).unwrap().knee?.run)
        };
        assert_eq!([0, 1, 4, 5].map(|number| knee(&plan, number)), [None; 4]);
        assert_eq!(knee(&plan, 3), Some(4));
        let series =
            |name: &str, cases: &[u32]| study::Series { name: name.into(), cases: cases.to_vec() };
        plan.study = Some(study::Study {
            name: "study".into(),
            title: String::new(),
            source: None,
            quick: false,
            series: vec![series("a", &[0, 1, 2, 3]), series("b", &[4, 5])],
            graphs: Vec::new(),
        });
        assert_eq!((super::series(&plan, 3), super::series(&plan, 4)), (Some("a"), Some("b")));
        assert_eq!([3, 4].map(|number| knee(&plan, number)), [None; 2], "too few points of each");
    }
}
