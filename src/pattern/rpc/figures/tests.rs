//! Slowdowns and tails of made-up times.

use super::*;
use crate::pattern::rpc::workload::Workload;
use crate::pattern::rpc::{Reply, RpcRequest, request};
use crate::units::{Bytes, MessageRate};

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
    let summary = |ns: f64| {
        let times: Vec<f64> = (0..100).map(|n| ns + f64::from(n - 49)).collect();
        summarize(&[times], f64::INFINITY)
    };
    Baseline { run: 1, sizes: [(100, summary(10_000.0)), (10_100, summary(30_000.0))].into() }
}

fn lengths(
    case: &Case,
    times: &BySize,
    baseline: Option<&Baseline>,
    threshold_ns: f64,
) -> Option<Lengths> {
    let found = super::lengths(case, times, baseline, threshold_ns);
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
}

#[test]
fn a_link_that_was_named_is_not_found() {
    let case = case();
    let case = case.with_spec(Spec {
        link: Some(crate::units::ByteRate(2e9)),
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
    assert_eq!(found.sizes[0].unloaded, Unloaded::default());
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
    let found = super::lengths(&case, &times, None, f64::INFINITY).figures;
    let [short] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((short.metric, short.summary.count), (Metric::Short, 50));
    let times = by_size(&[(2000, vec![vec![3.0; 50]])]);
    assert!(lengths(&case, &times, None, f64::INFINITY).unwrap().short.is_none());
}
