//! Every command that the program, its documents and its examples print is one that it takes.

use super::*;
use crate::cli::definition;
use crate::plan::host_spec;
use std::path::{Path, PathBuf};
use wiregauge_test_support::printed::{self, Printed};

/// A word that stands for something in a command, and one of the things that it may stand for.
const STANDS_FOR: [(&str, &str); 20] = [
    ("{identity}", ""),
    ("{subject}", "shm"),
    ("{command}", "latency"),
    ("N", "2"),
    ("TIME", "1ms"),
    ("{prior}", "--json"),
    ("{key}", "json"),
    ("{to}", "node07"),
    ("{}", "result"),
    ("HOST[:PORT]", "node07:7425"),
    ("HOST", "node07"),
    ("ADDRESS", "10.1.0.7"),
    ("COMMAND", "latency"),
    ("<COMMAND>", "list"),
    ("STUDY", "sockets/overview"),
    ("NAME", "shm"),
    ("DIR", "result"),
    ("FILE", "file"),
    ("PAGE", "latency"),
    ("TRANSPORT", "shm"),
];

/// Words that end a command on a line of a shell.
const ENDS: [&str; 10] = ["|", "||", "&&", "&", ";", ">", ">>", "2>", "<", "#"];

/// Refusals that depend on the machine on which a command is pasted, and is looked at last.
const OF_THE_MACHINE: [&str; 6] = [
    "there is no network interface",
    "does not exist: use a run directory",
    "is not online",
    "cannot read '",
    "exists already and is never overwritten",
    "hosts are named, but this is rank",
];

/// Commands that pages show since they are refused, and one that is the version of a file's form.
const REFUSED: [&str; 4] = [
    "wiregauge latency --iterations 1000",
    "wiregauge ib_send_lat",
    "wiregauge latency --transport shm --nodelay on",
    "wiregauge testbed 1",
];

fn is_command(word: &str) -> bool {
    let whole = definition::definition(false);
    whole.get_subcommands().any(|one| one.get_name() == word)
}

/// Returns true if words are the names of a command alone: it is spoken of, and not to be pasted.
fn is_name(words: &[String]) -> bool {
    let whole = definition::definition(false);
    words[1..].iter().try_fold(whole, |above, name| above.find_subcommand(name).cloned()).is_some()
}

/// Returns why a line of commands is not taken, where what it stands on is no fault of it.
fn refused(line: &str) -> Option<String> {
    let Some(words) = host_spec::words(line) else { return Some("no shell takes it".into()) };
    let mut commands = vec![Vec::new()];
    for word in words {
        let is_last = ENDS.contains(&word.as_str()) || word.ends_with(';');
        let word = if is_last { word.trim_end_matches(';') } else { &word };
        if !ENDS.contains(&word) && !word.is_empty() {
            commands.last_mut()?.push(word.to_owned());
        }
        if is_last {
            commands.push(Vec::new());
        }
    }
    commands
        .iter()
        .filter(|command| command.first().is_some_and(|name| name == "wiregauge"))
        .find_map(|command| refused_command(command))
}

fn refused_command(command: &[String]) -> Option<String> {
    if is_name(command) || REFUSED.contains(&&*command.join(" ")) {
        return None;
    }
    let words = command.iter().map(|word| {
        let own = STANDS_FOR.iter().find(|(name, _)| name == word);
        own.map_or_else(|| filled(word), |(_, value)| (*value).to_owned())
    });
    let words: Vec<OsString> = words.filter(|word| !word.is_empty()).map(OsString::from).collect();
    let UsageError(sentence) = parse(&words).err()?;
    let is_of_machine = OF_THE_MACHINE.iter().any(|one| sentence.contains(one));
    (!is_of_machine).then_some(sentence)
}

/// A word with what stands for something in the middle of it.
fn filled(word: &str) -> String {
    let braces = STANDS_FOR.iter().filter(|(name, _)| name.starts_with('{'));
    braces.fold(word.to_owned(), |word, (name, value)| word.replace(name, value))
}

/// Files with this ending below a folder of the repository.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The commands of a text that are refused, or whose end cannot be told.
fn wrong(place: &str, text: &str) -> Vec<String> {
    let Printed { commands, unmarked } = printed::commands(text, is_command);
    let refused = commands
        .iter()
        .filter_map(|command| refused(command).map(|why| format!("{place}: `{command}`: {why}")));
    let unmarked = unmarked.iter().map(|command| format!("{place}: without backquotes: {command}"));
    refused.chain(unmarked).collect()
}

#[test]
fn every_command_in_a_sentence_of_the_program_can_be_pasted() {
    let mut found = Vec::new();
    let mut commands = 0;
    for folder in ["src", "crates"] {
        for path in files(folder, "rs") {
            let place = path.display().to_string();
            if ["/tests/", "/tests.rs", "test-support"].iter().any(|of| place.contains(of)) {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for text in printed::literals(&source) {
                commands += text.matches("wiregauge ").count();
                found.extend(wrong(&place, &usage_left_out(&text)));
            }
        }
    }
    assert!(commands > 100, "{commands} were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_command_in_help_and_manual_can_be_pasted() {
    let mut whole = definition::definition(false);
    whole.build();
    let mut found = Vec::new();
    let mut all: Vec<(String, &clap::Command)> = vec![(String::new(), &whole)];
    while let Some((names, command)) = all.pop() {
        for line in [format!("{names} --help"), format!("{names} -h")] {
            let Ok(Command::Text(text)) = asked(&line) else { panic!("{line}: no help") };
            found.extend(wrong(&line, &usage_left_out(&String::from_utf8(text).unwrap())));
        }
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        all.extend(below.map(|one| (format!("{names} {}", one.get_name()), one)));
    }
    for transport in TransportKind::ALL {
        let Ok(Command::Text(text)) = asked(&format!("help {transport}")) else { panic!() };
        found.extend(wrong(transport.name(), &String::from_utf8(text).unwrap()));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Help without the line that says how a command is called.
fn usage_left_out(help: &str) -> String {
    let lines = help.lines().filter(|line| !line.starts_with("Usage: "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_command_in_the_documents_can_be_pasted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = ["README.md", "METHOD.md", "COMPARE.md"].map(|page| root.join(page));
    let mut found = Vec::new();
    for path in files("docs", "md").into_iter().chain(pages) {
        let place = path.display().to_string();
        // How other programs' words are answered is another test's.
        if place.ends_with("docs/peers.md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        found.extend(wrong_in_page(&place, &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the wrong commands of a page, where lines stand between fences, and sentences elsewhere.
fn wrong_in_page(place: &str, text: &str) -> Vec<String> {
    let parts = text.split("```").enumerate();
    let found = parts.flat_map(|(number, part)| match number % 2 {
        1 => fenced(part).iter().flat_map(|line| wrong(place, line)).collect::<Vec<_>>(),
        // Paragraphs of a list are indented, too.
        _ => wrong(place, &part.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")),
    });
    found.collect()
}

/// The commands between two fences, each as a line; a quote may go on in the next.
fn fenced(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let own = line.trim_start().trim_start_matches("$ ");
        match found.last_mut().filter(|_| is_open) {
            Some(last) => *last += &format!(" {line}"),
            None if own.starts_with("wiregauge ") => found.push(format!("  {own}")),
            None => continue,
        }
        let so_far = found.last_mut().map(|last| {
            let goes_on = last.ends_with('\\');
            *last = last.trim_end_matches('\\').to_owned();
            goes_on || host_spec::words(last).is_none()
        });
        is_open = so_far.unwrap_or_default();
    }
    found
        .iter()
        .map(|line| format!("  {}", line.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect()
}

#[test]
fn a_command_that_is_not_taken_is_noticed() {
    for (text, why) in [
        ("use `wiregauge latency --wrong`", "has no option '--wrong'"),
        ("`wiregauge pair [::1]:x`", "invalid agent address"),
        ("or:\n  wiregauge compare one", "compare needs"),
        ("see wiregauge list for them", "without backquotes"),
        ("`wiregauge run 'a`", "no shell takes it"),
    ] {
        let found = wrong("here", text);
        assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
    }
}
