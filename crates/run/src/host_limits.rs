//! Checks before the first round whether each host has enough local ports for its ends.

use std::collections::BTreeMap;
use wiregauge_host::Tree;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Plan;
use wiregauge_plan::topology::Topology;
use wiregauge_remote::host::RemoteHost;
use wiregauge_transport::{ENDS_OF_A_PORT, KernelPath, Role};

/// The kernel's setting of the ports that it chooses from.
const SETTING: &str = "net.ipv4.ip_local_port_range";

/// Refuses a plan for which a host has too few local ports: the connection that is one too many
/// would fail in mid run, without naming what is short.
///
/// # Errors
/// The refusal, with the host and what is allowed.
pub fn check(plan: &Plan, hosts: &[RemoteHost]) -> Result<(), Fault> {
    let own = (None, wiregauge_host::sysctls(&Tree::default()), "this host");
    let others = (0..).zip(hosts).map(|(number, host)| {
        (Some(number), host.probe.environment.sysctls.clone(), host.session.host())
    });
    for (number, settings, name) in [own].into_iter().chain(others) {
        let Some((first, last)) = port_range(&settings) else { continue };
        let allowed = u64::from(last.saturating_sub(first)) + 1;
        for case in &plan.cases {
            let path = case.transport.descriptor().kernel_path;
            let needed = ports_needed(path, &case.topology, number);
            ensure!(
                needed <= allowed,
                Fault::Refused(format!(
                    "{} needs {needed} local ports at the same time on {name}, and {SETTING} \
                     allows {allowed} ({first}-{last}): use fewer connections or threads, or widen \
                     it (`sysctl -w {SETTING}='32768 60999'`)",
                    case.label()
                ))
            );
        }
    }
    Ok(())
}

/// Returns the first and the last port that the kernel of a host chooses from.
fn port_range(settings: &BTreeMap<String, String>) -> Option<(u16, u16)> {
    let (first, last) = settings.get(SETTING)?.split_once(' ')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Returns the local ports that the ends of a case take at the same time on a host. A datagram
/// socket has one of its own. Connections to one port of a server have different ones; those to
/// other ports may have the same.
fn ports_needed(path: KernelPath, topology: &Topology, host: Option<u32>) -> u64 {
    let ranks: Vec<(usize, u64)> = (0..topology.ranks.len())
        .filter(|rank| topology.ranks[*rank].host == host)
        .map(|rank| (rank, u64::from(topology.ranks[rank].threads)))
        .collect();
    match path {
        KernelPath::Datagrams => {
            ranks.iter().map(|(rank, n)| n * u64::from(topology.endpoints_of(*rank))).sum()
        }
        KernelPath::Segments => {
            let mut to_server = BTreeMap::<usize, u64>::new();
            for (rank, threads) in ranks {
                let others = topology.neighbours(rank).into_iter();
                for server in others.filter(|o| topology.side_towards(rank, *o) == Role::Client) {
                    let ends = u64::from(topology.endpoints_towards(server));
                    *to_server.entry(server).or_default() += threads * ends;
                }
            }
            let most = to_server.into_values().max().unwrap_or(0);
            most.min(ENDS_OF_A_PORT.into())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_plan::topology::Wiring;

    use KernelPath::{Bypassed, Datagrams, Segments};

    #[test]
    fn ports_are_counted_by_what_the_kernel_tells_apart() {
        let mesh = Topology::client_server(4, 2, Wiring::Mesh { each: 25 });
        assert_eq!(ports_needed(Segments, &mesh, None), 200);
        // Each end of both sides has its own.
        assert_eq!(ports_needed(Datagrams, &mesh, None), 400);
        assert_eq!(ports_needed(Bypassed, &mesh, None), 0);
        assert_eq!(ports_needed(Segments, &mesh, Some(0)), 0);
        // Each node listens at a port of its own.
        let nodes = Topology::nodes(5);
        assert_eq!(ports_needed(Segments, &nodes, None), 4);
        assert_eq!(ports_needed(Datagrams, &nodes, None), 20);
    }

    #[test]
    fn the_kernel_s_range_is_read_from_the_environment() {
        let mut settings = wiregauge_host::sysctls(&Tree::default());
        assert!(settings.contains_key(SETTING), "{settings:?}");
        settings.insert(SETTING.into(), "60000 60003".into());
        assert_eq!(port_range(&settings), Some((60_000, 60_003)));
        settings.remove(SETTING);
        assert_eq!(port_range(&settings), None);
    }
}
