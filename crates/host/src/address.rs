//! The IP addresses of this host's network interfaces, and which of them stands for a name.

use super::Tree;
use super::network::Interface;
use super::rdma::by_number;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

wiregauge_base::options::named_enum! {
    /// The version of IP.
    pub enum Family {
        /// Version 4.
        Ipv4 = "ipv4",
        /// Version 6.
        Ipv6 = "ipv6",
    }
}

impl Family {
    /// That of an address.
    pub fn of(ip: IpAddr) -> Family {
        if ip.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }
    }

    /// As a sentence has it.
    fn title(self) -> &'static str {
        match self {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        }
    }
}

/// Most addresses that are looked at.
const MOST: usize = 65_536;
/// Most names that a refusal lists.
const MOST_NAMED: usize = 40;

/// The address of a network interface that is up: its first of IPv4, else of IPv6, and a
/// link-local one (with its scope) where there is no other; with a family, of that alone. The port
/// is 0.
pub fn address_of(name: &str, family: Option<Family>) -> Result<SocketAddr, String> {
    choose(&Tree::default(), &addresses(), name, family)
}

/// The loopback address of a family, IPv4 where none was asked for. The port is 0.
pub fn loopback(family: Option<Family>) -> Result<SocketAddr, String> {
    match family {
        None | Some(Family::Ipv4) => Ok((Ipv4Addr::LOCALHOST, 0).into()),
        Some(Family::Ipv6) => {
            let own = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
            let has = addresses().iter().any(|(_, address)| address.ip() == own.ip());
            ensure!(has, "this host has no IPv6 loopback address (::1): use ipv4");
            Ok(own)
        }
    }
}

/// An address of this host, if it is of the family that was asked for, else that of the same
/// interface which is. The port is 0.
pub fn in_family(own: SocketAddr, family: Option<Family>) -> Result<SocketAddr, String> {
    counterpart(&Tree::default(), &addresses(), own, family)
}

fn counterpart(
    tree: &Tree,
    all: &[(String, SocketAddr)],
    own: SocketAddr,
    family: Option<Family>,
) -> Result<SocketAddr, String> {
    let other = family.filter(|family| *family != Family::of(own.ip()));
    let Some(other) = other else { return Ok(own) };
    let owner = all.iter().find(|(_, address)| address.ip() == own.ip());
    let title = other.title();
    let (name, _) = owner
        .ok_or_else(|| format!("{} has no {title} address beside it on this host", own.ip()))?;
    choose(tree, all, name, Some(other))
}

/// The scope of a link-local address of IPv6: the number of an interface, from its name or from the
/// number itself.
pub fn scope(zone: &str) -> Result<u32, String> {
    nix::net::if_::if_nametoindex(zone)
        .ok()
        .or_else(|| zone.parse().ok())
        .ok_or_else(|| format!("this host has no network interface '{zone}'"))
}

/// The interface that has this address.
pub fn interface_with(address: IpAddr) -> Option<Interface> {
    let (name, _) = addresses().into_iter().find(|(_, own)| own.ip() == address)?;
    Some(Interface::read(&Tree::default(), &name))
}

/// The address of this host by which the controller reached it: the third word of what the agent
/// daemon says of its connection, or else of SSH_CONNECTION (`ssh(1)`). The port is 0.
pub fn session_address() -> Result<SocketAddr, String> {
    let said = |name| Some((name, std::env::var(name).ok()?));
    let (name, words) = said(CONNECTION)
        .or_else(|| said(SSH_CONNECTION))
        .unwrap_or((SSH_CONNECTION, String::new()));
    let address = words.split(' ').nth(2).unwrap_or_default();
    session(address, &addresses()).ok_or_else(|| {
        format!(
            "{name} does not give the address at which this host was reached ('{}'): name a \
             network interface of each host with --interface",
            address.escape_default()
        )
    })
}

/// The addresses of this host at which another one may reach it, loopback last. Link-local ones
/// mean nothing to others.
pub fn own_addresses() -> Vec<IpAddr> {
    let is_link_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let all = addresses();
    let up = all.iter().filter(|(name, _)| is_up(&Tree::default(), name));
    let mut found: Vec<IpAddr> = up.map(|(_, address)| address.ip()).collect();
    found.retain(|ip| !is_link_local(ip));
    found.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    found
}

/// Returns the interfaces of this host that are up and have an address at which another host may
/// reach them, in the order of their names with numbers by value: `eth2` precedes `eth10`.
pub fn ip_interfaces() -> Vec<String> {
    let all = addresses();
    let reachable = own_addresses();
    let owners = all.into_iter().filter(|(_, address)| {
        let ip = address.ip();
        !ip.is_loopback() && reachable.contains(&ip)
    });
    let names: BTreeSet<String> = owners.map(|(name, _)| name).collect();
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by(|a, b| by_number(a).cmp(&by_number(b)));
    names
}

/// Where sshd says who is connected to whom.
pub const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Where the agent daemon says the same to the processes that it starts, for controllers that TLS
/// has authenticated.
pub const CONNECTION: &str = "WIREGAUGE_CONNECTION";

/// Who is connected to whom, as sshd writes it: the controller's address and port, this host's.
pub fn connection(controller: SocketAddr, own: SocketAddr) -> String {
    let one = |end: &SocketAddr| {
        // A link-local address means nothing without its interface.
        let scoped = matches!(end, SocketAddr::V6(v6) if v6.scope_id() != 0).then(addresses);
        let owner = scoped.into_iter().flatten().find(|(_, known)| known.ip() == end.ip());
        let zone = owner.map_or_else(String::new, |(name, _)| format!("%{name}"));
        format!("{}{zone} {}", end.ip(), end.port())
    };
    format!("{} {}", one(&controller), one(&own))
}

/// A link-local address is written with the name of its interface: `fe80::1%eth0`.
fn session(text: &str, all: &[(String, SocketAddr)]) -> Option<SocketAddr> {
    let Some((address, name)) = text.split_once('%') else {
        return Some((text.parse::<IpAddr>().ok()?, 0).into());
    };
    let address: IpAddr = address.parse().ok()?;
    all.iter().find(|(owner, own)| owner == name && own.ip() == address).map(|(_, own)| *own)
}

/// The address from which this host's routes send to that one. Nothing is sent.
pub fn address_towards(other: IpAddr) -> std::io::Result<IpAddr> {
    /// Of the discard service; a datagram socket that is connected sends nothing.
    const PORT: u16 = 9;
    let any: IpAddr = match other {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = std::net::UdpSocket::bind((any, 0))?;
    socket.connect((other, PORT))?;
    Ok(socket.local_addr()?.ip())
}

fn choose(
    tree: &Tree,
    all: &[(String, SocketAddr)],
    name: &str,
    family: Option<Family>,
) -> Result<SocketAddr, String> {
    let is_wanted = |ip: IpAddr| family.is_none_or(|family| family == Family::of(ip));
    if let Some(address) = best(all, name, is_wanted)
        && is_up(tree, name)
    {
        return Ok(address);
    }
    let known = tree.names("/sys/class/net").iter().any(|known| known == name)
        || all.iter().any(|(owner, _)| owner == name);
    let wrong = match known {
        false => format!("there is no network interface '{name}'"),
        true if is_up(tree, name) => {
            let title = family.map_or("IP", Family::title);
            format!("the network interface '{name}' has no {title} address")
        }
        true => format!("the network interface '{name}' is down"),
    };
    let fit = all.iter().filter(|(_, address)| is_wanted(address.ip()));
    let owners: BTreeSet<&str> = fit.map(|(owner, _)| owner.as_str()).collect();
    let up: Vec<&str> = owners.into_iter().filter(|owner| is_up(tree, owner)).collect();
    let named = &up[..up.len().min(MOST_NAMED)];
    Err(match up.len() - named.len() {
        0 if up.is_empty() => format!("{wrong}, and no other one is up and has an address"),
        0 => format!("{wrong}: use {}", named.join(", ")),
        more => format!("{wrong}: use {} or one of {more} more", named.join(", ")),
    })
}

/// Loopback and tunnels state no more than `unknown`; what is down states one of several words.
fn is_up(tree: &Tree, name: &str) -> bool {
    let state = tree.text(&format!("/sys/class/net/{name}/operstate"));
    state.is_none_or(|state| state == "up" || state == "unknown") && !is_set_down(name)
}

/// Returns whether this thread's network namespace has the interface and it was not set up. `/sys`
/// may show another namespace: that of the process that mounted it.
fn is_set_down(name: &str) -> bool {
    let mut own = getifaddrs().into_iter().flatten().filter(|one| one.interface_name == name);
    own.next().is_some_and(|one| !one.flags.contains(InterfaceFlags::IFF_UP))
}

/// Checks that messages pass between processes of this host over IP, also at the addresses of
/// other interfaces: the kernel has them go through the loopback interface.
///
/// # Errors
/// It is down, as in a container without a network: a sentence.
pub fn check_loopback() -> Result<(), String> {
    // What the kernel does not list is not judged.
    let Ok(all) = getifaddrs() else { return Ok(()) };
    let mut flags = all.map(|one| one.flags);
    let is_usable = InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_UP;
    ensure!(
        flags.any(|flags| flags.contains(is_usable)),
        "the loopback interface is down, so nothing passes between processes of this host over \
         IP (a container without a network, or unshare -n): ip link set lo up"
    );
    Ok(())
}

fn best(
    all: &[(String, SocketAddr)],
    name: &str,
    is_wanted: impl Fn(IpAddr) -> bool,
) -> Option<SocketAddr> {
    let rank = |address: &&SocketAddr| match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(address) if !address.ip().is_unicast_link_local() => 1,
        SocketAddr::V6(_) => 2,
    };
    let own = all.iter().filter(|(owner, a)| owner == name && is_wanted(a.ip()));
    own.map(|(_, a)| a).min_by_key(rank).copied()
}

/// Each interface with each of its addresses. Empty where the kernel does not say.
fn addresses() -> Vec<(String, SocketAddr)> {
    let one = |entry: InterfaceAddress| {
        let address = entry.address?;
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddrV4::from(*v4).into());
        let v6 = || address.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into());
        Some((entry.interface_name, v4.or_else(v6)?))
    };
    getifaddrs().into_iter().flatten().filter_map(one).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    fn addresses() -> Vec<(String, SocketAddr)> {
        let address = |name: &str, text: &str| (name.to_string(), text.parse().unwrap());
        vec![
            address("lo", "127.0.0.1:0"),
            address("ib0", "[fe80::1%4]:0"),
            address("ib0", "10.1.0.7:0"),
            address("ib0", "10.1.0.8:0"),
            address("eth1", "[fe80::2%5]:0"),
            address("eth1", "[2001:db8::2]:0"),
            address("eth2", "[fe80::3%6]:0"),
            address("eth3", "10.2.0.1:0"),
        ]
    }

    fn machine() -> Fake {
        Fake::new(&[
            ("sys/class/net/lo/operstate", "unknown\n"),
            ("sys/class/net/ib0/operstate", "up\n"),
            ("sys/class/net/eth1/operstate", "up\n"),
            ("sys/class/net/eth2/operstate", "up\n"),
            ("sys/class/net/eth3/operstate", "lowerlayerdown\n"),
            ("sys/class/net/eth4/operstate", "up\n"),
        ])
    }

    #[test]
    fn ipv4_stands_before_global_ipv6_and_that_before_link_local() {
        let fake = machine();
        let chosen = |name| choose(&fake.tree, &addresses(), name, None).unwrap().to_string();
        assert_eq!(chosen("ib0"), "10.1.0.7:0");
        assert_eq!(chosen("eth1"), "[2001:db8::2]:0");
        assert_eq!(chosen("eth2"), "[fe80::3%6]:0");
        assert_eq!(chosen("lo"), "127.0.0.1:0");
    }

    #[test]
    fn one_that_is_unknown_down_or_bare_is_refused_with_those_that_are_allowed() {
        let fake = machine();
        for (name, wrong) in [
            ("ib9", "there is no network interface 'ib9'"),
            ("eth3", "the network interface 'eth3' is down"),
            ("eth4", "the network interface 'eth4' has no IP address"),
        ] {
            let refused = choose(&fake.tree, &addresses(), name, None).unwrap_err();
            assert_eq!(refused, format!("{wrong}: use eth1, eth2, ib0, lo"));
        }
        let alone = choose(&fake.tree, &[], "lo", None).unwrap_err();
        assert!(alone.ends_with("no other one is up and has an address"), "{alone}");
    }

    #[test]
    fn a_family_takes_its_own_address_or_is_refused_with_the_interfaces_that_have_one() {
        let fake = machine();
        let chosen = |name, family| choose(&fake.tree, &addresses(), name, Some(family));
        let text = |name, family| chosen(name, family).unwrap().to_string();
        assert_eq!(text("ib0", Family::Ipv4), "10.1.0.7:0");
        assert_eq!(text("ib0", Family::Ipv6), "[fe80::1%4]:0");
        assert_eq!(text("eth1", Family::Ipv6), "[2001:db8::2]:0");
        let refused = chosen("eth1", Family::Ipv4).unwrap_err();
        assert_eq!(refused, "the network interface 'eth1' has no IPv4 address: use ib0, lo");
        let refused = chosen("lo", Family::Ipv6).unwrap_err();
        assert_eq!(refused, "the network interface 'lo' has no IPv6 address: use eth1, eth2, ib0");
    }

    #[test]
    fn an_address_leads_to_that_of_its_interface_in_the_other_family() {
        let fake = machine();
        let found = |own: &str, family| {
            let own = own.parse().unwrap();
            let found = counterpart(&fake.tree, &addresses(), own, family);
            found.map(|address| address.to_string())
        };
        assert_eq!(found("10.1.0.8:0", None), Ok("10.1.0.8:0".into()));
        assert_eq!(found("10.1.0.8:0", Some(Family::Ipv4)), Ok("10.1.0.8:0".into()));
        assert_eq!(found("10.1.0.8:0", Some(Family::Ipv6)), Ok("[fe80::1%4]:0".into()));
        let bare = found("[2001:db8::2]:0", Some(Family::Ipv4)).unwrap_err();
        assert!(bare.starts_with("the network interface 'eth1' has no IPv4 address"), "{bare}");
        let strange = found("192.0.2.1:0", Some(Family::Ipv6)).unwrap_err();
        assert_eq!(strange, "192.0.2.1 has no IPv6 address beside it on this host");
    }

    #[test]
    fn a_session_s_address_may_be_link_local() {
        let found = |text| session(text, &addresses()).map(|address| address.to_string());
        assert_eq!(found("10.0.0.9"), Some("10.0.0.9:0".into()));
        assert_eq!(found("fe80::2%eth1"), Some("[fe80::2%5]:0".into()));
        assert_eq!((found("fe80::2%eth2"), found(""), found("UNKNOWN")), (None, None, None));
    }

    #[test]
    fn loopback_is_reached_from_loopback() {
        let local = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(address_towards(local).ok(), Some(local));
    }

    #[test]
    fn this_host_knows_whose_loopback_s_address_is() {
        let name = interface_with(Ipv4Addr::LOCALHOST.into()).map(|interface| interface.name);
        assert_eq!(name.as_deref(), Some("lo"));
    }
}
