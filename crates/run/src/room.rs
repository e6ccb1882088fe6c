//! Compares the memory and the threads that a plan's rounds need with those that its hosts have: a
//! round that lacks them would be killed by the kernel in the middle, or fail in ways that name no
//! limit.
//!
//! What is counted is what a round surely uses, so that nothing is refused that would run: sample
//! memory, which is touched before the first message, the transports' buffers, and the threads. The
//! rest of a process is small.

use crate::conditions::OVERHEAD_MESSAGES;
use std::collections::BTreeMap;
use wiregauge_base::units::Bytes;
use wiregauge_host::{Container, Environment, rounded};
use wiregauge_measure::agent::setup::setup;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::topology::Rank;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_sample::Sample;
use wiregauge_sample::arena::{Arena, Row};
use wiregauge_transport::Role;

/// Memory of an agent without samples and buffers, and of the controller: heap, stacks and tables.
/// A run of 1000 messages took 14 MB in its three processes.
const PROCESS_BYTES: u64 = 4 << 20;
/// Address space of an agent without these: program, libraries, stacks. One starts with 66 MB, and
/// not with 63.
const PROCESS_SPACE_BYTES: u64 = 58 << 20;
/// Memory of the controller for a message, which it joins from the rows of both ends: the sample,
/// its durations by two metrics, and these sorted. A latency of 600,000 messages took 112 B for
/// each without its rows, 300,000 of `oneway` 96 B.
const JOINED_BYTES: u64 = size_of::<Sample>() as u64 + 4 * size_of::<f64>() as u64;
/// Threads of an agent that run no loop: the main thread, and the one that hears the controller.
const AGENT_THREADS: u64 = 2;
/// Threads of the controller for an agent: one writes to it, one reads.
const CONTROLLER_THREADS: u64 = 2;

/// Needs of the rounds that run at the same time on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    /// Memory of all processes.
    memory: u64,
    /// Address space of the process that needs most.
    space: u64,
    /// The largest file, in memory too.
    file: u64,
    /// Memory that the process that has most of it registers with an adapter.
    registered: u64,
    /// Processes and threads that are started.
    tasks: u64,
}

/// Refuses a plan of which a round lacks memory or threads on a host.
pub(super) fn check(
    plan: &Plan,
    hosts: &[RemoteHost],
    environment: &Environment,
    rows: impl Fn(&Case, Role) -> u64,
) -> Result<(), Fault> {
    for group in plan.groups() {
        let mut needs = BTreeMap::<Option<u32>, Need>::new();
        for case in group.iter().map(|number| &plan.cases[*number]) {
            add_case(&mut needs, case, |role| rows(case, role));
        }
        let label = plan.label(group[0]);
        for (host, need) in needs {
            let there = host.and_then(|number| hosts.get(number as usize));
            let (on, environment) = match there {
                Some(there) => (format!("on {}: ", there.session.host()), &there.probe.environment),
                None => (String::new(), environment),
            };
            let lack = need.lack_in(&environment.container);
            let lack = lack.or_else(|| need.lack_of_host(environment.memory.available_bytes));
            if let Some(lack) = lack {
                return Err(Fault::Refused(format!("{on}a round of {label} needs {lack}")));
            }
        }
    }
    Ok(())
}

/// Adds what a case needs of each of its hosts; `rows` gives the samples of a thread of a role.
fn add_case(needs: &mut BTreeMap<Option<u32>, Need>, case: &Case, rows: impl Fn(Role) -> u64) {
    // A simulation runs all ranks in one process, one after the other.
    let processes = if case.transport.descriptor().one_process { 1 } else { usize::MAX };
    let ranks = case.topology.ranks.iter().take(processes);
    let mut messages = [0u64; 2];
    for Rank { role, host, threads } in ranks.clone() {
        let threads = u64::from(*threads);
        let rows = rows(*role);
        let arena = Arena::bytes_for(rows as usize) as u64;
        let counted = case.bound.count.map(|count| count.saturating_add(case.warmup).min(rows));
        let of_side = &mut messages[usize::from(role.side() == Role::Server)];
        *of_side = of_side.saturating_add(counted.unwrap_or(0).saturating_mul(threads));
        let memory = process_bytes(case, *role, threads, arena);
        let need = needs.entry(*host).or_default();
        need.memory = need.memory.saturating_add(memory);
        need.space = need.space.max(memory.saturating_add(PROCESS_SPACE_BYTES));
        need.file = need.file.max(arena);
        need.registered = need.registered.max(registered_bytes(case, *role, threads));
        need.tasks = need.tasks.saturating_add(AGENT_THREADS + threads);
    }
    let here = needs.entry(None).or_default();
    let joined = messages[0].max(messages[1]).saturating_mul(JOINED_BYTES);
    here.memory = here.memory.saturating_add(joined.saturating_add(PROCESS_BYTES));
    here.tasks = here.tasks.saturating_add(CONTROLLER_THREADS * ranks.count() as u64);
}

/// Returns the bytes of the buffers of a thread of a rank.
fn buffer_bytes(case: &Case, role: Role) -> u64 {
    let each = (case.transport.descriptor().least_buffer_bytes)(&setup(case, role, [0; 32]));
    each.saturating_mul(case.topology.endpoints_of_role(role).into())
}

/// Returns the bytes that the process of a rank registers with an adapter.
fn registered_bytes(case: &Case, role: Role, threads: u64) -> u64 {
    if case.transport.descriptor().registers_buffers {
        buffer_bytes(case, role).saturating_mul(threads)
    } else {
        0
    }
}

/// Returns the bytes that the process of a rank surely uses.
fn process_bytes(case: &Case, role: Role, threads: u64, arena: u64) -> u64 {
    let overhead = u64::from(OVERHEAD_MESSAGES) * size_of::<Row>() as u64;
    arena
        .saturating_add(overhead)
        .saturating_add(buffer_bytes(case, role))
        .saturating_add(case.pattern.memory(case, role))
        .saturating_mul(threads)
        .saturating_add(PROCESS_BYTES)
}

impl Need {
    /// Returns what a container lacks for it, and what to change.
    fn lack_in(&self, container: &Container) -> Option<String> {
        let needed = ceiling(self.memory);
        let fewer = "measure fewer messages (--count, --time)";
        if let Some(limit) = container.memory.filter(|limit| limit.left_bytes() < self.memory) {
            return Some(format!(
                "{needed} of memory, and the control group has {} left of {}: raise memory.max \
                 (docker --memory), or {fewer}",
                rounded(limit.left_bytes()),
                rounded(limit.limit_bytes)
            ));
        }
        if let Some(limit) = container.rlimit("as").filter(|limit| *limit < self.space) {
            return Some(format!(
                "a process of {} of address space, and it may have {} (RLIMIT_AS): raise it \
                 (ulimit -v unlimited), or {fewer}",
                ceiling(self.space),
                rounded(limit)
            ));
        }
        if let Some(limit) = container.rlimit("fsize").filter(|limit| *limit < self.file) {
            return Some(format!(
                "{} of sample memory, and a file may have {} (RLIMIT_FSIZE): raise it (ulimit -f \
                 unlimited), or {fewer}",
                ceiling(self.file),
                rounded(limit)
            ));
        }
        let may_lock = container.rlimit("memlock").filter(|_| !container.ipc_lock);
        if let Some(limit) = may_lock.filter(|limit| *limit < self.registered) {
            return Some(format!(
                "{} of memory registered with the adapter, and a process may lock {} \
                 (RLIMIT_MEMLOCK): raise it (ulimit -l unlimited), or use fewer connections or \
                 smaller messages",
                ceiling(self.registered),
                rounded(limit)
            ));
        }
        let tasks = container.tasks.filter(|tasks| tasks.left() < self.tasks)?;
        Some(format!(
            "{} more processes and threads, and the control group allows {} more of {}: raise \
             pids.max (docker --pids-limit, TasksMax=), or use fewer --threads or ranks",
            self.tasks,
            tasks.left(),
            tasks.limit
        ))
    }

    /// Returns what a host of which so much memory is available lacks for it.
    fn lack_of_host(&self, available_bytes: Option<u64>) -> Option<String> {
        let available = available_bytes.filter(|available| *available < self.memory)?;
        Some(format!(
            "{} of memory, and {} are available: free some, or measure fewer messages (--count, \
             --time)",
            ceiling(self.memory),
            rounded(available)
        ))
    }
}

/// Returns a size in whole MiB, rounded up, so that it stays above a limit that is rounded down.
fn ceiling(bytes: u64) -> Bytes {
    rounded(bytes.saturating_add((1 << 20) - 1).max(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_host::{MemoryLimit, TaskLimit};
    use wiregauge_transport::TransportKind;

    /// A round of a latency over tcp with `count` messages.
    fn case(count: u64, server: Option<u32>) -> Case {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        (request.count, request.sizes) = (Some(count), vec![Bytes(64)]);
        request.transports = vec![TransportKind::default()];
        let plan = request.plan().unwrap();
        let mut case = plan.cases[0].clone();
        case.topology.ranks[1].host = server;
        case
    }

    fn needs(case: &Case) -> BTreeMap<Option<u32>, Need> {
        let mut needs = BTreeMap::new();
        add_case(&mut needs, case, |_| case.bound.count.unwrap() + case.warmup);
        needs
    }

    #[test]
    fn memory_grows_with_the_messages_and_is_that_of_each_host() {
        let both = needs(&case(1_000_000, None))[&None];
        let row = size_of::<Row>() as u64;
        let each = 2 * row + JOINED_BYTES;
        let least = 1_000_000 * each;
        assert!((least..least + 30_000_000).contains(&both.memory), "{both:?}");
        assert_eq!(both.tasks, 2 * (AGENT_THREADS + 1) + 2 * CONTROLLER_THREADS);
        let apart = needs(&case(1_000_000, Some(0)));
        let [here, there] = [None, Some(0)].map(|host| apart[&host]);
        assert!(there.memory < here.memory && here.memory < both.memory, "{apart:?}");
        assert_eq!(there.tasks, AGENT_THREADS + 1);
        assert!(there.memory >= 1_000_000 * row && there.file == here.file, "{apart:?}");
    }

    /// A container with this resource limit.
    fn limit(name: &str, bytes: u64) -> Container {
        let rlimits = [(name.to_owned(), bytes.to_string())].into();
        Container { rlimits, ..Container::default() }
    }

    /// A container with 128 MiB of memory, of which this is used.
    fn of_memory(used_bytes: u64) -> Container {
        let memory = Some(MemoryLimit { limit_bytes: 128 << 20, used_bytes, cache_bytes: 0 });
        Container { memory, ..Container::default() }
    }

    /// A container with 64 tasks, of which these are used.
    fn of_tasks(used: u64) -> Container {
        Container { tasks: Some(TaskLimit { limit: 64, used }), ..Container::default() }
    }

    #[test]
    fn each_limit_that_is_too_tight_is_named_with_what_changes_it() {
        let need = Need {
            memory: 100 << 20,
            space: 116 << 20,
            file: 40 << 20,
            registered: 20 << 20,
            tasks: 10,
        };
        for (tight, enough, said) in [
            (of_memory(29 << 20), of_memory(28 << 20), "memory.max (docker --memory)"),
            (limit("as", (116 << 20) - 1), limit("as", 116 << 20), "ulimit -v unlimited"),
            (limit("fsize", 1 << 20), limit("fsize", 40 << 20), "ulimit -f unlimited"),
            (limit("memlock", 1 << 20), limit("memlock", 20 << 20), "ulimit -l unlimited"),
            (of_tasks(55), of_tasks(54), "pids.max (docker --pids-limit, TasksMax=)"),
        ] {
            let lack = need.lack_in(&tight).unwrap_or_default();
            assert!(lack.contains(said), "{lack}");
            assert_eq!(need.lack_in(&enough), None);
        }
        let lack = need.lack_in(&of_memory(29 << 20)).unwrap();
        assert!(lack.starts_with("100 MiB of memory, and the control group has 99 MiB left of "));
        assert_eq!(need.lack_in(&Container::default()), None);
        let root = Container { ipc_lock: true, ..limit("memlock", 1 << 20) };
        assert_eq!(need.lack_in(&root), None, "it may lock beyond the limit");
        assert!(need.lack_of_host(Some(99 << 20)).is_some_and(|lack| lack.contains("99 MiB")));
        assert_eq!((need.lack_of_host(Some(100 << 20)), need.lack_of_host(None)), (None, None));
    }
}
