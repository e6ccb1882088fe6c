//! The links of RDMA devices, as the kernel states them.

use super::Tree;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most devices and most ports of one that are looked at.
const MOST: usize = 64;

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaLink {
    /// Device and port, as `mlx5_0/1`.
    pub name: String,
    /// The generation of its signal, as `FDR`; `None` where the kernel says none.
    pub generation: Option<String>,
    /// Whether software emulates the device: its stated rate is then made up.
    pub emulated: bool,
}

/// A port of an RDMA device whose link is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaPort {
    /// The device, as `mlx5_0`.
    pub device: String,
    /// The number of the port, from 1.
    pub port: u32,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
}

impl RdmaPort {
    /// Device and port, as `mlx5_0/1`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.port)
    }
}

/// The ports whose links are up, in the order of the devices' names, their numbers by value:
/// `mlx5_2` precedes `mlx5_10`.
pub fn active_rdma_ports(tree: &Tree) -> Vec<RdmaPort> {
    let mut ports = Vec::new();
    for device in tree.names("/sys/class/infiniband").into_iter().take(MOST) {
        let folder = format!("/sys/class/infiniband/{device}/ports");
        for port in tree.numbered(&folder, "").into_iter().take(MOST) {
            // As "4: ACTIVE", by the numbers of the InfiniBand specification.
            let state = tree.text(&format!("{folder}/{port}/state"));
            if state.is_some_and(|state| state.starts_with("4:")) {
                let link_layer = tree.text(&format!("{folder}/{port}/link_layer"));
                let link_layer = link_layer.unwrap_or_else(|| "InfiniBand".into());
                ports.push(RdmaPort { device: device.clone(), port, link_layer });
            }
        }
    }
    ports.sort_by(|a, b| by_number(&a.device).cmp(&by_number(&b.device)).then(a.port.cmp(&b.port)));
    ports
}

/// Returns a name without the number at its end, and the number: names sort by it.
pub(super) fn by_number(name: &str) -> (&str, u64, &str) {
    let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (before, name[before.len()..].parse().unwrap_or(0), name)
}

/// The NUMA node of an RDMA device, or of the first one; `None` where the kernel knows none (-1).
pub fn rdma_node(tree: &Tree, device: Option<&str>) -> Option<u32> {
    let first = || tree.names("/sys/class/infiniband").into_iter().next();
    let device = device.map(str::to_owned).or_else(first)?;
    tree.number(&format!("/sys/class/infiniband/{device}/device/numa_node"))
}

/// The folder of the file by which programs use an RDMA device. It goes as soon as the device is
/// removed; the device's own folder may stay until the last program has let go of it.
pub fn rdma_file(tree: &Tree, device: &str) -> Option<PathBuf> {
    const FILES: &str = "/sys/class/infiniband_verbs";
    let folders = tree.names(FILES).into_iter().map(|name| format!("{FILES}/{name}"));
    let mut own = folders.filter(|folder| {
        tree.text(&format!("{folder}/ibdev")).is_some_and(|name| name.trim() == device)
    });
    own.next().map(PathBuf::from)
}

/// All ports of a machine.
pub fn rdma_links(tree: &Tree) -> Vec<RdmaLink> {
    let mut links = Vec::new();
    for device in tree.names("/sys/class/infiniband").iter().take(MOST) {
        let folder = format!("/sys/class/infiniband/{device}");
        // rxe and siw name the network interface that they send over; hardware does not.
        let software = tree.text(&format!("{folder}/parent")).is_some()
            || device.starts_with("rxe")
            || device.starts_with("siw");
        for port in tree.names(&format!("{folder}/ports")).iter().take(MOST) {
            let rate = tree.text(&format!("{folder}/ports/{port}/rate"));
            links.push(RdmaLink {
                name: format!("{device}/{port}"),
                generation: rate.as_deref().and_then(generation),
                emulated: software,
            });
        }
    }
    links
}

/// `EDR` of `100 Gb/sec (4X EDR)`. Only links of four lanes: those are what was published.
fn generation(rate: &str) -> Option<String> {
    let (_, inside) = rate.split_once('(')?;
    let generation = inside.trim_end_matches(')').strip_prefix("4X ")?;
    (!generation.is_empty()).then(|| generation.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    #[test]
    fn the_node_of_an_adapter_is_what_the_kernel_knows() {
        let fake = Fake::new(&[
            ("sys/class/infiniband/mlx5_0/device/numa_node", "1\n"),
            ("sys/class/infiniband/mlx5_1/device/numa_node", "-1\n"),
        ]);
        let node = |device| rdma_node(&fake.tree, device);
        assert_eq!((node(None), node(Some("mlx5_0"))), (Some(1), Some(1)));
        assert_eq!((node(Some("mlx5_1")), node(Some("rxe0"))), (None, None));
    }

    #[test]
    fn active_ports_are_in_the_order_of_their_numbers() {
        let state = |port: &str| format!("sys/class/infiniband/{port}/state");
        let up: Vec<(String, &str)> = [
            ("mlx5_10/ports/1", "4: ACTIVE\n"),
            ("mlx5_2/ports/2", "4: ACTIVE\n"),
            ("mlx5_2/ports/1", "4: ACTIVE\n"),
            ("mlx5_3/ports/1", "1: DOWN\n"),
        ]
        .map(|(port, text)| (state(port), text))
        .into();
        let mut files: Vec<(&str, &str)> = up.iter().map(|(path, text)| (&**path, *text)).collect();
        files.push(("sys/class/infiniband/mlx5_10/ports/1/link_layer", "Ethernet\n"));
        let found = active_rdma_ports(&Fake::new(&files).tree);
        let seen: Vec<(String, &str)> =
            found.iter().map(|port| (port.name(), port.link_layer.as_str())).collect();
        let expected =
            [("mlx5_2/1", "InfiniBand"), ("mlx5_2/2", "InfiniBand"), ("mlx5_10/1", "Ethernet")];
        assert_eq!(seen, expected.map(|(name, layer)| (name.to_string(), layer)));
    }

    #[test]
    fn the_file_of_a_device_is_found_by_its_name() {
        let fake = Fake::new(&[
            ("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"),
            ("sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_1\n"),
        ]);
        let found = rdma_file(&fake.tree, "mlx5_1");
        assert_eq!(found, Some(PathBuf::from("/sys/class/infiniband_verbs/uverbs1")));
        assert_eq!(rdma_file(&fake.tree, "mlx5_2"), None);
    }

    #[test]
    fn a_link_shows_its_generation_and_an_emulated_one_that_it_is() {
        let fake = Fake::new(&[
            ("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n"),
            ("sys/class/infiniband/mlx5_1/ports/1/rate", "2.5 Gb/sec (1X SDR)\n"),
            ("sys/class/infiniband/soft/parent", "eth0\n"),
            ("sys/class/infiniband/soft/ports/1/rate", "10 Gb/sec (4X SDR)\n"),
        ]);
        let links = rdma_links(&fake.tree);
        let seen: Vec<(&str, Option<&str>, bool)> =
            links.iter().map(|l| (l.name.as_str(), l.generation.as_deref(), l.emulated)).collect();
        assert_eq!(
            seen,
            [
                ("mlx5_0/1", Some("EDR"), false),
                ("mlx5_1/1", None, false),
                ("soft/1", Some("SDR"), true)
            ]
        );
    }
}
