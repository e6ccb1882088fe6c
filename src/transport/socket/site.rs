//! Which address an end takes.

use crate::host;
use crate::transport::{Result, SetupError, Site};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// The address of an end, its port 0: the kernel chooses one.
pub fn address(site: &Site) -> Result<SocketAddr> {
    match site {
        Site::Loopback => Ok((Ipv4Addr::LOCALHOST, 0).into()),
        Site::Interface(name) => host::address_of(name)
            .map_err(|error| SetupError::NotAllowed(format!("--interface: {error}"))),
        Site::Address(ip) => Ok((*ip, 0).into()),
        Site::Session => host::session_address().map_err(SetupError::NotAllowed),
    }
}

/// The other end's address as this end must write it: the scope of a link-local one is the number
/// of an interface, which is each host's own.
pub fn towards(other: SocketAddr, own: SocketAddr) -> SocketAddr {
    match (other, own) {
        (SocketAddr::V6(mut other), SocketAddr::V6(own)) if other.scope_id() != 0 => {
            other.set_scope_id(own.scope_id());
            other.into()
        }
        (other, _) => other,
    }
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
        assert_eq!(towards(other, at("[fe80::2%7]:0")), at("[fe80::1%7]:80"));
        let global = at("[2001:db8::1]:80");
        assert_eq!(towards(global, at("[fe80::2%7]:0")), global);
    }
}
