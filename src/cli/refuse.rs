//! From the parser's complaint to one sentence that names what was wrong and what is allowed.

use super::manual;
use super::peers::PEERS;
use super::suggest::{self, Answer, options};
use crate::options::UsageError;
use crate::plan::written::{one_line, shortened};
use crate::transport::TransportKind;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;

/// Longest sentence: what was typed may be long, and the rest of it is not needed.
const LONGEST: usize = 2000;

/// Whether the parser's complaint is a text that was asked for: help or version.
pub fn is_text(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// Whether `-h` was typed, which is shorter than `--help`.
pub fn is_short_help(error: &clap::Error, typed: &[OsString]) -> bool {
    let first = typed.iter().find(|word| *word == "-h" || *word == "--help");
    error.kind() == ErrorKind::DisplayHelp && first.is_some_and(|word| word == "-h")
}

/// The sentence. The definition has the options of the transports too, for suggestions.
pub fn refusal(definition: &clap::Command, typed: &[OsString], error: &clap::Error) -> UsageError {
    UsageError(one_short_line(&sentence(definition, typed, error)))
}

/// One line: what was typed may hold anything.
pub fn one_short_line(sentence: &str) -> String {
    shortened(&one_line(&sentence.replace('\n', r"\n")), LONGEST)
}

fn sentence(definition: &clap::Command, arguments: &[OsString], error: &clap::Error) -> String {
    let (command, names) = spoken(definition, arguments);
    let name = called(&names);
    let text = |kind| texts(error, kind).join(" and ");
    let argument = text(ContextKind::InvalidArg);
    let option = option_name(&argument);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let value = value_after(arguments, &argument);
            unknown(definition, command, &name, Unknown { argument: &argument, value })
        }
        ErrorKind::InvalidSubcommand => {
            let typed = text(ContextKind::InvalidSubcommand);
            no_command(command, &name, &typed)
        }
        ErrorKind::InvalidValue => invalid_value(error, &argument),
        ErrorKind::ValueValidation => {
            let reason = error.source().map_or("invalid value".to_owned(), ToString::to_string);
            let elsewhere = suggest::missing_meaning(option);
            let elsewhere = elsewhere.map(|(peer, why)| format!(" ({peer}'s {option}: {why})"));
            format!("{option}: {reason}{}", elsewhere.unwrap_or_default())
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

/// The command that the arguments name, and the names that lead to it.
pub fn spoken<'a>(
    definition: &'a clap::Command,
    arguments: &[OsString],
) -> (&'a clap::Command, Vec<&'a str>) {
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
    (command, names)
}

/// How a command is called in a sentence.
fn called(names: &[&str]) -> String {
    if names.is_empty() { "wiregauge".to_owned() } else { names.join(" ") }
}

/// What the parser says of one kind: none, one or several texts.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(all)) => all.clone(),
        Some(one) => vec![one.to_string()],
        None => Vec::new(),
    }
}

/// `--size` of `--size <SIZES>`; an operand as it is, without brackets.
fn option_name(argument: &str) -> &str {
    let name = argument.split([' ', '=']).next().unwrap_or(argument);
    if name.starts_with('-') { name } else { argument.trim_matches(['<', '>', '[', ']', '.']) }
}

fn no_command(above: &clap::Command, name: &str, typed: &str) -> String {
    let names: Vec<&str> = commands(above).collect();
    let meant = Answer::sentence(suggest::command(&names, typed));
    match name {
        "wiregauge" => {
            format!("there is no command '{typed}'{meant} (`wiregauge --help` lists all)")
        }
        name => format!("{name} does not take '{typed}'{meant}: use {}", names.join(", ")),
    }
}

/// What `man` takes as one word.
pub fn page_names(whole: &clap::Command) -> Vec<String> {
    commands(whole).chain([manual::ALL_TRANSPORTS]).map(str::to_owned).collect()
}

/// What `help` takes as one word.
pub fn help_names(whole: &clap::Command) -> Vec<String> {
    commands(whole).chain(subjects()).map(str::to_owned).collect()
}

/// What help is about that has no commands: transports and other programs.
fn subjects<'a>() -> impl Iterator<Item = &'a str> {
    let peers = PEERS.iter().map(|peer| peer.name).filter(|name| !name.contains(' '));
    TransportKind::ALL.iter().map(|one| one.name()).chain(peers)
}

/// Why there is no help on these words, of which those before the last lead to a command.
pub fn no_help(whole: &clap::Command, words: &[String]) -> UsageError {
    let is_subject = |word: &&String| subjects().any(|name| name.eq_ignore_ascii_case(word));
    if let Some(subject) = words.iter().find(is_subject) {
        return UsageError(format!(
            "help on a transport or another program takes one name: use `wiregauge help {subject}`"
        ));
    }
    let names: Vec<&str> = commands(whole).chain(subjects()).collect();
    let typed = words.join(" ");
    let meant = Answer::sentence(suggest::help(&names, &typed));
    UsageError(format!(
        "no help on '{typed}'{meant} (`wiregauge --help` lists the commands, `wiregauge list` \
         the transports)"
    ))
}

/// Why there is no man page of these words.
pub fn no_page(whole: &clap::Command, typed: &str) -> UsageError {
    let names = page_names(whole);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let near = suggest::near(typed, &names).map(|name| Answer::Type(format!("'man {name}'")));
    UsageError(format!(
        "no man page on '{typed}'{}: use {}",
        Answer::sentence(near),
        names.join(", ")
    ))
}

/// Returns the word that was typed after an option.
fn value_after<'a>(arguments: &'a [OsString], option: &str) -> &'a str {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    words.find(|word| *word == option);
    words.next().filter(|word| !word.starts_with('-')).unwrap_or_default()
}

/// A word that is neither an option of the command nor an operand that it takes, and the word that
/// follows it, empty where that is an option too.
struct Unknown<'a> {
    argument: &'a str,
    value: &'a str,
}

fn unknown(
    whole: &clap::Command,
    command: &clap::Command,
    name: &str,
    Unknown { argument, value }: Unknown<'_>,
) -> String {
    if !argument.starts_with('-') {
        let has_operands = command.get_positionals().next().is_some();
        return match (command.has_subcommands(), has_operands) {
            (true, _) => no_command(command, name, argument),
            (false, true) => format!("{name} does not take '{argument}': {}", usage(command)),
            (false, false) => {
                let meant = Answer::sentence(suggest::operand(command, argument));
                format!("{name} takes options only, not '{argument}'{meant} ({})", see(name))
            }
        };
    }
    let elsewhere = whole.get_subcommands().filter(|other| other.get_name() != name);
    let elsewhere: Vec<&str> = elsewhere
        .filter(|other| options(other).any(|option| option == argument))
        .map(clap::Command::get_name)
        .collect();
    let meant = match elsewhere.as_slice() {
        [] => Answer::sentence(suggest::option(command, whole, argument, value)),
        some => format!(", which is an option of {}", some.join(", ")),
    };
    format!("{name} has no option '{argument}'{meant} ({})", see(name))
}

/// Where all options are listed.
fn see(name: &str) -> String {
    match name {
        "wiregauge" => "`wiregauge --help` lists all".into(),
        command => format!("`wiregauge help {command}` lists all"),
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
            let names: Vec<&str> = allowed.split(", ").collect();
            let near = suggest::value(option, &names, value);
            let near = near.map_or_else(String::new, |near| format!(" (did you mean '{near}'?)"));
            format!("{option}: unknown value '{value}'{near}: use {allowed}")
        }
    }
}

fn conflict(error: &clap::Error, name: &str, option: &str) -> String {
    let prior = texts(error, ContextKind::PriorArg).join(" and ");
    let prior = option_name(&prior);
    if let [command] = texts(error, ContextKind::InvalidSubcommand).as_slice() {
        return format!("{prior} must follow '{command}': use `wiregauge {command} {prior}`");
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
pub fn commands(above: &clap::Command) -> impl Iterator<Item = &str> {
    above.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name)
}
