//! What stands beside all runs: the instrument's own error, the noise, what weakens them all.

use super::figures::RunSoFar;
use crate::host::{CpuPair, Environment, Noise};
use crate::record::schema::{Doubt as Doubtful, Instrument};
use crate::stats::doubt::NOISE_LIMIT;
use crate::stats::{Doubt, summarize};
use std::collections::BTreeMap;

/// What stands beside all runs.
pub struct Whole<'a> {
    pub cpus: Option<CpuPair>,
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
        let quantile = |p: f64| floor.quantiles.iter().find(|q| q.p == p).copied();
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
    pub fn noise(&self, runs: &[RunSoFar]) -> Vec<Noise> {
        let mut by_cpu: BTreeMap<u32, Noise> = BTreeMap::new();
        for noise in runs.iter().flat_map(|run| &run.noise) {
            by_cpu
                .entry(noise.cpu)
                .and_modify(|all| all.merge(noise))
                .or_insert_with(|| noise.clone());
        }
        by_cpu.into_values().collect()
    }

    /// What weakens the whole record.
    pub fn doubts(&self, noise: &[Noise]) -> Vec<Doubtful> {
        let mut doubts = Vec::new();
        let cpus: Vec<u32> =
            self.cpus.map(|pair| vec![pair.client, pair.server]).unwrap_or_default();
        if self.one_cpu {
            let cpu = cpus.first().copied().unwrap_or(0);
            let doubt = Doubt::OneCpu { cpu };
            doubts.push(Doubtful { kind: doubt.kind().into(), text: doubt.to_string() });
        }
        for concern in self.environment.concerns(&cpus) {
            doubts.push(Doubtful { kind: concern.kind.into(), text: concern.text });
        }
        for noise in noise.iter().filter(|noise| noise.observed_ns > 0.0) {
            let share = noise.lost_ns / noise.observed_ns;
            if share > NOISE_LIMIT {
                let doubt =
                    Doubt::NoisyCore { cpu: noise.cpu, share, longest_ns: noise.longest_ns };
                doubts.push(Doubtful { kind: doubt.kind().into(), text: doubt.to_string() });
            }
        }
        doubts
    }
}
