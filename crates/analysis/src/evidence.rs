//! Warnings about settings that were not granted, and about devices that were not used.

use super::pattern::RunSoFar;
use super::warnings::TAIL_SHARE;
use std::collections::BTreeMap;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Round, Usage};
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
            .collect()
    }

    /// Returns the settings that an end has otherwise than they were asked for.
    fn not_granted(&self, end: Role) -> Vec<Warning> {
        let Some(round) = self.rounds.first() else { return Vec::new() };
        let effective = &end.pick(&round.client, &round.server).effective_settings;
        let role = end.name();
        not_granted(&self.case.settings, end, effective)
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
            carried_elsewhere(end.pick(&round.client, &round.server), end, round, &asked, size)
        })?;
        Some(Warning::AnotherDevice { role: end.name(), interface: asked, seen })
    }
}

/// Returns the interface that has carried most, where the asked one has not carried the payload of
/// a round.
fn carried_elsewhere(
    usage: &Usage,
    end: Role,
    round: &Round,
    asked: &str,
    size: u64,
) -> Option<String> {
    let messages = end.pick(&round.counts.sent, &round.counts.received);
    let way = end.pick(&"tx_bytes", &"rx_bytes");
    let by_interface = bytes_by_interface(&usage.final_counters, way);
    // Where the host's counters were not read, as on older agents, nothing was seen.
    let (most, _) = by_interface.iter().max_by_key(|(_, bytes)| **bytes)?;
    let carried = by_interface.get(asked).copied().unwrap_or(0);
    let is_missing = (carried as f64) < CARRIED * (*messages as f64) * size as f64;
    (is_missing && *most != asked).then(|| (*most).to_owned())
}

/// Returns the bytes that each interface has carried one way in a round.
fn bytes_by_interface<'a>(
    counters: &'a BTreeMap<String, String>,
    way: &str,
) -> BTreeMap<&'a str, u64> {
    counters
        .iter()
        .filter_map(|(name, count)| {
            let (interface, counter) = name.strip_prefix(OF_NETWORK)?.rsplit_once('.')?;
            (counter == way).then_some((interface, count.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_figures::record::schema::Counts;

    fn seen_elsewhere(bytes: &[(&str, u64)]) -> Option<String> {
        let counters =
            bytes.iter().map(|(name, bytes)| (format!("counter.net.{name}"), bytes.to_string()));
        let usage = Usage { final_counters: counters.collect(), ..Usage::default() };
        let counts = Counts { sent: 1000, received: 1000, ..Counts::default() };
        let round = Round { counts, ..Round::default() };
        carried_elsewhere(&usage, Role::Client, &round, "a1", 64)
    }

    #[test]
    fn the_interface_that_carried_the_messages_is_named_where_it_is_another() {
        let other = [("a0.tx_bytes", 106_000), ("a1.tx_bytes", 42), ("a1.rx_bytes", 106_000)];
        assert_eq!(seen_elsewhere(&other).as_deref(), Some("a0"));
        // One that carried nothing has no counter that moved.
        assert_eq!(seen_elsewhere(&other[..1]).as_deref(), Some("a0"));
        // Other programs may have sent more by another one.
        let busy = [("eth9.tx_bytes", 9_000_000), ("a1.tx_bytes", 106_000)];
        assert_eq!(seen_elsewhere(&busy), None);
        assert_eq!(seen_elsewhere(&[]), None);
    }
}
