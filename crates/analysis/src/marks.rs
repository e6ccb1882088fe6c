//! Sample flags that are known only when the round is over: where the warm-up ends, and whether
//! messages that did not arrive are lost or unfinished. Pure.

use crate::result::RoundResult;
use std::time::Duration;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Case;
use wiregauge_sample::recorder::Beyond;
use wiregauge_sample::{Flags, Sample};

/// Marks the samples of one thread; `is_rate`: the case's figures are rates of arrivals;
/// `are_common`: both ends have one time. Else one-way samples lack arrivals that there were.
pub fn mark(case: &Case, is_rate: bool, are_common: bool, samples: &mut [Sample]) {
    let submit = |s: &Sample| if s.submit_ns.is_nan() { s.receive_ns } else { s.submit_ns };
    let receive = |s: &Sample| s.receive_ns;
    let most_ns = case.warmup_time().map(|time| time.0 as f64);
    match (most_ns, is_rate) {
        // On a slow path the sender fills the buffers at once, so submits do not show the time.
        (Some(most_ns), true) => end_warmup(samples, most_ns, receive),
        (Some(most_ns), false) => end_warmup(samples, most_ns, submit),
        (None, _) => {}
    }
    let are_seen = are_common || !case.profile().is_one_way;
    name_missing(case.transport.loses(&case.settings), are_seen, samples);
}

/// Longest silence before the user's interrupt that is not taken for a stall, whose message counts
/// as infinitely late.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Returns whether the user ended a round: an endless one as planned, another before its end.
pub fn is_ended_by_user(case: &Case, finished: &RoundResult) -> bool {
    case.is_endless() || finished.fault.as_ref().is_some_and(Fault::is_interrupted)
}

/// Takes out what was under way when the user ended a round, and returns how many messages that
/// were: nobody knows how long they would have taken. `ran`: the time of the whole round.
///
/// Of a closed loop these are the last that were sent, which no answered one follows: the figures
/// are those of a round that ended before them. One that others have overtaken stays infinitely
/// late, as all do that an open loop had under way: their wait is part of the response.
pub fn leave_out_under_way(case: &Case, ran: Option<Duration>, samples: &mut Vec<Sample>) -> u64 {
    let stamps = samples.iter().flat_map(|s| [s.submit_ns, s.receive_ns]);
    let Some((first_ns, last_ns)) = ends(stamps) else { return 0 };
    let silence_ns = ran.map_or(0.0, |ran| ran.as_nanos() as f64) - (last_ns - first_ns);
    let is_stalled = silence_ns > MAX_SILENCE.as_nanos() as f64;
    if !case.is_endless() && (case.schedule.is_open() || is_stalled) {
        return 0;
    }
    let answered = samples.iter().filter(|s| !s.receive_ns.is_nan()).map(|s| s.submit_ns);
    let last_answered_ns = ends(answered).map_or(f64::NEG_INFINITY, |(_, last)| last);
    let oldest_ns = last_answered_ns.max(last_ns - case.loss_after.0 as f64);
    let before = samples.len();
    samples.retain(|sample| {
        let is_cut_off = case.is_endless() && sample.flags.has(Flags::UNFINISHED);
        let is_last = sample.receive_ns.is_nan() && sample.submit_ns > oldest_ns;
        !(is_cut_off || is_last && MISSING.into_iter().any(|flag| sample.flags.has(flag)))
    });
    (before - samples.len()) as u64
}

/// Flags of what was sent and has not arrived.
const MISSING: [Flags; 2] = [Flags::LOST, Flags::UNFINISHED];

/// Returns the least and the greatest of times, without those that are unknown.
fn ends(times: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    times
        .filter(|time| !time.is_nan())
        .map(|time| (time, time))
        .reduce(|(first, last), (time, _)| (first.min(time), last.max(time)))
}

/// Takes messages under way for which there was no row out of an endless round, over a transport
/// that loses nothing.
pub fn forgive(case: &Case, finished: &mut RoundResult) {
    if !case.is_endless() || case.transport.loses(&case.settings) {
        return;
    }
    let threads = finished.ranks.iter_mut().flat_map(|rank| &mut rank.threads);
    for outcome in threads.filter_map(|thread| thread.outcome.as_mut()) {
        let Beyond { service, response, .. } = &mut outcome.beyond;
        for histogram in [service, response].into_iter().flatten() {
            histogram.totals.lost = 0;
        }
    }
}

/// Ends the warm-up after `most_ns`: later messages lose the flag and are in the figures. The time
/// of each direction starts with its own first message.
fn end_warmup(samples: &mut [Sample], most_ns: f64, time: impl Fn(&Sample) -> f64) {
    for way in [Flags::default(), Flags::REVERSE] {
        let is_own =
            |s: &Sample| s.flags.has(Flags::WARMUP) && s.flags.has(Flags::REVERSE) == (way.0 != 0);
        let times = samples.iter().filter(|s| is_own(s)).map(&time);
        let begin = times.filter(|ns| !ns.is_nan()).fold(f64::INFINITY, f64::min);
        for sample in samples.iter_mut().filter(|s| is_own(s)) {
            if time(sample) - begin >= most_ns {
                sample.flags = sample.flags.without(Flags::WARMUP);
            }
        }
    }
}

/// Flags what was sent and did not come, whether its loop had given it up or was stopped before. A
/// transport that loses nothing has not dropped it: it was under way when the round ended. Where
/// arrivals are not seen in the samples, their pattern has flagged what did not come.
fn name_missing(may_lose: bool, are_seen: bool, samples: &mut [Sample]) {
    let missing = if may_lose { Flags::LOST } else { Flags::UNFINISHED };
    let is_missing = |s: &&mut Sample| {
        let is_open = are_seen && !s.submit_ns.is_nan() && s.receive_ns.is_nan();
        is_open || s.flags.has(Flags::LOST)
    };
    for sample in samples.iter_mut().filter(is_missing) {
        sample.flags = sample.flags.without(Flags::LOST).with(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(submit: f64, receive: f64, flags: Flags) -> Sample {
        Sample::new(0, 64, [f64::NAN, submit, f64::NAN, receive, f64::NAN], flags)
    }

    #[test]
    fn a_warm_up_of_slow_messages_ends_by_the_time() {
        // 1000 messages of 17.5 ms, all marked as warm-up by their number.
        let mut samples: Vec<Sample> = (0..1000)
            .map(|i| sample(f64::from(i) * 17.5e6, f64::from(i + 1) * 17.5e6, Flags::WARMUP))
            .collect();
        end_warmup(&mut samples, 2e8, |s| s.submit_ns);
        let warm = samples.iter().take_while(|s| s.flags.has(Flags::WARMUP)).count();
        assert_eq!(warm, 12, "0.2 s");
        assert!(samples[warm..].iter().all(|s| !s.flags.has(Flags::WARMUP)));
        // One by one they are as many as their number says.
        let mut quick: Vec<Sample> =
            (0..1000).map(|i| sample(f64::from(i), f64::NAN, Flags::WARMUP)).collect();
        end_warmup(&mut quick, 2e8, |s| s.submit_ns);
        assert!(quick.iter().all(|s| s.flags.has(Flags::WARMUP)));
    }

    #[test]
    fn each_direction_warms_up_from_its_own_begin() {
        let back = Flags::WARMUP.with(Flags::REVERSE);
        let mut samples = [
            sample(f64::NAN, 0.0, Flags::WARMUP),
            sample(f64::NAN, 5.0, Flags::WARMUP),
            sample(f64::NAN, 100.0, back),
            sample(f64::NAN, 103.0, back),
        ];
        end_warmup(&mut samples, 4.0, |s| s.receive_ns);
        let warm = samples.map(|s| s.flags.has(Flags::WARMUP));
        assert_eq!(warm, [true, false, true, true]);
    }

    #[test]
    fn what_a_reliable_transport_had_under_way_is_not_lost() {
        let mut samples = [
            sample(1.0, f64::NAN, Flags::LOST.with(Flags::WARMUP)),
            sample(f64::NAN, f64::NAN, Flags::UNSENT),
            sample(1.0, 2.0, Flags::default()),
        ];
        name_missing(false, true, &mut samples);
        let flags = samples.map(|s| s.flags);
        let unfinished = Flags::UNFINISHED.with(Flags::WARMUP);
        assert_eq!(flags, [unfinished, Flags::UNSENT, Flags::default()]);
    }

    #[test]
    fn what_arrived_by_a_clock_that_nobody_knows_is_not_missing() {
        let flags = |case: &Case, are_common| {
            let lost = Flags::LOST;
            let mut samples = [Flags::default(), lost].map(|flags| sample(1.0, f64::NAN, flags));
            mark(case, false, are_common, &mut samples);
            samples.map(|s| s.flags)
        };
        let plan = |plan: Result<wiregauge_plan::Plan, _>| plan.unwrap().cases.remove(0);
        let oneway = plan(wiregauge_patterns::oneway::request(Default::default()).plan());
        let (open, kept) = (Flags::UNFINISHED, Flags::default());
        assert_eq!(flags(&oneway, true), [open, open], "over tcp");
        assert_eq!(flags(&oneway, false), [kept, open]);
        // A round trip is by one clock.
        let latency = plan(wiregauge_patterns::latency::request(Default::default()).plan());
        assert_eq!(flags(&latency, false), [open, open]);
    }

    #[test]
    fn a_round_trip_that_a_stop_cut_off_has_its_flag() {
        // Its loop kept it as sent, without a flag.
        let cut_off = || [sample(1.0, 2.0, Flags::default()), sample(3.0, f64::NAN, Flags::WARMUP)];
        for (may_lose, flag) in [(false, Flags::UNFINISHED), (true, Flags::LOST)] {
            let mut samples = cut_off();
            name_missing(may_lose, true, &mut samples);
            let flags = samples.map(|s| s.flags);
            assert_eq!(flags, [Flags::default(), Flags::WARMUP.with(flag)]);
        }
    }

    #[test]
    fn what_the_users_interrupt_cut_off_of_a_closed_loop_is_in_no_figure() {
        use wiregauge_plan::Schedule;
        use wiregauge_transport::TransportKind::{Tcp, Udp};
        let poisson = Schedule::Poisson { rate: wiregauge_base::units::MessageRate(10.0) };
        for (transport, schedule, flag, ran_ms, expected) in [
            (Udp, Schedule::ClosedLoop, Flags::LOST, 600, 1),
            (Tcp, Schedule::ClosedLoop, Flags::UNFINISHED, 600, 1),
            (Tcp, poisson, Flags::UNFINISHED, 600, 0),
            // After seconds without a message the user ended a stall.
            (Tcp, Schedule::ClosedLoop, Flags::UNFINISHED, 5000, 0),
        ] {
            let request = wiregauge_patterns::latency::request(Default::default());
            let request = wiregauge_plan::Request { transports: vec![transport], ..request };
            let case = Case { schedule, ..request.plan().unwrap().cases.remove(0) };
            // Half a second of messages; the third arrives, and has overtaken the second.
            let mut left = vec![
                sample(0.0, 1.0, Flags::default()),
                sample(2e8, f64::NAN, flag),
                sample(3e8, 4e8, Flags::default()),
                sample(5e8, f64::NAN, flag),
            ];
            let ran = Some(Duration::from_millis(ran_ms));
            let count = leave_out_under_way(&case, ran, &mut left);
            assert_eq!(count, expected, "{transport} {schedule:?} after {ran_ms} ms");
            assert_eq!(left.len() as u64, 4 - expected);
            assert_eq!(left[1].submit_ns, 2e8, "one that was overtaken is infinitely late");
        }
    }

    #[test]
    fn the_warm_up_of_a_rate_is_timed_by_what_arrives_and_else_by_what_is_sent() {
        let mut case =
            wiregauge_patterns::latency::request(Default::default()).plan().unwrap().cases;
        let case = &mut case[0];
        let most_ns = case.warmup_time().unwrap().0 as f64;
        // Sent at once, received after the longest warm-up, and one that was not received.
        let samples = || {
            let at = |receive| sample(1.0, receive, Flags::WARMUP);
            [at(2.0), at(2.0 + most_ns), at(f64::NAN)]
        };
        let flags = |case: &Case, is_rate: bool, mut samples: Vec<Sample>| {
            mark(case, is_rate, true, &mut samples);
            samples.into_iter().map(|sample| sample.flags).collect::<Vec<_>>()
        };
        let (warm, kept) = (Flags::WARMUP, Flags::default());
        let missing = warm.with(Flags::UNFINISHED);
        assert_eq!(flags(case, true, samples().into()), [warm, kept, missing]);
        assert_eq!(flags(case, false, samples().into()), [warm, warm, missing]);
        // What a server alone has seen has a time of receipt.
        let received = |ns| sample(f64::NAN, ns, warm);
        let of_server = || vec![received(2.0), received(2.0 + most_ns)];
        assert_eq!(flags(case, false, of_server()), [warm, kept]);
        case.exact_warmup = true;
        assert_eq!(flags(case, true, of_server()), [warm, warm], "as many as were asked for");
    }
}
