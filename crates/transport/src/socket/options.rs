//! Socket options: set as asked, and read back as they are in effect; and completions of
//! MSG_ZEROCOPY.

use super::site::bound_device;
use crate::{NamedValues, Result, Settings, SetupError};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, setsockopt, sockopt};
use nix::{getsockopt_impl, setsockopt_impl};
use rustix::net::{SendFlags, sockopt::ip_mtu, sockopt::ipv6_mtu};
use socket2::{Domain, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use wiregauge_host::{Family, interface_with};

/// SO_EE_ORIGIN_ZEROCOPY of `linux/errqueue.h`.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;

/// SO_ZEROCOPY: the socket takes MSG_ZEROCOPY.
#[derive(Clone, Copy)]
struct AllowZeroCopy;
setsockopt_impl!(AllowZeroCopy, libc::SOL_SOCKET, libc::SO_ZEROCOPY, bool, sockopt::SetBool);
getsockopt_impl!(AllowZeroCopy, libc::SOL_SOCKET, libc::SO_ZEROCOPY, bool, sockopt::GetBool);

/// Sets what every socket knows.
fn apply_common(socket: &Socket, settings: &Settings) -> Result<()> {
    if let Some(bytes) = settings.size("send-buffer") {
        let bytes = bytes.0 as usize;
        // Beyond net.core.wmem_max where this process may; else the kernel cuts it without a word.
        let set = setsockopt(socket, sockopt::SndBufForce, &bytes).map_err(io::Error::from);
        let set = set.or_else(|_| socket.set_send_buffer_size(bytes));
        set.map_err(SetupError::system(format!("SO_SNDBUF of {bytes} B")))?;
    }
    if let Some(bytes) = settings.size("receive-buffer") {
        let bytes = bytes.0 as usize;
        let set = setsockopt(socket, sockopt::RcvBufForce, &bytes).map_err(io::Error::from);
        let set = set.or_else(|_| socket.set_recv_buffer_size(bytes));
        set.map_err(SetupError::system(format!("SO_RCVBUF of {bytes} B")))?;
    }
    if let Some(us) = settings.busy_poll_us() {
        socket.set_busy_poll(us).map_err(SetupError::system(format!(
            "SO_BUSY_POLL of {us} us (more than net.core.busy_read needs CAP_NET_ADMIN)"
        )))?;
    }
    Ok(())
}

/// Sets what TCP announces in its handshake: the window scale fits the buffers, each end sends
/// segments that the other allows, and dctcp asks for the notice of congestion (ECN) without which
/// it would be reno. Accepted sockets inherit it.
pub fn apply_before_handshake(socket: &Socket, settings: &Settings) -> Result<()> {
    apply_common(socket, settings)?;
    if let Some(name) = settings.text("congestion") {
        socket.set_tcp_congestion(name.as_bytes()).map_err(SetupError::system(format!(
            "congestion control '{name}' (allowed: net.ipv4.tcp_allowed_congestion_control)"
        )))?;
    }
    let Some(mss) = settings.size("mss") else { return Ok(()) };
    let set = socket.set_tcp_mss(mss.0 as u32);
    set.map_err(SetupError::system(format!("TCP_MAXSEG of {} B", mss.0)))
}

/// Sets what a connected socket of its kind knows.
pub fn apply(socket: &Socket, settings: &Settings) -> Result<()> {
    apply_common(socket, settings)?;
    let address = own_address(socket);
    if let Some(dscp) = settings.count32("dscp") {
        let class = dscp << 2;
        let set = match address.is_some_and(|address| address.is_ipv6()) {
            true => socket.set_tclass_v6(class),
            false => socket.set_tos_v4(class),
        };
        set.map_err(SetupError::system(format!("DSCP {dscp}")))?;
    }
    if !is_tcp(socket, address) {
        return Ok(());
    }
    let nodelay = socket.set_tcp_nodelay(settings.switch("nodelay").unwrap_or(true));
    nodelay.map_err(SetupError::system("TCP_NODELAY"))?;
    if let Some(name) = settings.text("congestion") {
        let found = congestion(socket).map_err(SetupError::system("TCP_CONGESTION"))?;
        let other = format!(
            "the kernel gives the congestion control {found} for {name}: dctcp needs packets whose \
             marks of congestion (ECN) nothing on the way removes"
        );
        ensure!(found == name, SetupError::Refused(other));
    }
    if settings.flag("zerocopy") {
        setsockopt(socket, AllowZeroCopy, &true).map_err(SetupError::system("SO_ZEROCOPY"))?;
    }
    Ok(())
}

/// Whether this process may use a congestion control; if not, why.
pub fn congestion_available(name: &str) -> Result<(), String> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
    let set = socket.and_then(|socket| socket.set_tcp_congestion(name.as_bytes()));
    set.map_err(|error| {
        format!("congestion control {name}: {error}; see net.ipv4.tcp_allowed_congestion_control")
    })
}

/// The congestion control of a TCP socket.
fn congestion(socket: &Socket) -> io::Result<String> {
    let name = socket.tcp_congestion()?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The address of this end of an IP socket.
fn own_address(socket: &Socket) -> Option<SocketAddr> {
    socket.local_addr().ok()?.as_socket()
}

fn is_tcp(socket: &Socket, address: Option<SocketAddr>) -> bool {
    address.is_some() && socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
}

/// Settings of a socket that are in effect; of an IP socket also the interface whose address it
/// has.
pub fn effective(socket: &Socket) -> NamedValues {
    fn read<T: ToString, E>(name: &str, value: Result<T, E>) -> Option<(String, String)> {
        Some((name.to_string(), value.ok()?.to_string()))
    }
    let common = [
        read("send_buffer_bytes", socket.send_buffer_size()),
        read("receive_buffer_bytes", socket.recv_buffer_size()),
        read("busy_poll_us", socket.busy_poll()),
    ];
    let mut all: NamedValues = common.into_iter().flatten().collect();
    let Some(address) = own_address(socket) else { return all };
    let (class, mtu) = match address.is_ipv6() {
        true => (socket.tclass_v6(), ipv6_mtu(socket)),
        false => (socket.tos_v4(), ip_mtu(socket)),
    };
    all.extend(bound_device(socket).map(|name| ("bound_device".to_owned(), name)));
    all.extend(read("dscp", class.map(|class| class >> 2)));
    all.extend(read("path_mtu_bytes", mtu));
    all.extend(effective_address(address.ip()));
    if is_tcp(socket, Some(address)) {
        let of_tcp = [
            read("nodelay", socket.tcp_nodelay()),
            read("congestion", congestion(socket)),
            read("mss_bytes", socket.tcp_mss()),
            read("zerocopy", getsockopt(socket, AllowZeroCopy)),
        ];
        all.extend(of_tcp.into_iter().flatten());
    }
    all
}

/// The address of an end, and what a message's time depends on of the interface that has it.
pub fn effective_address(address: IpAddr) -> NamedValues {
    let mut all = vec![
        ("address".to_string(), address.to_string()),
        ("family".to_string(), Family::of(address).name().to_string()),
    ];
    if let Some(interface) = interface_with(address) {
        let named = [
            ("interface", Some(interface.name)),
            ("interface_mtu_bytes", interface.mtu_bytes.map(|bytes| bytes.to_string())),
            ("interface_speed_mbps", interface.speed_mbps.map(|speed| speed.to_string())),
            ("ipoib_mode", interface.ipoib_mode),
        ];
        all.extend(named.into_iter().filter_map(|(name, value)| Some((name.into(), value?))));
    }
    all
}

/// The flag of a send, where zero-copy is on.
pub const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// Sends whose memory the kernel still reads.
///
/// Each `send` with MSG_ZEROCOPY that took something gets a number from 0; the error queue reports
/// ranges of numbers that are done (`Documentation/networking/msg_zerocopy.rst`). Numbers of a TCP
/// socket complete in order.
pub struct ZeroCopy {
    /// Messages finished by each send that is not done, oldest first.
    open: VecDeque<u32>,
}

impl Default for ZeroCopy {
    fn default() -> ZeroCopy {
        // So many sends on the way that the queue never grows inside a measured loop.
        ZeroCopy { open: VecDeque::with_capacity(4096) }
    }
}

impl ZeroCopy {
    /// The kernel took a send that completed `messages` messages.
    pub fn sent(&mut self, messages: u32) {
        self.open.push_back(messages);
    }

    /// Whether any send is not done.
    pub fn awaits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Reads the error queue; the number of messages whose memory is free again.
    pub fn reap(&mut self, socket: &Socket) -> u32 {
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
fn read_completion(socket: &Socket) -> Option<u32> {
    /// cmsghdr, sock_extended_err and the offender's address fit, aligned as cmsghdr.
    #[repr(align(8))]
    struct Room([u8; 128]);
    let mut room = Room([0; 128]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut room.0), flags).ok()?;
    let error = match message.cmsgs().ok()?.next()? {
        ControlMessageOwned::Ipv4RecvErr(error, _) => error,
        ControlMessageOwned::Ipv6RecvErr(error, _) => error,
        _ => return None,
    };
    (error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
        .then(|| error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn another_congestion_control_than_asked_for_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::from(stream);
        // As a kernel gives reno for dctcp.
        socket.set_tcp_congestion(b"reno").unwrap();
        let refused = |name| {
            let settings = Settings::of_values([("congestion", name)]).unwrap();
            apply(&socket, &settings).err().map(|error| error.to_string())
        };
        assert_eq!(refused("reno"), None);
        assert!(refused("cubic").is_some_and(|why| why.contains("reno for cubic")));
    }
}
