//! CPUs watched together over a time, and nothing else (`noise --together`).

use super::{RunContext, RunError, clocks, summary};
use std::sync::atomic::Ordering;
use wiregauge_base::units::Span;
use wiregauge_base::wall_clock::Started;
use wiregauge_figures::record::schema::Record;
use wiregauge_host::{Environment, together};
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Plan;

/// Watches CPUs for a time, or until the user interrupts it. The plan has no cases.
///
/// # Errors
/// The clock is not calibrated, or no CPU can be watched.
pub fn watch(
    plan: &Plan,
    context: &RunContext<'_>,
    cpus: &[u32],
    length: Span,
    progress: impl FnMut(f64),
) -> Result<Record, RunError> {
    let started = Started::now();
    let time = clocks::calibrated(plan, context)?;
    let environment = Environment::read(cpus);
    let watched = together::observe(cpus, &time, length.0 as f64, context.interrupted, progress);
    let (found, noise) = watched.map_err(Fault::new)?;
    let interrupted = context.interrupted.load(Ordering::Relaxed);
    let base = summary::record(plan, context, &time, &environment, started);
    Ok(Record {
        complete: !interrupted,
        faults: interrupted.then(|| Fault::Interrupted.to_string()).into_iter().collect(),
        warnings: summary::warnings_of_noise(&noise).chain(base.warnings).collect(),
        noise,
        together: Some(Box::new(found)),
        ..base
    })
}
