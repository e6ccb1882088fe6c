//! Counters that the kernel has of one socket, read when an end is connected and after its round.
//!
//! No call stands between two stamps: TCP_INFO and SO_MEMINFO are read before the loop and behind
//! it.

use crate::counter::{CounterValue, FinalCounters};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

/// SO_MEMINFO of asm-generic/socket.h, and the place of SK_MEMINFO_DROPS of linux/sock_diag.h.
const SO_MEMINFO: i32 = 55;
const DROPS_AT: usize = 8;
const OF_MEMORY: usize = 9;
/// Bytes of `struct tcp_info` that are read: up to `rcv_ooopack` (linux/tcp.h). Older kernels have
/// fewer.
const OF_TCP: usize = 228;

/// Counters of a socket at one time.
pub struct SocketCounters {
    at: Instant,
    /// Datagrams that found the receive buffer full.
    drops: Option<u64>,
    tcp: Option<TcpInfo>,
}

/// The fields of `struct tcp_info` that are kept. Times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TcpInfo {
    retransmitted: u64,
    retransmitted_bytes: u64,
    reordered: u64,
    out_of_order: u64,
    lost_acknowledgements: u64,
    busy_us: u64,
    receive_window_us: u64,
    send_buffer_us: u64,
    rtt_us: u64,
    rtt_variation_us: u64,
    min_rtt_us: u64,
    cwnd_segments: u64,
    delivery_rate: u64,
    /// Bytes that the other end has acknowledged, and bytes that came.
    carried: u64,
}

impl TcpInfo {
    /// Reads the fields by their places; those that an older kernel lacks are 0.
    fn of_bytes(bytes: &[u8]) -> TcpInfo {
        TcpInfo {
            rtt_us: read_u32(bytes, 68),
            rtt_variation_us: read_u32(bytes, 72),
            cwnd_segments: read_u32(bytes, 80),
            retransmitted: read_u32(bytes, 100),
            min_rtt_us: read_u32(bytes, 148),
            carried: read_u64(bytes, 120).saturating_add(read_u64(bytes, 128)),
            delivery_rate: read_u64(bytes, 160),
            busy_us: read_u64(bytes, 168),
            receive_window_us: read_u64(bytes, 176),
            send_buffer_us: read_u64(bytes, 184),
            retransmitted_bytes: read_u64(bytes, 208),
            lost_acknowledgements: read_u32(bytes, 216),
            reordered: read_u32(bytes, 220),
            out_of_order: read_u32(bytes, 224),
        }
    }

    /// Returns what has happened since, in `elapsed_us`, and how the connection is now.
    fn since(&self, before: &TcpInfo, elapsed_us: u64) -> FinalCounters {
        let busy = self.busy_us.saturating_sub(before.busy_us);
        let by_receiver = self.receive_window_us.saturating_sub(before.receive_window_us);
        let by_buffer = self.send_buffer_us.saturating_sub(before.send_buffer_us);
        let by_network = busy.saturating_sub(by_receiver).saturating_sub(by_buffer);
        let all = [
            events("connections_used", u64::from(self.carried > before.carried), 0),
            events("retransmitted", self.retransmitted, before.retransmitted),
            events("retransmitted_bytes", self.retransmitted_bytes, before.retransmitted_bytes),
            events("reordered", self.reordered, before.reordered),
            events("out_of_order", self.out_of_order, before.out_of_order),
            events("spurious", self.lost_acknowledgements, before.lost_acknowledgements),
            events("limited_by_application_us", elapsed_us, busy.min(elapsed_us)),
            events("limited_by_receive_window_us", by_receiver, 0),
            events("limited_by_send_buffer_us", by_buffer, 0),
            events("limited_by_network_us", by_network, 0),
            state("rtt_us", self.rtt_us),
            state("rtt_variation_us", self.rtt_variation_us),
            state("min_rtt_us", self.min_rtt_us.min(u64::from(u32::MAX) - 1)),
            state("congestion_window_segments", self.cwnd_segments),
            state("delivery_rate_bytes_per_second", self.delivery_rate),
        ];
        all.into_iter().flatten().collect()
    }
}

impl SocketCounters {
    /// Reads them of a socket of any kind; what it does not have is left out.
    pub fn read(socket: impl AsFd) -> SocketCounters {
        let mut memory = [0u8; OF_MEMORY * size_of::<u32>()];
        let drops = read_option(&socket, libc::SOL_SOCKET, SO_MEMINFO, &mut memory)
            .and_then(|memory| memory.get(DROPS_AT * 4..DROPS_AT * 4 + 4)?.try_into().ok())
            .map(|drops| u64::from(u32::from_ne_bytes(drops)));
        let mut info = [0u8; OF_TCP];
        let tcp = read_option(&socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info);
        SocketCounters { at: Instant::now(), drops, tcp: tcp.map(TcpInfo::of_bytes) }
    }

    /// Returns what has been counted from then to now.
    pub fn moved(&self, socket: impl AsFd) -> FinalCounters {
        let now = SocketCounters::read(socket);
        let elapsed_us = (now.at - self.at).as_micros() as u64;
        let mut all = match (&now.tcp, &self.tcp) {
            (Some(now), Some(then)) => now.since(then, elapsed_us),
            _ => FinalCounters::new(),
        };
        let dropped = now.drops.zip(self.drops).map_or(0, |(now, then)| now.wrapping_sub(then));
        if dropped > 0 {
            all.insert("socket.dropped".to_owned(), CounterValue::Events(dropped));
        }
        all
    }
}

/// Returns a counter that moved.
fn events(name: &str, now: u64, then: u64) -> Option<(String, CounterValue)> {
    let more = now.saturating_sub(then);
    (more > 0).then(|| (format!("tcp.{name}"), CounterValue::Events(more)))
}

/// Returns a state that is known.
fn state(name: &str, now: u64) -> Option<(String, CounterValue)> {
    (now > 0).then(|| (format!("tcp.{name}"), CounterValue::Largest(now)))
}

/// Reads a number of 32 bits at this place; 0 where the kernel gave none.
fn read_u32(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    found.map_or(0, |four| u64::from(u32::from_ne_bytes(four)))
}

/// Reads a number of 64 bits at this place; 0 where the kernel gave none.
fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    found.map_or(0, u64::from_ne_bytes)
}

/// Reads an option of a socket that is a struct; the bytes that the kernel has given.
fn read_option<'a>(
    socket: &impl AsFd,
    level: i32,
    name: i32,
    room: &'a mut [u8],
) -> Option<&'a [u8]> {
    let mut length = libc::socklen_t::try_from(room.len()).ok()?;
    // SAFETY: the kernel writes at most `length` bytes to `room`, and both live until it returns.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return None;
    }
    room.get(..length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn datagrams_that_found_the_buffer_full_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket2::SockRef::from(&receiver).set_recv_buffer_size(4096).unwrap();
        let before = SocketCounters::read(&receiver);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let mut sent = 0;
        for _ in 0..1000 {
            sent += u64::from(sender.send(&[1; 1000]).is_ok());
        }
        receiver.set_nonblocking(true).unwrap();
        let mut room = [0; 1000];
        let mut received = 0;
        while receiver.recv(&mut room).is_ok() {
            received += 1;
        }
        let moved = before.moved(&receiver);
        assert_eq!(moved["socket.dropped"], CounterValue::Events(sent - received));
    }

    #[test]
    fn a_connection_that_waits_for_its_reader_is_limited_by_the_receive_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let before = SocketCounters::read(&sender);
        let writer = std::thread::spawn(move || {
            sender.write_all(&vec![1; 32 << 20]).unwrap();
            sender
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        reader.read_exact(&mut vec![0; 32 << 20]).unwrap();
        let moved = before.moved(writer.join().unwrap());
        let CounterValue::Events(us) = moved["tcp.limited_by_receive_window_us"] else {
            panic!("{moved:?}")
        };
        assert!(us > 100_000, "{moved:?}");
        assert!(moved.contains_key("tcp.rtt_us"), "{moved:?}");
    }

    #[test]
    fn a_connection_that_loses_nothing_sends_nothing_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let before = SocketCounters::read(&sender);
        for _ in 0..100 {
            sender.write_all(&[1; 64]).unwrap();
            reader.read_exact(&mut [0; 64]).unwrap();
        }
        let moved = before.moved(&sender);
        assert!(moved.contains_key("tcp.rtt_us"), "{moved:?}");
        assert!(!moved.contains_key("tcp.retransmitted"), "{moved:?}");
        assert_eq!(moved["tcp.connections_used"], CounterValue::Events(1));
        let unused = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let moved = SocketCounters::read(&unused).moved(&unused);
        assert!(!moved.contains_key("tcp.connections_used"), "{moved:?}");
    }

    #[test]
    fn a_shorter_struct_of_an_older_kernel_has_what_it_has() {
        let mut bytes = vec![0; 104];
        bytes[68..72].copy_from_slice(&7u32.to_ne_bytes());
        bytes[100..104].copy_from_slice(&9u32.to_ne_bytes());
        let found = TcpInfo::of_bytes(&bytes);
        assert_eq!((found.rtt_us, found.retransmitted, found.busy_us), (7, 9, 0));
    }
}
