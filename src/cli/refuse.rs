//! From the parser's complaint to one sentence that names what was wrong and what is allowed.

use crate::options::UsageError;
use crate::plan::written::{one_line, shortened};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;

/// Longest sentence: what was typed may be long, and the rest of it is not needed.
const LONGEST: usize = 2000;

/// Whether the parser's complaint is a text that was asked for: help or version.
pub fn is_text(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The sentence.
pub fn refusal(definition: &clap::Command, typed: &[OsString], error: &clap::Error) -> UsageError {
    UsageError(plain(&sentence(definition, typed, error)))
}

/// One line: what was typed may hold anything.
pub fn plain(sentence: &str) -> String {
    shortened(&one_line(&sentence.replace('\n', r"\n")), LONGEST)
}

fn sentence(definition: &clap::Command, arguments: &[OsString], error: &clap::Error) -> String {
    let (command, name) = spoken(definition, arguments);
    let text = |kind| texts(error, kind).join(" and ");
    let argument = text(ContextKind::InvalidArg);
    let option = option_name(&argument);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let near = near(error, ContextKind::SuggestedArg);
            unknown(definition, command, &name, &argument, &near)
        }
        ErrorKind::InvalidSubcommand => {
            let typed = text(ContextKind::InvalidSubcommand);
            let near = near(error, ContextKind::SuggestedSubcommand);
            format!("there is no command '{typed}'{near}: use {}", commands(command))
        }
        ErrorKind::InvalidValue => invalid_value(error, &argument),
        ErrorKind::ValueValidation => {
            let reason = error.source().map_or("invalid value".to_owned(), ToString::to_string);
            format!("{option}: {reason}")
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{name} needs {argument}: {}", usage(command))
        }
        ErrorKind::ArgumentConflict => conflict(error, &name, option),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8: use plain text".to_owned(),
        ErrorKind::TooManyValues => format!("{option} takes no value: use {option} alone"),
        _ => format!("cannot parse the arguments: {}", usage(command)),
    }
}

/// The command that the arguments name, and how to call it.
fn spoken<'a>(
    definition: &'a clap::Command,
    arguments: &[OsString],
) -> (&'a clap::Command, String) {
    let mut words = arguments.iter().skip(1);
    let (mut command, mut names) = (definition, Vec::new());
    // What follows `--` is another program's.
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let named = command.get_subcommands().find(|one| Some(one.get_name()) == word.to_str());
        if let Some(named) = named {
            command = named;
            names.push(named.get_name());
        }
    }
    if names.is_empty() { (definition, "wiregauge".to_owned()) } else { (command, names.join(" ")) }
}

/// What the parser says of one kind: none, one or several texts.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(all)) => all.clone(),
        Some(one) => vec![one.to_string()],
        None => Vec::new(),
    }
}

/// What the parser takes for the nearest to what was typed.
fn near(error: &clap::Error, kind: ContextKind) -> String {
    let near = texts(error, kind).into_iter().next();
    near.map_or_else(String::new, |near| format!(" (did you mean '{near}'?)"))
}

/// `--size` of `--size <SIZES>`; an operand as it is, without brackets.
fn option_name(argument: &str) -> &str {
    let name = argument.split([' ', '=']).next().unwrap_or(argument);
    if name.starts_with('-') { name } else { argument.trim_matches(['<', '>', '[', ']', '.']) }
}

fn unknown(
    definition: &clap::Command,
    command: &clap::Command,
    name: &str,
    argument: &str,
    near: &str,
) -> String {
    if !argument.starts_with('-') {
        let operands: Vec<String> = command.get_positionals().map(|one| one.to_string()).collect();
        let commands = commands(command);
        return match (commands.is_empty(), operands.is_empty()) {
            (false, _) => format!("{name} does not take '{argument}': use {commands}"),
            (_, false) => format!("{name} does not take '{argument}': {}", usage(command)),
            (true, true) => format!("{name} takes options only, not '{argument}': {}", see(name)),
        };
    }
    let elsewhere: Vec<&str> = definition
        .get_subcommands()
        .filter(|other| other.get_name() != name && options(other).any(|o| o == argument))
        .map(clap::Command::get_name)
        .collect();
    let hint = match elsewhere.as_slice() {
        [] => near.to_owned(),
        some => format!(", which is an option of {}", some.join(", ")),
    };
    format!("{name} has no option '{argument}'{hint}: {}", see(name))
}

/// Where all options are listed.
fn see(name: &str) -> String {
    match name {
        "wiregauge" => "see wiregauge --help".into(),
        command => format!("see wiregauge help {command}"),
    }
}

fn invalid_value(error: &clap::Error, argument: &str) -> String {
    let option = option_name(argument);
    let value = texts(error, ContextKind::InvalidValue).concat();
    let allowed = texts(error, ContextKind::ValidValue).join(", ");
    match (value.as_str(), allowed.as_str()) {
        ("", "") => format!("{option} needs a value: use {argument}"),
        ("", allowed) => format!("{option} needs a value: use {allowed}"),
        (value, allowed) => {
            let near = near(error, ContextKind::SuggestedValue);
            format!("{option}: unknown value '{value}'{near}: use {allowed}")
        }
    }
}

fn conflict(error: &clap::Error, name: &str, option: &str) -> String {
    let prior = texts(error, ContextKind::PriorArg).join(" and ");
    let prior = option_name(&prior);
    if let [command] = texts(error, ContextKind::InvalidSubcommand).as_slice() {
        return format!("{prior} must follow '{command}': use wiregauge {command} {prior}");
    }
    if prior == option || prior.is_empty() {
        return format!("{option} is given twice to {name}: use it once");
    }
    format!("{option} and {prior} exclude each other: use one of them")
}

fn usage(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let words: Vec<&str> = usage.trim_start_matches("Usage: ").split_whitespace().collect();
    format!("use {}", words.join(" "))
}

/// The commands below one that help lists.
pub fn commands(definition: &clap::Command) -> String {
    let shown = definition.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(clap::Command::get_name).collect::<Vec<_>>().join(", ")
}

/// All options of a command, as typed.
fn options(command: &clap::Command) -> impl Iterator<Item = String> + '_ {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    shown.filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
}
