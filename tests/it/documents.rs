//! The commands of README and of the documents, as a reader would type them: each is understood by
//! any shell, and none of those that measure here takes longer than a reader waits. With
//! `DOCUMENTS=run` those that this machine can run are run.

use crate::support::Scratch;
use crate::support::program::{PROGRAM, wiregauge};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};
use wiregauge::cli::{self, Command};
use wiregauge::options::UsageError;
use wiregauge::pattern::registry;
use wiregauge_test_support::bounded;

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

/// A command of a page.
struct Example {
    page: String,
    command: String,
    words: Vec<String>,
    /// The page shows that it is refused.
    is_refused: bool,
}

impl Example {
    fn typed(&self) -> Vec<OsString> {
        ["wiregauge"]
            .into_iter()
            .chain(self.words.iter().map(String::as_str))
            .map(OsString::from)
            .collect()
    }

    fn says(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {}: {what}", self.page, self.command)
    }
}

/// Returns the commands that need nothing but this host.
fn examples() -> Vec<Example> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            // A script of several lines is not wiregauge's alone.
            let Some(words) = shlex::split(&command) else { continue };
            if words.iter().any(|word| FOREIGN.contains(&word.as_str())) {
                continue;
            }
            found.push(Example {
                page: page.file_name().unwrap().to_string_lossy().into_owned(),
                is_refused: is_shown(&text, &command),
                command,
                words,
            });
        }
    }
    found
}

#[test]
fn the_commands_of_the_documents_are_understood_and_end_soon() {
    let mut wrong = Vec::new();
    let examples = examples();
    for example in &examples {
        match cli::parse(&example.typed()) {
            // What a reader has, and an example that shows a refusal.
            Err(UsageError(why)) if why.contains("does not exist") || example.is_refused => {}
            Err(error) => wrong.push(example.says(error.0)),
            Ok(Command::Measure { request, .. }) => match request.plan() {
                Err(error) => wrong.push(example.says(error.0)),
                Ok(plan) => {
                    let takes = plan.duration().filter(|takes| *takes > LIMIT);
                    wrong.extend(takes.map(|takes| example.says(format!("{takes:?}"))));
                }
            },
            Ok(_) => {}
        }
    }
    assert!(examples.len() > 100, "{} commands", examples.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns true for a command whose words a shell would replace before the program sees them: some
/// shells refuse a pattern that no file matches.
fn is_expanded(command: &str) -> bool {
    let mut quote = None;
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '*' | '?' | '[' | '(' | '<' | '{' | '~') => return true,
            _ => {}
        }
    }
    false
}

#[test]
fn examples_quote_what_a_shell_expands() {
    let mut all = Vec::new();
    for page in pages() {
        all.extend(commands(&fs::read_to_string(&page).unwrap()));
    }
    let Ok(Command::Text(program)) = cli::parse(&["wiregauge", "--help"].map(OsString::from))
    else {
        panic!("no help");
    };
    let program = String::from_utf8(program).unwrap();
    let names: Vec<&str> = registry::all().iter().map(|pattern| pattern.name()).collect();
    for name in names {
        let Ok(Command::Text(text)) = cli::parse(&["wiregauge", "help", name].map(OsString::from))
        else {
            panic!("no help on {name}");
        };
        let text = String::from_utf8(text).unwrap();
        all.extend(
            text.lines().filter_map(|line| line.strip_prefix("  wiregauge ")).map(str::to_owned),
        );
    }
    all.extend(
        program.lines().filter_map(|line| line.strip_prefix("  wiregauge ")).map(str::to_owned),
    );
    assert!(all.len() > 180, "{} examples", all.len());
    all.retain(|command| is_expanded(command.split("    ").next().unwrap()));
    assert!(all.is_empty(), "{all:#?}");
    assert!(is_expanded("latency --size 8..64*2"));
    assert!(!is_expanded("latency --size '8..64*2'"));
}

/// Words of a command that has no end of its own, or changes this host.
const WITHOUT_END: [&str; 7] =
    ["--forever", "--live", "agent", "testbed", "recover", "--prepare", "1h"];

/// Bound of an example that runs, which a machine in use by others keeps too.
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Reasons of an example that needs what this host lacks, or what its reader has.
const LACKING: [&str; 6] = [
    "no RDMA",
    "no trace of Homa",
    "needs root",
    "cannot read the study",
    "selects no run",
    "No such file",
];

#[test]
fn the_commands_of_the_documents_run() {
    if std::env::var("DOCUMENTS").is_ok_and(|effort| effort == "run") {
        let records = Scratch::new();
        write_records(&records.0);
        let mut wrong = Vec::new();
        let mut page = String::new();
        let mut folder = Scratch::new();
        for example in examples() {
            if example.page != page {
                page.clone_from(&example.page);
                folder = Scratch::new();
                copy(&records.0, &folder.0);
            }
            let has_end = !example.words.iter().any(|word| WITHOUT_END.contains(&word.as_str()));
            if has_end && cli::parse(&example.typed()).is_ok() {
                wrong.extend(run(&example, &folder.0));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Writes the records and programs that examples of comparisons name.
fn write_records(folder: &Path) {
    fs::create_dir(folder.join("nightly")).unwrap();
    for more in [
        ["--save-baseline", "main"],
        ["--out", "before"],
        ["--out", "after"],
        ["--out", "A"],
        ["--out", "B"],
        ["--out", "runs"],
        ["--out", "DIR"],
        ["--out", "nightly/1"],
        ["--out", "nightly/2"],
        ["--out", "nightly/3"],
    ] {
        let words = ["latency", "--transport", "tcp,shm", "--count", "2000", "--rounds", "3"];
        let ended = wiregauge(folder, &[&words[..], &more].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    for name in ["old", "new"] {
        fs::create_dir(folder.join(name)).unwrap();
        fs::copy(PROGRAM, folder.join(name).join("wiregauge")).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    let ended = bounded::output(process::Command::new("cp").arg("-rT").arg(from).arg(to));
    assert!(ended.status.success(), "{ended:?}");
}

/// Runs an example, and returns what is wrong with its end.
fn run(example: &Example, folder: &Path) -> Option<String> {
    let start = Instant::now();
    let out = example.words.iter().skip_while(|word| *word != "--out").nth(1);
    let _ = out.map(|out| fs::remove_dir_all(folder.join(out)));
    let mut command = process::Command::new(PROGRAM);
    command.args(&example.words).current_dir(folder);
    // A study lasts minutes.
    let is_quick = example.words.iter().any(|word| word == "--quick");
    let is_study = example.words.first().is_some_and(|word| word == "run");
    if is_study && example.words.len() > 1 && !is_quick {
        command.arg("--quick");
    }
    let ended = bounded::start(&mut command).end(RUN_LIMIT);
    println!("{:.1} s, {}: {}", start.elapsed().as_secs_f64(), ended.status, example.says(""));
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_lacking = LACKING.iter().any(|lacking| said.contains(lacking));
    // A limit that was exceeded or is inconclusive, and what this host lacks.
    let is_usual = ended.status.code().is_some_and(|code| [0, 1, 5].contains(&code));
    (!is_usual && !is_lacking && !example.is_refused).then(|| example.says(said))
}
