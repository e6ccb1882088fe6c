//! The CPUs of the two roles, a pair for each thread.

use super::Watcher;
use crate::host::{self, Choice, CpuPair, format_cpus};
use crate::plan::{Case, Plan};
use crate::run::conditions::pair_of;
use crate::transport::Role;

/// The NUMA node of the adapter, where all cases are near the same.
fn near(plan: &Plan) -> Option<u32> {
    let mut nodes: Vec<Option<u32>> =
        plan.cases.iter().map(|case| case.transport.numa_node(&case.settings)).collect();
    nodes.dedup();
    if let &[node] = nodes.as_slice() { node } else { None }
}

/// Most threads of a case.
fn threads(plan: &Plan) -> u32 {
    plan.cases.iter().map(Case::most_threads).max().unwrap_or(1)
}

/// This host's CPUs: those that were asked for, or the best for this plan; a pair for each thread
/// while there are as many.
fn choose(plan: &Plan) -> Choice {
    let both_here = plan.cases.iter().any(|case| !case.topology.is_between_hosts());
    let chosen = match plan.cpus.as_slice() {
        [] => host::choose_pairs(near(plan), plan.cpus_at_once()),
        asked => Choice {
            pairs: asked.to_vec(),
            why: "as requested".into(),
            one_cpu: asked[0].client == asked[0].server,
        },
    };
    Choice { one_cpu: both_here && chosen.one_cpu, ..chosen }
}

/// The measuring CPUs of this host, each once where there are several pairs.
pub(super) fn of_this_host(plan: &Plan, pairs: &[CpuPair]) -> Vec<u32> {
    let is_here = |role: &Role| plan.cases.iter().any(|case| case.host_of(*role).is_none());
    let roles: Vec<Role> = [Role::Client, Role::Server].into_iter().filter(is_here).collect();
    of_roles(&roles, pairs)
}

fn of_roles(roles: &[Role], pairs: &[CpuPair]) -> Vec<u32> {
    let of = |pair: &CpuPair| {
        let cpus = roles.iter().map(|role| role.pick(pair.client, pair.server));
        cpus.collect::<Vec<u32>>()
    };
    let mut all: Vec<u32> = pairs.iter().flat_map(of).collect();
    if pairs.len() > 1 {
        all.sort_unstable();
        all.dedup();
    }
    all
}

/// The CPUs of the threads of a case, and how many different ones each end has at least.
pub(super) fn of_case(pairs: &[CpuPair], threads: u32) -> (Vec<CpuPair>, usize) {
    let of: Vec<CpuPair> = (0..threads as usize).filter_map(|n| pair_of(pairs, n)).collect();
    let distinct = |side: fn(&CpuPair) -> u32| {
        let mut cpus: Vec<u32> = of.iter().map(side).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    };
    let least = distinct(|pair| pair.client).min(distinct(|pair| pair.server));
    (of, least)
}

/// The same, told to who watches where there are several threads.
pub(super) fn choose_and_tell(plan: &Plan, watcher: &mut dyn Watcher) -> Choice {
    let choice = choose(plan);
    if let Some(told) = told(plan, &choice.pairs, &choice.why) {
        watcher.cpus(&told);
    }
    choice
}

/// What is said before the first round of a plan of several threads.
fn told(plan: &Plan, pairs: &[CpuPair], why: &str) -> Option<String> {
    let threads = threads(plan);
    if threads == 1 {
        return None;
    }
    if pairs.is_empty() {
        return Some(format!("{threads} threads of each end run on any CPU: {why}"));
    }
    let (of, _) = of_case(pairs, threads);
    let side = |cpu: fn(&CpuPair) -> u32| {
        let mut cpus: Vec<u32> = of.iter().map(cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        format_cpus(&cpus)
    };
    Some(format!(
        "{threads} threads of each end: the client's on CPU {}, the server's on CPU {} ({why})",
        side(|pair| pair.client),
        side(|pair| pair.server)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(u32, u32)]) -> Vec<CpuPair> {
        all.iter().map(|&(client, server)| CpuPair { client, server }).collect()
    }

    #[test]
    fn threads_take_turns_where_there_are_fewer_cpus() {
        let four = pairs(&[(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(of_case(&four, 2), (pairs(&[(0, 1), (2, 3)]), 2));
        assert_eq!(of_case(&four[..2], 3), (pairs(&[(0, 1), (2, 3), (0, 1)]), 2));
        assert_eq!(of_case(&[], 3), (vec![], 0));
    }

    #[test]
    fn each_cpu_of_this_host_is_named_once_but_for_a_single_pair() {
        assert_eq!(of_roles(&[Role::Client, Role::Server], &pairs(&[(3, 3)])), [3, 3]);
        assert_eq!(of_roles(&[Role::Client, Role::Server], &pairs(&[(0, 1), (2, 1)])), [0, 1, 2]);
    }
}
