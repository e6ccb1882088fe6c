//! What series have beside the options of their cases: two sides that are compared in turns, and
//! series of a study that a command prepares.

use super::RunContext;
use super::conditions::Conditions;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wiregauge_figures::record::schema::Run;
use wiregauge_host::child::{self, Exit};
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Plan;

/// Longest time that a command may take to prepare a round: to load a kernel module or restart a
/// service, not to wait for a person.
const PREPARED: Duration = Duration::from_secs(60);

/// What each series of a plan has, in the order of its series; empty: nothing.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// Of each series.
    pub each: Vec<RunSide>,
    /// Whether the first two are compared in turns (A B B A).
    pub in_turns: bool,
}

/// What a series has.
#[derive(Clone, Debug, Default)]
pub struct RunSide {
    /// A shell command that runs before each of its rounds.
    pub prepare: Option<String>,
    /// The program of its agents on this host; `None`: this one.
    pub program: Option<PathBuf>,
}

impl RunContext<'_> {
    /// The side of a case: that of its series.
    pub(super) fn side_of(&self, plan: &Plan, case: usize) -> Option<&RunSide> {
        let study = plan.study.as_ref()?;
        let of_case = study.series.iter().position(|one| one.cases.contains(&(case as u32)))?;
        self.sides.each.get(of_case)
    }
}

impl RunSide {
    /// Runs its command to the end. What it prints goes to stderr: stdout is that of the record.
    ///
    /// # Errors
    /// It fails, takes too long, or the user interrupts it.
    pub fn prepare(&self, interrupted: &AtomicBool) -> Result<(), Fault> {
        let Some(text) = &self.prepare else { return Ok(()) };
        let failed =
            |why: String| Fault::new(format!("the command before its rounds ({text}) {why}"));
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdin(Stdio::null()).stdout(std::io::stderr());
        let mut child = child::OwnedChild(
            child::ends_with_us(&mut command)
                .spawn()
                .map_err(|error| failed(format!("did not start: {}", child::with_limit(error))))?,
        );
        let is_left = || interrupted.load(Ordering::Relaxed);
        match child::wait(&mut child.0, PREPARED, is_left) {
            Ok(Exit::Done(status)) if status.success() => Ok(()),
            Ok(Exit::Done(status)) => Err(failed(format!("failed: {status}"))),
            Ok(Exit::Killed(_)) if is_left() => Err(Fault::Interrupted),
            Ok(Exit::Killed(_)) => Err(failed(format!("took more than {} s", PREPARED.as_secs()))),
            Err(error) => Err(failed(format!("was lost: {error}"))),
        }
    }
}

/// Notes beside the figures of runs what their sides have had.
pub(super) fn noted(
    conditions: &Conditions<'_>,
    plan: &Plan,
    runs: impl Iterator<Item = Run>,
) -> Vec<Run> {
    let mut runs: Vec<Run> = runs.collect();
    for (number, run) in runs.iter_mut().enumerate() {
        let Some(side) = conditions.context.side_of(plan, number) else { continue };
        let program = side.program.as_ref().map(|path| path.display().to_string());
        let identity = side.program.as_ref().and_then(|path| conditions.programs.identity_of(path));
        let hash = identity.map(|identity| identity.sha256);
        let notes = [
            ("prepared by", side.prepare.clone()),
            ("program", program),
            ("SHA-256 of the program", hash),
        ];
        let notes = notes.into_iter().filter_map(|(name, note)| Some((name.to_owned(), note?)));
        run.included.extend(notes);
    }
    runs
}
