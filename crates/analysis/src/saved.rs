//! What the journal has of a run while its rounds come in.

use crate::figures::method_notes;
use crate::pattern::RunSoFar;
use std::mem;
use wiregauge_base::wall_clock;
use wiregauge_figures::record::journal::SavedRound;
use wiregauge_figures::record::schema::{CaseRecord, Counts, RateFigure, RecordedWarning, Run};
use wiregauge_plan::Plan;
use wiregauge_stats::RateMetric;

impl RunSoFar {
    /// The run without rounds.
    pub fn without_rounds(&self, plan: &Plan) -> Run {
        let headline = match self.analysis.is_rate() {
            true => self.analysis.rates(&self.case).first().copied().map(RateMetric::name),
            false => self.analysis.metrics(&self.case).first().map(|metric| metric.name()),
        };
        Run {
            index: self.index as u32,
            label: plan.label(self.index),
            case: CaseRecord::from(&self.case),
            headline: headline.unwrap_or_default().to_string(),
            complete: false,
            stopped: String::new(),
            rounds: Vec::new(),
            figures: Vec::new(),
            rates: Vec::new(),
            details: None,
            counts: Counts::default(),
            stalls: Vec::new(),
            client_hosts: Vec::new(),
            included: method_notes(&self.case, self.analysis),
            warnings: Vec::new(),
        }
    }

    /// Its last round, and what it shows so far; `None`: it has none. To be saved once.
    pub fn saved(&mut self, clock_fault: Option<String>) -> Option<SavedRound> {
        let round = self.rounds.last()?.clone();
        let metrics = self.analysis.metrics(&self.case).into_iter();
        let has_rates = !self.analysis.rates(&self.case).is_empty();
        let mut rates = if has_rates { self.analysis.rate_figures(self) } else { Vec::new() };
        // JSON has no other numbers, and one of these would make the line unreadable.
        rates.retain(|figure| figure.rate.rounds.iter().all(|rate| rate.is_finite()));
        for RateFigure { metric, rate, .. } in &mut rates {
            let known = self.in_journal.rates.entry(*metric).or_default();
            let all = rate.rounds.len();
            rate.rounds.drain(..all.min(mem::replace(known, all)));
        }
        let known = mem::replace(&mut self.in_journal.warnings, self.warnings.len());
        let new = self.warnings.get(known..).unwrap_or_default();
        Some(SavedRound {
            run: self.index as u32,
            round,
            at: wall_clock::now().to_string(),
            metrics: metrics.filter(|metric| self.series.contains_key(metric)).collect(),
            rates,
            warnings: RecordedWarning::each_once(new),
            clock_fault,
            enough: self.enough,
            stopped: self.stop.as_ref().and_then(|stop| stop.as_ref().ok()).cloned(),
        })
    }
}
