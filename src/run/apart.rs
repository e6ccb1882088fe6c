//! What the clocks of two hosts let a run say.

use super::figures::RunSoFar;
use crate::record::schema::{Figure, OffsetCheck};
use crate::warning::Warning;

impl RunSoFar {
    /// The widest bound of the rounds between two hosts.
    pub(super) fn clock_bound(&self) -> Option<f64> {
        let bounds = self.rounds.iter().filter_map(|round| round.clock.as_ref());
        bounds.map(|clock| clock.bound_ns).reduce(f64::max)
    }

    /// What contradicts the clocks, each at its worst.
    fn clocks_disagree(&self) -> Vec<Warning> {
        let clocks: Vec<_> = self.rounds.iter().filter_map(|round| round.clock.as_ref()).collect();
        let sources = [
            ("the measured traffic", clocks.iter().filter_map(|clock| clock.traffic).collect()),
            ("the clock exchanges", clocks.iter().filter_map(|clock| clock.exchanged).collect()),
        ];
        let worst = sources.into_iter().map(|(by, checks): (&'static str, Vec<OffsetCheck>)| {
            (by, checks.iter().map(|check| check.beyond_ns).fold(0.0, f64::max))
        });
        let beyond = worst.filter(|(_, beyond_ns)| *beyond_ns > 0.0);
        beyond.map(|(by, beyond_ns)| Warning::ClocksDisagree { by, beyond_ns }).collect()
    }

    /// Drops figures below the clock-error bound.
    pub(super) fn leave_out_what_the_clocks_do_not_tell(&mut self, figures: &mut Vec<Figure>) {
        let steps = self.rounds.iter().filter_map(|round| round.clock.as_ref()).map(|c| c.steps);
        if let Some(steps) = steps.max().filter(|steps| *steps > 0) {
            self.warnings.push(Warning::ClockStepped { times: steps });
        }
        self.warnings.extend(self.clocks_disagree());
        figures.retain(|figure| {
            let Some(bound_ns) = figure.clock_bound_ns else { return true };
            let half = figure.summary.quantile(0.5);
            let p50_ns = half.and_then(|quantile| quantile.value).map_or(0.0, |value| value.0);
            let is_told = p50_ns > bound_ns;
            if !is_told {
                let metric = figure.metric.name();
                self.warnings.push(Warning::BelowClockBound { metric, bound_ns, p50_ns });
            }
            is_told
        });
    }
}
