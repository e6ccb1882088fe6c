//! The properties of this machine and its hosts that decide which published figures are shown
//! beside a run: the rate of its RDMA links and the mode of its IPoIB interfaces.

use crate::host::{self, Interface};
use crate::plan::Request;
use crate::plan::reference::Machine;
use crate::remote::host::RemoteHost;
use crate::transport::Interfaces;

/// The properties of this machine and of the hosts of a run.
pub(super) fn of(interfaces: Option<&Interfaces>, hosts: &[RemoteHost]) -> Machine {
    let links = host::rdma_links(&host::Tree::default());
    Machine { link_rate: link_rate(&links), ipoib_mode: ipoib_mode(&ends(interfaces, hosts)) }
}

/// The network interfaces of the ends, as far as they are known.
fn ends(interfaces: Option<&Interfaces>, hosts: &[RemoteHost]) -> Vec<Interface> {
    let of_host = |host: &RemoteHost, name: &str| {
        let all = &host.probe.environment.interfaces;
        all.iter().find(|one| one.name == name).cloned()
    };
    let mut all = Vec::new();
    match interfaces {
        Some(names) => {
            all.push(Interface::named(&names.client));
            match hosts {
                [] => all.push(Interface::named(&names.server)),
                hosts => all.extend(hosts.iter().filter_map(|host| of_host(host, &names.server))),
            }
        }
        None => {
            let own = hosts.iter().filter_map(|host| host.own);
            all.extend(own.filter_map(host::interface_with));
        }
    }
    all
}

/// The IPoIB mode of all ends, or why they have no common one.
pub(super) fn ipoib_mode(ends: &[Interface]) -> Result<String, String> {
    let Some(first) = ends.first() else { return Err("no IPoIB interface is measured".into()) };
    if let Some(other) = ends.iter().find(|end| end.ipoib_mode.is_none()) {
        return Err(format!("{} is not an IPoIB interface", other.name));
    }
    let mode = |end: &Interface| end.ipoib_mode.clone().unwrap_or_default();
    match ends.iter().find(|end| end.ipoib_mode != first.ipoib_mode) {
        None => Ok(mode(first)),
        Some(other) => Err(format!(
            "{} is in {} mode and {} in {} mode",
            first.name,
            mode(first),
            other.name,
            mode(other)
        )),
    }
}

/// Why series are not measured on hardware that published figures could be compared with.
pub(super) fn no_hardware(
    series: &[String],
    requests: &[(String, Request)],
    links: &[host::RdmaLink],
    over_loopback: bool,
) -> Option<String> {
    let of = requests.iter().filter(|(name, _)| series.contains(name));
    let mut transports = of.flat_map(|(_, request)| &request.transports);
    let emulated = links.iter().all(|link| link.emulated);
    transports.find_map(|transport| match () {
        _ if transport.has_setting("device") => {
            let link = links.first().filter(|_| emulated)?;
            Some(format!("{} is emulated by software", link.name))
        }
        _ if transport.has_setting("interface") && over_loopback => {
            Some(format!("{transport} runs over loopback here"))
        }
        _ => None,
    })
}

/// The generation that all links of hardware here have, or why it is not known.
pub(super) fn link_rate(links: &[host::RdmaLink]) -> Result<String, String> {
    let hardware: Vec<&host::RdmaLink> = links.iter().filter(|link| !link.emulated).collect();
    let names = |links: &[&host::RdmaLink]| {
        links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let Some(first) = hardware.first() else {
        return Err(match links.is_empty() {
            true => "this machine has no RDMA link".into(),
            false => {
                let all = names(&links.iter().collect::<Vec<_>>());
                format!("{all} is emulated by software and has no real link rate")
            }
        });
    };
    let are_alike = hardware.iter().all(|link| link.generation == first.generation);
    ensure!(are_alike, "the links {} differ in their rates", names(&hardware));
    first.generation.clone().ok_or_else(|| {
        format!("the rate of {} is not that of a 4X InfiniBand link", names(&hardware))
    })
}
