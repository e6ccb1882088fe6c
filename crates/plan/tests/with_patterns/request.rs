//! Bounds of a request.

use wiregauge_base::units::MessageRate;
use wiregauge_base::units::Span;
use wiregauge_patterns::bandwidth::{self, Direction};
use wiregauge_patterns::{load, oneway};
use wiregauge_plan::Trace;
use wiregauge_plan::{Request, Schedule};

#[test]
fn a_trace_is_played_to_its_end() {
    let lines: String = (0..30_000).map(|n| format!("{n}us\n")).collect();
    let trace = Trace::parse("t", &lines).unwrap();
    let schedule = Schedule::Trace { rate: trace.rate() };
    let requests =
        [oneway::request(oneway::Spec::default()), load::request(load::LoadRequest::default())];
    for request in requests {
        let request = Request { trace: Some(trace.clone()), schedule, ..request };
        assert_eq!(request.plan().unwrap().cases[0].bound.count, Some(30_000));
    }
}

#[test]
fn the_warm_up_is_at_most_a_tenth_of_what_is_expected() {
    let warmup = |count, time, schedule| {
        let usual = oneway::request(oneway::Spec::default());
        let request = Request { count, time, schedule, ..usual };
        request.plan().unwrap().cases[0].warmup
    };
    let slow = Schedule::Periodic { rate: MessageRate(5e3) };
    let tenth_of_a_second = Some(Span(100_000_000));
    assert_eq!(warmup(None, None, Schedule::ClosedLoop), 1000);
    assert_eq!(warmup(Some(500), None, Schedule::ClosedLoop), 50);
    assert_eq!(warmup(None, tenth_of_a_second, Schedule::ClosedLoop), 1000);
    assert_eq!(warmup(None, tenth_of_a_second, slow), 50);
    assert_eq!(warmup(Some(100), tenth_of_a_second, slow), 10);
}

#[test]
fn time_ends_a_warm_up_unless_its_messages_were_asked_for() {
    let longest = |warmup, time: Option<u64>| {
        let usual = oneway::request(oneway::Spec::default());
        let request = Request { warmup, time: time.map(Span), ..usual };
        request.plan().unwrap().cases[0].warmup_time().map(|time| time.0)
    };
    assert_eq!(longest(None, None), Some(1_000_000_000));
    assert_eq!(longest(None, Some(2_000_000_000)), Some(200_000_000));
    assert_eq!(longest(Some(1000), Some(2_000_000_000)), None);
}

/// Returns the refusal of a bandwidth of these messages.
fn refused(direction: Direction, count: u64) -> Option<String> {
    let spec = bandwidth::Spec { direction, ..Default::default() };
    let request = Request { count: Some(count), ..bandwidth::request(spec) };
    request.plan().err().map(|error| error.to_string())
}

/// The rows of a round are limited: of both directions each end keeps its own.
#[test]
fn messages_beyond_what_a_round_may_keep_are_refused() {
    assert_eq!(refused(Direction::Uni, 9_000_000), None);
    assert_eq!(refused(Direction::Bi, 8_000_000), None);
    let sentence = refused(Direction::Bi, 9_000_000).unwrap_or_default();
    assert!(sentence.contains("samples per round: use fewer (--count, --warmup)"), "{sentence}");
}
