//! What a command is that measures no pattern: its operands, its options, and what they ask for.

use super::Command;
use crate::options::{Given, OptionTable, UsageError};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A command that measures no pattern.
pub struct CommandDef {
    pub name: &'static str,
    /// What it does, for help.
    pub about: &'static str,
    /// Examples, for help.
    pub examples: &'static str,
    /// What follows the examples.
    pub notes: &'static str,
    pub operands: &'static [Operand],
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
            about: "",
            examples: "",
            notes: "",
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

/// Refuses a text, and says what is allowed.
type Check = fn(&str) -> Result<(), String>;

/// An argument of a command that is no option.
pub struct Operand {
    pub name: &'static str,
    help: &'static str,
    is_required: bool,
    is_many: bool,
    is_last: bool,
    names: &'static [&'static str],
    check: Option<Check>,
}

impl Operand {
    /// A required one.
    pub const fn new(name: &'static str, help: &'static str) -> Operand {
        Operand {
            name,
            help,
            is_required: true,
            is_many: false,
            is_last: false,
            names: &[],
            check: None,
        }
    }

    /// It may be missing.
    pub const fn optional(self) -> Operand {
        Operand { is_required: false, ..self }
    }

    /// There may be several.
    pub const fn many(self) -> Operand {
        Operand { is_many: true, ..self }
    }

    /// It is everything after `--`.
    pub const fn last(self) -> Operand {
        Operand { is_last: true, is_many: true, ..self }
    }

    /// It is one of these names.
    pub const fn one_of(self, names: &'static [&'static str]) -> Operand {
        Operand { names, ..self }
    }

    /// A function says whether it is well formed.
    pub const fn checked(self, check: Check) -> Operand {
        Operand { check: Some(check), ..self }
    }

    /// As the parser's own argument.
    pub fn argument(&'static self) -> Arg {
        let argument = Arg::new(self.name)
            .value_name(self.name)
            .help(self.help)
            .required(self.is_required)
            .last(self.is_last);
        let argument = match self.is_many {
            true => argument.action(ArgAction::Append).num_args(1..),
            false => argument,
        };
        if !self.names.is_empty() {
            return argument.value_parser(PossibleValuesParser::new(self.names.iter().copied()));
        }
        match self.check {
            Some(check) => {
                argument.value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
            }
            None => argument.value_parser(value_parser!(OsString)),
        }
    }

    /// What was typed.
    pub fn typed(&self, matches: &ArgMatches) -> Vec<OsString> {
        matches.get_raw(self.name).into_iter().flatten().map(OsStr::to_owned).collect()
    }
}

/// The arguments of a command.
pub struct Typed {
    /// The options.
    pub given: Given,
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
