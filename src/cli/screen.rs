//! `-h`: the screen that most people need of a command. `--help` is the whole.

use super::command_def::{CommandDef, Group};
use crate::options::OptionDef;

/// Columns and lines of the smallest usual terminal.
pub const WIDTH: usize = 80;
pub const LINES: usize = 24;

/// What a command's screen shows.
pub struct Screen<'a> {
    pub about: &'a str,
    /// How it is called, from "Usage: " on.
    pub usage: &'a str,
    /// One on each line.
    pub examples: &'a str,
    pub operands: &'a [OptionDef],
    pub options: &'a [&'static OptionDef],
    /// Where the rest is.
    pub pointer: String,
}

impl Screen<'_> {
    /// The text: options that are common, or all where none is said to be.
    pub fn text(&self) -> String {
        let shown: Vec<&OptionDef> =
            self.options.iter().copied().filter(|o| !o.is_hidden).collect();
        let common: Vec<&OptionDef> = shown.iter().copied().filter(|o| o.is_common).collect();
        let options = if common.is_empty() { shown } else { common };
        let operands = self.operands.iter().map(|operand| (format!("<{}>", operand.name), operand));
        let options = options.into_iter().map(|option| (typed(option), option));
        let rows: Vec<(String, &OptionDef)> = operands.chain(options).collect();
        let column = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let rows = rows.iter().map(|(name, option)| {
            format!("  {name:column$}  {}", explained(option, WIDTH - column - 4))
        });
        let rows: Vec<String> = rows.collect();
        let examples = self.examples.lines().filter(|line| line.starts_with("  wiregauge"));
        // One that goes on in the next line cannot be pasted.
        let fitting = examples.filter(|line| line.len() <= WIDTH && !line.ends_with('\\'));
        let room = LINES.saturating_sub(rows.len() + 7).clamp(1, 3);
        let examples: Vec<&str> = fitting.take(room).collect();
        let such_as = if examples.is_empty() { "" } else { ", such as" };
        let head =
            [clause(self.about).to_owned(), String::new(), format!("{}{such_as}", self.usage)];
        let examples = examples.iter().map(|line| (*line).to_owned());
        let lines = head.into_iter().chain(examples).chain([String::new()]).chain(rows);
        let lines: Vec<String> = lines.chain([String::new(), self.pointer.clone()]).collect();
        lines.join("\n") + "\n"
    }
}

/// `--size <SIZES>`.
fn typed(option: &OptionDef) -> String {
    match option.takes_value() {
        true => format!("--{} <{}>", option.name, option.metavar),
        false => format!("--{}", option.name),
    }
}

/// What an option means: with the values that it takes and its default, and as much of its
/// explanation, as fit.
fn explained(option: &OptionDef, width: usize) -> String {
    let values = option.shown_choices().map(|names| format!(": {}", names.join(", ")));
    let default = option.default.or(option.default_note);
    let default = default.map(|value| format!(" [default: {value}]")).unwrap_or_default();
    let after = [values.unwrap_or_default() + &default, default, String::new()];
    let long = until(option.help, &[": ", "; ", " ("]);
    let texts = after.iter().flat_map(|after| {
        [option.help, long, clause(option.help)].map(|meaning| format!("{meaning}{after}"))
    });
    let fits = |text: &String| text.chars().count() <= width;
    texts.into_iter().find(fits).unwrap_or_else(|| clause(option.help).to_owned())
}

/// The first clause of a sentence.
fn clause(text: &str) -> &str {
    until(text, &[": ", "; ", ", ", " (", "\n"])
}

/// A text until the first of these.
fn until<'a>(text: &'a str, ends: &[&str]) -> &'a str {
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    &text[..end.unwrap_or(text.len())]
}

/// A line for each command, after the name of its group where that is another than before.
fn listed(commands: &[(&str, &str, &str)]) -> String {
    let mut lines = String::new();
    let mut before = "";
    for (group, name, about) in commands {
        let title = if *group == before { "" } else { group };
        lines.push_str(&format!("{title:8} {name:11}  {}\n", clause(about)));
        before = group;
    }
    lines
}

/// The screen of a command that has commands below it.
pub fn of_commands(about: &str, usage: &str, commands: &[CommandDef]) -> String {
    let rows = commands.iter().map(|below| ("", below.name, below.about));
    format!("{}\n\n{usage}\n\n{}", clause(about), listed(&rows.collect::<Vec<_>>()))
}

/// The program's screen: its commands in groups, a line each.
pub fn of_program(about: &str, commands: &[(Group, &str, &str)]) -> String {
    let of = |group: &'static Group| commands.iter().filter(move |(of, ..)| of == group);
    let rows = Group::ALL.iter().flat_map(of);
    let rows = rows.map(|(group, name, about)| (group.name(), *name, *about));
    format!(
        "{}\n\n\
         Usage: wiregauge [COMMAND] [OPTIONS]  without one: every transport, in a minute\n\n{}\n\
         Of a command: `wiregauge COMMAND -h`; all options: `wiregauge help COMMAND`.\n\
         Of a transport: `wiregauge help tcp`; of other tools: `wiregauge help iperf3`.\n",
        clause(about),
        listed(&rows.collect::<Vec<_>>())
    )
}
