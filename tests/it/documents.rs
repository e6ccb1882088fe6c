//! The commands of README and of the documents, as a reader would type them: each is understood,
//! and none of those that measure here takes longer than a reader waits.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wiregauge::cli::{self, Command};
use wiregauge::options::UsageError;

/// Longest time of an example.
const LIMIT: Duration = Duration::from_secs(30);

/// Options that need what this host may lack: other hosts, devices, files of the reader.
const FOREIGN: [&str; 13] = [
    "--congestion",
    "--to",
    "--hosts",
    "--hosts-file",
    "--interface",
    "--device",
    "--trace",
    "--nodes",
    "--client-hosts",
    "--ssh",
    "--rails",
    "--node-in",
    "--mpirun",
];

/// Returns true for a command whose refusal stands below it, and for CPUs that this host lacks.
fn is_shown(text: &str, command: &str) -> bool {
    let mut lines =
        text.lines().skip_while(|line| line.strip_prefix("$ wiregauge ") != Some(command));
    let answer = lines.by_ref().skip(1).take(2).any(|line| line.starts_with("? "));
    answer || command.contains("--cpus")
}

/// Returns README and all documents.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("METHOD.md"), root.join("COMPARE.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "md") {
            pages.push(path);
        }
    }
    pages
}

/// Returns the commands of wiregauge in the blocks of shell of a page.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let Some((kind, lines)) = block.split_once('\n') else { continue };
        if kind != "sh" && kind != "console" {
            continue;
        }
        let lines = lines.replace("\\\n", " ");
        for line in lines.lines() {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.split("  #").next().unwrap_or_default();
            for command in line.split(";  ") {
                if let Some(words) = command.trim().strip_prefix("wiregauge ") {
                    found.push(words.split(" | ").next().unwrap().to_owned());
                }
            }
        }
    }
    found
}

#[test]
fn the_commands_of_the_documents_are_understood_and_end_soon() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            // A script of several lines is not wiregauge's alone.
            let Some(words) = shlex::split(&command) else { continue };
            if words.iter().any(|word| FOREIGN.contains(&word.as_str())) {
                continue;
            }
            count += 1;
            let typed: Vec<OsString> = ["wiregauge".into()]
                .into_iter()
                .chain(words.into_iter().map(OsString::from))
                .collect();
            let name = page.file_name().unwrap().to_string_lossy();
            match cli::parse(&typed) {
                // What a reader has, and an example that shows a refusal.
                Err(UsageError(why))
                    if why.contains("does not exist") || is_shown(&text, &command) => {}
                Err(error) => wrong.push(format!("{name}: {command}: {}", error.0)),
                Ok(Command::Measure { request, .. }) => match request.plan() {
                    Err(error) => wrong.push(format!("{name}: {command}: {}", error.0)),
                    Ok(plan) => {
                        let takes = plan.duration();
                        if takes.is_some_and(|takes| takes > LIMIT) {
                            wrong.push(format!("{name}: {command}: {takes:?}"));
                        }
                    }
                },
                Ok(_) => {}
            }
        }
    }
    assert!(count > 100, "{count} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
