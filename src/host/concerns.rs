//! Settings of the machine that weaken a figure, in plain words.

use super::{CpuState, Environment, IdleState, format_cpus};
use crate::clock::MADE_FROM_TSC;

/// Waking from an idle state that takes longer than this shows in a latency whose message
/// arrives while the receiver sleeps: 10 us is about what the rest of a blocking path takes.
const DEEP_IDLE_US: u64 = 10;
/// A load average above this share of the CPUs says that the machine had other work: at a
/// quarter, one of two CPUs chosen blindly is busy nearly half of the time.
const LOAD_SHARE: f64 = 0.25;

/// Something about the machine that weakens a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// A stable name: `governor`, `smt_siblings`, `virtual_machine`, ...
    pub kind: &'static str,
    /// What it is, what it does to the figure, and what helps.
    pub text: String,
}

impl Environment {
    /// What to warn of where `cpus` (the client's and the server's) measure. States of CPUs
    /// that were not read with the environment are not judged.
    pub fn concerns(&self, cpus: &[u32]) -> Vec<Concern> {
        let of = |cpu: &u32| self.cpus.iter().find(|state| state.cpu == *cpu);
        let states: Vec<&CpuState> = cpus.iter().filter_map(of).collect();
        let found = [
            one_cpu(cpus),
            siblings(&states),
            nodes(&states),
            governor(&states),
            deep_idle(&states),
            not_isolated(&states),
            self.virtual_machine(),
            self.clock_source(),
            self.load(),
            self.huge_pages(),
        ];
        found.into_iter().flatten().collect()
    }

    fn virtual_machine(&self) -> Option<Concern> {
        let hypervisor = self.hypervisor.as_ref()?;
        let text = format!(
            "this is a virtual machine ({hypervisor}): the host may take a CPU away at any time, \
             and its interrupts are dearer; tails say more about the host than about the transport"
        );
        Some(Concern { kind: "virtual_machine", text })
    }

    fn clock_source(&self) -> Option<Concern> {
        let source = self.clock_source.as_deref()?;
        if MADE_FROM_TSC.contains(&source) {
            return None;
        }
        let text = format!(
            "the kernel's clock source is {source}: each clock_gettime is a slow system call, and \
             the kernel may have found the TSC unstable (see its log)"
        );
        Some(Concern { kind: "clock_source", text })
    }

    fn load(&self) -> Option<Concern> {
        let [load, ..] = self.load_average?;
        let logical = self.processor.logical.max(1);
        if load <= LOAD_SHARE * f64::from(logical) {
            return None;
        }
        let text = format!(
            "the load average is {load:.2} on {logical} CPUs: other work ran on this machine and \
             may share CPUs, caches and memory with the measurement"
        );
        Some(Concern { kind: "load", text })
    }

    fn huge_pages(&self) -> Option<Concern> {
        if self.memory.transparent_huge_pages.as_deref() != Some("always") {
            return None;
        }
        let text = "transparent huge pages are always on: the kernel may stop a process to merge \
                    its pages; `madvise` in /sys/kernel/mm/transparent_hugepage/enabled avoids it"
            .to_string();
        Some(Concern { kind: "transparent_huge_pages", text })
    }
}

fn one_cpu(cpus: &[u32]) -> Option<Concern> {
    let (first, rest) = cpus.split_first()?;
    if rest.is_empty() || rest.iter().any(|cpu| cpu != first) {
        return None;
    }
    let text = format!(
        "both ends share CPU {first}: every message waits until the scheduler has switched \
         between them, and a busy wait measures the scheduler"
    );
    Some(Concern { kind: "one_cpu", text })
}

fn siblings(states: &[&CpuState]) -> Option<Concern> {
    let shared = |a: &CpuState, b: &CpuState| a.cpu != b.cpu && a.siblings.contains(&b.cpu);
    let a = states.iter().find(|a| states.iter().any(|b| shared(a, b)))?;
    let text = format!(
        "the measuring CPUs {} are hardware threads of one core: each slows the other while both \
         run; take two cores (--cpus)",
        format_cpus(&a.siblings)
    );
    Some(Concern { kind: "smt_siblings", text })
}

fn nodes(states: &[&CpuState]) -> Option<Concern> {
    let (first, rest) = states.split_first()?;
    let other = rest.iter().find(|s| s.node.is_some() && s.node != first.node)?;
    let text = format!(
        "CPU {} and CPU {} are on different NUMA nodes: memory between them is slower than on \
         one node",
        first.cpu, other.cpu
    );
    first.node.map(|_| Concern { kind: "numa_nodes", text })
}

fn governor(states: &[&CpuState]) -> Option<Concern> {
    let bad = |s: &&&CpuState| s.governor.as_deref().is_some_and(|g| g != "performance");
    let bad: Vec<&&CpuState> = states.iter().filter(bad).collect();
    let name = bad.first()?.governor.as_deref()?;
    let text = format!(
        "the frequency governor of {} is {name}: the clock falls in pauses and rises during a \
         run; set it to performance (cpupower frequency-set -g performance)",
        names(&bad)
    );
    Some(Concern { kind: "governor", text })
}

/// The enabled idle state that takes the longest to wake from, where that is too long.
fn deepest(state: &CpuState) -> Option<&IdleState> {
    let enabled = state.idle_states.iter().filter(|i| !i.disabled);
    enabled.max_by_key(|i| i.exit_latency_us).filter(|i| i.exit_latency_us > DEEP_IDLE_US)
}

fn deep_idle(states: &[&CpuState]) -> Option<Concern> {
    let deep: Vec<&&CpuState> = states.iter().filter(|s| deepest(s).is_some()).collect();
    let idle = deep.iter().filter_map(|s| deepest(s)).max_by_key(|i| i.exit_latency_us)?;
    let text = format!(
        "{} may fall into idle state {} and wake {} us late: an end that blocks or pauses pays \
         it; disable it (cpupower idle-set -D {DEEP_IDLE_US}) or wait busily",
        names(&deep),
        idle.name,
        idle.exit_latency_us
    );
    Some(Concern { kind: "deep_idle", text })
}

fn not_isolated(states: &[&CpuState]) -> Option<Concern> {
    let open: Vec<&&CpuState> = states.iter().filter(|s| !s.isolated).collect();
    if open.is_empty() {
        return None;
    }
    let text = format!(
        "{} not isolated: other tasks may run there and show in the tail (isolcpus, nohz_full)",
        match open.as_slice() {
            [one, rest @ ..] if rest.iter().all(|s| s.cpu == one.cpu) =>
                format!("CPU {} is", one.cpu),
            _ => format!("{} are", names(&open)),
        }
    );
    Some(Concern { kind: "not_isolated", text })
}

/// `CPU 3`, or `CPUs 3-4`.
fn names(states: &[&&CpuState]) -> String {
    let mut cpus: Vec<u32> = states.iter().map(|s| s.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", format_cpus(&cpus))
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::*;

    /// A CPU with nothing wrong about it.
    fn good(cpu: u32) -> CpuState {
        CpuState {
            cpu,
            node: Some(0),
            siblings: vec![cpu],
            isolated: true,
            governor: Some("performance".to_string()),
            ..CpuState::default()
        }
    }

    fn machine(a: CpuState, b: CpuState) -> Environment {
        let processor = Processor { logical: 8, ..Processor::default() };
        Environment { cpus: vec![a, b], processor, ..Environment::default() }
    }

    fn kinds(environment: &Environment) -> Vec<&'static str> {
        let cpus: Vec<u32> = environment.cpus.iter().map(|s| s.cpu).collect();
        environment.concerns(&cpus).iter().map(|c| c.kind).collect()
    }

    #[test]
    fn a_machine_as_it_should_be_raises_nothing() {
        assert_eq!(kinds(&machine(good(2), good(3))), Vec::<&str>::new());
        assert_eq!(kinds(&Environment::default()), Vec::<&str>::new());
    }

    #[test]
    fn each_bad_setting_of_a_cpu_raises_its_concern() {
        let powersave = CpuState { governor: Some("powersave".to_string()), ..good(2) };
        let sibling = CpuState { siblings: vec![2, 3], ..good(2) };
        let far = CpuState { node: Some(1), ..good(2) };
        let shared = CpuState { isolated: false, ..good(2) };
        for (state, kind) in [
            (powersave, "governor"),
            (sibling, "smt_siblings"),
            (far, "numa_nodes"),
            (shared, "not_isolated"),
            (good(3), "one_cpu"),
        ] {
            assert_eq!(kinds(&machine(state, good(3))), [kind]);
        }
    }

    #[test]
    fn only_an_enabled_idle_state_that_wakes_late_is_deep() {
        let state = |exit_latency_us, disabled| CpuState {
            idle_states: vec![IdleState { name: "C6".to_string(), exit_latency_us, disabled }],
            ..good(2)
        };
        assert_eq!(kinds(&machine(state(133, false), good(3))), ["deep_idle"]);
        assert!(kinds(&machine(state(133, true), good(3))).is_empty());
        assert!(kinds(&machine(state(2, false), good(3))).is_empty());
        let text = &machine(state(133, false), good(3)).concerns(&[2, 3])[0].text;
        assert!(text.starts_with("CPU 2 may fall into idle state C6 and wake 133 us"), "{text}");
    }

    #[test]
    fn each_bad_setting_of_the_machine_raises_its_concern() {
        let mut found = machine(good(2), good(3));
        found.hypervisor = Some("KVM".to_string());
        found.clock_source = Some("hpet".to_string());
        found.load_average = Some([2.5, 0.0, 0.0]);
        found.memory.transparent_huge_pages = Some("always".to_string());
        let all = ["virtual_machine", "clock_source", "load", "transparent_huge_pages"];
        assert_eq!(kinds(&found), all);
    }

    #[test]
    fn sources_made_from_the_tsc_and_a_low_load_raise_nothing() {
        let mut found = machine(good(2), good(3));
        found.clock_source = Some("kvm-clock".to_string());
        found.load_average = Some([1.9, 9.0, 9.0]);
        assert!(kinds(&found).is_empty());
    }
}
