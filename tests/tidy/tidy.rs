//! Guards of what the tree promises and the compiler does not check: who may use whom, where
//! `unsafe` may stand, how long a line, a function and a file may be, and which words must not be
//! in it.
//!
//! A guard lists every place that breaks it as `file:line: sentence`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use toml::de::{DeTable, DeValue};

mod circles;
mod commits;
mod language;
mod pages;
mod patterns;
mod transports;
mod workplace;

/// Dependencies that cargo would allow and the design does not: package, dependency, reason.
const FORBIDDEN_DEPENDENCIES: [(&str, &str, &str); 11] = [
    ("report", "host", "a report reads the run directory, not this machine"),
    ("report", "clock", "a report reads the run directory and no clock"),
    ("report", "remote", "a report starts nothing"),
    ("report", "run", "a report reads what a run left"),
    ("report", "measure", "a report measures nothing"),
    ("report", "transport", "a report names transports as the record does"),
    ("report", "patterns", "a report is given the views of the patterns"),
    ("stats", "host", "statistics are pure"),
    ("stats", "clock", "statistics are pure"),
    ("stats", "transport", "statistics know no transport"),
    ("plan", "clock", "a plan is pure"),
];

/// Modules of one package, each of which uses only those before it. Between packages, cargo holds
/// the order.
const MODULE_ORDERS: [(&str, &[&str]); 4] = [
    ("base", &["units", "options", "warning"]),
    ("measure", &["loops", "control", "agent"]),
    ("figures", &["explain", "record", "view"]),
    ("wiregauge", &["cli", "command"]),
];

/// Packages that may contain `unsafe`.
const UNSAFE_PACKAGES: [&str; 4] = ["clock", "host", "transport", "sample"];

/// A longer file is named in a warning, not in a failure: a large idea may need more.
const MAX_FILE_LINES: usize = 1000;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_LINE_COLUMNS: usize = 100;

/// Text that others write or make: not ours to shape.
const NOT_OURS: [&str; 5] = [
    "web/vendor/",
    "bench/captured/",
    "LICENSE",
    "crates/fabric-sys/src/verbs/types.rs",
    "fuzz/seeds/",
];

/// Members of the workspace that are no part of the program, or foreign interfaces.
const NOT_OF_THE_PROGRAM: [&str; 4] =
    ["crates/fabric-sys", "crates/test-support", "fuzz", "tests/tidy"];

/// Source folders of the program's packages; the root package is last.
static CRATES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let members = workspace_members().into_iter();
    let own = members.filter(|member| !NOT_OF_THE_PROGRAM.contains(&member.as_str()));
    own.map(|member| format!("{member}/src/")).chain(["src/".into()]).collect()
});

/// A source file of a package.
#[derive(Clone)]
struct Source {
    path: String,
    /// The package, without `wiregauge-`; `wiregauge` is the root.
    package: String,
    /// The first module of its path in the package; `lib` or `main` for the root file.
    module: String,
    /// Lines without comments, contents of strings and test modules.
    code: Vec<String>,
    /// Lines as written.
    lines: Vec<String>,
}

/// Returns the root of the workspace, two folders above this package.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/tidy has a root")
}

/// Parses a TOML text.
fn parse_toml(text: &str) -> Result<DeValue<'_>, String> {
    let table = DeTable::parse(text).map_err(|error| error.to_string())?;
    Ok(DeValue::Table(table.into_inner()))
}

/// Lists the folders of the workspace's members as its manifest orders them, `FOLDER/*` expanded.
fn workspace_members() -> Vec<String> {
    let text = text("Cargo.toml").unwrap();
    let manifest = parse_toml(&text).unwrap();
    let members = manifest["workspace"].as_ref()["members"].as_ref().as_array().unwrap();
    members.iter().flat_map(|member| expand_member(member.as_ref().as_str().unwrap())).collect()
}

/// Expands a trailing `/*` to the folders that have a manifest.
fn expand_member(member: &str) -> Vec<String> {
    let Some(parent) = member.strip_suffix("/*") else { return vec![member.into()] };
    let files = tracked();
    let packages = files.iter().filter_map(|file| {
        let name = file.strip_prefix(parent)?.strip_prefix('/')?.strip_suffix("/Cargo.toml")?;
        (!name.contains('/')).then(|| format!("{parent}/{name}"))
    });
    packages.collect()
}

/// Lists all files that git tracks, or would if they were added; without git, all files of the
/// tree.
fn tracked() -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files: Vec<String> = match git {
        Ok(output) if output.status.success() => {
            String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(root(), &mut found);
            found
        }
    };
    files.retain(|file| root().join(file).is_file());
    files.sort();
    assert!(files.iter().any(|file| file == "Cargo.toml"), "the tree was not found: {files:?}");
    files
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
                walk(&path, found);
            }
        } else if path.is_file() {
            found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        }
    }
}

/// The text of a file; `None` where it is no text.
fn text(file: &str) -> Option<String> {
    String::from_utf8(std::fs::read(root().join(file)).unwrap()).ok()
}

/// Returns the sources of the program, without test modules. They are read once.
fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(read_sources);
    &SOURCES
}

fn read_sources() -> Vec<Source> {
    let ours = |file: &String| {
        CRATES.iter().any(|folder| file.starts_with(folder.as_str())) && file.ends_with(".rs")
    };
    let mut all: Vec<Source> = tracked().into_iter().filter(ours).map(|p| source(&p)).collect();
    let of_tests: Vec<String> = all.iter().flat_map(test_modules).collect();
    all.retain(|source| !of_tests.contains(&source.path));
    all
}

/// The files of modules that a file declares below `#[cfg(test)]`.
fn test_modules(source: &Source) -> Vec<String> {
    let path = source.path.as_str();
    let folder = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix("/lib.rs"));
    let folder = folder.unwrap_or_else(|| path.trim_end_matches(".rs"));
    let pairs = source.lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    pairs
        .filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'))
        .map(|name| format!("{folder}/{name}.rs"))
        .collect()
}

/// A path from the folder of its package's sources.
fn in_crate(path: &str) -> &str {
    CRATES.iter().find_map(|folder| path.strip_prefix(folder.as_str())).unwrap_or(path)
}

fn source(path: &str) -> Source {
    let whole = text(path).unwrap();
    let module = in_crate(path).split(['/', '.']).next().unwrap().to_string();
    let package = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    let package = package.unwrap_or("wiregauge").to_string();
    let mut code: Vec<String> = blank(&whole).lines().map(String::from).collect();
    blank_tests(&mut code);
    let lines = whole.lines().map(String::from).collect();
    Source { path: path.into(), package, module, code, lines }
}

/// Rust source with comments, strings and characters blanked and its lines kept.
fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_text(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Behind the comment, string or character that begins at `at`; `at` where none does.
fn end_of_text(chars: &[char], at: usize) -> usize {
    let is = |from: usize, word: &str| {
        word.chars().enumerate().all(|(i, c)| chars.get(from + i) == Some(&c))
    };
    let find = |from: usize, word: &str| {
        let end = (from..chars.len()).find(|i| is(*i, word));
        end.map_or(chars.len(), |i| i + word.len())
    };
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if is(at, "//") {
        return find(at, "\n") - 1;
    }
    if is(at, "/*") {
        return find(at + 2, "*/");
    }
    if chars[at] == 'r' && !in_word {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if is(at + 1 + hashes, "\"") {
            return find(at + 2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if chars[at] == '"' || is(at, "'\\") || (is(at, "'") && is(at + 2, "'")) {
        let mut end = at + 1;
        while end < chars.len() && chars[end] != chars[at] {
            end += if chars[end] == '\\' { 2 } else { 1 };
        }
        return (end + 1).min(chars.len());
    }
    at
}

/// Blanks what stands below `#[cfg(test)]`.
fn blank_tests(code: &mut [String]) {
    let mut line = 0;
    while line < code.len() {
        let begins = code[line].trim_start().starts_with("#[cfg(test)]");
        let end = if begins { end_of_item(code, line + 1) } else { line };
        if begins {
            code[line..=end].iter_mut().for_each(String::clear);
        }
        line = end + 1;
    }
}

/// The last line of the item that begins at `from`.
fn end_of_item(code: &[String], from: usize) -> usize {
    let mut depth = 0i32;
    for (at, line) in code.iter().enumerate().skip(from) {
        for c in line.chars() {
            depth += i32::from(matches!(c, '{' | '(' | '[')) - i32::from("})]".contains(c));
            if depth == 0 && (c == '}' || c == ';') {
                return at;
            }
        }
    }
    code.len() - 1
}

/// Words of code: names and single signs.
fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the name behind each `crate::` of a line.
fn used(line: &str) -> Vec<&str> {
    line.match_indices("crate::")
        .filter_map(|(at, _)| words(&line[at + 7..]).first().copied())
        .collect()
}

/// Prints a line even if the test passes, when libtest would drop what `eprintln!` prints.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "note: {line}");
}

#[track_caller]
fn none(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Returns the names of a package's own dependencies among the workspace's packages.
fn dependencies(package: &str) -> Vec<String> {
    let manifest = text(&format!("crates/{package}/Cargo.toml")).unwrap();
    let manifest = parse_toml(&manifest).unwrap();
    let tables = manifest["dependencies"].as_ref().as_table().unwrap();
    tables
        .keys()
        .filter_map(|name| Some(name.as_ref().strip_prefix("wiregauge-")?.into()))
        .collect()
}

#[test]
fn packages_depend_on_none_that_the_design_forbids() {
    let mut broken = Vec::new();
    for (package, forbidden, reason) in FORBIDDEN_DEPENDENCIES {
        if dependencies(package).iter().any(|name| name == forbidden) {
            broken.push(format!("crates/{package} must not depend on {forbidden}: {reason}"));
        }
    }
    none(&broken);
}

#[test]
fn modules_of_a_package_use_those_before_them() {
    let mut broken = Vec::new();
    for (package, order) in MODULE_ORDERS {
        let position = |module: &str| order.iter().position(|name| *name == module);
        for source in sources().iter().filter(|source| source.package == package) {
            let Some(own) = position(&source.module) else { continue };
            for (number, line) in source.code.iter().enumerate() {
                for to in used(line).into_iter().filter(|to| position(to) > Some(own)) {
                    let place = format!("{}:{}", source.path, number + 1);
                    broken.push(format!("{place}: {} uses {to}, which comes after", source.module));
                }
            }
        }
    }
    none(&broken);
}

#[test]
fn a_view_reads_neither_host_nor_clock() {
    let mut broken = Vec::new();
    let views = sources().iter().filter(|s| s.package == "figures" && s.module == "view");
    for source in views {
        for (number, line) in source.code.iter().enumerate() {
            if words(line).iter().any(|word| ["wiregauge_host", "wiregauge_clock"].contains(word)) {
                broken.push(format!("{}:{}: a view is pure", source.path, number + 1));
            }
        }
    }
    none(&broken);
}

#[test]
fn only_the_command_line_knows_its_parser() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|s| s.module != "cli" && s.module != "main") {
        for (number, line) in source.code.iter().enumerate() {
            if words(line).iter().any(|word| word.starts_with("clap")) {
                broken.push(format!("{}:{}: only cli knows clap", source.path, number + 1));
            }
        }
    }
    none(&broken);
}

#[test]
fn a_report_reads_no_clock() {
    let mut broken = Vec::new();
    let is_pure = |source: &&Source| {
        ["report", "stats"].contains(&&*source.package)
            || (source.package == "figures" && source.module == "view")
    };
    for source in sources().iter().filter(is_pure) {
        for (number, line) in source.code.iter().enumerate() {
            let reads = ["Instant", "SystemTime", "Timestamp"];
            if words(line).iter().any(|word| reads.contains(word)) {
                let place = format!("{}:{}", source.path, number + 1);
                broken.push(format!("{place}: the same record gives the same report at any time"));
            }
        }
    }
    none(&broken);
}

#[test]
fn unsafe_stands_only_where_it_may_and_says_why() {
    let mut broken = Vec::new();
    for source in sources() {
        for (number, line) in source.code.iter().enumerate() {
            if !words(line).contains(&"unsafe") {
                continue;
            }
            let place = format!("{}:{}", source.path, number + 1);
            if !UNSAFE_PACKAGES.contains(&source.package.as_str()) {
                broken.push(format!("{place}: only {UNSAFE_PACKAGES:?} may contain unsafe"));
            } else if !says_why(&source.lines, number) {
                broken
                    .push(format!("{place}: a SAFETY comment (or # Safety) says why it is sound"));
            }
        }
    }
    none(&broken);
}

/// Returns whether the comment above a line, or above those like it, tells the contract.
fn says_why(lines: &[String], number: usize) -> bool {
    let told = |line: &str| line.contains("SAFETY:") || line.contains("# Safety");
    let goes_on = |line: &str| {
        let line = line.trim_start();
        line.starts_with("//")
            || line.starts_with("#[")
            || !line.ends_with([';', '}'])
            || line.starts_with("unsafe impl")
    };
    told(&lines[number])
        || lines[..number]
            .iter()
            .rev()
            .take(30)
            .take_while(|line| !line.trim().is_empty() && goes_on(line))
            .any(|line| told(line))
}

#[test]
fn nothing_panics_by_intention_outside_tests() {
    const NEVER: [&str; 6] =
        [".unwrap()", ".expect( ", "panic!", "todo!", "unimplemented!", "dbg!"];
    let mut broken = Vec::new();
    for source in sources() {
        for (number, line) in source.code.iter().enumerate() {
            let above = number.checked_sub(1).map_or("", |above| source.lines[above].trim());
            let justified =
                above.starts_with("#[allow(clippy::") || above.starts_with("#[expect(clippy::");
            for word in NEVER.iter().filter(|word| line.contains(**word) && !justified) {
                let place = format!("{}:{}", source.path, number + 1);
                broken.push(format!("{place}: {word} outside tests; return a sentence instead"));
            }
        }
    }
    none(&broken);
}

/// Returns what of a line starts a thread, or could: `Command::spawn` alone has no argument.
fn starts_thread(line: &str) -> bool {
    line.contains("thread::Builder")
        || line.split("spawn(").skip(1).any(|rest| !rest.starts_with(')'))
            && !["threads::spawn(", "fn spawn("].iter().any(|one| line.contains(one))
}

#[test]
fn threads_are_started_where_a_refusal_is_an_error() {
    const HELPER: &str = "crates/base/src/threads.rs";
    assert!(
        sources().iter().any(|one| one.path == HELPER && one.code.iter().any(|l| starts_thread(l)))
    );
    for bare in ["std::thread::spawn(move || {", "scope.spawn(work)", "named.spawn("] {
        assert!(starts_thread(bare), "{bare}");
    }
    assert!(!starts_thread("command.spawn()?") && !starts_thread("threads::spawn(WHY, run)?"));
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.path != HELPER) {
        for (number, _) in source.code.iter().enumerate().filter(|(_, line)| starts_thread(line)) {
            let place = format!("{}:{}", source.path, number + 1);
            broken.push(format!(
                "{place}: std panics where no thread can be started: use threads::spawn"
            ));
        }
    }
    none(&broken);
}

#[test]
fn every_rust_file_says_first_what_it_is() {
    let mut broken = Vec::new();
    let is_ours = |file: &&String| !NOT_OURS.iter().any(|other| file.starts_with(other));
    for file in tracked().iter().filter(|file| file.ends_with(".rs")).filter(is_ours) {
        if !text(file).unwrap().starts_with("//! ") {
            broken.push(format!("{file}:1: a module begins with a line of //!"));
        }
    }
    none(&broken);
}

#[test]
fn files_and_lines_fit_a_screen() {
    let mut broken = Vec::new();
    let code = |file: &&String| {
        let end = Path::new(file).extension().and_then(|end| end.to_str()).unwrap_or("sh");
        ["rs", "js", "mjs", "css", "py", "c", "h", "sh"].contains(&end)
            && !NOT_OURS.iter().any(|other| file.contains(other))
    };
    for file in tracked().iter().filter(code) {
        let Some(text) = text(file) else { continue };
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            note(&format!("{file}: {lines} lines, more than {MAX_FILE_LINES}; is it one idea?"));
        }
        for (number, line) in text.lines().enumerate() {
            let width = line.chars().count();
            if width > MAX_LINE_COLUMNS {
                broken.push(format!(
                    "{file}:{}: {width} columns, not {MAX_LINE_COLUMNS}",
                    number + 1
                ));
            }
        }
    }
    none(&broken);
}

#[test]
fn functions_fit_a_screen() {
    let mut broken = Vec::new();
    let rust = |file: &String| file.ends_with(".rs");
    for path in tracked().into_iter().filter(rust) {
        let code: Vec<String> = blank(&text(&path).unwrap()).lines().map(String::from).collect();
        for (number, line) in code.iter().enumerate().filter(|(_, l)| words(l).contains(&"fn")) {
            // A type such as `fn(f64) -> f64` begins no function.
            if !line.contains("fn ") {
                continue;
            }
            let length = end_of_item(&code, number) + 1 - number;
            if length > MAX_FUNCTION_LINES {
                let place = format!("{path}:{}", number + 1);
                broken.push(format!(
                    "{place}: a function of {length} lines, not {MAX_FUNCTION_LINES}"
                ));
            }
        }
    }
    none(&broken);
}

#[test]
fn the_reader_of_source_blanks_texts_and_tests() {
    let source = "let a = \"crate::x // \\\" unsafe\"; // unsafe\n\
                  let b = '\"'; let c: &'a str = r#\"\"un\"#;\n";
    let blanked = blank(source);
    assert!(!blanked.contains("unsafe") && !blanked.contains("crate"), "{blanked}");
    assert!(blanked.contains("let c: &'a str ="), "{blanked}");
    let mut code: Vec<String> = ["#[cfg(test)]", "mod tests {", "  unsafe {}", "}", "fn kept() {}"]
        .map(String::from)
        .into();
    blank_tests(&mut code);
    assert_eq!(code, ["", "", "", "", "fn kept() {}"]);
}
