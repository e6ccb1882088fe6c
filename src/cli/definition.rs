//! The whole definition of the command line, and the texts that it gives itself.

use super::command_def::{CommandDef, Group, Typed};
use super::peers::page;
use super::screen::{self, Screen};
use super::tables::{self, argument, of_command, of_pattern, read_command};
use super::{Command, commands, common_options, complete, manual, refuse};
use crate::host::TOOL_VERSION;
use crate::options::{self, Named, OptionDef, UsageError};
use crate::pattern::registry;
use crate::transport::TransportKind;
use clap::ArgMatches;
use std::ffi::OsString;

const ABOUT: &str = "\
Measure what an interconnect really gives a program, each figure with its own error.
Without a command: a survey of every transport that works on this machine, in under a minute.";

const EXAMPLES: &str = "\
Examples:
  wiregauge                                  every transport of this machine, in under a minute
  wiregauge latency --transport tcp,shm --size '8..64KiB*2'
  wiregauge oneway --transport udp --rate 10k --arrivals poisson
  wiregauge bandwidth --transport unix --size 64KiB --direction bi
  wiregauge compare before after --fail-if 'half_rtt.p99>+10%'

Exit codes: 0 success, 1 a limit was exceeded, 2 wrong usage or refused, 3 incomplete run,
4 nothing could run, 5 a limit is inconclusive.";

const COMPLETIONS: CommandDef = CommandDef {
    group: Group::Help,
    about: "Print completions for a shell",
    examples: "
  wiregauge completions bash > ~/.local/share/bash-completion/completions/wiregauge
  wiregauge completions --dir /usr/share",
    operands: &[OptionDef::one_of("SHELL", shells, "The shell")],
    tables: &[&[
        OptionDef::path("dir", "Write those of all shells below this directory").metavar("DIR")
    ]],
    ..CommandDef::new("completions", completions)
};

const MAN: CommandDef = CommandDef {
    group: Group::Help,
    about: "Print a man page",
    examples: "
  wiregauge man latency | man -l -
  wiregauge man --dir ~/.local/share/man",
    operands: &[OptionDef::parsed::<String>("PAGE", "A command, or 'transports'").list()],
    tables: &[&[OptionDef::path("dir", "Write all pages below this directory, in man1 and man7")
        .metavar("DIR")]],
    ..CommandDef::new("man", man)
};

const HELP: CommandDef = CommandDef {
    group: Group::Help,
    about: "Print help on a command, a transport, or another program's words (help perftest)",
    examples: "
  wiregauge help latency
  wiregauge help verbs
  wiregauge help perftest",
    operands: &[OptionDef::parsed::<String>(
        "NAME",
        "A command, a transport, or another program: iperf3, sockperf, perftest, qperf, netperf, \
         OSU, hyperfine",
    )
    .list()],
    ..CommandDef::new("help", |typed| help(typed.operands("NAME")).map(Command::Text))
};

/// The commands that measure no pattern, but for the survey.
fn others() -> impl Iterator<Item = &'static CommandDef> {
    commands::OTHERS.iter().chain([&COMPLETIONS, &MAN, &HELP]).chain(commands::INTERNAL)
}

/// The whole definition, with the options of all transports in each pattern's help or without.
pub fn definition(with_settings: bool) -> clap::Command {
    let survey = &commands::SURVEY;
    let root = clap::Command::new("wiregauge")
        .version(TOOL_VERSION)
        .about(ABOUT)
        .after_help(EXAMPLES)
        .args_conflicts_with_subcommands(true)
        .subcommand_value_name("COMMAND")
        .disable_help_subcommand(true)
        .max_term_width(tables::HELP_WIDTH)
        .args(survey.given().definitions().iter().map(|option| argument(option)));
    let patterns = registry::all().iter().map(|pattern| of_pattern(*pattern, with_settings));
    let others = others().map(of_command);
    root.subcommand(of_command(survey)).subcommands(patterns).subcommands(others)
}

/// What the parser found, as a command.
pub fn read(matches: &ArgMatches) -> Result<Command, UsageError> {
    let Some((name, below)) = matches.subcommand() else {
        return read_command(&commands::SURVEY, matches);
    };
    if let Some(pattern) = registry::all().iter().find(|pattern| pattern.name() == name) {
        let given = tables::take(below, tables::given_of_pattern(*pattern))?;
        return common_options::measure(*pattern, &given);
    }
    match others().chain([&commands::SURVEY]).find(|command| command.name == name) {
        Some(command) => read_command(command, below),
        None => options::refuse(format!("there is no command '{name}'")),
    }
}

/// The shells whose completions are known.
fn shells() -> Vec<&'static str> {
    complete::SHELLS.map(|(shell, _)| shell).to_vec()
}

/// Completions for a shell, or for all.
fn completions(typed: Typed) -> Result<Command, UsageError> {
    let script = |shell: &str| {
        let script = complete::script(shell);
        script.map_err(|error| UsageError(format!("completions for {shell}: {error}")))
    };
    match (typed.given.text("dir"), typed.operand("SHELL")) {
        (None, Some(shell)) => script(&shell).map(Command::Text),
        (Some(directory), None) => {
            let file = |(shell, file): (&str, &str)| Ok((file.to_owned(), script(shell)?));
            let files =
                complete::SHELLS.into_iter().map(file).collect::<Result<_, UsageError>>()?;
            Ok(Command::Files { directory: directory.into(), files })
        }
        _ => options::refuse(format!("completions needs a shell: use {}", shells().join(", "))),
    }
}

/// A man page, or all.
fn man(typed: Typed) -> Result<Command, UsageError> {
    let mut definition = definition(false);
    definition.build();
    let transports: Vec<clap::Command> =
        TransportKind::ALL.iter().map(|transport| of_transport(*transport)).collect();
    let pages = manual::pages(&definition, &transports);
    let pages = pages.map_err(|error| UsageError(format!("the man pages: {error}")))?;
    if let Some(directory) = typed.given.text("dir") {
        let place = |page: manual::Page| (page.place(), page.text);
        let files = pages.into_iter().map(place).collect();
        return Ok(Command::Files { directory: directory.into(), files });
    }
    let words = typed.operands("PAGE").iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let file = manual::file(&words);
    let page = pages.into_iter().find(|page| page.file == file);
    page.map(|page| Command::Text(page.text))
        .ok_or_else(|| refuse::no_page(&definition, &words.join(" ")))
}

/// What `-h` prints for the command that these names lead to, or for the program.
pub fn screen(names: &[&str], command: &clap::Command) -> String {
    let [name, below @ ..] = names else { return program_screen() };
    let usage = command.clone().render_usage().to_string();
    let pointer = pointer(&names.join(" "));
    if let Some(pattern) = registry::all().iter().find(|pattern| pattern.name() == *name) {
        return Screen {
            about: pattern.about(),
            usage: usage.trim_end(),
            examples: pattern.examples(),
            operands: &[],
            options: &tables::in_order_of_help(*pattern),
            pointer: format!("{pointer}; of a transport: `wiregauge help tcp`"),
        }
        .text();
    }
    let known = others().chain([&commands::SURVEY]).find(|known| known.name == *name);
    let known = below.iter().fold(known, |above, name| {
        above.and_then(|above| above.commands.iter().find(|known| known.name == *name))
    });
    match known {
        Some(known) if !known.commands.is_empty() => {
            screen::of_commands(known.about, usage.trim_end(), known.commands)
        }
        Some(known) => Screen {
            about: known.about,
            usage: usage.trim_end(),
            examples: known.examples,
            operands: known.operands,
            options: known.given().definitions(),
            pointer,
        }
        .text(),
        None => command.clone().render_help().to_string(),
    }
}

/// Returns the line that says where all options of a command are listed.
fn pointer(command: &str) -> String {
    format!("All options: `wiregauge help {command}`")
}

fn program_screen() -> String {
    let patterns = registry::all().iter();
    let patterns = patterns.map(|pattern| (Group::Measure, pattern.name(), pattern.about()));
    let others = [&commands::SURVEY].into_iter().chain(others()).filter(|one| !one.is_hidden);
    let others = others.map(|one| (one.group, one.name, one.about));
    screen::of_program(ABOUT, &patterns.chain(others).collect::<Vec<_>>())
}

/// Help on a command, or on the options of a transport.
fn help(names: &[OsString]) -> Result<Vec<u8>, UsageError> {
    let words: Vec<String> = names.iter().map(|word| word.to_string_lossy().into()).collect();
    if let [name] = words.as_slice()
        && let Some(transport) = TransportKind::from_name(name)
    {
        let text = of_transport(transport).render_help().to_string();
        return Ok(text.into_bytes());
    }
    if let [name] = words.as_slice()
        && let Some(peer) = page::find(name)
    {
        return Ok(page::text(peer).into_bytes());
    }
    let mut whole = definition(false);
    whole.build();
    let mut known = &whole;
    for word in &words {
        known = known.find_subcommand(word).ok_or_else(|| refuse::no_help(&whole, &words))?;
    }
    Ok(known.clone().render_help().to_string().into_bytes())
}

/// The options of a transport as a command's.
fn of_transport(transport: TransportKind) -> clap::Command {
    let descriptor = transport.descriptor();
    let patterns = registry::carried_by(descriptor).join(", ");
    let (more, template) = match descriptor.settings.is_empty() {
        true => ("\n\nIt has no options of its own.", "{about}\n"),
        false => ("", "{about}\n\nOptions:\n{options}\n"),
    };
    let about = descriptor.about;
    clap::Command::new(transport.name())
        .about(format!("Transport {transport}: {about}\nCommands: {patterns}{more}"))
        .help_template(template)
        .max_term_width(tables::HELP_WIDTH)
        .disable_help_flag(true)
        .args(descriptor.settings.iter().map(tables::argument))
}
