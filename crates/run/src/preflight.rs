//! The pre-flight of the data path, before the first round: which ends of a plan must reach each
//! other over IP, whether they do, and what to change where they do not.

use crate::{RunContext, host_limits, resources};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{DataPath, RecordedWarning};
use wiregauge_host::{Container, Family, Tree, available_memory};
use wiregauge_measure::agent::setup::setup;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::pairs::HERE;
use wiregauge_plan::topology::Topology;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_remote::preflight::{PathEnd, TriedEnd, try_paths};
use wiregauge_transport::preflight::{
    ConnectFailure, LIMIT, MAX_PACKET, PeerReport, PreflightAddresses,
};
use wiregauge_transport::{Interfaces, KernelPath, Role, Site};

/// Bytes of an IP packet that each path carries.
const MIN_MTU: u32 = 1280;

/// The findings of a pre-flight.
#[derive(Default)]
pub struct Preflight {
    /// Each pair of ends that was tried.
    pub paths: Vec<DataPath>,
    /// Why cases cannot be measured, by their numbers.
    pub blocked: BTreeMap<usize, Fault>,
    /// Warnings for the record.
    pub warnings: Vec<RecordedWarning>,
}

/// An end of a plan.
#[derive(Clone, Debug, PartialEq)]
struct PlannedEnd {
    host: Option<u32>,
    site: Site,
    family: Option<Family>,
    device: Option<String>,
}

/// The properties of a case that decide which paths its data takes.
#[derive(PartialEq)]
struct Route<'a> {
    topology: &'a Topology,
    interfaces: Option<Interfaces>,
    family: Option<Family>,
}

/// The ends of a plan, and which of them must reach each other.
#[derive(Default)]
struct Ends {
    all: Vec<PlannedEnd>,
    /// Pairs of a client's and a server's end, by the number of the case.
    of_case: Vec<(usize, BTreeSet<(usize, usize)>)>,
}

impl Ends {
    /// Returns those of all cases over IP between hosts.
    fn of_plan(plan: &Plan, hosts: &[RemoteHost]) -> Ends {
        let mut ends = Ends::default();
        let mut routes = Vec::<(Route<'_>, usize)>::new();
        for (number, case) in plan.cases.iter().enumerate() {
            if !case.topology.is_between_hosts() || protocol(case).is_none() {
                continue;
            }
            let route = Route {
                topology: &case.topology,
                interfaces: case.settings.interfaces(),
                family: case.settings.family(),
            };
            let known = routes.iter().find(|(other, _)| *other == route);
            let pairs = match known {
                Some((_, known)) => ends.of_case[*known].1.clone(),
                None => ends.add(case, hosts),
            };
            routes.push((route, ends.of_case.len()));
            ends.of_case.push((number, pairs));
        }
        ends
    }

    /// Adds the ends of a case, and returns its pairs.
    fn add(&mut self, case: &Case, hosts: &[RemoteHost]) -> BTreeSet<(usize, usize)> {
        let topology = &case.topology;
        let ends: Vec<usize> =
            (0..topology.ranks.len()).map(|rank| self.number_of(end(case, rank, hosts))).collect();
        let mut pairs = BTreeSet::new();
        for rank in 0..ends.len() {
            let servers = topology.neighbours(rank).into_iter().filter(|other| {
                topology.side_towards(rank, *other) == Role::Client
                    && topology.ranks[rank].host != topology.ranks[*other].host
            });
            pairs.extend(servers.map(|server| (ends[rank], ends[server])));
        }
        pairs
    }

    fn number_of(&mut self, end: PlannedEnd) -> usize {
        let known = self.all.iter().position(|other| *other == end);
        known.unwrap_or_else(|| {
            self.all.push(end);
            self.all.len() - 1
        })
    }
}

/// Returns how the kernel carries the messages of a case between hosts, where that is over IP.
fn protocol(case: &Case) -> Option<KernelPath> {
    let path = case.transport.descriptor().kernel_path;
    matches!(path, KernelPath::Segments | KernelPath::Datagrams).then_some(path)
}

/// Returns the end of a rank, as its round will open it.
fn end(case: &Case, rank: usize, hosts: &[RemoteHost]) -> PlannedEnd {
    let of_rank = &case.topology.ranks[rank];
    let others = case.topology.ranks.iter().filter_map(|rank| hosts.get(rank.host? as usize));
    let site = match (case.settings.interfaces(), of_rank.host) {
        (Some(_), _) => setup(case, of_rank.role, [0; 32]).site,
        (None, Some(_)) => Site::Session,
        (None, None) => {
            let own = others.into_iter().find_map(|host| host.own);
            own.map_or(Site::Loopback, Site::Address)
        }
    };
    let device = match &site {
        Site::Interface(name) if case.topology.is_alone_on_host(rank) => Some(name.clone()),
        _ => None,
    };
    PlannedEnd { host: of_rank.host, site, family: case.settings.family(), device }
}

/// Checks what the hosts of a plan must have, and tries its data paths.
///
/// # Errors
/// A host lacks memory, threads, descriptors or local ports, the user has interrupted it, or no
/// case can be measured: the fault says why.
pub fn preflight(plan: &Plan, context: &RunContext<'_>) -> Result<Preflight, Fault> {
    let available = available_memory(&Tree::default());
    resources::check(plan, context.hosts, &Container::read(), available, |case, role| {
        context.analysis(case).rows(case, role)
    })?;
    host_limits::check(plan, context.hosts)?;
    let ends = Ends::of_plan(plan, context.hosts);
    if ends.of_case.is_empty() {
        return Ok(Preflight::default());
    }
    let opened: Vec<PathEnd<'_>> = ends.all.iter().map(|end| end.path_end(context.hosts)).collect();
    let pairs = ends.of_case.iter().flat_map(|(_, pairs)| pairs).copied().collect();
    let paths = Paths::tried(&opened, pairs, context.interrupted)?;
    let blocked: BTreeMap<usize, Fault> = ends
        .of_case
        .iter()
        .filter_map(|(number, pairs)| {
            let protocol = protocol(&plan.cases[*number])?;
            Some((*number, paths.blocked(pairs, protocol)?))
        })
        .collect();
    if let (true, Some(fault)) = (blocked.len() == plan.cases.len(), blocked.values().next()) {
        return Err(fault.clone());
    }
    let paths = paths.records();
    Ok(Preflight { warnings: paths.iter().flat_map(mtu_warnings).collect(), paths, blocked })
}

impl PlannedEnd {
    /// Returns the end at a site of a host, by whatever device and family.
    fn of_host(host: Option<u32>, site: Site) -> PlannedEnd {
        PlannedEnd { host, site, family: None, device: None }
    }

    fn path_end<'a>(&self, hosts: &'a [RemoteHost]) -> PathEnd<'a> {
        PathEnd {
            host: self.host.and_then(|number| hosts.get(number as usize)),
            site: self.site.clone(),
            family: self.family,
            device: self.device.clone(),
        }
    }
}

/// The data path between this host and each of others, in their order; why there is none where
/// ends could not even be opened.
///
/// # Errors
/// The user has interrupted it.
pub fn to_hosts(
    hosts: &[RemoteHost],
    interrupted: &AtomicBool,
) -> Result<Vec<Result<DataPath, Fault>>, Fault> {
    let mut ends = Ends::default();
    let pairs: Vec<(usize, usize)> = (0..)
        .zip(hosts)
        .map(|(number, host)| {
            let own = host.own.map_or(Site::Loopback, Site::Address);
            // One end here reaches all hosts to which it has the same address.
            let here = ends.number_of(PlannedEnd::of_host(None, own));
            (here, ends.number_of(PlannedEnd::of_host(Some(number), Site::Session)))
        })
        .collect();
    let opened: Vec<PathEnd<'_>> = ends.all.iter().map(|end| end.path_end(hosts)).collect();
    let paths = Paths::tried(&opened, pairs.iter().copied().collect(), interrupted)?;
    Ok(pairs.iter().map(|pair| paths.record(*pair)).collect())
}

/// Ends that have tried to reach each other.
struct Paths {
    names: Vec<String>,
    tried: Vec<Result<TriedEnd, Fault>>,
    pairs: BTreeSet<(usize, usize)>,
}

/// One end of a pair, and how it reached the other.
#[derive(Clone, Copy)]
struct Half<'a> {
    host: &'a str,
    addresses: &'a PreflightAddresses,
    report: &'a PeerReport,
}

/// A pair of ends.
struct TriedPair<'a> {
    client: Half<'a>,
    server: Half<'a>,
}

impl Paths {
    fn tried(
        ends: &[PathEnd<'_>],
        pairs: BTreeSet<(usize, usize)>,
        interrupted: &AtomicBool,
    ) -> Result<Paths, Fault> {
        let names = ends
            .iter()
            .map(|end| end.host.map_or(HERE, |host| host.session.host()).to_string())
            .collect();
        Ok(Paths { names, tried: try_paths(ends, &pairs, interrupted)?, pairs })
    }

    fn half(&self, own: usize, other: usize) -> Result<Half<'_>, Fault> {
        let tried = self.tried[own].as_ref().map_err(Fault::clone)?;
        let report = tried.reports.iter().find(|report| report.number as usize == other);
        let report = report.ok_or_else(|| Fault::new("an end of the pre-flight was not tried"))?;
        Ok(Half { host: &self.names[own], addresses: &tried.addresses, report })
    }

    /// Returns both halves of a pair; where one could not be opened, why.
    fn pair(&self, pair: (usize, usize)) -> Result<TriedPair<'_>, Fault> {
        let (client, server) = pair;
        for end in [client, server] {
            self.tried[end].as_ref().map_err(Fault::clone)?;
        }
        Ok(TriedPair { client: self.half(client, server)?, server: self.half(server, client)? })
    }

    /// Returns why a case with these pairs cannot be measured.
    fn blocked(&self, pairs: &BTreeSet<(usize, usize)>, protocol: KernelPath) -> Option<Fault> {
        let failed = pairs.iter().filter_map(|pair| match self.pair(*pair) {
            Err(fault) => Some(fault),
            Ok(pair) if protocol == KernelPath::Segments => pair.tcp().map(Fault::new),
            Ok(pair) => pair.udp().map(Fault::new),
        });
        let failed: Vec<Fault> = failed.collect();
        let first = failed.first()?;
        Some(match failed.len() - 1 {
            0 => first.clone(),
            more => Fault::of_agent(
                first.is_refused(),
                format!("{first} ({more} more of {} pairs are blocked)", pairs.len()),
            ),
        })
    }

    fn records(&self) -> Vec<DataPath> {
        self.pairs.iter().filter_map(|pair| self.record(*pair).ok()).collect()
    }

    fn record(&self, numbers: (usize, usize)) -> Result<DataPath, Fault> {
        let pair = self.pair(numbers)?;
        let TriedPair { client, server } = &pair;
        Ok(DataPath {
            client: client.host.to_string(),
            server: server.host.to_string(),
            client_address: client.addresses.udp.ip().to_string(),
            server_address: server.addresses.udp.ip().to_string(),
            client_interface: client.addresses.interface.clone(),
            server_interface: server.addresses.interface.clone(),
            client_mtu_bytes: client.addresses.mtu_bytes,
            server_mtu_bytes: server.addresses.mtu_bytes,
            tcp: pair.tcp(),
            tcp_back: TriedPair { client: *server, server: *client }.tcp(),
            udp: pair.udp(),
            to_server_bytes: largest(*client, *server),
            to_client_bytes: largest(*server, *client),
        })
    }
}

/// Returns the sizes of packets that came from one end to another.
fn passed<'a>(from: Half<'a>, to: Half<'a>) -> impl Iterator<Item = u32> + use<'a> {
    from.report.acknowledged.union(&to.report.received).copied()
}

/// Returns the size of the largest packet that came from one end to another.
fn largest(from: Half<'_>, to: Half<'_>) -> Option<u32> {
    passed(from, to).max()
}

/// Warns of an interface that sends packets which the other end does not get, though it gets
/// smaller ones.
pub fn mtu_warnings(path: &DataPath) -> Vec<RecordedWarning> {
    let DataPath { client, server, .. } = path;
    let there = (client, &path.client_interface, path.client_mtu_bytes, server);
    let back = (server, &path.server_interface, path.server_mtu_bytes, client);
    let found = [(there, path.to_server_bytes), (back, path.to_client_bytes)].into_iter();
    let found = found.filter_map(|((from, interface, mtu, to), passes)| {
        let mtu_bytes = mtu?.min(MAX_PACKET);
        let passes_bytes = passes?;
        let is_cut = passes_bytes < mtu_bytes && passes_bytes >= MIN_MTU.min(mtu_bytes);
        is_cut.then(|| Warning::PathMtu {
            from: shown(from).to_string(),
            to: shown(to).to_string(),
            interface: interface.clone().unwrap_or_default(),
            mtu_bytes,
            passes_bytes,
        })
    });
    found.map(|warning| RecordedWarning::from(&warning)).collect()
}

/// Returns a host in a sentence.
fn shown(host: &str) -> &str {
    if host == HERE { "this host" } else { host }
}

/// Returns an end in a sentence: its host and address.
fn named(end: Half<'_>, address: SocketAddr) -> String {
    format!("{} ({})", shown(end.host), address.ip())
}

impl TriedPair<'_> {
    /// Returns why the client cannot connect to the server.
    fn tcp(&self) -> Option<String> {
        let TriedPair { client, server } = self;
        let failure = client.report.tcp.as_ref()?;
        let at = server.addresses.tcp;
        let from = named(*client, client.addresses.tcp);
        let to = format!("TCP port {} of {}", at.port(), named(*server, at));
        let allow = "allow it in the firewalls of both (an agent's --ports name a range), or name \
                     an interface of each host with --interface";
        Some(match failure {
            ConnectFailure::Silent => {
                let within = LIMIT.as_secs_f64();
                format!("{from} gets no answer from {to} within {within} s: {allow}")
            }
            ConnectFailure::Refused => {
                format!("{from} is refused at {to}, where wiregauge listens: {allow}")
            }
            ConnectFailure::Failed(why) => format!("{from} cannot reach {to} ({why}): {allow}"),
            ConnectFailure::Foreign => format!(
                "another program answers {from} at {to}: the address is another host's, or that of \
                 a proxy: name an interface of each host with --interface"
            ),
        })
    }

    /// Returns why datagrams do not pass both ways.
    fn udp(&self) -> Option<String> {
        let TriedPair { client, server } = self;
        let there = largest(*client, *server);
        let back = largest(*server, *client);
        let (from, to) = match (there, back) {
            (Some(_), Some(_)) => return None,
            (None, _) => (client, server),
            (Some(_), None) => (server, client),
        };
        let at = to.addresses.udp;
        let why = from.report.unsent.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let only = if there.is_some() { "the other way they pass; " } else { "" };
        Some(format!(
            "no datagram of {} reaches UDP port {} of {}{why}: {only}allow them in the firewalls \
             of both (an agent's --ports name a range), or name an interface of each host \
             with --interface",
            named(*from, from.addresses.udp),
            at.port(),
            named(*to, at)
        ))
    }
}
