//! The properties of this host, for a controller on another one.

use crate::control::protocol::{HostProbe, HostProbeRequest};
use std::net::IpAddr;
use wiregauge_clock::{ChosenClock, Source};
use wiregauge_host::doctor::Checkup;
use wiregauge_host::{Environment, Tree};
use wiregauge_transport::TransportKind;

/// Probes this host; the error says why it cannot meet the request.
pub(crate) fn probe(request: &HostProbeRequest) -> Result<HostProbe, String> {
    wiregauge_host::check_cpus(&request.cpus).map_err(|error| format!("--cpus: {error}"))?;
    let address = match &request.interface {
        Some(name) => Some(
            wiregauge_host::address_of(name, None)
                .map_err(|error| format!("--interface: {error}"))?,
        ),
        None => wiregauge_host::session_address().ok(),
    };
    let cpus = match request.cpus.is_empty() {
        false => request.cpus.clone(),
        // The servers' CPUs: if both "hosts" are namespaces of one, the controller takes the
        // others.
        true => wiregauge_host::choose_pairs(None, request.threads).of_servers(request.threads),
    };
    let clock = ChosenClock::calibrate(request.clock).map_err(|error| error.to_string())?;
    let works = |transport: &TransportKind| transport.available().err();
    let environment = Environment::read(&cpus);
    if clock.source == Source::Ptp {
        environment.discipline.stated_error_ns()?;
    }
    Ok(HostProbe {
        environment,
        boot: wiregauge_host::boot(),
        checkup: request.checkup.as_ref().map(|wanted| Checkup::host(&cpus, wanted)),
        cpus,
        local: clock.local(),
        clock: clock.report,
        // A link-local one needs the number of an interface, which differs between hosts.
        address: address
            .map(|address| address.ip())
            .filter(|ip| !matches!(ip, IpAddr::V6(address) if address.is_unicast_link_local())),
        rdma_ports: wiregauge_host::active_rdma_ports(&Tree::default()),
        ip_interfaces: wiregauge_host::ip_interfaces(),
        unavailable: request
            .transports
            .iter()
            .filter_map(|transport| Some((*transport, works(transport)?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::frame;
    use crate::control::protocol::FromAgent;
    use wiregauge_host::doctor::Use;

    #[test]
    fn what_a_host_is_passes_the_channel() {
        let transports = TransportKind::ALL.to_vec();
        let interface = Some("lo".into());
        let request = HostProbeRequest {
            transports,
            interface,
            cpus: Vec::new(),
            threads: 2,
            clock: None,
            checkup: Some(Use::default()),
        };
        let found = probe(&request).unwrap();
        let mut channel = Vec::new();
        frame::write(&mut channel, &FromAgent::Probed(Box::new(found.clone()))).unwrap();
        let Ok(FromAgent::Probed(back)) = frame::read(&mut channel.as_slice()) else { panic!() };
        assert_eq!(format!("{back:?}"), format!("{found:?}"));
    }

    #[test]
    fn what_is_not_on_this_host_is_refused() {
        let request = HostProbeRequest {
            transports: Vec::new(),
            interface: Some("no-such-one".into()),
            cpus: Vec::new(),
            threads: 1,
            clock: None,
            checkup: None,
        };
        let refused = probe(&request).unwrap_err();
        assert!(refused.starts_with("--interface: there is no network interface"), "{refused}");
    }
}
