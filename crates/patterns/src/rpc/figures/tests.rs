//! Slowdowns and tails of made-up times.

use super::*;
use crate::rpc::workload::Workload;
use crate::rpc::{Reply, RpcRequest, request};
use wiregauge_analysis::figures::Seen;
use wiregauge_analysis::fixtures::finished_thread;
use wiregauge_analysis::result::RankResult;
use wiregauge_base::units::{Bytes, MessageRate};
use wiregauge_clock::Timebase;
use wiregauge_figures::record::schema::Round;

/// A loaded case of two lengths, echoed.
fn case() -> Case {
    let steps = vec![(Bytes(100), 0.75), (Bytes(10_100), 1.0)];
    let workload =
        Workload { name: "two".into(), what: String::new(), steps, largest: Bytes(10_100) };
    let asked = RpcRequest {
        workloads: vec![workload],
        rates: vec![MessageRate(1000.0)],
        ..RpcRequest::default()
    };
    request(asked).plan().unwrap().cases.remove(0)
}

fn by_size(rounds: &[(u32, Vec<Vec<f64>>)]) -> BySize {
    let times: BTreeMap<u32, Vec<Vec<f64>>> = rounds.iter().cloned().collect();
    let many = times.values().map(Vec::len).max().unwrap_or(0);
    // One length after another.
    let lengths = |round: usize| {
        let of =
            |(size, each): (&u32, &Vec<Vec<f64>>)| vec![*size; each.get(round).map_or(0, Vec::len)];
        times.iter().flat_map(of).collect()
    };
    BySize { order: (0..many).map(lengths).collect(), times }
}

/// Unloaded: 10 us for the short one and 30 us for the long one, that is 20 kB in 20 us.
fn baseline() -> Baseline {
    baseline_of(10_000.0, 30_000.0)
}

/// The median of the short one and of the long one; the shortest are 49 ns shorter.
fn baseline_of(short_ns: f64, long_ns: f64) -> Baseline {
    let summary = |ns: f64| {
        let times: Vec<f64> = (0..100).map(|n| ns + f64::from(n - 49)).collect();
        summarize(&[times], f64::INFINITY)
    };
    Baseline { run: 1, sizes: [(100, summary(short_ns)), (10_100, summary(long_ns))].into() }
}

/// What a run of clients on one host shows.
fn completion(case: &Case, times: &BySize, baseline: Option<&Baseline>) -> Completion {
    super::lengths(case, times, &BTreeMap::new(), baseline, f64::INFINITY)
}

fn lengths(
    case: &Case,
    times: &BySize,
    baseline: Option<&Baseline>,
    threshold_ns: f64,
) -> Option<Lengths> {
    let found = super::lengths(case, times, &BTreeMap::new(), baseline, threshold_ns);
    serde_json::from_value(found.details?).ok()
}

#[test]
fn a_slowdown_is_a_time_over_that_of_the_same_length() {
    // Short ones take twice as long, long ones three times.
    let times = by_size(&[
        (100, vec![vec![20_000.0; 300], vec![20_000.0; 300]]),
        (10_100, vec![vec![90_000.0; 100], vec![90_000.0; 100]]),
    ]);
    let found = lengths(&case(), &times, Some(&baseline()), f64::INFINITY).unwrap();
    assert_eq!(found.metric, Metric::Response);
    let shares: Vec<(u32, f64)> = found.sizes.iter().map(|of| (of.size, of.share)).collect();
    assert_eq!(shares, [(100, 0.75), (10_100, 1.0)]);
    // Request and reply: 20 kB in 20 us.
    assert!((found.link.unwrap() / 1e9 - 1.0).abs() < 1e-12);
    let long = found.sizes[1].unloaded;
    assert_eq!(long.p50_ns, Some(30_000.0));
    assert_eq!(long.min_ns, Some(30_000.0 - 49.0));
    assert!((long.serialisation_ns.unwrap() - 30_200.0).abs() < 1e-6);
    let mean = |by| found.slowdowns.iter().find(|one| one.by == by).unwrap().mean.value;
    assert!((mean(Slowdown::UnloadedP50) - (0.75 * 2.0 + 0.25 * 3.0)).abs() < 1e-9);
    // The floor of one serialisation alone would be near 2 for long requests that are echoed.
    let expected = 0.75 * 20_000.0 / 10_200.0 + 0.25 * 90_000.0 / 30_200.0;
    assert!((mean(Slowdown::Serialisation) - expected).abs() < 1e-9);
    // 25 us, and the request alone by 25 Gb/s.
    let [short, long] = [25_000.0 + 100.0 * 0.32, 25_000.0 + 10_100.0 * 0.32];
    assert!((found.sizes[1].unloaded.cperf_ns.unwrap() - long).abs() < 1e-6);
    let expected = 0.75 * 20_000.0 / short + 0.25 * 90_000.0 / long;
    assert!((mean(Slowdown::Cperf) - expected).abs() < 1e-9);
}

#[test]
fn cperf_s_slowdown_needs_no_unloaded_requests() {
    let times = by_size(&[(1000, vec![vec![50_000.0; 10]])]);
    let case = case();
    let spec = Spec {
        slowdown: Slowdown::Cperf,
        link: Some(wiregauge_base::units::ByteRate(1e9)),
        baseline_rtt: wiregauge_base::units::Span(15_000),
        ..case.spec::<Spec>().clone()
    };
    let found = completion(&case.with_spec(spec), &times, None);
    assert!((found.rates[0].rate.value - 50.0 / 16.0).abs() < 1e-12);
}

#[test]
fn a_link_that_was_named_is_not_found() {
    let case = case();
    let case = case.with_spec(Spec {
        link: Some(wiregauge_base::units::ByteRate(2e9)),
        reply: Reply::Short(Bytes(100)),
        ..case.spec::<Spec>().clone()
    });
    let times = by_size(&[(10_100, vec![vec![1.0]])]);
    let found = lengths(&case, &times, Some(&baseline()), f64::INFINITY).unwrap();
    assert_eq!(found.sizes[0].unloaded.serialisation_ns, Some(10_000.0 + 5_100.0));
}

#[test]
fn without_unloaded_times_there_is_no_slowdown_and_the_times_stay() {
    let times = by_size(&[(100, vec![vec![5.0; 10]])]);
    let found = lengths(&case(), &times, None, f64::INFINITY).unwrap();
    assert!(found.slowdowns.is_empty() && found.baseline.is_none());
    assert_eq!(found.sizes[0].unloaded, Unloaded::default().with_cperf(case().spec(), 100));
    assert_eq!(found.sizes[0].summary.count, 10);
    // A length that the unloaded run never had has no slowdown either.
    let times = by_size(&[(77, vec![vec![5.0; 10]])]);
    let found = lengths(&case(), &times, Some(&baseline()), f64::INFINITY).unwrap();
    assert_eq!(found.sizes[0].unloaded.p50_ns, None);
}

#[test]
fn the_lost_are_counted_and_not_averaged() {
    let lost = f64::INFINITY;
    let times = by_size(&[(100, vec![vec![10_000.0, lost, 30_000.0]])]);
    let found = lengths(&case(), &times, Some(&baseline()), f64::INFINITY).unwrap();
    assert_eq!(found.sizes[0].summary.lost, 1);
    let mean = &found.slowdowns[0].mean;
    assert!((mean.value - 2.0).abs() < 1e-9, "{mean:?}");
}

#[test]
fn the_tail_of_the_short_ones_falls_from_one_to_nothing() {
    let times: Vec<f64> = (1..=1000).map(f64::from).collect();
    let tail = tail(&times);
    assert_eq!(tail.first(), Some(&(1.0, 0.999)));
    assert_eq!(tail.last(), Some(&(1000.0, 0.0)));
    assert!(tail.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 > two[1].1));
    let half = tail.iter().find(|point| point.0 >= 500.0).unwrap();
    assert_eq!(half.1, 1.0 - half.0 / 1000.0);
    assert!(super::tail(&[]).is_empty());
    assert!(super::tail(&[f64::INFINITY]).is_empty());
}

#[test]
fn times_of_several_lengths_stand_in_the_order_of_sending() {
    let all = by_size(&[(50, vec![vec![1.0, 3.0], vec![9.0]]), (100, vec![vec![2.0, 4.0]])]);
    let all = BySize { order: vec![vec![50, 100, 50, 7, 100], vec![50]], ..all };
    let found = lengths(&case(), &all, None, f64::INFINITY).unwrap();
    assert_eq!(together(&all, &found.sizes), [vec![1.0, 2.0, 3.0, 4.0], vec![9.0]]);
    assert_eq!(together(&all, &found.sizes[..1]), [vec![1.0, 3.0], vec![9.0]]);
}

#[test]
fn the_shortest_tenth_is_short_only_below_a_frame() {
    let times = by_size(&[
        (50, vec![vec![1.0; 5]]),
        (100, vec![vec![2.0; 45]]),
        (5000, vec![vec![3.0; 50]]),
    ]);
    let case = case();
    assert_eq!(lengths(&case, &times, None, f64::INFINITY).unwrap().short.unwrap().longest, 100);
    let found = completion(&case, &times, None).figures;
    let [short] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((short.metric, short.summary.count), (Metric::Short, 50));
    let times = by_size(&[(2000, vec![vec![3.0; 50]])]);
    assert!(lengths(&case, &times, None, f64::INFINITY).unwrap().short.is_none());
}

#[test]
fn a_length_of_exactly_a_tenth_is_short_and_one_of_exactly_a_frame_is_not() {
    let times = by_size(&[(50, vec![vec![1.0]]), (100, vec![vec![2.0; 9]])]);
    let found = completion(&case(), &times, None).figures;
    assert_eq!(found[0].summary.count, 1);
    let times = by_size(&[(1500, vec![vec![3.0; 50]])]);
    assert!(lengths(&case(), &times, None, f64::INFINITY).unwrap().short.is_none());
}

#[test]
fn the_rate_is_the_slowdown_by_the_chosen_definition_of_what_was_loaded() {
    let times = by_size(&[(100, vec![vec![25_500.0; 10]])]);
    let rates = |slowdown, unloaded| {
        let loaded = case();
        let spec = Spec { slowdown, unloaded, ..loaded.spec::<Spec>().clone() };
        let case = loaded.with_spec(spec);
        let found = completion(&case, &times, Some(&baseline()));
        let thousandths = |value: f64| (value * 1e3).round();
        let of = |one: &RateFigure| (one.metric, thousandths(one.rate.value));
        found.rates.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(rates(Slowdown::UnloadedP50, false), [(RateMetric::Slowdown, 2550.0)]);
    // 10 us, and 200 B by 1 GB/s.
    assert_eq!(rates(Slowdown::Serialisation, false), [(RateMetric::Slowdown, 2500.0)]);
    // 25 us, and 100 B by 25 Gb/s.
    assert_eq!(rates(Slowdown::Cperf, false), [(RateMetric::Slowdown, 1019.0)]);
    assert_eq!(rates(Slowdown::UnloadedP50, true), []);
}

#[test]
fn a_link_is_not_found_where_long_requests_take_no_longer() {
    let link = |short_ns, long_ns| found(&baseline_of(short_ns, long_ns), |size| size);
    assert_eq!((link(30_000.0, 10_000.0), link(10_000.0, 10_000.0)), (None, None));
    let one_length = Baseline { sizes: baseline().sizes.into_iter().take(1).collect(), run: 1 };
    assert_eq!(found(&one_length, |size| size), None);
}

#[test]
fn a_mean_slowdown_is_that_of_a_typical_round_and_of_times_above_zero() {
    let times =
        by_size(&[(100, vec![vec![20_000.0], vec![20_000.0]]), (10_100, vec![vec![90_000.0]])]);
    let found = lengths(&case(), &times, Some(&baseline()), f64::INFINITY).unwrap();
    // Of the rounds it is 2.5 and 2.
    assert!((found.slowdowns[0].mean.value - 5.0_f64.sqrt()).abs() < 1e-12);
    let at_once = baseline_of(49.0, 30_000.0);
    let found = lengths(&case(), &times, Some(&at_once), f64::INFINITY).unwrap();
    let known: Vec<Slowdown> = found.slowdowns.iter().map(|one| one.by).collect();
    assert_eq!(known, [Slowdown::UnloadedP50, Slowdown::Serialisation, Slowdown::Cperf]);
}

#[test]
fn the_error_of_what_a_slowdown_divides_by_is_in_its_interval() {
    let [narrow, wide] = [[100.0, 100.0], [80.0, 125.0]].map(|[low, high]| Unloaded {
        p50_ns: Some(100.0),
        p50_interval: Some(Interval { low: Value(low), high: Value(high) }),
        ..Unloaded::default()
    });
    assert_eq!(base_error(&[(5.0, &narrow), (3.0, &narrow)]), [0.0, 0.0]);
    // A fifth less or a quarter more, of half of all.
    let [less, more] = base_error(&[(5.0, &narrow), (5.0, &wide)]);
    assert!((less - 0.1).abs() < 1e-12 && (more - 0.125).abs() < 1e-12, "{less} {more}");
    // Of two that err independently.
    let [less, _] = base_error(&[(5.0, &wide), (5.0, &wide)]);
    assert!((less - 0.1 * 2.0_f64.sqrt()).abs() < 1e-12, "{less}");
}

#[test]
fn rounds_without_an_answer_leave_the_bandwidth_of_the_others() {
    let delivered = |work| Delivered { work, seconds: 1.0 };
    let rounds = [delivered(0.0), delivered(20.0)];
    let found = bandwidth(&[(0.0, 0.0), (1000.0, 10.0)], &rounds).unwrap();
    assert_eq!((found.metric, found.rate.value), (RateMetric::Bandwidth, 1000.0));
    assert!(bandwidth(&[(0.0, 0.0)], &rounds).is_none());
}

fn run(index: usize, case: &Case) -> RunSoFar {
    RunSoFar::new(index, case, &Rpc, &[], 1)
}

fn latency(index: usize) -> RunSoFar {
    let case = crate::latency::request(Default::default()).plan().unwrap().cases.remove(0);
    RunSoFar::new(index, &case, &crate::latency::Latency, &[], 1)
}

#[test]
fn bandwidth_is_that_of_the_answered_requests_without_the_warm_up() {
    let sample = |(size, at, flags): (u32, f64, Flags)| {
        Sample::new(0, size, [at, at, f64::NAN, at + 1e8, f64::NAN], flags)
    };
    let none = Flags::default();
    let samples = [
        (9000, 0.0, Flags::WARMUP),
        (100, 1e9, none),
        (200, 2e9, none),
        (300, 3e9, none),
        (9000, 4e9, Flags::LOST),
    ];
    let mut samples: Vec<Sample> = samples.into_iter().map(sample).collect();
    samples[4].receive_ns = f64::NAN;
    let samples = RoundSamples { samples, ..RoundSamples::default() };
    let case = case();
    let mut run = run(0, &case);
    let finished = RoundResult::default();
    let time = Timebase::nanoseconds(Ticks(0));
    let seen = Seen { counts: Vec::new(), samples, times: Times::of_one_host(&time) };
    run.take(&case, Round::default(), finished, seen);
    let found: Vec<(RateMetric, f64)> =
        Rpc.rate_figures(&run).iter().map(|one| (one.metric, one.rate.value)).collect();
    // In the three seconds behind the first one: three sent, and of 200 B on average three
    // answered.
    let known = [
        (RateMetric::OfferedRate, 1.0),
        (RateMetric::AchievedRate, 1.0),
        (RateMetric::MessageRate, 1.0),
        (RateMetric::Bandwidth, 200.0),
    ];
    assert_eq!(found, known);
}

#[test]
fn what_came_broken_to_any_thread_of_the_server_is_counted() {
    let thread = |corrupt: u64| {
        let mut thread = finished_thread(0, true, &[]);
        thread.outcome.as_mut().unwrap().counts.corrupt = corrupt;
        thread
    };
    let ranks = vec![
        RankResult { role: Role::Client, threads: vec![thread(70)] },
        RankResult { role: Role::Server, threads: vec![thread(2), thread(3)] },
    ];
    let finished = RoundResult { ranks, ..RoundResult::default() };
    let mut all = Counts { corrupt: 10, ..Counts::default() };
    Rpc.complete_counts(&case(), &finished, &mut all);
    assert_eq!(all, Counts { corrupt: 15, ..Counts::default() });
}

#[test]
fn shares_of_what_a_closed_loop_carried_follow_once() {
    let plan = request(RpcRequest::default()).plan().unwrap();
    let case = case();
    let spec = Spec { clients: 4, loads: vec![0.5, 0.75], ..case.spec::<Spec>().clone() };
    let closed = Case { schedule: Schedule::ClosedLoop, ..case.with_spec(spec) };
    let [mut other, mut idle, mut busy] = [latency(0), run(1, &closed), run(2, &closed)];
    let delivered = |work| vec![Delivered { work, seconds: 1.0 }];
    other.work.delivered = delivered(1000.0);
    idle.work.delivered = delivered(0.0);
    busy.work.delivered = delivered(1000.0);
    let next = |runs: &[RunSoFar]| {
        let cases = Rpc.next_cases(&plan, runs);
        let of = |next: NextCase| (next.origin, next.case);
        cases.into_iter().map(of).collect::<Vec<_>>()
    };
    let mut runs = vec![other, idle, busy];
    let found = next(&runs);
    let rates: Vec<_> = found.iter().map(|(from, case)| (*from, case.schedule.rate())).collect();
    assert_eq!(rates, [500.0, 750.0].map(|rate| (2, Some(MessageRate(rate)))));
    runs.push(run(3, &found[0].1));
    assert_eq!(next(&runs), found[1..]);
}

#[test]
fn the_baseline_of_a_run_is_the_unloaded_one_of_its_pattern() {
    let asked = RpcRequest { rates: vec![MessageRate(1000.0)], ..RpcRequest::default() };
    let plan = request(asked).plan().unwrap();
    let [loaded, unloaded] = plan.cases.as_slice() else { panic!("{}", plan.cases.len()) };
    let runs = [latency(0), run(1, loaded), run(2, unloaded)];
    let baseline = |number| {
        let found = Rpc.complete(&plan, &runs, number).details.unwrap();
        serde_json::from_value::<Lengths>(found).unwrap().baseline
    };
    assert_eq!((baseline(1), baseline(2)), (Some(2), None));
}

#[test]
fn each_host_has_the_mean_slowdown_of_its_own_requests() {
    // The unloaded median is 10 us: this host's take twice as long, the other's six times.
    let (here, there) = (vec![20_000.0; 50], vec![60_000.0; 50]);
    let of = |times: &Vec<f64>| by_size(&[(100, vec![times.clone(); 2])]);
    let by_host = BTreeMap::from([(None, of(&here)), (Some(0), of(&there))]);
    let all = of(&[here, there].concat());
    let found = super::lengths(&case(), &all, &by_host, Some(&baseline()), f64::INFINITY);
    let slowdown = |host| found.slowdown_by_host[&host].value;
    assert_eq!((slowdown(None), slowdown(Some(0))), (2.0, 6.0));
    assert_eq!(found.rates[0].rate.value, 4.0, "of both together");
}
