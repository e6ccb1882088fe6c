//! `--rails`: the active RDMA ports of all hosts, or their network interfaces, paired by their
//! order. Rail 0 connects the first port of each host, rail 1 the second, and so on. Pure.
//!
//! The ports are known when the hosts have been reached. Until then a plan is made as if there were
//! one rail, so that a wrong request is refused before.

use super::{Case, HostPair, UsageError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wiregauge_base::options::refuse;
use wiregauge_host::RdmaPort;
use wiregauge_transport::per_end::PerEnd;
use wiregauge_transport::{Settings, TransportKind};

wiregauge_base::options::named_enum! {
    /// Which rails of a pair of hosts are measured at the same time.
    pub enum RailsAtOnce {
        /// One: the others are idle.
        Each = "each",
        /// All.
        All = "all",
    }
}

/// The settings by which a case is told its rail.
const DEVICE: &str = "device";
const PORT: &str = "port";
const INTERFACE: &str = "interface";
/// The link layer of a network interface's rail: whichever carries IP.
const IP: &str = "IP";
/// Most rails of a host, for which it is asked for CPUs before they are known. Nodes with 8
/// adapters of 2 ports have as many.
const MOST_EXPECTED: u32 = 16;

/// The kind of the ports that rails connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RailKind {
    /// Ports of RDMA devices.
    Rdma,
    /// Network interfaces that carry IP.
    Ip,
}

impl RailKind {
    /// Returns the kind of the ports of a transport; `None` if it has none that can be named.
    pub fn of_transport(transport: TransportKind) -> Option<RailKind> {
        if transport.has_setting(DEVICE) {
            return Some(RailKind::Rdma);
        }
        transport.has_setting(INTERFACE).then_some(RailKind::Ip)
    }

    /// Returns what a sentence calls them, and the command that lists them.
    fn words(self) -> [&'static str; 2] {
        match self {
            RailKind::Rdma => ["active RDMA port", "rdma link show"],
            RailKind::Ip => ["interface that is up and has an address", "ip address"],
        }
    }
}

/// A port that a rail connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailPort {
    /// The RDMA device, or the network interface.
    pub device: String,
    /// The port of an RDMA device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// `InfiniBand`, `Ethernet` or `IP`.
    pub link_layer: String,
}

impl From<RdmaPort> for RailPort {
    fn from(port: RdmaPort) -> RailPort {
        let RdmaPort { device, port, link_layer } = port;
        RailPort { device, port: Some(port), link_layer }
    }
}

impl RailPort {
    /// Returns the port of a network interface.
    pub fn of_interface(device: String) -> RailPort {
        RailPort { device, port: None, link_layer: IP.into() }
    }

    /// Returns the name, as `mlx5_0/1` or `eth0`.
    pub fn name(&self) -> String {
        match self.port {
            Some(port) => format!("{}/{port}", self.device),
            None => self.device.clone(),
        }
    }
}

/// The rails of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rails {
    /// Which are measured at the same time.
    pub at_once: RailsAtOnce,
    /// The ports of this host, the first being those of rail 0; empty where no end is here.
    pub here: Vec<RailPort>,
    /// Those of each other host, by its number.
    pub hosts: Vec<Vec<RailPort>>,
}

impl Rails {
    /// Rails whose ports are not known yet.
    pub fn new(at_once: RailsAtOnce) -> Rails {
        Rails { at_once, here: Vec::new(), hosts: Vec::new() }
    }

    /// Takes the ports that hosts have, this one's first where an end is here.
    ///
    /// # Errors
    /// A host has none, or other ones than the first.
    pub fn found(
        &mut self,
        kind: RailKind,
        here: Option<(&str, Vec<RailPort>)>,
        others: Vec<(&str, Vec<RailPort>)>,
    ) -> Result<(), UsageError> {
        let all = || here.iter().chain(&others);
        let [what, command] = kind.words();
        if let Some((host, _)) = all().find(|(_, ports)| ports.is_empty()) {
            return refuse(format!("--rails: {host} has no {what}: see `{command}` there"));
        }
        let Some((first, ports)) = all().next() else { return Ok(()) };
        for (host, own) in all() {
            if own.len() != ports.len() {
                let option = match kind {
                    RailKind::Rdma => DEVICE,
                    RailKind::Ip => INTERFACE,
                };
                return refuse(format!(
                    "--rails: {first} has {} and {host} has {}: use hosts with the same number, \
                     or --{option} for one rail",
                    listed(kind, ports),
                    listed(kind, own)
                ));
            }
            for (rail, (a, b)) in ports.iter().zip(own).enumerate() {
                if a.link_layer != b.link_layer {
                    return refuse(format!(
                        "--rails: rail {rail} is {} {} on {first} and {} {} on {host}: use hosts \
                         with the same adapters",
                        a.link_layer,
                        a.name(),
                        b.link_layer,
                        b.name()
                    ));
                }
            }
        }
        self.here = here.map(|(_, ports)| ports).unwrap_or_default();
        self.hosts = others.into_iter().map(|(_, ports)| ports).collect();
        Ok(())
    }

    /// How many there are; 1 until they are known.
    pub fn count(&self) -> u32 {
        let known = std::iter::once(&self.here).chain(&self.hosts);
        (known.map(Vec::len).max().unwrap_or(0) as u32).max(1)
    }

    /// Rails of a pair of hosts that run at the same time.
    pub fn at_once(&self) -> u32 {
        match self.at_once {
            RailsAtOnce::Each => 1,
            RailsAtOnce::All => self.count(),
        }
    }

    /// Rails of a pair of hosts that may run at the same time, before they are known.
    pub fn expected_at_once(&self) -> u32 {
        match self.at_once {
            RailsAtOnce::Each => 1,
            RailsAtOnce::All => MOST_EXPECTED,
        }
    }

    fn port(&self, host: Option<u32>, rail: usize) -> Option<&RailPort> {
        let ports = match host {
            None => &self.here,
            Some(number) => self.hosts.get(number as usize)?,
        };
        ports.get(rail)
    }

    /// Returns the settings that a host has of its own on a rail.
    pub fn own(&self, host: Option<u32>, rail: u32) -> BTreeMap<String, String> {
        let Some(RailPort { device, port, .. }) = self.port(host, rail as usize) else {
            return BTreeMap::new();
        };
        match port {
            Some(port) => BTreeMap::from([
                (DEVICE.to_owned(), device.clone()),
                (PORT.to_owned(), port.to_string()),
            ]),
            None => BTreeMap::from([(INTERFACE.to_owned(), device.clone())]),
        }
    }

    /// Returns the rail of a case.
    pub fn of_case<P, S>(&self, case: &Case<P, S>) -> Option<u32> {
        let HostPair { client, server } = case.topology.hosts();
        let devices: PerEnd<String> =
            case.settings.get(DEVICE).or_else(|| case.settings.get(INTERFACE))?;
        let ports: Option<PerEnd<u32>> = case.settings.get(PORT);
        (0..self.count()).find(|rail| {
            let client = self.port(client, *rail as usize);
            let server = self.port(server, *rail as usize);
            let is_client = client.is_some_and(|own| {
                own.device == devices.client && own.port == ports.as_ref().map(|both| both.client)
            });
            is_client
                && server.is_some_and(|own| {
                    own.device == devices.server
                        && own.port == ports.as_ref().map(|both| both.server)
                })
        })
    }

    /// The name of a case's rail: its number, and the ports of the client and the server.
    pub fn name<P, S>(&self, case: &Case<P, S>) -> Option<String> {
        let rail = self.of_case(case)?;
        let HostPair { client, server } = case.topology.hosts();
        let name = |host| self.port(host, rail as usize).map(RailPort::name);
        let both = PerEnd { client: name(client)?, server: name(server)? };
        Some(format!("{rail} ({both})"))
    }

    /// Settings without what depends on the rail.
    pub fn without(settings: &mut Settings) {
        settings.unset(DEVICE);
        settings.unset(PORT);
        settings.unset(INTERFACE);
    }
}

/// Returns the number of a host's ports, and their names.
fn listed(kind: RailKind, ports: &[RailPort]) -> String {
    let names: Vec<String> = ports.iter().map(RailPort::name).collect();
    let what = match kind {
        RailKind::Rdma => "active RDMA ports",
        RailKind::Ip => "interfaces",
    };
    format!("{} {what} ({})", ports.len(), names.join(", "))
}

/// Groups of pairs that run at the same time, as groups of their rails: pair `p` has the numbers
/// from `p * rails` on.
pub fn concurrent(groups: &[Vec<u32>], pairs: u32, rails: Option<&Rails>) -> Vec<Vec<u32>> {
    let Some(rails) = rails else { return groups.to_vec() };
    let count = rails.count();
    let of = |group: &Vec<u32>, of_pair: std::ops::Range<u32>| -> Vec<u32> {
        group.iter().flat_map(|pair| of_pair.clone().map(move |rail| pair * count + rail)).collect()
    };
    match rails.at_once {
        RailsAtOnce::Each => {
            let of_rails = |group| (0..count).map(move |rail| of(group, rail..rail + 1));
            groups.iter().flat_map(of_rails).collect()
        }
        RailsAtOnce::All if groups.is_empty() => {
            (0..pairs).map(|pair| of(&vec![pair], 0..count)).collect()
        }
        RailsAtOnce::All => groups.iter().map(|group| of(group, 0..count)).collect(),
    }
}
