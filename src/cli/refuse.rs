//! What the argument parser objects to, as one sentence that names what was wrong and what is
//! allowed.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The sentence.
pub fn sentence(error: &clap::Error, typed: &[String]) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(all)) => all.join(", "),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            format!("option '{argument}' is unknown; allowed here are {}", options(typed))
        }
        ErrorKind::InvalidSubcommand => format!(
            "command '{}' is unknown; allowed are {}",
            text(ContextKind::InvalidSubcommand),
            commands()
        ),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = text(ContextKind::InvalidValue);
            let allowed = text(ContextKind::ValidValue);
            let option = argument.split_whitespace().next().unwrap_or_default();
            match (value.as_str(), allowed.as_str()) {
                ("", "") => format!("{argument} needs a value"),
                ("", allowed) => format!("{argument} needs a value; allowed are {allowed}"),
                (value, "") => {
                    format!("{option} '{value}' is not allowed; write {argument}{}", why(error))
                }
                (value, allowed) => {
                    format!("{option} '{value}' is not allowed; allowed are {allowed}")
                }
            }
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{argument} is missing; see wiregauge --help for what is allowed")
        }
        ErrorKind::ArgumentConflict => format!(
            "{argument} and {} cannot go together; give one of them",
            text(ContextKind::PriorArg)
        ),
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{argument} has the wrong number of values; see wiregauge --help")
        }
        _ => {
            let whole = error.to_string();
            let first = whole.lines().next().unwrap_or("wrong use");
            first.trim_start_matches("error: ").to_string()
        }
    }
}

fn why(error: &clap::Error) -> String {
    std::error::Error::source(error).map(|source| format!(" ({source})")).unwrap_or_default()
}

/// The options of the command that was typed.
fn options(typed: &[String]) -> String {
    let whole = super::args::Cli::command();
    let named = typed.iter().skip(1).find_map(|word| whole.find_subcommand(word).cloned());
    let command = named.unwrap_or(whole);
    let all: Vec<String> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .filter_map(|argument| argument.get_long().map(|name| format!("--{name}")))
        .collect();
    match all.is_empty() {
        true => "--help".into(),
        false => all.join(", "),
    }
}

fn commands() -> String {
    let whole = super::args::Cli::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_string()).collect::<Vec<_>>().join(", ")
}
