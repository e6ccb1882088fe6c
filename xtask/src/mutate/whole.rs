//! All mutants of the files that make figures, each against the tests that reach it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::root;

use super::copy::{self, Built, CompilerError, LIBRARIES, Level, Library, build};
use super::decided::{Decided, Verdict, key};
use super::equivalent;
use super::generate::{self, Mutant};
use super::insert::{Switched, switch};
use super::program::{Outcome, Program};

/// What computes figures, in the order in which it is tried where no paths are given.
const FIGURES: &[&str] = &[
    "crates/stats/src",
    "crates/analysis/src/counts.rs",
    "crates/analysis/src/rates.rs",
    "crates/analysis/src/figures.rs",
    "crates/run/src/summary.rs",
    "crates/analysis/src/marks.rs",
    "crates/analysis/src/recovered.rs",
    "crates/analysis/src/pattern.rs",
    "crates/run/src/compared.rs",
    "crates/analysis/src/overhead.rs",
    "crates/analysis/src/pairs.rs",
    "crates/analysis/src/search.rs",
    "crates/analysis/src/stalls.rs",
    "crates/analysis/src/start.rs",
    "crates/run/src/clocks.rs",
    "crates/patterns/src/bandwidth/figures.rs",
    "crates/patterns/src/bandwidth/window.rs",
    "crates/patterns/src/latency/figures.rs",
    "crates/patterns/src/load/figures.rs",
    "crates/patterns/src/load/landmarks.rs",
    "crates/patterns/src/oneway/figures.rs",
    "crates/patterns/src/rpc/figures.rs",
    "crates/patterns/src/rpc/lengths.rs",
    "crates/patterns/src/stream/figures.rs",
    "crates/patterns/src/stream/kept.rs",
    "crates/sample/src",
    "crates/clock/src/calibrate.rs",
    "crates/clock/src/check.rs",
    "crates/clock/src/chosen.rs",
    "crates/clock/src/offset",
    "crates/clock/src/stamped.rs",
    "crates/clock/src/timebase.rs",
    "crates/clock/src/device.rs",
    "crates/clock/src/exchange.rs",
    "crates/clock/src/counter.rs",
    "crates/clock/src/timer.rs",
];
/// Which tests are asked together: those of the file, of its folder and the others, of each the
/// quickest first.
struct Suite {
    /// A test that takes longer without a mutant is not asked.
    longest: Duration,
    /// How many tests run at a time.
    together: usize,
}
/// What takes longer is a simulation of hundreds of runs: what that alone notices deserves a test
/// with a known answer.
const LIBRARY: Suite = Suite { longest: Duration::from_secs(4), together: 12 };
/// Of `tests/`: whole runs whose figures a script computes again.
const RECOMPUTE: Suite = Suite { longest: Duration::from_secs(60), together: 1 };
/// Tests with a mutant are late when they take longer than this, and than so many times as long as
/// without.
const PATIENCE: Duration = Duration::from_secs(10);
const TIMES_AS_LONG: u32 = 10;
/// The compiler names the mistakes of one stage at a time.
const MOST_BUILDS: usize = 20;

struct Source {
    file: String,
    text: String,
}

/// A mutant with its name for later runs, and what came of it.
struct Tried {
    mutant: Mutant,
    key: String,
    verdict: Option<Verdict>,
}

/// The tests that reach each mutant, with how long they take.
type Reached = BTreeMap<usize, Vec<(String, Duration)>>;

/// Tests that can judge a mutant.
struct Judge {
    suite: Suite,
    program: Program,
    reached: Reached,
}

/// Tries all mutants below `paths`. Fails where one is neither noticed nor listed as equivalent.
pub fn mutate_all(paths: &[&str]) -> Result<(), String> {
    let root = root()?;
    let to = root.join("target/mutants-all");
    let sources = sources(&root, if paths.is_empty() { FIGURES } else { paths })?;
    let decided = Decided::read(to.with_extension("decided"));
    let mut tried = mutants(&sources, &decided)?;
    copy::copy(&root, &to)?;
    copy::add_switches(&to, tried.len())?;
    let paths = build_without_refused(&root, &to, &sources, &mut tried)?;
    for one in tried.iter().filter(|one| one.verdict == Some(Verdict::Refused)) {
        decided.keep(&one.key, &Verdict::Refused)?;
    }
    let mut judges = Vec::new();
    let of_libraries = LIBRARIES.iter().map(Library::programs).sum();
    let suites = std::iter::repeat_with(|| LIBRARY).take(of_libraries).chain([RECOMPUTE]);
    for (path, suite) in paths.into_iter().zip(suites) {
        let program = Program { path, copy: to.clone() };
        let reached = reached(&program, suite.longest)?;
        judges.push(Judge { suite, program, reached });
    }
    let left = tried.iter().filter(|one| one.verdict.is_none()).count();
    eprintln!("{} mutants, {left} to try", tried.len());
    for (number, one) in tried.iter_mut().enumerate().filter(|(_, one)| one.verdict.is_none()) {
        let mut verdict = Verdict::NotReached;
        for judge in &judges {
            if !matches!(verdict, Verdict::Noticed(_)) {
                verdict = judge.decide(number, &one.mutant)?.unwrap_or(verdict);
            }
        }
        decided.keep(&one.key, &verdict)?;
        if !matches!(verdict, Verdict::Noticed(_)) {
            eprintln!("{}", line(&one.mutant, &verdict));
        }
        one.verdict = Some(verdict);
    }
    report(&root, &sources, &tried)
}

/// The sources below the paths, without the files that only tests have.
fn sources(root: &Path, paths: &[&str]) -> Result<Vec<Source>, String> {
    let listed = Command::new("git").arg("ls-files").current_dir(root).output();
    let listed = listed.map_err(|error| format!("git ls-files: {error}"))?.stdout;
    let mut all = Vec::new();
    let mut of_tests = Vec::new();
    let is_source =
        |file: &&str| file.ends_with(".rs") && LIBRARIES.iter().any(|library| library.has(file));
    for file in String::from_utf8_lossy(&listed).lines().filter(is_source) {
        let text = copy::read(root, file)?;
        let modules = generate::test_modules(&text).map_err(|error| format!("{file}: {error}"))?;
        let folder = file.strip_suffix("/mod.rs").or(file.strip_suffix("/lib.rs"));
        let folder = folder.or(file.strip_suffix(".rs")).unwrap_or(file);
        of_tests.extend(modules.iter().map(|module| format!("{folder}/{module}")));
        all.push(Source { file: file.to_owned(), text });
    }
    let is_below = |file: &str, path: &str| {
        file.strip_prefix(path.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
    };
    let place = |source: &Source| paths.iter().position(|path| is_below(&source.file, path));
    all.retain(|source| {
        let is_test = of_tests.iter().any(|module| is_below(&source.file, module));
        !is_test && place(source).is_some()
    });
    all.sort_by_key(place);
    if all.is_empty() { Err(format!("no sources below {paths:?}")) } else { Ok(all) }
}

fn mutants(sources: &[Source], decided: &Decided) -> Result<Vec<Tried>, String> {
    let mut all = Vec::new();
    for source in sources {
        all.extend(generate::mutants(&source.file, &source.text)?.into_iter().map(|mutant| {
            let key = key(&mutant, &source.text);
            let verdict = decided.verdict(&key).cloned();
            Tried { mutant, key, verdict }
        }));
    }
    Ok(all)
}

/// Builds until the compiler refuses none of the mutants that are left.
fn build_without_refused(
    root: &Path,
    to: &Path,
    sources: &[Source],
    tried: &mut [Tried],
) -> Result<Vec<std::path::PathBuf>, String> {
    for _ in 0..MOST_BUILDS {
        let mut switched = BTreeMap::new();
        for source in sources {
            let own = tried.iter().enumerate().filter(|(_, one)| {
                one.mutant.file == source.file && one.verdict != Some(Verdict::Refused)
            });
            let own: Vec<_> = own.map(|(number, one)| (number, &one.mutant)).collect();
            let made = switch(&source.text, &own);
            copy::write(to, &source.file, &made.text)?;
            switched.insert(source.file.clone(), made);
        }
        let errors = match build(root, to, Level::Fast, &["recompute"])? {
            Built::Programs(paths) => return Ok(paths),
            Built::Refused(errors) => errors,
        };
        let refused = refused(&errors, &switched);
        if refused.is_empty() {
            return Err(errors.into_iter().map(|error| error.text).collect());
        }
        for number in refused {
            let one = &mut tried[number];
            eprintln!("{}", line(&one.mutant, &Verdict::Refused));
            one.verdict = Some(Verdict::Refused);
        }
    }
    Err(format!("the compiler still refuses mutants after {MOST_BUILDS} builds"))
}

/// The mutants that the compiler's errors are about.
fn refused(errors: &[CompilerError], switched: &BTreeMap<String, Switched>) -> BTreeSet<usize> {
    let meant = |places: &[(String, std::ops::Range<usize>)]| -> BTreeSet<usize> {
        let meant = |(file, place)| Some(switched.get::<String>(file)?.meant(place));
        places.iter().map(|(file, place)| (file, place)).filter_map(meant).flatten().collect()
    };
    let each = errors.iter().map(|error| {
        let meant_first = meant(&error.places);
        if meant_first.is_empty() { meant(&error.explained_by) } else { meant_first }
    });
    each.flatten().collect()
}

/// Runs every test by itself.
fn reached(program: &Program, longest: Duration) -> Result<Reached, String> {
    let mut all = Reached::new();
    let begin = Instant::now();
    let tests = program.tests()?;
    eprintln!("{} tests, each without a mutant", tests.len());
    for test in &tests {
        let begin = Instant::now();
        let (outcome, numbers) = program.reached(test, longest)?;
        match outcome {
            Outcome::Passed => {}
            Outcome::Late => {
                eprintln!("{test} is not asked: it takes longer than {longest:?}");
                continue;
            }
            // Mutants that only this test notices would be reported as survivors.
            Outcome::Failed(why) => {
                return Err(format!("{test} fails without a mutant ({why})"));
            }
        }
        for number in numbers {
            all.entry(number).or_default().push((test.clone(), begin.elapsed()));
        }
    }
    eprintln!("they took {:.0?}", begin.elapsed());
    all.values_mut().for_each(|tests: &mut Vec<_>| tests.sort_by_key(|(_, takes)| *takes));
    Ok(all)
}

impl Judge {
    /// Asks the tests of the file first, then others; `None` if none comes to the mutant's place.
    fn decide(&self, number: usize, mutant: &Mutant) -> Result<Option<Verdict>, String> {
        let Some(tests) = self.reached.get(&number) else { return Ok(None) };
        let file = module(&mutant.file) + "::";
        let folder = file.split_inclusive("::").next().unwrap_or_default();
        let far = |test: &str| match () {
            () if test.starts_with(&file) => 0,
            () if test.starts_with(folder) => 1,
            () => 2,
        };
        let mut near: [Vec<&(String, Duration)>; 3] = Default::default();
        tests.iter().for_each(|test| near[far(&test.0)].push(test));
        for batch in near.iter().flat_map(|tests| tests.chunks(self.suite.together)) {
            let takes: Duration = batch.iter().map(|(_, takes)| *takes).sum();
            let names = batch.iter().map(|(test, _)| test.as_str());
            let names: Vec<&str> = ["--exact"].into_iter().chain(names).collect();
            let limit = PATIENCE + takes * TIMES_AS_LONG;
            match self.program.try_mutant(number, &names, limit)? {
                Outcome::Passed => {}
                Outcome::Failed(by) => return Ok(Some(Verdict::Noticed(by))),
                Outcome::Late => {
                    return Ok(Some(Verdict::Noticed("a test that did not end".to_owned())));
                }
            }
        }
        Ok(Some(Verdict::Survived))
    }
}

/// `crates/stats/src/rate.rs` is `rate`, `crates/patterns/src/load/mod.rs` is `load`.
fn module(file: &str) -> String {
    let file = copy::in_library(file);
    let file = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or(file);
    file.replace('/', "::")
}

fn line(mutant: &Mutant, verdict: &Verdict) -> String {
    let Mutant { file, line, function, expression, instead, .. } = mutant;
    let verdict = match verdict {
        Verdict::Noticed(by) => format!("noticed by {by}"),
        Verdict::Survived => "survived".to_owned(),
        Verdict::NotReached => "not reached".to_owned(),
        Verdict::Refused => "does not compile".to_owned(),
    };
    let instead = generate::one_line(instead);
    format!("{file} | {function} | {expression} | {instead} | line {line}: {verdict}")
}

/// Counts of one folder.
#[derive(Default)]
struct Counts {
    made: usize,
    refused: usize,
    noticed: usize,
    equivalent: usize,
    survived: usize,
    not_reached: usize,
}

impl Counts {
    fn line(&self, of: &str) -> String {
        let Counts { made, refused, noticed, equivalent, survived, not_reached } = self;
        format!(
            "{of}: {made} mutants, {refused} do not compile, {noticed} noticed, \
             {equivalent} equivalent, survived: {survived}, not reached: {not_reached}"
        )
    }
}

fn report(root: &Path, sources: &[Source], tried: &[Tried]) -> Result<(), String> {
    let equivalents = equivalent::list()?;
    let mut folders: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut all = Counts::default();
    let (mut table, mut left, mut wrong) = (String::new(), String::new(), String::new());
    for Tried { mutant, verdict, .. } in tried {
        let verdict = verdict.as_ref().unwrap_or(&Verdict::NotReached);
        let listed = equivalents.iter().find(|listed| listed.is(mutant));
        let said = line(mutant, verdict) + "\n";
        let folder = mutant.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        for counts in [&mut all, folders.entry(folder).or_default()] {
            counts.made += 1;
            *match (verdict, listed) {
                (Verdict::Refused, _) => &mut counts.refused,
                (Verdict::Noticed(_), _) => &mut counts.noticed,
                (_, Some(_)) => &mut counts.equivalent,
                (Verdict::Survived, None) => &mut counts.survived,
                (Verdict::NotReached, None) => &mut counts.not_reached,
            } += 1;
        }
        match (verdict, listed) {
            (Verdict::Noticed(_) | Verdict::Refused, _) => {}
            (_, Some(listed)) => table += &format!("equivalent, {}: ", listed.reason),
            (_, None) => left += &said,
        }
        table += &said;
    }
    for listed in &equivalents {
        let is_here = sources.iter().any(|source| listed.is_in(&source.file));
        let is_needed = tried.iter().any(|one| {
            listed.is(&one.mutant)
                && matches!(one.verdict, Some(Verdict::Survived | Verdict::NotReached))
        });
        if is_here && !is_needed {
            wrong += &format!("not equivalent: {}\n", listed.line());
        }
    }
    let path = root.join("target/mutants-all.table");
    fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{left}{wrong}");
    for (folder, counts) in folders {
        println!("{}", counts.line(folder));
    }
    println!("{}", all.line("all"));
    println!("the whole table: {}", path.display());
    if left.is_empty() && wrong.is_empty() { Ok(()) } else { Err("a test is missing".to_owned()) }
}
