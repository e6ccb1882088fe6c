//! What is wrong with this host for a measurement, what it costs, and what changes it.
//!
//! Takes what the readers of the environment have read, drivers' settings and counters; gives
//! [`Finding`]s by a table of [`CHECKS`]. What a record is warned of and what is found here is
//! judged in one place: such a check begins with the warning.
//!
//! Must never: change a setting. It names the command that does.

mod container;
mod counters;
mod cpus;
pub(crate) mod examined;
mod facts;
mod finding;
mod kernel;
mod links;
mod network;
mod power;
#[cfg(test)]
mod tests;

pub use examined::{Examined, Use};
pub use facts::{Difference, differences};
pub use finding::Finding;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long counters of RDMA ports are watched.
pub const WATCHED: Duration = Duration::from_secs(1);

/// A check: its stable name, and what it finds.
pub struct Check {
    pub name: &'static str,
    run: fn(&Examined) -> Vec<Finding>,
}

const fn check(name: &'static str, run: fn(&Examined) -> Vec<Finding>) -> Check {
    Check { name, run }
}

/// All checks; `docs/doctor.md` has a row for each.
pub const CHECKS: &[Check] = &[
    check("pcie_link", links::slot),
    check("port_rate", links::cable),
    check("error_counters", links::error_counters),
    check("qdisc", network::qdisc),
    check("governor", power::governor),
    check("idle_states", power::idle_states),
    check("pm_qos", power::pm_qos),
    check("tuned", power::tuned),
    check("turbo", power::turbo),
    check("aspm", power::aspm),
    check("smt", cpus::smt),
    check("numa_nodes", cpus::nodes),
    check("adapter_node", cpus::adapter_node),
    check("numa_balancing", cpus::numa_balancing),
    check("device_interrupts", cpus::device_interrupts),
    check("irqbalance", cpus::irqbalance),
    check("interrupts", cpus::interrupts),
    check("isolation", cpus::isolation),
    check("tick", cpus::tick),
    check("rcu", cpus::rcu),
    check("coalescing", network::coalescing),
    check("offloads", network::offloads),
    check("busy_poll", network::busy_poll),
    check("receive_queues", network::receive_queues),
    check("packet_steering", network::packet_steering),
    check("flow_steering", network::flow_steering),
    check("transmit_queues", network::transmit_queues),
    check("ring_sizes", network::ring_sizes),
    check("socket_buffers", network::socket_buffers),
    check("mtu", network::mtu),
    check("ipoib_mode", network::ipoib_mode),
    check("flow_control", network::flow_control),
    check("ecn", network::ecn),
    check("firmware", links::firmware),
    check("locked_memory", kernel::locked_memory),
    check("huge_pages", kernel::huge_pages),
    check("cpu_quota", container::cpu_quota),
    check("cpuset", container::cpuset),
    check("memory_limit", container::memory_limit),
    check("task_limit", container::task_limit),
    check("process_limits", container::process_limits),
    check("loopback", container::loopback),
    check("clock_source", kernel::clock_source),
    check("watchdogs", kernel::watchdogs),
    check("mitigations", kernel::mitigations),
    check("other_load", kernel::other_load),
    check("virtual_machine", kernel::virtual_machine),
];

/// What was found on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkup {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// What is to be the same on two hosts that are compared: name, value.
    pub facts: BTreeMap<String, String>,
}

impl Checkup {
    /// Runs all checks.
    pub fn of(examined: &Examined) -> Checkup {
        let found = CHECKS.iter().flat_map(|check| {
            let own = (check.run)(examined).into_iter();
            own.map(|finding| Finding { check: check.name.to_owned(), ..finding })
        });
        Checkup { findings: finding::worst_first(found.collect()), facts: facts::of(examined) }
    }

    /// Examines this host.
    pub fn host(cpus: &[u32], wanted: &Use) -> Checkup {
        Checkup::of(&Examined::host(cpus, wanted, WATCHED))
    }

    /// How many findings say that something is wrong.
    pub fn wrong(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_wrong()).count()
    }
}
