//! Socket options: set as asked, and read back as they are in effect; and completions of
//! MSG_ZEROCOPY.

use crate::host::{Interface, interface_with};
use crate::transport::{Settings, SetupError};
use rustix::net::SendFlags;
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// SO_BUSY_POLL and SO_ZEROCOPY of `asm-generic/socket.h`, which no library of ours names.
const SO_BUSY_POLL: libc::c_int = 46;
const SO_ZEROCOPY: libc::c_int = 60;
/// MSG_ZEROCOPY of `linux/socket.h`.
const MSG_ZEROCOPY: u32 = 0x400_0000;
/// SO_EE_ORIGIN_ZEROCOPY of `linux/errqueue.h`.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;

fn set_int<S: AsFd>(socket: &S, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: setsockopt(2) reads `size` bytes at the pointer, which is that of a live c_int.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const value).cast(),
            size,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get_int<S: AsFd>(socket: &S, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: getsockopt(2) writes at most `size` bytes at the pointer, which is that of a live
    // c_int of that size.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut size,
        )
    };
    if done == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Sets what every socket knows.
pub fn apply_common<S: AsFd>(socket: &S, settings: &Settings) -> Result<(), SetupError> {
    let sock = SockRef::from(socket);
    if let Some(bytes) = settings.size("send-buffer") {
        sock.set_send_buffer_size(bytes.0 as usize)
            .map_err(SetupError::system(format!("SO_SNDBUF of {} B", bytes.0)))?;
    }
    if let Some(bytes) = settings.size("receive-buffer") {
        sock.set_recv_buffer_size(bytes.0 as usize)
            .map_err(SetupError::system(format!("SO_RCVBUF of {} B", bytes.0)))?;
    }
    if let Some(us) = settings.busy_poll_us() {
        set_int(socket, SO_BUSY_POLL, us as libc::c_int).map_err(SetupError::system(format!(
            "SO_BUSY_POLL of {us} us (more than net.core.busy_read needs CAP_NET_ADMIN)"
        )))?;
    }
    Ok(())
}

/// Sets what TCP tells the other end in its handshake: the window scale fits the buffers, and each
/// end sends segments that the other allows. Accepted sockets inherit it.
pub fn apply_before_handshake<S: AsFd>(socket: &S, settings: &Settings) -> Result<(), SetupError> {
    apply_common(socket, settings)?;
    let Some(mss) = settings.size("mss") else { return Ok(()) };
    let set = SockRef::from(socket).set_tcp_mss(mss.0 as u32);
    set.map_err(SetupError::system(format!("TCP_MAXSEG of {} B", mss.0)))
}

/// Sets what IP sockets know.
pub fn apply_ip(socket: &OwnedFd, settings: &Settings) -> Result<(), SetupError> {
    if let Some(dscp) = settings.count32("dscp") {
        let sock = SockRef::from(socket);
        let class = dscp << 2;
        let set = match is_v6(socket) {
            true => sock.set_tclass_v6(class),
            false => sock.set_tos_v4(class),
        };
        set.map_err(SetupError::system(format!("DSCP {dscp}")))?;
    }
    Ok(())
}

/// The address of this end of an IP socket.
fn own_address(socket: &OwnedFd) -> Option<SocketAddr> {
    SockRef::from(socket).local_addr().ok()?.as_socket()
}

fn is_v6(socket: &OwnedFd) -> bool {
    own_address(socket).is_some_and(|address| address.is_ipv6())
}

/// Sets what TCP sockets know.
pub fn apply_tcp(socket: &OwnedFd, settings: &Settings) -> Result<(), SetupError> {
    let sock = SockRef::from(socket);
    sock.set_tcp_nodelay(settings.switch("nodelay").unwrap_or(true))
        .map_err(SetupError::system("TCP_NODELAY"))?;
    if let Some(name) = settings.text("congestion") {
        sock.set_tcp_congestion(name.as_bytes()).map_err(SetupError::system(format!(
            "congestion control '{name}' (allowed: net.ipv4.tcp_allowed_congestion_control)"
        )))?;
    }
    if settings.flag("zerocopy") {
        set_int(socket, SO_ZEROCOPY, 1).map_err(SetupError::system("SO_ZEROCOPY"))?;
    }
    Ok(())
}

/// Settings of any socket that are in effect.
pub fn effective_common(socket: &OwnedFd) -> Vec<(String, String)> {
    let sock = SockRef::from(socket);
    let mut all = Vec::new();
    let mut note = |name: &str, value: io::Result<String>| {
        if let Ok(value) = value {
            all.push((name.to_string(), value));
        }
    };
    note("send_buffer_bytes", sock.send_buffer_size().map(|v| v.to_string()));
    note("receive_buffer_bytes", sock.recv_buffer_size().map(|v| v.to_string()));
    note("busy_poll_us", get_int(socket, SO_BUSY_POLL).map(|v| v.to_string()));
    all
}

/// Settings of an IP socket that are in effect, and the interface whose address it has.
pub fn effective_ip(socket: &OwnedFd) -> Vec<(String, String)> {
    let mut all = effective_common(socket);
    let sock = SockRef::from(socket);
    let (class, mtu) = match is_v6(socket) {
        true => (sock.tclass_v6(), rustix::net::sockopt::ipv6_mtu(socket.as_fd())),
        false => (sock.tos_v4(), rustix::net::sockopt::ip_mtu(socket.as_fd())),
    };
    if let Ok(class) = class {
        all.push(("dscp".into(), (class >> 2).to_string()));
    }
    if let Ok(mtu) = mtu {
        all.push(("path_mtu_bytes".into(), mtu.to_string()));
    }
    if let Some(address) = own_address(socket) {
        all.extend(effective_address(address.ip()));
    }
    all
}

/// The address of an end, and the interface that has it.
pub fn effective_address(address: IpAddr) -> Vec<(String, String)> {
    let interface = interface_with(address).into_iter().flat_map(effective_interface);
    std::iter::once(("address".into(), address.to_string())).chain(interface).collect()
}

/// What a message's time depends on of the interface whose address an end has.
fn effective_interface(interface: Interface) -> Vec<(String, String)> {
    let named = [
        ("interface", Some(interface.name)),
        ("interface_mtu_bytes", interface.mtu_bytes.map(|bytes| bytes.to_string())),
        ("interface_speed_mbps", interface.speed_mbps.map(|speed| speed.to_string())),
        ("ipoib_mode", interface.ipoib_mode),
    ];
    named.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

/// Settings of a TCP socket that are in effect.
pub fn effective_tcp(socket: &OwnedFd) -> Vec<(String, String)> {
    let sock = SockRef::from(socket);
    let mut all = effective_ip(socket);
    if let Ok(nodelay) = sock.tcp_nodelay() {
        all.push(("nodelay".into(), nodelay.to_string()));
    }
    if let Ok(name) = sock.tcp_congestion() {
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        all.push(("congestion".into(), String::from_utf8_lossy(&name).into_owned()));
    }
    if let Ok(mss) = sock.tcp_mss() {
        all.push(("mss_bytes".into(), mss.to_string()));
    }
    let zerocopy = matches!(get_int(socket, SO_ZEROCOPY), Ok(1));
    all.push(("zerocopy".into(), zerocopy.to_string()));
    all
}

/// The flag of a send, where zero-copy is on.
#[inline(always)]
pub fn zerocopy(state: &Option<ZeroCopy>) -> SendFlags {
    match state {
        None => SendFlags::empty(),
        Some(_) => SendFlags::from_bits_retain(MSG_ZEROCOPY),
    }
}

/// Sends whose memory the kernel still reads.
///
/// Each `send` with MSG_ZEROCOPY that took something gets a number from 0; the error queue tells
/// ranges of numbers that are done (`Documentation/networking/msg_zerocopy.rst`). Numbers of a TCP
/// socket complete in order.
#[derive(Default)]
pub struct ZeroCopy {
    /// Messages finished by each send that is not done, oldest first.
    open: std::collections::VecDeque<u32>,
}

impl ZeroCopy {
    /// Most sends on the way, so that the queue below never grows inside a measured loop.
    const MOST: usize = 4096;

    /// A send that ended so many messages was taken.
    pub fn sent(&mut self, messages: u32) {
        if self.open.capacity() == 0 {
            self.open.reserve(Self::MOST);
        }
        self.open.push_back(messages);
    }

    /// Whether any send is not done.
    pub fn awaits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Reads the error queue; the number of messages whose memory is free again.
    pub fn reap(&mut self, socket: &OwnedFd) -> u32 {
        let mut freed = 0;
        while self.awaits() {
            let Some(sends) = read_completion(socket) else { break };
            for _ in 0..sends {
                freed += self.open.pop_front().unwrap_or(0);
            }
        }
        freed
    }
}

/// One notification of the error queue: the number of sends that it says are done.
fn read_completion(socket: &OwnedFd) -> Option<u32> {
    // cmsghdr, sock_extended_err and the offender's address fit in 128 bytes, aligned as cmsghdr.
    let mut control = [0u64; 16];
    // SAFETY: an all-zero msghdr is a valid one: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: recvmsg(2) writes at most msg_controllen bytes at msg_control, both of the live
    // array above, and reads no data, since there are no vectors.
    let got = unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    if got < 0 {
        return None;
    }
    // SAFETY: cmsg(3): the header is the one that recvmsg has just filled in.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return None;
    }
    // SAFETY: cmsg(3): the data of a header that recvmsg filled in begins there; the kernel writes
    // a whole sock_extended_err for IP_RECVERR and IPV6_RECVERR, and the array is long enough.
    let error: libc::sock_extended_err =
        unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
    (error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
        .then(|| error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1))
}
