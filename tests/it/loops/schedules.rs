//! Intended times: exact, rising, and of the distribution that they are said to be of.

use proptest::prelude::*;
use wiregauge::loops::schedule::Arrivals;
use wiregauge::plan::{Case, Schedule, Trace};
use wiregauge::stats::exponential::{AT_0_1_PERCENT, anderson_darling};
use wiregauge::units::{MessageRate, Span};

fn times(schedule: Schedule, messages: usize, seed: u64) -> Vec<f64> {
    let case = super::oneway_case();
    let mut arrivals = Arrivals::of(&Case { schedule, seed, ..case }, 1.0).unwrap();
    (0..messages).map(|_| arrivals.draw().unwrap()).collect()
}

fn intervals(times: &[f64]) -> Vec<f64> {
    let before = std::iter::once(0.0).chain(times.iter().copied());
    times.iter().zip(before).map(|(at, before)| at - before).collect()
}

// Seeds are fixed, so that a pass stays a pass.
#[test]
fn poisson_intervals_are_exponential_at_every_rate() {
    for (seed, rate) in [(1, 1e3), (2, 1e5), (3, 1e6), (4, 2e7), (5, 1e8)] {
        let schedule = Schedule::Poisson { rate: MessageRate(rate) };
        let mut intervals = intervals(&times(schedule, 100_000, seed));
        let statistic = anderson_darling(&mut intervals, 1e9 / rate);
        assert!(statistic < AT_0_1_PERCENT, "{statistic} at {rate}/s");
    }
}

#[test]
fn an_on_off_source_is_poisson_while_it_is_on_and_silent_while_it_is_off() {
    let (on, off) = (1e6, 9e6);
    let spans = (Span(on as u64), Span(off as u64));
    let schedule = Schedule::OnOff { rate: MessageRate(1e5), on: spans.0, off: spans.1 };
    let times = times(schedule, 200_000, 6);
    assert!(times.iter().all(|at| at % (on + off) < on + 1e-3), "nothing while it is off");
    let rate = times.len() as f64 / times.last().unwrap() * 1e9;
    assert!((rate / 1e5 - 1.0).abs() < 0.01, "{rate} on average");
    // The clock that stands still while it is off.
    let burst = |at: f64| (at / (on + off)).floor();
    let own: Vec<f64> = times.iter().map(|at| at - burst(*at) * off).collect();
    let statistic = anderson_darling(&mut intervals(&own), 1e3);
    assert!(statistic < AT_0_1_PERCENT, "{statistic}");
}

#[test]
fn a_trace_is_played_once_and_as_it_is_written() {
    let trace = Trace::parse("t", "5us\n5us\n1ms\n").unwrap();
    let schedule = Schedule::Trace { rate: trace.rate() };
    let case = super::oneway_case();
    let case = Case { schedule, trace: Some(trace), ..case };
    let ticks: Vec<i64> = Arrivals::of(&case, 0.5).unwrap().map(|at| at.0).collect();
    assert_eq!(ticks, [10_000, 10_000, 2_000_000]);
}

#[test]
fn another_seed_is_another_schedule_of_the_same_rate() {
    let schedule = Schedule::Poisson { rate: MessageRate(1e6) };
    let [one, again, other] = [1, 1, 2].map(|seed| times(schedule, 1000, seed));
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn a_day_of_periodic_times_adds_up_no_rounding() {
    let rate = MessageRate(3.0);
    let times = times(Schedule::Periodic { rate }, 3 * 86_400 + 1, 0);
    let day = times.last().unwrap() - 86_400e9;
    assert!(day.abs() < 1.0 / 16.0, "{day} ns");
}

proptest! {
    #[test]
    fn times_rise_and_a_prefix_is_the_schedule_of_fewer(
        rate in 1.0f64..1e8, seed: u64, kind in 0..3, messages in 1usize..2000,
    ) {
        let rate = MessageRate(rate);
        let schedule = match kind {
            0 => Schedule::Periodic { rate },
            1 => Schedule::Poisson { rate },
            _ => Schedule::OnOff { rate, on: Span(10_000), off: Span(70_000) },
        };
        let all = times(schedule, messages, seed);
        prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(all.iter().all(|at| at.is_finite() && *at >= 0.0));
        let fewer = times(schedule, messages / 2, seed);
        prop_assert_eq!(&all[..fewer.len()], &fewer[..]);
    }

    #[test]
    fn a_periodic_time_is_its_number_times_the_interval(rate in 1.0f64..1e8) {
        let times = times(Schedule::Periodic { rate: MessageRate(rate) }, 1000, 0);
        for (number, at) in times.iter().enumerate() {
            let exact = number as f64 * 1e9 / rate;
            prop_assert!((at - exact).abs() <= exact * 1e-15);
        }
    }
}
