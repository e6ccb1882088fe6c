//! Warnings about settings that were not granted, and about devices that were not used.

use super::pattern::RunSoFar;
use super::warnings::TAIL_SHARE;
use std::collections::BTreeMap;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::Usage;
use wiregauge_transport::evidence::{NotGranted, not_granted};
use wiregauge_transport::{Lengths, Role};

/// The share of a run's payload that its device has carried at least. Counters have headers, too.
const CARRIED: f64 = 0.5;
/// Names of the counters of a round begin so.
const OF_NETWORK: &str = "counter.net.";

impl RunSoFar {
    /// Returns the warnings about what was not granted and what was seen to be otherwise.
    pub(super) fn evidence_warnings(&self) -> Vec<Warning> {
        [Role::Client, Role::Server]
            .into_iter()
            .flat_map(|end| {
                let mut found = self.not_granted(end);
                found.extend(self.another_device(end));
                found.extend(self.segments_resent(end));
                found
            })
            .chain(self.unused_connections())
            .collect()
    }

    /// Returns a warning if several connections were asked for, and some carried nothing in a
    /// round: that of the round in which fewest did.
    fn unused_connections(&self) -> Option<Warning> {
        let several = self.case.topology.connections_each() > 1;
        let counted = self.rounds.iter().filter(|_| several);
        let (used, connections) = counted.filter_map(|round| used_of(&round.client)).min()?;
        (used < connections).then_some(Warning::UnusedConnections { used, connections })
    }

    /// Returns the settings that an end has otherwise than they were asked for: in the first round
    /// in which there are any, since each round connects anew.
    fn not_granted(&self, end: Role) -> Vec<Warning> {
        let role = end.name();
        self.rounds
            .iter()
            .map(|round| {
                let usage = end.pick(&round.client, &round.server);
                not_granted(&self.case.settings, end, &usage.effective_settings)
            })
            .find(|found| !found.is_empty())
            .unwrap_or_default()
            .into_iter()
            .map(|NotGranted { option, asked, granted, advice }| Warning::NotGranted {
                role,
                option,
                asked,
                granted,
                advice,
            })
            .collect()
    }

    /// Returns a warning if TCP has sent segments of an end again: a latency waits for each, and a
    /// rate suffers where they are many.
    fn segments_resent(&self, end: Role) -> Option<Warning> {
        let counted = self.rounds.iter().filter_map(|round| {
            let usage = end.pick(&round.client, &round.server);
            usage.final_counters.get("tcp.retransmitted")?.parse::<u64>().ok()
        });
        let segments: u64 = counted.sum();
        let messages = self.counts.sent;
        let are_many = segments as f64 > TAIL_SHARE * messages as f64;
        let weakens = segments > 0 && (are_many || !self.analysis.is_rate());
        weakens.then_some(Warning::SegmentsResent { role: end.name(), segments, messages })
    }

    /// Returns a warning if the interface that was asked of an end has not carried its messages in
    /// a round.
    fn another_device(&self, end: Role) -> Option<Warning> {
        let asked = self.case.settings.interfaces()?.of(end).to_string();
        // Both ends on one host have a warning of their own.
        let is_wire = self.case.topology.is_between_hosts() && !self.case.topology.has_nodes();
        let size = match self.case.profile().lengths() {
            Lengths::Fixed => self.case.size.0,
            Lengths::Varied => 1,
        };
        let seen = self.rounds.iter().filter(|_| is_wire).find_map(|round| {
            let usage = end.pick(&round.client, &round.server);
            carried_elsewhere(usage, &asked, round.counts.received * size)
        })?;
        Some(Warning::AnotherDevice { role: end.name(), interface: asked, seen })
    }
}

/// Returns the number of connections that carried something, and that of all.
fn used_of(usage: &Usage) -> Option<(u64, u64)> {
    let counters = &usage.final_counters;
    // Of other connections than those of TCP nothing says whether they were used.
    counters.get("tcp.rtt_us")?;
    let connections = counters.get("connect.connections")?.parse().ok()?;
    let used = counters.get("tcp.connections_used").and_then(|used| used.parse().ok());
    Some((used.unwrap_or(0), connections))
}

/// Returns the interface that has carried most, where the asked one has not carried the payload
/// that has arrived in a round: both ways together, since a pattern decides which end sends.
fn carried_elsewhere(usage: &Usage, asked: &str, payload_bytes: u64) -> Option<String> {
    let by_interface = bytes_by_interface(&usage.final_counters);
    // Where the host's counters were not read, as on older agents, nothing was seen.
    let (most, _) = by_interface.iter().max_by_key(|(_, bytes)| **bytes)?;
    let carried = by_interface.get(asked).copied().unwrap_or(0);
    let is_missing = (carried as f64) < CARRIED * payload_bytes as f64;
    (is_missing && *most != asked).then(|| (*most).to_owned())
}

/// Returns the bytes that each interface has carried in a round.
fn bytes_by_interface(counters: &BTreeMap<String, String>) -> BTreeMap<&str, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in counters {
        let of_interface = name.strip_prefix(OF_NETWORK).and_then(|name| name.rsplit_once('.'));
        let Some((interface, "tx_bytes" | "rx_bytes")) = of_interface else { continue };
        *sums.entry(interface).or_default() += count.parse().unwrap_or(0);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_elsewhere(bytes: &[(&str, u64)]) -> Option<String> {
        let counters =
            bytes.iter().map(|(name, bytes)| (format!("counter.net.{name}"), bytes.to_string()));
        let usage = Usage { final_counters: counters.collect(), ..Usage::default() };
        carried_elsewhere(&usage, "a1", 64_000)
    }

    #[test]
    fn the_interface_that_carried_the_messages_is_named_where_it_is_another() {
        let other = [("a0.tx_bytes", 106_000), ("a1.tx_bytes", 42), ("a1.rx_packets", 106_000)];
        assert_eq!(seen_elsewhere(&other).as_deref(), Some("a0"));
        // One that carried nothing has no counter that moved.
        assert_eq!(seen_elsewhere(&other[..1]).as_deref(), Some("a0"));
        // Other programs may have sent more by another one.
        let busy = [("eth9.tx_bytes", 9_000_000), ("a1.tx_bytes", 20_000), ("a1.rx_bytes", 20_000)];
        assert_eq!(seen_elsewhere(&busy), None);
        assert_eq!(seen_elsewhere(&[]), None);
    }
}
