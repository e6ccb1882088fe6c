//! Where a run stores its samples and rounds while it is measured.

use super::analysis::RunSoFar;
use super::figures::method_notes;
use crate::plan::Plan;
use crate::record::journal::SavedRound;
use crate::record::schema::{CaseRecord, Counts, RateFigure, Record, RecordedWarning, Run};
use crate::record::{RecordError, Writer};
use crate::sample::RoundSamples;
use crate::stats::RateMetric;
use std::mem;
use std::path::PathBuf;

/// Takes what a run leaves, as it comes: the samples of a round, then the round.
pub trait Keeper {
    /// The record without rounds, before the first and when cases have been added.
    fn begin(&mut self, _record: &Record) -> Result<(), RecordError> {
        Ok(())
    }

    /// The samples of a round.
    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError>;

    /// The round that these samples are of.
    fn round(&mut self, _round: &SavedRound) -> Result<(), RecordError> {
        Ok(())
    }

    /// Takes note that the clock of all rounds is not to be believed; where they lie, if they do.
    fn refuse_clock(&mut self, _why: &str) -> Option<PathBuf> {
        None
    }
}

/// Takes samples alone.
impl<F: FnMut(&RoundSamples) -> Result<(), RecordError>> Keeper for F {
    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError> {
        self(samples)
    }
}

/// Keeps all in a run directory; `None`: keeps nothing.
impl Keeper for Option<Writer> {
    fn begin(&mut self, record: &Record) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.begin(record))
    }

    fn samples(&mut self, samples: &RoundSamples) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.append(samples))
    }

    fn round(&mut self, round: &SavedRound) -> Result<(), RecordError> {
        self.as_mut().map_or(Ok(()), |writer| writer.save(round))
    }

    fn refuse_clock(&mut self, why: &str) -> Option<PathBuf> {
        self.as_mut()?.refuse_clock(why)
    }
}

impl RunSoFar {
    /// The run without rounds.
    pub(super) fn without_rounds(&self, plan: &Plan) -> Run {
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
    pub(super) fn saved(&mut self, clock_fault: Option<String>) -> Option<SavedRound> {
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
            at: jiff::Timestamp::now().to_string(),
            metrics: metrics.filter(|metric| self.series.contains_key(metric)).collect(),
            rates,
            warnings: RecordedWarning::each_once(new),
            clock_fault,
            enough: self.enough,
            stopped: self.stop.as_ref().and_then(|stop| stop.as_ref().ok()).cloned(),
        })
    }
}
