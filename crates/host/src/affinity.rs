//! Which CPUs to measure on, and binding a thread to one.

use super::{CpuPair, Tree, format_cpus};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, to sched_setaffinity(2).
const CALLER: Pid = Pid::from_raw(0);

/// The CPUs that were chosen for the two roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The CPUs of each thread of the two roles, at most as many pairs as were asked for: fewer
    /// where there are fewer CPUs. Both of a pair are the same where there is only one CPU. None
    /// where no CPU could be found out.
    pub pairs: Vec<CpuPair>,
    /// Why these, a sentence's end: "two cores of one NUMA node".
    pub why: String,
    /// Whether the two roles have to share one CPU: a busy wait then measures the scheduler.
    pub one_cpu: bool,
}

impl Choice {
    /// The CPUs of servers that have their host to themselves: those that were chosen for them,
    /// then the clients', at most one for each thread.
    pub fn of_servers(&self, threads: u32) -> Vec<u32> {
        let clients = self.pairs.iter().map(|pair| pair.client);
        let mut cpus: Vec<u32> = self.pairs.iter().map(|pair| pair.server).collect();
        cpus.extend(clients);
        // Of a single CPU.
        cpus.dedup();
        cpus.truncate(threads as usize);
        cpus
    }
}

/// The CPUs that this thread may use (sched_getaffinity), ascending. Empty where not known.
///
/// Limit: the 1024 CPUs of the C library's `cpu_set_t`; the kernel refuses a machine with more.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(CALLER) else { return Vec::new() };
    let is_set = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
    (0..CpuSet::count()).filter(is_set).map(|cpu| cpu as u32).collect()
}

/// A CPU that this thread may use and that does not measure, where there is one.
pub fn cpu_beside(measuring: &[u32]) -> Option<u32> {
    allowed_cpus().into_iter().rfind(|cpu| !measuring.contains(cpu))
}

/// Moves this thread off the measuring CPUs, where there is another one.
pub fn stay_off(measuring: &[u32]) {
    // Where that fails it disturbs the loop a little, and the measured noise shows it.
    let _ = cpu_beside(measuring).map(pin_to);
}

/// Binds the calling thread to one CPU. Threads that it starts later inherit the binding.
///
/// # Errors
/// What the kernel answered, in a sentence.
pub fn pin_to(cpu: u32) -> Result<(), String> {
    let mut set = CpuSet::new();
    let bound = set.set(cpu as usize).and_then(|()| sched_setaffinity(CALLER, &set));
    bound.map_err(|error| format!("cannot bind a thread to CPU {cpu}: {error}"))
}

/// Whether the calling thread could be bound to that CPU; its binding is as before afterwards.
fn can_pin_to(cpu: u32) -> bool {
    let Ok(before) = sched_getaffinity(CALLER) else { return false };
    pin_to(cpu).is_ok() && sched_setaffinity(CALLER, &before).is_ok()
}

/// Chooses two CPUs for the two roles on this machine, and as many again for each further thread.
///
/// CPUs that the kernel keeps free (`isolcpus`) are not in a process's mask by default; they are
/// candidates all the same, unless the mask was narrowed by somebody who meant it. `near` is the
/// NUMA node of the adapter that is measured, where there is one.
pub fn choose_pairs(near: Option<u32>, threads: u32) -> Choice {
    let tree = Tree::default();
    let mut candidates = allowed_cpus();
    let isolated = isolated(&tree);
    let online = tree.cpus(ONLINE).unwrap_or_default();
    let mask_is_the_default =
        online.iter().all(|cpu| candidates.contains(cpu) || isolated.contains(cpu));
    if mask_is_the_default {
        candidates.extend(isolated.into_iter().filter(|cpu| online.contains(cpu)));
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|&cpu| can_pin_to(cpu));
    }
    choose_among(&tree, &candidates, near, threads)
}

/// Checks the CPUs that a user named.
///
/// # Errors
/// One is not online, or this process may not use it (taskset, cpuset, container): a sentence.
pub fn check_cpus(cpus: &[u32]) -> Result<(), String> {
    check_in(&Tree::default(), &allowed_cpus(), cpus, can_pin_to)
}

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// CPUs that the scheduler leaves alone (`isolcpus=` or an isolated cpuset partition).
pub(super) fn isolated(tree: &Tree) -> Vec<u32> {
    tree.cpus("/sys/devices/system/cpu/isolated").unwrap_or_default()
}

fn check_in(
    tree: &Tree,
    allowed: &[u32],
    cpus: &[u32],
    can_pin_to: impl Fn(u32) -> bool,
) -> Result<(), String> {
    let online = tree.cpus(ONLINE);
    let names = || format_cpus(allowed);
    for cpu in cpus {
        if online.as_ref().is_some_and(|on| !on.contains(cpu)) {
            return Err(format!("CPU {cpu} is not online; this process may use {}", names()));
        }
        if !allowed.contains(cpu) && !can_pin_to(*cpu) {
            return Err(format!("this process may not use CPU {cpu}: use {}", names()));
        }
    }
    Ok(())
}

/// Where a CPU stands in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub cpu: u32,
    /// CPUs of the same physical core, itself included.
    pub siblings: Vec<u32>,
    pub node: Option<u32>,
    /// CPUs that share the last-level cache.
    pub cache: Option<Vec<u32>>,
    pub isolated: bool,
}

impl Place {
    pub fn of(tree: &Tree, cpu: u32) -> Place {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        let core = ["core_cpus_list", "thread_siblings_list"];
        let siblings = core.iter().find_map(|n| tree.cpus(&format!("{folder}/topology/{n}")));
        Place {
            cpu,
            siblings: siblings.unwrap_or_else(|| vec![cpu]),
            node: tree.numbered(&folder, "node").first().copied(),
            cache: tree.cpus(&format!("{folder}/cache/index3/shared_cpu_list")),
            isolated: isolated(tree).contains(&cpu),
        }
    }
}

/// What is wrong with a pair, the worst first: the pair with the smallest value is chosen.
///
/// Siblings share a core's ports and slow each other by an unknown amount, which spoils a figure;
/// another node, and one far from the adapter, only makes it larger. Isolation removes outliers; a
/// shared cache is what two neighbours on one node usually have; CPU 0 gets the interrupts that
/// nobody placed.
fn faults((a, b): (&Place, &Place), near: Option<u32>, many: bool) -> impl Ord + use<> {
    let is_remote = |place: &Place| u32::from(near.is_some() && place.node != near);
    (
        a.siblings.contains(&b.cpu),
        is_remote(a) + is_remote(b),
        a.node != b.node,
        u32::from(!a.isolated) + u32::from(!b.isolated),
        a.cache != b.cache,
        many && (a.cpu == 0 || b.cpu == 0),
        a.cpu,
        b.cpu,
    )
}

fn choose_among(tree: &Tree, candidates: &[u32], near: Option<u32>, threads: u32) -> Choice {
    if let &[cpu] = candidates {
        return Choice {
            pairs: vec![CpuPair { client: cpu, server: cpu }],
            why: format!("CPU {cpu} is the only one that this process may use"),
            one_cpu: true,
        };
    }
    let mut left: Vec<Place> = candidates.iter().map(|&cpu| Place::of(tree, cpu)).collect();
    let many = left.len() > 2 * threads as usize;
    let mut chosen: Vec<Place> = Vec::new();
    while chosen.len() < 2 * threads as usize
        && let Some((a, b)) = best_pair(&left, &chosen, near, many)
    {
        let of = |place: &Place| place.cpu == a.cpu || place.cpu == b.cpu;
        left.retain(|place| !of(place));
        chosen.extend([a, b]);
    }
    let Some([first, second]) = chosen.first_chunk() else {
        let why = "cannot read which CPUs this process may use".to_string();
        return Choice { pairs: Vec::new(), why, one_cpu: false };
    };
    let why = describe(first, second);
    let pair = |two: &[Place]| CpuPair { client: two[0].cpu, server: two[1].cpu };
    Choice { pairs: chosen.chunks_exact(2).map(pair).collect(), why, one_cpu: false }
}

/// The two of those left that are best beside those that were chosen before.
fn best_pair(
    left: &[Place],
    chosen: &[Place],
    near: Option<u32>,
    many: bool,
) -> Option<(Place, Place)> {
    let shares_core =
        |place: &Place| u32::from(chosen.iter().any(|other| place.siblings.contains(&other.cpu)));
    let after = |i: usize| left[i + 1..].iter();
    let pairs = left.iter().enumerate().flat_map(|(i, a)| after(i).map(move |b| (a, b)));
    let best =
        pairs.min_by_key(|(a, b)| (shares_core(a) + shares_core(b), faults((a, b), near, many)));
    best.map(|(a, b)| (a.clone(), b.clone()))
}

fn describe(a: &Place, b: &Place) -> String {
    let cores = if a.siblings.contains(&b.cpu) {
        "two hardware threads of one core (no second core is allowed)"
    } else {
        "two cores"
    };
    let node = match (a.node, b.node) {
        (Some(x), Some(y)) if x == y => format!(" of NUMA node {x}"),
        (Some(x), Some(y)) => format!(" of NUMA nodes {x} and {y}"),
        _ => String::new(),
    };
    let isolation = match (a.isolated, b.isolated) {
        (true, true) => ", both isolated",
        (false, false) => ", not isolated",
        _ => ", one of them isolated",
    };
    format!("{cores}{node}{isolation}")
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    fn machine(cores: u32, threads: u32, nodes: u32) -> Fake {
        Fake::new(&[]).with_cores(cores, threads, nodes)
    }

    fn chosen(fake: &Fake, candidates: &[u32]) -> Option<(u32, u32)> {
        let choice = choose_among(&fake.tree, candidates, None, 1);
        choice.pairs.first().map(|p| (p.client, p.server))
    }

    #[test]
    fn two_cores_and_never_two_threads_of_one_where_that_can_be() {
        assert_eq!(chosen(&machine(2, 2, 1), &[0, 1, 2, 3]), Some((1, 2)));
        assert_eq!(chosen(&machine(2, 2, 1), &[0, 2, 3]), Some((2, 3)));
        let only_siblings = choose_among(&machine(2, 2, 1).tree, &[1, 3], None, 1);
        assert_eq!(only_siblings.pairs, [CpuPair { client: 1, server: 3 }]);
        assert!(only_siblings.why.contains("one core"), "{}", only_siblings.why);
    }

    #[test]
    fn both_cpus_are_on_one_node_where_that_can_be() {
        assert_eq!(chosen(&machine(4, 1, 2), &[1, 2, 3]), Some((2, 3)));
        let apart = choose_among(&machine(4, 1, 2).tree, &[1, 2], None, 1);
        assert!(apart.why.contains("nodes 0 and 1"), "{}", apart.why);
    }

    #[test]
    fn the_adapter_s_node_comes_first_where_it_has_two_cores() {
        let near = |node| choose_among(&machine(4, 1, 2).tree, &[0, 1, 2, 3], node, 1).pairs;
        assert_eq!(near(None), [CpuPair { client: 2, server: 3 }]);
        assert_eq!(near(Some(0)), [CpuPair { client: 0, server: 1 }]);
        assert_eq!(near(Some(7)), [CpuPair { client: 2, server: 3 }]);
    }

    #[test]
    fn cpu_0_is_left_alone_where_there_are_more_than_two() {
        assert_eq!(chosen(&machine(4, 1, 1), &[0, 1, 2, 3]), Some((1, 2)));
        assert_eq!(chosen(&machine(2, 1, 1), &[0, 1]), Some((0, 1)));
    }

    #[test]
    fn isolated_cpus_come_first() {
        let fake = machine(6, 1, 1);
        fake.file("sys/devices/system/cpu/isolated", "4-5\n");
        let choice = choose_among(&fake.tree, &[0, 1, 2, 3, 4, 5], None, 1);
        assert_eq!(choice.pairs, [CpuPair { client: 4, server: 5 }]);
        assert!(choice.why.contains("both isolated"), "{}", choice.why);
    }

    #[test]
    fn a_shared_cache_is_preferred() {
        let fake = machine(4, 1, 1);
        for (cpu, cache) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list");
            fake.file(&path, cache);
        }
        assert_eq!(chosen(&fake, &[0, 1, 2, 3]), Some((2, 3)));
        assert_eq!(chosen(&fake, &[0, 1, 2]), Some((0, 1)));
    }

    #[test]
    fn one_cpu_is_shared_and_said_to_be() {
        let choice = choose_among(&machine(4, 1, 1).tree, &[3], None, 2);
        assert_eq!(choice.pairs, [CpuPair { client: 3, server: 3 }]);
        assert!(choice.one_cpu);
    }

    #[test]
    fn each_thread_has_a_pair_of_its_own_while_there_are_cpus() {
        let pairs = |fake: &Fake, candidates: &[u32], threads| {
            let choice = choose_among(&fake.tree, candidates, None, threads);
            choice.pairs.iter().map(|p| (p.client, p.server)).collect::<Vec<_>>()
        };
        let all: Vec<u32> = (0..8).collect();
        // CPU 0 only where it is needed, and both of a pair on one node.
        assert_eq!(pairs(&machine(8, 1, 2), &all, 2), [(1, 2), (4, 5)]);
        assert_eq!(pairs(&machine(8, 1, 2), &all, 4), [(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(pairs(&machine(8, 1, 1), &all, 9).len(), 4, "no CPU twice");
        assert_eq!(pairs(&machine(3, 1, 1), &[0, 1, 2], 2), [(0, 1)]);
        // A second thread of a core only where no core is left.
        assert_eq!(pairs(&machine(4, 2, 1), &all, 2), [(1, 2), (3, 4)]);
        assert_eq!(pairs(&machine(2, 2, 1), &[0, 1, 2, 3], 2), [(0, 1), (2, 3)]);
    }

    #[test]
    fn without_any_knowledge_of_the_machine_a_pair_is_still_chosen() {
        let nothing = Fake::new(&[]);
        assert_eq!(chosen(&nothing, &[0, 1, 2]), Some((1, 2)));
        assert_eq!(chosen(&nothing, &[]), None);
    }

    #[test]
    fn a_wrong_cpu_is_refused_in_a_sentence_that_names_the_right_ones() {
        let fake = machine(4, 1, 1);
        let check = |client, server| check_in(&fake.tree, &[0, 1, 2], &[client, server], |_| false);
        assert_eq!(check(1, 2), Ok(()));
        let offline = "CPU 9 is not online; this process may use 0-2".to_string();
        assert_eq!(check(1, 9), Err(offline));
        let forbidden = "this process may not use CPU 3: use 0-2".to_string();
        assert_eq!(check(3, 1), Err(forbidden));
    }

    #[test]
    fn a_cpu_beyond_every_mask_is_an_error_and_no_panic() {
        assert!(pin_to(1_000_000).is_err());
        assert!(check_cpus(&[1_000_000, 0]).is_err());
    }
}
