//! Networks that an agent daemon allows something: an address, or one with a prefix length.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let one = |_| text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(one).map(Network).map_err(|_| {
            format!(
                "invalid network '{text}': expected an address or CIDR notation, as 10.1.0.0/16"
            )
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network(address.to_canonical().into())
    }
}

impl Network {
    /// Whether an address belongs to it.
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// Networks as an environment variable carries them.
pub fn joined(networks: &[Network]) -> String {
    networks.iter().map(Network::to_string).collect::<Vec<_>>().join(",")
}

/// What [`joined`] has written.
pub fn parted(text: &str) -> Result<Vec<Network>, String> {
    text.split(',').map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().has(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_what_begins_alike() {
        assert!(holds("10.1.0.0/16", "10.1.255.7") && !holds("10.1.0.0/16", "10.2.0.1"));
        assert!(holds("10.1.0.7", "10.1.0.7") && !holds("10.1.0.7", "10.1.0.6"));
        assert!(holds("0.0.0.0/0", "255.1.2.3") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "2001:db8::1") && holds("fe80::/10", "fe80::1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"), "IPv4 over a socket of IPv6");
        for wrong in ["", "10.1.0.0/33", "::/129", "10.1/16", "a", "10.1.0.0/-1", "10.1.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_network_is_a_range_of_numbers(own: u32, other: u32, prefix in 0u8..=32) {
            let network = Network(IpNet::new(IpAddr::V4(own.into()), prefix).unwrap());
            let size = 1u64 << (32 - prefix);
            let alike = u64::from(own) / size == u64::from(other) / size;
            prop_assert_eq!(network.has(IpAddr::V4(other.into())), alike);
            prop_assert_eq!(parted(&joined(&[network, network])), Ok(vec![network, network]));
        }
    }
}
