//! The rows that need the program itself as a process.

use super::simulate::{round_trips, run};
use super::{Fallible, Outcome};
use crate::agent::serve::RUN_ROLE;
use crate::control::frame;
use crate::control::protocol::{FromAgent, MAGIC, SECRET_VARIABLE, ToAgent, VERSION};
use crate::control::secret;
use crate::plan::Request;
use crate::record::schema::Metric;
use crate::sample::RoundSamples;
use crate::transport::TransportKind;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a refusal may take: it is immediate, and a hang is what the row is about.
const PATIENCE: Duration = Duration::from_secs(5);

fn this_program() -> Fallible<Command> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// The exit code, or a sentence where it did not end in time.
fn end_of(child: &mut Child) -> Fallible<i32> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().ok_or("killed by a signal")?);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The child is ours and was not waited for: its number cannot be another's.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("it hung for {} s", PATIENCE.as_secs()).into())
}

/// An unknown option: the exit code, and what it said.
fn unknown_option() -> Fallible<(i32, String)> {
    let mut child = this_program()?.args(["latency", "--no-such-option"]).spawn()?;
    let code = end_of(&mut child)?;
    Ok((code, std::io::read_to_string(child.stderr.take().ok_or("no standard error")?)?))
}

/// A greeting that an agent must refuse: the exit code, and what it answered.
fn greeting(version: u32, knows_secret: bool) -> Fallible<(i32, String)> {
    let known = secret::fresh()?;
    let shown = if knows_secret { known } else { secret::fresh()? };
    let mut command = this_program()?;
    let mut child = command.arg(RUN_ROLE).env(SECRET_VARIABLE, secret::to_hex(known)).spawn()?;
    let hello = ToAgent::Hello { magic: MAGIC, version, secret: shown };
    frame::write(child.stdin.as_mut().ok_or("no standard input")?, &hello)?;
    let code = end_of(&mut child)?;
    match frame::read(&mut child.stdout.take().ok_or("no standard output")?)? {
        FromAgent::Refused { sentence, .. } => Ok((code, sentence)),
        _ => Err("it was let in".into()),
    }
}

/// T15: what must be refused is refused, in a sentence, at once.
pub fn t15_refusals() -> Outcome {
    let refusals = [unknown_option()?, greeting(VERSION + 1, true)?, greeting(VERSION, false)?];
    let one_sentence = |text: &str| text.trim_end().lines().count() == 1;
    let passes = refusals.iter().all(|(code, said)| *code == 2 && one_sentence(said));
    let codes: Vec<String> = refusals.iter().map(|(code, _)| code.to_string()).collect();
    Ok(("2, 2, 2".into(), codes.join(", "), passes))
}

/// T16: the null transport against the instrument's own error.
pub fn t16_null() -> Outcome {
    let transports = vec![TransportKind::INSTRUMENT];
    let plan = Request { transports, rounds: Some(3), ..round_trips() }.plan()?;
    let record = run(&plan, &mut |_: &RoundSamples| Ok(()))?;
    let measured = record.runs.first().ok_or("no run")?;
    let p50 = measured.quantile(Metric::Rtt, 0.5).ok_or("no median")?.0;
    let error = record.instrument.error_ns;
    let measured = format!("p50 {p50:.1} ns, error {error:.1} ns");
    Ok(("0 ns".into(), measured, p50 <= error && error > 0.0))
}
