//! The CPUs of the two roles, a pair for each thread.

use super::Watcher;
use std::collections::BTreeSet;
use wiregauge_analysis::cpus::{of_case, sides};
use wiregauge_host::{Choice, CpuPair, format_cpus};
use wiregauge_plan::{Case, Plan};
use wiregauge_transport::Role;

/// The NUMA node of this host's adapters, where those of all cases are near the same.
fn near(plan: &Plan) -> Option<u32> {
    let of = |case: &Case| {
        let roles = [Role::Client, Role::Server].into_iter();
        let here = roles.filter(|role| case.topology.host_of(*role).is_none());
        let node = case.transport.descriptor().numa_node;
        here.map(|role| node(&case.settings, role)).collect::<Vec<_>>()
    };
    let nodes: BTreeSet<Option<u32>> = plan.cases.iter().flat_map(of).collect();
    if nodes.len() == 1 { nodes.into_iter().next()? } else { None }
}

/// This host's CPUs: those that were asked for, or the best for this plan; a pair for each thread
/// while there are as many. They are reported where there are several threads.
pub(super) fn choose(plan: &Plan, watcher: &mut dyn Watcher) -> Choice {
    let both_here = plan.cases.iter().any(|case| !case.topology.is_between_hosts());
    let chosen = match plan.cpus.as_slice() {
        [] => wiregauge_host::choose_pairs(near(plan), plan.cpus_at_once()),
        asked => Choice {
            pairs: asked.to_vec(),
            why: "as requested".into(),
            one_cpu: asked[0].client == asked[0].server,
        },
    };
    let threads = plan.cases.iter().map(|case| case.topology.most_threads()).max().unwrap_or(1);
    if threads > 1 {
        watcher.cpus(&report(threads, &chosen));
    }
    Choice { one_cpu: both_here && chosen.one_cpu, ..chosen }
}

/// Where several threads run.
fn report(threads: u32, Choice { pairs, why, .. }: &Choice) -> String {
    if pairs.is_empty() {
        return format!("{threads} threads of each end run on any CPU: {why}");
    }
    let (of, _) = of_case(pairs, threads);
    let [clients, servers] = sides(&of).map(|cpus| format_cpus(&Vec::from_iter(cpus)));
    format!(
        "{threads} threads of each end: the client's on CPU {clients}, the server's on CPU \
         {servers} ({why})"
    )
}

/// The measuring CPUs of this host, each once where there are several pairs.
pub(super) fn of_this_host(plan: &Plan, pairs: &[CpuPair]) -> Vec<u32> {
    let is_here =
        |role: &Role| plan.cases.iter().any(|case| case.topology.host_of(*role).is_none());
    let roles: Vec<Role> = [Role::Client, Role::Server].into_iter().filter(is_here).collect();
    of_roles(&roles, pairs)
}

fn of_roles(roles: &[Role], pairs: &[CpuPair]) -> Vec<u32> {
    let of = |pair: &CpuPair| -> Vec<u32> {
        roles.iter().map(|role| role.pick(pair.client, pair.server)).collect()
    };
    match pairs {
        [one] => of(one),
        several => several.iter().flat_map(of).collect::<BTreeSet<u32>>().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(u32, u32)]) -> Vec<CpuPair> {
        all.iter().map(|&(client, server)| CpuPair { client, server }).collect()
    }

    #[test]
    fn each_cpu_of_this_host_is_named_once_but_for_a_single_pair() {
        assert_eq!(of_roles(&[Role::Client, Role::Server], &pairs(&[(3, 3)])), [3, 3]);
        assert_eq!(of_roles(&[Role::Client, Role::Server], &pairs(&[(0, 1), (2, 1)])), [0, 1, 2]);
    }
}
