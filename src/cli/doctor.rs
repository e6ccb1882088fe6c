//! `doctor`: what is wrong with a host.

use super::command_def::{CommandDef, Group, Typed};
use super::common_options::{JSON, RANK, REACH};
use super::display::DISPLAY;
use super::{Command, place};
use crate::host::doctor::CHECKS;
use crate::options::{OptionDef, under};
use crate::plan::host_spec;

const CHANGES: &str = "Changes of this host";

/// Examines hosts.
pub const DOCTOR: CommandDef = CommandDef {
    group: Group::Check,
    about: "Find settings of a host that spoil figures: what each costs and what changes it",
    examples: "
  wiregauge doctor
  wiregauge doctor --for 'latency --transport tcp --interface eth0 --wait block'
  wiregauge doctor --fix
  wiregauge doctor --hosts node1,node2,node3

It only reads, unless --fix or --measure is given. Notes are no fault.
Exit codes: 0 nothing is wrong, 1 something is, 3 a host was not reached.",
    tables: &[
        &[
            OptionDef::text(
                "for",
                |text| words(text).map(drop),
                "Check what matters for this command, such as 'latency --transport verbs'",
            )
            .metavar("COMMAND")
            .default_note("everything matters")
            .common(),
            OptionDef::one_of(
                "check",
                checks,
                "Only these checks; with --fix also what they only note",
            )
            .metavar("NAMES")
            .list(),
        ],
        &under(
            CHANGES,
            [
                OptionDef::flag("fix", "Change what is wrong, after a question")
                    .excludes(&["json", "measure", "to", "hosts", "hosts-file"])
                    .common(),
                OptionDef::flag("yes", "Answer the question with yes").needs(&["fix"]),
                OptionDef::path("undo", "New script that takes the changes back")
                    .metavar("FILE")
                    .default_note("wiregauge-undo-<UTC time>.sh")
                    .needs(&["fix"]),
                OptionDef::flag(
                    "measure",
                    "Measure the gain of each change that can be made at once, with its interval",
                )
                .excludes(&["json", "to", "hosts", "hosts-file"])
                .common(),
            ],
        ),
        REACH,
        RANK,
        &[JSON],
        DISPLAY,
    ],
    ..CommandDef::new("doctor", |typed: Typed| {
        let (hosts, rank) = place::nodes_if_named(&typed.given)?;
        ensure!(
            !typed.given.is_given("client-hosts"),
            "--client-hosts: doctor examines hosts alike: use --hosts"
        );
        Ok(Command::Doctor { hosts, rank: rank.map(Box::new), typed })
    })
};

fn checks() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// The words of a command.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let found = host_spec::words(text).filter(|words| !words[0].starts_with('-'));
    found.ok_or_else(|| {
        format!("invalid command '{text}': use one such as 'latency --transport tcp'")
    })
}
