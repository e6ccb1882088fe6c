//! What the kernel counts at a port: read before and after, kept as differences.

use crate::host::Tree;
use crate::transport::counter::{CounterValue, FinalCounters};
use std::collections::BTreeMap;

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
        let moved = self.counts.iter().filter_map(|(name, now)| {
            let before = before.counts.get(name).copied().unwrap_or(0);
            let difference = now.wrapping_sub(before);
            let name = format!("counter.{name}");
            (difference != 0).then_some((name, CounterValue::OfPort(difference)))
        });
        moved.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
