//! The rows that need the program itself as a process.

use super::Row;
use super::simulate::round_trips;
use crate::agent::serve::PLAY;
use crate::control::frame;
use crate::control::protocol::{FromAgent, MAGIC, SECRET_VARIABLE, ToAgent, VERSION};
use crate::control::secret;
use crate::pattern::registry;
use crate::plan::Request;
use crate::record::schema::Metric;
use crate::run::{RunContext, Silent, run};
use crate::transport::TransportKind;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a refusal may take: it is immediate, and a hang is what the row is about.
const PATIENCE: Duration = Duration::from_secs(5);

fn this_program() -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// The exit code, or a sentence where it did not end in time.
fn end_of(child: &mut Child) -> Result<i32, String> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return status.code().ok_or_else(|| "killed by a signal".to_string());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The child is ours and was not waited for: its number cannot be another's.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("it hung for {} s", PATIENCE.as_secs()))
}

/// An unknown option: the exit code, and what it said.
fn unknown_option() -> Result<(i32, String), String> {
    let mut child =
        this_program()?.args(["latency", "--no-such-option"]).spawn().map_err(|e| e.to_string())?;
    let code = end_of(&mut child)?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said).map_err(|error| error.to_string())?;
    }
    Ok((code, said))
}

/// A greeting that an agent must refuse: the exit code, and what it answered.
fn greeting(version: u32, knows_secret: bool) -> Result<(i32, String), String> {
    let known = secret::fresh()?;
    let shown = if knows_secret { known } else { secret::fresh()? };
    let mut child = this_program()?
        .arg(PLAY)
        .env(SECRET_VARIABLE, secret::to_hex(&known))
        .spawn()
        .map_err(|error| error.to_string())?;
    let hello = ToAgent::Hello { magic: MAGIC, version, secret: shown };
    if let Some(input) = &mut child.stdin {
        frame::write(input, &hello).map_err(|error| error.to_string())?;
    }
    let code = end_of(&mut child)?;
    let answer = match child.stdout.take() {
        Some(mut output) => frame::read::<FromAgent>(&mut output).map_err(|e| e.to_string())?,
        None => return Err("no answer".into()),
    };
    match answer {
        FromAgent::Refused { sentence, .. } => Ok((code, sentence)),
        _ => Err("it was let in".into()),
    }
}

/// T15: what must be refused is refused, in a sentence, at once.
pub fn t15_refusals() -> Row {
    let what = (
        "T15",
        "other version, wrong secret, unknown option",
        "one plain sentence, no hang, exit code 2",
    );
    let done = || -> Result<Row, String> {
        let refusals = [unknown_option()?, greeting(VERSION + 1, true)?, greeting(VERSION, false)?];
        let one_sentence = |text: &str| text.trim_end().lines().count() == 1;
        let passes = refusals.iter().all(|(code, said)| *code == 2 && one_sentence(said));
        let codes: Vec<String> = refusals.iter().map(|(code, _)| code.to_string()).collect();
        Ok(Row::new(what, "2, 2, 2", codes.join(", "), passes))
    };
    done().unwrap_or_else(|why| Row::broken(what, why))
}

/// T16: the null transport against the instrument's own error.
pub fn t16_null() -> Row {
    let what = ("T16", "null transport, real clock", "latency <= printed instrument error");
    let done = || -> Result<Row, String> {
        let transports = vec![TransportKind::instrument()];
        let request = Request { transports, rounds: Some(3), ..round_trips() };
        let plan = request.plan().map_err(|refusal| refusal.to_string())?;
        let interrupted = AtomicBool::new(false);
        let stage = RunContext {
            program: std::env::current_exe().map_err(|error| error.to_string())?,
            command: vec!["wiregauge".into(), "selftest".into()],
            clock: None,
            interrupted: &interrupted,
            hosts: &[],
            unavailable: Vec::new(),
            patterns: registry::FOR_RUNS,
        };
        let record =
            run(&plan, &stage, &mut |_| Ok(()), &mut Silent).map_err(|error| error.to_string())?;
        let run = record.runs.first().ok_or("no run")?;
        let p50 = run.quantile(Metric::Rtt, 0.5).ok_or("no median")?.0;
        let error = record.instrument.error_ns;
        let measured = format!("p50 {p50:.1} ns, error {error:.1} ns");
        Ok(Row::new(what, "0 ns", measured, p50 <= error && error > 0.0))
    };
    done().unwrap_or_else(|why| Row::broken(what, why))
}
