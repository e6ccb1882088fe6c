//! `ab`: one command with two sets of options.

use super::Command;
use super::command_def::{CommandDef, Group};
use crate::options::{OptionDef, under};
use crate::plan::host_spec;

const SIDES: &str = "What differs";

/// Two settings, prepared states or programs, in turns.
pub const AB: CommandDef = CommandDef {
    group: Group::Measure,
    about: "Compare two settings, round by round in turns: is B different from A?",
    examples: "
  wiregauge ab --a '--wait busy' --b '--wait block' latency --transport tcp
  wiregauge ab --a '--transport tcp' --b '--transport shm' bandwidth --fail-if 'bandwidth<-5%'
  wiregauge ab --prepare-a 'sysctl -q net.ipv4.tcp_congestion_control=cubic' \\
               --prepare-b 'sysctl -q net.ipv4.tcp_congestion_control=bbr' latency
  wiregauge ab --binary-a old/wiregauge --binary-b new/wiregauge latency --transport shm

Options of ab come before the command, all others after it. Exit codes: as for compare.",
    operands: &[OptionDef::parsed::<String>(
        "COMMAND",
        "The command that both sides measure, with the options that both have",
    )
    .required()
    .rest()],
    tables: &[&under(
        SIDES,
        [
            options_of("a", "Options of A, such as '--wait busy'").common(),
            options_of("b", "Options of B").common(),
            prepare("prepare-a", "Shell command that runs before each round of A").common(),
            prepare("prepare-b", "Shell command that runs before each round of B").common(),
            OptionDef::path("binary-a", "The wiregauge that runs both ends of A on this host"),
            OptionDef::path("binary-b", "The wiregauge that runs both ends of B on this host"),
        ],
    )],
    ..CommandDef::new("ab", |typed| Ok(Command::Ab(typed)))
};

const fn options_of(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef::text(name, |text| words(text).map(drop), help).metavar("OPTIONS")
}

const fn prepare(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef::path(name, help).metavar("COMMAND")
}

/// The words of a side's options; none where there are no options.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    host_spec::words(text)
        .filter(|words| words[0].starts_with("--"))
        .ok_or_else(|| format!("invalid options '{text}': use some such as '--wait busy'"))
}
