//! What the other end of a data connection writes: messages that lie in what it wrote, none longer
//! than the longest, or the end of the connection.
//!
//! The first byte chooses what the connection carries, the second the longest message. The rest is
//! written in parts, each behind a byte with its length; an end that gets a message sends it back.

use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::OwnedFd;
use wiregauge::transport::socket::fuzzed::{Carries, end};
use wiregauge::transport::{Endpoint, Events, LENGTH_PREFIX, Link};

const ALL: [Carries; 4] =
    [Carries::Messages, Carries::Prefixed, Carries::Datagrams, Carries::Samples];
/// Parts of one input.
const PARTS: usize = 256;
/// Polls of an end behind each part: more than what one part can bring.
const POLLS: usize = 64;

/// What has been written and what has come out.
#[derive(Default)]
struct Seen {
    written: Vec<u8>,
    /// Bytes that were handed over, with the lengths before them.
    handed_over: usize,
}

/// Polls until nothing comes, checks what comes, and sends it back.
fn drain(end: &mut dyn Endpoint, carries: Carries, longest: usize, seen: &mut Seen) -> Link {
    let mut events = Events::default();
    for _ in 0..POLLS {
        let any = end.poll(&mut events);
        for arrival in events.arrivals().to_vec() {
            let length = arrival.length as usize;
            assert!(length <= longest, "{length} B of at most {longest}");
            let message = end.payload(arrival.slot)[..length].to_vec();
            if carries == Carries::Messages || carries == Carries::Prefixed {
                let prefix = if carries == Carries::Prefixed { LENGTH_PREFIX } else { 0 };
                let begin = seen.handed_over + prefix;
                assert_eq!(Some(&message[..]), seen.written.get(begin..begin + length));
                seen.handed_over = begin + length;
            }
            let _ = end.post(arrival.slot, length);
            end.flush();
        }
        if events.link != Link::Up || !any {
            return events.link;
        }
    }
    events.link
}

/// Takes what came back, so that there is room for more.
fn discard(peer: &OwnedFd) {
    let mut bytes = [0; 4096];
    while recv(peer, &mut bytes, RecvFlags::DONTWAIT).is_ok_and(|(got, _)| got > 0) {}
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let [choice, size, rest @ ..] = data else { return };
    let (carries, mut rest) = (ALL[usize::from(*choice) % ALL.len()], rest);
    // Room for the metadata of a sample and a few values.
    let longest = if carries == Carries::Samples { 24 + 8 } else { usize::from(*size).max(1) };
    let (mut end, peer) = end(carries, longest).expect("the kernel has sockets");
    let mut seen = Seen::default();
    for _ in 0..PARTS {
        let [length, more @ ..] = rest else { return };
        let part = &more[..usize::from(*length).min(more.len())];
        rest = &more[part.len()..];
        if part.is_empty() && carries != Carries::Datagrams {
            continue;
        }
        if send(&peer, part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok() != Some(part.len()) {
            return;
        }
        seen.written.extend_from_slice(part);
        if drain(&mut *end, carries, longest, &mut seen) != Link::Up {
            return;
        }
        discard(&peer);
    }
}
