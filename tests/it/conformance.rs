//! One suite for every transport: what `crates/transport/src/lib.rs` promises, checked on two ends
//! in two threads (their memory, sockets and signals are those of two processes).
//!
//! Run it optimised too, `cargo test --release --test it conformance::`: a sum of a `bool` in
//! `pattern/flow.rs` was lost at opt-level 3 alone, and what atomics and buffers do wrong shows
//! there first.
//!
//! No claim judges a time. What is stuck ends by itself and says so.

mod claims;
mod ends;
mod rejected_peers;
mod simulated;
mod varied;

use crate::support::controller::measured;
use ends::Bench;
use wiregauge::pattern::latency;
use wiregauge::plan::Request;
use wiregauge::transport::{Lengths, Settings, Traffic, TransportKind, TransportRequest, Wait};
use wiregauge::units::Bytes;

/// Whether the transport has this wait mode; if not, why.
fn is_supported(Bench { kind, wait }: Bench) -> Result<(), String> {
    let (settings, traffic) = (&Settings::default(), Traffic::Echo { every: 1 });
    (kind.descriptor().check)(&TransportRequest {
        size: 64,
        wait,
        traffic,
        lengths: Lengths::Fixed,
        settings,
        reads_payloads: true,
    })
}

/// One test: a claim about a transport in a wait mode.
macro_rules! claim {
    ($kind:ident, $wait:ident, $claim:ident) => {
        claim!($kind, $wait, claims, $claim);
    };
    ($kind:ident, $wait:ident, $claims:ident, $claim:ident) => {
        #[test]
        fn $claim() {
            let bench = Bench { kind: TransportKind::$kind, wait: Wait::$wait };
            if let Err(why) = bench.kind.available().and_then(|()| is_supported(bench)) {
                return eprintln!("not checked here: {why}");
            }
            crate::conformance::$claims::$claim(bench);
        }
    };
}

macro_rules! suite {
    ($kind:ident, $wait:ident) => {
        use super::*;
        claim!($kind, $wait, messages_arrive_whole_once_and_as_posted);
        claim!($kind, $wait, the_largest_message_passes_both_ways);
        claim!($kind, $wait, an_arrived_slot_can_be_posted);
        claim!($kind, $wait, a_full_queue_takes_nothing_and_loses_nothing);
        claim!($kind, $wait, arrivals_stay_until_the_next_poll);
        claim!($kind, $wait, both_ways_at_once_there_is_no_deadlock);
        claim!($kind, $wait, a_signal_ends_a_wait_with_nothing);
        claim!($kind, $wait, a_peer_that_is_gone_is_seen_after_what_it_sent);
        claim!($kind, $wait, a_foreign_address_is_refused);
        claim!($kind, $wait, slots_are_told_apart);
        claim!($kind, $wait, a_peer_that_never_comes_is_late);
        claim!($kind, $wait, varied, messages_of_many_lengths_arrive_whole);
    };
}

macro_rules! transports {
    ($($name:ident $kind:ident;)+) => {
        $(mod $name {
            use super::*;
            mod busy { suite!($kind, Busy); }
            mod block { suite!($kind, Block); }
        })+

        const CHECKED: &[TransportKind] = &[$(TransportKind::$kind,)+];
    };
}

transports! {
    tcp Tcp;
    udp Udp;
    unix Unix;
    unixgram Unixgram;
    shm Shm;
    homa Homa;
    verbs Verbs;
    mpi Mpi;
}

#[test]
fn every_transport_of_the_registry_is_checked() {
    for kind in TransportKind::ALL {
        let descriptor = kind.descriptor();
        // Samples are not carried as they are: tests/it/stream/node.rs has that one's claims.
        let apart = descriptor.one_process || descriptor.samples_only;
        let checked = CHECKED.contains(kind) || apart;
        assert!(checked, "add {kind} to the list above");
    }
}

#[test]
fn one_byte_more_than_the_largest_message_is_refused_by_the_plan() {
    for kind in TransportKind::ALL.iter().filter(|kind| !kind.descriptor().samples_only) {
        let plan = |size| {
            let sizes = vec![Bytes(size)];
            let transports = vec![*kind];
            Request { sizes, transports, ..latency::request(Default::default()) }.plan()
        };
        let largest = kind.descriptor().largest;
        assert!(plan(largest).is_ok(), "{kind}");
        assert!(plan(largest + 1).unwrap_err().0.contains("out of range"), "{kind}");
        assert!(plan(0).is_err(), "{kind}");
    }
}

/// Each byte of the payload is checked: it is 65535 less what the headers of the family take, and
/// what this program itself needs of a message lies within.
#[test]
fn udp_carries_the_largest_datagram_of_each_family_over_loopback() {
    for (family, address, largest) in [("ipv4", "127.0.0.1:0", 65_507), ("ipv6", "[::1]:0", 65_527)]
    {
        if std::net::UdpSocket::bind(address).is_err() {
            eprintln!("skipped: this host has no {family}");
            continue;
        }
        for (command, own) in [
            ("latency", "--wait busy,block --count 200 --warmup 0"),
            ("oneway", "--rate 500 --count 100 --warmup 0"),
            ("exchange", "--nodes 2 --time 50ms --rate 100mbit"),
        ] {
            let common = "--transport udp --check --rounds 1";
            let line = format!("{own} {common} --family {family} --size {largest}");
            let (_, record) = measured(command, &line);
            for run in &record.runs {
                let counts = &run.counts;
                assert!(counts.received > 0 && counts.corrupt == 0, "{command} {line}: {counts:?}");
                assert_eq!(run.case.case.size.0, largest, "{command} {line}");
            }
        }
    }
}
