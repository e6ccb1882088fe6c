//! What stands beside all runs: the instrument's own error, the noise, what weakens them all.

use super::RunContext;
use super::analysis::RunSoFar;
use crate::clock::ChosenClock;
use crate::host::{Environment, Noise, interface_with};
use crate::plan::Plan;
use crate::record::schema::{
    Instrument, OtherHost, PlanRecord, Record, RecordedWarning, SCHEMA, VERSION,
};
use crate::stats::summarize;
use crate::warning::Warning;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A core that loses more than this share of its time to gaps is noisy.
const NOISE_LIMIT: f64 = 0.01;

/// A record without runs. The clock is calibrated over the time until now.
pub fn record(
    plan: &Plan,
    context: &RunContext<'_>,
    time: &ChosenClock,
    environment: &Environment,
    started: Timestamp,
) -> Record {
    let injected = plan.injected_clock_error.map(|_| (&Warning::InjectedClockError).into());
    Record {
        schema: SCHEMA.into(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").into(),
        command: context.command.clone(),
        started: started.to_string(),
        finished: Timestamp::now().to_string(),
        complete: true,
        faults: Vec::new(),
        plan: PlanRecord::from(plan),
        clock: time.report_over_run(),
        instrument: instrument(&[], time),
        noise: Vec::new(),
        runs: Vec::new(),
        unavailable: Vec::new(),
        warnings: injected.into_iter().collect(),
        environment: environment.clone(),
        hosts: Vec::new(),
        pairs: None,
        clocks: Vec::new(),
        samples: None,
    }
}

/// The instrument's overhead, from the null rounds that stood before every round.
pub fn instrument(runs: &[RunSoFar], time: &ChosenClock) -> Instrument {
    let overhead: Vec<&Vec<f64>> =
        runs.iter().flat_map(|run| &run.overhead).filter(|overhead| !overhead.is_empty()).collect();
    let overhead = summarize(&overhead, f64::INFINITY);
    let quantile = |p: f64| overhead.quantile(p).copied();
    let value = |p: f64| quantile(p).and_then(|q| q.value).map_or(f64::NAN, |value| value.0);
    let upper = quantile(0.99)
        .and_then(|q| q.interval)
        .map_or(value(0.99), |interval| interval.high.0.min(overhead.max_finite.0));
    let mut recording: Vec<f64> = runs.iter().flat_map(|run| run.recording_ns.clone()).collect();
    recording.sort_by(f64::total_cmp);
    Instrument {
        overhead_p50_ns: value(0.5),
        overhead_p99_ns: value(0.99),
        count: overhead.count,
        error_ns: upper + time.report.resolution_ns,
        recording_ns: recording.get(recording.len() / 2).copied().unwrap_or(f64::NAN),
    }
}

/// The noise of each measuring CPU, over all rounds.
pub fn noise<'a>(seen: impl Iterator<Item = &'a Noise>) -> Vec<Noise> {
    let mut by_cpu: BTreeMap<u32, Noise> = BTreeMap::new();
    for noise in seen {
        by_cpu.entry(noise.cpu).and_modify(|all| all.merge(noise)).or_insert_with(|| noise.clone());
    }
    by_cpu.into_values().collect()
}

/// What weakens the whole record; `cpus` are the measuring ones of this host.
pub fn warnings(
    cpus: &[u32],
    one_cpu: bool,
    environment: &Environment,
    noise: &[Noise],
) -> Vec<RecordedWarning> {
    let cpu = cpus.first().copied().unwrap_or(0);
    let mut found: Vec<Warning> = one_cpu.then_some(Warning::OneCpu { cpu }).into_iter().collect();
    found.extend(environment.warnings(cpus));
    found.extend(noisy(noise));
    RecordedWarning::each_once(&found)
}

/// Cores that lose too much of their time.
fn noisy(noise: &[Noise]) -> impl Iterator<Item = Warning> {
    let observed = noise.iter().filter(|noise| noise.observed_ns > 0.0);
    observed.filter_map(|noise| {
        let share = noise.lost_ns / noise.observed_ns;
        let warning = Warning::NoisyCore { cpu: noise.cpu, share, longest_ns: noise.longest_ns };
        (share > NOISE_LIMIT).then_some(warning)
    })
}

/// What weakens the record at the other host, and whether it is another one at all.
pub fn warnings_there(host: &OtherHost) -> Vec<RecordedWarning> {
    let cpus: Vec<u32> = host.environment.cpus.iter().map(|state| state.cpu).collect();
    let found = host.environment.warnings(&cpus).into_iter().chain(noisy(&host.noise));
    let on_it = |warning: Warning| RecordedWarning::on_host(&warning, &host.name);
    let mut warnings: Vec<RecordedWarning> = found.map(on_it).collect();
    let address = host.address.as_ref().and_then(|address| address.parse().ok());
    if let Some(interface) = address.and_then(interface_with) {
        warnings.push((&Warning::NotOnTheWire { interface: interface.name }).into());
    }
    warnings
}
