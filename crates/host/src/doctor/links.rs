//! Checks of links: slots, cables, firmware and counters of errors.

use super::examined::{Adapter, Examined};
use super::finding::Finding;
use crate::Tree;
use wiregauge_base::warning::Severity::{Note, Warning};

/// Lanes of a usual InfiniBand link.
const LANES: u32 = 4;

/// Lanes and transfers per second of a PCIe link, by the names of its two files.
fn pcie(tree: &Tree, device: &str, prefix: &str) -> Option<(u32, f64)> {
    let width = tree.number(&format!("{device}/{prefix}_link_width"))?;
    let speed = tree.text(&format!("{device}/{prefix}_link_speed"))?;
    // As "8.0 GT/s PCIe".
    Some((width, speed.split_whitespace().next()?.parse().ok()?))
}

/// As `x8 at 8 GT/s`.
fn shown((width, speed): (u32, f64)) -> String {
    format!("x{width} at {speed} GT/s")
}

/// What a link carries, in GT/s over all lanes.
fn carries((width, speed): (u32, f64)) -> f64 {
    f64::from(width) * speed
}

pub(super) fn slot(examined: &Examined) -> Vec<Finding> {
    let folder = |port: &super::examined::Port| {
        (port.name(), format!("/sys/class/infiniband/{}/device", port.device))
    };
    let adapters = examined.adapters.iter().filter(|one| !one.is_roce);
    let adapters = adapters.map(|one: &Adapter| (one.interface.name.clone(), one.device.clone()));
    let mut found = Vec::new();
    for (name, device) in adapters.chain(examined.ports.iter().map(folder)) {
        let of = |prefix| pcie(&examined.tree, &device, prefix);
        let (Some(now), Some(most)) = (of("current"), of("max")) else { continue };
        if carries(now) >= carries(most) {
            continue;
        }
        // The port above is what the slot can do.
        let slot = pcie(&examined.tree, &format!("{device}/.."), "max");
        let is_slot = slot.is_some_and(|slot| carries(slot) <= carries(now));
        let why = match is_slot {
            true => "the slot can do no more",
            false => "the slot could do more",
        };
        let (now_text, most_text) = (shown(now), shown(most));
        let sentence = format!("PCIe runs {now_text}, the adapter can do {most_text}: {why}");
        let share = 100.0 * carries(now) / carries(most);
        let finding = Finding::new(Warning, name, sentence)
            .costs(format!("{share:.0} % of its bandwidth is left"), "this device's link")
            .advice(match is_slot {
                true => "use a wider slot (lspci -vv, LnkCap)",
                false => "reseat the card, and look at the firmware's setting of the slot",
            });
        found.push(finding);
    }
    found
}

/// Lanes of `100 Gb/sec (4X EDR)`.
fn lanes(rate: &str) -> Option<u32> {
    rate.split_once('(')?.1.split_once('X')?.0.parse().ok()
}

pub(super) fn cable(examined: &Examined) -> Vec<Finding> {
    let active = || examined.ports.iter().filter(|port| port.is_active);
    let speed = |rate: &str| rate.split_whitespace().next()?.parse::<f64>().ok();
    let mut found = Vec::new();
    for port in active() {
        let Some(rate) = &port.rate else { continue };
        let advice = "clean or change the cable, and look at the port of the switch (ibstat)";
        if lanes(rate).is_some_and(|lanes| lanes < LANES) {
            let finding = Finding::new(Warning, port.name(), format!("its link runs at {rate}"))
                .costs("the bandwidth of the lanes that are missing", "this port")
                .advice(advice);
            found.push(finding);
            continue;
        }
        let alike = active().filter(|other| other.board.is_some() && other.board == port.board);
        let best = alike.filter_map(|other| speed(other.rate.as_ref()?)).fold(0.0, f64::max);
        if let Some(own) = speed(rate).filter(|own| *own < best) {
            let sentence =
                format!("its link runs at {rate}, another of such a board at {best} Gb/s");
            let finding = Finding::new(Warning, port.name(), sentence)
                .costs(
                    format!("{:.0} % of that bandwidth is left", 100.0 * own / best),
                    "this port",
                )
                .advice(advice);
            found.push(finding);
        }
    }
    found
}

pub(super) fn firmware(examined: &Examined) -> Vec<Finding> {
    let mut found = Vec::new();
    for port in &examined.ports {
        let is_other = |other: &&super::examined::Port| {
            port.board.is_some() && other.board == port.board && other.firmware < port.firmware
        };
        let Some(older) = examined.ports.iter().find(is_other) else { continue };
        let (Some(new), Some(old)) = (&port.firmware, &older.firmware) else { continue };
        let sentence = format!("firmware {old}, and {new} on {} of the same kind", port.device);
        let finding = Finding::new(Warning, older.device.clone(), sentence)
            .costs("figures of the two are of different devices", "their own statement")
            .advice("mlxfwmanager, or the vendor's tool");
        found.push(finding);
    }
    found.dedup_by(|a, b| a.subject == b.subject);
    found
}

pub(super) fn error_counters(examined: &Examined) -> Vec<Finding> {
    let advice = "look at cable, switch port and congestion (perfquery, ibqueryerrors)";
    let grew = examined.grown.iter().map(|counter| {
        let sentence = format!("{} grew by {} while it was watched", counter.name, counter.value);
        Finding::new(Warning, counter.port.clone(), sentence)
            .costs("packets are resent or wait: the tail", "InfiniBand specification, PortCounters")
            .advice(advice)
    });
    let since = super::counters::read(&examined.tree, examined.wanted.device.as_deref());
    let of_link = ["symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"];
    let had = |counter: &&super::counters::Counter| {
        let grew =
            examined.grown.iter().any(|one| one.port == counter.port && one.name == counter.name);
        counter.value > 0 && of_link.contains(&counter.name.as_str()) && !grew
    };
    let since = since.iter().filter(had).filter(|_| examined.wanted.rdma).map(|counter| {
        let sentence = format!("{} stands at {}, and did not grow", counter.name, counter.value);
        Finding::new(Note, counter.port.clone(), sentence)
            .costs("nothing now", "InfiniBand specification, PortCounters")
            .advice(advice)
    });
    grew.chain(since).collect()
}
