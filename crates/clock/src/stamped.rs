//! Datagrams that the kernel stamps as they leave and as they come (SO_TIMESTAMPING, see
//! Documentation/networking/timestamping.rst of the kernel). Its software stamps are readings of
//! CLOCK_REALTIME.

use super::Ticks;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt, sockopt,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// A datagram socket whose datagrams are stamped.
pub struct StampedSocket {
    pub(super) socket: UdpSocket,
    /// Datagrams sent: the kernel numbers its stamps by them.
    sent: u32,
}

/// Software stamps both ways, numbered, without the datagram.
const WANTED: TimestampingFlag = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
    .union(TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE)
    .union(TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE)
    .union(TimestampingFlag::SOF_TIMESTAMPING_OPT_ID)
    .union(TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY);
/// The same of a connection, and when each message reached the device queue.
const FOLLOWED: TimestampingFlag =
    WANTED.union(TimestampingFlag::from_bits_retain(libc::SOF_TIMESTAMPING_TX_SCHED as _));

/// Has the kernel stamp all messages of a connected socket.
///
/// # Errors
/// It cannot.
pub fn follow(socket: BorrowedFd<'_>) -> io::Result<()> {
    setsockopt(&socket, sockopt::Timestamping, &FOLLOWED).map_err(io::Error::from)
}

/// `SCM_TSTAMP_SCHED` of <linux/errqueue.h>: the message reached the device queue.
pub const BEFORE_QUEUE: u32 = 1;
/// `SCM_TSTAMP_SND`: the driver has it.
pub const BY_DRIVER: u32 = 0;

/// Room for the control messages of one datagram: stamps and the error that numbers them.
#[repr(C, align(8))]
struct Control([u8; 512]);
/// How often a stamp that is not there yet is looked for.
const LOOKS: u32 = 20;
/// Between two looks.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };

impl StampedSocket {
    /// Binds one. Where the kernel cannot stamp, nothing is stamped.
    pub fn bind(address: SocketAddr) -> io::Result<StampedSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let _ = setsockopt(&socket, sockopt::Timestamping, &WANTED);
        Ok(StampedSocket { socket, sent: 0 })
    }

    /// Sends; the number by which [`Self::left`] knows the datagram.
    pub fn send(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<u32> {
        self.socket.send_to(bytes, to)?;
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        Ok(number)
    }

    /// When the datagram of this number left; `None` where the kernel does not say so in time.
    pub fn left(&mut self, number: u32) -> io::Result<Option<Ticks>> {
        for _ in 0..LOOKS {
            match self.message(&mut [], MsgFlags::MSG_ERRQUEUE)? {
                Some(Message { stamp, numbered: Some(found), .. }) if found == number => {
                    return Ok(stamp);
                }
                Some(_) => {}
                None => drop(self.wait(PollFlags::ERR, &LOOK)),
            }
        }
        Ok(None)
    }

    /// Waits for a datagram at most so long: its length, where it came from, when it came.
    pub fn receive(
        &mut self,
        into: &mut [u8],
        within: Duration,
    ) -> io::Result<Option<(usize, SocketAddr, Option<Ticks>)>> {
        let begin = std::time::Instant::now();
        loop {
            match self.message(into, MsgFlags::empty())? {
                Some(Message { length, from: Some(from), stamp, .. }) => {
                    return Ok(Some((length, from, stamp)));
                }
                Some(_) => continue,
                None => {}
            }
            let left = within.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let left = Timespec::try_from(left).unwrap_or(LOOK);
            // A stamp that nobody asked for any more would wake every poll.
            if self.wait(PollFlags::IN, &left).contains(PollFlags::ERR) {
                let _ = self.message(&mut [], MsgFlags::MSG_ERRQUEUE)?;
            }
        }
    }

    fn wait(&self, wanted: PollFlags, limit: &Timespec) -> PollFlags {
        let mut watched = [PollFd::new(&self.socket, wanted)];
        let _ = poll(&mut watched, Some(limit));
        watched[0].revents()
    }

    fn message(&mut self, into: &mut [u8], flags: MsgFlags) -> io::Result<Option<Message>> {
        Message::take(self.socket.as_fd(), into, flags)
    }
}

/// What came, and what the kernel says of it.
#[derive(Default)]
pub struct Message {
    length: usize,
    from: Option<SocketAddr>,
    /// When it passed, by CLOCK_REALTIME.
    pub stamp: Option<Ticks>,
    /// Which datagram a stamp of leaving is of, or which byte of a stream.
    numbered: Option<u32>,
    /// Where it was stamped (`SCM_TSTAMP_SND` and such) when it left.
    pub left_at: u32,
}

impl Message {
    /// Takes a message with the kernel's data about it; `None` if no message is there.
    pub fn take(
        descriptor: BorrowedFd<'_>,
        into: &mut [u8],
        flags: MsgFlags,
    ) -> io::Result<Option<Message>> {
        let mut control = Control([0; 512]);
        let mut piece = [IoSliceMut::new(into)];
        let descriptor = descriptor.as_raw_fd();
        match recvmsg::<SockaddrStorage>(descriptor, &mut piece, Some(&mut control.0), flags) {
            Ok(received) => {
                let from = received.address.as_ref().and_then(address);
                let mut message = Message { length: received.bytes, from, ..Message::default() };
                // Without what did not fit: then it is not stamped.
                received.cmsgs().into_iter().flatten().for_each(|part| message.note(&part));
                Ok(Some(message))
            }
            // There is no message, or what an earlier datagram met: nobody listened yet, say.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED | Errno::EHOSTUNREACH) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn note(&mut self, part: &ControlMessageOwned) {
        match part {
            ControlMessageOwned::ScmTimestampsns(stamps) => {
                let system = stamps.system;
                let ns = system.tv_sec() as u64 * 1_000_000_000 + system.tv_nsec() as u64;
                self.stamp = (ns > 0).then_some(Ticks(ns));
            }
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                let is_stamp = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                self.numbered = is_stamp.then_some(error.ee_data);
                self.left_at = error.ee_info;
            }
            _ => {}
        }
    }
}

fn address(name: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = name.as_sockaddr_in().map(|v4| SocketAddrV4::from(*v4).into());
    v4.or_else(|| name.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, KernelClock};
    use nix::sys::socket::Timestamps;
    use nix::sys::time::TimeSpec;

    #[test]
    fn a_datagram_is_stamped_when_it_leaves_and_when_it_comes() {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let [mut from, mut to] = [(); 2].map(|()| StampedSocket::bind(loopback).unwrap());
        let address = to.socket.local_addr().unwrap();
        let mut bytes = [0; 8];
        let mut stamped = 0;
        // The kernel begins to stamp by deferred work, for which a busy machine may take a while.
        let (began, most) = (std::time::Instant::now(), Duration::from_secs(60));
        for number in (0..).take_while(|_| began.elapsed() < most) {
            let before = KernelClock::REALTIME.now();
            assert_eq!(from.send(&[number as u8; 7], address).unwrap(), number);
            let came = to.receive(&mut bytes, Duration::from_secs(20)).unwrap().unwrap();
            let left = from.left(number).unwrap();
            let during = before..=KernelClock::REALTIME.now();
            let sender = from.socket.local_addr().unwrap();
            assert_eq!((came.0, came.1, bytes[0]), (7, sender, number as u8));
            let (Some(came), Some(left)) = (came.2, left) else { continue };
            assert!(
                during.contains(&came) && during.contains(&left),
                "{came:?} {left:?} {during:?}"
            );
            stamped += 1;
            if stamped == 3 {
                break;
            }
        }
        assert_eq!(stamped, 3);
        let sent = from.sent;
        // Two that nobody has asked for are passed over.
        for _ in 0..3 {
            from.send(&[1], address).unwrap();
        }
        assert!(from.left(sent + 2).unwrap().is_some());
        assert_eq!(from.left(sent + 2).unwrap(), None, "each stamp is there once");
    }

    #[test]
    fn a_stamp_of_nothing_is_none() {
        let stamp = |seconds, ns| {
            let [system, hw_trans, hw_raw] = [TimeSpec::new(seconds, ns); 3];
            let mut message = Message::default();
            let stamps = Timestamps { system, hw_trans, hw_raw };
            message.note(&ControlMessageOwned::ScmTimestampsns(stamps));
            message.stamp
        };
        assert_eq!(stamp(2, 500), Some(Ticks(2_000_000_500)));
        assert_eq!(stamp(0, 0), None);
    }
}
