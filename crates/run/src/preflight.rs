//! The pre-flight of the data path, before the first round: which ends of a plan must reach each
//! other over IP, whether they do, and what to change where they do not.

use crate::{RunContext, host_limits, resources};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{DataPath, RecordedWarning};
use wiregauge_host::{Container, Family, Tree, available_memory};
use wiregauge_measure::agent::setup::{device, setup};
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::pairs::HERE;
use wiregauge_plan::topology::Topology;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_remote::preflight::{
    MAX_CONCURRENT_OPENS, PairNeeds, Pairs, PathEnd, TriedEnd, try_paths,
};
use wiregauge_transport::preflight::{
    ConnectFailure, MAX_PACKET, PREFLIGHT_TIMEOUT, PeerReport, PreflightAddresses,
};
use wiregauge_transport::{Interfaces, KernelPath, Role, Site};

/// Bytes of an IP packet that each path carries.
const MIN_MTU: u32 = 1280;
/// Advice for a path that is blocked.
const REMEDY: &str = "allow it in the firewalls of both (an agent's --ports name a range), or name \
                      an interface of each host with --interface";

/// Findings of a pre-flight.
#[derive(Default)]
pub struct Preflight {
    /// Each pair of ends that was tried.
    pub paths: Vec<DataPath>,
    /// Why cases cannot be measured, by their numbers.
    pub blocked: BTreeMap<usize, Fault>,
    /// Warnings for the record.
    pub warnings: Vec<RecordedWarning>,
}

/// An end that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlannedEnd {
    host: Option<u32>,
    site: Site,
    family: Option<Family>,
    device: Option<String>,
}

impl PlannedEnd {
    /// Returns the end of a host at this site, and bound to its interface if that was named.
    fn of_host(host: Option<u32>, site: Site) -> PlannedEnd {
        let device = match &site {
            Site::Interface(name) => Some(name.clone()),
            Site::Loopback | Site::Address(_) | Site::Session => None,
        };
        PlannedEnd { host, site, family: None, device }
    }

    /// Returns it with its host, of those that it is numbered by.
    fn path_end<'a>(&self, hosts: &[&'a RemoteHost]) -> PathEnd<'a> {
        PathEnd {
            host: self.host.and_then(|number| hosts.get(number as usize).copied()),
            site: self.site.clone(),
            family: self.family,
            device: self.device.clone(),
        }
    }
}

/// Ends, each once.
#[derive(Default)]
struct PlannedEnds {
    all: Vec<PlannedEnd>,
    numbers: HashMap<PlannedEnd, usize>,
}

impl PlannedEnds {
    fn number_of(&mut self, end: PlannedEnd) -> usize {
        *self.numbers.entry(end).or_insert_with_key(|end| {
            self.all.push(end.clone());
            self.all.len() - 1
        })
    }

    /// Returns them with their hosts, of those that they are numbered by.
    fn opened_at<'a>(&self, hosts: &[&'a RemoteHost]) -> Vec<PathEnd<'a>> {
        self.all.iter().map(|end| end.path_end(hosts)).collect()
    }
}

/// The properties of a case that decide which paths its data takes.
#[derive(PartialEq, Eq, Hash)]
struct Route<'a> {
    topology: &'a Topology,
    interfaces: Option<Interfaces>,
    family: Option<Family>,
}

/// A case over IP between hosts.
struct PlannedCase {
    number: usize,
    protocol: KernelPath,
    /// The position of its pairs of ends.
    route: usize,
}

/// The ends of a plan, and which of them must reach each other.
#[derive(Default)]
struct PlannedPaths {
    ends: PlannedEnds,
    /// Pairs of a client's and a server's end.
    routes: Vec<BTreeSet<(usize, usize)>>,
    cases: Vec<PlannedCase>,
}

impl PlannedPaths {
    /// Returns those of all cases over IP between hosts.
    fn of_plan(plan: &Plan, hosts: &[RemoteHost]) -> PlannedPaths {
        let mut paths = PlannedPaths::default();
        let mut known = HashMap::<Route<'_>, usize>::new();
        for (number, case) in plan.cases.iter().enumerate() {
            let Some(protocol) = protocol(case).filter(|_| case.topology.is_between_hosts()) else {
                continue;
            };
            let route = Route {
                topology: &case.topology,
                interfaces: case.settings.interfaces(),
                family: case.settings.family(),
            };
            let route = *known.entry(route).or_insert_with(|| paths.add_route(case, hosts));
            paths.cases.push(PlannedCase { number, protocol, route });
        }
        paths
    }

    /// Adds the ends and pairs of a case, and returns their position.
    fn add_route(&mut self, case: &Case, hosts: &[RemoteHost]) -> usize {
        let topology = &case.topology;
        let ends: Vec<usize> = (0..topology.ranks.len())
            .map(|rank| self.ends.number_of(end(case, rank, hosts)))
            .collect();
        let mut pairs = BTreeSet::new();
        for rank in 0..ends.len() {
            let servers = topology.neighbours(rank).into_iter().filter(|other| {
                topology.side_towards(rank, *other) == Role::Client
                    && topology.ranks[rank].host != topology.ranks[*other].host
            });
            pairs.extend(servers.map(|server| (ends[rank], ends[server])));
        }
        self.routes.push(pairs);
        self.routes.len() - 1
    }

    /// Returns all pairs, with what the cases need of each: servers do not connect.
    fn pairs(&self) -> Pairs {
        let mut all = Pairs::new();
        for case in &self.cases {
            let is_segments = case.protocol == KernelPath::Segments;
            let needs = PairNeeds { tcp: is_segments, tcp_back: false, udp: !is_segments };
            for pair in &self.routes[case.route] {
                all.entry(*pair).or_default().add(needs);
            }
        }
        all
    }
}

/// Returns how the kernel carries the messages of a case between hosts, where that is over IP.
fn protocol(case: &Case) -> Option<KernelPath> {
    Some(case.transport.descriptor().kernel_path).filter(|path| path.is_over_ip())
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
    let device = device(case, rank, &site);
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
    let planned = PlannedPaths::of_plan(plan, context.hosts);
    if planned.cases.is_empty() {
        return Ok(Preflight::default());
    }
    let hosts: Vec<&RemoteHost> = context.hosts.iter().collect();
    let ends = planned.ends.opened_at(&hosts);
    let paths = TriedPaths::try_all(&ends, planned.pairs(), context.interrupted)?;
    let blocked: BTreeMap<usize, Fault> = planned
        .cases
        .iter()
        .filter_map(|case| {
            let fault = paths.blocked(&planned.routes[case.route], case.protocol)?;
            Some((case.number, fault))
        })
        .collect();
    if let (true, Some(fault)) = (blocked.len() == plan.cases.len(), blocked.values().next()) {
        return Err(fault.clone());
    }
    let paths = paths.records();
    Ok(Preflight { warnings: paths.iter().flat_map(mtu_warnings).collect(), paths, blocked })
}

/// A host, and the interfaces by which it is to be reached.
pub struct HostPath<'a> {
    /// The host.
    pub host: &'a RemoteHost,
    /// The interface of this host; `None`: that of the route to the other one's address.
    pub own_interface: Option<String>,
    /// The interface there; `None`: that which the session reached.
    pub interface: Option<String>,
}

impl HostPath<'_> {
    /// Returns the site of this host's end.
    fn own_site(&self) -> Result<Site, Fault> {
        let by_route = self.host.own.map(Site::Address);
        if let Some(site) = named_site(self.own_interface.as_ref()).or(by_route) {
            return Ok(site);
        }
        let name = self.host.session.host();
        let named = "name a network interface of each host with --interface";
        let address = self.host.probe.address.ok_or_else(|| {
            Fault::Refused(format!(
                "{name} has no address that this host can use for data: {named}"
            ))
        })?;
        let own = wiregauge_host::address_towards(address).map_err(|error| {
            Fault::new(format!("no route to {address}, the address of {name} ({error}): {named}"))
        })?;
        Ok(Site::Address(own))
    }
}

/// Returns the site of an interface that was named.
fn named_site(interface: Option<&String>) -> Option<Site> {
    interface.cloned().map(Site::Interface)
}

/// Tries the data path between this host and each of others; returns them in their order, and why
/// there is none where ends could not even be opened. They are tried some at a time, since sessions
/// that wait too long for others are ended.
///
/// # Errors
/// The user has interrupted it.
pub fn to_hosts(
    hosts: &[HostPath<'_>],
    interrupted: &AtomicBool,
) -> Result<Vec<Result<DataPath, Fault>>, Fault> {
    let mut all = Vec::with_capacity(hosts.len());
    for some in hosts.chunks(MAX_CONCURRENT_OPENS) {
        all.extend(to_some_hosts(some, interrupted)?);
    }
    Ok(all)
}

fn to_some_hosts(
    hosts: &[HostPath<'_>],
    interrupted: &AtomicBool,
) -> Result<Vec<Result<DataPath, Fault>>, Fault> {
    let mut ends = PlannedEnds::default();
    let pairs: Vec<Result<(usize, usize), Fault>> = (0..)
        .zip(hosts)
        .map(|(number, host)| {
            // One end here reaches all hosts to which it has the same address.
            let here = ends.number_of(PlannedEnd::of_host(None, host.own_site()?));
            let site = named_site(host.interface.as_ref()).unwrap_or(Site::Session);
            Ok((here, ends.number_of(PlannedEnd::of_host(Some(number), site))))
        })
        .collect();
    let hosts: Vec<&RemoteHost> = hosts.iter().map(|path| path.host).collect();
    let needs = pairs.iter().flatten().map(|pair| (*pair, PairNeeds::ALL)).collect();
    let paths = TriedPaths::try_all(&ends.opened_at(&hosts), needs, interrupted)?;
    Ok(pairs.into_iter().map(|pair| paths.record(pair?)).collect())
}

/// Ends that have tried to reach each other.
struct TriedPaths {
    names: Vec<String>,
    tried: Vec<Result<TriedEnd, Fault>>,
    pairs: Pairs,
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

impl TriedPaths {
    fn try_all(
        ends: &[PathEnd<'_>],
        pairs: Pairs,
        interrupted: &AtomicBool,
    ) -> Result<TriedPaths, Fault> {
        let names = ends.iter().map(|end| end.name().to_string()).collect();
        Ok(TriedPaths { names, tried: try_paths(ends, &pairs, interrupted)?, pairs })
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
            Ok(pair) if protocol == KernelPath::Segments => pair.tcp(),
            Ok(pair) => pair.udp(),
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
        self.pairs.keys().filter_map(|pair| self.record(*pair).ok()).collect()
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
            tcp: pair.tcp().map(|fault| fault.to_string()),
            tcp_back: TriedPair { client: *server, server: *client }
                .tcp()
                .map(|fault| fault.to_string()),
            udp: pair.udp().map(|fault| fault.to_string()),
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

impl Half<'_> {
    /// Returns it in a sentence: its host and address.
    fn shown(&self) -> String {
        format!("{} ({})", shown(self.host), self.addresses.udp.ip())
    }

    /// Returns one of its ports in a sentence.
    fn shown_port(&self, protocol: &str, at: SocketAddr) -> String {
        format!("{protocol} port {} of {}", at.port(), self.shown())
    }

    /// Returns why its daemon does not let it send anything to the other.
    fn refusal(&self) -> Option<Fault> {
        let sentence = self.report.refused.as_ref()?;
        Some(Fault::Refused(format!("{}: {sentence}", shown(self.host))))
    }
}

impl TriedPair<'_> {
    /// Returns why the client cannot connect to the server, if it has tried.
    fn tcp(&self) -> Option<Fault> {
        let TriedPair { client, server } = self;
        if let (Some(_), Some(refusal)) = (server.addresses.tcp, client.refusal()) {
            return Some(refusal);
        }
        let failure = client.report.tcp.as_ref()?.as_ref().err()?;
        // A server accepts whoever comes from an address that its daemon allows, whichever it was
        // told of: so that it refuses that one matters only where nobody was let in.
        if let (ConnectFailure::Closed, Some(refusal)) = (failure, server.refusal()) {
            return Some(refusal);
        }
        let from = client.shown();
        let to = server.shown_port("TCP", server.addresses.tcp?);
        Some(Fault::new(match failure {
            ConnectFailure::Silent => {
                let within = PREFLIGHT_TIMEOUT.as_secs_f64();
                format!("{from} gets no answer from {to} within {within} s: {REMEDY}")
            }
            ConnectFailure::Refused => {
                format!("{from} is refused at {to}, where wiregauge listens: {REMEDY}")
            }
            ConnectFailure::Closed => format!(
                "{to} closes each connection of {from} at once: an agent there allows no such \
                 address (--peers), or the port is another program's: name an interface of each \
                 host with --interface"
            ),
            ConnectFailure::Failed(why) => format!("{from} cannot reach {to} ({why}): {REMEDY}"),
            ConnectFailure::Foreign => format!(
                "another program answers {from} at {to}: the address is another host's, or that of \
                 a proxy: name an interface of each host with --interface"
            ),
        }))
    }

    /// Returns why datagrams do not pass both ways.
    fn udp(&self) -> Option<Fault> {
        let TriedPair { client, server } = self;
        // Each end of a round connects its socket to the other's address.
        if let Some(refusal) = client.refusal().or_else(|| server.refusal()) {
            return Some(refusal);
        }
        let there = largest(*client, *server);
        let back = largest(*server, *client);
        let (from, to) = match (there, back) {
            (Some(_), Some(_)) => return None,
            (None, _) => (client, server),
            (Some(_), None) => (server, client),
        };
        let why = from.report.unsent.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let only = if there.is_some() { "the other way they pass; " } else { "" };
        Some(Fault::new(format!(
            "no datagram of {} reaches {}{why}: {only}{}",
            from.shown(),
            to.shown_port("UDP", to.addresses.udp),
            REMEDY.replace("allow it", "allow them")
        )))
    }
}

#[cfg(test)]
mod tests;
