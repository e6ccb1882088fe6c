//! The instrument's overhead.

use wiregauge_analysis::overhead::*;
use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_figures::record::schema::Figure;
use wiregauge_stats::Metric;
use wiregauge_stats::summarize;

#[test]
fn a_stall_of_the_host_is_not_what_the_loop_adds() {
    // Five rounds of 2000 messages of 20 ns, one in 50 of 30 ns; the host stalls in some.
    let mut rounds = vec![vec![20.0; 2000]; 5];
    rounds.iter_mut().for_each(|round| round.iter_mut().step_by(50).for_each(|ns| *ns = 30.0));
    for at in [5, 6, 7, 8, 300, 700, 701, 702, 703, 1999] {
        rounds[2][at] = 4.7e3;
        rounds[4][at] = 1e6;
    }
    let found = of_rounds(rounds.iter().map(Vec::as_slice), vec![2.0, 3.0, 9.0], 10.0);
    assert_eq!((found.overhead_p50_ns, found.overhead_p99_ns), (20.0, 30.0));
    assert_eq!((found.error_ns, found.count, found.passes), (40.0, 10_000, 50));
    assert_eq!(found.recording_ns, 3.0);
    assert!(of_rounds(std::iter::empty(), Vec::new(), 10.0).error_ns.is_nan());
}

#[test]
fn rounds_in_simulated_time_say_nothing_of_the_overhead() {
    use wiregauge_transport::TransportKind;
    let run = |transport, ns: f64| {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        request.transports = vec![transport];
        let case = request.plan().unwrap().cases.remove(0);
        let analysis = wiregauge_patterns::registry::analysis(case.pattern.name()).unwrap();
        let mut run = RunSoFar::new(0, &case, analysis, &[], 1);
        run.overhead = vec![vec![ns; 2000]];
        run
    };
    let real = run(TransportKind::default(), 20.0);
    let found = instrument(&[real, run(TransportKind::SIMULATED, 0.0)], 10.0);
    assert_eq!((found.overhead_p50_ns, found.error_ns, found.count), (20.0, 30.0, 2000));
}

#[test]
fn a_figure_below_the_overhead_is_told() {
    let instrument = of_rounds([&[40.0; 200][..]].into_iter(), vec![1.0], 10.0);
    let warned = |metric, ns: f64| {
        let summary = summarize(&[vec![ns; 100]], f64::INFINITY);
        let figure = Figure { metric, unit: "ns".into(), summary, clock_bound_ns: None };
        below(&figure, &instrument).is_some()
    };
    assert!(warned(Metric::Rtt, 50.0) && !warned(Metric::Rtt, 51.0));
    assert!(warned(Metric::HalfRtt, 25.0) && !warned(Metric::HalfRtt, 26.0));
    assert!(!warned(Metric::Lateness, 1.0));
}
