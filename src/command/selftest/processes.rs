//! The rows that need the program itself as a process.

use super::simulate::{round_trips, run};
use super::{Fallible, Outcome};
use crate::agent::rehearse;
use crate::agent::serve::RUN_ROLE;
use crate::clock::{ChosenClock, Clock, KernelClock};
use crate::control::frame;
use crate::control::protocol::{FromAgent, MAGIC, SECRET_VARIABLE, ToAgent, VERSION};
use crate::control::secret;
use crate::loops::Loop;
use crate::plan::{Case, Request};
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
    let hello = ToAgent::Hello { magic: MAGIC, version, secret: shown, asks_program: false };
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

/// T16: the null transport against the instrument's own error, and that against the kernel's clock:
/// of the time that the loop takes for a message, what it measures is a part, and not a small one.
pub fn t16_null() -> Outcome {
    let transports = vec![TransportKind::INSTRUMENT];
    let plan = Request { transports, rounds: Some(3), ..round_trips() }.plan()?;
    let case = plan.cases.first().ok_or("no case")?;
    let record = run(&plan, &mut |_: &RoundSamples| Ok(()))?;
    let measured = record.runs.first().ok_or("no run")?;
    let p50 = measured.quantile(Metric::Rtt, 0.5).ok_or("no median")?.0;
    let (error, overhead) = (record.instrument.error_ns, record.instrument.overhead_p50_ns);
    // An interruption between two messages lengthens the whole alone: the shortest of several.
    let looks = (0..ATTEMPTS).map(|_| by_the_kernel(case)).collect::<Fallible<Vec<_>>>()?;
    let (seen, all) =
        looks.into_iter().reduce(|a, b| if b.1 < a.1 { b } else { a }).ok_or("no attempt")?;
    let is_part = seen <= all * 1.01 && (LEAST_PART..=1.0).contains(&(overhead / all));
    let measured =
        format!("p50 {p50:.1} ns, error {error:.1} ns; {overhead:.1} of {all:.1} ns a message");
    Ok(("0 ns".into(), measured, p50 <= error && error > 0.0 && is_part))
}

/// Of the time that the null loop takes for a message, the least that it measures.
const LEAST_PART: f64 = 0.05;
const ATTEMPTS: u32 = 5;
const MESSAGES: u32 = 20_000;

/// The null loop's mean for a message, by the instrument and by the kernel's clock around it, ns.
fn by_the_kernel(case: &Case) -> Fallible<(f64, f64)> {
    let chosen = ChosenClock::calibrate(None)?;
    let plan = Loop::new(case, |span| chosen.base.ticks_for(span.0 as f64));
    let begin = KernelClock::MONOTONIC.now();
    let seen = rehearse::instrument(chosen.source.clock(), &plan, MESSAGES);
    let all = (KernelClock::MONOTONIC.now() - begin).0 as f64;
    let ticks: f64 = seen.overhead.iter().copied().map(f64::from).sum();
    Ok((ticks * chosen.base.ns_per_tick / f64::from(MESSAGES), all / f64::from(MESSAGES)))
}
