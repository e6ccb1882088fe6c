//! Rounds with known samples, and what a run makes of them.

use std::collections::BTreeMap;
use wiregauge_analysis::figures::*;
use wiregauge_analysis::fixtures::finished_thread;
use wiregauge_analysis::pattern::{Completion, RunSoFar};
use wiregauge_analysis::result::RankResult;
use wiregauge_analysis::result::RoundResult;
use wiregauge_base::units::MessageRate;
use wiregauge_base::warning::Warning;
use wiregauge_clock::{Ticks, Timebase};
use wiregauge_figures::record::schema::{Counts, Instrument, Round, Thread};
use wiregauge_host::{CpuPair, Noise};
use wiregauge_measure::control::fault::Fault;
use wiregauge_patterns::{bandwidth, latency, oneway, registry};
use wiregauge_plan::Rounds;
use wiregauge_plan::{Request, Schedule};
use wiregauge_sample::RoundSamples;
use wiregauge_sample::histogram::LiveHistogram;
use wiregauge_sample::join::Times;
use wiregauge_sample::recorder::Beyond;
use wiregauge_sample::{Flags, Sample};
use wiregauge_stats::rate::Delivered;
use wiregauge_stats::{Metric, summarize};
use wiregauge_transport::Role;
use wiregauge_transport::TransportKind;

const INF: f64 = f64::INFINITY;

fn run(request: Request) -> RunSoFar {
    let case = request.plan().unwrap().cases.remove(0);
    let analysis = registry::analysis(case.pattern.name()).unwrap();
    RunSoFar::new(0, &case, analysis, &[], 1)
}

fn closed() -> RunSoFar {
    run(latency::request(Default::default()))
}

/// Six rounds of 1000 durations, which `of` makes of the number of the round and of numbers from 0
/// to 1.
fn rounds(of: fn(usize, f64) -> f64) -> Vec<Vec<f64>> {
    let numbers = (0..1000).map(|i| ((i * 7919) % 1000) as f64 / 1e3);
    (0..6).map(|round| numbers.clone().map(|u| of(round, u)).collect()).collect()
}

fn widest_of(series: &[Vec<f64>]) -> (String, Option<f64>) {
    let mut run = closed();
    run.series.insert(Metric::HalfRtt, series.to_vec());
    let (name, reach) = run.widest();
    (name, reach.ok())
}

fn reach(series: &[Vec<f64>], p: f64) -> [f64; 2] {
    let summary = summarize(series, INF);
    let quantile = summary.quantile(p).unwrap();
    let (value, interval) = (quantile.value.unwrap().0, quantile.interval.unwrap());
    [(value - interval.low.0) / value, (interval.high.0 - value) / value]
}

#[test]
fn the_widest_interval_is_that_of_the_quantile_that_reaches_further_to_either_side() {
    let tail = rounds(|round, u| 1000.0 + if u < 0.9 { u } else { 500.0 * round as f64 });
    let [low, high] = reach(&tail, 0.99);
    assert!(high > low && high > reach(&tail, 0.5)[1]);
    assert_eq!(widest_of(&tail), ("half_rtt p99".into(), Some(high)));
    // The median of one round is lower than those of the others.
    let foot = rounds(|round, u| match round {
        _ if u >= 0.6 => 1500.0,
        2 => 700.0,
        _ => 1000.0 + round as f64,
    });
    let [low, high] = reach(&foot, 0.5);
    assert!(low > high && low > reach(&foot, 0.99)[0]);
    let (name, found) = widest_of(&foot);
    assert_eq!(name, "half_rtt p50");
    assert!((found.unwrap() - low).abs() < 1e-12);
    let short: Vec<Vec<f64>> = rounds(|_, u| u).into_iter().map(|r| r[..100].to_vec()).collect();
    assert_eq!(widest_of(&short), ("half_rtt p99".into(), None), "p99 has no interval");
}

fn decided(done: u32, work: &[f64], rounds: Rounds) -> (Option<u32>, Option<String>) {
    let mut run = run(bandwidth::request(Default::default()));
    run.rounds = vec![Round::default(); done as usize];
    run.work.delivered = work.iter().map(|work| Delivered { work: *work, seconds: 1.0 }).collect();
    run.decide(rounds);
    (run.enough, run.stop.map(|stop| stop.unwrap()))
}

#[test]
fn the_first_rounds_decide_how_many_are_enough() {
    let rounds = |until| Rounds { least: 6, most: 30, until };
    let six = [100.0, 103.0, 107.0, 112.0, 116.0, 120.0];
    assert_eq!(decided(5, &six[..5], rounds(None)), (None, None));
    let all = decided(6, &six, rounds(None)).1.unwrap();
    assert_eq!(all, "all 6 rounds were measured");
    assert_eq!(decided(5, &six[..5], rounds(Some(0.1))), (None, None));
    let found = wiregauge_stats::rate::rate(&six.map(|work| Delivered { work, seconds: 1.0 }));
    let reach = found.interval.unwrap().reach(found.value).unwrap();
    // 6 * (1.2 * 1.1)^2 = 10.5.
    assert_eq!(decided(6, &six, rounds(Some(reach / 1.1))), (Some(11), None));
    assert_eq!(decided(6, &six, rounds(Some(0.01))), (Some(30), None));
    let (enough, met) = decided(6, &six, rounds(Some(1.25 * reach)));
    assert_eq!(enough, Some(6));
    let [own, asked] = [reach, 1.25 * reach].map(|share| 100.0 * share);
    let sentence = format!(
        "after 6 rounds the interval of the rate over rounds reaches ±{own:.3} %: \
         target ±{asked:.3} % met"
    );
    assert_eq!(met.unwrap(), sentence);
    let most = Rounds { least: 6, most: 6, until: Some(0.01) };
    let missed = decided(6, &six, most).1.unwrap();
    assert!(missed.ends_with("target ±1.000 % missed, and --rounds allows no more rounds"));
}

#[test]
fn samples_without_rows_count_with_the_others() {
    let mut beyond = LiveHistogram::new(0.5).unwrap();
    beyond.record_ns_many(3000.0, 3);
    beyond.record_lost(2);
    let mut run = closed();
    run.series = BTreeMap::from([
        (Metric::Rtt, vec![vec![1000.0, INF]]),
        (Metric::HalfRtt, vec![vec![500.0, INF]]),
    ]);
    run.sampled = BTreeMap::from([(Metric::Rtt, vec![0]), (Metric::HalfRtt, vec![0])]);
    run.beyond = vec![BTreeMap::from([(Metric::Service, beyond)])];
    for (metric, mean, most) in [(Metric::Rtt, 2500.0, 3000.0), (Metric::HalfRtt, 1250.0, 1500.0)] {
        let found = run.summary(metric, INF);
        assert_eq!((found.count, found.lost), (7, 3));
        assert!((found.mean / mean - 1.0).abs() < 1e-3, "{}", found.mean);
        assert!((found.max_finite.0 / most - 1.0).abs() < 1e-3, "{}", found.max_finite.0);
    }
    assert_eq!(counted_as(Metric::Response), Metric::Response);
}

#[test]
fn a_round_lasts_from_the_first_begin_to_the_last_end_of_the_threads_that_ran() {
    let thread = |started_ns, length_ns| Thread { started_ns, length_ns, ..Thread::default() };
    let mut round = Round::default();
    take_threads(vec![thread(10.0, 20.0), thread(5.0, 10.0), thread(1.0, 0.0)], &mut round);
    assert_eq!((round.started_ns, round.length_ns, round.threads.len()), (5.0, 25.0, 3));
    let mut round = Round::default();
    take_threads(vec![thread(10.0, 20.0)], &mut round);
    assert_eq!((round.started_ns, round.length_ns, round.threads.len()), (10.0, 20.0, 0));
}

/// Two threads at each end by a clock of 2 GHz: what they counted beyond their rows, what recording
/// costs, and messages of nobody.
fn finished() -> RoundResult {
    let thread = |from: u64, beyond_ticks: i64| {
        let mut thread = finished_thread(0, true, &[]);
        let outcome = thread.outcome.as_mut().unwrap();
        let mut service = LiveHistogram::new(1.0).unwrap();
        service.record_many(beyond_ticks, 3);
        outcome.beyond.service = Some(service.to_sparse());
        outcome.span = (Ticks(from), Ticks(from + 4_000));
        (outcome.overhead, outcome.recording_ticks) = (vec![100], 8.0);
        outcome.counts.foreign = from / 2_000;
        thread
    };
    let rank = |role| RankResult { role, threads: vec![thread(0, 1000), thread(2_000, 3000)] };
    let ranks = vec![rank(Role::Client), rank(Role::Server)];
    RoundResult { ranks, ..RoundResult::default() }
}

#[test]
fn what_threads_counted_in_ticks_is_in_nanoseconds() {
    let time = Timebase { epoch: Ticks(0), ns_per_tick: 0.5 };
    let mut run = closed();
    let stamps = |at: f64| [f64::NAN, at, f64::NAN, at + 600.0, f64::NAN];
    let sample = |number: u64| {
        let flags = if number == 0 { Flags::WARMUP } else { Flags::default() };
        Sample::new(number, 8, stamps(number as f64 * 1e3), flags)
    };
    let samples = RoundSamples { samples: (0..3).map(sample).collect(), ..Default::default() };
    let round = Round { counts: Counts { sent: 3, ..Counts::default() }, ..Round::default() };
    let counts = vec![Counts { sent: 1, ..Counts::default() }, Counts::default()];
    let case = run.case.clone();
    let seen = Seen { counts, samples, times: Times::of_one_host(&time) };
    run.take(&case, round, finished(), seen);
    let taken = &run.rounds[0];
    assert_eq!((taken.samples, taken.samples_in_histogram_only, run.counts.sent), (3, 6, 3));
    assert_eq!((taken.started_ns, taken.length_ns), (0.0, 3_000.0));
    let threads: Vec<_> =
        taken.threads.iter().map(|t| (t.started_ns, t.length_ns, t.counts.sent)).collect();
    assert_eq!(threads, [(0.0, 2_000.0, 1), (1_000.0, 2_000.0, 0)]);
    assert_eq!(run.series[&Metric::HalfRtt], [[300.0, 300.0]]);
    let (least, most) = {
        let beyond = &run.beyond[0][&Metric::Service];
        (beyond.min_ns().unwrap(), beyond.max_ns().unwrap())
    };
    assert_eq!((least, most), (500.0, 1500.0));
    let foreign = |w: &&Warning| matches!(w, Warning::UnknownSequence { messages: 1 });
    assert_eq!(run.warnings.iter().filter(foreign).count(), 2, "{:?}", run.warnings);
    assert!(!run.is_over());
    assert_eq!((run.overhead, run.recording_ns), (vec![vec![50.0], vec![50.0]], vec![4.0; 2]));
}

#[test]
fn a_figure_without_a_width_says_why() {
    let rounds = Rounds { least: 6, most: 30, until: Some(0.05) };
    let target = "target ±5.000 % missed, and --rounds allows no more rounds";
    let stopped = |round: Vec<f64>| {
        let mut run = closed();
        run.rounds = vec![Round::default(); 30];
        run.series.insert(Metric::HalfRtt, vec![round; 30]);
        run.decide(rounds);
        run.stop.unwrap().unwrap()
    };
    // Two of a hundred are lost.
    let lossy = (0..2000).map(|i| if i % 50 == 7 { INF } else { 100.0 }).collect();
    let infinite = format!("after 30 rounds half_rtt p99 is infinite: {target}");
    assert_eq!(stopped(lossy), infinite);
    let few = format!("after 30 rounds half_rtt p99 has too few samples: {target}");
    assert_eq!(stopped(vec![100.0]), few);
    let nothing = decided(30, &[0.0; 30], rounds).1.unwrap();
    assert_eq!(nothing, format!("after 30 rounds the rate is 0: {target}"));
}

#[test]
fn samples_without_rows_are_those_of_their_own_round() {
    let beyond = |count: u64| {
        let mut live = LiveHistogram::new(0.5).unwrap();
        live.record_ns_many(100.0, count);
        BTreeMap::from([(Metric::Service, live)])
    };
    // The client of the second of three rounds was killed: it left nothing at all.
    let mut run = closed();
    run.series.insert(Metric::Rtt, vec![vec![100.0; 3]; 2]);
    run.sampled.insert(Metric::Rtt, vec![0, 2]);
    run.beyond = vec![beyond(20), BTreeMap::new(), beyond(400)];
    assert_eq!(run.summary(Metric::Rtt, INF).count, 426);
}

#[test]
fn a_median_within_what_the_loop_adds_is_warned_of_where_there_is_a_path() {
    let instrument = Instrument {
        overhead_p50_ns: 20.0,
        overhead_p99_ns: 30.0,
        count: 2000,
        passes: 10,
        error_ns: 40.0,
        recording_ns: 3.0,
    };
    let is_warned = |transport, ns: f64| {
        let mut request = latency::request(Default::default());
        request.transports = vec![transport];
        let plan = request.clone().plan().unwrap();
        let mut run = run(request);
        run.series.insert(Metric::HalfRtt, vec![vec![ns; 1000]]);
        let run = run.into_run(&plan, Completion::default(), &instrument, &Fault::Interrupted);
        run.warnings.iter().any(|warning| warning.kind == "below_overhead")
    };
    // Half of a round trip has half of the error.
    assert!(is_warned(TransportKind::Tcp, 20.0) && !is_warned(TransportKind::Tcp, 21.0));
    assert!(!is_warned(TransportKind::INSTRUMENT, 20.0), "which shows the overhead itself");
}

#[test]
fn of_intervals_that_reach_equally_far_that_of_the_tail_is_named() {
    assert_eq!(widest_of(&rounds(|_, _| 100.0)), ("half_rtt p99".into(), Some(0.0)));
}

#[test]
fn the_capacity_is_the_rate_of_what_was_delivered() {
    let mut run = closed();
    run.work.delivered = vec![Delivered { work: 300.0, seconds: 1.5 }];
    run.work.posted = vec![Delivered { work: 900.0, seconds: 1.5 }];
    assert_eq!(run.capacity(), 200.0);
}

#[test]
fn a_run_is_over_with_any_end_and_whole_with_all_that_was_asked_for() {
    let mut run = closed();
    assert!(!run.is_over() && !run.is_complete() && !run.is_whole());
    run.stop = Some(Err(Fault::Interrupted));
    assert!(run.is_over() && !run.is_complete() && !run.is_whole());
    run.stop = Some(Ok(String::new()));
    assert!(run.is_over() && run.is_complete() && run.is_whole());
    run.warnings.push(Warning::FileFailed { left_out: 1, reason: String::new() });
    assert!(run.is_complete() && !run.is_whole());
}

#[test]
fn what_is_known_of_an_end_is_that_of_its_host() {
    let mut run = closed();
    run.case.topology.ranks[1].host = Some(1);
    let noise = |cpu| Noise { cpu, ..Noise::default() };
    run.noise = vec![(None, noise(3)), (Some(1), noise(5))];
    run.shared_cpus = [(None, 6), (Some(1), 7), (Some(1), 8)].into();
    let cpus = |host| run.noise_at(host).map(|noise| noise.cpu).collect::<Vec<_>>();
    assert_eq!((cpus(None), cpus(Some(1)), cpus(Some(0))), (vec![3], vec![5], vec![]));
    let shared = |host| run.shared_at(host).collect::<Vec<_>>();
    assert_eq!((shared(1), shared(0)), (vec![7, 8], vec![]));
}

#[test]
fn a_schedule_has_an_offered_rate_an_achieved_one_and_that_of_what_arrived() {
    let mut run = run(oneway::request(Default::default()));
    run.case.schedule = Schedule::Periodic { rate: MessageRate(100.0) };
    run.work.offered = vec![Delivered { work: 300.0, seconds: 3.0 }];
    run.work.posted = vec![Delivered { work: 270.0, seconds: 3.0 }];
    run.work.delivered = vec![Delivered { work: 150.0, seconds: 3.0 }];
    let rates = run.analysis.rate_figures(&run);
    let values: Vec<f64> = rates.iter().map(|figure| figure.rate.value).collect();
    assert_eq!(values, [100.0, 90.0, 50.0]);
}

#[test]
fn a_thread_is_shown_where_one_end_had_it_and_its_cpus_where_both_were_bound() {
    let request = latency::request(Default::default());
    let case = request.plan().unwrap().cases.remove(0);
    let taken = |client: &[bool], server: &[bool]| {
        let analysis = registry::analysis(case.pattern.name()).unwrap();
        let mut run = RunSoFar::new(0, &case, analysis, &[CpuPair { client: 2, server: 3 }], 1);
        let rank = |role, pinned: &[bool]| {
            let threads = pinned.iter().map(|pinned| finished_thread(0, *pinned, &[])).collect();
            RankResult { role, threads }
        };
        let ranks = vec![rank(Role::Client, client), rank(Role::Server, server)];
        let finished = RoundResult { ranks, ..RoundResult::default() };
        let time = Timebase::nanoseconds(Ticks(0));
        let times = Times::of_one_host(&time);
        let seen = Seen { counts: Vec::new(), samples: RoundSamples::default(), times };
        run.take(&case, Round::default(), finished, seen);
        let round = &run.rounds[0];
        (round.threads.len(), round.cpus.map(|pair| [pair.client, pair.server]))
    };
    let cpus = Some([2, 3]);
    assert_eq!(taken(&[true], &[true]), (0, cpus), "one thread is the round");
    assert_eq!(taken(&[true], &[false]), (0, None));
    assert_eq!(taken(&[false], &[true]), (0, None));
    assert_eq!(taken(&[true], &[true; 2]), (2, cpus));
    assert_eq!(taken(&[true; 2], &[true]), (2, cpus));
}

#[test]
fn messages_that_no_end_has_sent_are_warned_of() {
    let warnings = |foreign| {
        let mut outcome = finished_thread(0, true, &[]).outcome.unwrap();
        outcome.counts.foreign = foreign;
        let mut run = closed();
        run.warn_of("client", &outcome);
        run.warnings
    };
    assert_eq!(warnings(0), []);
    assert_eq!(warnings(3), [Warning::UnknownSequence { messages: 3 }]);
}

#[test]
fn samples_without_rows_are_as_many_as_of_the_metric_that_has_most() {
    let beyond = |times| {
        let mut all = LiveHistogram::new(1.0).unwrap();
        all.record_ns_many(3000.0, times);
        Some(all.to_sparse())
    };
    let mut thread = finished_thread(0, true, &[]);
    let outcome = thread.outcome.as_mut().unwrap();
    outcome.beyond = Beyond { service: beyond(3), response: beyond(5), lateness: beyond(4) };
    let mut round = Round::default();
    closed().take_outcomes(&[thread], &mut round, |_| 1.0);
    assert_eq!(round.samples_in_histogram_only, 5);
}
