//! From what is wanted to the lines that `ip` and `tc` are given: pure.
//!
//! Hosts are numbered from 1; namespace 0 is the switch of a star. A host's address is
//! 198.18.0.NUMBER, of the block for benchmarks of networks (RFC 2544), on its interface `wire0`.
//! In a ring `wire0` leads to the next host and `wire1` to the one before.

use super::{NetworkRequest, Topology};
use wiregauge_base::units::{BitRate, Span};

/// Bytes of the largest frame: an MTU of 1500 and the Ethernet header.
const FRAME: u64 = 1514;
/// Bytes of the largest packet that TCP hands to an adapter, which cuts it into frames: 64 KiB, and
/// the headers of its 45 frames, which tbf(8) counts as well. tbf cuts what is larger than its
/// bucket, frame by frame and on the CPUs that measure: with 12.5 kB at 1 Gb/s one stream of iperf3
/// carries 0.67 instead of 0.94 Gb/s on two processors.
const WHOLE_PACKET: u64 = 70_000;
/// A bucket holds what the link carries in this time, and no more than such a packet: an idle link
/// lets that much through at once, so a message may be this much too early at the receiver ...
const BURST_US: u64 = 1000;
/// ... and at least what it carries in this time: a timer of the kernel may be this late.
const LEAST_BURST_US: u64 = 100;
/// How long a packet may wait for its link before it is dropped, as a switch's buffer does.
const LONGEST_WAIT_MS: u64 = 20;

/// The name under which a host is known.
pub fn host_name(number: usize) -> String {
    format!("wg-h{number}")
}

/// Its address.
pub fn address(number: usize) -> String {
    format!("198.18.0.{number}")
}

/// The lines of one program in one namespace.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines {
    /// The number of the namespace.
    pub namespace: usize,
    /// What `ip` executes there.
    pub ip: Vec<String>,
    /// What `tc` executes there.
    pub tc: Vec<String>,
}

/// The numbers of the namespaces that are needed.
pub fn namespaces(wanted: &NetworkRequest) -> std::ops::RangeInclusive<usize> {
    let first = if wanted.topology == Topology::Star { 0 } else { 1 };
    first..=wanted.hosts
}

/// What each namespace executes, in this order; `name` names a namespace.
pub fn lines(wanted: &NetworkRequest, name: impl Fn(usize) -> String) -> Vec<Lines> {
    let base = |namespace| Lines { namespace, ip: vec!["link set lo up".into()], tc: Vec::new() };
    let mut all: Vec<Lines> = namespaces(wanted).map(base).collect();
    match wanted.topology {
        Topology::Star => star(&mut all, wanted, &name),
        Topology::Pair => {
            // The link is made where its first end is, and the other end's lines come later.
            all[0].ip.push(veth("wire0", "wire0", &name(2)));
        }
        Topology::Ring => {
            for host in 1..=wanted.hosts {
                let next = name(next(host, wanted.hosts));
                all[host - 1].ip.push(veth("wire0", "wire1", &next));
            }
        }
    }
    // All links are there before any of them is named again.
    all.extend((1..=wanted.hosts).map(|host| end(host, wanted)));
    all
}

fn veth(here: &str, there: &str, namespace: &str) -> String {
    format!("link add {here} type veth peer name {there} netns {namespace}")
}

fn star(all: &mut [Lines], wanted: &NetworkRequest, name: &impl Fn(usize) -> String) {
    let switch = &mut all[0];
    switch.ip.extend(["link add switch type bridge".into(), "link set switch up".into()]);
    for host in 1..=wanted.hosts {
        let port = format!("port{host}");
        switch.ip.push(veth(&port, "wire0", &name(host)));
        switch.ip.push(format!("link set {port} master switch up"));
        switch.tc.extend(shape(&port, wanted.rate, None));
    }
}

/// A host's own ends of its links.
fn end(host: usize, wanted: &NetworkRequest) -> Lines {
    let mut lines = Lines { namespace: host, ip: Vec::new(), tc: Vec::new() };
    let own = address(host);
    let mut up = |interface: &str| {
        lines.ip.push(format!("link set {interface} up"));
        lines.tc.extend(shape(interface, wanted.rate, wanted.delay));
    };
    up("wire0");
    if wanted.topology != Topology::Ring {
        lines.ip.push(format!("addr add {own}/24 dev wire0"));
        return lines;
    }
    up("wire1");
    lines.ip.push(format!("addr add {own}/32 dev wire0"));
    // Each link has a small network of its own, so that there is somewhere to send to.
    lines.ip.push(format!("addr add 198.19.{host}.1/30 dev wire0"));
    let before = before(host, wanted.hosts);
    lines.ip.push(format!("addr add 198.19.{before}.2/30 dev wire1"));
    for other in (1..=wanted.hosts).filter(|other| *other != host) {
        let gateway = match goes_on(host, other, wanted.hosts) {
            true => format!("198.19.{host}.2"),
            false => format!("198.19.{before}.1"),
        };
        lines.ip.push(format!("route add {}/32 via {gateway} src {own}", address(other)));
    }
    lines
}

fn next(host: usize, hosts: usize) -> usize {
    host % hosts + 1
}

fn before(host: usize, hosts: usize) -> usize {
    (host + hosts - 2) % hosts + 1
}

/// Whether the shorter way to another goes by the next host. Of two that are equally long both
/// take the same, so that a packet and its answer meet the same links.
fn goes_on(host: usize, other: usize, hosts: usize) -> bool {
    let ahead = (other + hosts - host) % hosts;
    match (2 * ahead).cmp(&hosts) {
        std::cmp::Ordering::Equal => host < other,
        order => order == std::cmp::Ordering::Less,
    }
}

/// The queueing disciplines of one end: what leaves there waits for its turn. tbf(8) keeps the rate
/// and cuts what the kernel would hand over in one piece; netem(8) delays.
fn shape(interface: &str, rate: Option<BitRate>, delay: Option<Span>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut parent = "root handle 1:";
    if let Some(Span(ns)) = delay {
        // Room for the packets that are on their way.
        let bytes = rate.map_or(u64::MAX, |rate| bytes_in(rate, ns / 1000));
        let limit = (bytes / FRAME).clamp(1000, 100_000);
        let us = ns as f64 / 1000.0;
        lines.push(format!("qdisc add dev {interface} {parent} netem delay {us}us limit {limit}"));
        parent = "parent 1:1 handle 10:";
    }
    if let Some(rate) = rate {
        let burst = burst(rate);
        lines.push(format!(
            "qdisc add dev {interface} {parent} tbf rate {}bit burst {burst} latency \
             {LONGEST_WAIT_MS}ms",
            rate.0
        ));
    }
    lines
}

/// Bytes that an idle link lets through at once.
fn burst(rate: BitRate) -> u64 {
    let least = bytes_in(rate, LEAST_BURST_US).max(2 * FRAME);
    bytes_in(rate, BURST_US).min(WHOLE_PACKET).max(least)
}

fn bytes_in(rate: BitRate, us: u64) -> u64 {
    (u128::from(rate.0) * u128::from(us) / 8_000_000).min(u128::from(u64::MAX)) as u64
}

/// `/etc/hosts` of every host: this machine's own, and the names of all.
pub fn names(own: &str, hosts: usize) -> String {
    let gap = if own.is_empty() || own.ends_with('\n') { "" } else { "\n" };
    let line = |number| format!("{} {}\n", address(number), host_name(number));
    format!("{own}{gap}{}", (1..=hosts).map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(hosts: usize, topology: Topology) -> NetworkRequest {
        NetworkRequest { hosts, topology, rate: None, delay: None, command: Vec::new() }
    }

    fn name(number: usize) -> String {
        format!("n{number}")
    }

    #[test]
    fn a_star_has_a_switch_and_the_others_have_none() {
        let star = lines(&wanted(3, Topology::Star), name);
        assert_eq!(star[0].namespace, 0);
        let made = star[0].ip.iter().filter(|line| line.contains("type veth")).count();
        assert_eq!(made, 3);
        assert!(star[0].ip.contains(&"link add port2 type veth peer name wire0 netns n2".into()));
        assert_eq!(lines(&wanted(2, Topology::Pair), name)[0].namespace, 1);
    }

    #[test]
    fn in_a_ring_every_pair_goes_the_shorter_way_and_back_the_same() {
        for hosts in 3..12 {
            for a in 1..=hosts {
                assert_eq!(before(next(a, hosts), hosts), a);
                for b in (1..=hosts).filter(|b| *b != a) {
                    let (mut at, mut steps, on) = (a, 0, goes_on(a, b, hosts));
                    while at != b {
                        assert_eq!(goes_on(at, b, hosts), on, "{hosts}: {a} to {b} turns at {at}");
                        at = if on { next(at, hosts) } else { before(at, hosts) };
                        steps += 1;
                    }
                    assert!(2 * steps <= hosts, "{hosts}: {a} to {b} takes {steps}");
                    assert_ne!(goes_on(b, a, hosts), on, "{hosts}: {b} answers {a} another way");
                }
            }
        }
    }

    #[test]
    fn a_link_is_shaped_at_both_ends() {
        let rate = Some("1gbit".parse().unwrap());
        let star = lines(&NetworkRequest { rate, ..wanted(2, Topology::Star) }, name);
        let all: Vec<&String> = star.iter().flat_map(|lines| &lines.tc).collect();
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(
            all[0],
            "qdisc add dev port1 root handle 1: tbf rate 1000000000bit burst 70000 latency 20ms"
        );
        let both = shape("wire0", rate, Some(Span(150_500)));
        assert_eq!(both[0], "qdisc add dev wire0 root handle 1: netem delay 150.5us limit 1000");
        assert!(both[1].contains("parent 1:1 handle 10: tbf"), "{both:?}");
    }

    #[test]
    fn a_bucket_has_room_for_a_whole_packet_where_that_takes_less_than_a_millisecond() {
        let of = |rate: &str| burst(rate.parse().unwrap());
        assert_eq!(["1gbit", "5gbit"].map(of), [70_000; 2]);
        assert_eq!(of("100mbit"), 12_500);
        assert_eq!(of("10mbit"), 3028);
        assert_eq!(of("10gbit"), 125_000);
    }

    #[test]
    fn every_host_is_known_by_name_beside_what_was_there() {
        assert_eq!(names("127.0.0.1 localhost", 2).lines().count(), 3);
        assert!(names("", 2).ends_with("198.18.0.2 wg-h2\n"));
    }
}
