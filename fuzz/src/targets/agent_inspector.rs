//! What a paired controller sends to an agent daemon: frames from anywhere are let through or
//! refused in one sentence, no number of them frees a session of its limits, and no round that is
//! let through exceeds the limits that were given.

use wiregauge::control::frame::read_body;
use wiregauge::control::protocol::ToAgent;
use wiregauge::pattern::registry;
use wiregauge::plan::Case;
use wiregauge::remote::daemon::caps::{Caps, Inspector, SessionState};
use wiregauge::transport::TransportKind;
use wiregauge::units::{Bytes, MessageRate, Span};

/// Of the limits that are given.
const HIGHEST_RATE: f64 = 1000.0;
const LONGEST_RUN: Span = Span(10_000_000_000);
const MOST_MEMORY: Bytes = Bytes(64 << 20);

/// Nothing said, all allowed, and each limit given.
fn all_caps() -> [Caps; 3] {
    let transports = TransportKind::ALL.to_vec();
    let given = Caps {
        longest_run: LONGEST_RUN,
        highest_rate: Some(MessageRate(HIGHEST_RATE)),
        most_memory: MOST_MEMORY,
        ports: Some((7000, 7010)),
        transports: transports.clone(),
        ..Caps::default()
    };
    [Caps::default(), Caps { transports, ..Caps::of_a_rank() }, given]
}

/// Returns the case of a frame that opens a round.
fn opened(body: &[u8]) -> Option<Case> {
    match postcard::from_bytes(body).ok()? {
        ToAgent::Open(case, _) => case.read(registry::find).ok(),
        _ => None,
    }
}

/// Checks a round that was let through against the limits that were given.
fn check(case: &Case, memory: Bytes) {
    assert!(memory <= MOST_MEMORY, "{memory}");
    let time = case.bound.time;
    assert!(time.is_none_or(|time| time <= LONGEST_RUN) || case.bound.count.is_some(), "{time:?}");
    if let Some(rate) = case.schedule.rate() {
        let all = rate.0 * f64::from(case.threads());
        let is_paced = rate.0 > 0.0 && all <= HIGHEST_RATE * (1.0 + 1e-9);
        assert!(is_paced, "{all} messages a second of {:?}", case.schedule);
    } else {
        assert!(case.profile().pause.0 > 0, "as fast as it can");
    }
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    for caps in all_caps() {
        let (mut channel, has_limits) = (data, caps.highest_rate.is_some());
        let mut inspector = Inspector::new(caps, registry::find);
        while let Ok(body) = read_body(&mut channel) {
            if let Err(sentence) = inspector.admit(&body) {
                assert!(!sentence.is_empty() && !sentence.contains('\n'));
                break;
            }
            if let Some(case) = opened(&body).filter(|_| has_limits) {
                check(&case, inspector.memory);
            }
            let is_bounded = inspector.patience().is_some();
            let may_stay = inspector.state == SessionState::AnsweringClock;
            assert!(is_bounded || may_stay || !has_limits);
        }
    }
}
