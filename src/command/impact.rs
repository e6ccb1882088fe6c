//! `impact`: a victim's rounds alone and beside each congestor, in turns.

use super::hosts;
use super::measure::{execute_in_turns, nothing_works};
use super::{CommandError, Exit};
use crate::cli::{self, Command, Congestor, RunOptions, Typed, ab_words};
use crate::options::{UsageError, each_once, refuse};
use crate::pattern::registry;
use crate::plan::{Request, impact};
use crate::transport::TransportKind;
use std::ffi::OsString;

/// What congestors are.
const PATTERN: &str = "exchange";

/// Measures, compares, reports.
pub fn impact(typed: &Typed) -> Result<Exit, CommandError> {
    let (victim, options) = victim(typed.operands("COMMAND"))?;
    let mut under: Vec<Congestor> = typed.given.choices("under");
    if under.is_empty() {
        under = Congestor::ALL.to_vec();
    }
    let own = typed.given.text("congestor").unwrap_or_default();
    let own = ab_words(own).map_err(UsageError::of_option("congestor"))?;
    let named = |one: &Congestor| Ok((one.name().to_owned(), congestor(*one, &victim, &own)?));
    let congestors = under.iter().map(named).collect::<Result<Vec<_>, UsageError>>()?;
    let plan = impact::plan(victim.clone(), congestors)?;
    let used = each_once(plan.cases.iter().map(|case| case.transport));
    let (_, unavailable) = hosts::sort_out(&used, &victim.settings, &victim.place, &[]);
    // Without one of the two there is nothing to compare.
    match unavailable.is_empty() {
        true => execute_in_turns(&plan, &options),
        false => Ok(nothing_works(&unavailable)),
    }
}

/// The victim as it was typed.
fn victim(words: &[OsString]) -> Result<(Request, RunOptions), UsageError> {
    match parsed(words.iter().cloned())? {
        Command::Measure { request, options } => {
            let is_here = !request.place.is_remote();
            ensure!(
                is_here,
                "impact measures within this host: leave out --to and --hosts, or write a study \
                 (docs/impact.md)"
            );
            impact::check_victim(&request)?;
            Ok((*request, options))
        }
        _ => refuse("impact takes a command that measures: use latency --transport tcp"),
    }
}

/// A congestor in the words of its command: an exchange that keeps all queues full.
fn congestor(kind: Congestor, victim: &Request, own: &[String]) -> Result<Request, UsageError> {
    let given = |option: &str| {
        own.iter().any(|word| word.split('=').next().is_some_and(|name| name == option))
    };
    for reserved in ["--schedule", "--time", "--rounds", "--cpus", "--hosts", "--hosts-file"] {
        let fits = !given(reserved);
        ensure!(
            fits,
            "--congestor: {reserved} is not for congestors: they run beside the command, as long \
             as it, and --under says who sends to whom"
        );
    }
    let mut words = vec![PATTERN, "--chaotic", "--schedule", kind.rule()];
    // That of the victim where it carries an exchange, else the usual one.
    let carries = |one: &&TransportKind| registry::carried_by(one.descriptor()).contains(&PATTERN);
    let transport = victim.transports.first().filter(carries).map(|one| one.name());
    if let Some(transport) = transport.filter(|_| !given("--transport")) {
        words.extend(["--transport", transport]);
    }
    let usual = words.clone().into_iter();
    let words = words.into_iter().chain(own.iter().map(String::as_str));
    let wrong = |UsageError(sentence)| UsageError(format!("--congestor: {sentence}"));
    let usual = parsed(usual.map(OsString::from)).map_err(wrong)?;
    let asked = parsed(words.map(OsString::from)).map_err(wrong)?;
    let (Command::Measure { options: usual, .. }, Command::Measure { request, options }) =
        (usual, asked)
    else {
        return refuse("--congestor: use options of exchange, such as '--nodes 8'");
    };
    ensure!(
        options == usual,
        "--congestor: output, limits and tables are those of the command: use options of {PATTERN} \
         alone, such as '--nodes 8'"
    );
    Ok(*request)
}

fn parsed(words: impl Iterator<Item = OsString>) -> Result<Command, UsageError> {
    cli::parse(&std::iter::once(OsString::from("wiregauge")).chain(words).collect::<Vec<_>>())
}
