//! Counters of RDMA ports that stand still on a healthy link.

use crate::Tree;

/// The most devices, and the most ports of one.
const MOST: usize = 64;

/// Errors of the link and of the protocol, by the names of the kernel's files.
const ERRORS: [&str; 16] = [
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_rcv_remote_physical_errors",
    "counters/port_xmit_discards",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "hw_counters/out_of_buffer",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/rx_icrc_encapsulated",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
];

/// A counter of a port, and its value or what it grew by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As `mlx5_0/1`.
    pub port: String,
    /// As `symbol_error`.
    pub name: String,
    pub value: u64,
}

/// All that the ports have.
pub fn read(tree: &Tree, device: Option<&str>) -> Vec<Counter> {
    const FOLDER: &str = "/sys/class/infiniband";
    let mut all = Vec::new();
    let devices = tree.names(FOLDER).into_iter().take(MOST);
    for name in devices.filter(|name| device.is_none_or(|own| own == name)) {
        for port in tree.numbered(&format!("{FOLDER}/{name}/ports"), "").into_iter().take(MOST) {
            let file = |file: &&str| tree.number(&format!("{FOLDER}/{name}/ports/{port}/{file}"));
            let found = ERRORS.iter().filter_map(|path| Some((path, file(path)?)));
            all.extend(found.map(|(path, value)| Counter {
                port: format!("{name}/{port}"),
                name: path.rsplit('/').next().unwrap_or_default().to_owned(),
                value,
            }));
        }
    }
    all
}

/// Those that grew, each by how much.
pub fn grown(before: &[Counter], after: &[Counter]) -> Vec<Counter> {
    let grew = |now: &Counter| {
        let own = before.iter().find(|one| one.port == now.port && one.name == now.name)?;
        let value = now.value.checked_sub(own.value).filter(|by| *by > 0)?;
        Some(Counter { value, ..now.clone() })
    };
    after.iter().filter_map(grew).collect()
}
