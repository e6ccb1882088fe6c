//! Breaks expressions that figures depend on, one at a time, and says which breaks no test notices.
//!
//! A mutant costs a run of a few tests and no build: all of them are compiled into one copy of the
//! sources, each behind a switch that an environment variable sets. (`cargo-mutants` builds the
//! crate for each mutant, a minute apiece.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The breaks, each a line `FILE | TESTS | EXPRESSION | INSTEAD`.
const LIST: &str = include_str!("../mutants.txt");
/// What switches one on, by its number.
const SWITCH: &str = "WIREGAUGE_MUTANT";
/// What is there in the copy to ask for it.
const ASK: &str = "
/// Whether this mutant is switched on.
pub(crate) fn is_mutant(number: u32) -> bool {
    static ON: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *ON.get_or_init(|| std::env::var(\"WIREGAUGE_MUTANT\").ok()?.parse().ok()) == Some(number)
}
";
/// A mutant that runs longer is one that was noticed: the tests asked take seconds.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

struct Mutant {
    file: String,
    tests: String,
    expression: String,
    instead: String,
}

fn list() -> Result<Vec<Mutant>, String> {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [file, tests, expression, instead] = parts[..] else {
            return Err(format!("mutants.txt: '{line}' has {} fields, not 4", parts.len()));
        };
        let [file, tests, expression, instead] =
            [file, tests, expression, instead].map(str::to_owned);
        Ok(Mutant { file, tests, expression, instead })
    };
    lines.map(read).collect()
}

/// Copies what a build of the library needs into a fresh folder.
fn copy(root: &Path, to: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    // What is listed by git, and nothing that was built.
    let script = format!("git ls-files -z | tar --null -T - -c | tar -x -C '{}'", to.display());
    run(Command::new("sh").arg("-c").arg(script).current_dir(root))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Puts every mutant behind its switch.
fn insert(copy: &Path, mutants: &[Mutant]) -> Result<(), String> {
    for (number, mutant) in mutants.iter().enumerate() {
        let path = copy.join(&mutant.file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", mutant.file))?;
        let (own, tests) = text.split_at(text.find("#[cfg(test)]").unwrap_or(text.len()));
        let times = own.matches(&mutant.expression).count();
        if times != 1 {
            let what = &mutant.expression;
            return Err(format!("{}: '{what}' is there {times} times, not once", mutant.file));
        }
        let switched = format!(
            "(if crate::is_mutant({number}) {{ {} }} else {{ {} }})",
            mutant.instead, mutant.expression
        );
        let text = own.replacen(&mutant.expression, &switched, 1) + tests;
        fs::write(&path, text).map_err(|error| format!("{}: {error}", mutant.file))?;
    }
    let path = copy.join("src/lib.rs");
    let text = fs::read_to_string(&path).map_err(|error| format!("src/lib.rs: {error}"))?;
    fs::write(&path, text + ASK).map_err(|error| format!("src/lib.rs: {error}"))
}

/// Builds the library's tests in the copy, beside what was built of the original's dependences.
fn build(root: &Path, copy: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "--config",
        "profile.dev.package.wiregauge.opt-level=0",
        "test",
        "--lib",
        "--no-run",
    ]);
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", root.join("target")).stdout(Stdio::null());
    let output =
        cargo.stderr(Stdio::piped()).output().map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let program = said
        .rsplit_once("Executable ")
        .and_then(|(_, rest)| Some(PathBuf::from(rest.split_once('(')?.1.split_once(')')?.0)));
    program.filter(|_| output.status.success()).ok_or_else(|| said.into_owned())
}

/// Whether the tests fail.
fn is_noticed(program: &Path, copy: &Path, number: usize, tests: &str) -> Result<bool, String> {
    let mut command = Command::new(program);
    command.args(tests.split(' ')).current_dir(copy).env(SWITCH, number.to_string());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(!status.success()),
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(true);
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Tries all of them. Fails where one is not noticed, or where the tests fail without any.
pub fn mutate() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    let to = root.join("target/mutants");
    let mutants = list()?;
    copy(&root, &to)?;
    insert(&to, &mutants)?;
    let program = build(&root, &to)?;
    let mut survivors = 0;
    for tests in mutants.iter().map(|mutant| mutant.tests.as_str()).collect::<BTreeSet<_>>() {
        let fails = is_noticed(&program, &to, mutants.len(), tests)?;
        if fails {
            return Err(format!("the tests {tests} fail without a mutant"));
        }
    }
    for (number, mutant) in mutants.iter().enumerate() {
        if !is_noticed(&program, &to, number, &mutant.tests)? {
            survivors += 1;
            println!("{}: '{}' for '{}'", mutant.file, mutant.instead, mutant.expression);
        }
    }
    println!("{} mutants, {survivors} not noticed", mutants.len());
    if survivors == 0 { Ok(()) } else { Err("a test is missing".to_owned()) }
}
