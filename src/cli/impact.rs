//! `impact`: a command that is measured alone and beside congestors.

use super::Command;
use super::ab::words;
use super::command_def::{CommandDef, Group};
use super::common_options::REACH;
use crate::options::{OptionDef, named_enum, under};

const CONGESTION: &str = "Congestion";

named_enum! {
    /// Who sends to whom beside a victim.
    #[derive(PartialOrd, Ord)]
    pub enum Congestor {
        /// Every node to every other.
        AllToAll = "all-to-all",
        /// All nodes to one.
        Incast = "incast",
        /// One node to all others.
        Broadcast = "broadcast",
    }
}

impl Congestor {
    /// The rule of an exchange that is this.
    pub fn rule(self) -> &'static str {
        match self {
            Congestor::AllToAll => "round-robin",
            Congestor::Incast => "incast",
            Congestor::Broadcast => "one-to-all",
        }
    }
}

/// What a command suffers from congestion.
pub const IMPACT: CommandDef = CommandDef {
    group: Group::Measure,
    about: "Measure what a command suffers from congestion: alone and under congestors, in turns",
    examples: "
  wiregauge impact latency --transport tcp
  wiregauge impact --under incast latency --transport tcp --time 1s
  wiregauge impact --under all-to-all --congestor '--nodes 8 --size 1MiB' latency --size 8
  wiregauge impact --hosts node1,node2,node3,node4 latency --transport tcp

Options of impact come before the command, all others after it. A congestor is an exchange whose
queues are full, over the transport of the command unless --congestor names another. Of --hosts the
command has the first two, and the others are the nodes of the congestors.",
    operands: &[OptionDef::parsed::<String>(
        "COMMAND",
        "The victim: a command that measures one case, with its options",
    )
    .required()
    .rest()],
    tables: &[
        &under(
            CONGESTION,
            [
                OptionDef::choice::<Congestor>(
                    "under",
                    "What runs beside the command, each by itself",
                )
                .metavar("LIST")
                .list()
                .default_note("all of them")
                .common(),
                OptionDef::text(
                    "congestor",
                    |text| words(text).map(drop),
                    "Options of exchange for the congestors, such as '--nodes 8 --size 1MiB'",
                )
                .metavar("OPTIONS")
                .common(),
            ],
        ),
        REACH,
    ],
    ..CommandDef::new("impact", |typed| Ok(Command::Impact(typed)))
};
