//! Pairs and matchings whose figures are known.

use super::*;
use wiregauge_base::units::Bytes;
use wiregauge_figures::record::schema::{CaseRecord, Figure, RateFigure, Round};
use wiregauge_plan::pairs::{AtOnce, Place};
use wiregauge_plan::{HostSpec, Request};
use wiregauge_stats::{Metric, Rate, Value, summarize};

fn ping_pong() -> Request {
    wiregauge_patterns::latency::request(Default::default())
}

fn flow() -> Request {
    wiregauge_patterns::bandwidth::request(Default::default())
}

fn plan(request: Request, hosts: usize, pairs: Pairs) -> Plan {
    let spec = |number: usize| {
        let (host, ssh) = (format!("n{number}"), vec!["ssh".to_string()]);
        Some(HostSpec { host, ssh, ..HostSpec::default() })
    };
    let place = Place { nodes: (0..hosts).map(spec).collect(), which: pairs, ..Place::default() };
    Request { place, rounds: Some(2), ..request }.plan().unwrap()
}

fn run(plan: &Plan, index: usize) -> Run {
    Run {
        index: index as u32,
        label: plan.label(index),
        case: CaseRecord::from(&plan.cases[index]),
        headline: String::new(),
        complete: true,
        stopped: String::new(),
        rounds: Vec::new(),
        figures: Vec::new(),
        rates: Vec::new(),
        details: None,
        counts: Default::default(),
        stalls: Vec::new(),
        client_hosts: Vec::new(),
        included: Default::default(),
        warnings: Vec::new(),
    }
}

/// Latencies of some 1 us, some ns more with each pair, and what these add.
fn latency(plan: &Plan, index: usize, more: f64) -> Run {
    let around = |k: u32| 1000.0 + index as f64 + more + f64::from(k % 11);
    let rounds: Vec<Vec<f64>> = (0..2).map(|_| (0..1000).map(around).collect()).collect();
    let summary = summarize(&rounds, 1e9);
    let figure =
        Figure { metric: Metric::HalfRtt, unit: "ns".into(), summary, clock_bound_ns: None };
    Run { headline: "half_rtt".into(), figures: vec![figure], ..run(plan, index) }
}

fn bandwidth(plan: &Plan, index: usize, rounds: &[f64], overlap: f64) -> Run {
    let rate = Rate {
        value: rounds[0],
        interval: Some(interval(rounds[0])),
        basis: wiregauge_stats::Basis::Pooled,
        rounds: rounds.to_vec(),
    };
    let figure = RateFigure { metric: RateMetric::Bandwidth, unit: "B/s".into(), rate };
    let round = Round { overlap: Some(overlap), ..Round::default() };
    let headline = "bandwidth".into();
    Run { headline, rates: vec![figure], rounds: vec![round], ..run(plan, index) }
}

fn interval(value: f64) -> Interval {
    Interval { low: Value(value * 0.99), high: Value(value * 1.01) }
}

#[test]
fn a_pair_that_is_a_fifth_slower_is_named_and_one_that_differs_as_all_do_is_not() {
    let plan = plan(ping_pong(), 4, Pairs::All { at_once: AtOnce::Matching });
    let runs = |slow: Option<usize>| -> Vec<Run> {
        let more = |index| if slow == Some(index) { 250.0 } else { 0.0 };
        (0..6).map(|index| latency(&plan, index, more(index))).collect()
    };
    let found = figures(&plan, &runs(Some(4))).unwrap();
    assert_eq!(found.slow.iter().map(|pair| pair.run).collect::<Vec<_>>(), [4]);
    assert_eq!(found.slow[0].metric, "half_rtt");
    assert!(found.slow[0].value > 1240.0 && found.slow[0].median < 1020.0, "{found:?}");
    assert!(figures(&plan, &runs(None)).unwrap().slow.is_empty());
    assert!(figures(&plan, &runs(Some(0))[..3]).unwrap().slow.is_empty(), "too few");
}

#[test]
fn the_slowest_rate_is_the_lowest() {
    let plan = plan(flow(), 3, Pairs::All { at_once: AtOnce::Pair });
    let rate = |index: usize| if index == 2 { 5e8 } else { 1e9 + index as f64 * 1e6 };
    let runs: Vec<Run> = (0..6).map(|index| bandwidth(&plan, index, &[rate(index)], 1.0)).collect();
    let slow = figures(&plan, &runs).unwrap().slow;
    assert_eq!(slow.iter().map(|pair| pair.run).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_bisection_is_the_mean_over_matchings_of_what_all_pairs_carry() {
    let plan = plan(flow(), 4, Pairs::Bisection { matchings: 2 });
    // Two matchings of two pairs, two rounds each.
    let rates = [[1e9, 2e9], [1e9, 1e9], [3e9, 3e9], [3e9, 4e9]];
    let runs: Vec<Run> = rates
        .iter()
        .enumerate()
        .map(|(index, rounds)| bandwidth(&plan, index, rounds, 0.9 - 0.1 * index as f64))
        .collect();
    let found = figures(&plan, &runs).unwrap().bisections;
    let [found] = found.as_slice() else { panic!("{found:?}") };
    // Geometric means of 2 and 3 GB/s and of 6 and 7, and the mean of both.
    fn near(found: f64, known: f64) -> bool {
        (found / known - 1.0).abs() < 1e-12
    }
    assert!(
        near(found.matchings[0].0, 6e18_f64.sqrt()) && near(found.matchings[1].0, 42e18_f64.sqrt())
    );
    let [first, second] = [6e18_f64.sqrt(), 42e18_f64.sqrt()];
    assert!(near(found.bandwidth.value, (first + second) / 2.0) && found.pairs == 2);
    assert_eq!(
        found.bandwidth.rounds,
        found.matchings.iter().map(|value| value.0).collect::<Vec<_>>()
    );
    assert!((found.overlap.unwrap() - 0.6).abs() < 1e-9);
    assert!(found.bandwidth.interval.is_some());
}

#[test]
fn a_matching_in_which_a_pair_failed_has_no_sum() {
    let plan = plan(flow(), 4, Pairs::Bisection { matchings: 2 });
    let mut runs: Vec<Run> =
        (0..4).map(|index| bandwidth(&plan, index, &[1e9, 1e9], 1.0)).collect();
    runs[1].rates.clear();
    let found = figures(&plan, &runs).unwrap().bisections;
    assert_eq!(found[0].bandwidth.value, 2e9);
    assert!(found[0].matchings[0].0.is_nan());
    assert_eq!(found[0].bandwidth.rounds, [2e9]);
    // It is read as it was written.
    let text = serde_json::to_string(&found[0]).unwrap();
    let again: Bisection = serde_json::from_str(&text).unwrap();
    assert!(again.matchings[0].0.is_nan() && again.bandwidth == found[0].bandwidth, "{text}");
}

#[test]
fn one_pair_shows_nothing_beside() {
    assert_eq!(figures(&plan(ping_pong(), 2, Pairs::First), &[]), None);
}

/// What is slow of pairs with these rates, each with the upper end of its interval.
fn slow_rates(rates: &[(f64, f64)]) -> Vec<(u32, f64)> {
    let plan = plan(flow(), 4, Pairs::All { at_once: AtOnce::Pair });
    let run = |(index, (value, high)): (usize, &(f64, f64))| {
        let interval = Some(Interval { low: Value(0.0), high: Value(*high) });
        let mut run = bandwidth(&plan, index, &[*value], 1.0);
        run.rates[0].rate.interval = interval;
        run
    };
    let runs: Vec<Run> = rates.iter().enumerate().map(run).collect();
    let slow = figures(&plan, &runs).unwrap().slow;
    slow.iter().map(|pair| (pair.run, pair.median)).collect()
}

#[test]
fn a_pair_is_slow_beyond_a_tenth_and_three_and_a_half_spreads() {
    let exact = |rates: &[f64]| slow_rates(&rates.iter().map(|v| (*v, *v)).collect::<Vec<_>>());
    // Most are alike, so that there is no spread: ln(0.9) is below -ln(1.1), ln(0.92) is not.
    assert_eq!(exact(&[100.0, 90.0, 100.0, 100.0]), [(1, 100.0)]);
    assert_eq!(exact(&[100.0, 92.0, 100.0, 100.0]), []);
    assert_eq!(exact(&[100.0, 90.0, 100.0]), [], "of three");
    // Distances of 0, 0, ln(1.1) twice and that of the last: 3.5 * 1.4826 * ln(1.1) is 0.4946, and
    // 60 lies 0.511 below, 62 lies 0.478.
    let spread = |last: f64| exact(&[100.0, 110.0, last, 100.0, 100.0 / 1.1]);
    assert_eq!((spread(60.0), spread(62.0)), (vec![(2, 100.0)], vec![]));
    // The interval of one reaches to where the others are.
    let reaches = [(100.0, 100.0), (50.0, 95.0), (100.0, 100.0), (60.0, 70.0), (100.0, 100.0)];
    assert_eq!(slow_rates(&reaches), [(3, 100.0)]);
    let two = [100.0, 50.0, 100.0, 40.0, 100.0];
    assert_eq!(exact(&two), [(3, 100.0), (1, 100.0)], "the slowest first");
}

#[test]
fn the_slowest_latency_is_the_highest_and_comes_first() {
    let plan = plan(ping_pong(), 4, Pairs::All { at_once: AtOnce::Matching });
    let more = [0.0, 300.0, 0.0, 500.0, 0.0, 0.0];
    let mut runs: Vec<Run> =
        more.iter().enumerate().map(|(index, more)| latency(&plan, index, *more)).collect();
    let slow = |runs: &[Run]| {
        figures(&plan, runs).unwrap().slow.iter().map(|pair| pair.run).collect::<Vec<_>>()
    };
    assert_eq!(slow(&runs), [3, 1]);
    // Its interval begins where the others are.
    for quantile in &mut runs[3].figures[0].summary.quantiles {
        quantile.interval = Some(Interval { low: Value(1000.0), high: Value(2000.0) });
    }
    assert_eq!(slow(&runs), [1]);
}

#[test]
fn rounds_and_matchings_that_were_not_measured_are_left_out() {
    let plan = plan(flow(), 4, Pairs::Bisection { matchings: 2 });
    let runs = [bandwidth(&plan, 0, &[1e9, 2e9], 1.0), bandwidth(&plan, 1, &[3e9], 1.0)];
    let found = figures(&plan, &runs).unwrap().bisections;
    assert_eq!((found[0].matchings.as_slice(), found[0].pairs), (&[Value(4e9)][..], 2));
    assert_eq!(found[0].bandwidth.rounds, [4e9], "the round that both have");
    let three: Vec<Run> = (0..3).map(|index| bandwidth(&plan, index, &[1e9], 1.0)).collect();
    let found = figures(&plan, &three).unwrap().bisections;
    assert_eq!(
        (found[0].matchings.as_slice(), found[0].pairs),
        (&[Value(2e9), Value(1e9)][..], 2),
        "the most"
    );
}

#[test]
fn runs_that_differ_in_more_than_their_hosts_are_not_compared() {
    let request = || Request { sizes: vec![Bytes(8), Bytes(64)], ..ping_pong() };
    let plan = plan(request(), 4, Pairs::All { at_once: AtOnce::Pair });
    let runs: Vec<Run> = (0..plan.cases.len()).map(|index| run(&plan, index)).collect();
    let groups = alike(&runs, false);
    assert_eq!(groups.len(), 2);
    for group in groups {
        let size = plan.cases[group[0].index as usize].size;
        assert!(group.iter().all(|run| plan.cases[run.index as usize].size == size));
        assert_eq!(group.len(), plan.cases.len() / 2);
    }
}
