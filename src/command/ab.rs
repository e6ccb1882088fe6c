//! `ab`: two sides as two series of one run, whose rounds take turns.

use super::hosts::{self, ProbeRequest, with_hosts};
use super::judge::SERIES;
use super::measure::{compare_sides, execute_sides, nothing_works};
use super::{CommandError, Exit};
use crate::cli::{self, Command, RunOptions, Typed, ab_words};
use crate::options::{Given, UsageError, each_once, refuse, refuse_found};
use crate::plan::study::{self, Study};
use crate::plan::{Plan, Request};
use crate::record::schema::Unavailable;
use crate::remote::host::RemoteHost;
use crate::report::comparison::Comparison;
use crate::run::RunSide;
use std::ffi::OsString;
use std::path::PathBuf;

/// What one side has.
struct Side {
    /// What it measures.
    request: Request,
    /// Its options in words, for a title.
    words: String,
    /// A shell command that runs before each of its rounds.
    prepare: Option<String>,
    /// Its program.
    binary: Option<PathBuf>,
}

/// Measures both sides and compares them.
pub fn ab(typed: &Typed) -> Result<Exit, CommandError> {
    let done = with_sides(typed, execute_sides)?;
    Ok(done.unwrap_or_else(|unavailable| nothing_works(&unavailable)))
}

/// The same without a report: the comparison, where its record is, and the exit code of the run.
pub fn compared(typed: &Typed) -> Result<(Comparison, Option<PathBuf>, Exit), CommandError> {
    let done = with_sides(typed, compare_sides)?;
    done.map_err(|unavailable| {
        let why = unavailable.iter().map(|one| format!("{}: {}", one.transport, one.reason));
        CommandError::Unable(why.collect::<Vec<_>>().join("; "))
    })
}

/// What is done with the plan of both.
type Execute<T> = fn(&Plan, &[RemoteHost], &RunOptions, [RunSide; 2]) -> Result<T, CommandError>;

/// Reads both sides, reaches their hosts and executes their plan; else the reasons for which one of
/// them does not work here.
fn with_sides<T>(
    typed: &Typed,
    execute: Execute<T>,
) -> Result<Result<T, Vec<Unavailable>>, CommandError> {
    let (both, options) = read(typed)?;
    let plan = plan(&both)?;
    let [a, b] = &both;
    let all = a.request.transports.iter().chain(&b.request.transports).copied();
    let probe = ProbeRequest {
        transports: each_once(all),
        interfaces: a.request.settings.interfaces().or(b.request.settings.interfaces()),
        cpus: a.request.cpus.clone(),
        threads: plan.cpus_at_once(),
        clock: options.clock,
        checkup: None,
    };
    let sides =
        [a, b].map(|side| RunSide { prepare: side.prepare.clone(), program: side.binary.clone() });
    with_hosts(&hosts::others(&a.request.place), &probe, |hosts| {
        let (_, unavailable) =
            hosts::sort_out(&probe.transports, &a.request.settings, &a.request.place, hosts);
        // Without one of the two there is nothing to compare.
        if !unavailable.is_empty() {
            return Ok(Err(unavailable));
        }
        execute(&plan, hosts, &options, sides).map(Ok)
    })
}

/// Both sides as two series, each case of the one beside that of the other.
fn plan(sides: &[Side; 2]) -> Result<Plan, UsageError> {
    let [a, b] = sides.each_ref().map(|side| match side.words.as_str() {
        "" => "as it is",
        words => words,
    });
    let study = Study {
        name: "ab".into(),
        title: format!("Is B different from A? A: {a}; B: {b}"),
        source: None,
        quick: false,
        series: Vec::new(),
        graphs: Vec::new(),
    };
    let requests: Vec<(String, Request)> = SERIES
        .iter()
        .zip(sides)
        .map(|(name, side)| ((*name).to_owned(), side.request.clone()))
        .collect();
    let plan = Plan { name: "ab".into(), ..study::plan(study, &requests)? };
    let cases = SERIES.map(|name| plan.study.as_ref().map_or(0, |study| study.cases(name).len()));
    let [a, b] = cases;
    ensure!(a == b, "A has {a} cases and B has {b}: give both as many transports, sizes and waits");
    // The cases of A come first.
    let (of_a, of_b) = plan.cases.split_at(a.min(plan.cases.len()));
    let [first, second] = sides;
    let are_same = of_a == of_b && first.prepare == second.prepare && first.binary == second.binary;
    ensure!(!are_same, "A and B are the same: have --a and --b differ, --prepare-a or --binary-a");
    Ok(plan)
}

/// Both sides as they were typed, and how both are run.
fn read(typed: &Typed) -> Result<([Side; 2], RunOptions), UsageError> {
    let (given, common) = (&typed.given, typed.operands("COMMAND"));
    refuse_found(common.first().filter(|word| word.to_string_lossy().starts_with('-')), |word| {
        let word = word.display();
        format!("ab has no option '{word}': type the options of a command after the command")
    })?;
    let differs = given.iter().next().is_some();
    ensure!(differs, "A and B are the same: use --a and --b, --prepare-a or --binary-a");
    let (a, options) = side(given, "a", common)?;
    let (b, other) = side(given, "b", common)?;
    let is_alike = options == other
        && a.request.cpus == b.request.cpus
        && a.request.place == b.request.place
        && a.request.seed == b.request.seed
        && a.request.rounds() == b.request.rounds();
    ensure!(
        is_alike,
        "--a and --b: rounds, CPUs, hosts, seed, output and limits are the same for both: type \
         them after the command"
    );
    let no_baseline = options.judge.baseline.is_none();
    ensure!(no_baseline, "--baseline: ab compares A with B: leave it out");
    let fits = a.request.place.rails.is_none();
    ensure!(fits, "--rails: ab measures one rail: use --device instead");
    let has_binary = a.binary.is_some() || b.binary.is_some();
    let fits = !has_binary || !a.request.place.is_remote();
    ensure!(
        fits,
        "--binary-a and --binary-b are programs of this host: leave out --to and --hosts"
    );
    Ok(([a, b], options))
}

fn side(given: &Given, name: &str, common: &[OsString]) -> Result<(Side, RunOptions), UsageError> {
    let text = given.text(name).unwrap_or_default();
    let own = ab_words(text).map_err(UsageError::of_option(name))?;
    let option = |word: &str| word.split('=').next().unwrap_or(word).to_owned();
    let is_common = |word: &&String| {
        let same = |common: &OsString| option(&common.to_string_lossy()) == option(word);
        word.starts_with("--") && common.iter().any(same)
    };
    refuse_found(own.iter().find(is_common), |word| {
        let word = option(word);
        format!("{word} stands in the command and in --{name}: leave it to --a and --b")
    })?;
    let program = OsString::from("wiregauge");
    let all =
        [program].into_iter().chain(common.iter().cloned()).chain(own.iter().map(OsString::from));
    let typed: Vec<OsString> = all.collect();
    let wrong = |UsageError(sentence)| UsageError(format!("{}: {sentence}", name.to_uppercase()));
    match cli::parse(&typed).map_err(wrong)? {
        Command::Measure { request, options } => {
            let prepare = given.text(&format!("prepare-{name}")).map(str::to_owned);
            let binary = given.text(&format!("binary-{name}")).map(PathBuf::from);
            let words = [
                Some(text.to_owned()).filter(|text| !text.is_empty()),
                prepare.clone(),
                binary.as_ref().map(|path| path.display().to_string()),
            ];
            let words = words.into_iter().flatten().collect::<Vec<_>>().join("; ");
            Ok((Side { request: *request, words, prepare, binary }, options))
        }
        _ => refuse("ab compares commands that measure: use one such as latency --transport tcp"),
    }
}
