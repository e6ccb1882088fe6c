//! Hosts with known times, of which one is slower.

use super::*;
use wiregauge_patterns::{latency, load};
use wiregauge_plan::topology::{Topology, Wiring};
use wiregauge_sample::{Flags, Sample};
use wiregauge_stats::Value;

fn known(value: f64, reach: f64) -> Option<Known> {
    Some((value, Some(Interval { low: Value(value - reach), high: Value(value + reach) })))
}

#[test]
fn a_host_stands_out_whose_interval_is_beyond_those_of_all_others() {
    let alike = [known(10.0, 1.0), known(11.0, 1.0), known(10.5, 0.1)];
    assert!(beyond_the_others(&alike).is_empty());
    let slow = [known(10.0, 1.0), known(20.0, 2.0), known(11.0, 1.0)];
    assert_eq!(beyond_the_others(&slow), [1]);
    let fast = [known(10.0, 1.0), known(20.0, 2.0), known(21.0, 2.0)];
    assert_eq!(beyond_the_others(&fast), [0]);
    // Of two the slower, and of one none.
    assert_eq!(beyond_the_others(&[known(10.0, 1.0), known(20.0, 1.0)]), [1]);
    assert!(beyond_the_others(&[known(10.0, 1.0)]).is_empty());
    // Each may touch another, and an unknown interval may be anywhere.
    assert!(beyond_the_others(&[known(10.0, 1.0), known(12.0, 1.0)]).is_empty());
    assert!(beyond_the_others(&[known(10.0, 1.0), known(20.0, 1.0), None]).is_empty());
}

/// A case of clients on this host and on hosts 0 and 1, two threads each.
fn case() -> (Plan, Case) {
    let plan = load::request(load::LoadRequest::default()).plan().unwrap();
    let topology = Topology::client_server(2, 1, Wiring::Mesh { each: 1 }).with_clients(3);
    let topology = topology.with_clients_on(&[None, Some(0), Some(1)]);
    let case = Case { topology, ..plan.cases[0].clone() };
    (plan, case)
}

/// A round trip of this many ns of a thread.
fn sample(thread: u32, sequence: u64, ns: f64) -> Sample {
    let begin = 1000.0 * sequence as f64;
    let stamps = [f64::NAN, begin, f64::NAN, begin + ns, f64::NAN];
    Sample { thread, ..Sample::new(sequence, 100, stamps, Flags::default()) }
}

/// The hosts after five rounds in which each took a tenth of its own time more or less.
fn hosts(of: [f64; 3]) -> (Vec<ClientHost>, Vec<Warning>) {
    let (plan, case) = case();
    let mut seen = ByHost::default();
    let mut pooled = Vec::new();
    for round in 0..5 {
        let one = |sequence: u64| {
            let thread = (sequence % 6) as u32;
            let spread = 0.9 + 0.2 * ((sequence * 7919) % 1000) as f64 / 1000.0;
            let level = 0.98 + 0.01 * f64::from(round);
            sample(thread, sequence, of[thread as usize / 2] * spread * level)
        };
        let samples = (0..6000).map(one).collect();
        let samples = RoundSamples { run: 0, round, samples };
        seen.take(&case, Metric::Rtt, &samples);
        pooled.push(durations(&samples, Metric::Rtt));
    }
    let summary = summarize(&pooled, f64::INFINITY);
    let figure = Figure { metric: Metric::Rtt, unit: "ns".into(), summary, clock_bound_ns: None };
    let mut hosts = seen.figures(&BTreeMap::new(), &plan);
    let warnings = compare(&mut hosts, &[figure], &[]);
    (hosts, warnings)
}

#[test]
fn samples_belong_to_the_host_of_their_thread_and_the_slow_host_is_named() {
    let (hosts_of, warnings) = hosts([100.0, 100.0, 300.0]);
    let p50 = |host: &ClientHost| host.summary.quantile(0.5).unwrap().value.unwrap().0.round();
    let found: Vec<(Option<u32>, f64)> = hosts_of.iter().map(|h| (h.host, p50(h))).collect();
    assert_eq!(found, [(None, 100.0), (Some(0), 100.0), (Some(1), 300.0)]);
    assert_eq!(hosts_of[2].stands_out, ["p50"], "p99 of all is that of the slow host");
    assert!(hosts_of[0].stands_out.is_empty() && hosts_of[1].stands_out.is_empty());
    let [Warning::HostStandsOut { figure, ratio, .. }] = warnings.as_slice() else {
        panic!("{warnings:?}")
    };
    assert!(figure == "rtt p50" && *ratio > 2.5, "{figure} {ratio}");
}

#[test]
fn a_difference_within_a_fifth_is_none() {
    let (hosts_of, warnings) = hosts([100.0, 100.0, 115.0]);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(hosts_of.iter().all(|host| host.stands_out.is_empty()));
}

#[test]
fn clients_of_one_host_are_not_compared() {
    let plan = latency::request(Default::default()).plan().unwrap();
    let case = &plan.cases[0];
    let samples = RoundSamples { samples: vec![sample(0, 0, 5.0)], ..RoundSamples::default() };
    let mut seen = ByHost::default();
    seen.take(case, Metric::HalfRtt, &samples);
    assert!(seen.figures(&BTreeMap::new(), &plan).is_empty());
}
