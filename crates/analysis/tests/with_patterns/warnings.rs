//! Warnings of a run.

use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_analysis::warnings::*;
use wiregauge_base::units::Span;
use wiregauge_figures::record::schema::RecordedWarning;
use wiregauge_figures::record::schema::{ClockOffset, Counts, Figure, RateFigure, Round};
use wiregauge_host::Throttled;
use wiregauge_measure::control::fault::Fault;
use wiregauge_patterns::{bandwidth, exchange};
use wiregauge_plan::Plan;
use wiregauge_stats::{Metric, RateMetric};
use wiregauge_transport::TransportKind;

fn run_so_far(plan: &Plan) -> RunSoFar {
    let case = &plan.cases[0];
    let analysis = wiregauge_patterns::registry::analysis(case.pattern.name()).unwrap();
    RunSoFar::new(0, case, analysis, &[], 1)
}

fn sentences(run: &RunSoFar) -> Vec<String> {
    run.warnings.iter().map(|one| RecordedWarning::from(one).sentence).collect()
}

#[test]
fn never_more_rounds_are_done_than_were_planned() {
    let mut request = bandwidth::request(bandwidth::Spec::default());
    request.until = Some(0.05);
    let plan = request.plan().unwrap();
    let mut run = run_so_far(&plan);
    run.rounds = vec![Round::default(); 17];
    run.enough = Some(30);
    run.stop = Some(Err(Fault::Interrupted));
    run.warn(&[], &[], &plan);
    let said = sentences(&run);
    assert!(
        said.contains(&"17 of 30 rounds were completed: interrupted by the user".into()),
        "{said:?}"
    );
}

#[test]
fn clocks_that_are_known_less_well_than_slots_need_are_named_with_their_round() {
    let said = |chaotic: bool, bound_ns: f64| {
        let asked = exchange::ExchangeRequest {
            spec: exchange::Spec { chaotic, ..Default::default() },
            nodes: vec![2],
            rules: vec![exchange::Rule::Fixed],
            slot: Some(Span(100_000)).filter(|_| !chaotic),
            spreads: vec![0.0],
            ..Default::default()
        };
        let plan = exchange::request(asked).plan().unwrap();
        let clock = Some(ClockOffset { bound_ns, ..ClockOffset::default() });
        let round = Round { index: 3, clock, ..Round::default() };
        let found = of_round(&plan, &plan.cases[0], &round);
        found.iter().map(|one| RecordedWarning::from(one).sentence).collect::<Vec<_>>()
    };
    assert!(said(false, 50_000.0).is_empty() && said(true, 1e9).is_empty());
    let found = said(false, 50_100.0);
    let expected = "clocks were known to 50.1 us only in round 3";
    assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
}

#[test]
fn a_bandwidth_without_a_rate_says_why() {
    let said = |time: Option<u64>, received: Vec<u64>| {
        let mut request = bandwidth::request(bandwidth::Spec::default());
        (request.count, request.time) = (time.is_none().then_some(100_000), time.map(Span));
        request.sizes = vec![wiregauge_base::units::Bytes(64)];
        let plan = request.plan().unwrap();
        let mut run = run_so_far(&plan);
        let of = |received| Round {
            counts: Counts { received, ..Counts::default() },
            ..Round::default()
        };
        run.rounds = received.into_iter().map(of).collect();
        let none = wiregauge_stats::rate::rate(&[]);
        let (metric, unit) = (RateMetric::Bandwidth, "B/s".into());
        run.warn(&[], &[RateFigure { metric, unit, rate: none }], &plan);
        sentences(&run).into_iter().find(|sentence| sentence.contains("no rate"))
    };
    let few = "no rate: 10 messages are less than two timestamps, one per 256, after the \
               warm-up";
    for time in [None, Some(200_000_000)] {
        assert_eq!(said(time, vec![7, 10]).as_deref(), Some(few), "{time:?}");
        let none = said(time, vec![0, 0]);
        assert_eq!(none.as_deref(), Some("no rate: no message arrived"), "{time:?}");
    }
}

#[test]
fn page_faults_beside_simulated_time_are_no_warning() {
    let faults = |transport| {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        request.transports = vec![transport];
        let plan = request.plan().unwrap();
        let mut run = run_so_far(&plan);
        let mut round = Round::default();
        round.client.page_faults = 1000;
        run.rounds = vec![round];
        run.counts.received = 50_000;
        run.process_warnings().len()
    };
    assert_eq!(faults(TransportKind::SIMULATED), 0);
    assert_eq!(faults(TransportKind::default()), 1);
}

/// A round whose ends a CPU quota has stopped, for 1 ms each time.
fn stopped_round(client: u64, server: u64) -> Round {
    let [client, server] = [client, server].map(|times| {
        let before = Throttled::default().counters();
        let now = Throttled { times, ns: times * 1_000_000 }.counters();
        let moved = wiregauge_transport::counter::moved(&before, &now).into_iter();
        moved.map(|(name, count)| (name, count.to_string())).collect()
    });
    let mut round = Round::default();
    round.client.final_counters = client;
    round.server.final_counters = server;
    round
}

#[test]
fn a_quota_that_stopped_the_ends_of_a_host_is_counted_once() {
    let mut request = wiregauge_patterns::latency::request(Default::default());
    request.transports = vec![TransportKind::default()];
    let plan = request.plan().unwrap();
    let [here, apart] = [None, Some(0)].map(|server| {
        let mut run = run_so_far(&plan);
        run.case.topology.ranks[1].host = server;
        run.rounds = vec![stopped_round(3, 4), stopped_round(0, 0), stopped_round(16, 15)];
        let found = run.process_warnings();
        found.iter().map(|one| RecordedWarning::from(one).sentence).collect::<Vec<_>>()
    });
    assert_eq!(
        here,
        ["the CPU quota stopped both ends 20 times for 20.0 ms in all: the tail includes that"]
    );
    assert_eq!(
        apart,
        [
            "the CPU quota stopped the client 19 times for 19.0 ms in all: the tail includes that",
            "the CPU quota stopped the server 19 times for 19.0 ms in all: the tail includes that"
        ]
    );
}

#[test]
fn what_did_not_arrive_is_said_by_what_became_of_it() {
    let said = |counts: Counts, infinite| {
        let found = missing(&counts, infinite);
        found.map(|one| RecordedWarning::from(&one).sentence).collect::<Vec<_>>()
    };
    let sent = Counts { sent: 1000, ..Counts::default() };
    // A bandwidth has no message that is infinitely late.
    assert_eq!(
        said(Counts { lost: 15, ..sent }, 0),
        ["15 of 1000 messages were lost (1.5 %); no figure includes them"]
    );
    assert_eq!(
        said(Counts { unfinished: 15, ..sent }, 0),
        ["15 of 1000 messages were under way when their round ended; no figure includes them"]
    );
    assert_eq!(
        said(Counts { lost: 1, unsent: 7, ..sent }, 8),
        [
            "1 of 1000 messages were lost (0.1 %); they count as infinitely late",
            "7 requests were due but never sent (1000 were); their response is infinite"
        ]
    );
    assert!(said(sent, 0).is_empty());
    // So few of a rate are counted beside it.
    assert!(said(Counts { lost: 9, ..sent }, 0).is_empty());
    assert_eq!(said(Counts { lost: 9, ..sent }, 9).len(), 1);
}

/// A survey of 30 cases on a quiet machine: rounds that differ by 2 %, a tick that switches a
/// few times a second, a few faults and late posts.
#[test]
fn a_quiet_run_has_no_warning() {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, Normal};
    use wiregauge_stats::{Interval, Value, summarize};
    let mut request = wiregauge_patterns::latency::request(Default::default());
    request.sizes = (1..=30).map(wiregauge_base::units::Bytes).collect();
    let plan = request.plan().unwrap();
    let analysis = wiregauge_patterns::registry::analysis("latency").unwrap();
    for (number, case) in plan.cases.iter().enumerate() {
        let mut run = RunSoFar::new(number, case, analysis, &[], 1);
        let mut chance = ChaCha8Rng::seed_from_u64(number as u64);
        let middle = |round: u8| 3000.0 * (1.0 + 0.004 * f64::from(round));
        let rounds: Vec<Vec<f64>> = (0..6)
            .map(|round| {
                let normal = Normal::new(middle(round), 100.0).unwrap();
                normal.sample_iter(&mut chance).take(20_000).collect()
            })
            .collect();
        let metric = run.analysis.metrics(case)[0];
        let summary = summarize(&rounds, f64::INFINITY);
        run.series.insert(metric, rounds);
        let mut late = vec![20.0; 20_000];
        late[7] = 1e5;
        run.series.insert(Metric::Lateness, vec![late]);
        let usage = wiregauge_figures::record::schema::Usage {
            waited_ns: Some(1e5),
            involuntary_switches: 40,
            page_faults: 30,
            ..Default::default()
        };
        let round = Round {
            length_ns: 1e9,
            samples: 20_000,
            client: usage.clone(),
            server: usage,
            ..Round::default()
        };
        run.rounds = vec![round; 6];
        run.stop = Some(Ok("6 rounds were measured".into()));
        run.counts = Counts { sent: 120_000, received: 120_000, held_up: 3, ..run.counts };
        let figure = Figure { metric, unit: "ns".into(), summary, clock_bound_ns: None };
        let interval = Interval { low: Value(0.9e6), high: Value(1.1e6) };
        let rate = wiregauge_stats::Rate {
            value: 1e6,
            interval: Some(interval),
            basis: wiregauge_stats::Basis::Pooled,
            rounds: vec![1e6; 6],
        };
        let rate = RateFigure { metric: RateMetric::MessageRate, unit: String::new(), rate };
        run.warn(&[figure], &[rate], &plan);
        let warned: Vec<RecordedWarning> = run.warnings.iter().map(Into::into).collect();
        let bad = |one: &&RecordedWarning| one.severity > wiregauge_base::warning::Severity::Note;
        assert_eq!(warned.iter().find(bad), None, "case {number}");
    }
}
