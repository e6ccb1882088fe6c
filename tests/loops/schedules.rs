//! Intended times: exact, rising, and of the distribution that they are said to be of.

use proptest::prelude::*;
use wiregauge::pattern::schedule::intended_ns;
use wiregauge::plan::Schedule;
use wiregauge::units::MessageRate;

fn intervals(times: &[f64]) -> Vec<f64> {
    let before = std::iter::once(0.0).chain(times.iter().copied());
    times.iter().zip(before).map(|(at, before)| at - before).collect()
}

/// The statistic of Anderson and Darling against an exponential distribution of this mean.
fn anderson_darling(mut intervals: Vec<f64>, mean: f64) -> f64 {
    intervals.sort_by(f64::total_cmp);
    let n = intervals.len();
    let sum: f64 = (0..n)
        .map(|i| {
            let below = -(-intervals[i] / mean).exp_m1();
            let log_above = -intervals[n - 1 - i] / mean;
            (2 * i + 1) as f64 * (below.ln() + log_above)
        })
        .sum();
    -(n as f64) - sum / n as f64
}

/// Its value that one sample in 1000 exceeds where the distribution is known (Marsaglia and
/// Marsaglia 2004): seeds are fixed, so that a pass stays a pass.
const ONE_IN_A_THOUSAND: f64 = 6.0;

#[test]
fn poisson_intervals_are_exponential_at_every_rate() {
    for (seed, rate) in [(1, 1e3), (2, 1e5), (3, 1e6), (4, 2e7)] {
        let schedule = Schedule::Poisson { rate: MessageRate(rate) };
        let intervals = intervals(&intended_ns(schedule, 100_000, seed));
        let statistic = anderson_darling(intervals, 1e9 / rate);
        assert!(statistic < ONE_IN_A_THOUSAND, "{statistic} at {rate}/s");
    }
}

#[test]
fn the_test_of_exponentiality_tells_others_apart() {
    let regular = vec![1000.0; 1000];
    assert!(anderson_darling(regular, 1000.0) > 100.0);
    let schedule = Schedule::Poisson { rate: MessageRate(1e6) };
    let times = intervals(&intended_ns(schedule, 10_000, 1));
    assert!(anderson_darling(times, 1050.0) > ONE_IN_A_THOUSAND, "5 % off is seen");
}

#[test]
fn a_day_of_periodic_times_adds_up_no_rounding() {
    let rate = MessageRate(3.0);
    let times = intended_ns(Schedule::Periodic { rate }, 3 * 86_400 + 1, 0);
    let day = times.last().unwrap() - 86_400e9;
    assert!(day.abs() < 1.0 / 16.0, "{day} ns");
}

proptest! {
    #[test]
    fn times_rise_and_a_prefix_is_the_schedule_of_fewer(
        rate in 1.0f64..1e8, seed: u64, poisson: bool, messages in 1u64..2000,
    ) {
        let rate = MessageRate(rate);
        let schedule =
            if poisson { Schedule::Poisson { rate } } else { Schedule::Periodic { rate } };
        let times = intended_ns(schedule, messages, seed);
        prop_assert_eq!(times.len() as u64, messages);
        prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(times.iter().all(|at| at.is_finite() && *at >= 0.0));
        let fewer = intended_ns(schedule, messages / 2, seed);
        prop_assert_eq!(&times[..fewer.len()], &fewer[..]);
    }

    #[test]
    fn a_periodic_time_is_its_number_times_the_interval(rate in 1.0f64..1e8) {
        let times = intended_ns(Schedule::Periodic { rate: MessageRate(rate) }, 1000, 0);
        for (number, at) in times.iter().enumerate() {
            let exact = number as f64 * 1e9 / rate;
            prop_assert!((at - exact).abs() <= exact * 1e-15);
        }
    }
}
