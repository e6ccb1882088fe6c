//! A stream through a socket node, which here is a thread that knows of the form what VILLASnode's
//! documentation says, and nothing of wiregauge.

use super::{measured, messages, read, refused};
use crate::support::controller::{Scratch, wiregauge};
use socket2::SockRef;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wiregauge::sample::Flags;
use wiregauge::signal::format::Format;
use wiregauge::signal::{Kind, Value};

/// One sample in so many is not sent on.
const DROPS: u32 = 10;

/// A datagram as the node reads it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    sequence: u32,
    seconds: u32,
    nanoseconds: u32,
    values: Vec<f32>,
}

fn parsed(datagram: &[u8]) -> Seen {
    let word = |at: usize| u32::from_be_bytes(datagram[at..at + 4].try_into().unwrap());
    assert_eq!(datagram[0], 0x20, "version 2, data");
    let count = u16::from_be_bytes([datagram[2], datagram[3]]) as usize;
    assert_eq!(datagram.len(), 16 + 4 * count);
    let values = (0..count).map(|index| f32::from_bits(word(16 + 4 * index)));
    Seen { sequence: word(4), seconds: word(8), nanoseconds: word(12), values: values.collect() }
}

struct Relay {
    input: String,
    output: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// An address at which nobody receives.
fn free() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Sends on what comes, but for each tenth sample, and beside the first also what is no sample.
fn relay() -> Relay {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // As long as it gets no CPU what comes must wait: nothing is lost but what is dropped here.
    SockRef::from(&socket).set_recv_buffer_size(4 << 20).unwrap();
    let input = socket.local_addr().unwrap().to_string();
    let output = free();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let over = Arc::new(AtomicBool::new(false));
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (to, ours, ended) = (output.clone(), Arc::clone(&seen), Arc::clone(&over));
    let thread = std::thread::spawn(move || {
        let mut datagram = [0; 9000];
        while !ended.load(Ordering::Relaxed) {
            let Ok(length) = socket.recv(&mut datagram) else { continue };
            let sample = parsed(&datagram[..length]);
            // The receiver may be gone by the last ones.
            let send = |bytes: &[u8]| drop(socket.send_to(bytes, &to));
            if ours.lock().unwrap().is_empty() {
                send(b"no sample");
                send(b"");
                send(&datagram[..length + 4]);
                // Numbers that were never sent, and one that was made before the round.
                for (at, word) in [(4, u32::MAX), (4, 0x7fff_ffff), (8, 5)] {
                    let mut other = datagram[..length].to_vec();
                    other[at..at + 4].copy_from_slice(&word.to_be_bytes());
                    send(&other);
                }
            }
            if sample.sequence % DROPS != DROPS - 1 {
                send(&datagram[..length]);
            }
            ours.lock().unwrap().push(sample);
        }
    });
    Relay { input, output, seen, over, thread }
}

impl Relay {
    fn ended(self) -> Vec<Seen> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        Arc::into_inner(self.seen).unwrap().into_inner().unwrap()
    }
}

#[test]
fn a_stream_goes_through_a_node_into_a_file() {
    let relay = relay();
    let (scratch, record) = measured(&format!(
        "--transport villas --node-in {} --node-out {} --rate 500 --count 300 --warmup 0 \
         --values 3 --signal counter --rounds 1 --wait block --receive-buffer 4MiB --file out.csv",
        relay.input, relay.output
    ));
    let through = relay.ended();
    let run = &record.runs[0];
    let counts = run.counts;
    assert_eq!(through.len() as u64, counts.sent, "{counts:?}");
    let dropped = through.iter().filter(|sample| sample.sequence % DROPS == DROPS - 1).count();
    assert_eq!((counts.lost, counts.corrupt), (dropped as u64, 0), "{counts:?}");
    assert_eq!(counts.reordered, 0, "{counts:?}");
    let foreign = run.warnings.iter().find(|warning| warning.kind == "unknown_sequence").unwrap();
    assert!(foreign.sentence.starts_with("2 messages"), "{foreign:?}");
    let server = &run.rounds[0].server;
    assert_eq!(server.final_counters["datagrams.foreign"], "4");
    assert_eq!(counts.rejected_peers, 0);

    let kept = read(&scratch.join("out.csv"), Format::Csv, Kind::Float);
    let sent_on: Vec<_> = through.iter().filter(|s| s.sequence % DROPS != DROPS - 1).collect();
    // The file has what arrived, whatever its number.
    let (kept, foreign): (Vec<_>, Vec<_>) = kept.iter().partition(|one| one.sequence < 300);
    assert_eq!((kept.len(), foreign.len()), (sent_on.len(), 2));
    for (sample, seen) in kept.iter().zip(sent_on) {
        let origin = (seen.seconds.into(), seen.nanoseconds);
        assert_eq!((sample.origin.seconds, sample.origin.nanoseconds), origin);
        assert_eq!(sample.sequence, u64::from(seen.sequence));
        assert_eq!(seen.values, [seen.sequence as f32; 3]);
        assert_eq!(sample.values, [Value::Float(seen.sequence.into()); 3]);
    }
    for message in messages(&scratch).iter().filter(|one| !one.flags.has(Flags::MISSED)) {
        let lost = message.sequence % u64::from(DROPS) == u64::from(DROPS) - 1;
        assert_eq!(message.receive_ns.is_nan(), lost, "{message:?}");
    }
}

#[test]
fn a_node_that_is_not_there_is_a_sentence() {
    let scratch = Scratch::new();
    let [nobody, ours] = [free(), free()];
    let line = format!(
        "stream --transport villas --node-in {nobody} --node-out {ours} --rounds 1 --count 2000 \
         --out run"
    );
    let ended = wiregauge(&scratch, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("lost its connection: Connection refused"), "{ended:?}");
}

#[test]
fn a_node_s_address_is_asked_for_and_belongs_to_streams() {
    refused("--transport villas", "villas needs --node-in ADDRESS:PORT");
    let both = "--node-in 127.0.0.1:12000 --node-out";
    refused(&format!("--transport tcp {both} 127.0.0.1:12001"), "tcp does not support --node-in");
    refused(&format!("--transport villas {both} 127.0.0.1:12000"), "are one address");
    refused(&format!("--transport villas {both} [::1]:12001"), "of one family");
    refused("--transport villas --node-in 127.0.0.1:12000", "--node-out");
    refused(
        "--transport villas --node-in here --node-out there",
        "invalid address 'here': use ADDRESS:PORT",
    );
}
