//! Counters of this host's network: interfaces, queueing disciplines, protocols and the queues of
//! CPUs. The difference of two readings says what became of packets, and where some were dropped.

use super::Tree;
use super::ethtool::{driver_counters, qdisc_drops};
use std::collections::{BTreeMap, BTreeSet};

/// The most interfaces whose counters are read; hosts of containers have thousands of `veth`.
const MAX_INTERFACES: usize = 64;

/// Columns of `/proc/net/dev` in their order.
const OF_INTERFACE: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo",
    "rx_frame",
    "rx_compressed",
    "rx_multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo",
    "tx_collisions",
    "tx_carrier",
    "tx_compressed",
];

/// Columns of a line of `/proc/net/softnet_stat` that count events, by their place.
const OF_CPU: [(usize, &str); 3] =
    [(1, "softnet.dropped"), (2, "softnet.time_squeeze"), (10, "softnet.flow_limit")];

/// Names of protocols in `/proc/net/snmp` and `/proc/net/netstat` whose counters are kept: the
/// others count what no transport uses.
const PROTOCOLS: [&str; 5] = ["Ip", "Udp", "Tcp", "TcpExt", "IpExt"];

/// The counters of this thread's network namespace at one time, by name: `net.eth0.rx_dropped`,
/// `ethtool.eth0.rx_out_of_buffer`, `qdisc.eth0.drops`, `Udp.RcvbufErrors`, `softnet.dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetCounters(BTreeMap<String, u64>);

impl NetCounters {
    /// Reads them; a file that is missing has none.
    pub fn read() -> NetCounters {
        let mut found = NetCounters::in_tree(&Tree::default());
        found.0.extend(qdisc_drops());
        let names: BTreeSet<String> =
            found.0.keys().filter_map(|name| interface_of(name)).collect();
        for name in names {
            let counters = driver_counters(&name).into_iter();
            found.0.extend(
                counters.map(|(counter, count)| (format!("ethtool.{name}.{counter}"), count)),
            );
        }
        found
    }

    pub(super) fn in_tree(tree: &Tree) -> NetCounters {
        let [dev, snmp, netstat, snmp6, softnet] =
            ["dev", "snmp", "netstat", "snmp6", "softnet_stat"].map(|file| {
                tree.text(&format!("/proc/thread-self/net/{file}")).unwrap_or_default()
            });
        let mut all = BTreeMap::new();
        all.extend(interfaces(&dev));
        all.extend(protocols(&snmp));
        all.extend(protocols(&netstat));
        all.extend(protocols_of_ipv6(&snmp6));
        for line in softnet.lines() {
            for (name, count) in queue_of_cpu(line) {
                let sum: &mut u64 = all.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        NetCounters(all)
    }

    /// Returns the counters by name.
    pub fn by_name(&self) -> &BTreeMap<String, u64> {
        &self.0
    }
}

/// Returns the interface of a counter `net.eth0.rx_bytes`.
fn interface_of(counter: &str) -> Option<String> {
    let (name, _) = counter.strip_prefix("net.")?.rsplit_once('.')?;
    Some(name.to_owned())
}

/// Reads the lines `eth0: 1 2 ...` of `/proc/net/dev`.
fn interfaces(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter_map(|line| line.rsplit_once(": "));
    lines
        .take(MAX_INTERFACES)
        .flat_map(|(name, counts)| {
            let counts = counts.split_whitespace().map_while(|count| count.parse().ok());
            let named = OF_INTERFACE.iter().zip(counts);
            named.map(move |(counter, count)| (format!("net.{}.{counter}", name.trim()), count))
        })
        .collect()
}

/// Reads pairs of lines `Udp: InDatagrams ...` and `Udp: 7 ...`.
fn protocols(text: &str) -> Vec<(String, u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for pair in lines.chunks_exact(2) {
        let Some((protocol, names)) = pair[0].split_once(": ") else { continue };
        let Some((_, counts)) = pair[1].split_once(": ").filter(|(of, _)| *of == protocol) else {
            continue;
        };
        if !PROTOCOLS.contains(&protocol) {
            continue;
        }
        for (name, count) in names.split_whitespace().zip(counts.split_whitespace()) {
            // Some are no counters, and -1.
            all.extend(count.parse().ok().map(|count| (format!("{protocol}.{name}"), count)));
        }
    }
    all
}

/// Reads the lines `Udp6RcvbufErrors 7` of `/proc/net/snmp6`, without those of each interface.
fn protocols_of_ipv6(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    lines
        .filter_map(|(name, count)| {
            let (protocol, counter) = name.split_at(name.find('6')? + 1);
            let is_kept = matches!(protocol, "Udp6" | "Ip6");
            is_kept.then_some((format!("{protocol}.{counter}"), count.trim().parse().ok()?))
        })
        .collect()
}

/// Reads a line of `/proc/net/softnet_stat`: hexadecimal numbers of one CPU.
fn queue_of_cpu(line: &str) -> Vec<(&'static str, u64)> {
    let counts: Vec<&str> = line.split_whitespace().collect();
    OF_CPU
        .iter()
        .filter_map(|(place, name)| {
            Some((*name, u64::from_str_radix(counts.get(*place)?, 16).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    #[test]
    fn counters_of_interfaces_protocols_and_cpus_are_read() {
        let fake = Fake::new(&[
            (
                "proc/thread-self/net/dev",
                "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo: 10 1 0 0 0 0 0 0 10 \
                 1 0 0 0 0 0 0\n  eth0:1: 640 7 0 2 0 0 0 0 128 3 0 0 0 0 0 0\n",
            ),
            (
                "proc/thread-self/net/snmp",
                "Ip: Forwarding InReceives\nIp: 1 99\nIcmp: InMsgs\nIcmp: 4\n\
                 Udp: InDatagrams RcvbufErrors\nUdp: 80 5\nTcp: MaxConn RetransSegs\nTcp: -1 3\n",
            ),
            ("proc/thread-self/net/snmp6", "Ip6InReceives  \t8\nUdp6RcvbufErrors \t2\n"),
            (
                "proc/thread-self/net/softnet_stat",
                "00000010 00000002 00000001\n00000020 00000003 00000000\n",
            ),
        ]);
        let found = NetCounters::in_tree(&fake.tree);
        for (name, count) in [
            ("net.lo.rx_bytes", 10),
            ("net.lo.tx_packets", 1),
            ("net.eth0:1.rx_dropped", 2),
            ("net.eth0:1.tx_bytes", 128),
            ("Ip.InReceives", 99),
            ("Udp.RcvbufErrors", 5),
            ("Tcp.RetransSegs", 3),
            ("Udp6.RcvbufErrors", 2),
            ("softnet.dropped", 5),
            ("softnet.time_squeeze", 1),
        ] {
            assert_eq!(found.by_name().get(name), Some(&count), "{name}");
        }
        assert!(!found.by_name().keys().any(|name| name.starts_with("Icmp")));
        assert!(!found.by_name().contains_key("Tcp.MaxConn"));
    }

    #[test]
    fn counters_at_their_end_stay_there() {
        let line = "0 ffffffffffffffff 1\n";
        let fake = Fake::new(&[("proc/thread-self/net/softnet_stat", &line.repeat(2))]);
        let found = NetCounters::in_tree(&fake.tree);
        assert_eq!(found.by_name().get("softnet.dropped"), Some(&u64::MAX));
    }

    #[test]
    fn malformed_files_have_no_counters() {
        let fake = Fake::new(&[
            ("proc/thread-self/net/dev", "a: b\n: \nc:"),
            ("proc/thread-self/net/snmp", "Udp: A B\nTcp: 1 2\nUdp\n"),
            ("proc/thread-self/net/softnet_stat", "zz\n"),
        ]);
        assert_eq!(NetCounters::in_tree(&fake.tree), NetCounters::default());
    }

    #[test]
    fn a_datagram_over_loopback_is_counted() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = NetCounters::read();
        receiver.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        let after = NetCounters::read();
        for name in ["net.lo.tx_packets", "Udp.OutDatagrams"] {
            assert!(after.by_name()[name] > before.by_name()[name], "{name}");
        }
    }
}
