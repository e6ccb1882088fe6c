//! Compares the memory, threads and descriptors that the rounds of a plan use with those that its
//! hosts have: a round that lacks them would be killed by the kernel in the middle, or fail in ways
//! that name no limit.
//!
//! The demand is a lower bound, so that nothing is refused that would run: sample memory and
//! buffers that are touched before the first message, threads, and descriptors. The rest of a
//! process is small.

use crate::conditions::OVERHEAD_MESSAGES;
use std::collections::BTreeMap;
use wiregauge_base::units::Bytes;
use wiregauge_host::{Container, HARD_NOFILE, RAISE_MEMORY, RAISE_TASKS, rounded};
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
/// Threads of an agent that run no loop: the main thread, and those that watch over the session,
/// obey the controller and wake the loops.
const AGENT_THREADS: u64 = 4;
/// Further threads of an agent on another host: the one that watches the loops.
const REMOTE_AGENT_THREADS: u64 = 1;
/// Threads of the controller for an agent: one writes to it, one reads.
const CONTROLLER_THREADS: u64 = 2;
/// Descriptors of a process that belong to no end: the standard streams.
const STANDARD_STREAMS: u64 = 3;
/// Advice against a demand for memory.
const FEWER: &str = "measure fewer messages (--count, --time)";

/// Resources of a host, or of a process on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demand {
    /// Memory of all processes.
    memory: u64,
    /// Address space of the process that needs most.
    space: u64,
    /// The largest file, in memory too.
    file: u64,
    /// Memory that the process that has most of it registers with an adapter.
    registered: u64,
    /// Descriptors of the process that needs most.
    descriptors: u64,
    /// Processes and threads that are started.
    tasks: u64,
}

/// Refuses a plan of which a round lacks resources on a host. `container` and `available_bytes` are
/// the limits and the memory of this host, `rows` the samples of a thread of a role.
///
/// # Errors
/// The refusal, with what is needed, what there is, and what to change.
pub(super) fn check(
    plan: &Plan,
    hosts: &[RemoteHost],
    container: &Container,
    available_bytes: Option<u64>,
    rows: impl Fn(&Case, Role) -> u64,
) -> Result<(), Fault> {
    for group in plan.groups() {
        let mut demands = BTreeMap::<Option<u32>, Demand>::new();
        for case in group.iter().map(|number| &plan.cases[*number]) {
            add_case(&mut demands, case, |role| rows(case, role));
        }
        if group.len() > 1 {
            // Each case has a thread of the controller.
            demands.entry(None).or_default().tasks += group.len() as u64;
        }
        let label = plan.label(group[0]);
        for (host, demand) in demands {
            let host = host.and_then(|number| hosts.get(number as usize));
            let environment = host.map(|host| &host.probe.environment);
            let on = host.map(|host| format!("on {}: ", host.session.host())).unwrap_or_default();
            let container = environment.map_or(container, |there| &there.container);
            let available =
                environment.map_or(available_bytes, |there| there.memory.available_bytes);
            let missing = demand.missing_in_container(container);
            if let Some(missing) = missing.or_else(|| demand.missing_on_host(available)) {
                return Err(Fault::Refused(format!("{on}a round of {label} needs {missing}")));
            }
        }
    }
    Ok(())
}

/// Adds what a case needs of each of its hosts; `rows` gives the samples of a thread of a role.
fn add_case(demands: &mut BTreeMap<Option<u32>, Demand>, case: &Case, rows: impl Fn(Role) -> u64) {
    // A simulation runs all ranks in one process, one after the other.
    let processes = if case.transport.descriptor().one_process { 1 } else { usize::MAX };
    let ranks = case.topology.ranks.iter().zip(case.topology.endpoints_of_each()).take(processes);
    let mut messages = [0u64; 2];
    for (rank, endpoints) in ranks.clone() {
        let rows = rows(rank.role);
        let counted = case.bound.count.map(|count| count.saturating_add(case.warmup).min(rows));
        let of_side = &mut messages[usize::from(rank.role.side() == Role::Server)];
        let of_rank = counted.unwrap_or(0).saturating_mul(rank.threads.into());
        *of_side = of_side.saturating_add(of_rank);
        demands.entry(rank.host).or_default().add(Demand::of_rank(case, rank, endpoints, rows));
    }
    let joined = messages[0].max(messages[1]).saturating_mul(JOINED_BYTES);
    demands.entry(None).or_default().add(Demand {
        memory: joined.saturating_add(PROCESS_BYTES),
        tasks: CONTROLLER_THREADS * ranks.count() as u64,
        ..Demand::default()
    });
}

impl Demand {
    /// Returns the demand of the process of a rank, each of whose threads has these numbers of
    /// endpoints and samples.
    fn of_rank(case: &Case, rank: &Rank, endpoints: u32, rows: u64) -> Demand {
        let Rank { role, host, threads } = *rank;
        let threads = u64::from(threads);
        let endpoints = u64::from(endpoints);
        let transport = case.transport.descriptor();
        let setup = setup(case, role, [0; 32]);
        let samples = Arena::bytes_for(rows as usize) as u64;
        let overhead = u64::from(OVERHEAD_MESSAGES) * size_of::<Row>() as u64;
        let buffers = (transport.least_buffer_bytes)(&setup).saturating_mul(endpoints);
        let registered = (transport.least_registered_bytes)(&setup).saturating_mul(endpoints);
        let memory = samples
            .saturating_add(overhead)
            .saturating_add(buffers)
            .saturating_add(case.pattern.least_memory(case, role))
            .saturating_mul(threads)
            .saturating_add(PROCESS_BYTES);
        let helpers = u64::from(case.pattern.helper_threads(case, role));
        let remote = if host.is_some() { REMOTE_AGENT_THREADS } else { 0 };
        Demand {
            memory,
            space: memory.saturating_add(PROCESS_SPACE_BYTES),
            file: samples,
            registered: registered.saturating_mul(threads),
            // Of one thread, since each may have a table of its own.
            descriptors: u64::from(transport.least_descriptors) * endpoints + STANDARD_STREAMS,
            tasks: AGENT_THREADS + remote + threads * (1 + helpers),
        }
    }

    /// Adds what another process of the host needs.
    fn add(&mut self, other: Demand) {
        *self = Demand {
            memory: self.memory.saturating_add(other.memory),
            space: self.space.max(other.space),
            file: self.file.max(other.file),
            registered: self.registered.max(other.registered),
            descriptors: self.descriptors.max(other.descriptors),
            tasks: self.tasks.saturating_add(other.tasks),
        };
    }

    /// Returns what a container has too little of, and what to change.
    fn missing_in_container(&self, container: &Container) -> Option<String> {
        let memory = container.memory.map(|limit| Check {
            needed: self.memory,
            available: limit.left_bytes(),
            sentence: format!(
                "{} of memory, and the control group has {} left of {}: {RAISE_MEMORY}, or {FEWER}",
                round_up_to_mib(self.memory),
                rounded(limit.left_bytes()),
                rounded(limit.limit_bytes)
            ),
        });
        let tasks = container.tasks.map(|limit| Check {
            needed: self.tasks,
            available: limit.left(),
            sentence: format!(
                "{} more processes and threads, and the control group allows {} more of {}: \
                 {RAISE_TASKS}, or use fewer --threads or ranks",
                self.tasks,
                limit.left(),
                limit.limit
            ),
        });
        let limits = [
            check_bytes(container, self.space, &ADDRESS_SPACE),
            check_bytes(container, self.file, &FILE),
            check_bytes(container, self.registered, &LOCKED).filter(|_| !container.ipc_lock),
            self.check_descriptors(container),
        ];
        let checks = std::iter::once(memory).chain(limits).chain([tasks]).flatten();
        checks.filter(|check| check.available < check.needed).map(|check| check.sentence).next()
    }

    fn check_descriptors(&self, container: &Container) -> Option<Check> {
        let needed = self.descriptors;
        let available = container.rlimit(HARD_NOFILE)?;
        let sentence = format!(
            "{needed} file descriptors in a process, and it may have {available} (RLIMIT_NOFILE): \
             raise it (ulimit -Hn {needed}, as root), or use fewer connections"
        );
        Some(Check { needed, available, sentence })
    }

    /// Returns what a host of which so much memory is available has too little of.
    fn missing_on_host(&self, available_bytes: Option<u64>) -> Option<String> {
        let available = available_bytes.filter(|available| *available < self.memory)?;
        Some(format!(
            "{} of memory, and {} are available: free some, or {FEWER}",
            round_up_to_mib(self.memory),
            rounded(available)
        ))
    }
}

/// A demand, what there is, and the sentence for the case that this is less.
struct Check {
    needed: u64,
    available: u64,
    sentence: String,
}

/// A resource limit in bytes, in the words of a refusal.
struct ByteLimit {
    /// Name in [`Container::rlimits`].
    name: &'static str,
    /// Words for the demand, behind its amount.
    demand: &'static str,
    /// Words for what is limited, before the limit.
    owner: &'static str,
    /// Command that raises it.
    raise: &'static str,
    /// Advice against the demand.
    lower: &'static str,
}

const ADDRESS_SPACE: ByteLimit = ByteLimit {
    name: "as",
    demand: "of address space for a process",
    owner: "it may have",
    raise: "ulimit -v unlimited",
    lower: FEWER,
};
const FILE: ByteLimit = ByteLimit {
    name: "fsize",
    demand: "of sample memory",
    owner: "a file may have",
    raise: "ulimit -f unlimited",
    lower: FEWER,
};
const LOCKED: ByteLimit = ByteLimit {
    name: "memlock",
    demand: "of memory registered with the adapter",
    owner: "a process may lock",
    raise: "ulimit -l unlimited",
    lower: "use fewer connections or smaller messages",
};

/// Compares a demand with a limit of the process, where there is one.
fn check_bytes(container: &Container, needed: u64, limit: &ByteLimit) -> Option<Check> {
    let available = container.rlimit(limit.name)?;
    let ByteLimit { name, demand, owner, raise, lower } = limit;
    let sentence = format!(
        "{} {demand}, and {owner} {} (RLIMIT_{}): raise it ({raise}), or {lower}",
        round_up_to_mib(needed),
        rounded(available),
        name.to_uppercase()
    );
    Some(Check { needed, available, sentence })
}

/// Returns a size in whole MiB, rounded up, so that it stays above a limit that is rounded down.
fn round_up_to_mib(bytes: u64) -> Bytes {
    rounded(bytes.saturating_add((1 << 20) - 1).max(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::options::Named;
    use wiregauge_host::{MemoryLimit, TaskLimit};
    use wiregauge_transport::TransportKind;

    /// A round of a latency with `count` messages.
    fn case(transport: TransportKind, count: u64) -> Case {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        (request.count, request.sizes) = (Some(count), vec![Bytes(64)]);
        request.transports = vec![transport];
        request.plan().unwrap().cases[0].clone()
    }

    /// A round over tcp with its server on this host.
    fn case_towards(server: Option<u32>) -> Case {
        let mut case = case(TransportKind::default(), 1_000_000);
        case.topology.ranks[1].host = server;
        case
    }

    fn demands(case: &Case) -> BTreeMap<Option<u32>, Demand> {
        let mut demands = BTreeMap::new();
        add_case(&mut demands, case, |_| case.bound.count.unwrap() + case.warmup);
        demands
    }

    #[test]
    fn memory_grows_with_the_messages_and_is_that_of_each_host() {
        let both = demands(&case_towards(None))[&None];
        let row = size_of::<Row>() as u64;
        let each = 2 * row + JOINED_BYTES;
        let least = 1_000_000 * each;
        assert!((least..least + 30_000_000).contains(&both.memory), "{both:?}");
        // Of each of two agents five, and of the controller two for each.
        assert_eq!(both.tasks, 14);
        let apart = demands(&case_towards(Some(0)));
        let [here, there] = [None, Some(0)].map(|host| apart[&host]);
        assert!(there.memory < here.memory && here.memory < both.memory, "{apart:?}");
        assert_eq!((here.tasks, there.tasks), (9, 6));
        assert!(there.memory >= 1_000_000 * row && there.file == here.file, "{apart:?}");
    }

    #[test]
    fn ends_of_verbs_register_two_pages_each() {
        let mut case = case(TransportKind::from_name("verbs").unwrap(), 1000);
        let wiring = wiregauge_plan::topology::Wiring::Mesh { each: 4 };
        case.topology = wiregauge_plan::topology::Topology::client_server(1, 1, wiring);
        // A page for what is sent, and one for 16 arrivals of 192 B.
        assert_eq!(demands(&case)[&None].registered, 4 * 8192);
        case.settings.set("huge-pages", "on").unwrap();
        assert_eq!(demands(&case)[&None].registered, 4 * (2 << 20));
        case.settings.set("on-demand", "explicit").unwrap();
        assert_eq!(demands(&case)[&None].registered, 0, "pages are not locked");
    }

    #[test]
    fn a_node_at_the_edge_of_a_star_has_the_buffers_of_one_connection() {
        let mut case = case(TransportKind::default(), 1);
        let star = (1..1001).map(|node| (0, node));
        case.topology = wiregauge_plan::topology::Topology::nodes_connected(1001, star);
        let [hub, edge] = [1000, 1].map(|endpoints| {
            let rank = &case.topology.ranks[0];
            Demand::of_rank(&case, rank, endpoints, 1)
        });
        let all = demands(&case)[&None];
        assert_eq!(all.descriptors, 1003, "{all:?}");
        assert!(all.memory < 1001 * hub.memory / 2, "{all:?}");
        assert!(hub.memory > edge.memory + 900 * 8192, "{hub:?} {edge:?}");
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
        let demand = Demand {
            memory: 100 << 20,
            space: 116 << 20,
            file: 40 << 20,
            registered: 20 << 20,
            descriptors: 2003,
            tasks: 10,
        };
        for (tight, enough, said) in [
            (of_memory(29 << 20), of_memory(28 << 20), "memory.max (docker --memory, "),
            (limit("as", (116 << 20) - 1), limit("as", 116 << 20), "ulimit -v unlimited"),
            (limit("fsize", 1 << 20), limit("fsize", 40 << 20), "ulimit -f unlimited"),
            (limit("memlock", 1 << 20), limit("memlock", 20 << 20), "ulimit -l unlimited"),
            (limit(HARD_NOFILE, 2002), limit(HARD_NOFILE, 2003), "ulimit -Hn 2003"),
            (of_tasks(55), of_tasks(54), "pids.max (docker --pids-limit, TasksMax="),
        ] {
            let missing = demand.missing_in_container(&tight).unwrap_or_default();
            assert!(missing.contains(said), "{missing}");
            assert_eq!(demand.missing_in_container(&enough), None);
        }
        let missing = demand.missing_in_container(&of_memory(29 << 20)).unwrap();
        assert!(
            missing.starts_with("100 MiB of memory, and the control group has 99 MiB left of ")
        );
        assert_eq!(demand.missing_in_container(&Container::default()), None);
        let root = Container { ipc_lock: true, ..limit("memlock", 1 << 20) };
        assert_eq!(demand.missing_in_container(&root), None, "it may lock beyond the limit");
        let on_host = demand.missing_on_host(Some(99 << 20)).unwrap();
        assert!(on_host.contains("99 MiB"), "{on_host}");
        let enough = [Some(100 << 20), None].map(|available| demand.missing_on_host(available));
        assert_eq!(enough, [None, None]);
    }
}
