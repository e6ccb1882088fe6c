//! T7 and T8: what the generator intends, what it makes of it, and what a stall does to that.

use super::simulate::{self, play, quantile, scheduled};
use super::{Fallible, Outcome};
use crate::agent::rehearse;
use crate::clock::{ChosenClock, Clock, KernelClock, Source, Ticks, Timebase, Tsc};
use crate::loops::Ended;
use crate::loops::gate::Gate;
use crate::loops::schedule::{Arrivals, Generator, Pace};
use crate::plan::{Case, Schedule};
use crate::stats::Metric;
use crate::stats::exponential::{AT_5_PERCENT, anderson_darling};
use crate::units::{MessageRate, Span};

/// Intervals that are tested for being exponential.
const TESTED: usize = 200_000;
/// The rate of a Poisson process of this many messages is within 0.05 % (one sigma).
const MESSAGES: u64 = 4_000_000;
/// Of the highest rate that the generator could make if it did nothing else, the share that it is
/// said to hold: at all of it there is no idle time to make up for an interruption.
const HELD: f64 = 0.8;
/// A message is on time where it is no later than this.
const ON_TIME_NS: f64 = 1000.0;
/// How long a rate is tried.
const RUN_S: f64 = 0.2;
/// Time between two readings of the kernel's clock: it takes longer than a message may.
const APART_NS: f64 = 1e6;
/// The share of the messages that lie between the first and the last that are on time.
const COVERED: f64 = 0.9;
/// A machine that cannot hold this many messages per second is not judged.
const LEAST_RATE: f64 = 1e3;
/// Seed of all.
const SEED: u64 = 8;

/// T7: a server that stops for a time, and a client with one buffer.
///
/// The server takes s = 1 us a request and stops once, for D = 100 ms of T = 5 s. Requests
/// come at 100 k/s, so that rho = 0.1. One that is intended a time t after the stall began is
/// answered D minus t (1 minus rho) later: those that waited before it take s each. So the share of
/// responses above x is (D minus x) / (1 minus rho) / T, and the p99 is D minus 0.01 T (1 minus
/// rho), 55 ms. Only one request was on the way in the stall: the service time of the others is
/// what it is without one.
pub fn t7_stall() -> Outcome {
    let served = |spec: &str| -> Fallible<[f64; 2]> {
        let schedule = Schedule::Poisson { rate: MessageRate(1e5) };
        let case = simulate::one_request_at_a_time(spec, 500_000)?;
        let loss_after = Span(1_000_000_000);
        let played = play(&Case { schedule, loss_after, seed: SEED, ..case })?;
        Ok([Metric::Response, Metric::Service]
            .map(|metric| quantile(&played.summary(metric), 0.99)))
    };
    let [_, calm] = served("normal(1us,100ns)")?;
    let [response, service] = served("normal(1us,100ns) stall(100ms@250000)")?;
    let passes = (response / 55e6 - 1.0).abs() < 0.05 && (service / calm - 1.0).abs() < 0.01;
    let truth = format!("response p99 55 ms, service p99 {calm} ns");
    let measured = format!("response p99 {:.2} ms, service p99 {service} ns", response / 1e6);
    Ok((truth, measured, passes))
}

/// T8: the generators, from 1 k/s to the highest rate that the generator states for this machine.
pub fn t8_generators() -> Outcome {
    let (mut worst, mut statistic): (f64, f64) = (0.0, 0.0);
    let highest = highest_rate()?;
    for rate in [1e2, 1e3, 1e5, 1e7, highest].map(MessageRate) {
        for schedule in [Schedule::Periodic { rate }, Schedule::Poisson { rate }] {
            let (off, a2) = intended(schedule, rate.0)?;
            worst = worst.max(off);
            statistic = statistic.max(a2);
            if rate.0 < highest {
                played(schedule, rate.0)?;
            }
        }
    }
    let (rate, off) = held(highest)?;
    let passes = worst.max(off) < 0.001 && statistic < AT_5_PERCENT;
    let measured = format!(
        "off by {:.4} %, A2 = {statistic:.2}; {:.2} M/s held within {:.4} %",
        100.0 * worst,
        rate / 1e6,
        100.0 * off
    );
    Ok((format!("0 %, A2 < {AT_5_PERCENT}"), measured, passes))
}

fn case(schedule: Schedule, messages: u64) -> Fallible<Case> {
    Ok(Case { seed: SEED, ..scheduled("constant(1us)", messages, schedule)? })
}

/// How far the rate of a schedule is off, and the statistic of its intervals (0 for periodic).
fn intended(schedule: Schedule, rate: f64) -> Fallible<(f64, f64)> {
    let mut arrivals = Arrivals::of(&case(schedule, MESSAGES)?, 1.0).ok_or("no schedule")?;
    let mut intervals = Vec::with_capacity(TESTED);
    let mut last = 0.0;
    for _ in 0..MESSAGES {
        let at = arrivals.draw().ok_or("the schedule has ended")?;
        if intervals.len() < TESTED {
            intervals.push(at - last);
        }
        last = at;
    }
    let off = ((MESSAGES - 1) as f64 / last * 1e9 / rate - 1.0).abs();
    match schedule {
        Schedule::Poisson { .. } => Ok((off, anderson_darling(&mut intervals, 1e9 / rate))),
        _ => Ok((off, 0.0)),
    }
}

/// What the loop makes of a schedule: every message at its time, on the virtual clock.
fn played(schedule: Schedule, rate: f64) -> Fallible<()> {
    let played = play(&case(schedule, TESTED as u64)?)?;
    let late = played.samples.samples.iter().map(|s| s.submit_ns - s.intended_ns);
    let worst = late.fold(0.0, f64::max);
    // A post takes 10 ns there, so messages that come closer wait for it and no longer.
    let allowed_ns = if rate < 1e6 { 50.0 } else { 500.0 };
    let is_right = worst <= allowed_ns && played.ended == Ended::Count;
    ensure!(is_right, "a post {worst} ns after its time at {rate} msg/s");
    Ok(())
}

fn real_time() -> Fallible<Timebase> {
    Ok(ChosenClock::calibrate(Some(Source::Tsc))?.base)
}

/// The highest rate that the generator holds on this machine, found by letting it run late.
fn highest_rate() -> Fallible<f64> {
    let time = real_time()?;
    let case = case(Schedule::Poisson { rate: MessageRate(1e6) }, 1)?;
    let costs = (0..5).filter_map(|_| rehearse::generator(Tsc, &case, &time, 100_000));
    let least = costs.fold(f64::INFINITY, f64::min);
    Ok((HELD * 1e9 / (least * time.ns_per_tick)).floor())
}

/// The highest rate, this one halved as often as it takes, that the generator holds on the real
/// clock, and how far the rate that it makes is off. A machine that others use too holds less.
fn held(highest: f64) -> Fallible<(f64, f64)> {
    let mut rate = highest;
    while rate >= LEAST_RATE {
        if let Some(off) = run(rate)? {
            return Ok((rate, off));
        }
        rate /= 2.0;
    }
    Err(format!("no rate above {LEAST_RATE} msg/s is held").into())
}

/// A message that was on time: its number, and when, by the kernel's clock.
type OnTime = (u64, Ticks);

/// How far off a rate is that is held, by the kernel's clock and not by the one that the generator
/// waits on: `None` where the generator was not on time at both ends of nearly all of the run,
/// between which all messages were sent that were intended.
fn run(rate: f64) -> Fallible<Option<f64>> {
    let time = real_time()?;
    // At equal intervals: the number of random ones would be off by chance.
    let case = case(Schedule::Periodic { rate: MessageRate(rate) }, 1)?;
    let generator = Generator::of(&case, &time)?;
    let mut generator = generator.ok_or("no schedule")?;
    let gate = Gate::default();
    let (slice, apart) = (time.ticks_for(1e6), time.ticks_for(APART_NS));
    let on_time = time.ticks_for(ON_TIME_NS);
    let messages = (rate * RUN_S) as u64;
    let begin = Tsc.now() + slice;
    generator.begin(begin);
    let mut ends: Option<[OnTime; 2]> = None;
    let mut next_look = begin;
    for number in 0..messages {
        let intended = generator.upcoming().ok_or("the schedule has ended")?;
        let now = generator.wait(Tsc, &gate, slice).ok_or("stopped")?;
        generator.step(now);
        if now - intended <= on_time && now >= next_look {
            let here = (number, KernelClock::MONOTONIC.now());
            ends = Some([ends.map_or(here, |[first, _]| first), here]);
            next_look = now + apart;
        }
    }
    let covered =
        |[(first, _), (last, _)]: &[OnTime; 2]| (last - first) as f64 >= COVERED * messages as f64;
    Ok(ends.filter(covered).map(|[(first, begin), (last, end)]| {
        ((last - first) as f64 * 1e9 / (end - begin).0 as f64 / rate - 1.0).abs()
    }))
}
