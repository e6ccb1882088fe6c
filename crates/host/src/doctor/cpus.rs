//! Checks of the measuring CPUs: what else runs on them, and how they share cores and memory.

use super::examined::Examined;
use super::finding::Finding;
use crate::format_cpus;
use wiregauge_base::warning::Severity::{Note, Warning};

/// CPUs in words: `CPU 3`, or `CPUs 3-4`.
pub(super) fn named(cpus: &[u32]) -> String {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", format_cpus(cpus))
}

/// The measuring CPUs for which this holds.
fn those(examined: &Examined, holds: impl Fn(u32) -> bool) -> Vec<u32> {
    examined.cpus.iter().copied().filter(|cpu| holds(*cpu)).collect()
}

const NO_HZ: &str = "kernel documentation, timers/no_hz.rst";

pub(super) fn isolation(examined: &Examined) -> Vec<Finding> {
    let found = examined.warned("not_isolated").map(|warning| {
        let isolated = &examined.environment.processor.isolated;
        let open = those(examined, |cpu| !isolated.contains(&cpu));
        let list = format_cpus(&open);
        Finding::of_warning(warning)
            .costs(
                "the time for which another task runs; how much: `wiregauge noise --together`",
                "scheduler",
            )
            .advice(format!(
                "boot with isolcpus={list}, or make a cpuset partition: cpuset.cpus={list} and \
                 cpuset.cpus.partition=isolated below /sys/fs/cgroup (docs/doctor.md)"
            ))
    });
    found.into_iter().collect()
}

pub(super) fn tick(examined: &Examined) -> Vec<Finding> {
    let nohz = &examined.environment.processor.nohz_full;
    let ticking = those(examined, |cpu| !nohz.contains(&cpu));
    if ticking.is_empty() {
        return Vec::new();
    }
    let sentence = "the scheduler's tick interrupts a busy task 100 to 1000 times a second";
    let finding = Finding::new(Note, named(&ticking), sentence)
        .costs("some us each; how much here: `wiregauge noise --together`", NO_HZ)
        .advice(format!("boot with nohz_full={}", format_cpus(&ticking)));
    vec![finding]
}

pub(super) fn rcu(examined: &Examined) -> Vec<Finding> {
    let listed = |key: &str| {
        let list = examined.kernel_option(key).unwrap_or_default();
        match list {
            "all" => Some(examined.cpus.clone()),
            list => crate::parse_cpus(list),
        }
    };
    let offloaded = listed("rcu_nocbs").unwrap_or_default();
    // nohz_full= offloads its CPUs' callbacks too.
    let nohz = &examined.environment.processor.nohz_full;
    let own = those(examined, |cpu| !offloaded.contains(&cpu) && !nohz.contains(&cpu));
    if own.is_empty() {
        return Vec::new();
    }
    let finding = Finding::new(Note, named(&own), "RCU callbacks run in softirqs there")
        .costs("as long as the callbacks that have come together", NO_HZ)
        .advice(format!("boot with rcu_nocbs={}", format_cpus(&own)));
    vec![finding]
}

pub(super) fn smt(examined: &Examined) -> Vec<Finding> {
    let cost = "both threads share one core's units and caches: up to half of its rate";
    let by = "processor";
    if let Some(warning) = examined.warned("smt_siblings") {
        let finding = Finding::of_warning(warning).costs(cost, by);
        return vec![finding];
    }
    let states = examined.environment.cpus.iter();
    let mut free: Vec<u32> = states.flat_map(|state| state.siblings.iter().copied()).collect();
    free.sort_unstable();
    free.dedup();
    free.retain(|cpu| !examined.cpus.contains(cpu));
    if free.is_empty() {
        return Vec::new();
    }
    let sentence = "other tasks may run there, on the second thread of a measuring core";
    let files = free.iter().map(|cpu| {
        (format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0".to_owned(), "1".to_owned())
    });
    let finding = Finding::new(Note, named(&free), sentence)
        .costs(cost, by)
        .writes(&files.collect::<Vec<_>>());
    vec![finding]
}

pub(super) fn nodes(examined: &Examined) -> Vec<Finding> {
    let farthest = examined.environment.nodes.iter().flat_map(|node| node.distances.iter()).max();
    let cost = match farthest {
        Some(distance) => {
            format!("memory there is {:.1} times as far", f64::from(*distance) / 10.0)
        }
        None => "each message crosses the link between them".to_owned(),
    };
    let found = examined.warned("numa_nodes");
    let finding = |warning| Finding::of_warning(warning).costs(&*cost, "this host's ACPI SLIT");
    found.map(finding).into_iter().collect()
}

pub(super) fn adapter_node(examined: &Examined) -> Vec<Finding> {
    let near = |node: u32| {
        let own = examined.environment.nodes.iter().find(|one| one.node == node);
        own.map(|one| format_cpus(&one.cpus)).unwrap_or_default()
    };
    let interfaces =
        examined.adapters.iter().map(|one| (one.interface.name.clone(), one.interface.node));
    let ports = examined.ports.iter().map(|port| (port.name(), port.node));
    let mut found = Vec::new();
    for (name, node) in interfaces.chain(ports) {
        let states = examined.environment.cpus.iter();
        let is_far = |own: &Option<u32>| own.is_some() && node.is_some() && *own != node;
        let far: Vec<u32> =
            states.filter(|state| is_far(&state.node)).map(|state| state.cpu).collect();
        let Some(node) = node.filter(|_| !far.is_empty()) else { continue };
        let sentence = format!("the adapter is on NUMA node {node}, and {} are not", named(&far));
        let finding = Finding::new(Warning, name, sentence)
            .costs(
                "descriptors, completions and payloads cross the link between the sockets",
                "wiring of this host",
            )
            .advice(format!("measure on its CPUs: --cpus of {}", near(node)));
        found.push(finding);
    }
    found
}

pub(super) fn numa_balancing(examined: &Examined) -> Vec<Finding> {
    let file = "/proc/sys/kernel/numa_balancing";
    let mode = examined.tree.number::<u32>(file).unwrap_or(0);
    if mode == 0 || examined.environment.nodes.len() < 2 {
        return Vec::new();
    }
    let finding =
        Finding::new(Note, "", "automatic NUMA balancing unmaps pages to see their users")
            .costs(
                "a page fault for each page that it looks at",
                "kernel documentation, sysctl/kernel.rst",
            )
            .writes(&[(file.to_owned(), "0".to_owned(), mode.to_string())]);
    vec![finding]
}

pub(super) fn interrupts(examined: &Examined) -> Vec<Finding> {
    let routed: Vec<u32> = {
        let states = examined.environment.cpus.iter();
        states.filter(|state| state.interrupts.unwrap_or(0) > 0).map(|state| state.cpu).collect()
    };
    let of_devices: Vec<u32> = device_numbers(examined);
    let all = examined.tree.numbered("/proc/irq", "");
    if routed.is_empty() || all.iter().all(|number| of_devices.contains(number)) {
        return Vec::new();
    }
    let count: u32 = examined.environment.cpus.iter().filter_map(|state| state.interrupts).sum();
    let finding =
        Finding::new(Note, named(&routed), format!("{count} interrupts are routed there"))
            .costs("some us each when they come", "`wiregauge noise --together` names them")
            .advice("boot with irqaffinity= and the CPUs that do not measure");
    vec![finding]
}

/// The numbers of the adapters' interrupts.
fn device_numbers(examined: &Examined) -> Vec<u32> {
    let all = examined.adapters.iter().flat_map(|adapter| &adapter.interrupts);
    all.map(|interrupt| interrupt.number).collect()
}

pub(super) fn device_interrupts(examined: &Examined) -> Vec<Finding> {
    let others = format_cpus(&examined.other_cpus());
    let mut found = Vec::new();
    for adapter in &examined.adapters {
        let own = adapter.interrupts.iter();
        let there = own.filter(|one| one.cpus.iter().any(|cpu| examined.cpus.contains(cpu)));
        let there: Vec<_> = there.collect();
        if there.is_empty() {
            continue;
        }
        let cpus = those(examined, |cpu| there.iter().any(|one| one.cpus.contains(&cpu)));
        let sentence = format!("{} of its interrupts go to {}", there.len(), named(&cpus));
        let severity = if others.is_empty() { Note } else { Warning };
        let finding = Finding::new(severity, adapter.interface.name.clone(), sentence).costs(
            "p99 of short messages was 20 to 35 % lower with interrupts on CPUs of their own",
            "J. Ousterhout, performance notes of Homa, July 2020",
        );
        found.push(match others.as_str() {
            "" => finding.advice("measure on fewer CPUs, so that one is left for interrupts"),
            _ => finding.writes(&moved(examined, &there, &others)),
        });
    }
    found
}

/// The files that move these interrupts to other CPUs.
fn moved(
    examined: &Examined,
    interrupts: &[&super::examined::Interrupt],
    others: &str,
) -> Vec<(String, String, String)> {
    let file = |number| format!("/proc/irq/{number}/smp_affinity_list");
    let old = |number| examined.tree.text(&file(number)).unwrap_or_default();
    let each = interrupts.iter().map(|one| one.number);
    each.map(|number| (file(number), others.to_owned(), old(number))).collect()
}

pub(super) fn irqbalance(examined: &Examined) -> Vec<Finding> {
    let pids = examined.tree.numbered("/proc", "");
    let comm = |pid: &u32| examined.tree.text(&format!("/proc/{pid}/comm"));
    let Some(pid) = pids.iter().find(|pid| comm(pid).as_deref() == Some("irqbalance")) else {
        return Vec::new();
    };
    let environment = examined.tree.text(&format!("/proc/{pid}/environ")).unwrap_or_default();
    if environment.contains("IRQBALANCE_BANNED_CPU") {
        return Vec::new();
    }
    let finding = Finding::new(
        Warning,
        "",
        "irqbalance runs: it moves interrupts, also to the measuring CPUs, every 10 s",
    )
    .costs("figures of two rounds are of two placements", "man irqbalance(1)")
    .change("systemctl stop irqbalance", "systemctl start irqbalance")
    .advice(format!("set IRQBALANCE_BANNED_CPULIST={}", format_cpus(&examined.cpus)));
    vec![finding]
}
