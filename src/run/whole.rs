//! What stands beside all runs: the instrument's own error, the noise, what weakens them all.

use super::figures::RunSoFar;
use crate::host::{Environment, Noise, interface_with};
use crate::record::schema::{Instrument, OtherHost, RecordedWarning};
use crate::stats::summarize;
use crate::warning::Warning;
use std::collections::BTreeMap;

/// A core that loses more than this share of its time to gaps is noisy.
const NOISE_LIMIT: f64 = 0.01;

/// What stands beside all runs.
pub struct Whole<'a> {
    /// The measuring CPUs of this host.
    pub cpus: Vec<u32>,
    pub one_cpu: bool,
    pub environment: &'a Environment,
    pub resolution_ns: f64,
}

impl Whole<'_> {
    /// The instrument's floor, from the null rounds that stood before every round.
    pub fn instrument(&self, runs: &[RunSoFar]) -> Instrument {
        let floor: Vec<&Vec<f64>> =
            runs.iter().flat_map(|run| &run.floor).filter(|floor| !floor.is_empty()).collect();
        let floor = summarize(&floor, f64::INFINITY);
        let quantile = |p: f64| floor.quantile(p).copied();
        let value = |p: f64| quantile(p).and_then(|q| q.value).map_or(f64::NAN, |value| value.0);
        let upper = quantile(0.99)
            .and_then(|q| q.interval)
            .map_or(value(0.99), |interval| interval.high.0.min(floor.max_finite.0));
        let mut recording: Vec<f64> =
            runs.iter().flat_map(|run| run.recording_ns.clone()).collect();
        recording.sort_by(f64::total_cmp);
        Instrument {
            floor_p50_ns: value(0.5),
            floor_p99_ns: value(0.99),
            count: floor.count,
            error_ns: upper + self.resolution_ns,
            recording_ns: recording.get(recording.len() / 2).copied().unwrap_or(f64::NAN),
        }
    }

    /// The noise of each measuring CPU, over all rounds.
    pub fn noise<'a>(&self, seen: impl Iterator<Item = &'a Noise>) -> Vec<Noise> {
        let mut by_cpu: BTreeMap<u32, Noise> = BTreeMap::new();
        for noise in seen {
            by_cpu
                .entry(noise.cpu)
                .and_modify(|all| all.merge(noise))
                .or_insert_with(|| noise.clone());
        }
        by_cpu.into_values().collect()
    }

    /// What weakens the whole record.
    pub fn warnings(&self, noise: &[Noise]) -> Vec<RecordedWarning> {
        let cpu = self.cpus.first().copied().unwrap_or(0);
        let mut found: Vec<Warning> =
            self.one_cpu.then_some(Warning::OneCpu { cpu }).into_iter().collect();
        found.extend(self.environment.warnings(&self.cpus));
        found.extend(noisy(noise));
        recorded(&found)
    }
}

/// As they stand in the record: each once.
pub fn recorded(warnings: &[Warning]) -> Vec<RecordedWarning> {
    let mut all: Vec<RecordedWarning> = Vec::new();
    for warning in warnings.iter().map(RecordedWarning::from) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    all
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
