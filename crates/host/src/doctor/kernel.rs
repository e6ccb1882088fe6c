//! Checks of the kernel: clocks, watchdogs, memory, mitigations, and other work.

use super::examined::Examined;
use super::finding::Finding;
use wiregauge_base::warning::Severity::{Note, Warning};

/// Locked memory that queues and buffers of a large run take; below it registration fails.
const LOCKED: u64 = 64 << 20;

pub(super) fn clock_source(examined: &Examined) -> Vec<Finding> {
    let found = examined.warned("clock_source").map(|warning| {
        let finding = Finding::of_warning(warning)
            .costs("a system call for each reading of the time", "man vdso(7)");
        let old = examined.environment.clock_source.clone().unwrap_or_default();
        let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        match examined.environment.clock_sources.iter().any(|source| source == "tsc") {
            true => finding.writes(&[(file.to_owned(), "tsc".to_owned(), old)]),
            false => finding,
        }
    });
    found.into_iter().collect()
}

pub(super) fn watchdogs(examined: &Examined) -> Vec<Finding> {
    const KERNEL: &str = "/proc/sys/kernel";
    let mut found = Vec::new();
    if examined.tree.flag(&format!("{KERNEL}/nmi_watchdog")) == Some(true) {
        let finding = Finding::new(Note, "", "the NMI watchdog interrupts every CPU")
            .costs(
                "a performance counter, and an interrupt each some seconds",
                "kernel documentation, admin-guide/lockup-watchdogs.rst",
            )
            .writes(&[(format!("{KERNEL}/nmi_watchdog"), "0".to_owned(), "1".to_owned())]);
        found.push(finding);
    }
    let mask = examined.tree.cpus(&format!("{KERNEL}/watchdog_cpumask")).unwrap_or_default();
    let is_on = examined.tree.flag(&format!("{KERNEL}/watchdog")) == Some(true)
        && examined.tree.flag(&format!("{KERNEL}/soft_watchdog")) != Some(false);
    let watched: Vec<u32> =
        examined.cpus.iter().copied().filter(|cpu| mask.contains(cpu)).collect();
    if is_on && !watched.is_empty() {
        let sentence = "the soft-lockup watchdog wakes a thread of the highest priority there";
        let finding = Finding::new(Note, super::cpus::named(&watched), sentence)
            .costs(
                "a switch to it and back, each 4 s by default",
                "kernel documentation, admin-guide/lockup-watchdogs.rst",
            )
            .writes(&[(format!("{KERNEL}/soft_watchdog"), "0".to_owned(), "1".to_owned())]);
        found.push(finding);
    }
    found
}

pub(super) fn huge_pages(examined: &Examined) -> Vec<Finding> {
    let file = "/sys/kernel/mm/transparent_hugepage/enabled".to_owned();
    let found = examined.warned("transparent_huge_pages").map(|warning| {
        Finding { advice: String::new(), ..Finding::of_warning(warning) }
            .costs(
                "the time to clear 2 MiB at a page fault, or to compact memory",
                "kernel documentation, admin-guide/mm/transhuge.rst",
            )
            .writes(&[(file, "madvise".to_owned(), "always".to_owned())])
    });
    found.into_iter().collect()
}

pub(super) fn locked_memory(examined: &Examined) -> Vec<Finding> {
    let limit = examined.environment.memory.lock_limit.as_deref();
    let bytes = limit.and_then(|limit| limit.parse::<u64>().ok());
    let Some(bytes) = bytes.filter(|bytes| *bytes < LOCKED) else { return Vec::new() };
    // Sockets need none, and lose only the lock of their samples.
    let severity = if examined.ports.is_empty() { Note } else { Warning };
    let sentence = format!("a process may lock {} KiB of memory", bytes >> 10);
    let finding = Finding::new(severity, "", sentence)
        .costs("registering buffers fails, and samples may be paged out", "man ibv_reg_mr(3)")
        .advice("'* - memlock unlimited' in /etc/security/limits.d, LimitMEMLOCK= of a service");
    vec![finding]
}

pub(super) fn mitigations(examined: &Examined) -> Vec<Finding> {
    let acts = |(name, state): (&String, &String)| {
        state.starts_with("Mitigation").then(|| name.replace('_', " "))
    };
    let named: Vec<String> =
        examined.environment.processor.mitigations.iter().filter_map(acts).collect();
    if named.is_empty() || !(examined.wanted.sockets || examined.wanted.blocks) {
        return Vec::new();
    }
    let sentence = format!("the kernel acts against {}", named.join(", "));
    let finding = Finding::new(Note, "", sentence)
        .costs("each system call and interrupt", "kernel documentation, admin-guide/hw-vuln")
        .advice("mitigations=off at boot, only where nobody else's code runs");
    vec![finding]
}

pub(super) fn other_load(examined: &Examined) -> Vec<Finding> {
    let found = examined.warned("other_load").map(|warning| {
        Finding::of_warning(warning).costs(
            "the time for which it has a measuring CPU; which task: `wiregauge noise --together`",
            "scheduler",
        )
    });
    found.into_iter().collect()
}

pub(super) fn virtual_machine(examined: &Examined) -> Vec<Finding> {
    let found = examined.warned("virtual_machine").map(|warning| {
        Finding::of_warning(warning).costs(
            "the time for which its host takes a CPU away; how much: `wiregauge noise --together`",
            "steal of /proc/stat",
        )
    });
    found.into_iter().collect()
}
