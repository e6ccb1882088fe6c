//! The survey's plan: what every transport that works here gives, in less than a minute.

use super::request::{ROUNDS, WARMUP};
use super::{Bound, Case, Pattern, Plan, Request, Rounds, TimerKind, Wait};
use crate::transport::TransportKind;
use crate::units::{Bytes, Span};

/// The transports that a survey measures where they work.
pub fn transports() -> impl Iterator<Item = TransportKind> {
    TransportKind::ALL.iter().copied().filter(|kind| kind.descriptor().in_survey)
}

/// Size of the latency and message-rate cases.
pub const SMALL: Bytes = Bytes(64);
/// Size of the bandwidth cases, or the transport's largest message where that is smaller.
pub const LARGE: Bytes = Bytes(64 << 10);
/// Messages of a latency round: 5 rounds show p99.99 ...
const COUNT: u64 = 20_000;
/// ... but no longer than this.
const LATENCY_TIME: Span = Span(350_000_000);
/// Time of a bandwidth or message-rate round.
const BANDWIDTH_TIME: Span = Span(80_000_000);

/// The plan for these transports. On one CPU a busy wait would measure the scheduler: only block.
pub fn plan(transports: &[TransportKind], one_cpu: bool, seed: u64) -> Plan {
    let waits: &[Wait] = if one_cpu { &[Wait::Block] } else { &[Wait::Busy, Wait::Block] };
    let mut cases = Vec::new();
    for transport in transports {
        for wait in waits {
            let large = LARGE.min(Bytes(transport.descriptor().largest));
            let latency = Bound { count: Some(COUNT), time: Some(LATENCY_TIME) };
            let bandwidth = Bound { count: None, time: Some(BANDWIDTH_TIME) };
            cases.push(case(*transport, *wait, Pattern::Latency, SMALL, latency, seed));
            cases.push(case(*transport, *wait, Pattern::Bandwidth, SMALL, bandwidth, seed));
            cases.push(case(*transport, *wait, Pattern::Bandwidth, large, bandwidth, seed));
        }
    }
    Plan {
        search: Default::default(),
        name: "survey".into(),
        cases,
        rounds: Rounds { least: ROUNDS, most: ROUNDS, until: None },
        cpus: Vec::new(),
        seed,
        threshold: Span(10_000),
        hosts: Vec::new(),
        pairs: None,
        at_once: Vec::new(),
        untrue_clock: None,
        study: None,
    }
}

fn case(
    transport: TransportKind,
    wait: Wait,
    pattern: Pattern,
    size: Bytes,
    bound: Bound,
    seed: u64,
) -> Case {
    let Request { burst, window, direction, schedule, loss_after, timeout, .. } =
        Request::new(pattern);
    Case {
        pattern,
        transport,
        wait,
        threads: 1,
        size,
        bound,
        warmup: WARMUP,
        pause: Span(0),
        burst,
        window,
        direction,
        schedule,
        trace: None,
        timer: TimerKind::Busy,
        load: Default::default(),
        stream: None,
        rpc: None,
        check: false,
        loss_after,
        timeout,
        settings: Default::default(),
        seed,
        ends: Default::default(),
    }
}
