//! From tables to the parser's own definition, and from what it found to the values that were
//! given. Completions, the man page and help are made from the same definition.

use super::command_def::{CommandDef, Typed};
use super::{Command, common_options};
use crate::options::{Given, Kind, OptionDef, UsageError};
use crate::pattern::Pattern;
use crate::pattern::options::MEASUREMENT;
use crate::plan::request::carrying;
use crate::transport::TransportKind;
use crate::transport::definitions::DEFINITIONS;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use std::ffi::{OsStr, OsString};

/// Columns of the help where the terminal is wider, or output is no terminal.
pub const HELP_WIDTH: usize = 100;

const SETTINGS: &str = "Transport settings";

/// An option as the parser's own argument.
pub fn argument(option: &'static OptionDef) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .help(option.help_text())
        .help_heading(option.heading)
        .required(option.is_required)
        .hide(option.is_hidden);
    if let Kind::Flag = option.kind {
        return argument.action(ArgAction::SetTrue);
    }
    let argument = argument.value_name(option.metavar).allow_negative_numbers(true);
    let argument = match option.is_list {
        true if option.has_brackets => argument.action(ArgAction::Append),
        true => argument.action(ArgAction::Append).value_delimiter(','),
        false => argument,
    };
    match option.choices() {
        Some(names) => {
            let is_switch = matches!(option.kind, Kind::Switch);
            let values =
                PossibleValuesParser::new(names.into_iter().map(|name| {
                    PossibleValue::new(name).hide(option.hidden_names.contains(&name))
                }));
            let argument = argument.value_parser(values);
            argument.ignore_case(true).hide_possible_values(is_switch)
        }
        None => {
            let is_path = matches!(option.kind, Kind::Path);
            let hint = if is_path { ValueHint::AnyPath } else { ValueHint::Unknown };
            argument.value_hint(hint).value_parser(|text: &str| {
                // Elsewhere the parser has parted a list.
                let parts = if option.has_brackets { option.parts(text) } else { vec![text] };
                parts.into_iter().try_for_each(|one| option.check_one(one))?;
                Ok::<_, String>(text.to_owned())
            })
        }
    }
}

/// An argument without dashes. A path need not be text.
fn operand(option: &'static OptionDef) -> Arg {
    let argument = argument(option).value_delimiter(None).last(option.is_last);
    let argument = argument.long(None).value_name(option.name);
    let argument = if option.is_list { argument.num_args(1..) } else { argument };
    let argument = match option.is_rest {
        true => argument.trailing_var_arg(true).allow_hyphen_values(true),
        false => argument,
    };
    match option.kind {
        Kind::Path => argument.value_parser(value_parser!(OsString)),
        _ => argument,
    }
}

/// Takes what was typed of the options of `given`.
pub fn take(matches: &ArgMatches, mut given: Given) -> Result<Given, UsageError> {
    for option in given.definitions().to_vec() {
        if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let text = match option.kind {
            Kind::Flag => "on".to_owned(),
            _ => {
                let typed = matches.get_many::<String>(option.name).into_iter().flatten();
                typed.map(String::as_str).collect::<Vec<_>>().join(",")
            }
        };
        given.set(option.name, text)?;
    }
    given.check_together().map(|()| given)
}

/// What can be given to a pattern's command: its own options, those that all patterns have, and
/// those of all transports.
pub fn given_of_pattern(pattern: &dyn Pattern) -> Given {
    let transports = TransportKind::ALL.iter().map(|transport| transport.descriptor().settings);
    let own = [pattern.options(), common_options::of_pattern(pattern)].into_iter();
    Given::of_tables(own.chain(transports))
}

/// Returns the options of a pattern's command in the order of its help: by their headings, each
/// where it is first needed.
pub fn in_order_of_help(pattern: &dyn Pattern) -> Vec<&'static OptionDef> {
    let mut options = given_of_pattern(pattern).definitions().to_vec();
    let headings: Vec<&str> = options.iter().map(|option| heading(option)).collect();
    options.sort_by_key(|option| headings.iter().position(|one| *one == heading(option)));
    options
}

/// The heading of an option of a measuring command. What says nothing else says what is measured.
fn heading(option: &OptionDef) -> &'static str {
    option.heading.unwrap_or(MEASUREMENT)
}

/// A pattern's command, with the options of all transports in its help or without.
pub fn of_pattern(pattern: &'static dyn Pattern, with_settings: bool) -> clap::Command {
    let after = format!(
        "Examples:{}\n\nOptions of a transport: `wiregauge help NAME`, where NAME is {}.",
        pattern.examples(),
        carrying(pattern)
    );
    let given = given_of_pattern(pattern);
    let is_setting = |option: &OptionDef| {
        pattern.options().iter().all(|own| own.name != option.name)
            && DEFINITIONS.iter().any(|setting| setting.name == option.name)
    };
    let arguments = given.definitions().iter().map(|option| match is_setting(option) {
        true => argument(option).help_heading(SETTINGS).hide(!with_settings),
        // What a pattern has of its own says what is measured, where it says nothing else.
        false if pattern.options().iter().any(|own| own.name == option.name) => {
            argument(option).help_heading(heading(option))
        }
        false => argument(option),
    });
    clap::Command::new(pattern.name()).about(pattern.about()).after_help(after).args(arguments)
}

/// A command that measures no pattern.
pub fn of_command(command: &'static CommandDef) -> clap::Command {
    let after = match command.examples {
        "" => String::new(),
        examples => format!("Examples:{examples}"),
    };
    let given = command.given();
    clap::Command::new(command.name)
        .about(command.about)
        .after_help(after)
        .hide(command.is_hidden)
        .args(command.operands.iter().map(operand))
        .args(given.definitions().iter().map(|option| argument(option)))
        .subcommands(command.commands.iter().map(of_command))
        .subcommand_required(!command.commands.is_empty())
}

/// What a command asks for.
pub fn read_command(command: &CommandDef, matches: &ArgMatches) -> Result<Command, UsageError> {
    if let Some((name, below)) = matches.subcommand()
        && let Some(command) = command.commands.iter().find(|command| command.name == name)
    {
        return read_command(command, below);
    }
    let given = take(matches, command.given())?;
    let words = |name| matches.get_raw(name).into_iter().flatten().map(OsStr::to_owned).collect();
    let operands = command.operands.iter().map(|operand| (operand.name, words(operand.name)));
    (command.read)(Typed { given, operands: operands.collect() })
}
