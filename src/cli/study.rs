//! `run`: a study, and what is typed beside its name.

use super::command_def::{CommandDef, Typed};
use super::common_options::{
    self as common, CPUS, DRAW, JUDGE, PAIRS, RANK, REACH, RECORD, TIMEOUT,
};
use super::{Command, StudyOptions, place};
use crate::options::{OptionDef, UsageError, each_once, under};
use crate::pattern::options::MEASUREMENT;
use crate::plan::Wait;
use crate::transport::{TransportKind, settings};

/// A study, or the list of those that are shipped.
pub const RUN: CommandDef = CommandDef {
    about: "Run a study and compare it with published figures; without a name, list the studies",
    examples: "
  wiregauge run
  wiregauge run sockets/overview --quick
  wiregauge run my-study.toml --only 'tcp busy,shm busy' --out result",
    operands: &[OptionDef::parsed::<String>(
        "STUDY",
        "A study's file, or the name of a shipped study",
    )],
    tables: &[
        &under(
            MEASUREMENT,
            [
                OptionDef::path("only", "Only these series").metavar("SERIES").list().common(),
                OptionDef::flag(
                    "quick",
                    "At most 3 rounds and a tenth of the messages and time: check that all works",
                )
                .common(),
                OptionDef::choice::<TransportKind>(
                    "transport",
                    "Transport in place of the study's, without the options that it lacks",
                )
                .metavar("NAME"),
                OptionDef::choice::<Wait>("wait", "Wait mode in place of the study's")
                    .metavar("MODE"),
                OptionDef::text(
                    "rate",
                    |_| Ok(()),
                    "Rate in place of the study's, such as 900mbit for slots on slower links",
                )
                .metavar("RATE"),
                OptionDef { default: None, default_note: Some("the study's, or 10s"), ..TIMEOUT },
                OptionDef::text(
                    "mpirun",
                    |_| Ok(()),
                    "Launcher of the study's MPI ranks, such as mpirun.mpich",
                )
                .metavar("COMMAND"),
                OptionDef::flag(
                    "prepare",
                    "Allow the study's shell commands, which change settings of this machine",
                ),
            ],
        ),
        REACH,
        PAIRS,
        RANK,
        &[
            settings::INTERFACE.heading(common::PLACEMENT),
            settings::FAMILY.heading(common::PLACEMENT),
        ],
        CPUS,
        DRAW,
        RECORD,
        JUDGE,
    ],
    ..CommandDef::new("run", run)
};

fn run(typed: Typed) -> Result<Command, UsageError> {
    let given = &typed.given;
    let (place, rank) = place::place(given)?;
    Ok(Command::Run(Box::new(StudyOptions {
        study: typed.operand("STUDY"),
        only: each_once(given.list("only")),
        quick: given.flag("quick"),
        transport: given.choice("transport"),
        wait: given.choice("wait"),
        timeout: given.time("timeout"),
        rate: given.text("rate").map(str::to_owned),
        mpirun: given.text("mpirun").map(str::to_owned),
        prepare: given.flag("prepare"),
        interface: common::interfaces(given, &place, rank.as_ref(), given.choice("family"))?,
        family: given.choice("family"),
        cpus: common::cpus(given, &place)?,
        place,
        seed: common::seed(given),
        options: common::run_options(given, rank)?,
    })))
}
