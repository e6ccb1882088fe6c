//! Which address an end takes, which it may take, and with which others it may exchange data.

use crate::{Result, SetupError, Site};
use socket2::Socket;
use std::io;
use std::net::{IpAddr, SocketAddr};
use wiregauge_host::{Family, ip_network};

/// The address of an end, of the family that was asked for, its port 0: the kernel chooses one.
///
/// # Errors
/// There is no such address, or a daemon does not allow it.
pub fn address(site: &Site, family: Option<Family>) -> Result<SocketAddr> {
    let lacking = |error| SetupError::NotAllowed(format!("--family: {error}"));
    let known = |own| wiregauge_host::in_family(own, family).map_err(lacking);
    let own = match site {
        Site::Loopback => wiregauge_host::loopback(family).map_err(lacking)?,
        Site::Interface(name) => wiregauge_host::address_of(name, family)
            .map_err(|error| SetupError::NotAllowed(format!("--interface: {error}")))?,
        Site::Address(ip) => known((*ip, 0).into())?,
        Site::Session => known(wiregauge_host::session_address().map_err(SetupError::NotAllowed)?)?,
    };
    check_own(own.ip())?;
    Ok(own)
}

/// The other end's address as this end must write it: the scope of a link-local one is the number
/// of an interface, which is each host's own. A control frame does not carry it.
///
/// # Errors
/// This end may exchange no data with that address.
pub fn towards(other: SocketAddr, own: SocketAddr) -> Result<SocketAddr> {
    check_peer(other.ip())?;
    Ok(match (other, own) {
        (SocketAddr::V6(mut other), SocketAddr::V6(own))
            if other.scope_id() != 0 || other.ip().is_unicast_link_local() =>
        {
            other.set_scope_id(own.scope_id());
            other.into()
        }
        (other, _) => other,
    })
}

/// Binds a socket to the device of an end, so that its packets leave by it and come in by it: an
/// address alone chooses neither where two interfaces are in one subnet.
///
/// Before Linux 5.7 that needs CAP_NET_RAW. Without it the socket stays as it is, and the counters
/// of the devices show which one carried the messages.
///
/// # Errors
/// The kernel does not bind it for another reason.
pub fn bind_device(socket: &Socket, device: Option<&str>) -> io::Result<()> {
    // A second time needs a privilege, and accepted sockets inherit it.
    match device {
        Some(name) if bound_device(socket).as_deref() != Some(name) => {
            match socket.bind_device(Some(name.as_bytes())) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                bound => bound,
            }
        }
        _ => Ok(()),
    }
}

/// Returns the device that a socket is bound to.
pub fn bound_device(socket: &Socket) -> Option<String> {
    String::from_utf8(socket.device().ok()??).ok()
}

/// Where an agent daemon says with which addresses its processes may exchange data, and which of
/// this host's they may use: networks, as `10.1.0.9/32,10.2.0.0/16`. Any, where it says nothing.
pub const PEERS_VARIABLE: &str = "WIREGAUGE_PEERS";
/// See [`PEERS_VARIABLE`].
pub const BIND_VARIABLE: &str = "WIREGAUGE_BIND";

/// Refuses an address of this host that the daemon does not allow.
pub fn check_own(ip: IpAddr) -> Result<()> {
    let is_allowed = is_allowed(std::env::var(BIND_VARIABLE).ok().as_deref(), ip);
    ensure!(
        is_allowed,
        SetupError::NotAllowed(format!(
            "this agent does not allow rounds to use its address {ip}: start it with --bind {ip}"
        ))
    );
    Ok(())
}

/// Refuses another end that the daemon does not allow, before anything is sent to it: who asks
/// learns nothing of it.
pub fn check_peer(ip: IpAddr) -> Result<()> {
    let networks = std::env::var(PEERS_VARIABLE).ok();
    let is_allowed = is_allowed(networks.as_deref(), ip);
    ensure!(is_allowed, SetupError::NotAllowed(refusal(networks.as_deref(), ip)));
    Ok(())
}

/// Says why a peer is refused. Without any network the controller itself is none of the peers.
fn refusal(networks: Option<&str>, ip: IpAddr) -> String {
    let why = match networks {
        Some("") => {
            ", because its controller comes from this same host, as it does behind a tunnel"
        }
        _ => "",
    };
    format!(
        "this agent does not allow rounds to exchange data with {ip}{why}: start it with --peers \
         {ip}"
    )
}

/// Whether the daemon allows another end.
pub fn is_peer(ip: IpAddr) -> bool {
    is_allowed(std::env::var(PEERS_VARIABLE).ok().as_deref(), ip)
}

/// What cannot be read allows nothing.
fn is_allowed(networks: Option<&str>, ip: IpAddr) -> bool {
    let Some(networks) = networks else { return true };
    ip_network::parted(networks).is_ok_and(|all| all.iter().any(|one| one.has(ip)))
}

/// Where an agent daemon says on which ports its processes may receive, as `7500-7599`.
pub const PORTS_VARIABLE: &str = "WIREGAUGE_PORTS";

/// Binds on an address whose port is 0: on one that the kernel chooses, or on the first that is
/// free of those that are allowed here.
pub fn bind<S>(
    own: SocketAddr,
    mut bind: impl FnMut(SocketAddr) -> io::Result<S>,
) -> io::Result<S> {
    match std::env::var(PORTS_VARIABLE) {
        Ok(allowed) => {
            let (first, last) = parse_ports(&allowed)
                .ok_or_else(|| io::Error::other(format!("{PORTS_VARIABLE} is '{allowed}'")))?;
            bind_within(own, first, last, bind)
        }
        Err(_) => bind(own),
    }
}

fn bind_within<S>(
    own: SocketAddr,
    first: u16,
    last: u16,
    mut bind: impl FnMut(SocketAddr) -> io::Result<S>,
) -> io::Result<S> {
    for port in first..=last {
        let mut at = own;
        at.set_port(port);
        match bind(at) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("all allowed ports {first}-{last} are in use"),
    ))
}

/// A range of ports, the last one included.
pub fn parse_ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0 && first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_port_of_those_allowed_is_taken() {
        let own: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let busy = |ports: &'static [u16]| {
            move |at: SocketAddr| match ports.contains(&at.port()) {
                true => Err(io::ErrorKind::AddrInUse.into()),
                false => Ok(at.port()),
            }
        };
        assert_eq!(bind_within(own, 7500, 7502, busy(&[7500])).unwrap(), 7501);
        let none = bind_within(own, 7500, 7501, busy(&[7500, 7501])).unwrap_err();
        assert!(none.to_string().contains("7500-7501"), "{none}");
        let refused =
            |_: SocketAddr| -> io::Result<u16> { Err(io::ErrorKind::PermissionDenied.into()) };
        let kind = bind_within(own, 80, 90, refused).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::PermissionDenied);
        assert_eq!(bind_within(own, 65535, 65535, busy(&[])).unwrap(), 65535);
    }

    #[test]
    fn ports_are_a_range() {
        assert_eq!(parse_ports("7500-7599"), Some((7500, 7599)));
        assert_eq!(parse_ports("1-65535"), Some((1, 65535)));
        for wrong in ["", "7500", "0-9", "9-8", "1-65536", "a-b", "-"] {
            assert_eq!(parse_ports(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_link_local_address_gets_the_scope_of_this_end() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let other = at("[fe80::1%3]:80");
        assert_eq!(towards(other, at("[fe80::2%7]:0")).unwrap(), at("[fe80::1%7]:80"));
        let without = at("[fe80::1]:80");
        assert_eq!(towards(without, at("[fe80::2%7]:0")).unwrap(), at("[fe80::1%7]:80"));
        let global = at("[2001:db8::1]:80");
        assert_eq!(towards(global, at("[fe80::2%7]:0")).unwrap(), global);
    }

    #[test]
    fn only_what_a_daemon_names_is_allowed_and_all_where_it_names_nothing() {
        let holds = |networks, ip: &str| is_allowed(networks, ip.parse().unwrap());
        assert!(holds(None, "192.0.2.1"));
        assert!(holds(Some("10.1.0.9/32,10.2.0.0/16"), "10.2.3.4"));
        assert!(holds(Some("10.1.0.9/32"), "::ffff:10.1.0.9"));
        assert!(!holds(Some("10.1.0.9/32"), "127.0.0.1"));
        assert!(!holds(Some(""), "10.1.0.9") && !holds(Some("10.1.0.9,x"), "10.1.0.9"));
    }
}
