//! The processor and the CPUs that measure, as the kernel shows them.

use super::affinity::Place;
use super::tree::value_of;
use super::{Tree, parse_cpus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The processor as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// Model as it names itself.
    pub model: Option<String>,
    /// Revision of the microcode.
    pub microcode: Option<String>,
    /// Logical CPUs that are online.
    pub logical: u32,
    /// Physical cores with at least one CPU online.
    pub physical: Option<u32>,
    /// Sockets with at least one CPU online.
    pub sockets: Option<u32>,
    /// Whether cores run more than one hardware thread.
    pub smt_active: Option<bool>,
    /// CPUs that this process may use.
    pub allowed: Vec<u32>,
    /// CPUs that the scheduler leaves alone.
    pub isolated: Vec<u32>,
    /// CPUs without a periodic tick while one task runs.
    pub nohz_full: Vec<u32>,
    /// Whether the clock may be raised above the nominal one.
    pub turbo: Option<bool>,
    /// The driver that puts idle CPUs to sleep.
    pub idle_driver: Option<String>,
    /// The flags about the TSC: `constant_tsc`, `nonstop_tsc`, ...
    pub tsc_flags: Vec<String>,
    /// Weaknesses of the processor and what the kernel does against them, where it is affected.
    pub mitigations: BTreeMap<String, String>,
}

/// One measuring CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuState {
    /// The CPU.
    pub cpu: u32,
    /// NUMA node.
    pub node: Option<u32>,
    /// CPUs of the same physical core, itself included.
    pub siblings: Vec<u32>,
    /// Whether the scheduler leaves it alone.
    pub isolated: bool,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Frequency driver.
    pub frequency_driver: Option<String>,
    /// Frequency when the environment was read, in kHz.
    pub frequency_khz_now: Option<u64>,
    /// Lowest frequency that the governor may choose, in kHz.
    pub frequency_khz_least: Option<u64>,
    /// Highest frequency that the governor may choose, in kHz.
    pub frequency_khz_most: Option<u64>,
    /// Idle states (C-states), the shallowest first.
    pub idle_states: Vec<IdleState>,
    /// Number of interrupts that are routed to it (effective affinity where shown).
    pub interrupts: Option<u32>,
}

/// An idle state of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    /// Its name: `POLL`, `C1E`, ...
    pub name: String,
    /// Time to wake from it in microseconds, as the driver states it.
    pub exit_latency_us: u64,
    /// Whether it is switched off.
    pub disabled: bool,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Distances to all nodes in their order; 10 is local (ACPI SLIT).
    pub distances: Vec<u32>,
}

const CPU: &str = "/sys/devices/system/cpu";

impl Processor {
    pub(super) fn read(tree: &Tree) -> Processor {
        let info = tree.text("/proc/cpuinfo").unwrap_or_default();
        let online = tree.cpus(&format!("{CPU}/online")).unwrap_or_default();
        let listed = info.lines().filter(|l| l.starts_with("processor")).count();
        let model = ["model name", "Model", "cpu model", "cpu"];
        let allowed = tree.value("/proc/self/status", "Cpus_allowed_list", ':');
        Processor {
            model: model.iter().find_map(|key| value_of(&info, key, ':')),
            microcode: value_of(&info, "microcode", ':'),
            logical: if online.is_empty() { listed } else { online.len() } as u32,
            physical: distinct(tree, &online, &["physical_package_id", "die_id", "core_id"]),
            sockets: distinct(tree, &online, &["physical_package_id"]),
            smt_active: tree.flag(&format!("{CPU}/smt/active")),
            allowed: allowed.and_then(|list| parse_cpus(&list)).unwrap_or_default(),
            isolated: super::affinity::isolated(tree),
            nohz_full: tree.cpus(&format!("{CPU}/nohz_full")).unwrap_or_default(),
            turbo: turbo(tree),
            idle_driver: tree.text(&format!("{CPU}/cpuidle/current_driver")),
            tsc_flags: flags(&info).filter(|f| f.contains("tsc")).map(str::to_string).collect(),
            mitigations: mitigations(tree),
        }
    }
}

/// The flags of the first CPU in `/proc/cpuinfo`.
pub(super) fn flags(info: &str) -> impl Iterator<Item = &str> {
    let line = info.lines().find(|l| l.starts_with("flags") || l.starts_with("Features"));
    let text = line.and_then(|l| l.split_once(':')).map_or("", |(_, flags)| flags);
    text.split_whitespace()
}

/// How many different values the topology files have among those CPUs. A missing `die_id` is
/// the same for all; `None` where the last file is missing for one of them.
fn distinct(tree: &Tree, cpus: &[u32], files: &[&str]) -> Option<u32> {
    let mut seen = BTreeSet::new();
    for cpu in cpus {
        let topology = format!("{CPU}/cpu{cpu}/topology");
        let values: Vec<Option<i64>> =
            files.iter().map(|file| tree.number(&format!("{topology}/{file}"))).collect();
        values.last().copied().flatten()?;
        seen.insert(values);
    }
    (!seen.is_empty()).then_some(seen.len() as u32)
}

fn turbo(tree: &Tree) -> Option<bool> {
    let forbidden = tree.flag(&format!("{CPU}/intel_pstate/no_turbo"));
    forbidden.map(|no| !no).or_else(|| tree.flag(&format!("{CPU}/cpufreq/boost")))
}

fn mitigations(tree: &Tree) -> BTreeMap<String, String> {
    let folder = format!("{CPU}/vulnerabilities");
    let entry = |name: String| {
        let text = tree.text(&format!("{folder}/{name}"))?;
        (text != "Not affected").then_some((name, text))
    };
    BTreeMap::from_iter(tree.names(&folder).into_iter().filter_map(entry))
}

impl CpuState {
    /// The states of several CPUs; the interrupts' affinities are read once for all.
    pub(super) fn read_all(tree: &Tree, cpus: &[u32]) -> Vec<CpuState> {
        let affinities = interrupt_affinities(tree);
        let state = |&cpu: &u32| {
            let place = Place::of(tree, cpu);
            let file = |name: &str| format!("{CPU}/cpu{cpu}/cpufreq/{name}");
            let to_it = affinities.iter().filter(|cpus| cpus.contains(&cpu)).count();
            CpuState {
                cpu,
                node: place.node,
                siblings: place.siblings,
                isolated: place.isolated,
                governor: tree.text(&file("scaling_governor")),
                frequency_driver: tree.text(&file("scaling_driver")),
                frequency_khz_now: tree.number(&file("scaling_cur_freq")),
                frequency_khz_least: tree.number(&file("scaling_min_freq")),
                frequency_khz_most: tree.number(&file("scaling_max_freq")),
                idle_states: idle_states(tree, cpu),
                interrupts: (!affinities.is_empty()).then_some(to_it as u32),
            }
        };
        let mut states: Vec<CpuState> = cpus.iter().map(state).collect();
        states.dedup_by_key(|state| state.cpu);
        states
    }
}

fn idle_states(tree: &Tree, cpu: u32) -> Vec<IdleState> {
    let folder = format!("{CPU}/cpu{cpu}/cpuidle");
    let state = |number: u32| {
        let file = |name: &str| format!("{folder}/state{number}/{name}");
        Some(IdleState {
            name: tree.text(&file("name"))?,
            exit_latency_us: tree.number(&file("latency"))?,
            disabled: tree.flag(&file("disable")) == Some(true),
        })
    };
    tree.numbered(&folder, "state").into_iter().filter_map(state).collect()
}

/// The CPUs that an interrupt goes to.
fn affinity(tree: &Tree, interrupt: u32) -> Option<Vec<u32>> {
    let file = |name: &str| tree.cpus(&format!("/proc/irq/{interrupt}/{name}"));
    file("effective_affinity_list").or_else(|| file("smp_affinity_list"))
}

/// The CPUs that each interrupt goes to.
fn interrupt_affinities(tree: &Tree) -> Vec<Vec<u32>> {
    tree.numbered("/proc/irq", "").into_iter().filter_map(|irq| affinity(tree, irq)).collect()
}

/// The interrupts of the device of this folder, with the CPUs that each goes to.
pub(super) fn interrupts_of(tree: &Tree, device: &str) -> Vec<(u32, Vec<u32>)> {
    let numbers = tree.numbered(&format!("{device}/msi_irqs"), "").into_iter();
    numbers.filter_map(|irq| Some((irq, affinity(tree, irq)?))).collect()
}

impl Node {
    pub(super) fn read_all(tree: &Tree) -> Vec<Node> {
        const FOLDER: &str = "/sys/devices/system/node";
        let node = |node: u32| Node {
            node,
            cpus: tree.cpus(&format!("{FOLDER}/node{node}/cpulist")).unwrap_or_default(),
            distances: tree
                .text(&format!("{FOLDER}/node{node}/distance"))
                .map(|d| d.split_whitespace().filter_map(|n| n.parse().ok()).collect())
                .unwrap_or_default(),
        };
        tree.numbered(FOLDER, "node").into_iter().map(node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    const INFO: &str = "processor\t: 0\nmodel name\t: Foo 9000\nmicrocode\t: 0x2b\n\
        flags\t\t: fpu tsc constant_tsc nonstop_tsc hypervisor\n\nprocessor\t: 1\n";

    #[test]
    fn cores_and_sockets_are_counted_apart_from_threads() {
        let fake = Fake::new(&[("proc/cpuinfo", INFO)]).with_cores(4, 2, 2);
        let found = Processor::read(&fake.tree);
        assert_eq!((found.logical, found.physical, found.sockets), (8, Some(4), Some(2)));
        assert_eq!(found.model.as_deref(), Some("Foo 9000"));
        assert_eq!(found.microcode.as_deref(), Some("0x2b"));
        assert_eq!(found.tsc_flags, ["tsc", "constant_tsc", "nonstop_tsc"]);
    }

    #[test]
    fn a_machine_that_shows_nothing_gives_nothing_and_no_panic() {
        let found = Processor::read(&Fake::new(&[]).tree);
        assert_eq!(found, Processor::default());
        let info_only = Processor::read(&Fake::new(&[("proc/cpuinfo", INFO)]).tree);
        assert_eq!((info_only.logical, info_only.physical), (2, None));
    }

    #[test]
    fn mitigations_name_only_what_the_processor_suffers_from() {
        let fake = Fake::new(&[
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: untrained\n"),
        ]);
        let found = mitigations(&fake.tree);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("retbleed".to_string(), "Mitigation: untrained".to_string())]
        );
    }

    #[test]
    fn turbo_is_read_from_either_driver() {
        let intel = Fake::new(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")]);
        assert_eq!(turbo(&intel.tree), Some(false));
        let amd = Fake::new(&[("sys/devices/system/cpu/cpufreq/boost", "1\n")]);
        assert_eq!(turbo(&amd.tree), Some(true));
        assert_eq!(turbo(&Fake::new(&[]).tree), None);
    }

    #[test]
    fn a_measuring_cpu_shows_governor_idle_states_and_interrupts() {
        let cpu = "sys/devices/system/cpu/cpu1";
        let fake = Fake::new(&[
            (&format!("{cpu}/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{cpu}/cpufreq/scaling_max_freq"), "3500000\n"),
            (&format!("{cpu}/cpuidle/state1/name"), "C6\n"),
            (&format!("{cpu}/cpuidle/state1/latency"), "133\n"),
            (&format!("{cpu}/cpuidle/state1/disable"), "1\n"),
            ("proc/irq/9/smp_affinity_list", "0-3"),
            ("proc/irq/10/smp_affinity_list", "0-3"),
            ("proc/irq/10/effective_affinity_list", "2"),
        ])
        .with_cores(4, 1, 1);
        let found = CpuState::read_all(&fake.tree, &[1, 1]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].governor.as_deref(), Some("powersave"));
        assert_eq!(found[0].frequency_khz_most, Some(3_500_000));
        let state = IdleState { name: "C6".to_string(), exit_latency_us: 133, disabled: true };
        assert_eq!(found[0].idle_states, [state]);
        assert_eq!((found[0].interrupts, found[0].node), (Some(1), Some(0)));
    }
}
