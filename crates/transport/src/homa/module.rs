//! What the kernel's Homa says of itself: its settings, what it has counted, and the least receive
//! region that it takes.
//!
//! Source: `homa_plumbing.c`, `homa_metrics.c` and `homa_pool.c` of the module, July 2026.

use super::abi::{BPAGE, LARGEST};
use crate::NamedValues;
use crate::counter::{self, CounterValue, FinalCounters, PREFIX};
use std::collections::BTreeMap;
use wiregauge_base::warning::Warning;
use wiregauge_host::Tree;

/// Where its settings are, a file each (`net.homa`).
const SETTINGS: &str = "/proc/sys/net/homa";
/// Where its counters are: a line each, name, value and what it means; those of a core follow its
/// number.
const METRICS: &str = "/proc/net/homa_metrics";
/// What stands among the counters and is none: clocks, and the number of the core that follows.
const NO_COUNTERS: [&str; 6] = ["time_cycles", "time_ns", "rdtsc_cycles", "cpu_khz", "cpu", "core"];
/// Packets that were sent again after a timeout ...
const RESENT: &str = "resent_packets";
/// ... and that arrived and were thrown away.
const DISCARDED: &str = "packet_discards";

/// The settings that are in effect. One that cannot be read is left out.
pub fn settings(tree: &Tree) -> NamedValues {
    let value = |name: String| {
        let text = tree.text(&format!("{SETTINGS}/{name}"))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some((format!("net.homa.{name}"), words.join(" ")))
    };
    tree.names(SETTINGS).into_iter().filter_map(value).collect()
}

/// What Homa has counted on this host at one time, over all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics(BTreeMap<String, u64>);

impl Metrics {
    /// Those of now; none where there is no such file.
    pub fn read(tree: &Tree) -> Metrics {
        Metrics::of(&tree.text(METRICS).unwrap_or_default())
    }

    fn of(text: &str) -> Metrics {
        let mut all = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
            let Ok(value) = value.parse::<u64>() else { continue };
            if !NO_COUNTERS.contains(&name) {
                let sum: &mut u64 = all.entry(name.to_owned()).or_default();
                *sum = sum.wrapping_add(value);
            }
        }
        Metrics(all)
    }

    /// All that ever moved.
    pub fn counted(self) -> BTreeMap<String, u64> {
        self.0.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// What has been counted since: those that moved. All ends on this host see them.
    pub fn since(&self, before: &Metrics) -> FinalCounters {
        counter::moved(&before.0, &self.0)
    }
}

/// Whether packets were lost below Homa: the message then takes as long as its timeout.
pub fn warnings(counters: &FinalCounters) -> Vec<Warning> {
    let count = |name: &str| match counters.get(&format!("{PREFIX}{name}")) {
        Some(CounterValue::OfPort(count)) => *count,
        _ => 0,
    };
    let (resent, discarded) = (count(RESENT), count(DISCARDED));
    let is_any = resent > 0 || discarded > 0;
    is_any.then_some(Warning::PacketsResent { resent, discarded }).into_iter().collect()
}

/// Fewest pages of a receive region: one for each possible CPU, and the largest message twice. The
/// module refuses fewer since May 2026.
pub fn fewest_pages(possible_cpus: usize) -> usize {
    possible_cpus + (2 * LARGEST).div_ceil(BPAGE)
}

/// How many CPUs the kernel may ever have (`nr_cpu_ids`): the number of the last and one.
pub fn possible_cpus(tree: &Tree) -> usize {
    let all = tree.cpus("/sys/devices/system/cpu/possible").unwrap_or_default();
    all.into_iter().max().map_or(1, |last| last as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
time_cycles                          1000  homa_clock() time when metrics were gathered
cpu_khz                           2400000  Clock rate for cycles metric, in khz
core                                    0  Core id for following metrics
packets_sent_DATA                      10  DATA packets sent
packet_discards                         0  Non-resent packets discarded
core                                    1  Core id for following metrics
packets_sent_DATA                       5  DATA packets sent
";

    #[test]
    fn counters_are_differences_over_all_cores_and_clocks_are_none() {
        let after =
            BEFORE.replace("   10  DATA", "   70  DATA").replace("    5  DATA", "    9  DATA");
        let after = after.replace("1000", "9000") + "resent_packets  180  Packets resent\n";
        let moved = Metrics::of(&after).since(&Metrics::of(BEFORE));
        let expected = [("counter.packets_sent_DATA", 64), ("counter.resent_packets", 180)];
        let of = |(name, count): (&str, u64)| (name.to_string(), CounterValue::OfPort(count));
        assert_eq!(moved, expected.map(of).into());
        assert!(Metrics::of(BEFORE).since(&Metrics::of(BEFORE)).is_empty());
        assert_eq!(Metrics::of("no number\n\nalone\n"), Metrics::default());
    }

    #[test]
    fn settings_and_counters_are_read_where_the_module_has_them() {
        let folder = std::env::temp_dir().join(format!("wiregauge-homa-{}", std::process::id()));
        for (name, text) in [
            ("proc/sys/net/homa/poll_usecs", "50\n"),
            ("proc/sys/net/homa/unsched_cutoffs", "0\t0\t100\n"),
            ("proc/net/homa_metrics", BEFORE),
            ("sys/devices/system/cpu/possible", "0-63\n"),
        ] {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let tree = Tree::at(&folder);
        let (settings, metrics) = (settings(&tree), Metrics::read(&tree));
        let possible = possible_cpus(&tree);
        std::fs::remove_dir_all(&folder).unwrap();
        let text = |name: &str, value: &str| (format!("net.homa.{name}"), value.to_string());
        assert_eq!(settings, [text("poll_usecs", "50"), text("unsched_cutoffs", "0 0 100")]);
        assert_eq!((metrics, possible), (Metrics::of(BEFORE), 64));
        assert_eq!(Metrics::read(&Tree::at(&folder)), Metrics::default());
        assert_eq!(possible_cpus(&Tree::at(&folder)), 1, "where the kernel does not say");
    }

    #[test]
    fn resent_and_discarded_packets_are_warned_of() {
        let counters = |name: &str| {
            FinalCounters::from([(format!("counter.{name}"), CounterValue::OfPort(3))])
        };
        assert_eq!(
            warnings(&counters("resent_packets")),
            [Warning::PacketsResent { resent: 3, discarded: 0 }]
        );
        assert_eq!(
            warnings(&counters("packet_discards")),
            [Warning::PacketsResent { resent: 0, discarded: 3 }]
        );
        assert!(warnings(&counters("packets_sent_DATA")).is_empty());
    }
}
