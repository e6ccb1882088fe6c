//! The man pages: one of the program, one of each command, one of the transports.

use crate::host::TOOL_VERSION;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;

/// A page: the name of its file, such as `wiregauge-latency.1`, and its text.
pub struct Page {
    pub file: String,
    pub text: Vec<u8>,
}

impl Page {
    /// Where it is below a directory of man pages.
    pub fn place(&self) -> String {
        let section = self.file.rsplit('.').next().unwrap_or_default();
        format!("man{section}/{}", self.file)
    }
}

const TRANSPORTS: &str = "wiregauge-transports";
/// The word for the page of all transports.
pub const ALL_TRANSPORTS: &str = "transports";

/// The pages of a definition that is built, of the commands below it, and of the transports.
pub fn pages(definition: &clap::Command, transports: &[clap::Command]) -> io::Result<Vec<Page>> {
    let mut pages = vec![of_transports(transports)?];
    let mut left = vec![(definition, None)];
    while let Some((command, above)) = left.pop() {
        pages.push(of_command(command, above)?);
        left.extend(shown(command).map(|below| (below, Some(command))));
    }
    pages.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(pages)
}

/// The file of the page on what these words name: a command, or `transports`.
pub fn file(words: &[String]) -> String {
    let section = if words == [ALL_TRANSPORTS] { "7" } else { "1" };
    let names = ["wiregauge"].into_iter().chain(words.iter().map(String::as_str));
    format!("{}.{section}", names.collect::<Vec<_>>().join("-"))
}

fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// `wiregauge-testbed-net` of the command `wiregauge testbed net`.
fn name(command: &clap::Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}

fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The title of a page, and its name in a line.
fn head(name: &str, section: &str, about: &str) -> Roff {
    let mut roff = Roff::new();
    let version = format!("wiregauge {TOOL_VERSION}");
    roff.control("TH", [name.to_uppercase().as_str(), section, "", version.as_str(), "wiregauge"]);
    let line = about.lines().next().unwrap_or_default().trim_end_matches('.');
    roff.control("SH", ["NAME"]).text([roman(format!("{name} - {line}"))]);
    roff
}

fn of_command(command: &clap::Command, above: Option<&clap::Command>) -> io::Result<Page> {
    let name = name(command);
    let mut roff = head(&name, "1", &about(command));
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    let called = command.get_bin_name().unwrap_or(command.get_name());
    for (number, line) in usage.trim_start_matches("Usage: ").lines().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        let line = line.trim();
        roff.text([bold(called), roman(line.strip_prefix(called).unwrap_or(line))]);
    }
    roff.control("SH", ["DESCRIPTION"]);
    for line in about(command).lines() {
        roff.text([roman(line)]);
    }
    if shown(command).next().is_some() {
        roff.control("SH", ["COMMANDS"]);
    }
    for below in shown(command) {
        roff.control("TP", []).text(linked(&self::name(below), "1", ""));
        roff.text([roman(about(below))]);
    }
    let mut text = roff.render().into_bytes();
    Man::new(command.clone()).render_options_section(&mut text)?;
    let mut roff = Roff::new();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    after.split("\n\n").for_each(|paragraph| explained(paragraph, &mut roff));
    see_also(command, above, &mut roff);
    text.extend(roff.to_roff().into_bytes());
    Ok(Page { file: format!("{name}.1"), text })
}

/// A paragraph after the options, below the heading that it has in a man page.
fn explained(paragraph: &str, roff: &mut Roff) {
    if let Some(examples) = paragraph.strip_prefix("Examples:") {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines().filter(|line| !line.is_empty()) {
            roff.text([roman(line.trim_start())]);
        }
        roff.control("fi", []);
    } else if !paragraph.is_empty() {
        let heading = if paragraph.starts_with("Exit codes") { "EXIT STATUS" } else { "NOTES" };
        roff.control("SH", [heading]);
        for line in paragraph.lines() {
            roff.text([roman(line)]);
        }
    }
}

/// The pages that a reader of this one may want.
fn see_also(command: &clap::Command, above: Option<&clap::Command>, roff: &mut Roff) {
    let has = |option: &str| command.get_arguments().any(|one| one.get_long() == Some(option));
    let mut pages: Vec<(String, &str)> =
        above.map(|above| (name(above), "1")).into_iter().collect();
    let related: [(&str, &[&str]); 2] =
        [("to", &["hosts", "agent"]), ("out", &["report", "compare"])];
    for (option, related) in related {
        if has(option) {
            pages.extend(related.iter().map(|page| (format!("wiregauge-{page}"), "1")));
        }
    }
    pages.retain(|(page, _)| *page != name(command));
    if above.is_none() || has("transport") {
        pages.push((TRANSPORTS.into(), "7"));
    }
    roff.control("SH", ["SEE ALSO"]);
    let last = pages.len().saturating_sub(1);
    for (number, (page, section)) in pages.iter().enumerate() {
        roff.text(linked(page, section, if number == last { "" } else { "," }));
    }
}

fn linked(page: &str, section: &str, after: &str) -> Vec<Inline> {
    vec![bold(page), roman(format!("({section}){after}"))]
}

/// One page of all transports: what each is, and its options.
fn of_transports(transports: &[clap::Command]) -> io::Result<Page> {
    let mut text =
        head(TRANSPORTS, "7", "Transports that wiregauge measures, and their options").render();
    for transport in transports {
        let mut roff = Roff::new();
        roff.control("SH", [transport.get_name().to_uppercase().as_str()]);
        for line in about(transport).lines().filter(|line| !line.is_empty()) {
            roff.text([roman(line)]);
            roff.control("br", []);
        }
        text.push_str(&roff.to_roff());
        let mut options = Vec::new();
        Man::new(transport.clone()).render_options_section(&mut options)?;
        // A heading below that of the transport.
        text.push_str(&String::from_utf8_lossy(&options).replace(".SH", ".SS"));
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]).text(linked("wiregauge", "1", ""));
    text.push_str(&roff.to_roff());
    Ok(Page { file: format!("{TRANSPORTS}.7"), text: text.into_bytes() })
}
