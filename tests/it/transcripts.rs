//! Runs the commands of a page's `console` blocks in order and compares exit codes and all lines
//! without figures. `UPDATE_DOCS=1` rewrites the output in the pages.

use crate::support::Scratch;
use crate::support::program::{Printed, wiregauge};

const PAGES: [&str; 3] = ["first-hour", "synthetic", "transports"];
const BEGIN: &str = "```console";
const END: &str = "```";
const PROMPT: &str = "$ wiregauge ";
const CODE: &str = "? ";
/// A longer output is cut off after this many lines.
const MOST_LINES: usize = 24;
/// Prefixes of lines that depend on the machine and its load.
const OF_THE_MACHINE: [&str; 4] = ["warning:", "advice:", "severe:", "not available:"];

/// A command with the exit code and the output that the page shows.
struct Step {
    command: String,
    code: i32,
    lines: Vec<String>,
}

/// Splits the page into pairs of text and the transcript that follows it.
fn parts(page: &str) -> Vec<(Vec<&str>, Vec<Step>)> {
    let mut parts = Vec::new();
    let mut lines = page.lines();
    loop {
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != BEGIN).collect();
        let mut steps: Vec<Step> = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != END) {
            let command = line.strip_prefix(PROMPT);
            if let Some(command) = command {
                steps.push(Step { command: command.to_owned(), code: 0, lines: Vec::new() });
                continue;
            }
            let step = steps.last_mut().unwrap_or_else(|| panic!("{line}"));
            match line.strip_prefix(CODE).and_then(|code| code.parse().ok()) {
                Some(code) => step.code = code,
                None => step.lines.push(line.to_owned()),
            }
        }
        let is_last = steps.is_empty();
        parts.push((text, steps));
        if is_last {
            return parts;
        }
    }
}

fn run(scratch: &Scratch, step: &Step) -> Printed {
    let words = shlex::split(&step.command).unwrap();
    wiregauge(&scratch.0, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The lines of stdout, or of stderr if stdout is empty.
fn lines_of(printed: &Printed) -> Vec<&str> {
    let text = if printed.stdout.is_empty() { &printed.stderr } else { &printed.stdout };
    let lines = text.lines().filter(|line| !line.starts_with("wiregauge: CPU"));
    lines.map(str::trim_end).collect()
}

/// The line without the padding of its columns.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is the same on all machines.
fn is_certain(line: &str) -> bool {
    let line = line.trim_start();
    // The answer's sentences depend on the figures.
    let is_answer = line.ends_with('.') || line.contains("->");
    !OF_THE_MACHINE.iter().any(|word| line.starts_with(word))
        && !line.is_empty()
        && !is_answer
        && !line.chars().any(|c| c.is_ascii_digit())
}

#[test]
fn the_commands_of_a_page_print_what_it_shows() {
    PAGES.iter().for_each(|page| replay(page));
}

fn replay(page: &str) {
    let path = format!("{}/docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap();
    let scratch = Scratch::new();
    let mut written = String::new();
    for (text, steps) in parts(&page) {
        text.iter().for_each(|line| written += &format!("{line}\n"));
        if steps.is_empty() {
            break;
        }
        written += &format!("{BEGIN}\n");
        for step in &steps {
            let printed = run(&scratch, step);
            let code = printed.code.unwrap();
            let lines = lines_of(&printed);
            written += &format!("{PROMPT}{}\n", step.command);
            if code != 0 {
                written += &format!("{CODE}{code}\n");
            }
            lines.iter().take(MOST_LINES).for_each(|line| written += &format!("{line}\n"));
            if std::env::var_os("UPDATE_DOCS").is_some() {
                continue;
            }
            let command = &step.command;
            assert_eq!(code, step.code, "{command}: {printed:?}");
            let found: Vec<String> = lines.iter().map(|line| words(line)).collect();
            for line in step.lines.iter().filter(|line| is_certain(line)) {
                assert!(found.contains(&words(line)), "{command}: no '{line}' in {printed:?}");
            }
        }
        written += &format!("{END}\n");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, written).unwrap();
    }
}
