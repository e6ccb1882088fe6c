//! Which samples are exported.

use super::rows::{Observable, Observer, Row, RunContext};
use super::table::Rows;
use super::{ExportError, Format};
use std::collections::BTreeMap;
use std::path::Path;
use wiregauge_base::options::{Named, each_once};
use wiregauge_figures::record::SampleReader;
use wiregauge_figures::record::directory::SAMPLES_FILE;
use wiregauge_figures::record::schema::{Record, Run};
use wiregauge_sample::{Flags, RoundSamples, Sample};

/// Which samples are exported, and what a row of a table is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Numbers of the runs; all where empty.
    pub runs: Vec<u32>,
    /// Numbers of the rounds; all where empty.
    pub rounds: Vec<u32>,
    /// What is observed; where empty, the main metric of each run.
    pub observables: Vec<Observable>,
    /// Includes the warm-up, of which no figure is made.
    pub with_warmup: bool,
    /// What the rows of a table are.
    pub rows: Rows,
    /// Of a trace: only so many messages around the slowest.
    pub around: Option<u64>,
}

impl Selection {
    /// Refuses what the format does not take.
    pub(super) fn check_format(&self, format: Format) -> Result<(), ExportError> {
        let is_table = matches!(format, Format::Csv | Format::Json | Format::Parquet);
        let has_samples = format != Format::Openmetrics;
        let given = [
            ("stamps", self.rows == Rows::Stamps, is_table, "csv, json or parquet"),
            ("around", self.around.is_some(), format == Format::Trace, "trace"),
            ("metric", !self.observables.is_empty(), has_samples, "another format"),
            ("round", !self.rounds.is_empty(), has_samples, "another format"),
            ("with-warmup", self.with_warmup, has_samples, "another format"),
        ];
        let wrong = given.into_iter().find(|(_, is_given, is_taken, _)| *is_given && !is_taken);
        let Some((option, _, _, of)) = wrong else { return Ok(()) };
        let format = format.name();
        Err(ExportError::Selection(format!("{format} does not support --{option}: use {of}")))
    }

    /// The same with all metrics, where none is named.
    pub(super) fn of_all_metrics(&self) -> Selection {
        let observables = match self.observables.is_empty() {
            true => Observable::ALL.to_vec(),
            false => self.observables.clone(),
        };
        Selection { observables, ..self.clone() }
    }

    /// Refuses what the record does not have, or the format does not show of it.
    pub(super) fn check(
        &self,
        dir: &Path,
        record: &Record,
        format: Format,
    ) -> Result<(), ExportError> {
        let dir = dir.display();
        let refuse = |what: String, there: &[u32]| {
            let allowed = match (there.iter().min(), there.iter().max()) {
                (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
                (Some(only), _) => only.to_string(),
                _ => "another record: this one has none".to_owned(),
            };
            Err(ExportError::Selection(format!("{what}: use {allowed}")))
        };
        let runs: Vec<u32> = record.runs.iter().map(|run| run.index).collect();
        if let Some(run) = self.runs.iter().find(|run| !runs.contains(run)) {
            return refuse(format!("run {run} is not in {dir}"), &runs);
        }
        let chosen = || record.runs.iter().filter(|run| self.has_run(run.index));
        let rounds = each_once(chosen().flat_map(|run| &run.rounds).map(|round| round.index));
        if let Some(round) = self.rounds.iter().find(|round| !rounds.contains(round)) {
            return refuse(format!("round {round} is not in the runs of {dir}"), &rounds);
        }
        self.check_observables(chosen(), format)
    }

    fn check_observables<'a>(
        &self,
        runs: impl Iterator<Item = &'a Run>,
        format: Format,
    ) -> Result<(), ExportError> {
        let all = runs.flat_map(|run| RunContext::new(run).observables);
        let all: Vec<Observable> = each_once(all);
        let is_shown = |one: &Observable| format != Format::Trace || one.is_span();
        let is_wrong = |one: &&Observable| !all.contains(one) || !is_shown(one);
        let Some(wrong) = self.observables.iter().find(is_wrong) else {
            return Ok(());
        };
        let names = all.iter().filter(|one| is_shown(one)).map(|one| one.name());
        let (name, names) = (wrong.name(), names.collect::<Vec<_>>().join(", "));
        let what = match all.contains(wrong) {
            true => format!("a trace cannot show {name}, which is not a span of time"),
            false => format!("no selected run has the metric {name}"),
        };
        Err(ExportError::Selection(format!("{what}: use {names}")))
    }

    pub(super) fn has_run(&self, run: u32) -> bool {
        self.runs.is_empty() || self.runs.contains(&run)
    }

    /// Whether a message is left in: it is none of a warm-up that is left out.
    pub(super) fn leaves_in(&self, sample: &Sample) -> bool {
        self.with_warmup || !sample.flags.has(Flags::WARMUP)
    }

    pub(super) fn has_round(&self, round: u32) -> bool {
        self.rounds.is_empty() || self.rounds.contains(&round)
    }

    /// The selected samples of a run directory.
    pub(super) fn open(&self, dir: &Path, record: &Record) -> Result<Selected<'_>, ExportError> {
        Ok(Selected {
            reader: SampleReader::open(&dir.join(SAMPLES_FILE))?,
            contexts: RunContext::of_record(record),
            selection: self,
        })
    }
}

/// Selected samples, to be read once.
pub(super) struct Selected<'a> {
    reader: SampleReader,
    contexts: BTreeMap<u32, RunContext>,
    selection: &'a Selection,
}

impl<'a> Selected<'a> {
    /// What selects them.
    pub fn selection(&self) -> &'a Selection {
        self.selection
    }

    /// Hands over each selected part of a round: at most a row group.
    pub fn each_part(
        &mut self,
        mut take: impl FnMut(&RoundSamples) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        while let Some(part) = self.reader.next_part() {
            let part = part?;
            if self.selection.has_run(part.run) && self.selection.has_round(part.round) {
                take(&part)?;
            }
        }
        Ok(())
    }

    /// Hands over the rows of each part, of each metric apart.
    pub fn each(
        mut self,
        mut take: impl FnMut(&[Row<'_>]) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let contexts = std::mem::take(&mut self.contexts);
        let mut observers = BTreeMap::new();
        let selection = self.selection;
        self.each_part(|part| {
            let Some(context) = contexts.get(&part.run) else { return Ok(()) };
            for mut rows in selection.tables(context, part, &mut observers) {
                rows.retain(|row| selection.leaves_in(row.sample));
                take(&rows)?;
            }
            Ok(())
        })
    }
}

impl Selection {
    /// The rows of a part, of each metric apart.
    fn tables<'a>(
        &self,
        context: &'a RunContext,
        part: &'a RoundSamples,
        observers: &'a mut BTreeMap<Observable, Observer>,
    ) -> impl Iterator<Item = Vec<Row<'a>>> {
        let observables = match self.rows {
            Rows::Stamps => vec![None],
            Rows::Values => {
                context.chosen(&self.observables).into_iter().map(Some).collect::<Vec<_>>()
            }
        };
        observables.into_iter().map(|observable| match observable {
            None => part.samples.iter().map(|s| Row::of_stamps(context, part.round, s)).collect(),
            Some(one) => {
                let observer = observers.entry(one).or_insert_with(|| Observer::new(one));
                observer.rows(context, part)
            }
        })
    }
}
