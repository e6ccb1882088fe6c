//! Breaks expressions that figures depend on, one at a time, and says which breaks no test notices.
//!
//! A mutant costs a run of a few tests and no build: all of them are compiled into one copy of the
//! sources, each behind a switch that an environment variable sets. (`cargo-mutants` builds the
//! crate for each mutant, a minute apiece.)
//!
//! [`mutate`] tries a chosen list, [`mutate_all`] whatever the syntax tree offers.

mod copy;
mod decided;
mod equivalent;
mod generate;
mod insert;
mod program;
mod whole;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::command::root;
use copy::{Built, Level, build, copy};
use program::{Outcome, Program};
pub use whole::mutate_all;

/// The breaks, each a line `FILE | TESTS | EXPRESSION | INSTEAD`.
const LIST: &str = include_str!("../../mutants.txt");
/// A mutant that runs longer is one that was noticed: the tests asked take seconds.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// Puts every mutant behind its switch.
fn insert(to: &Path, mutants: &[Mutant]) -> Result<(), String> {
    for (number, mutant) in mutants.iter().enumerate() {
        let text = copy::read(to, &mutant.file)?;
        let (own, tests) = text.split_at(text.rfind("#[cfg(test)]").unwrap_or(text.len()));
        let times = own.matches(&mutant.expression).count();
        if times != 1 {
            let what = &mutant.expression;
            return Err(format!("{}: '{what}' is there {times} times, not once", mutant.file));
        }
        let switched = format!(
            "(if crate::is_mutant({number}) {{ {} }} else {{ {} }})",
            mutant.instead, mutant.expression
        );
        copy::write(to, &mutant.file, &(own.replacen(&mutant.expression, &switched, 1) + tests))?;
    }
    // One more: the number of the run without any.
    copy::add_switches(to, mutants.len() + 1)
}

/// Whether the tests fail.
fn is_noticed(programs: &[Program], number: usize, tests: &str) -> Result<bool, String> {
    let tests: Vec<&str> = tests.split(' ').collect();
    for program in programs {
        if program.try_mutant(number, &tests, PATIENCE)? != Outcome::Passed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tries all mutants, and returns how many the tests do not notice.
fn try_all(programs: &[Program], mutants: &[Mutant]) -> Result<u32, String> {
    for tests in mutants.iter().map(|mutant| mutant.tests.as_str()).collect::<BTreeSet<_>>() {
        if is_noticed(programs, mutants.len(), tests)? {
            return Err(format!("the tests {tests} fail without a mutant"));
        }
    }
    let mut survivors = 0;
    for (number, mutant) in mutants.iter().enumerate() {
        if !is_noticed(programs, number, &mutant.tests)? {
            survivors += 1;
            println!("{}: '{}' for '{}'", mutant.file, mutant.instead, mutant.expression);
        }
    }
    Ok(survivors)
}

/// Tries all of the list. Fails where one is not noticed, or where the tests fail without any.
pub fn mutate() -> Result<(), String> {
    let root = root()?;
    let to = root.join("target/mutants");
    let mutants = list()?;
    copy(&root, &to)?;
    insert(&to, &mutants)?;
    let paths = match build(&root, &to, Level::Quick, &[])? {
        Built::Programs(paths) => paths,
        Built::Refused(errors) => {
            return Err(errors.into_iter().map(|error| error.text).collect());
        }
    };
    let of_path = |path| Program { path, copy: to.clone() };
    let programs: Vec<Program> = paths.into_iter().map(of_path).collect();
    let survivors = try_all(&programs, &mutants)?;
    println!("{} mutants, {survivors} not noticed", mutants.len());
    if survivors == 0 { Ok(()) } else { Err("a test is missing".to_owned()) }
}
