//! A copy of the sources in which all mutants stand behind switches, and its build.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{self, run};

/// What switches a mutant on, by its number.
pub const SWITCH: &str = "WIREGAUGE_MUTANT";
/// Names a file to which each number is added once that was asked for.
pub const ASKED: &str = "WIREGAUGE_MUTANTS_ASKED";

/// The package of the tests of whole runs.
const ROOT: &str = "wiregauge";

/// A library that makes figures: its package, the folder of its sources, and the test programs that
/// it has beside its unit tests.
pub struct Library {
    package: &'static str,
    folder: &'static str,
    tests: &'static [&'static str],
}

/// The libraries, the lower ones first.
pub const LIBRARIES: [Library; 6] = [
    Library { package: "wiregauge-clock", folder: "crates/clock/src/", tests: &[] },
    Library { package: "wiregauge-sample", folder: "crates/sample/src/", tests: &[] },
    Library { package: "wiregauge-stats", folder: "crates/stats/src/", tests: &["histograms"] },
    Library {
        package: "wiregauge-analysis",
        folder: "crates/analysis/src/",
        tests: &["with_patterns"],
    },
    Library { package: "wiregauge-run", folder: "crates/run/src/", tests: &[] },
    Library { package: "wiregauge-patterns", folder: "crates/patterns/src/", tests: &[] },
];

impl Library {
    /// Returns how many programs its tests are.
    pub fn programs(&self) -> usize {
        1 + self.tests.len()
    }

    /// Returns the names of its test programs, that of its unit tests first.
    fn targets(&self) -> impl Iterator<Item = String> {
        let unit_tests = std::iter::once(self.package.replace('-', "_"));
        unit_tests.chain(self.tests.iter().map(|name| name.to_string()))
    }

    pub fn has(&self, file: &str) -> bool {
        file.starts_with(self.folder)
    }
}

/// A file of the sources, by its name from the folder of its library.
pub fn in_library(file: &str) -> &str {
    LIBRARIES.iter().find_map(|library| file.strip_prefix(library.folder)).unwrap_or(file)
}

/// Copies what a build of the libraries needs into a fresh folder.
pub fn copy(root: &Path, to: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(to);
    command::folder(to)?;
    // What is listed by git, and nothing that was built.
    let script = format!("git ls-files -z | tar --null -T - -c | tar -x -C '{}'", to.display());
    run(Command::new("sh").arg("-c").arg(script).current_dir(root))
}

/// Reads a file of the sources, by its name from their root.
pub fn read(root: &Path, file: &str) -> Result<String, String> {
    command::read(&root.join(file))
}

/// Writes a file of the sources, by its name from their root.
pub fn write(root: &Path, file: &str, text: &str) -> Result<(), String> {
    command::write(&root.join(file), text)
}

/// Adds the function that asks for a switch to each library.
pub fn add_switches(copy: &Path, mutants: usize) -> Result<(), String> {
    let asks = include_str!("switch.rs.txt").replace("COUNT", &mutants.to_string());
    for library in &LIBRARIES {
        let file = format!("{}lib.rs", library.folder);
        let text = read(copy, &file)?;
        write(copy, &file, &(text + &asks))?;
    }
    Ok(())
}

/// How well the copy is optimised.
pub enum Level {
    /// For few runs of few tests.
    Quick = 0,
    /// For many of all.
    Fast = 1,
}

/// What came of a build.
pub enum Built {
    /// The programs with tests, in the order in which they were named.
    Programs(Vec<PathBuf>),
    Refused(Vec<CompilerError>),
}

pub struct CompilerError {
    pub text: String,
    /// The places that it is about, in bytes of a file; the others explain.
    pub places: Vec<(String, Range<usize>)>,
    pub explained_by: Vec<(String, Range<usize>)>,
}

/// Builds the tests of all libraries, and those of these files of `tests/`, in the copy, beside
/// what was built of the original's dependences.
pub fn build(root: &Path, copy: &Path, level: Level, others: &[&str]) -> Result<Built, String> {
    let mut cargo = Command::new("cargo");
    let level = level as u8;
    for Library { package, .. } in &LIBRARIES {
        cargo.args(["--config", &format!("profile.dev.package.{package}.opt-level={level}")]);
    }
    cargo.args(["test", "--no-run", "--quiet", "--message-format=json", "--lib"]);
    for Library { package, tests, .. } in &LIBRARIES {
        cargo.args(["-p", package]).args(tests.iter().flat_map(|name| ["--test", name]));
    }
    if !others.is_empty() {
        cargo.args(["-p", ROOT]).args(others.iter().flat_map(|name| ["--test", name]));
    }
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", root.join("target")).stdin(Stdio::null());
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = || said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    if output.status.success() {
        let program = |folder: &str, name: &str| -> Result<PathBuf, String> {
            let is_it = |m: &Value| {
                let source = m["target"]["src_path"].as_str().unwrap_or_default();
                let is_below = source.contains(folder);
                m["profile"]["test"] == true && m["target"]["name"] == name && is_below
            };
            let built = messages().find(is_it);
            let path = built.as_ref().and_then(|message| message["executable"].as_str());
            path.map(PathBuf::from).ok_or(format!("cargo built no tests of {name}"))
        };
        let own = LIBRARIES.iter().flat_map(|library| {
            let folder = library.folder.trim_end_matches("src/");
            library.targets().map(move |name| program(folder, &name))
        });
        let all = own.chain(others.iter().map(|name| program("", name)));
        return all.collect::<Result<_, _>>().map(Built::Programs);
    }
    let errors: Vec<CompilerError> =
        messages().filter(|m| m["message"]["level"] == "error").map(|m| error(&m)).collect();
    if errors.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(Built::Refused(errors))
}

fn error(message: &Value) -> CompilerError {
    let spans = message["message"]["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let places = |is_primary: bool| {
        let of = spans.iter().filter(move |span| span["is_primary"] == is_primary);
        of.filter_map(place).collect()
    };
    let text = message["message"]["rendered"].as_str().unwrap_or_default().to_owned();
    CompilerError { text, places: places(true), explained_by: places(false) }
}

fn place(span: &Value) -> Option<(String, Range<usize>)> {
    let at = |name: &str| usize::try_from(span[name].as_u64()?).ok();
    Some((span["file_name"].as_str()?.to_owned(), at("byte_start")?..at("byte_end")?))
}
