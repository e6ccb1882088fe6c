//! The survey's plan: what every transport that works here gives, in less than a minute.

mod view;

pub use view::Survey;

use super::{bandwidth, latency};
use crate::prelude::*;
use wiregauge_plan::Rounds;
use wiregauge_plan::request::ROUNDS;

/// The transports that a survey measures where they work.
pub fn transports() -> impl Iterator<Item = TransportKind> {
    TransportKind::ALL.iter().copied().filter(|kind| kind.descriptor().in_survey)
}

/// The name of the command, and of its record.
pub const NAME: &str = "survey";

/// Size of the latency and message-rate cases.
pub const SMALL: Bytes = Bytes(64);
/// Size of the bandwidth cases, or the transport's largest message where that is smaller.
pub const LARGE: Bytes = Bytes(64 << 10);
/// Messages of a latency round: 6 rounds show p99.99 ...
const COUNT: u64 = 20_000;
/// ... but no longer than this.
const LATENCY_TIME: Span = Span(350_000_000);
/// Time of all rounds on a busy machine, on which processes start late: with the figures and the
/// page that follow a survey ends within a minute.
const TIME_LIMIT: Span = Span(50_000_000_000);
/// Time of a bandwidth or message-rate round.
const BANDWIDTH_TIME: Span = Span(80_000_000);

/// The plan for these transports. On one CPU a busy wait would measure the scheduler: only block.
pub fn plan(transports: &[TransportKind], one_cpu: bool, seed: u64) -> Plan {
    let waits: &[Wait] = if one_cpu { &[Wait::Block] } else { &[Wait::Busy, Wait::Block] };
    let latency = of(latency::request(Default::default()), COUNT, LATENCY_TIME, seed);
    let bandwidth = bandwidth::request(bandwidth::Spec::default());
    let bandwidth = of(bandwidth, None, BANDWIDTH_TIME, seed);
    let mut cases = Vec::new();
    for &transport in transports {
        for &wait in waits {
            let large = LARGE.min(Bytes(transport.descriptor().largest));
            let over = |request: &Request, size| -> Vec<Case> {
                request.asked.cases(
                    request,
                    &Combination { transport, wait, size, threads: 1, client_hosts: 1 },
                )
            };
            cases.extend(over(&latency, SMALL));
            cases.extend(over(&bandwidth, SMALL));
            cases.extend(over(&bandwidth, large));
        }
    }
    let rounds = Rounds { least: ROUNDS, most: ROUNDS, until: None };
    let plan = Plan::new(NAME, rounds, seed);
    Plan { cases, threshold: Span(10_000), time_limit: Some(TIME_LIMIT), ..plan }
}

/// A request for rounds of such a length.
fn of(request: Request, count: impl Into<Option<u64>>, time: Span, seed: u64) -> Request {
    Request { count: count.into(), time: Some(time), seed, ..request }
}
