//! What the machine counted while its CPUs were watched: interrupts, steal time, SMIs.

use crate::Tree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

/// The counter of system management interrupts (MSR_SMI_COUNT, Intel SDM volume 4).
const SMI_COUNT: u64 = 0x34;
/// Nanoseconds of a unit of /proc/stat (USER_HZ is 100 on all architectures that we know).
const JIFFY_NS: f64 = 1e7;
/// The most rows of interrupts that are kept.
const MOST: usize = 256;

/// How often an interrupt came on a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptCount {
    pub cpu: u32,
    /// The device, or what the kernel calls an interrupt of its own.
    pub name: String,
    pub count: u64,
}

/// Counters at one time.
#[derive(Debug, Default)]
pub struct Evidence {
    /// By CPU and name.
    interrupts: BTreeMap<(u32, String), u64>,
    /// By CPU.
    steal_ns: BTreeMap<u32, f64>,
    /// The same of all CPUs together; `None` where no register could be read.
    smis: Option<u64>,
    /// Microseconds in which a limit of a control group of this process held its threads back.
    throttled_us: u64,
    /// Microseconds in which core scheduling left a CPU idle for the sake of its sibling.
    forced_idle_us: u64,
}

impl Evidence {
    pub fn read(tree: &Tree, cpus: &[u32]) -> Evidence {
        Evidence {
            interrupts: interrupts(&tree.text("/proc/interrupts").unwrap_or_default(), cpus),
            steal_ns: steal(&tree.text("/proc/stat").unwrap_or_default(), cpus),
            smis: cpus.first().and_then(|cpu| smi_count(*cpu)),
            throttled_us: of_groups(tree, "throttled_usec"),
            forced_idle_us: of_groups(tree, "core_sched.force_idle_usec"),
        }
    }

    /// Returns why a CPU was idle while a thread of ours was ready to run, where something was
    /// counted that says so.
    pub fn idle_since(&self, earlier: &Evidence) -> Option<&'static str> {
        if self.throttled_us > earlier.throttled_us {
            return Some("a limit of the control group (cpu.max)");
        }
        (self.forced_idle_us > earlier.forced_idle_us).then_some("core scheduling")
    }

    /// Interrupts since an earlier reading, the most frequent first.
    pub fn interrupts_since(&self, earlier: &Evidence) -> Vec<InterruptCount> {
        let counted = self.interrupts.iter().filter_map(|((cpu, name), now)| {
            let before = earlier.interrupts.get(&(*cpu, name.clone())).copied().unwrap_or(0);
            let count = now.checked_sub(before).filter(|count| *count > 0)?;
            Some(InterruptCount { cpu: *cpu, name: name.clone(), count })
        });
        let mut all: Vec<InterruptCount> = counted.collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.count));
        all.truncate(MOST);
        all
    }

    /// Time that the hypervisor gave to others, on each CPU.
    pub fn steal_since(&self, earlier: &Evidence) -> Vec<(u32, f64)> {
        let before = |cpu: &u32| earlier.steal_ns.get(cpu).copied().unwrap_or(0.0);
        self.steal_ns.iter().map(|(cpu, now)| (*cpu, (now - before(cpu)).max(0.0))).collect()
    }

    /// System management interrupts; each stops all CPUs of the machine.
    pub fn smis_since(&self, earlier: &Evidence) -> Option<u64> {
        self.smis?.checked_sub(earlier.smis?)
    }
}

/// Returns the sum of a counter of `cpu.stat` of the control groups that this process is in, from
/// its own to the root.
fn of_groups(tree: &Tree, name: &str) -> u64 {
    let text = tree.text("/proc/self/cgroup").unwrap_or_default();
    let group = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let mut path = group.trim_end_matches('/');
    let mut sum: u64 = 0;
    loop {
        let count = tree.value(&format!("/sys/fs/cgroup{path}/cpu.stat"), name, ' ');
        let count = count.and_then(|count| count.trim().parse::<u64>().ok());
        sum = sum.saturating_add(count.unwrap_or(0));
        let Some((above, _)) = path.rsplit_once('/') else { return sum };
        path = above;
    }
}

/// Rows `41:  7238  0  PCI-MSIX-0000:00:04.0  1-edge  virtio3-rx`, `LOC:  1  2  Local timer ...`.
fn interrupts(text: &str, cpus: &[u32]) -> BTreeMap<(u32, String), u64> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_whitespace();
    let columns: Vec<u32> =
        head.filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
    let mut all = BTreeMap::new();
    for line in lines {
        let Some((number, rest)) = line.trim().split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (counts, text) = words.split_at(columns.len().min(words.len()));
        let name = match number.parse::<u32>() {
            // Of a device's: chip, number in it, and names.
            Ok(_) => text.last().map(|name| (*name).to_owned()),
            Err(_) => Some(text.join(" ")).filter(|text| !text.is_empty()),
        };
        for (cpu, count) in columns.iter().zip(counts).filter(|(cpu, _)| cpus.contains(cpu)) {
            if let (Ok(count), Some(name)) = (count.parse::<u64>(), &name) {
                let sum: &mut u64 = all.entry((*cpu, name.clone())).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    all
}

/// The eighth number of `cpu0 user nice system idle iowait irq softirq steal ...`.
fn steal(text: &str, cpus: &[u32]) -> BTreeMap<u32, f64> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok()?;
        let jiffies: f64 = words.nth(7)?.parse().ok()?;
        cpus.contains(&cpu).then_some((cpu, jiffies * JIFFY_NS))
    };
    BTreeMap::from_iter(text.lines().filter(|line| !line.starts_with("cpu ")).filter_map(of_line))
}

/// The register of a CPU, where root may read it and the module `msr` is loaded.
fn smi_count(cpu: u32) -> Option<u64> {
    let file = std::fs::File::open(format!("/dev/cpu/{cpu}/msr")).ok()?;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, SMI_COUNT).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::Fake;

    fn at(interrupts: &str, steal: u32) -> Evidence {
        let fake = Fake::new(&[
            ("proc/interrupts", interrupts),
            ("proc/stat", &format!("cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 {steal} 0 0\n")),
        ]);
        Evidence::read(&fake.tree, &[1])
    }

    #[test]
    fn counts_at_their_end_stay_there() {
        let row = format!("LOC: 0 {} Local timer\n", u64::MAX);
        let before = at("CPU0 CPU1\n", 0);
        let after = at(&format!("CPU0 CPU1\n{row}{row}"), 0);
        assert_eq!(after.interrupts_since(&before)[0].count, u64::MAX);
        let stat = format!("throttled_usec {}\n", u64::MAX);
        let fake = Fake::new(&[
            ("proc/self/cgroup", "0::/user\n"),
            ("sys/fs/cgroup/user/cpu.stat", &stat),
            ("sys/fs/cgroup/cpu.stat", &stat),
        ]);
        assert_eq!(of_groups(&fake.tree, "throttled_usec"), u64::MAX);
    }

    #[test]
    fn a_cpu_is_idle_for_a_reason_that_was_counted_or_for_none() {
        let read = |throttled: u32, forced: u32| {
            let stat = format!("usage_usec 9\nthrottled_usec {throttled}\n");
            let root = format!("usage_usec 9\ncore_sched.force_idle_usec {forced}\n");
            let fake = Fake::new(&[
                ("proc/self/cgroup", "1:name=systemd:/x\n0::/user/run\n"),
                ("sys/fs/cgroup/user/cpu.stat", &stat),
                ("sys/fs/cgroup/cpu.stat", &root),
            ]);
            Evidence::read(&fake.tree, &[1])
        };
        let before = read(5, 5);
        assert_eq!(read(5, 5).idle_since(&before), None);
        assert!(read(6, 9).idle_since(&before).is_some_and(|why| why.contains("cpu.max")));
        assert_eq!(read(5, 9).idle_since(&before), Some("core scheduling"));
        assert_eq!(Evidence::default().idle_since(&Evidence::default()), None);
    }

    #[test]
    fn what_was_counted_meanwhile_has_its_name() {
        let text = |rx: u32, timer: u32| {
            format!(
                "           CPU0       CPU1       \n 41:   7238  {rx}  PCI-MSIX-0000:00:04.0   \
                 1-edge      virtio3-rx\nLOC:   99  {timer}   Local timer interrupts\nERR:   0\n"
            )
        };
        let (before, after) = (at(&text(10, 5), 7), at(&text(12, 905), 10));
        let counted = after.interrupts_since(&before);
        let shown: Vec<(u32, &str, u64)> =
            counted.iter().map(|one| (one.cpu, one.name.as_str(), one.count)).collect();
        assert_eq!(shown, [(1, "Local timer interrupts", 900), (1, "virtio3-rx", 2)]);
        assert_eq!(after.steal_since(&before), [(1, 30e6)]);
        assert!(before.interrupts_since(&after).is_empty());
    }
}
