//! The command line's seeds and dictionaries: the examples and the words of the help texts.

use super::{Path, all_valid, fs, renewed, root, seeds, text_of};
use std::collections::BTreeSet;
use std::ffi::OsString;
use wiregauge::cli::{self, Command};

/// Keys and values of a study that no option has.
const OF_STUDIES: &[&str] = &[
    "title = ",
    "source = ",
    "[all]\n",
    "[[graph]]\n",
    "[[graph.reference]]\n",
    "[[impact]]\n",
    "series = ",
    "kind = \"bars\"",
    "metric = ",
    "file = ",
    "table = ",
    "column = ",
    "beside = ",
    "true",
    "false",
    "[",
    "]",
    "\"",
    "# ",
    "\n",
    "1e308",
    "-1",
    "\"\"\"",
];
/// Values that are hard for some option.
const VALUES: &[&str] = &[
    "18446744073709551615",
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "1..16384*2",
    "8..64KiB*2",
    "100k",
    "1gbit",
    "50%",
    "10us",
    "2,3",
    "0-3/4-7",
    "here",
    "agent:[::1]:7425",
    "on-off(1000,1ms,1s)",
    "constant(1us)",
    "half_rtt.p99>+10%",
    "/dev/null",
    "/",
    "=",
    "\n",
];

/// Returns the help text of a command.
fn help(names: &[&str]) -> String {
    let words = ["wiregauge", "help"].iter().chain(names).map(OsString::from);
    match cli::parse(&words.collect::<Vec<_>>()) {
        Ok(Command::Text(text)) => String::from_utf8(text).unwrap(),
        other => panic!("{names:?}: {other:?}"),
    }
}

/// Returns the names of a help text's list of commands.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What goes on in the next line is indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| help.contains(&format!("\n  {name}  "))).map(str::to_owned).collect()
}

/// Returns all help texts: of the program, its commands, those below them, and its transports.
fn all_help() -> Vec<String> {
    let mut all = vec![help(&[])];
    for name in commands(&all[0]) {
        if name == "help" {
            continue;
        }
        let own = help(&[&name]);
        all.extend(commands(&own).iter().map(|below| help(&[&name, below])));
        all.push(own);
    }
    let transports = wiregauge::transport::TransportKind::ALL.iter();
    all.extend(transports.map(|transport| help(&[transport.name()])));
    all
}

/// Returns the option names of all help texts, with their dashes.
fn options() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in all_help() {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let words = words.filter(|word| word.len() > 3);
        found.extend(words.filter(|word| word.starts_with("--")).map(str::to_owned));
    }
    found
}

/// Returns the words of the examples that are valid as they stand, an option and its value each a
/// word. Those that name a file that is not there are refused.
fn examples() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for text in all_help() {
        for line in text.lines().filter_map(|line| line.strip_prefix("  wiregauge ")) {
            let line = line.split(" > ").next().unwrap_or(line);
            let Some(words) = shlex::split(line) else { continue };
            if parsed(&words).is_ok() && !all.contains(&words) {
                all.push(words);
            }
        }
    }
    all
}

fn parsed(words: &[String]) -> Result<Command, String> {
    let words = std::iter::once("wiregauge").chain(words.iter().map(String::as_str));
    let words: Vec<OsString> = words.map(OsString::from).collect();
    cli::parse(&words).map_err(|wrong| wrong.to_string())
}

fn dictionary(name: &str) -> std::path::PathBuf {
    root().join("fuzz/dictionaries").join(name)
}

/// Writes words in the form of libFuzzer's dictionaries.
pub fn write_dictionary(name: &str, about: &str, words: impl IntoIterator<Item = String>) {
    let mut text = format!("# {about}\n");
    for word in words.into_iter().collect::<BTreeSet<_>>() {
        let escaped = word.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            other => format!("\\x{other:02x}"),
        });
        text += &format!("\"{}\"\n", escaped.collect::<String>());
    }
    fs::write(dictionary(name), text).unwrap();
}

/// Writes the seeds of the command line, and the dictionaries that have its words.
pub fn write() {
    let folder = renewed("command_line");
    for (number, words) in examples().iter().enumerate() {
        fs::write(folder.join(format!("{}-{number}", words[0])), words.join("\n")).unwrap();
    }
    let values = VALUES.iter().map(|value| (*value).to_owned());
    let names = commands(&help(&[])).into_iter();
    let all = options().into_iter().chain(values).chain(names);
    write_dictionary("command_line", "Commands, options, and values that are hard.", all);
    let keys = options().into_iter().map(|option| format!("{} = ", option.trim_start_matches('-')));
    let words = OF_STUDIES.iter().map(|word| (*word).to_owned()).chain(keys);
    write_dictionary("study", "Keys of studies: the options, and what only studies have.", words);
}

/// A seed that a change of the options made invalid, or a new option that no dictionary has.
#[test]
fn command_lines_are_read_and_their_dictionaries_have_every_option() {
    all_valid(&seeds("command_line"), |_: &Path, bytes| {
        let words: Vec<String> = text_of(bytes)?.lines().map(str::to_owned).collect();
        parsed(&words).map(drop)
    });
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        return;
    }
    let text = fs::read_to_string(dictionary("command_line")).unwrap();
    let of_studies = fs::read_to_string(dictionary("study")).unwrap();
    for option in options() {
        let has_it = text.contains(&format!("\"{option}\"\n"));
        let has_key = of_studies.contains(&format!("\"{} = \"\n", option.trim_start_matches('-')));
        assert!(has_it && has_key, "{option}: UPDATE_SEEDS=1 cargo test --test it seeds::");
    }
}
