//! Which address an end takes.

use crate::host;
use crate::transport::{SetupError, Site};
use std::net::{Ipv4Addr, SocketAddr};

/// The address of an end, its port 0: the kernel chooses one.
pub fn address(site: &Site) -> Result<SocketAddr, SetupError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_gets_the_scope_of_this_end() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let other = at("[fe80::1%3]:80");
        assert_eq!(towards(other, at("[fe80::2%7]:0")), at("[fe80::1%7]:80"));
        let global = at("[2001:db8::1]:80");
        assert_eq!(towards(global, at("[fe80::2%7]:0")), global);
    }
}
