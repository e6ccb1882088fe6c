//! Checks of the container: its control groups, resource limits, and its own network.

use super::examined::Examined;
use super::finding::Finding;
use crate::{CpuQuota, RAISE_MEMORY, RAISE_TASKS, format_cpus, rounded};
use wiregauge_base::warning::Severity::{Note, Warning};

/// With less memory a default run of a survey has no room: its samples and buffers take 40 MiB.
const MIN_MEMORY_BYTES: u64 = 64 << 20;
/// With fewer tasks a round of a few threads cannot start: each end has two more than its loops,
/// and the controller two for each end.
const MIN_TASKS: u64 = 32;
/// Fewer CPUs than this have both ends share one.
const MIN_CPUS: usize = 2;
/// Descriptors that a run of a few connections needs.
const MIN_DESCRIPTORS: u64 = 256;
/// Stack that the standard library gives a thread: a main thread with less may overflow.
const MIN_STACK_BYTES: u64 = 2 << 20;
/// The kernel's documentation of control groups.
const SOURCE: &str = "kernel documentation, admin-guide/cgroup-v2.rst";

pub(super) fn cpu_quota(examined: &Examined) -> Vec<Finding> {
    let container = &examined.environment.container;
    let Some(quota) = container.cpu_quota else { return Vec::new() };
    let CpuQuota { quota_us, period_us } = quota;
    let busy = examined.cpus.len().max(1);
    // Both ends that poll have no pause. A quota that has stopped the container does so again.
    let is_short = quota.cpus() < busy as f64 || container.throttled.times > 0;
    let times = match container.throttled.times {
        0 => String::new(),
        times => format!(", as {times} times so far"),
    };
    let sentence = format!(
        "a CPU quota stops the container after {quota_us} us of each {period_us} us{times}"
    );
    let finding = Finding::new(if is_short { Warning } else { Note }, "", sentence)
        .costs(format!("up to {period_us} us in which no task of it runs"), SOURCE)
        .advice("raise cpu.max (docker --cpus, CPUQuota= of a service, resources.limits.cpu)");
    vec![finding]
}

pub(super) fn cpuset(examined: &Examined) -> Vec<Finding> {
    let allowed = &examined.environment.container.cpuset_cpus;
    let all = examined.environment.processor.logical;
    if allowed.is_empty() || allowed.len() >= all as usize {
        return Vec::new();
    }
    let severity = if allowed.len() < MIN_CPUS { Warning } else { Note };
    let sentence = format!("the cpuset allows CPUs {} of {all}", format_cpus(allowed));
    let finding = Finding::new(severity, "", sentence)
        .costs("other CPUs cannot measure; with one CPU both ends take turns", SOURCE)
        .advice("add CPUs to cpuset.cpus (docker --cpuset-cpus), or move to a wider group");
    vec![finding]
}

pub(super) fn memory_limit(examined: &Examined) -> Vec<Finding> {
    let Some(limit) = examined.environment.container.memory else { return Vec::new() };
    let left = limit.left_bytes();
    let sentence = format!(
        "the container has {} of memory left of {}",
        rounded(left),
        rounded(limit.limit_bytes)
    );
    let severity = if left < MIN_MEMORY_BYTES { Warning } else { Note };
    let finding = Finding::new(severity, "", sentence)
        .costs("a run that needs more is refused; one that grows beyond is killed", SOURCE)
        .advice(RAISE_MEMORY);
    vec![finding]
}

pub(super) fn task_limit(examined: &Examined) -> Vec<Finding> {
    let tasks = examined.environment.container.tasks.filter(|tasks| tasks.left() < MIN_TASKS);
    let finding = tasks.map(|tasks| {
        let left = tasks.left();
        let sentence = format!("the container may start {left} more tasks (of {})", tasks.limit);
        Finding::new(Warning, "", sentence)
            .costs("a run that needs more threads is refused", SOURCE)
            .advice(RAISE_TASKS)
    });
    finding.into_iter().collect()
}

pub(super) fn process_limits(examined: &Examined) -> Vec<Finding> {
    let container = &examined.environment.container;
    let too_low = [
        ("as", "address space", u64::MAX, 'v'),
        ("fsize", "a file", u64::MAX, 'f'),
        ("nofile", "descriptors", MIN_DESCRIPTORS, 'n'),
        ("stack", "a stack", MIN_STACK_BYTES, 's'),
    ];
    let low = too_low.into_iter().filter_map(|(name, what, least, option)| {
        let limit = container.rlimit(name).filter(|limit| *limit < least)?;
        Some(match name {
            "nofile" => (format!("{limit} {what}"), format!("ulimit -{option} 1024")),
            _ => (format!("{what} of {}", rounded(limit)), format!("ulimit -{option} unlimited")),
        })
    });
    let (low, raise): (Vec<_>, Vec<_>) = low.unzip();
    if low.is_empty() {
        return Vec::new();
    }
    let finding = Finding::new(Warning, "", format!("a process is limited: {}", low.join(", ")))
        .costs(
            "a run that needs more is refused, or fails when it reaches the limit",
            "setrlimit(2)",
        )
        .advice(format!("raise it: {}", raise.join("; ")));
    vec![finding]
}

pub(super) fn loopback(examined: &Examined) -> Vec<Finding> {
    if examined.is_loopback_up || !examined.wanted.sockets {
        return Vec::new();
    }
    let finding = Finding::new(Warning, "lo", "the loopback interface is down")
        .costs("nothing passes between processes of this host over IP", "man ip-link(8)")
        .change("ip link set lo up", "ip link set lo down");
    vec![finding]
}
