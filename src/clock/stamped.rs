//! Datagrams that the kernel stamps as they leave and as they come (SO_TIMESTAMPING, see
//! Documentation/networking/timestamping.rst of the kernel).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The kernel's software stamp of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// CLOCK_REALTIME.
    pub realtime_ns: i128,
}

/// CLOCK_REALTIME now.
pub fn realtime_ns() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// A datagram socket whose datagrams are stamped.
pub struct StampedSocket {
    socket: UdpSocket,
    /// Datagrams sent: the kernel numbers its stamps by them.
    sent: u32,
}

/// Software stamps both ways, numbered, without the datagram.
const WANTED: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// Room for the control messages of one datagram: stamps and the error that numbers them.
const CONTROL: usize = 512;
/// How often a stamp that is not there yet is looked for.
const LOOKS: u32 = 20;
/// Between two looks.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };

impl StampedSocket {
    /// Binds one. Where the kernel cannot stamp, nothing is stamped.
    pub fn bind(address: SocketAddr) -> io::Result<StampedSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let wanted = WANTED;
        // SAFETY: a live socket, and a value of the length that is said.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPING,
                (&raw const wanted).cast(),
                size_of_val(&wanted) as libc::socklen_t,
            )
        };
        Ok(StampedSocket { socket, sent: 0 })
    }

    /// Where it is bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends; the number by which [`Self::left`] knows the datagram.
    pub fn send(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<u32> {
        self.socket.send_to(bytes, to)?;
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        Ok(number)
    }

    /// When the datagram of this number left; `None` where the kernel does not say so in time.
    pub fn left(&mut self, number: u32) -> io::Result<Option<Stamped>> {
        for _ in 0..LOOKS {
            match self.message(&mut [], libc::MSG_ERRQUEUE)? {
                Some(Message { stamp, numbered: Some(found), .. }) if found == number => {
                    return Ok(stamp);
                }
                Some(_) => {}
                None => {
                    let descriptor = self.socket.as_fd();
                    let mut watched = [PollFd::new(&descriptor, PollFlags::ERR)];
                    let _ = poll(&mut watched, Some(&LOOK));
                }
            }
        }
        Ok(None)
    }

    /// Waits for a datagram at most so long: its length, where it came from, when it came.
    pub fn receive(
        &mut self,
        into: &mut [u8],
        within: Duration,
    ) -> io::Result<Option<(usize, SocketAddr, Option<Stamped>)>> {
        let begin = std::time::Instant::now();
        loop {
            if let Some(message) = self.message(into, 0)? {
                if let Some(from) = message.from {
                    return Ok(Some((message.length, from, message.stamp)));
                }
                continue;
            }
            let left = within.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let descriptor = self.socket.as_fd();
            let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
            let _ = poll(&mut watched, Some(&left));
            // A stamp that nobody asked for any more would wake every poll.
            if watched[0].revents().contains(PollFlags::ERR) {
                let _ = self.message(&mut [], libc::MSG_ERRQUEUE)?;
            }
        }
    }

    /// Takes a message with what the kernel says of it; `None`: there is none.
    fn message(&mut self, into: &mut [u8], flags: libc::c_int) -> io::Result<Option<Message>> {
        let mut control = [0u64; CONTROL / 8];
        // SAFETY: of these structures all zeros are a value.
        let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of_val(&name) as libc::socklen_t;
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        // SAFETY: a live socket; everything that the header names lives through the call.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut header, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                // What an earlier datagram met: nobody listened yet, say.
                io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable => Ok(None),
                _ => Err(error),
            };
        }
        let mut message =
            Message { length: length as usize, from: address(&name), stamp: None, numbered: None };
        // SAFETY: the header is as the kernel has left it, and `control` lives.
        unsafe { message.read_control(&header) };
        Ok(Some(message))
    }
}

/// What came, and what the kernel says of it.
struct Message {
    length: usize,
    from: Option<SocketAddr>,
    stamp: Option<Stamped>,
    /// Which datagram a stamp of leaving is of.
    numbered: Option<u32>,
}

impl Message {
    /// # Safety
    /// `header` is as `recvmsg` has left it, and its control messages live.
    unsafe fn read_control(&mut self, header: &libc::msghdr) {
        // SAFETY: the caller's promise; the macros keep to the length in the header, and each
        // control message is at least as long as what is read of it.
        unsafe {
            let mut at = libc::CMSG_FIRSTHDR(header);
            while let Some(message) = at.as_ref() {
                let data = libc::CMSG_DATA(at);
                let room = message.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                match (message.cmsg_level, message.cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING)
                        if room >= size_of::<libc::timespec>() =>
                    {
                        let stamp = data.cast::<libc::timespec>().read_unaligned();
                        let realtime_ns =
                            i128::from(stamp.tv_sec) * 1_000_000_000 + i128::from(stamp.tv_nsec);
                        self.stamp = (realtime_ns > 0).then_some(Stamped { realtime_ns });
                    }
                    (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                        if room >= size_of::<libc::sock_extended_err>() =>
                    {
                        let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                        let is_stamp = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                        self.numbered = is_stamp.then_some(error.ee_data);
                    }
                    _ => {}
                }
                at = libc::CMSG_NXTHDR(header, at);
            }
        }
    }
}

/// An address as the kernel has written it.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage holds this structure.
            let v4 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let ip = std::net::Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            let ip = std::net::Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(std::net::SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
