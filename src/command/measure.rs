//! `survey`, `latency`, `oneway`, `bandwidth`: run, keep, tell.

use super::{CommandError, Exit, complain, print, print_json};
use crate::cli::Output;
use crate::clock::Source;
use crate::conduct::{Stage, Watcher, conduct};
use crate::host::{self, CpuPair};
use crate::launch::far::There;
use crate::launch::memory::rows_for;
use crate::launch::protocol::Look;
use crate::plan::{Far, Plan, Refusal, Request, survey};
use crate::record::directory::DEFAULT_BASE;
use crate::record::samples::ROW_BYTES_AT_MOST;
use crate::record::schema::{Record, Unavailable};
use crate::record::{RunDirectory, SampleReader, Writer};
use crate::report::{html, progress::Progress, table};
use crate::transport::{Role, TransportKind};
use crate::units::Bytes;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Room for record.json and report.html beside the samples.
const REPORT_BYTES: u64 = 8 << 20;
/// Characters of a study's name that the run directory's has.
const LONGEST_WORD: usize = 60;

/// Measures every transport that works here.
pub fn survey(
    cpus: Vec<CpuPair>,
    seed: u64,
    clock: Option<Source>,
    output: Output,
    typed: Vec<String>,
) -> Result<Exit, CommandError> {
    let (works, unavailable) = sort_out(&survey::TRANSPORTS, None);
    let one_cpu = match cpus.first() {
        Some(pair) => pair.client == pair.server,
        None => host::choose_pairs(None, 1).one_cpu,
    };
    if one_cpu {
        complain(&"there is one CPU for both ends: only blocking waits are measured");
    }
    let plan = Plan { cpus, ..survey::plan(&works, one_cpu, seed) };
    carry_out(plan, unavailable, None, clock, output, typed)
}

/// Measures what was asked for. Transports that do not work here are named; the others still run.
pub fn measure(
    mut request: Request,
    clock: Option<Source>,
    output: Output,
    typed: Vec<String>,
) -> Result<Exit, CommandError> {
    // The whole request must make sense, also for what does not work here.
    request.clone().plan()?;
    let there = match &request.to {
        Some(far) => Some(reach(far, look_for(&request, clock))?),
        None => None,
    };
    let (works, unavailable) = sort_out(&request.transports, there.as_ref());
    request.transports = works;
    if request.transports.is_empty() {
        for missing in &unavailable {
            complain(&format!("{}: {}", missing.transport, missing.reason));
        }
        return Ok(Exit::Nothing);
    }
    let exit = carry_out(request.plan()?, unavailable, there.as_ref(), clock, output, typed);
    leave(there);
    exit
}

/// What a request needs to know of another host.
fn look_for(request: &Request, clock: Option<Source>) -> Look {
    Look {
        transports: request.transports.clone(),
        interface: request.options.interface.as_ref().map(|names| names.server.clone()),
        cpus: request.cpus.iter().map(|pair| pair.server).collect(),
        threads: request.threads.iter().copied().max().unwrap_or(1),
        clock,
    }
}

/// Looks at another host, before anything runs.
pub fn reach(far: &Far, look: Look) -> Result<There, CommandError> {
    let interrupted = interrupts()?;
    There::reach(far, look, &program()?, &interrupted).map_err(|fault| match fault.wrong_use {
        true => CommandError::Refused(Refusal(fault.sentence)),
        false => CommandError::Unable(fault.sentence),
    })
}

/// Leaves it as it was.
pub fn leave(there: Option<There>) {
    if let Some(Err(stays)) = there.map(There::leave) {
        complain(&stays);
    }
}

/// This program's file.
fn program() -> Result<PathBuf, CommandError> {
    std::env::current_exe()
        .map_err(|error| CommandError::Unable(format!("finding this program's file: {error}")))
}

/// What is set when the user wants the program to end: the same for all who ask.
pub fn interrupts() -> Result<Arc<AtomicBool>, CommandError> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(known) = INTERRUPTED.get() {
        return Ok(Arc::clone(known));
    }
    let interrupted = Arc::clone(INTERRUPTED.get_or_init(Arc::default));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// The transports that work, here and there; the others with the reason.
pub fn sort_out(
    transports: &[TransportKind],
    there: Option<&There>,
) -> (Vec<TransportKind>, Vec<Unavailable>) {
    let wrong_there = |transport: TransportKind| {
        let there = there?;
        let (_, why) = there.seen.unavailable.iter().find(|(one, _)| *one == transport)?;
        Some(format!("on {}: {why}", there.session.host()))
    };
    let mut works = Vec::new();
    let mut unavailable = Vec::new();
    for transport in transports {
        match transport.available().err().or_else(|| wrong_there(*transport)) {
            None => works.push(*transport),
            Some(reason) => {
                unavailable.push(Unavailable { transport: transport.name().into(), reason });
            }
        }
    }
    (works, unavailable)
}

/// What the samples of a plan take on disk at most.
fn need(plan: &Plan) -> Bytes {
    let rows: u64 = plan
        .cases
        .iter()
        .map(|case| {
            let rows = rows_for(case, Role::Client).max(rows_for(case, Role::Server));
            rows.saturating_mul(u64::from(case.threads))
        })
        .fold(0, u64::saturating_add);
    let all = rows.saturating_mul(u64::from(plan.rounds.most)).saturating_mul(ROW_BYTES_AT_MOST);
    // Rounds that time bounds rarely fill their rows, and rows take a fifth of the most.
    Bytes(all / 5 + REPORT_BYTES)
}

/// Runs a plan, keeps what it gives and tells it.
pub fn carry_out(
    plan: Plan,
    unavailable: Vec<Unavailable>,
    there: Option<&There>,
    clock: Option<Source>,
    output: Output,
    typed: Vec<String>,
) -> Result<Exit, CommandError> {
    let program = program()?;
    let interrupted = interrupts()?;
    // With --json the record goes to stdout, and a directory is made only where one was named.
    let mut writer = match (&output.directory, output.json) {
        (None, true) => None,
        (Some(path), _) => Some(RunDirectory::create(path, need(&plan))?),
        (None, false) => {
            let now = jiff::Timestamp::now();
            let base = Path::new(DEFAULT_BASE);
            Some(RunDirectory::create_named(base, &word(&plan), now, need(&plan))?)
        }
    };
    let interrupted = &*interrupted;
    let stage = Stage { program, command: typed, clock, interrupted, there, unavailable };
    let mut progress = Progress::new();
    let record = conduct(
        &plan,
        &stage,
        &mut |round| writer.as_mut().map_or(Ok(()), |writer| writer.append(round)),
        &mut progress as &mut dyn Watcher,
    );
    progress.finish();
    let record = record?;
    tell(&record, writer, output.json)?;
    Ok(match (record.complete, record.runs.iter().any(|run| run.counts.received > 0)) {
        (true, _) => Exit::Right,
        (false, true) => Exit::Incomplete,
        (false, false) if record.faults.iter().any(|fault| fault.contains("interrupted")) => {
            Exit::Incomplete
        }
        (false, false) => Exit::Nothing,
    })
}

/// What the run directory's name ends with: the command, or the study without its folders' signs.
fn word(plan: &Plan) -> String {
    let Some(study) = &plan.study else { return plan.name.clone() };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    study.name.chars().take(LONGEST_WORD).map(plain).collect()
}

fn tell(record: &Record, writer: Option<Writer>, json: bool) -> Result<(), CommandError> {
    let kept = writer.map(|writer| keep(record, writer)).transpose()?;
    if json {
        print_json(record)?;
        // Stdout is the record's alone; who reads it by a program still sees what weakens it.
        table::notes(record).lines().for_each(|line| complain(&line));
        return Ok(());
    }
    print(table::runs(record).as_bytes())?;
    print(table::notes(record).as_bytes())?;
    if let Some(path) = kept {
        print(format!("kept in {}\n", path.display()).as_bytes())?;
    }
    Ok(())
}

/// Lets the run directory appear, with a report made from the samples as they lie in it.
fn keep(record: &Record, mut writer: Writer) -> Result<std::path::PathBuf, CommandError> {
    let reader = SampleReader::open(&writer.close_samples()?)?;
    let report = html::render(record, rounds(reader));
    Ok(writer.finish(record, &report)?)
}

/// The rounds of a samples file, one after the other.
pub fn rounds(
    mut reader: SampleReader,
) -> impl Iterator<Item = Result<crate::sample::RoundSamples, crate::record::RecordError>> {
    std::iter::from_fn(move || reader.next_round())
}

/// A refusal as an error of a command.
pub fn refuse<T>(sentence: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Refused(Refusal(sentence.into())))
}
