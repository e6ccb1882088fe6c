//! What the kernel counts at a port: read before and after, kept as differences.

use crate::counter::{self, CounterValue, FinalCounters, PREFIX};
use std::collections::BTreeMap;
use std::sync::Once;
use std::time::Duration;
use wiregauge_base::warning::Warning;
use wiregauge_host::Tree;

/// Counters of messages for which no receive was posted, by the kernel's drivers: of the end to
/// which they came (`out_of_buffer` of mlx5, `sent_rnr_err` and before Linux 6.5 `send_rnr_err` of
/// rxe), and of the end that was told so and sent them again (`rnr_nak_retry_err` of mlx5,
/// `rcvd_rnr_err` of rxe, `rnr_naks_rcvd` of bnxt_re, `rnr_retry_err` of others).
const NOT_READY: &[&str] = &[
    "out_of_buffer",
    "sent_rnr_err",
    "send_rnr_err",
    "rnr_nak_retry_err",
    "rcvd_rnr_err",
    "rnr_naks_rcvd",
    "rnr_retry_err",
];
/// Counters of packets that a port dropped or received in error (Documentation/ABI/stable/
/// sysfs-class-infiniband), and of RoCE packets for which an adapter had no room.
const DROPPED: &[&str] = &[
    "port_xmit_discards",
    "port_rcv_errors",
    "port_rcv_switch_relay_errors",
    "port_rcv_constraint_errors",
    "port_xmit_constraint_errors",
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "rx_icrc_encapsulated",
    "rx_roce_discard_pkts",
    "rx_roce_error_pkts",
    "rx_drops",
];

/// What a port's counters say that weakens the figures of an end: which of them has counted most of
/// messages without a receive, and of dropped packets.
pub fn warnings(counters: &FinalCounters) -> Vec<Warning> {
    let most = |names: &[&'static str]| {
        let counted =
            names.iter().filter_map(|name| match counters.get(&format!("{PREFIX}{name}")) {
                Some(CounterValue::OfPort(count)) if *count > 0 => Some((*count, *name)),
                _ => None,
            });
        counted.max_by_key(|(count, _)| *count)
    };
    let not_ready =
        most(NOT_READY).map(|(count, counter)| Warning::ReceiverNotReady { count, counter });
    let dropped = most(DROPPED).map(|(count, counter)| Warning::PortDrops { count, counter });
    not_ready.into_iter().chain(dropped).collect()
}

/// How long a port's counters may lag behind a send that fails: Soft-RoCE counts a port that goes
/// down when the kernel has told it, after the first send that finds no way.
const LAG: Duration = Duration::from_millis(200);

/// Waits until the ports have counted why a link has failed: once, since all ends of a process fail
/// together.
pub fn settle() {
    static SETTLED: Once = Once::new();
    SETTLED.call_once(|| std::thread::sleep(LAG));
}

/// The counters of one port at one time.
#[derive(Clone, Debug)]
pub struct Counters {
    tree: Tree,
    /// The port's folder.
    port: String,
    counts: BTreeMap<String, u64>,
}

impl Counters {
    /// Reads those below a port's folder; none where the kernel has none.
    pub fn below(tree: Tree, port: String) -> Counters {
        let mut counts = BTreeMap::new();
        for folder in ["counters", "hw_counters"].map(|folder| format!("{port}/{folder}")) {
            for name in tree.names(&folder) {
                let count = tree.number(&format!("{folder}/{name}"));
                counts.extend(count.map(|count| (name, count)));
            }
        }
        // How often the kernel asks the device: a setting, not a count.
        counts.remove("lifespan");
        Counters { tree, port, counts }
    }

    /// What has been counted from then to now.
    pub fn moved(&self) -> FinalCounters {
        Counters::below(self.tree.clone(), self.port.clone()).since(self)
    }

    /// What has been counted since: those that moved, by name.
    fn since(&self, before: &Counters) -> FinalCounters {
        counter::moved(&before.counts, &self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_a_receive_and_dropped_packets_are_warned_of() {
        let counters = |all: &[(&str, u64)]| -> FinalCounters {
            let of = |(name, count): &(&str, u64)| {
                (format!("counter.{name}"), CounterValue::OfPort(*count))
            };
            all.iter().map(of).collect()
        };
        assert!(warnings(&counters(&[("port_xmit_packets", 9), ("out_of_buffer", 0)])).is_empty());
        assert_eq!(
            warnings(&counters(&[
                ("out_of_buffer", 7),
                ("rnr_nak_retry_err", 3),
                ("port_xmit_discards", 2)
            ])),
            [
                Warning::ReceiverNotReady { count: 7, counter: "out_of_buffer" },
                Warning::PortDrops { count: 2, counter: "port_xmit_discards" }
            ]
        );
    }

    #[test]
    fn differences_are_kept_by_name_and_what_stood_still_is_not() {
        let folder = std::env::temp_dir().join(format!("wiregauge-port-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("counters/port_xmit_packets", "100\n");
        write("hw_counters/rnr_nak_retry_err", "0\n");
        write("hw_counters/lifespan", "10\n");
        write("hw_counters/odd", "N/A (no PMA)\n");
        let read = || Counters::below(Tree::at(&folder), String::new());
        let before = read();
        write("counters/port_xmit_packets", "175\n");
        write("hw_counters/lifespan", "12\n");
        let after = read();
        std::fs::remove_dir_all(&folder).unwrap();
        let moved = after.since(&before);
        let expected = ("counter.port_xmit_packets".to_string(), CounterValue::OfPort(75));
        assert_eq!(moved, FinalCounters::from([expected]));
        assert!(read().since(&before).is_empty(), "there is no such folder any more");
    }
}
