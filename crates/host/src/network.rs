//! Network interfaces and the kernel's settings that a transport's figures depend on.

use super::Tree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most interfaces that a record lists; hosts of containers have thousands of `veth`.
const INTERFACES_MOST: usize = 64;

/// The hardware type of an IPoIB interface (`linux/if_arp.h`).
const ARPHRD_INFINIBAND: u32 = 32;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Largest payload of a frame in bytes.
    pub mtu_bytes: Option<u32>,
    /// Kernel driver; none for a virtual interface.
    pub driver: Option<String>,
    /// Speed of the link in Mb/s, as the driver states it.
    pub speed_mbps: Option<u32>,
    /// `up`, `down`, `unknown` (loopback).
    pub state: Option<String>,
    /// IPoIB mode: `datagram` or `connected`.
    pub ipoib_mode: Option<String>,
    /// NUMA node of the device.
    pub node: Option<u32>,
}

impl Interface {
    pub(super) fn read(tree: &Tree, name: &str) -> Interface {
        let file = |file: &str| format!("/sys/class/net/{name}/{file}");
        let is_ipoib = tree.number(&file("type")) == Some(ARPHRD_INFINIBAND);
        Interface {
            name: name.to_string(),
            mtu_bytes: tree.number(&file("mtu")),
            driver: tree.link_name(&file("device/driver")),
            // -1, or an error, where the link is down or has no speed: no `u32`, hence `None`.
            // Some drivers print the same without its sign.
            speed_mbps: tree.number(&file("speed")).filter(|speed| *speed != u32::MAX),
            state: tree.text(&file("operstate")),
            // Drivers of another kind have a file of that name too.
            ipoib_mode: tree.text(&file("mode")).filter(|_| is_ipoib),
            node: tree.number(&file("device/numa_node")),
        }
    }

    /// The interface of this name on this host.
    pub fn named(name: &str) -> Interface {
        Interface::read(&Tree::default(), name)
    }

    /// Those of a device first, then by name; at most 64.
    pub(super) fn read_all(tree: &Tree) -> Vec<Interface> {
        let names = tree.names("/sys/class/net");
        let mut found: Vec<Interface> = names.iter().map(|n| Interface::read(tree, n)).collect();
        found.sort_by_key(|i| (i.driver.is_none(), i.name != "lo"));
        found.truncate(INTERFACES_MOST);
        found
    }
}

/// Settings below `/proc/sys` that change what sockets do.
const SYSCTLS: &str = "\
    net.core.rmem_default net.core.rmem_max net.core.wmem_default net.core.wmem_max \
    net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.netdev_budget_usecs \
    net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_congestion_control \
    net.ipv4.tcp_available_congestion_control net.ipv4.tcp_low_latency \
    net.ipv4.tcp_slow_start_after_idle net.ipv4.ip_local_port_range \
    net.unix.max_dgram_qlen kernel.numa_balancing";

/// Reads those of the kernel's settings that change what sockets do and are there; blanks between
/// numbers become single.
pub fn sysctls(tree: &Tree) -> BTreeMap<String, String> {
    let entry = |name: &str| {
        let text = tree.text(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some((name.to_string(), words.join(" ")))
    };
    BTreeMap::from_iter(SYSCTLS.split(' ').filter_map(entry))
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    #[test]
    fn an_interface_shows_driver_rate_and_ipoib_mode() {
        let fake = Fake::new(&[
            ("sys/class/net/lo/mtu", "65536\n"),
            ("sys/class/net/lo/operstate", "unknown\n"),
            ("sys/class/net/ib0/mtu", "2044\n"),
            ("sys/class/net/ib0/speed", "200000\n"),
            ("sys/class/net/ib0/mode", "datagram\n"),
            ("sys/class/net/ib0/type", "32\n"),
            ("sys/class/net/eth9/type", "1\n"),
            ("sys/class/net/eth9/mode", "managed\n"),
            ("sys/class/net/ib0/device/numa_node", "1\n"),
            ("sys/class/net/eth9/speed", "-1\n"),
        ]);
        fake.link("sys/class/net/ib0/device/driver", "../../../bus/pci/drivers/mlx5_core");
        let found = Interface::read_all(&fake.tree);
        let names: Vec<&str> = found.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["ib0", "lo", "eth9"]);
        assert_eq!(found[0].driver.as_deref(), Some("mlx5_core"));
        assert_eq!((found[0].speed_mbps, found[0].node), (Some(200_000), Some(1)));
        assert_eq!(found[0].ipoib_mode.as_deref(), Some("datagram"));
        assert_eq!((found[1].mtu_bytes, found[1].ipoib_mode.as_deref()), (Some(65_536), None));
        assert_eq!((found[2].speed_mbps, found[2].ipoib_mode.as_deref()), (None, None));
    }

    #[test]
    fn settings_that_are_there_are_kept_and_the_others_left_out() {
        let fake = Fake::new(&[("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")]);
        let found = sysctls(&fake.tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found["net.ipv4.tcp_rmem"], "4096 131072 6291456");
    }
}
