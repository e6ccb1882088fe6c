//! `impact`: a victim's rounds alone and beside each congestor, in turns.

use super::hosts::{self, ProbeRequest, with_hosts};
use super::measure::{execute_in_turns, nothing_works};
use super::{CommandError, Exit};
use crate::cli::{self, Command, Congestor, RunOptions, Typed, ab_words, entry};
use crate::options::{UsageError, each_once, refuse};
use crate::pattern::registry;
use crate::plan::request::MOST_THREADS;
use crate::plan::{HostSpec, Pairs, Place, Request, impact};
use crate::transport::{Role, TransportKind};
use crate::units::Bytes;
use std::ffi::OsString;

/// What congestors are.
const PATTERN: &str = "exchange";
/// Two for the victim, and two that exchange.
const LEAST_HOSTS: usize = 4;

/// Measures, compares, reports.
pub fn impact(typed: &Typed) -> Result<Exit, CommandError> {
    let (mut victim, options) = victim(typed.operands("COMMAND"))?;
    let nodes = entry::named_hosts(&typed.given)?;
    let mut under: Vec<Congestor> = typed.given.choices("under");
    if under.is_empty() {
        under = Congestor::ALL.to_vec();
    }
    let own = typed.given.text("congestor").unwrap_or_default();
    let own = ab_words(own).map_err(UsageError::of_option("congestor"))?;
    let named = |one: &Congestor| Ok((one.name().to_owned(), congestor(*one, &victim, &own)?));
    let mut congestors = under.iter().map(named).collect::<Result<Vec<_>, UsageError>>()?;
    if !nodes.is_empty() {
        spread(nodes, &mut victim, &mut congestors)?;
    }
    let plan = impact::plan(victim.clone(), congestors)?;
    let used = each_once(plan.cases.iter().map(|case| case.transport));
    let probe = ProbeRequest {
        transports: used.clone(),
        interfaces: victim.settings.interfaces(),
        threads: plan.cpus_at_once().min(MOST_THREADS),
        clock: options.clock,
        ..ProbeRequest::default()
    };
    let others: Vec<_> = plan.hosts.iter().map(|spec| (spec.clone(), Role::Client)).collect();
    with_hosts(&others, &probe, |hosts| {
        let (_, unavailable) = hosts::sort_out(&used, &victim.settings, &victim.place, hosts);
        // Without one of the two there is nothing to compare.
        match unavailable.is_empty() {
            true => execute_in_turns(&plan, hosts, &options),
            false => Ok(nothing_works(&unavailable)),
        }
    })
}

/// Has the victim on the first two hosts, and the congestors on all others.
fn spread(
    mut nodes: Vec<Option<HostSpec>>,
    victim: &mut Request,
    congestors: &mut [(String, Request)],
) -> Result<(), UsageError> {
    let count = nodes.len();
    ensure!(
        count >= LEAST_HOSTS,
        "--hosts: {count} are too few: name {LEAST_HOSTS} or more, two for the command and the \
         others for the congestors"
    );
    ensure!(
        !victim.asked.has_nodes(),
        "{} runs on all of its hosts: with --hosts use a command that measures a pair",
        victim.pattern.name()
    );
    let others = nodes.split_off(2);
    victim.place = Place { nodes, ..Place::default() };
    for (_, congestor) in congestors {
        congestor.place = Place { nodes: others.clone(), which: Pairs::Ranks, ..Place::default() };
    }
    Ok(())
}

/// The victim as it was typed.
fn victim(words: &[OsString]) -> Result<(Request, RunOptions), UsageError> {
    match parsed(words.iter().cloned())? {
        Command::Measure { request, options } => {
            let is_here = !request.place.is_remote();
            ensure!(
                is_here,
                "the hosts of an impact are typed before its command: use impact --hosts A,B,C,D \
                 latency, the command on the first two"
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
    let usual = exchange([PATTERN].into_iter())?;
    // Where it cannot carry an exchange's usual messages, as large ones as it can.
    let largest = |one: &TransportKind| Bytes(one.descriptor().largest);
    let size = victim.transports.first().filter(carries).map(largest);
    let size = size.filter(|largest| usual.0.sizes.iter().any(|size| size > largest));
    let is_usual = !given("--size") && !given("--transport");
    let size = size.filter(|_| is_usual).map(|largest| largest.0.to_string());
    if let Some(size) = &size {
        words.extend(["--size", size]);
    }
    let (request, options) = exchange(words.into_iter().chain(own.iter().map(String::as_str)))?;
    ensure!(
        options == usual.1,
        "--congestor: output, limits and tables are those of the command: use options of {PATTERN} \
         alone, such as '--nodes 8'"
    );
    Ok(request)
}

/// What these words ask of an exchange.
fn exchange<'a>(words: impl Iterator<Item = &'a str>) -> Result<(Request, RunOptions), UsageError> {
    let wrong = |UsageError(sentence)| UsageError(format!("--congestor: {sentence}"));
    match parsed(words.map(OsString::from)).map_err(wrong)? {
        Command::Measure { request, options } => Ok((*request, options)),
        _ => refuse("--congestor: use options of exchange, such as '--nodes 8'"),
    }
}

fn parsed(words: impl Iterator<Item = OsString>) -> Result<Command, UsageError> {
    cli::parse(&std::iter::once(OsString::from("wiregauge")).chain(words).collect::<Vec<_>>())
}
