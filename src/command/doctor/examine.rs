//! What is asked of a host, what was found on it, and how that is shown.

use crate::cli::{self, Command, doctor_words};
use crate::command::{CommandError, process};
use crate::host::doctor::{Checkup, Finding, Use};
use crate::host::{self, Tree};
use crate::options::{Given, UsageError};
use crate::plan::{Request, Wait};
use crate::report::table::{self, Layout, Text, Tone};
use crate::units::counted;
use crate::view::model::{OfRun, Rank, Table, prose, text};
use serde::Serialize;
use std::ffi::OsString;

/// A case that sends this much at once is about bandwidth.
const LARGE: u64 = 64 << 10;

/// What is to be measured, as it was typed.
pub struct Wanted {
    /// The words; empty: none was named.
    pub words: Vec<String>,
    /// What they ask for.
    pub request: Option<Request>,
    /// What matters for it.
    pub uses: Use,
    /// The CPUs of this host that would measure.
    pub cpus: Vec<u32>,
}

/// What was found on a host, as JSON.
#[derive(Serialize)]
pub struct OfHost<'a> {
    pub host: String,
    #[serde(flatten)]
    pub checkup: &'a Checkup,
}

pub fn host_name() -> String {
    Tree::default().text("/proc/sys/kernel/hostname").unwrap_or_default()
}

/// Runs the checks that were asked for.
pub fn examine(wanted: &Wanted, given: &Given) -> Checkup {
    only(Checkup::host(&wanted.cpus, &wanted.uses), given)
}

/// What the checks that were asked for have found.
pub fn only(checkup: Checkup, given: &Given) -> Checkup {
    let names: Vec<String> = given.list("check");
    let is_asked = |finding: &Finding| names.is_empty() || names.contains(&finding.check);
    let findings = checkup.findings.into_iter().filter(is_asked).collect();
    Checkup { findings, ..checkup }
}

/// Reads the command that --for names.
pub fn wanted(given: &Given) -> Result<Wanted, CommandError> {
    let Some(text) = given.text("for") else {
        let (words, uses) = (Vec::new(), Use::default());
        return Ok(Wanted { words, request: None, uses, cpus: cpus(None, 1) });
    };
    let words = doctor_words(text).map_err(UsageError::of_option("for"))?;
    let program = [OsString::from("wiregauge")].into_iter();
    let typed: Vec<OsString> = program.chain(words.iter().map(OsString::from)).collect();
    let wrong = |UsageError(sentence)| UsageError(format!("--for: {sentence}"));
    let Command::Measure { request, .. } = cli::parse(&typed).map_err(wrong)? else {
        let why = "--for takes a command that measures, such as latency or bandwidth";
        return Err(UsageError(why.into()).into());
    };
    let uses = uses(&request)?;
    let threads = request.threads.iter().copied().max().unwrap_or(1);
    let mut named: Vec<u32> =
        request.cpus.iter().flat_map(|pair| [pair.client, pair.server]).collect();
    if named.is_empty() {
        named = cpus(uses.device.as_deref(), threads);
    }
    named.sort_unstable();
    named.dedup();
    Ok(Wanted { words, request: Some(*request), uses, cpus: named })
}

/// The CPUs that a run would choose.
fn cpus(device: Option<&str>, threads: u32) -> Vec<u32> {
    let pairs = host::choose_pairs(host::rdma_node(&Tree::default(), device), threads).pairs;
    let mut all: Vec<u32> = pairs.iter().flat_map(|pair| [pair.client, pair.server]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What matters for a request.
fn uses(request: &Request) -> Result<Use, UsageError> {
    let cases = request.clone().plan()?.cases;
    let is_rate = |case: &crate::plan::Case| case.profile().stride > 1 || case.size.0 >= LARGE;
    let has = |name: &str| request.transports.iter().any(|one| one.has_setting(name));
    let rdma = has("device");
    let over_sockets = |one: &crate::transport::TransportKind| {
        one.has_setting("interface") && !one.has_setting("device")
    };
    let interface = request.settings.interfaces().map(|both| both.client.to_string());
    // Between two ends of one host that named no interface, messages pass the loopback.
    let loopback = (!request.place.is_remote()).then(|| "lo".to_owned());
    Ok(Use {
        sockets: request.transports.iter().any(over_sockets),
        rdma,
        blocks: request.waits.iter().any(|wait| *wait != Wait::Busy),
        latency: cases.iter().any(|case| !is_rate(case)),
        rate: cases.iter().any(is_rate),
        interface: interface.or(loopback.filter(|_| !rdma)),
        device: request.settings.text("device").filter(|_| rdma).map(str::to_owned),
    })
}

/// A finding with the hosts on which it is.
pub struct Row<'a> {
    pub hosts: String,
    pub finding: &'a Finding,
}

impl OfRun for Row<'_> {}

/// Lays out how many findings there are, and a table of them.
pub fn shown(checkup: &Checkup, layout: &Layout) -> Text {
    let mut text = layout.sentence(&counts(checkup), Tone::Head);
    let rows = checkup.findings.iter().map(|finding| Row { hosts: String::new(), finding });
    text.append(findings(rows.collect(), layout));
    text
}

/// Lays out a row for each finding; with a column of hosts where there are several.
pub fn findings(rows: Vec<Row<'_>>, layout: &Layout) -> Text {
    let has_hosts = rows.iter().any(|row| !row.hosts.is_empty());
    let hosts = has_hosts.then(|| prose("on", |row: &Row<'_>| row.hosts.clone()));
    let fields = [
        text("severity", |row: &Row<'_>| row.finding.severity.name()),
        text("check", |row: &Row<'_>| row.finding.check.clone()),
        prose("found", |row: &Row<'_>| row.finding.what()),
        prose("cost", |row: &Row<'_>| row.finding.cost_and_source()).rank(Rank::More),
        // Paths of commands are long: a narrow terminal has both on lines of their own.
        prose("change", |row: &Row<'_>| row.finding.remedy()).rank(Rank::More),
    ];
    let mut text = Text::default();
    if let Some(found) = Table::of(rows, hosts.into_iter().chain(fields)) {
        text.end_line();
        text.append(table::table(&found, layout));
    }
    text
}

/// The command behind the number of findings.
const FIX: &str = "`wiregauge doctor --fix` shows what it can change";

fn counts(checkup: &Checkup) -> String {
    let wrong = checkup.wrong();
    let notes = checkup.findings.len() - wrong;
    let in_words = counted(notes as u64, "note");
    match (wrong, notes) {
        (0, 0) => "found: nothing that spoils a figure".to_owned(),
        (0, _) => format!("found: nothing wrong, {in_words}"),
        (wrong, _) => {
            format!("found: {wrong} wrong, {in_words}; {FIX}")
        }
    }
}

/// The user's wish to end.
pub fn is_interrupted() -> Result<bool, CommandError> {
    Ok(process::interrupts()?.load(std::sync::atomic::Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Use {
        let words = ["wiregauge"].into_iter().chain(command.split(' '));
        let typed: Vec<OsString> = words.map(OsString::from).collect();
        let Ok(Command::Measure { request, .. }) = cli::parse(&typed) else { panic!("{command}") };
        uses(&request).unwrap()
    }

    #[test]
    fn what_matters_follows_from_the_command() {
        let tcp = of("latency --transport tcp --wait block");
        assert_eq!(
            (tcp.sockets, tcp.rdma, tcp.blocks, tcp.latency, tcp.rate),
            (true, false, true, true, false)
        );
        assert_eq!(tcp.interface.as_deref(), Some("lo"));
        let remote = of("latency --transport tcp --to node07");
        assert_eq!((remote.interface, remote.blocks), (None, false));
        let shm = of("latency --transport shm");
        assert_eq!((shm.sockets, shm.rdma), (false, false));
        let verbs = of("latency --transport verbs --device mlx5_1");
        assert_eq!((verbs.sockets, verbs.rdma, verbs.interface), (false, true, None));
        assert_eq!(verbs.device.as_deref(), Some("mlx5_1"));
        let rate = of("bandwidth --transport tcp --interface lo --size 8");
        assert_eq!((rate.latency, rate.rate), (false, true));
    }
}
