//! A Homa socket of the kernel, and the calls by which the rest of this transport uses one.

use super::abi::{self, ReceiveArgs, SendArgs};
use memmap2::{MmapOptions, MmapRaw};
use nix::setsockopt_impl;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{SetBool, SetStruct};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use socket2::{SockAddr, SockAddrStorage};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The length and the sender of a message.
pub type Received = Result<(usize, Option<SocketAddr>), Errno>;

/// The calls of a Homa socket. The kernel's is [`Socket`]; tests have one of their own. A copy is a
/// second handle on the same socket and its region, for another thread: a page belongs to the
/// handle whose `receive` it was handed over by.
pub trait Calls: Clone + Send + 'static {
    /// Sends a message without waiting.
    fn send(&self, args: &mut SendArgs, to: &SockAddr, message: &[u8]) -> Result<(), Errno>;

    /// Receives a message, and gives the pages in `args` back; with `sleeps` it waits until there
    /// is one. Returns the length and the sender. After a failure `args` hold what the kernel
    /// wrote.
    fn receive(&self, args: &mut ReceiveArgs, sleeps: bool) -> Received;

    /// Sleeps until one of these is so, or for so long, or until a signal comes.
    fn sleep(&self, until: PollFlags, patience: Option<Duration>);

    /// The region in which messages arrive. A page of it is this handle's from the `receive` that
    /// hands it over to the next one that is given it back: all others are the kernel's to write,
    /// or another handle's.
    fn region(&self) -> &MmapRaw;

    /// What the kernel says is readable when a message has come.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// The option [`abi::SO_RCVBUF`].
#[derive(Clone)]
struct ReceiveBuffer;
setsockopt_impl!(ReceiveBuffer, LEVEL, abi::SO_RCVBUF, abi::Region, SetStruct<abi::Region>);

/// The option [`abi::SO_SERVER`].
#[derive(Clone)]
struct Server;
setsockopt_impl!(Server, LEVEL, abi::SO_SERVER, bool, SetBool);

/// The level of the protocol's options.
const LEVEL: libc::c_int = abi::PROTOCOL as libc::c_int;

/// A Homa socket with the memory in which its messages arrive.
#[derive(Clone)]
pub struct Socket {
    // Dropped in this order: a socket whose last handle is closed writes to its region no more.
    fd: Arc<OwnedFd>,
    region: Arc<MmapRaw>,
    /// The address and the port that others send to.
    pub own: SocketAddr,
}

/// Memory in which messages arrive: every page is touched before the first of them.
fn region(bytes: usize) -> io::Result<Arc<MmapRaw>> {
    let mapping = MmapOptions::new().len(bytes).populate().map_anon()?;
    Ok(Arc::new(MmapRaw::from(mapping)))
}

/// A socket of the protocol, of the family of an address.
fn bare(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let protocol = NonZeroU32::new(abi::PROTOCOL).map(Protocol::from_raw);
    rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)
}

/// Whether the kernel has the protocol; if not, what it said.
pub fn probe() -> Result<(), Errno> {
    bare(AddressFamily::INET).map(drop)
}

/// An error with what the module says of it, if it says anything.
fn explained(error: io::Error, fd: &OwnedFd) -> io::Error {
    let mut info = abi::Info::EMPTY;
    // SAFETY: ioctl(2) HOMAIOCINFO reads and writes one homa_info, which `info` is; its length of
    // memory for requests is 0, so that no other memory is written.
    let told = unsafe { libc::ioctl(fd.as_raw_fd(), abi::IOCTL_INFO as _, &raw mut info) };
    with_words(error, info.words().filter(|_| told == 0))
}

fn with_words(error: io::Error, words: Option<String>) -> io::Error {
    match words {
        Some(words) => io::Error::new(error.kind(), format!("{error}; Homa says: {words}")),
        None => error,
    }
}

impl Socket {
    /// A socket with the port of `own`, or one that the kernel gives where that is 0. What arrives
    /// is put into so many bytes of memory; requests are let in where it is a server's.
    ///
    /// # Errors
    /// A system call that failed, with what was tried.
    pub fn open(own: SocketAddr, region_bytes: usize, is_server: bool) -> io::Result<Socket> {
        let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let fd = bare(family)?;
        rustix::net::bind(&fd, &own)?;
        let region = region(region_bytes)?;
        let (start, length) = (region.as_ptr() as u64, region.len());
        // The memory lives as long as the socket.
        let set = setsockopt(&fd, ReceiveBuffer, &abi::Region { start, length });
        set.map_err(|errno| explained(errno.into(), &fd))?;
        // A port that was asked for would make a server of a client's socket too.
        let set = setsockopt(&fd, Server, &is_server);
        set.map_err(|errno| explained(errno.into(), &fd))?;
        // Homa binds to a port of all addresses, and names none.
        let port = SocketAddr::try_from(rustix::net::getsockname(&fd)?)?.port();
        let mut own = own;
        own.set_port(port);
        Ok(Socket { fd: Arc::new(fd), region, own })
    }
}

/// What the last call of libc failed with.
fn failure() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

impl Calls for Socket {
    #[inline]
    fn send(&self, args: &mut SendArgs, to: &SockAddr, message: &[u8]) -> Result<(), Errno> {
        let mut part =
            libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        // SAFETY: an all-zero msghdr is a valid one: null pointers with zero lengths.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        // A length would make the kernel look for control messages; Homa takes the pointer alone.
        header.msg_control = std::ptr::from_mut(args).cast();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: sendmsg(2) reads the address and the message, which outlive the call, and writes
        // neither; Homa reads and writes the structure of its interface at msg_control, which is
        // that of `args`, borrowed for writing.
        let sent = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const header, flags) };
        if sent < 0 { Err(failure()) } else { Ok(()) }
    }

    #[inline]
    fn receive(&self, args: &mut ReceiveArgs, sleeps: bool) -> Received {
        let mut from = SockAddrStorage::zeroed();
        // SAFETY: an all-zero msghdr is a valid one: null pointers with zero lengths.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut from).cast();
        header.msg_namelen = from.size_of();
        header.msg_control = std::ptr::from_mut(args).cast();
        header.msg_controllen = size_of::<ReceiveArgs>() as _;
        let flags = if sleeps { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: recvmsg(2) writes at most msg_namelen bytes at msg_name; Homa reads and writes
        // the structure of its interface at msg_control, which is that of `args`, of the length
        // that is said, and puts messages into no memory but the region's.
        let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, flags) };
        if got < 0 {
            return Err(failure());
        }
        // SAFETY: the storage was zeroed, and recvmsg has written an address of the family that it
        // names into it; the length is that of the storage at most.
        let from = unsafe { SockAddr::new(from, header.msg_namelen) };
        Ok((got as usize, from.as_socket()))
    }

    fn sleep(&self, until: PollFlags, patience: Option<Duration>) {
        let patience = patience.and_then(|span| Timespec::try_from(span).ok());
        let mut polled = [PollFd::new(&self.fd, until)];
        // An interruption comes back early, as the contract allows.
        let _ = rustix::event::poll(&mut polled, patience.as_ref());
    }

    #[inline(always)]
    fn region(&self) -> &MmapRaw {
        &self.region
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbox::Inbox;
    use super::*;
    use std::net::UdpSocket;

    /// A socket of the kernel's that is a datagram socket too, in the place of Homa's: it reads no
    /// structure at `msg_control`, and needs none.
    fn over_udp() -> (Socket, UdpSocket) {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd: OwnedFd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let own = SocketAddr::try_from(rustix::net::getsockname(&fd).unwrap()).unwrap();
        (Socket { fd: Arc::new(fd), region: region(2 * abi::BPAGE).unwrap(), own }, other)
    }

    #[test]
    fn messages_and_addresses_pass_the_kernel() {
        let (socket, other) = over_udp();
        let mut args = ReceiveArgs::default();
        assert_eq!(socket.receive(&mut args, false), Err(Errno::AGAIN));
        let to = other.local_addr().unwrap().into();
        socket.send(&mut SendArgs::request(1), &to, b"a message").unwrap();
        let mut heard = [0; 32];
        assert_eq!(other.recv_from(&mut heard).unwrap(), (9, socket.own));
        assert_eq!(&heard[..9], b"a message");
        other.send_to(b"an answer", socket.own).unwrap();
        socket.sleep(PollFlags::IN, Some(Duration::from_secs(5)));
        // Without a buffer none of its bytes are taken: Homa puts them into the region.
        let got = socket.receive(&mut args, true).unwrap();
        assert_eq!(got, (0, Some(other.local_addr().unwrap())));
        assert_eq!(args, ReceiveArgs::default());
    }

    #[test]
    fn the_region_is_touched_and_bounded() {
        let (socket, _other) = over_udp();
        assert_eq!(socket.region().len(), 2 * abi::BPAGE);
        let inbox = Inbox::new(socket, 2 * abi::BPAGE);
        // SAFETY: no kernel writes this region.
        unsafe { &mut *inbox.part(abi::BPAGE - 1, 2) }.copy_from_slice(&[1, 2]);
        // SAFETY: as above.
        let all = unsafe { &*inbox.part(0, 2 * abi::BPAGE) };
        assert_eq!(all[abi::BPAGE - 2..abi::BPAGE + 2], [0, 1, 2, 0]);
        for (at, length) in [(2 * abi::BPAGE, 1), (usize::MAX, 2)] {
            // SAFETY: it panics, which is what is asked.
            let beyond = || unsafe { &*inbox.part(at, length) }.len();
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(beyond)).is_err());
        }
    }

    #[test]
    fn a_second_handle_has_the_same_socket_and_region() {
        let (socket, other) = over_udp();
        let second = socket.clone();
        let inbox = Inbox::new(socket, 1);
        // SAFETY: no kernel writes this region.
        unsafe { &mut *inbox.part(9, 1) }.fill(7);
        drop(inbox);
        let inbox = Inbox::new(second, 1);
        // SAFETY: as above.
        assert_eq!(unsafe { &*inbox.part(9, 1) }, [7]);
        let second = inbox.socket;
        other.send_to(b"x", second.own).unwrap();
        second.sleep(PollFlags::IN, Some(Duration::from_secs(5)));
        assert!(second.receive(&mut ReceiveArgs::default(), false).is_ok());
    }

    #[test]
    fn a_refusal_has_the_module_s_own_words() {
        let refused = || io::Error::from_raw_os_error(libc::EINVAL);
        let words = Some("buffer pool is not large enough".to_string());
        let text = with_words(refused(), words).to_string();
        assert!(text.ends_with("; Homa says: buffer pool is not large enough"), "{text}");
        let (socket, _other) = over_udp();
        // Another protocol's socket does not know the call.
        let plain = explained(refused(), &socket.fd).to_string();
        assert_eq!(plain, refused().to_string());
    }

    #[test]
    fn another_protocol_s_socket_refuses_the_options() {
        let (socket, _other) = over_udp();
        assert!(setsockopt(&socket.fd, Server, &true).is_err());
    }
}
