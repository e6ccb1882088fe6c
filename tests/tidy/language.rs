//! Counts of wording and form that may only improve; `language.toml` holds them.
//!
//! Lines are matched by patterns, not parsed: a style needs no exact count, only a steady one.

use super::{none, note, parse_toml, root, text, tracked};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::process::Command;
use std::sync::LazyLock;
use toml::de::DeValue;

mod tests;

/// The file of allowed figures.
const RATCHET: &str = "tests/tidy/language.toml";

/// Paths that do not count: fuzz targets, and those that contain one of `GENERATED`.
const UNCOUNTED_FOLDER: &str = "fuzz/";
const GENERATED: [&str; 2] = ["/bindings", "generated"];

/// Places that a failure lists at most; `LANGUAGE_LIST` lists all.
const MAX_LISTED: usize = 40;

const ODD_DOCS: &str = "odd_docs";
const VERB_DOCS: &str = "verb_docs_permille";
const MATCH_BOOL: &str = "match_bool";
const TUPLE_PARAMETERS: &str = "tuple_parameters";
const REPEATED_TYPES: &str = "repeated_types";
const PRIVATE_WORDS: &str = "private_words";

/// Definitions that share a name before it counts as repeated.
const MIN_REPEATED: usize = 3;

/// Kinds that a lint of clippy finds, too. It is denied once their count is 0.
const CLIPPY_LINTS: [(&str, &str); 1] = [(MATCH_BOOL, "match_bool")];

/// A form that is searched for in every line of code.
struct Form {
    kind: &'static str,
    /// Every match contains it: a search for it is faster than one for the pattern.
    part: &'static str,
    /// Matched against the line without its indentation.
    pattern: Regex,
}

impl Form {
    fn new(kind: &'static str, part: &'static str, pattern: &str) -> Form {
        Form { kind, part, pattern: compile(pattern) }
    }

    fn matches(&self, line: &str) -> bool {
        // `let f = |(a, b): (A, B)|` is a closure, not a parameter list.
        let is_exempt = self.kind == TUPLE_PARAMETERS && line.contains("let ");
        line.contains(self.part) && !is_exempt && self.pattern.is_match(line)
    }
}

static FORMS: LazyLock<[Form; 8]> = LazyLock::new(|| {
    const FN: &str =
        r"^(pub(\([^)]*\))? )?(const )?fn (of|at|take|look|word|told|tells|hears|so_many)\b";
    const TYPE: &str =
        r"^(pub(\([^)]*\))? )?(struct|enum|trait|type) (Left|Seen|Beside|Line|Place|Word|Did)\b";
    const LIMIT: &str = r"\b(const|static) (MOST|LEAST|LONGEST|FEWEST|SHORTEST)_\w+";
    [
        Form::new("closures", "|", r"^let (mut )?\w+(: [^=]+)? = (move )?\|"),
        Form::new(MATCH_BOOL, "=>", r"^(true|false)( if .*)? =>"),
        Form::new(TUPLE_PARAMETERS, "): (", r"\(\w+(, \w+)+\): \("),
        Form::new("tuple_lets", "let (", r"^let \((mut )?\w+(, (mut )?\w+)+\) = \("),
        Form::new("limit_names", "T_", LIMIT),
        Form::new("vague_functions", "fn ", FN),
        Form::new("vague_types", " ", TYPE),
        Form::new("look_constants", "LOOK", r"\bconst LOOK\b"),
    ]
});

static ODD_START: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"^(What|Whether|How|Where|Of|Those|As|Its|The same|So many|Who|That)\b")
});
static VERB: LazyLock<Regex> = LazyLock::new(|| compile(r"^[A-Z][a-z]+(s|es)\b"));
static FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"^(pub(\([^)]*\))? )?(const |async |unsafe |extern "C" )*fn "#));
static TYPE: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^(pub(\([^)]*\))? )?(struct|enum) (\w+)"));
static PRIVATE: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?i)\b(beside|lull|restless|patience|last words|hear out|so many)\b")
});

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// A line of a file, numbered from 1.
#[derive(Clone, Debug, PartialEq)]
struct Position {
    file: String,
    line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The figure of each kind.
type Figures = BTreeMap<&'static str, i64>;

/// Everything that was found in a set of files.
#[derive(Default)]
struct Census {
    positions: BTreeMap<&'static str, Vec<Position>>,
    types: BTreeMap<String, Vec<Position>>,
    function_docs: usize,
}

impl Census {
    /// Returns the census of the tree, which is read once.
    fn of_tree() -> &'static Census {
        static CENSUS: LazyLock<Census> = LazyLock::new(Census::read_tree);
        &CENSUS
    }

    fn read_tree() -> Census {
        let mut census = Census::default();
        for file in tracked().iter().filter(|file| is_counted(file)) {
            let bytes = std::fs::read(root().join(file)).unwrap();
            census.add_file(file, &String::from_utf8_lossy(&bytes));
        }
        census
    }

    fn add_file(&mut self, file: &str, text: &str) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let mut is_above_doc = false;
        for (index, line) in lines.iter().enumerate() {
            let position = Position { file: file.into(), line: index + 1 };
            if line.starts_with("//") && PRIVATE.is_match(line) {
                self.add(PRIVATE_WORDS, &position);
            }
            let doc = doc_text(line);
            match doc {
                Some("") => {}
                Some(doc) if !is_above_doc => self.add_doc(doc, &lines[index..], &position),
                Some(_) => {}
                None if !line.starts_with("//") => self.add_code(line, &position),
                None => {}
            }
            is_above_doc = doc.is_some();
        }
    }

    /// Counts the first line of a doc comment; `below` are the lines from there on.
    fn add_doc(&mut self, doc: &str, below: &[&str], position: &Position) {
        let doc = doc.trim_start_matches(['`', '*']);
        let is_odd = ODD_START.is_match(doc);
        if is_odd {
            self.add(ODD_DOCS, position);
        }
        let item = below
            .iter()
            .find(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("#["));
        if item.is_some_and(|item| FUNCTION.is_match(item)) {
            self.function_docs += 1;
            if is_odd || !VERB.is_match(doc) {
                self.add(VERB_DOCS, position);
            }
        }
    }

    fn add_code(&mut self, line: &str, position: &Position) {
        for form in FORMS.iter().filter(|form| form.matches(line)) {
            self.add(form.kind, position);
        }
        let may_be_type = line.contains("struct ") || line.contains("enum ");
        if let Some(found) = may_be_type.then(|| TYPE.captures(line)).flatten() {
            self.types.entry(found[4].into()).or_default().push(position.clone());
        }
    }

    fn add(&mut self, kind: &'static str, position: &Position) {
        self.positions.entry(kind).or_default().push(position.clone());
    }

    /// Returns the places of a kind, for the share of verbs those that lack one.
    fn positions(&self, kind: &str) -> Vec<Position> {
        if kind == REPEATED_TYPES {
            return self.repeated_types().flatten().cloned().collect();
        }
        self.positions.get(kind).cloned().unwrap_or_default()
    }

    fn repeated_types(&self) -> impl Iterator<Item = &Vec<Position>> {
        self.types.values().filter(|positions| positions.len() >= MIN_REPEATED)
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::new();
        let kinds = FORMS.iter().map(|form| form.kind).chain([ODD_DOCS, PRIVATE_WORDS]);
        for kind in kinds {
            figures.insert(kind, self.positions.get(kind).map_or(0, Vec::len) as i64);
        }
        // Two arms make one match.
        figures.entry(MATCH_BOOL).and_modify(|arms| *arms /= 2);
        figures.insert(REPEATED_TYPES, self.repeated_types().count() as i64);
        let without_verb = self.positions.get(VERB_DOCS).map_or(0, Vec::len);
        let with_verb = self.function_docs - without_verb;
        let permille = (with_verb * 1000).checked_div(self.function_docs).unwrap_or(1000);
        figures.insert(VERB_DOCS, permille as i64);
        figures
    }
}

fn is_counted(file: &str) -> bool {
    file.ends_with(".rs")
        && !file.starts_with(UNCOUNTED_FOLDER)
        && !GENERATED.iter().any(|part| file.contains(part))
}

/// Returns the text of a line of a doc comment, without one leading space.
fn doc_text(line: &str) -> Option<&str> {
    if line.starts_with("////") {
        return None;
    }
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// A figure that differs from the one that is allowed.
#[derive(Debug, PartialEq)]
struct Deviation {
    kind: &'static str,
    allowed: i64,
    counted: i64,
}

impl Deviation {
    fn is_worse(&self) -> bool {
        if self.kind == VERB_DOCS {
            self.counted < self.allowed
        } else {
            self.counted > self.allowed
        }
    }
}

/// Compares figures with the ratchet's.
///
/// # Errors
/// A kind that only one of the two knows.
fn deviations(
    figures: &BTreeMap<&'static str, i64>,
    ratchet: &str,
) -> Result<Vec<Deviation>, String> {
    let file = parse_toml(ratchet).map_err(|error| format!("{RATCHET}: {error}"))?;
    let mut known = file.as_table().into_iter().flat_map(|table| table.keys());
    if let Some(kind) = known.find(|kind| !figures.contains_key(kind.as_ref().as_ref())) {
        return Err(format!("{RATCHET}: nothing counts {}", kind.as_ref()));
    }
    let mut deviations = Vec::new();
    for (&kind, &counted) in figures {
        let entry = file.get(kind).and_then(|value| value.as_ref().as_integer());
        let allowed = entry.and_then(|number| number.as_str().parse().ok());
        let allowed = allowed.ok_or_else(|| format!("{RATCHET}: {kind} needs a whole number"))?;
        if allowed != counted {
            deviations.push(Deviation { kind, allowed, counted });
        }
    }
    Ok(deviations)
}

/// Rewrites the lines of the ratchet whose figures have improved.
fn tightened(ratchet: &str, deviations: &[Deviation]) -> String {
    let mut lines: Vec<String> = ratchet.lines().map(String::from).collect();
    for deviation in deviations.iter().filter(|deviation| !deviation.is_worse()) {
        let key = format!("{} = ", deviation.kind);
        if let Some(line) = lines.iter_mut().find(|line| line.starts_with(&key)) {
            *line = format!("{key}{}", deviation.counted);
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the comment above a figure of the ratchet as one line.
fn advice(ratchet: &str, kind: &str) -> String {
    let key = format!("{kind} = ");
    let above: Vec<&str> = ratchet.lines().take_while(|line| !line.starts_with(&key)).collect();
    let start = above.iter().rposition(|line| line.is_empty()).map_or(0, |blank| blank + 1);
    let comment: Vec<&str> =
        above[start..].iter().map(|line| line.trim_matches(['#', ' '])).collect();
    comment.join(" ")
}

/// Lines that are new on this branch or not committed, by file.
type AddedLines = BTreeMap<String, Vec<Range<usize>>>;

/// Asks git for the added lines since the branch left the main one. Empty without git.
fn added_lines() -> AddedLines {
    let base = ["origin/main", "main"]
        .iter()
        .find_map(|main| git(&["merge-base", "HEAD", main]))
        .unwrap_or_else(|| "HEAD".into());
    let diff = git(&["diff", "--unified=0", "--find-renames", "-l4000", base.trim(), "--", "*.rs"]);
    let mut added = parse_diff(&diff.unwrap_or_default());
    let untracked = git(&["ls-files", "--others", "--exclude-standard", "*.rs"]);
    for file in untracked.unwrap_or_default().lines() {
        added.entry(file.into()).or_default().push(0..usize::MAX);
    }
    added
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the hunks of a diff without context (`@@ -3 +4,2 @@`).
fn parse_diff(diff: &str) -> AddedLines {
    let mut added = AddedLines::new();
    let mut file = None;
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            file = path.strip_prefix("b/").map(String::from);
        } else if let Some(hunk) = line.strip_prefix("@@ ")
            && let Some(file) = &file
            && let Some(range) = parse_hunk(hunk)
        {
            added.entry(file.clone()).or_default().push(range);
        }
    }
    added
}

fn parse_hunk(hunk: &str) -> Option<Range<usize>> {
    let new = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (start, count) = new.split_once(',').unwrap_or((new, "1"));
    let start: usize = start.parse().ok()?;
    let count: usize = count.parse().ok()?;
    Some(start..start + count)
}

/// Returns true if git says that this line was added.
fn is_added(position: &Position, added: &AddedLines) -> bool {
    let ranges = added.get(&position.file);
    ranges.is_some_and(|ranges| ranges.iter().any(|range| range.contains(&position.line)))
}

/// Lists places: those on added lines, else those in changed files, else all.
fn listing(positions: &[Position], added: &AddedLines) -> String {
    let mut heading = "on added lines";
    let mut shown: Vec<&Position> =
        positions.iter().filter(|position| is_added(position, added)).collect();
    if shown.is_empty() {
        heading = "in changed files";
        shown = positions.iter().filter(|p| added.contains_key(&p.file)).collect();
    }
    if shown.is_empty() {
        heading = "in the tree";
        shown = positions.iter().collect();
    }
    let mut text = format!("  {heading}:\n");
    for position in shown.iter().take(MAX_LISTED) {
        text += &format!("    {position}\n");
    }
    if shown.len() > MAX_LISTED {
        text += &format!("    and {} more\n", shown.len() - MAX_LISTED);
    }
    text
}

/// Finds kinds that no longer occur and whose lint the manifest does not deny.
fn lints_to_deny(figures: &Figures, manifest: &DeValue) -> Vec<String> {
    let mut missing = Vec::new();
    for (kind, lint) in CLIPPY_LINTS {
        let mut level = Some(manifest);
        for key in ["workspace", "lints", "clippy", lint] {
            level = level.and_then(|table| table.get(key)).map(|entry| entry.as_ref());
        }
        // A lint has a level, or a table with one.
        let level = level.map(|entry| entry.get("level").map_or(entry, |level| level.as_ref()));
        let is_denied = matches!(level.and_then(DeValue::as_str), Some("deny" | "forbid"));
        if figures.get(kind) == Some(&0) && !is_denied {
            missing.push(format!(
                "Cargo.toml: {kind} is 0, so write `{lint} = \"deny\"` in [workspace.lints.clippy]"
            ));
        }
    }
    missing
}

#[test]
fn wording_and_form_only_improve() {
    let census = Census::of_tree();
    if let Ok(kind) = std::env::var("LANGUAGE_LIST") {
        census.positions(&kind).iter().for_each(|position| note(&position.to_string()));
    }
    let mut ratchet = text(RATCHET).unwrap();
    let deviations = deviations(&census.figures(), &ratchet).unwrap();
    if std::env::var_os("UPDATE_LANGUAGE").is_some() {
        ratchet = tightened(&ratchet, &deviations);
        std::fs::write(root().join(RATCHET), &ratchet).unwrap();
    }
    let added = added_lines();
    let mut broken = Vec::new();
    for deviation in &deviations {
        let Deviation { kind, allowed, counted } = deviation;
        if deviation.is_worse() {
            let places = listing(&census.positions(kind), &added);
            let advice = advice(&ratchet, kind);
            broken.push(format!("{kind} is {counted}, allowed is {allowed}. {advice}\n{places}"));
        } else {
            note(&format!(
                "{kind} is {counted}, allowed is {allowed}: UPDATE_LANGUAGE=1 cargo test -p tidy"
            ));
        }
    }
    none(&broken);
}

#[test]
fn kinds_that_no_longer_occur_are_denied_by_clippy() {
    let manifest = text("Cargo.toml").unwrap();
    none(&lints_to_deny(&Census::of_tree().figures(), &parse_toml(&manifest).unwrap()));
}
