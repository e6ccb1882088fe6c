//! `explain`: a command whose messages are split into stages.

use super::Command;
use super::command_def::{CommandDef, Group, Typed};
use crate::options::{OptionDef, UsageError};

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
    ..CommandDef::new("explain", read)
};

/// The words that ask for help, of which the parser has left those after the operand.
const HELP: [&str; 2] = ["--help", "-h"];
/// The help of `explain packets`, which is no command of its own.
const PACKETS: &str = "\
How long packets of the kernel's Homa live, by what its module traces and counts

Usage: wiregauge explain packets [--json] [FILE [FILE]]

Arguments:
  [FILE]  Copy of a host's /proc/timetrace; two: of both hosts of a run [default: this host's own]

Options:
      --json  Print JSON instead of a table
  -h, --help  Print help

Examples:
  wiregauge explain packets
  wiregauge explain packets client.trace server.trace --json
";

/// Returns what is explained, or the help of `packets`. That of another command is printed where
/// its words are read.
fn read(typed: Typed) -> Result<Command, UsageError> {
    let words = typed.operands("COMMAND");
    let wants_help = words.iter().any(|word| HELP.iter().any(|help| word == help));
    if wants_help && words.first().is_some_and(|word| word == "packets") {
        return Ok(Command::Text(PACKETS.into()));
    }
    Ok(Command::Explain(typed))
}
