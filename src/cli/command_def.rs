//! What a command is that measures no pattern: its operands, its options, and what they ask for.

use super::Command;
use crate::options::{Given, OptionTable, UsageError, named_enum};
use std::ffi::OsString;
use std::path::PathBuf;

named_enum! {
    /// What a command is for, as help groups them.
    pub enum Group {
        /// Measuring.
        Measure = "measure",
        /// Studies and records.
        Records = "records",
        /// Other hosts and their clocks.
        Hosts = "hosts",
        /// The instrument and this machine.
        Check = "check",
        /// The program itself.
        Help = "help",
    }
}

/// A command that measures no pattern.
pub struct CommandDef {
    pub name: &'static str,
    pub group: Group,
    /// What it does, for help.
    pub about: &'static str,
    /// Examples and what follows them, for help.
    pub examples: &'static str,
    /// Arguments without dashes.
    pub operands: OptionTable,
    pub tables: &'static [OptionTable],
    /// Commands below it.
    pub commands: &'static [CommandDef],
    /// Whether help omits it.
    pub is_hidden: bool,
    /// What was asked for, or why it cannot be.
    pub read: fn(Typed) -> Result<Command, UsageError>,
}

impl CommandDef {
    /// A command without options.
    pub const fn new(
        name: &'static str,
        read: fn(Typed) -> Result<Command, UsageError>,
    ) -> CommandDef {
        CommandDef {
            name,
            group: Group::Records,
            about: "",
            examples: "",
            operands: &[],
            tables: &[],
            commands: &[],
            is_hidden: false,
            read,
        }
    }

    /// Nothing given of its options.
    pub fn given(&self) -> Given {
        Given::of_tables(self.tables.iter().copied())
    }
}

/// The arguments of a command.
#[derive(Debug)]
pub struct Typed {
    /// The options.
    pub given: Given,
    /// The words of each operand.
    pub operands: Vec<(&'static str, Vec<OsString>)>,
}

impl Typed {
    /// The words of an operand.
    pub fn operands(&self, name: &str) -> &[OsString] {
        let found = self.operands.iter().find(|(operand, _)| *operand == name);
        found.map_or(&[], |(_, words)| words)
    }

    /// The first word of an operand.
    pub fn operand(&self, name: &str) -> Option<String> {
        self.operands(name).first().map(|word| word.to_string_lossy().into_owned())
    }

    /// The first word of an operand as a path.
    pub fn path(&self, name: &str) -> PathBuf {
        self.operands(name).first().map(PathBuf::from).unwrap_or_default()
    }
}
