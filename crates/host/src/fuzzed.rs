//! Parsers of this package as the fuzz targets call them. Nothing else does.

use super::discipline::offset_from_master;
use super::doctor::Checkup;
use super::doctor::examined::{Examined, Use};
use super::ethtool::{Ethtool, read_qdisc};
use super::together::{interrupts_between, trace_of};
use super::{Environment, NetCounters, Tree, affinity, claims, netlink, rdma, tcp_sampler};
use super::{time_namespace, trace};
use wiregauge_base::warning::RecordedWarning;

/// Reads all that is read below this tree, which stands for `/`; returns the warnings and the
/// findings about it.
pub fn read_tree(tree: &Tree) -> Vec<String> {
    const CPUS: [u32; 2] = [0, 1];
    let environment = Environment::read_from(tree, &CPUS);
    let warnings = RecordedWarning::each_once(&environment.warnings(&CPUS));
    let mut said: Vec<String> = warnings.into_iter().map(|warning| warning.sentence).collect();
    affinity::isolated(tree);
    time_namespace::offset_in(tree);
    NetCounters::in_tree(tree);
    rdma::active_rdma_ports(tree);
    rdma::rdma_links(tree);
    rdma::rdma_file(tree, "mlx5_0");
    interrupts_between(tree, tree, &CPUS);
    let wanted = Use { device: Some("mlx5_0".into()), ..Use::default() };
    let examined =
        Examined::of(tree.clone(), environment, &wanted, |_| Ethtool::default(), |_| Vec::new());
    let findings = Checkup::of(&examined).findings;
    said.extend(
        findings.iter().map(|one| [one.what(), one.cost_and_source(), one.remedy()].concat()),
    );
    said
}

/// Reads a text as each of the programs and files that are not read below a [`Tree`].
pub fn read_text(text: &str) {
    offset_from_master(text);
    trace_of(text, &[100]);
    trace::devices_of_interrupts(text);
    claims::others(text, 7).for_each(drop);
}

/// Reads one part of an answer of the kernel's netlink, as all that asks for one does; returns the
/// number of its messages.
pub fn read_netlink(part: &[u8]) -> usize {
    let mut messages = 0;
    netlink::read_part(part, |_, body| {
        messages += 1;
        read_qdisc(body);
        tcp_sampler::events_so_far(body);
    });
    messages
}
