//! `hosts`, and other hosts before anything runs there: reached, probed, and left as they were.

use super::console::{complain, show, whole_layout};
use super::process::{interrupts, program};
use super::{CommandError, Exit};
use crate::cli::HostsOptions;
use crate::clock::Source;
use crate::control::fault::Fault;
use crate::control::protocol;
use crate::host::doctor::Use;
use crate::host::{self, Container, CpuPair, TOOL_VERSION};
use crate::plan::pairs::HERE;
use crate::plan::rails::{RailKind, RailPort};
use crate::plan::{HostSpec, Pairs, Place};
use crate::record::schema::{DataPath, RecordedWarning, Unavailable};
use crate::remote::host::RemoteHost;
use crate::report::table::{self, Cell, Grid, Tone};
use crate::report::warnings;
use crate::run::preflight::{self, HostPath};
use crate::transport::{Interfaces, Role, Settings, TransportKind};
use serde::Serialize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use wiregauge_base::threads;

/// Most hosts that are reached at the same time.
const AT_ONCE: usize = 64;

/// Returns the transports whose paths are tried.
fn path_transports() -> impl Iterator<Item = TransportKind> {
    TransportKind::ALL.iter().filter(|one| one.descriptor().kernel_path.is_over_ip()).copied()
}

/// What is to be known of other hosts.
#[derive(Default)]
pub struct ProbeRequest {
    /// The transports that are to be measured.
    pub transports: Vec<TransportKind>,
    /// The network interfaces of both ends.
    pub interfaces: Option<Interfaces>,
    /// The CPUs of both ends, a pair for each thread; none: chosen.
    pub cpus: Vec<CpuPair>,
    /// Most threads of a case.
    pub threads: u32,
    /// The clock.
    pub clock: Option<Source>,
    /// What is to be measured there, where the host is to be examined.
    pub checkup: Option<Use>,
}

impl ProbeRequest {
    /// What is asked of a host of a role; of one that plays both there is one interface, and no CPU
    /// was named.
    fn of(&self, spec: &HostSpec, role: Role) -> protocol::HostProbeRequest {
        let names = self.interfaces.as_ref();
        let own = spec.own.get("interface").cloned();
        protocol::HostProbeRequest {
            transports: self.transports.clone(),
            interface: own.or(names.map(|names| names.of(role).to_string())),
            cpus: self.cpus.iter().map(|pair| role.pick(pair.client, pair.server)).collect(),
            threads: self.threads,
            clock: self.clock,
            checkup: self.checkup.clone(),
        }
    }
}

/// Reaches and probes hosts, does something with them, and leaves them as they were.
pub fn with_hosts<T>(
    hosts: &[(HostSpec, Role)],
    probe: &ProbeRequest,
    work: impl FnOnce(&mut [RemoteHost]) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let mut hosts = reach(hosts, probe)?;
    let done = work(&mut hosts);
    leave(hosts);
    done
}

/// Reaches and probes hosts, all of them or none.
fn reach(
    hosts: &[(HostSpec, Role)],
    probe: &ProbeRequest,
) -> Result<Vec<RemoteHost>, CommandError> {
    let (mut reached, mut faults) = (Vec::new(), Vec::new());
    for host in reach_each(hosts, probe)? {
        match host {
            Ok(host) => reached.push(host),
            Err(fault) => faults.push(fault),
        }
    }
    let interrupted = faults.iter().any(Fault::is_interrupted);
    let Some(first) = faults.iter().find(|fault| fault.is_interrupted() == interrupted) else {
        return Ok(reached);
    };
    leave(reached);
    let sentence = match faults.len() - 1 {
        more if more > 0 && !interrupted => format!("{first}; {more} more hosts cannot be used"),
        _ => first.to_string(),
    };
    Err(Fault::of_agent(first.is_refused(), sentence).into())
}

/// A host as it is reported.
#[derive(Default, Serialize)]
struct HostReport {
    host: String,
    reached: bool,
    /// Why not.
    fault: Option<String>,
    /// What weakens figures taken there.
    warnings: Vec<RecordedWarning>,
    address: Option<String>,
    tool: Option<&'static str>,
    name: Option<String>,
    kernel: Option<String>,
    processor: Option<String>,
    cpus: Option<usize>,
    /// Limits by control groups and of the process.
    container: Option<Container>,
    /// Limits in a few words.
    limits: Option<String>,
    clock: Option<String>,
    clock_residual_ppb: Option<f64>,
    transports: Vec<&'static str>,
    /// The data path from this host to it.
    path: Option<DataPath>,
}

impl HostReport {
    fn new(spec: &HostSpec, host: &Result<RemoteHost, Fault>) -> HostReport {
        let report = HostReport { host: spec.host.clone(), ..HostReport::default() };
        let host = match host {
            Ok(host) => host,
            Err(fault) => return HostReport { fault: Some(fault.to_string()), ..report },
        };
        let (probe, environment) = (&host.probe, &host.probe.environment);
        let warnings = environment.warnings(&probe.cpus);
        let warnings = warnings.iter().map(|one| RecordedWarning::on_host(one, &spec.host));
        let between = TransportKind::ALL.iter().filter(|one| one.descriptor().between_hosts);
        HostReport {
            reached: true,
            warnings: warnings.collect(),
            address: probe.address.map(|address| address.to_string()),
            // Another version was refused when it greeted.
            tool: Some(TOOL_VERSION),
            name: Some(environment.host.clone()),
            kernel: environment.kernel.clone(),
            processor: environment.processor.model.clone(),
            cpus: Some(environment.cpus.len()),
            container: Some(environment.container.clone()),
            limits: Some(environment.container.shown(environment.processor.logical))
                .filter(|limits| !limits.is_empty()),
            clock: Some(probe.clock.source.clone()),
            clock_residual_ppb: Some(probe.clock.residual_ppb),
            transports: between
                .filter(|one| probe.unavailable.iter().all(|(other, _)| other != *one))
                .map(|one| one.name())
                .collect(),
            ..report
        }
    }
}

impl HostReport {
    /// Takes what the pre-flight has found. A path that carries neither TCP nor datagrams is none.
    fn take_path(&mut self, path: Result<DataPath, Fault>) {
        match path {
            Ok(path) => {
                let both = [&path.tcp, &path.udp].into_iter().flatten();
                let wrong: Vec<&str> = both.map(String::as_str).collect();
                self.fault = (!wrong.is_empty()).then(|| wrong.join("; "));
                self.warnings.extend(preflight::mtu_warnings(&path));
                self.path = Some(path);
            }
            Err(fault) => self.fault = Some(fault.to_string()),
        }
    }

    /// Returns true if TCP or datagrams pass, or another transport is there and these are not.
    fn is_usable(&self) -> bool {
        match &self.path {
            Some(path) => path.tcp.is_none() || path.udp.is_none(),
            None => !self.transports.is_empty() && !self.has_path_transports(),
        }
    }

    /// Returns true if a transport is there whose paths are tried.
    fn has_path_transports(&self) -> bool {
        path_transports().any(|one| self.transports.contains(&one.name()))
    }

    /// Returns the data path in a cell: the largest packet that passes both ways.
    fn path_cell(&self) -> String {
        let Some(path) = &self.path else {
            let is_allowed = !self.reached || self.has_path_transports();
            return if is_allowed { "-" } else { "not allowed" }.into();
        };
        match (&path.tcp, &path.udp, path.to_server_bytes.min(path.to_client_bytes)) {
            (None, None, Some(bytes)) => format!("{bytes} B"),
            (None, ..) => "TCP".into(),
            (Some(_), None, _) => "UDP".into(),
            (Some(_), Some(_), _) => "no".into(),
        }
    }
}

/// Checks hosts and the data paths to them, and reports what they have.
pub fn hosts(asked: HostsOptions) -> Result<Exit, CommandError> {
    let HostsOptions { hosts, interfaces, own_interface, json, .. } = asked;
    let own = interfaces.as_ref().map(|names| names.of(Role::Client).to_string());
    let own = own_interface.or(own);
    let transports = TransportKind::ALL.to_vec();
    let probe = ProbeRequest { transports, threads: 1, interfaces, ..ProbeRequest::default() };
    let asked: Vec<(HostSpec, Role)> = hosts.into_iter().map(|spec| (spec, Role::Server)).collect();
    let found = reach_each(&asked, &probe)?;
    let reports = asked.iter().zip(&found).map(|((spec, _), host)| HostReport::new(spec, host));
    let mut reports: Vec<HostReport> = reports.collect();
    let mut paths = Vec::new();
    let mut tried = Vec::new();
    for (((spec, role), host), report) in asked.iter().zip(&found).zip(&mut reports) {
        let Ok(host) = host else { continue };
        match path_refusal(host) {
            Some(why) => report.fault = Some(why),
            None => {
                let interface = probe.of(spec, *role).interface;
                paths.push(HostPath { host, own_interface: own.clone(), interface });
                tried.push(report);
            }
        }
    }
    let results = preflight::to_hosts(&paths, &*interrupts()?);
    leave(found.into_iter().filter_map(Result::ok).collect());
    tried.into_iter().zip(results?).for_each(|(report, path)| report.take_path(path));
    let exit = if reports.iter().all(|one| one.fault.is_none()) {
        Exit::RIGHT
    } else if reports.iter().any(HostReport::is_usable) {
        Exit::INCOMPLETE
    } else {
        Exit::NOTHING
    };
    show(json, reports.as_slice(), table)?;
    Ok(exit)
}

/// Returns why no path to a host is tried: neither transport is there, as where a daemon does not
/// allow them.
fn path_refusal(host: &RemoteHost) -> Option<String> {
    let mut reasons = Vec::new();
    for transport in path_transports() {
        let mut all = host.probe.unavailable.iter();
        let (_, why) = all.find(|(one, _)| *one == transport)?;
        reasons.push(why.as_str());
    }
    Some(format!("no data path is tried: {}", reasons.join("; ")))
}

fn table(reports: &[HostReport]) -> String {
    #[rustfmt::skip]
    let mut grid = Grid::new([
        "host", "reached", "address", "data path", "version", "kernel", "CPU", "limits", "clock",
        "within ppm", "transports", "warnings",
    ]);
    let text = |text: &Option<String>| Cell::from(text.as_deref());
    for one in reports {
        grid.row([
            one.host.as_str().into(),
            if one.reached { "yes" } else { "no" }.into(),
            text(&one.address),
            one.path_cell().as_str().into(),
            one.tool.into(),
            text(&one.kernel),
            text(&one.processor),
            text(&one.limits),
            text(&one.clock),
            one.clock_residual_ppb.map(|ppb| Cell::number(ppb / 1e3)).into(),
            one.transports.join(" ").into(),
            Cell::Count(one.warnings.len() as u64),
        ]);
    }
    let layout = whole_layout();
    let (mut text, _) = grid.text(&layout);
    for one in reports {
        if let Some(fault) = &one.fault {
            text.append(layout.sentence(&format!("fault: {}: {fault}", one.host), Tone::Bad));
        }
    }
    let warnings = reports.iter().flat_map(|one| &one.warnings).map(|warning| (warning, None));
    text.append(table::warnings(&warnings::grouped(warnings), &layout));
    text.to_string()
}

/// The other hosts of a place, each with the role by which its interface and CPU are named.
pub fn others(place: &Place) -> Vec<(HostSpec, Role)> {
    let role = |position| match (place.which, position) {
        (Pairs::First, 1) => Role::Server,
        _ => Role::Client,
    };
    let nodes = place.all_nodes().enumerate();
    nodes.filter_map(|(position, node)| Some((node.clone()?, role(position)))).collect()
}

/// Each host that was reached, or why it cannot be used.
fn reach_each(
    hosts: &[(HostSpec, Role)],
    probe: &ProbeRequest,
) -> Result<Vec<Result<RemoteHost, Fault>>, CommandError> {
    let (interrupted, program) = (interrupts()?, program()?);
    let next = AtomicUsize::new(0);
    let found: Vec<OnceLock<_>> = hosts.iter().map(|_| OnceLock::new()).collect();
    let reach_some = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some((spec, role)) = hosts.get(number)
        {
            let reach = || RemoteHost::reach(spec, probe.of(spec, *role), &program, &interrupted);
            found[number].get_or_init(reach);
        }
    };
    std::thread::scope(|scope| {
        // Of threads that cannot be started this one does the work.
        for _ in 1..hosts.len().min(AT_ONCE) {
            let _ = threads::spawn_scoped("reach a host", scope, reach_some);
        }
        reach_some();
    });
    Ok(found.into_iter().filter_map(OnceLock::into_inner).collect())
}

/// The properties of each host that was reached, or why it was not; each is left as it was.
pub fn probe_each(
    hosts: &[(HostSpec, Role)],
    probe: &ProbeRequest,
) -> Result<Vec<Result<protocol::HostProbe, String>>, CommandError> {
    let mut probes = Vec::new();
    for host in reach_each(hosts, probe)? {
        probes.push(host.map_err(|fault| fault.to_string()).map(|host| {
            let probe = host.probe.clone();
            leave(vec![host]);
            probe
        }));
    }
    Ok(probes)
}

/// Fills in the rails of a place, where they were asked for, by the ports that its hosts have for
/// these transports.
pub fn find_rails(
    place: &mut Place,
    transports: &[TransportKind],
    hosts: &[RemoteHost],
) -> Result<(), CommandError> {
    let is_here = place.nodes.contains(&None);
    let Some(rails) = &mut place.rails else { return Ok(()) };
    let kind = transports.iter().find_map(|one| RailKind::of_transport(*one));
    let kind = kind.unwrap_or(RailKind::Rdma);
    let own = is_here.then(|| match kind {
        RailKind::Rdma => rail_ports(host::active_rdma_ports(&host::Tree::default())),
        RailKind::Ip => rail_interfaces(host::ip_interfaces()),
    });
    let others = hosts.iter().map(|host| {
        let probe = &host.probe;
        let ports = match kind {
            RailKind::Rdma => rail_ports(probe.rdma_ports.clone()),
            RailKind::Ip => rail_interfaces(probe.ip_interfaces.clone()),
        };
        (host.session.host(), ports)
    });
    Ok(rails.found(kind, own.map(|ports| (HERE, ports)), others.collect())?)
}

fn rail_ports(ports: Vec<host::RdmaPort>) -> Vec<RailPort> {
    ports.into_iter().map(RailPort::from).collect()
}

fn rail_interfaces(names: Vec<String>) -> Vec<RailPort> {
    names.into_iter().map(RailPort::of_interface).collect()
}

/// Leaves them as they were.
fn leave(hosts: Vec<RemoteHost>) {
    for stays in hosts.into_iter().filter_map(|host| host.leave().err()) {
        complain(&stays);
    }
}

/// The transports that work where ends are to be; the others with the reason.
pub fn sort_out(
    transports: &[TransportKind],
    settings: &Settings,
    place: &Place,
    hosts: &[RemoteHost],
) -> (Vec<TransportKind>, Vec<Unavailable>) {
    let wrong_there = |transport: TransportKind| {
        hosts.iter().find_map(|host| {
            let mut all = host.probe.unavailable.iter();
            let (_, why) = all.find(|(one, _)| *one == transport)?;
            Some(format!("on {}: {why}", host.session.host()))
        })
    };
    let is_here = [Role::Client, Role::Server].into_iter().any(|role| place.is_here(role));
    let mut works = Vec::new();
    let mut unavailable = Vec::new();
    for transport in transports {
        let available = if place.is_remote() {
            transport.available_with(settings)
        } else {
            transport.available_within_host(settings)
        };
        let wrong_here = available.err().filter(|_| is_here);
        match wrong_here.or_else(|| wrong_there(*transport)) {
            None => works.push(*transport),
            Some(reason) => {
                unavailable.push(Unavailable { transport: transport.name().into(), reason });
            }
        }
    }
    (works, unavailable)
}
