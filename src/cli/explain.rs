//! `explain`: a command whose messages are split into stages.

use super::Command;
use super::command_def::{CommandDef, Group};
use crate::options::OptionDef;

/// Where the time of messages goes, and why some are slow.
pub const EXPLAIN: CommandDef = CommandDef {
    group: Group::Measure,
    about: "Split the time of each message into stages, and name what made some slow",
    examples: "
  wiregauge explain latency --transport tcp
  wiregauge explain latency --transport tcp --wait block --count 20k
  wiregauge explain latency --transport shm
  wiregauge explain latency --transport udp --size 1KiB --out result
  wiregauge explain oneway --transport udp --rate 20k
  wiregauge explain load --transport tcp --rate 50k
  wiregauge explain packets

Needs root, or CAP_BPF and CAP_PERFMON; without them latency over tcp and udp has four stages each
way. Rounds with and without tracing take turns, and the factor between them is printed.",
    operands: &[OptionDef::parsed::<String>(
        "COMMAND",
        "The command that is explained, with its options: latency, oneway, load or rpc; or \
         packets, with the traces of the kernel's Homa of one host or two",
    )
    .required()
    .rest()],
    ..CommandDef::new("explain", |typed| Ok(Command::Explain(typed)))
};
