//! Settings of the machine that weaken a figure.

use super::{CpuState, Environment, IdleState, format_cpus};
use wiregauge_base::warning::Warning;
use wiregauge_clock::MADE_FROM_TSC;

/// Waking from an idle state that takes longer than this shows in a latency whose message
/// arrives while the receiver sleeps: 10 us is about what the rest of a blocking path takes.
pub(super) const DEEP_IDLE_US: u64 = 10;
/// A load average above this share of the CPUs says that the machine had other work: from a half
/// on, a thread has no CPU to itself half of the time. It is the mean of the minute before the run,
/// so that a run of half a minute just before raises it to 0.4 of two CPUs; what less of it does to
/// a figure shows in the noise of the measuring CPUs, which is measured while they measure.
const LOAD_SHARE: f64 = 0.5;

impl Environment {
    /// What to warn of where `cpus` (the client's and the server's) measure. States of CPUs
    /// that were not read with the environment are not judged.
    pub fn warnings(&self, cpus: &[u32]) -> Vec<Warning> {
        let of = |cpu: &u32| self.cpus.iter().find(|state| state.cpu == *cpu);
        let states: Vec<&CpuState> = cpus.iter().filter_map(of).collect();
        let found = [
            one_cpu(cpus),
            siblings(&states),
            nodes(&states),
            governor(&states),
            deep_idle(&states),
            not_isolated(&states),
            self.hypervisor.clone().map(|hypervisor| Warning::VirtualMachine { hypervisor }),
            self.clock_source(),
            self.other_load(),
            (self.memory.transparent_huge_pages.as_deref() == Some("always"))
                .then_some(Warning::TransparentHugePages),
        ];
        found.into_iter().flatten().collect()
    }

    fn clock_source(&self) -> Option<Warning> {
        let source = self.clock_source.clone()?;
        let is_fast = MADE_FROM_TSC.contains(&source.as_str());
        (!is_fast).then_some(Warning::ClockSource { source })
    }

    fn other_load(&self) -> Option<Warning> {
        let [load, ..] = self.load_average?;
        let cpus = self.processor.logical.max(1);
        (load > LOAD_SHARE * f64::from(cpus)).then_some(Warning::OtherLoad { load, cpus })
    }
}

fn one_cpu(cpus: &[u32]) -> Option<Warning> {
    let (first, rest) = cpus.split_first()?;
    let is_shared = !rest.is_empty() && rest.iter().all(|cpu| cpu == first);
    is_shared.then_some(Warning::OneCpu { cpu: *first })
}

fn siblings(states: &[&CpuState]) -> Option<Warning> {
    let shared = |a: &CpuState, b: &CpuState| a.cpu != b.cpu && a.siblings.contains(&b.cpu);
    let a = states.iter().find(|a| states.iter().any(|b| shared(a, b)))?;
    Some(Warning::SmtSiblings { cpus: format!("CPUs {}", format_cpus(&a.siblings)) })
}

fn nodes(states: &[&CpuState]) -> Option<Warning> {
    let (first, rest) = states.split_first()?;
    let other = rest.iter().find(|s| s.node.is_some() && s.node != first.node)?;
    first.node.map(|_| Warning::NumaNodes { one: first.cpu, other: other.cpu })
}

fn governor(states: &[&CpuState]) -> Option<Warning> {
    let bad = |s: &CpuState| s.governor.clone().filter(|governor| governor != "performance");
    let governor = states.iter().find_map(|s| bad(s))?;
    Some(Warning::Governor { cpus: names(states, |s| bad(s).is_some()), governor })
}

/// The enabled idle state that takes the longest to wake from, where that is too long.
fn deepest(state: &CpuState) -> Option<&IdleState> {
    let enabled = state.idle_states.iter().filter(|i| !i.disabled);
    enabled.max_by_key(|i| i.exit_latency_us).filter(|i| i.exit_latency_us > DEEP_IDLE_US)
}

fn deep_idle(states: &[&CpuState]) -> Option<Warning> {
    let deep = states.iter().filter_map(|s| deepest(s));
    let idle = deep.max_by_key(|i| i.exit_latency_us)?;
    Some(Warning::DeepIdle {
        cpus: names(states, |s| deepest(s).is_some()),
        state: idle.name.clone(),
        exit_us: idle.exit_latency_us,
        limit_us: DEEP_IDLE_US,
    })
}

fn not_isolated(states: &[&CpuState]) -> Option<Warning> {
    let is_open = states.iter().any(|s| !s.isolated);
    is_open.then(|| Warning::NotIsolated { cpus: names(states, |s| !s.isolated) })
}

/// `CPU 3`, or `CPUs 3-4`.
fn names(states: &[&CpuState], which: impl Fn(&CpuState) -> bool) -> String {
    let mut cpus: Vec<u32> = states.iter().filter(|s| which(s)).map(|s| s.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", format_cpus(&cpus))
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::*;
    use wiregauge_base::warning::RecordedWarning;

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

    fn kinds(environment: &Environment) -> Vec<String> {
        let cpus: Vec<u32> = environment.cpus.iter().map(|s| s.cpu).collect();
        let warnings = environment.warnings(&cpus);
        warnings.iter().map(|warning| RecordedWarning::from(warning).kind).collect()
    }

    #[test]
    fn a_machine_as_it_should_be_gives_no_warning() {
        assert_eq!(kinds(&machine(good(2), good(3))), Vec::<&str>::new());
        assert_eq!(kinds(&Environment::default()), Vec::<&str>::new());
    }

    #[test]
    fn each_bad_setting_of_a_cpu_gives_its_warning() {
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
        let warnings = machine(state(133, false), good(3)).warnings(&[2, 3]);
        let [Warning::DeepIdle { cpus, state, exit_us: 133, .. }] = warnings.as_slice() else {
            panic!("{warnings:?}")
        };
        assert_eq!((cpus.as_str(), state.as_str()), ("CPU 2", "C6"));
    }

    #[test]
    fn each_bad_setting_of_the_machine_gives_its_warning() {
        let mut found = machine(good(2), good(3));
        found.hypervisor = Some("KVM".to_string());
        found.clock_source = Some("hpet".to_string());
        found.load_average = Some([4.5, 0.0, 0.0]);
        found.memory.transparent_huge_pages = Some("always".to_string());
        let all = ["virtual_machine", "clock_source", "other_load", "transparent_huge_pages"];
        assert_eq!(kinds(&found), all);
    }

    #[test]
    fn sources_made_from_the_tsc_and_a_low_load_give_no_warning() {
        let mut found = machine(good(2), good(3));
        found.clock_source = Some("kvm-clock".to_string());
        found.load_average = Some([3.9, 9.0, 9.0]);
        assert!(kinds(&found).is_empty());
    }
}
