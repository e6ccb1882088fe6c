//! Checks before the first round whether each host has enough local ports for its ends.

use std::collections::BTreeMap;
use wiregauge_host::Tree;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::topology::Topology;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_transport::{ENDS_OF_A_PORT, KernelPath, Role};

/// The widest range of ports to advise: those below belong to the system's services.
const WIDEST: (u16, u16) = (1024, 65535);
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
        for group in plan.groups() {
            let cases: Vec<&Case> = group.iter().map(|number| &plan.cases[*number]).collect();
            let needed = ports_of_group(&cases, number);
            ensure!(
                needed <= allowed,
                Fault::Refused(format!(
                    "{}{} needs {needed} local ports at the same time on {name}, and {SETTING} \
                     allows {allowed} ({first}-{last}): use fewer connections or threads{}",
                    cases[0].label(),
                    beside(cases.len() - 1),
                    advice(needed)
                ))
            );
        }
    }
    Ok(())
}

/// Returns how many cases run at the same time as one, for a sentence.
fn beside(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(", with what runs at the same time ({others} more),"),
    }
}

/// Returns how the range is widened, where that is enough.
fn advice(needed: u64) -> String {
    let (first, last) = WIDEST;
    if needed > u64::from(last - first) + 1 {
        return String::new();
    }
    format!(", or widen it (`sysctl -w {SETTING}='{first} {last}'`)")
}

/// Returns the local ports that cases which run at the same time take on a host. Datagram sockets
/// of different addresses may have the same port, and each case has servers of its own, so that
/// its connections may have the ports of another's.
fn ports_of_group(cases: &[&Case], host: Option<u32>) -> u64 {
    let mut datagrams = BTreeMap::<String, u64>::new();
    let mut most = 0;
    for case in cases {
        let path = case.transport.descriptor().kernel_path;
        let needed = ports_needed(path, &case.topology, host);
        if path == KernelPath::Datagrams {
            let address = format!("{:?}", (case.settings.interfaces(), case.settings.family()));
            *datagrams.entry(address).or_default() += needed;
        } else {
            most = most.max(needed);
        }
    }
    datagrams.into_values().max().unwrap_or(0).max(most)
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
    use wiregauge_base::options::Named;
    use wiregauge_plan::topology::Wiring;
    use wiregauge_transport::TransportKind;

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

    /// A latency over several connections.
    fn case(name: &str, connections: u32) -> Case {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        request.transports = vec![TransportKind::from_name(name).unwrap()];
        let mut case = request.plan().unwrap().cases[0].clone();
        let wiring = Wiring::Mesh { each: connections };
        case.topology = Topology::client_server(1, 1, wiring);
        case
    }

    #[test]
    fn datagrams_of_cases_at_the_same_time_take_the_sum_of_their_ports() {
        let [udp, more, tcp] = [case("udp", 10), case("udp", 20), case("tcp", 50)];
        assert_eq!(ports_of_group(&[&udp], None), 20);
        assert_eq!(ports_of_group(&[&udp, &more], None), 60);
        assert_eq!(ports_of_group(&[&udp, &more, &tcp], None), 60);
        assert_eq!(ports_of_group(&[&udp, &tcp, &tcp], None), 50);
        // An address of its own has ports of its own.
        let mut elsewhere = more.clone();
        elsewhere.settings.set("interface", "eth7").unwrap();
        assert_eq!(ports_of_group(&[&udp, &elsewhere], None), 40);
    }

    #[test]
    fn the_range_is_to_be_widened_where_that_is_enough() {
        assert!(advice(30_000).contains("='1024 65535'"), "{}", advice(30_000));
        assert!(advice(64_512).contains("sysctl") && advice(64_513).is_empty());
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
