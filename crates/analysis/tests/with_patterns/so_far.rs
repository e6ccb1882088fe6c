//! Figures of a run that goes on.

use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_analysis::so_far::*;
use wiregauge_patterns::{bandwidth, latency, registry};
use wiregauge_plan::Plan;
use wiregauge_stats::rate::Delivered;

fn run(plan: &Plan) -> RunSoFar {
    let case = &plan.cases[0];
    RunSoFar::new(0, case, registry::analysis(case.pattern.name()).unwrap(), &[], 1)
}

#[test]
fn running_figures_are_those_of_all_rounds_before() {
    let mut latency = run(&latency::request(Default::default()).plan().unwrap());
    assert_eq!(so_far(&latency), None);
    let metric = latency.analysis.metrics(&latency.case)[0];
    let round = |from: u32| (from..from + 50_000).map(f64::from).collect::<Vec<f64>>();
    latency.series.insert(metric, vec![round(1), round(50_001)]);
    let Some(SoFar::Times { p50_ns, p99_ns, .. }) = so_far(&latency) else { panic!() };
    assert!((p50_ns - 50_000.0).abs() < 20.0 && (p99_ns - 99_000.0).abs() < 20.0);
    let mut rate = run(&bandwidth::request(bandwidth::Spec::default()).plan().unwrap());
    assert_eq!(so_far(&rate), None);
    rate.work.delivered = [1e6, 3e6].map(|work| Delivered { work, seconds: 2.0 }).to_vec();
    assert_eq!(so_far(&rate), Some(SoFar::Rate(1e6)));
}
