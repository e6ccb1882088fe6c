//! The places at which messages of a run were lost, by what both ends have counted.

use super::schema::{Round, Run, Usage};

/// A place at which packets were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossPlace {
    /// Such as `receive buffer of the socket`.
    pub place: String,
    /// The end whose host it is on: `client`, `server`, or `both` where they share one.
    pub end: &'static str,
    /// Packets that were dropped there during all rounds.
    pub packets: u64,
}

/// Counters of an interface that say that it has dropped packets, by what they say.
const OF_INTERFACE: [(&str, &str); 5] = [
    ("tx_dropped", "interface {}, sending"),
    ("tx_errors", "interface {}, sending"),
    ("rx_dropped", "interface {}, receiving"),
    ("rx_errors", "interface {}, receiving"),
    ("rx_fifo", "ring of interface {}"),
];

/// Counters of the host, by what they say.
const OF_HOST: [(&str, &str); 3] = [
    ("counter.softnet.dropped", "queue of a CPU (netdev_max_backlog)"),
    ("counter.Ip.ReasmFails", "reassembly of fragments"),
    ("counter.Ip.InDiscards", "IP, receiving"),
];

/// The begin of the name of a queueing discipline.
const OF_QDISC: &str = "queueing discipline of";

/// Fates of packets that IP has received. The rest of `InReceives` was dropped by a packet filter,
/// which counts none itself.
const OF_IP: [&str; 7] = [
    "counter.Ip.InDelivers",
    "counter.Ip.InHdrErrors",
    "counter.Ip.InAddrErrors",
    "counter.Ip.InUnknownProtos",
    "counter.Ip.InDiscards",
    "counter.Ip.ForwDatagrams",
    "counter.Ip.ReasmReqds",
];

/// Returns the places at which packets were dropped during a run, those with the most first. Both
/// ends on one host see the same counters of it: those are taken once.
pub fn places(run: &Run, is_one_host: bool) -> Vec<LossPlace> {
    places_of(&run.rounds, is_one_host)
}

/// Returns true if counters of the hosts' networks were read in a run: older records lack them, and
/// simulated transports have none.
pub fn were_read(run: &Run) -> bool {
    let ends = run.rounds.iter().flat_map(|round| [&round.client, &round.server]);
    ends.flat_map(|usage| usage.final_counters.keys()).any(|name| name.starts_with("counter."))
}

fn places_of(rounds: &[Round], is_one_host: bool) -> Vec<LossPlace> {
    let mut found: Vec<LossPlace> = Vec::new();
    for round in rounds {
        for (end, usage) in [("client", &round.client), ("server", &round.server)] {
            add(&mut found, "receive buffer of the socket", end, count(usage, "socket.dropped"));
            if is_one_host && end == "server" {
                continue;
            }
            let end = if is_one_host { "both" } else { end };
            for (place, packets) in of_host(usage) {
                add(&mut found, &place, end, packets);
            }
        }
    }
    found.retain(|one| one.packets > 0);
    found.sort_by_key(|one| std::cmp::Reverse(one.packets));
    found
}

fn add(found: &mut Vec<LossPlace>, place: &str, end: &'static str, packets: u64) {
    match found.iter_mut().find(|one| one.place == place && one.end == end) {
        Some(known) => known.packets += packets,
        None => found.push(LossPlace { place: place.to_owned(), end, packets }),
    }
}

fn count(usage: &Usage, name: &str) -> u64 {
    usage.final_counters.get(name).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns what the counters of a host say.
fn of_host(usage: &Usage) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for (name, place) in OF_HOST {
        all.push((place.to_owned(), count(usage, name)));
    }
    for (name, packets) in &usage.final_counters {
        let packets = packets.parse().unwrap_or(0);
        if let Some(interface) =
            name.strip_prefix("counter.qdisc.").and_then(|rest| rest.strip_suffix(".drops"))
        {
            all.push((format!("{OF_QDISC} {interface}"), packets));
        }
        let of_interface = name.strip_prefix("counter.net.").and_then(|rest| rest.rsplit_once('.'));
        let Some((interface, counter)) = of_interface else { continue };
        if let Some((_, place)) = OF_INTERFACE.iter().find(|(name, _)| *name == counter) {
            all.push((place.replace("{}", interface), packets));
        }
    }
    // A packet that a queueing discipline drops is counted again by IP and by UDP.
    let by_qdiscs: u64 = all
        .iter()
        .filter(|(place, _)| place.starts_with(OF_QDISC))
        .map(|(_, packets)| packets)
        .sum();
    let by_ip = count(usage, "counter.Ip.OutDiscards") + count(usage, "counter.Ip6.OutDiscards");
    let by_udp =
        count(usage, "counter.Udp.SndbufErrors") + count(usage, "counter.Udp6.SndbufErrors");
    all.push(("IP, sending".to_owned(), by_ip.saturating_sub(by_qdiscs)));
    let of_buffers = by_udp.saturating_sub(by_ip.max(by_qdiscs));
    all.push(("send buffers of the host's sockets".to_owned(), of_buffers));
    let accounted: u64 = OF_IP.iter().map(|name| count(usage, name)).sum();
    let received = count(usage, "counter.Ip.InReceives") + count(usage, "counter.Ip.ReasmOKs");
    all.push(("packet filter, receiving".to_owned(), received.saturating_sub(accounted)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(counters: &[(&str, u64)]) -> Usage {
        let counters = counters.iter().map(|(name, count)| (name.to_string(), count.to_string()));
        Usage { final_counters: counters.collect(), ..Usage::default() }
    }

    #[test]
    fn each_place_is_counted_once_on_one_host_and_at_both_ends_on_two() {
        let of_host = [
            ("counter.qdisc.lo.drops", 7),
            ("counter.Ip.OutDiscards", 7),
            ("counter.Udp.SndbufErrors", 7),
            ("counter.net.eth0.rx_dropped", 3),
            ("counter.net.eth0.rx_errors", 2),
            ("counter.net.eth0.rx_packets", 900),
            ("counter.Ip.InReceives", 100),
            ("counter.Ip.InDelivers", 80),
            ("counter.Ip.ReasmReqds", 30),
            ("counter.Ip.ReasmOKs", 15),
        ];
        let server = [&of_host[..], &[("socket.dropped", 40)]].concat();
        let round = Round { client: usage(&of_host), server: usage(&server), ..Round::default() };
        let rounds = [round.clone(), round];
        let found = places_of(&rounds, true);
        let found: Vec<_> =
            found.iter().map(|one| (one.place.as_str(), one.end, one.packets)).collect();
        assert_eq!(
            found,
            [
                ("receive buffer of the socket", "server", 80),
                ("queueing discipline of lo", "both", 14),
                ("interface eth0, receiving", "both", 10),
                ("packet filter, receiving", "both", 10),
            ]
        );
        assert_eq!(places_of(&rounds, false).len(), 7);
    }
}
