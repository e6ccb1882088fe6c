//! What congestors cost a victim, on made-up runs.

use wiregauge_analysis::impact::*;
use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_base::units::Span;
use wiregauge_figures::record::schema::{Begin, Figure, RateFigure, Start, Thread};
use wiregauge_figures::record::schema::{Factor, Round, Run};
use wiregauge_patterns::{bandwidth, exchange, latency};
use wiregauge_plan::{Case, CpuPair, Plan, impact};
use wiregauge_stats::Value;
use wiregauge_stats::{Interval, Metric, Rate, RateMetric, summarize};

/// A victim alone, beside one congestor, and this one.
fn plan() -> Plan {
    let spec = exchange::Spec { chaotic: true, ..Default::default() };
    let asked = exchange::ExchangeRequest {
        spec,
        nodes: vec![3],
        rules: vec![exchange::Rule::Incast],
        spreads: vec![0.0],
        ..Default::default()
    };
    let incast = ("incast".to_owned(), exchange::request(asked));
    impact::plan(latency::request(Default::default()), vec![incast]).unwrap()
}

fn run_of(plan: &Plan, index: usize, case: &Case) -> Run {
    let analysis = wiregauge_patterns::registry::analysis(case.pattern.name()).unwrap();
    RunSoFar::new(index, case, analysis, &[], 1).without_rounds(plan)
}

fn runs(plan: &Plan) -> Vec<Run> {
    plan.cases.iter().enumerate().map(|(at, case)| run_of(plan, at, case)).collect()
}

fn figure(rounds: &[Vec<f64>]) -> Figure {
    let summary = summarize(rounds, 1e9);
    Figure { metric: Metric::HalfRtt, unit: "ns".into(), summary, clock_bound_ns: None }
}

/// A round whose client began so late and lasted so long, in ms.
fn round(late_ms: f64, length_ms: f64) -> Round {
    let client = Some(Begin { late_ns: late_ms * 1e6, ..Begin::default() });
    let start = Some(Start { client, server: None, spread_ns: 0.0 });
    Round { start, length_ns: length_ms * 1e6, ..Round::default() }
}

#[test]
fn each_figure_has_its_factor_with_an_interval() {
    let plan = plan();
    let mut runs = runs(&plan);
    let level = |ns: f64| (0..1000).map(|i| ns + f64::from(i)).collect::<Vec<f64>>();
    let rounds = |times: f64| {
        let of = |round: u32| level(1000.0 + f64::from(round)).iter().map(|x| x * times).collect();
        (0..6).map(of).collect::<Vec<Vec<f64>>>()
    };
    runs[0].figures = vec![figure(&rounds(1.0))];
    runs[1].figures = vec![figure(&rounds(3.0))];
    let rate = |value: f64| RateFigure {
        metric: RateMetric::MessageRate,
        unit: "msg/s".into(),
        rate: Rate {
            value,
            interval: Some(Interval { low: Value(value * 0.9), high: Value(value * 1.1) }),
            basis: wiregauge_stats::Basis::Pooled,
            rounds: vec![value],
        },
    };
    (runs[0].rates, runs[1].rates) = (vec![rate(100.0)], vec![rate(25.0)]);
    let [found] = figures(&plan.impacts, &mut runs).try_into().unwrap();
    let of: Vec<&str> = found.factors.iter().map(|factor| factor.of.as_str()).collect();
    assert_eq!(of, ["p50", "p99", "p99.9", "mean", "round_max", "rate"]);
    for Factor { of, factor, interval, .. } in &found.factors {
        // Of 6000 samples p99.9 has too few.
        let Some(Value(factor)) = *factor else {
            assert_eq!(of, "p99.9");
            continue;
        };
        let expected = if of == "rate" { 0.25 } else { 3.0 };
        assert!((factor - expected).abs() < 1e-9, "{of}: {factor}");
        let interval = interval.unwrap();
        assert!(interval.low.0 < factor && factor < interval.high.0, "{of}: {interval:?}");
        assert!(of == "rate" || interval.low.0 > 1.0, "{of}: {interval:?}");
    }
    let missing = found.factors[2].missing;
    assert_eq!(missing, Some(wiregauge_stats::Missing::TooFew));
    let maxima = &found.factors[4];
    let mean = (1999..2005).map(|max| f64::from(max).ln()).sum::<f64>() / 6.0;
    assert!((maxima.alone.unwrap().0 / mean.exp() - 1.0).abs() < 1e-12, "of 1999 to 2004");
}

#[test]
fn a_round_is_told_the_share_of_its_time_in_which_the_congestors_ran() {
    let plan = plan();
    let mut runs = runs(&plan);
    assert_eq!(plan.cases[1].part.after, impact::LEAD);
    assert_eq!(plan.cases[2].part.after, Span(0));
    // The congestor is asked to run for 100 + 550 + 200 ms, and a tenth before.
    let node = |length_ms: f64| Thread { length_ns: length_ms * 1e6, ..Thread::default() };
    let beside = |late_ms, lengths: &[f64]| Round {
        threads: lengths.iter().copied().map(node).collect(),
        ..round(late_ms, 2000.0)
    };
    runs[1].rounds = (0..4).map(|index| Round { index, ..round(0.0, 500.0) }).collect();
    runs[2].rounds = vec![
        beside(0.0, &[940.0, 2000.0]),
        // Half of the victim's time, which begins 100 ms after the instant, was over.
        beside(350.0, &[940.0, 940.0]),
        // A node ended when a fifth of it was left.
        beside(0.0, &[940.0, 500.0]),
        beside(700.0, &[940.0]),
    ];
    (0..4).zip(&mut runs[2].rounds).for_each(|(index, round)| round.index = index);
    let [found] = figures(&plan.impacts, &mut runs).try_into().unwrap();
    let shares: Vec<f64> =
        runs[1].rounds.iter().map(|round| (round.congested.unwrap() * 100.0).round()).collect();
    assert_eq!(shares, [100.0, 50.0, 80.0, 0.0]);
    assert_eq!(found.covered, Some(0.0));
    let [warning] = runs[1].warnings.as_slice() else { panic!("{:?}", runs[1].warnings) };
    assert_eq!(warning.kind, "uncongested");
    assert!(warning.sentence.contains("3 rounds"), "{}", warning.sentence);
}

#[test]
fn a_round_that_has_no_agreed_instant_is_not_said_to_be_congested() {
    let plan = plan();
    let mut runs = runs(&plan);
    runs[1].rounds = vec![Round { start: None, ..round(0.0, 500.0) }];
    runs[2].rounds = vec![round(0.0, 940.0)];
    let [found] = figures(&plan.impacts, &mut runs).try_into().unwrap();
    assert_eq!((found.covered, runs[1].rounds[0].congested), (None, None));
    assert!(runs[1].warnings.is_empty());
}

#[test]
fn congestors_on_cpus_of_the_victim_are_warned_of() {
    let plan = plan();
    let warned = |nodes: [u32; 2]| {
        let mut runs = runs(&plan);
        let cpus = Some(CpuPair { client: 0, server: 1 });
        runs[1].rounds = vec![Round { cpus, ..round(0.0, 500.0) }];
        let node = |cpu| Thread {
            cpus: Some(CpuPair { client: cpu, server: cpu }),
            length_ns: 940e6,
            ..Thread::default()
        };
        runs[2].rounds = vec![Round { threads: nodes.map(node).into(), ..round(0.0, 940.0) }];
        figures(&plan.impacts, &mut runs);
        runs[1].warnings.first().map(|warning| warning.sentence.clone())
    };
    assert_eq!(warned([2, 3]), None);
    let said = warned([2, 1]).unwrap();
    assert!(said.starts_with("congestor incast ran on 1 CPU of the victim"), "{said}");
}

#[test]
fn the_mean_of_unequal_rounds_weighs_each_round_alike() {
    let summary = summarize(&[vec![1.0; 100], vec![4.0; 50]], 1e9);
    let found = mean(&summary).unwrap();
    assert!((found.value - 2.0).abs() < 1e-12, "{}", found.value);
    let interval = found.interval.unwrap();
    assert!(interval.low.0 <= 1.0 && interval.high.0 >= 4.0, "{interval:?}");
    assert!(mean(&summarize::<Vec<f64>>(&[], 1e9)).is_none());
}

#[test]
fn a_plan_has_the_victim_alone_and_beside_each_congestor_that_begins_before_it() {
    let plan = plan();
    assert_eq!(plan.concurrent, [[1, 2]]);
    assert_eq!(plan.groups(), [vec![1, 2], vec![0]]);
    let names: Vec<String> = (0..3).map(|case| plan.label(case)).collect();
    let begins = ["alone: latency", "under incast: latency", "congestor incast: exchange"];
    for (name, begin) in names.iter().zip(begins) {
        assert!(name.starts_with(begin), "{name}");
    }
    let [alone, under, congestor] = plan.cases.as_slice() else { panic!() };
    assert_eq!(alone.bound.time, under.bound.time);
    let time = |case: &Case| case.bound.time.unwrap().0 + case.warmup_time().unwrap().0;
    assert!(time(congestor) > under.part.after.0 + time(under));
    // Those of the victim come first.
    assert_eq!((under.cpus_before(), congestor.cpus_before()), (0, 1));
    assert_eq!(plan.cpus_at_once(), 3);
}

#[test]
fn what_cannot_be_measured_beside_congestors_is_refused() {
    let refused = |change: fn(&mut wiregauge_plan::Request)| {
        let mut request = latency::request(Default::default());
        change(&mut request);
        impact::plan(request, Vec::new()).unwrap_err().to_string()
    };
    let said = refused(|request| request.count = Some(10));
    assert!(said.contains("use --time instead of --count"), "{said}");
    let said = refused(|request| request.sizes = vec![wiregauge_base::units::Bytes(1); 2]);
    assert!(said.contains("one victim, and these are 2"), "{said}");
    let said = refused(|request| request.time = Some(wiregauge_plan::FOREVER));
    assert!(said.contains("--forever"), "{said}");
    let said = refused(|request| {
        request.transports = vec![wiregauge_transport::TransportKind::Null];
    });
    assert!(said.contains("simulation"), "{said}");
    // Two transports of a congestor are two cases.
    let mut several = bandwidth::request(Default::default());
    several.sizes = vec![wiregauge_base::units::Bytes(64), wiregauge_base::units::Bytes(128)];
    let two = vec![("two".to_owned(), several)];
    let said = impact::plan(latency::request(Default::default()), two).unwrap_err().to_string();
    assert!(said.contains("two is 2 cases"), "{said}");
}
