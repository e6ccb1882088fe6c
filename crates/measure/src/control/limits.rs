//! What an agent may report at most. It may be broken or hostile: what no agent reports is a
//! protocol error of its round, before any figure is made of it. Pure.

use super::protocol::Outcome;
use wiregauge_host::{Noise, ResourceUse};
use wiregauge_sample::recorder::{MessageCounts, PoolUse};
use wiregauge_transport::counter::{CounterValue, FinalCounters};
use wiregauge_transport::preflight::{
    ConnectFailure, PeerReport, PreflightAddresses, PreflightPeer, tried_sizes,
};

/// Most messages or events of a round: 10^9 a second for three days. Sums of all threads and rounds
/// are numbers still.
const MOST_EVENTS: u64 = 1 << 48;
/// Longest time of a round in ns or ticks: two years at 1 GHz.
const LONGEST: f64 = (1u64 << 56) as f64;
/// Most effective settings of a thread, and counters of an end: an adapter has some hundreds, and
/// 64 interfaces 16 each.
const MOST_NAMES: usize = 2048;
/// Longest name and value in bytes.
const LONGEST_TEXT: usize = 1024;
/// Most lengths of gaps that are told apart: powers of two.
const MOST_LENGTHS: usize = 64;

/// Checks the effective settings of a thread.
pub fn check_settings(settings: &[(String, String)]) -> Result<(), &'static str> {
    let is_short = |(name, value): &(String, String)| is_short(name) && is_short(value);
    match settings.len() <= MOST_NAMES && settings.iter().all(is_short) {
        true => Ok(()),
        false => Err("reported more settings than an end has"),
    }
}

/// Checks the results of a thread that was to measure its overhead with so many messages.
pub fn check_outcome(outcome: &Outcome, overhead: u32) -> Result<(), &'static str> {
    let counts = [Some(&outcome.counts), outcome.server_counts.as_ref()];
    let events = counts.into_iter().flatten().all(are_possible)
        && outcome.rejected_peers <= MOST_EVENTS
        && is_pool(&outcome.pool);
    let times = is_usage(&outcome.usage)
        && is_time(outcome.suspension.asleep.as_nanos() as f64)
        && is_time(outcome.recording_ticks)
        && outcome.noise.as_ref().is_none_or(is_noise);
    let texts = [&outcome.pinned, &outcome.locked].into_iter().flat_map(|one| one.as_ref().err());
    let is_short = texts.into_iter().all(|text| is_short(text)) && are_counters(&outcome.counters);
    match (events, times, outcome.overhead.len() <= overhead as usize && is_short) {
        (false, ..) => Err("reported more messages or events than a round can have"),
        (_, false, _) => Err("reported times that no round can take"),
        (.., false) => Err("reported more results than a round has"),
        _ => Ok(()),
    }
}

/// Checks the addresses of an end of a pre-flight, to which others are to connect if it listens.
pub fn check_path(opened: &PreflightAddresses, listens: bool) -> Result<(), &'static str> {
    let is_named = opened.interface.as_ref().is_none_or(|name| is_short(name));
    if !is_named {
        return Err("reported an interface that no host has");
    }
    let has_right_ports = opened.tcp.is_some() == listens;
    if has_right_ports { Ok(()) } else { Err("reported other ports than it was to open") }
}

/// Checks how an end at these addresses has reached others.
pub fn check_reports(
    reports: &[PeerReport],
    own: &PreflightAddresses,
    peers: &[PreflightPeer],
) -> Result<(), &'static str> {
    let are_possible = reports.len() == peers.len()
        && reports.iter().zip(peers).all(|(report, peer)| is_report_of(report, own, peer));
    if are_possible { Ok(()) } else { Err("reported more of the data path than was asked") }
}

fn is_report_of(report: &PeerReport, own: &PreflightAddresses, peer: &PreflightPeer) -> bool {
    let is_tried = report.tcp.is_some() == (peer.needs.tcp && report.refused.is_none());
    let failure = report.tcp.as_ref().and_then(|tcp| tcp.as_ref().err());
    let texts =
        [report.refused.as_ref(), report.unsent.as_ref(), failure.and_then(ConnectFailure::text)];
    report.number == peer.number
        && is_tried
        && report.acknowledged.is_subset(&tried_sizes(own, &peer.addresses))
        && report.received.is_subset(&tried_sizes(&peer.addresses, own))
        && texts.into_iter().flatten().all(|text| is_short(text))
}

fn is_short(text: &str) -> bool {
    text.len() <= LONGEST_TEXT
}

fn is_time(time: f64) -> bool {
    (0.0..=LONGEST).contains(&time)
}

fn are_possible(counts: &MessageCounts) -> bool {
    let MessageCounts { sent, received, duplicates, reordered, corrupt, late, foreign, .. } =
        *counts;
    let MessageCounts { missed_steps, gaps, held_up, unsent, .. } = *counts;
    let all = [sent, received, duplicates, reordered, corrupt, late, foreign];
    let all = all.into_iter().chain([missed_steps, gaps, held_up, unsent]);
    all.max().is_none_or(|most| most <= MOST_EVENTS)
}

fn is_pool(pool: &PoolUse) -> bool {
    let PoolUse { reads, buffer_waits, empty_polls, full_polls, completions, .. } = *pool;
    let events = [reads, buffer_waits, empty_polls, full_polls, completions, pool.request_polls];
    let PoolUse { buffer_ticks, empty_ticks, full_ticks, buffer_empty_ticks, .. } = *pool;
    let ticks = [buffer_ticks, empty_ticks, full_ticks, buffer_empty_ticks, pool.buffer_full_ticks];
    events.iter().all(|count| *count <= MOST_EVENTS)
        && ticks.iter().all(|ticks| is_time(ticks.unsigned_abs() as f64))
}

fn is_usage(usage: &ResourceUse) -> bool {
    let times = [usage.user_ns, usage.system_ns, usage.cpu_ns, usage.waited_ns.unwrap_or(0.0)];
    let events = [usage.voluntary_switches, usage.involuntary_switches, usage.page_faults];
    times.into_iter().all(is_time) && events.iter().all(|count| *count <= MOST_EVENTS)
}

fn is_noise(noise: &Noise) -> bool {
    let times = [noise.observed_ns, noise.gap_threshold_ns, noise.lost_ns, noise.longest_ns];
    let is_length = |(least, count): &(f64, u64)| is_time(*least) && *count <= MOST_EVENTS;
    times.into_iter().all(is_time)
        && noise.gaps <= MOST_EVENTS
        && noise.histogram.len() <= MOST_LENGTHS
        && noise.histogram.iter().all(is_length)
}

fn are_counters(counters: &FinalCounters) -> bool {
    let is_counter = |(name, value): (&String, &CounterValue)| {
        is_short(name) && !matches!(value, CounterValue::Text(text) if !is_short(text))
    };
    counters.len() <= MOST_NAMES && counters.iter().all(is_counter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::Ticks;
    use wiregauge_host::Suspension;
    use wiregauge_plan::Ended;
    use wiregauge_transport::preflight::PathNeeds;

    fn outcome(change: impl FnOnce(&mut Outcome)) -> Result<(), &'static str> {
        let mut outcome = Outcome {
            counters: FinalCounters::new(),
            ended: Ended::Count,
            counts: MessageCounts { sent: MOST_EVENTS, ..MessageCounts::default() },
            server_counts: None,
            rejected_peers: 0,
            usage: ResourceUse::default(),
            suspension: Suspension::default(),
            pinned: Ok(()),
            shares_cpu: false,
            locked: Err("RLIMIT_MEMLOCK".into()),
            own_descriptors: true,
            span: (Ticks(0), Ticks(1)),
            noise: None,
            overhead: vec![1; 10],
            recording_ticks: 1.5,
            beyond: Default::default(),
            pool: PoolUse::default(),
        };
        change(&mut outcome);
        check_outcome(&outcome, 10)
    }

    fn opened(interface: String) -> PreflightAddresses {
        let at = "10.0.0.1:9".parse().unwrap();
        let mtu_bytes = Some(1500);
        PreflightAddresses { tcp: Some(at), udp: at, interface: Some(interface), mtu_bytes }
    }

    fn report(number: u32) -> PeerReport {
        PeerReport { number, tcp: Some(Ok(())), ..PeerReport::default() }
    }

    #[test]
    fn an_end_of_a_path_has_the_ports_that_were_asked_for() {
        assert_eq!(check_path(&opened("eth0".into()), true), Ok(()));
        assert!(check_path(&opened("x".repeat(2000)), true).is_err());
        assert!(check_path(&opened("eth0".into()), false).is_err());
        let quiet = PreflightAddresses { tcp: None, ..opened("eth0".into()) };
        assert_eq!(check_path(&quiet, false), Ok(()));
        assert!(check_path(&quiet, true).is_err());
    }

    #[test]
    fn a_path_is_reported_for_the_ends_and_sizes_that_were_asked_for() {
        let own = opened("eth1".into());
        let needs = PathNeeds { tcp: true, udp: true };
        let addresses = PreflightAddresses { mtu_bytes: Some(9000), ..opened("eth0".into()) };
        let peers = [PreflightPeer { number: 3, addresses, cookie: [7; 32], needs }];
        let all = PeerReport {
            acknowledged: [69, 1280, 1500].into(),
            received: [69, 1280, 1500, 9000].into(),
            ..report(3)
        };
        let refused = Some(String::from("not allowed"));
        let of_refused = PeerReport { refused: refused.clone(), tcp: None, ..report(3) };
        for right in [report(3), all, of_refused] {
            assert_eq!(
                check_reports(std::slice::from_ref(&right), &own, &peers),
                Ok(()),
                "{right:?}"
            );
        }
        let long = Some(Err(ConnectFailure::Failed("x".repeat(2000))));
        for wrong in [
            vec![],
            vec![report(4)],
            vec![report(3), report(3)],
            vec![PeerReport { received: [1501].into(), ..report(3) }],
            vec![PeerReport { received: [70_000].into(), ..report(3) }],
            // It is the other one that has such an interface.
            vec![PeerReport { acknowledged: [9000].into(), ..report(3) }],
            vec![PeerReport { tcp: long, ..report(3) }],
            vec![PeerReport { tcp: None, ..report(3) }],
            vec![PeerReport { refused: refused.clone(), ..report(3) }],
            vec![PeerReport { refused: Some("x".repeat(2000)), tcp: None, ..report(3) }],
        ] {
            assert!(check_reports(&wrong, &own, &peers).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_a_round_can_have_passes_and_nothing_beyond() {
        assert_eq!(outcome(|_| ()), Ok(()));
        let many = "reported more messages or events than a round can have";
        assert_eq!(outcome(|one| one.counts.unsent = u64::MAX), Err(many));
        let of_server = MessageCounts { gaps: MOST_EVENTS + 1, ..MessageCounts::default() };
        assert_eq!(outcome(|one| one.server_counts = Some(of_server)), Err(many));
        assert_eq!(outcome(|one| one.pool.empty_ticks = i64::MIN), Err(many));
        let long = "reported times that no round can take";
        for wrong in [f64::NAN, f64::INFINITY, -1.0, 1e30] {
            assert_eq!(outcome(|one| one.recording_ticks = wrong), Err(long));
            assert_eq!(outcome(|one| one.usage.waited_ns = Some(wrong)), Err(long));
        }
        let more = "reported more results than a round has";
        assert_eq!(outcome(|one| one.overhead.push(1)), Err(more));
        assert_eq!(outcome(|one| one.pinned = Err("x".repeat(2000))), Err(more));
        let pair = |length: usize| ("name".to_string(), "x".repeat(length));
        assert_eq!(check_settings(&vec![pair(9); MOST_NAMES]), Ok(()));
        assert!(check_settings(&vec![pair(9); MOST_NAMES + 1]).is_err());
        assert!(check_settings(&[pair(2000)]).is_err());
    }
}
