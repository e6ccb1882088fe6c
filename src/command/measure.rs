//! `survey`, `latency`, `oneway`, `bandwidth`: run, keep, report.

use super::causes::Causes;
use super::console::{complain, layout, print_json, print_json_line, print_report, print_text};
use super::hosts::{self, ProbeRequest, with_hosts};
use super::live::Live;
use super::periods::Periods;
use super::process::{context, interrupts};
use super::progress::Progress;
use super::{CommandError, Exit, judge};
use crate::cli::RunOptions;
use crate::explain::Explanation;
use crate::host::{self, CpuPair};
use crate::loops::schedule;
use crate::pattern::{registry, survey};
use crate::plan::request::{MOST_THREADS, in_all};
use crate::plan::{Case, Place, Plan, Rails, Request, UsageError, Wait};
use crate::record::directory::{DEFAULT_BASE, unrestored_beside};
use crate::record::error::shown;
use crate::record::journal::not_restored;
use crate::record::samples::ROW_BYTES_AT_MOST;
use crate::record::schema::{Record, Unavailable};
use crate::record::{RunDirectory, SampleReader, Writer};
use crate::remote::host::RemoteHost;
use crate::report::comparison::Comparison;
use crate::report::table::Columns;
use crate::report::{html, table};
use crate::run::{RoundObserver, RunContext, RunSide, Sides, Watcher, preflight, run_after};
use crate::transport::{Role, Settings};
use crate::units::{Bytes, counted};
use crate::view::{ShownLimit, byte_rate};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Room for record.json and report.html beside the samples.
const REPORT_BYTES: u64 = 8 << 20;
/// Bytes of a thread in a round in the journal, which lies beside the samples until the end.
const ROUND_BYTES: u64 = 8 << 10;
/// Characters of a study's name that the run directory's has.
const LONGEST_WORD: usize = 60;

/// Measures every transport that works here.
pub fn survey(cpus: Vec<CpuPair>, seed: u64, options: &RunOptions) -> Result<Exit, CommandError> {
    let transports: Vec<_> = survey::transports().collect();
    let (works, unavailable) =
        hosts::sort_out(&transports, &Settings::default(), &Place::default(), &[]);
    let one_cpu = match cpus.first() {
        Some(pair) => pair.client == pair.server,
        None => host::choose_pairs(None, 1).one_cpu,
    };
    if one_cpu {
        complain(&"there is one CPU for both ends: only blocking waits are measured");
    }
    let plan = Plan { cpus, ..survey::plan(&works, one_cpu, seed) };
    execute(&plan, unavailable, &[], options)
}

/// Measures what was asked for. Transports that do not work here are named; the others still run.
pub fn measure(request: Request, options: &RunOptions) -> Result<Exit, CommandError> {
    let execute = |plan: &Plan, unavailable, hosts: &_| execute(plan, unavailable, hosts, options);
    let done = prepared(request, options, execute)?;
    Ok(done.unwrap_or_else(|unavailable| nothing_works(&unavailable)))
}

/// Checks a request, reaches its hosts and executes its plan; else the reasons for which none of
/// its transports works here.
pub fn prepared<T>(
    mut request: Request,
    options: &RunOptions,
    execute: impl FnOnce(&Plan, Vec<Unavailable>, &[RemoteHost]) -> Result<T, CommandError>,
) -> Result<Result<T, Vec<Unavailable>>, CommandError> {
    // The whole request must make sense, also for what does not work here.
    let rails = request.place.rails.as_ref().map_or(1, Rails::expected_at_once);
    let flows = (request.clone().plan()?.cpus_at_once() * rails).min(MOST_THREADS);
    request.timer.map_or(Ok(()), schedule::available).map_err(UsageError)?;
    let probe = ProbeRequest {
        transports: request.transports.clone(),
        interfaces: request.settings.interfaces(),
        cpus: request.cpus.clone(),
        threads: flows,
        clock: options.clock,
        checkup: None,
    };
    with_hosts(&hosts::others(&request.place), &probe, |hosts| {
        let (works, unavailable) =
            hosts::sort_out(&request.transports, &request.settings, &request.place, hosts);
        request.transports = works;
        match request.transports.is_empty() {
            true => Ok(Err(unavailable)),
            false => {
                hosts::find_rails(&mut request.place, &request.transports, hosts)?;
                yield_crowded_cpus(&mut request, hosts)?;
                execute(&request.plan()?, unavailable, hosts).map(Ok)
            }
        }
    })
}

/// Lets ends block that would wait busy on fewer CPUs of this machine, where the user named no wait
/// mode and the transports can block; else says what is then measured.
fn yield_crowded_cpus(request: &mut Request, hosts: &[RemoteHost]) -> Result<(), UsageError> {
    let plan = request.clone().plan()?;
    let threads = busy_threads_here(&plan, hosts);
    let cpus = cpus_here(hosts).len();
    if threads as usize <= cpus || plan.hosts.is_empty() {
        return Ok(());
    }
    let crowd = format!(
        "{threads} threads would wait busy at the same time on {} of this machine, where all these \
         hosts are",
        counted(cpus as u64, "CPU")
    );
    let blocking = Request { waits: vec![Wait::Block], ..request.clone() };
    if request.is_wait_chosen || blocking.clone().plan().is_err() {
        complain(&format!("{crowd}: the figures are the scheduler's; use fewer at a time"));
    } else {
        *request = blocking;
        complain(&format!("{crowd}: they block instead (--wait busy insists)"));
    }
    Ok(())
}

/// Returns the CPUs of this machine that its ends may use: those of this process, and those of
/// hosts that are this machine, since a launcher may have bound each rank to its own.
fn cpus_here(hosts: &[RemoteHost]) -> BTreeSet<u32> {
    let others = hosts.iter().filter(|host| host.shares_kernel());
    let others = others.flat_map(|host| host.probe.cpus.iter().copied());
    crate::host::allowed_cpus().into_iter().chain(others).collect()
}

/// Returns how many threads of hosts that are this machine wait busy at the same time, at most.
fn busy_threads_here(plan: &Plan, hosts: &[RemoteHost]) -> u32 {
    let groups = plan.groups();
    let threads = groups.iter().map(|group| {
        group.iter().map(|number| busy_threads(&plan.cases[*number], hosts)).sum::<u32>()
    });
    threads.max().unwrap_or(0)
}

/// Returns how many threads of a case wait busy on hosts that are this machine.
fn busy_threads(case: &Case, hosts: &[RemoteHost]) -> u32 {
    if case.wait != Wait::Busy || case.transport.simulates_time() {
        return 0;
    }
    let here = case.topology.ranks.iter().filter(|rank| {
        let host = rank.host.map(|number| hosts.get(number as usize));
        host.is_none_or(|host| host.is_some_and(RemoteHost::shares_kernel))
    });
    here.map(|rank| rank.threads).sum()
}

/// Says why nothing can be measured.
pub fn nothing_works(unavailable: &[Unavailable]) -> Exit {
    for missing in unavailable {
        complain(&format!("{}: {}", missing.transport, missing.reason));
    }
    Exit::NOTHING
}

/// What the samples of a plan take on disk at most.
pub fn need(plan: &Plan) -> Bytes {
    let rows = |case: &Case| {
        let own = registry::execution(case.pattern.name());
        let rows =
            [Role::Client, Role::Server].map(|role| own.map_or(0, |own| own.rows(case, role)));
        rows[0].max(rows[1]).saturating_mul(u64::from(case.threads()))
    };
    let rows = plan.cases.iter().map(rows).fold(0, u64::saturating_add);
    let all = rows.saturating_mul(u64::from(plan.rounds.most)).saturating_mul(ROW_BYTES_AT_MOST);
    // Rounds that time bounds rarely fill their rows, and rows take a fifth of the most.
    let journal = in_all(&plan.cases, plan.rounds).saturating_mul(ROUND_BYTES);
    Bytes((all / 5 + REPORT_BYTES).saturating_add(journal))
}

/// Runs a plan, keeps what it gives and reports it.
pub fn execute(
    plan: &Plan,
    unavailable: Vec<Unavailable>,
    hosts: &[RemoteHost],
    options: &RunOptions,
) -> Result<Exit, CommandError> {
    execute_prepared(plan, unavailable, hosts, options, Vec::new(), None)
}

/// The same of a plan whose series are prepared, each by its own command, and of which `restore`
/// takes that back.
pub fn execute_prepared(
    plan: &Plan,
    unavailable: Vec<Unavailable>,
    hosts: &[RemoteHost],
    options: &RunOptions,
    each: Vec<RunSide>,
    restore: Option<&str>,
) -> Result<Exit, CommandError> {
    // Whatever is wrong with a baseline is said before the run.
    let baseline = judge::baseline(&options.judge)?;
    let with = With { sides: Sides { each, in_turns: false }, restore, ..With::default() };
    let (record, writer, failed) = carry_out(plan, unavailable, hosts, options, with)?;
    report_judged(&record, baseline, writer, options, failed)
}

/// Runs a plan whose rounds have the order of those before in reverse, and reports it.
pub fn execute_in_turns(
    plan: &Plan,
    hosts: &[RemoteHost],
    options: &RunOptions,
) -> Result<Exit, CommandError> {
    let baseline = judge::baseline(&options.judge)?;
    let with = With { sides: Sides { each: Vec::new(), in_turns: true }, ..With::default() };
    let (record, writer, failed) = carry_out(plan, Vec::new(), hosts, options, with)?;
    report_judged(&record, baseline, writer, options, failed)
}

/// Runs a plan of two series in turns, compares them, and reports the rest.
pub fn execute_sides(
    plan: &Plan,
    hosts: &[RemoteHost],
    options: &RunOptions,
    sides: [RunSide; 2],
) -> Result<Exit, CommandError> {
    let with = With { sides: Sides { each: sides.into(), in_turns: true }, ..With::default() };
    let (record, writer, failed) = carry_out(plan, Vec::new(), hosts, options, with)?;
    let compared = judge::compared(&record, options);
    let told = judge::tell(&compared, true, options);
    let kept = report_with(&record, Some(&compared), writer, options)?;
    told?;
    let judged = judge::finish(&compared, &record, kept.as_deref(), options)?;
    Ok(failed.unwrap_or(judged))
}

/// Keeps a record and prints it, with what a baseline and limits say of it. `failed`: the exit code
/// that stands whatever they say.
fn report_judged(
    record: &Record,
    baseline: Option<Record>,
    writer: Option<Writer>,
    options: &RunOptions,
    failed: Option<Exit>,
) -> Result<Exit, CommandError> {
    let compared = judge::measured(record, baseline, options);
    let kept = report_with(record, compared.as_ref(), writer, options)?;
    compared.as_ref().map_or(Ok(()), |all| judge::tell(all, false, options))?;
    let judged = judge::finish_measured(compared.as_ref(), record, kept.as_deref(), options)?;
    Ok(failed.unwrap_or(judged))
}

/// The same without a report: the comparison, where the record is, and the exit code of the run.
pub fn compare_sides(
    plan: &Plan,
    hosts: &[RemoteHost],
    options: &RunOptions,
    sides: [RunSide; 2],
) -> Result<(Comparison, Option<PathBuf>, Exit), CommandError> {
    let sides = Sides { each: sides.into(), in_turns: true };
    let with = With { sides, ..With::default() };
    let (record, writer, failed) = carry_out(plan, Vec::new(), hosts, options, with)?;
    let kept = writer.map(|writer| keep(&record, writer)).transpose()?;
    Ok((judge::compared(&record, options), kept, failed.unwrap_or(Exit::RIGHT)))
}

/// Runs a plan of two series in turns, one of which is observed, and reports both with what
/// `explain` makes of it.
pub fn execute_observed(
    plan: &Plan,
    hosts: &[RemoteHost],
    options: &RunOptions,
    observer: &dyn RoundObserver,
    explain: impl FnOnce(&Record) -> Option<Explanation>,
) -> Result<Exit, CommandError> {
    let sides = Sides { each: Vec::new(), in_turns: true };
    let with = With { sides, observer: Some(observer), ..With::default() };
    let (record, writer, failed) = carry_out(plan, Vec::new(), hosts, options, with)?;
    let record = Record { explanation: explain(&record).map(Box::new), ..record };
    if record.explanation.is_none() {
        complain(
            &"no message was explained: too few rounds came to their end, or stamps are missing",
        );
    }
    report(&record, writer, options)?;
    let found = if record.explanation.is_some() { Exit::RIGHT } else { Exit::INCOMPLETE };
    Ok(failed.unwrap_or(found))
}

/// What a run has beside its plan.
#[derive(Default)]
struct With<'a> {
    sides: Sides,
    observer: Option<&'a dyn RoundObserver>,
    /// The shell command that takes back what the sides' commands have changed.
    restore: Option<&'a str>,
}

/// The record of a plan, who keeps it, and the exit code that stands whatever is compared.
fn carry_out(
    plan: &Plan,
    unavailable: Vec<Unavailable>,
    hosts: &[RemoteHost],
    options: &RunOptions,
    with: With<'_>,
) -> Result<(Record, Option<Writer>, Option<Exit>), CommandError> {
    announce(plan, options)?;
    let interrupted = interrupts()?;
    let With { sides, observer, restore } = with;
    let causes = options.causes.then(|| Causes::new(plan)).transpose()?;
    let observer = observer.or(causes.as_ref().map(|causes| causes as &dyn RoundObserver));
    let context =
        RunContext { sides, observer, ..context(options, &interrupted, hosts, unavailable)? };
    let found = preflight(plan, &context)?;
    let mut watcher = watcher(options)?;
    let mut writer = writer(options, &word(plan), need(plan))?;
    let noted = writer.as_mut().filter(|_| restore.is_some());
    noted.map_or(Ok(()), |writer| writer.note_restore(restore))?;
    let record = run_after(found, plan, &context, &mut writer, &mut *watcher);
    if restore.is_some() {
        let is_restored = take_back(restore);
        // After an error of the disk nothing more is noted, and `recover` names the command again.
        let noted = writer.as_mut().filter(|_| is_restored);
        let _ = noted.map(|writer| writer.note_restore(None));
    }
    // Restores the terminal before anything is printed.
    drop(watcher);
    let tails = causes.map(|causes| causes.found()).unwrap_or_default();
    let record = Record { tails, ..record? };
    let failed = match (record.complete, record.runs.iter().any(|run| run.counts.received > 0)) {
        (true, _) => match registry::views().iter().map(|view| view.limit(&record)).max() {
            Some(ShownLimit::Exceeded) => Some(Exit::EXCEEDED),
            Some(ShownLimit::Inconclusive) => Some(Exit::INCONCLUSIVE),
            Some(ShownLimit::Kept) | None => None,
        },
        (false, true) => Some(Exit::INCOMPLETE),
        (false, false) if interrupted.load(Ordering::Relaxed) => Some(Exit::INCOMPLETE),
        (false, false) => Some(Exit::NOTHING),
    };
    Ok((record, writer, failed))
}

/// Longest time that is not announced.
const SHORT: Duration = Duration::from_secs(10);
/// Longest time that starts on a terminal without `--yes`.
const LONG: Duration = Duration::from_secs(600);

/// Says on stderr what will be run and how long it takes, where it takes long.
///
/// # Errors
/// It is far longer than somebody at a terminal waits, and was not asked for with `--yes`.
fn announce(plan: &Plan, options: &RunOptions) -> Result<(), UsageError> {
    if let Some(cpu) = crowded_cpu(plan) {
        complain(&format!(
            "ends that wait busy share CPU {cpu}, and each keeps it from the others for its time \
             slice: use --wait block, or --cpus with a CPU for each"
        ));
    }
    let Some(takes) = plan.duration().filter(|takes| *takes > SHORT) else { return Ok(()) };
    let cases = counted(plan.cases.len() as u64, "case");
    let rounds = counted(plan.rounds.most, "round");
    let most = if plan.rounds.until.is_some() { "at most" } else { "about" };
    let text = format!("{cases} of {rounds}: {most} {}", in_words(takes));
    ensure!(
        takes <= LONG || options.yes || !std::io::stderr().is_terminal(),
        "{text}: use --yes to run it, or lower --rounds, --time or --count"
    );
    complain(&text);
    Ok(())
}

/// Returns a CPU of this host on which several ends are to wait busy, as `--cpus` has it.
fn crowded_cpu(plan: &Plan) -> Option<u32> {
    let is_busy = |case: &Case| case.wait == Wait::Busy && !case.transport.simulates_time();
    if !plan.cases.iter().any(is_busy) || !plan.hosts.is_empty() {
        return None;
    }
    let mut used = BTreeSet::new();
    plan.cpus.iter().flat_map(|pair| [pair.client, pair.server]).find(|cpu| !used.insert(*cpu))
}

/// Returns a length of time as a person says it.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Runs the command that takes back what others have changed. Returns true if it succeeded.
pub fn take_back(restore: Option<&str>) -> bool {
    let side = RunSide { prepare: restore.map(str::to_owned), program: None };
    let restored = side.prepare(&AtomicBool::new(false));
    let said = restored.as_ref().err().map(|fault| format!("settings were not restored: {fault}"));
    said.inspect(|said| complain(said));
    restored.is_ok()
}

/// How progress is shown: as a line that is overwritten, full-screen, or as lines on stdout.
fn watcher(options: &RunOptions) -> Result<Box<dyn Watcher>, CommandError> {
    Ok(match (options.live, options.report_every) {
        (true, _) => Box::new(Live::new()?),
        (false, Some(_)) => Box::new(Periods::new(options.json)),
        (false, None) => Box::new(Progress::new()),
    })
}

/// Prepares the run directory. With --json the record goes to stdout, and a directory is made only
/// where one was named.
pub fn writer(
    options: &RunOptions,
    word: &str,
    need: Bytes,
) -> Result<Option<Writer>, CommandError> {
    let beside = options.directory.clone().unwrap_or_else(|| Path::new(DEFAULT_BASE).join("any"));
    for (dir, command) in unrestored_beside(&beside) {
        complain(&format!("{}: {}", shown(&dir), not_restored(&command)));
    }
    Ok(match (&options.directory, options.json) {
        (None, true) => None,
        (Some(path), _) => Some(RunDirectory::create(path, need)?),
        (None, false) => {
            let base = Path::new(DEFAULT_BASE);
            Some(RunDirectory::create_named(base, word, wiregauge_base::wall_clock::now(), need)?)
        }
    })
}

/// What the run directory's name ends with: the command, or the study without its folders' signs.
fn word(plan: &Plan) -> String {
    let Some(study) = &plan.study else { return plan.name.clone() };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    study.name.chars().take(LONGEST_WORD).map(plain).collect()
}

/// Keeps a record and prints it; where it is kept. What cannot be kept is still printed.
pub fn report(
    record: &Record,
    writer: Option<Writer>,
    options: &RunOptions,
) -> Result<Option<PathBuf>, CommandError> {
    report_with(record, None, writer, options)
}

/// A record as it is printed: with the comparison that the command was asked for.
#[derive(serde::Serialize)]
struct JudgedRecord<'a> {
    #[serde(flatten)]
    record: &'a Record,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
}

/// The same with a comparison, which the printed JSON has as a member of its own.
fn report_with(
    record: &Record,
    comparison: Option<&Comparison>,
    writer: Option<Writer>,
    options: &RunOptions,
) -> Result<Option<PathBuf>, CommandError> {
    let display = &options.display;
    byte_rate::choose(display.unit);
    let kept = writer.map(|writer| keep(record, writer)).transpose();
    if options.json {
        // With lines of a running round each object is a line.
        let printed = JudgedRecord { record, comparison };
        if options.report_every.is_some() {
            print_json_line(&printed)?;
        } else {
            print_json(&printed)?;
        }
        // Stdout is the record's alone; who reads it by a program still sees what weakens it.
        let notes = table::notes(record, &display.layout(None)).to_string();
        notes.lines().for_each(|line| complain(&line));
        return kept;
    }
    let mut layout = layout(display);
    if let Some(wrong) = table::unknown_column(record, &registry::views(), &layout) {
        complain(&wrong);
        layout.columns = Columns::default();
    }
    let text = table::report(record, &registry::views(), &layout);
    print_report(&text, display.color)?;
    let kept = kept?;
    if let Some(path) = &kept {
        print_text(&format!("kept in {}\n", path.display()))?;
    }
    Ok(kept)
}

/// Lets the run directory appear, with a report made from the samples as they lie in it.
pub fn keep(record: &Record, mut writer: Writer) -> Result<PathBuf, CommandError> {
    let reader = SampleReader::open(&writer.close_samples()?)?;
    Ok(writer.finish(record, |record| html::render(record, &registry::views(), reader))?)
}
