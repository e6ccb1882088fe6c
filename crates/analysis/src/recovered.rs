//! The record of a run that was killed or ran out of disk, made from its saved rounds.

use super::counts::add;
use std::collections::BTreeMap;
use std::mem;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::RecordError;
use wiregauge_figures::record::journal::{Saved, SavedRound, not_restored};
use wiregauge_figures::record::schema::{Counts, Figure, Record, RecordedWarning, Run};
use wiregauge_sample::RoundSamples;
use wiregauge_stats::metric::durations;
use wiregauge_stats::rate::of_rounds;
use wiregauge_stats::{KnownError, Metric, summarize};

/// Durations of each metric, a vector a round.
pub type Series = BTreeMap<Metric, Vec<Vec<f64>>>;

/// Makes the record of what a run has saved. It is marked as incomplete. What only the end of a run
/// gives (figures of several runs together, the noise, the instrument's overhead) is missing.
pub fn record(
    saved: Saved,
    samples: impl Iterator<Item = Result<RoundSamples, RecordError>>,
) -> Result<Record, RecordError> {
    let Saved { mut record, rounds, damaged, restore } = saved;
    let series = series_of_runs(record.runs.len(), &rounds, samples)?;
    record.finished = rounds.last().map_or(String::new(), |saved| saved.at.clone());
    record.complete = false;
    record.faults.push(format!(
        "the run was killed or ran out of disk space; its record was recovered from {} saved \
         rounds",
        rounds.len()
    ));
    record.faults.extend(left_out(&record.runs, &damaged));
    record.faults.extend(restore.as_deref().map(not_restored));
    let planned = take_all(&mut record.runs, record.plan.rounds.least, rounds);
    let threshold_ns = record.plan.threshold.0 as f64;
    for ((run, series), planned) in record.runs.iter_mut().zip(&series).zip(planned) {
        if damaged.iter().any(|(number, _)| *number == run.index) {
            leave_out_of_rates(run);
        }
        if let Some(fault) = finish(run, series, threshold_ns, planned) {
            record.faults.push(fault);
        }
    }
    let record = super::warnings::under_quota(super::impact::completed(record));
    Ok(super::warnings::with_commands(record))
}

/// Most rounds that the sentence about damaged ones names.
const MAX_NAMED: usize = 8;

/// Says which rounds are left out since their samples changed, and in which runs; `None`: none is.
fn left_out(runs: &[Run], damaged: &[(u32, u32)]) -> Option<String> {
    let mut names = Vec::new();
    for (run, round) in damaged.iter().take(MAX_NAMED) {
        let label = runs.get(*run as usize).map_or("an unknown run", |run| &run.label);
        names.push(format!("round {round} of {label}"));
    }
    let more = match damaged.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| {
        format!(
            "the samples of {}{more} are not as they were written, since the disk or another \
             program changed them: these rounds are left out",
            names.join(", ")
        )
    })
}

/// Computes the rates of a run again, of the rounds that are left. Such a run is not complete.
fn leave_out_of_rates(run: &mut Run) {
    for figure in &mut run.rates {
        figure.rate = of_rounds(std::mem::take(&mut figure.rate.rounds));
    }
    run.complete = false;
    run.stopped = format!("{} rounds are left whose samples are whole", run.rounds.len());
}

/// The durations of so many runs, of the metrics that each round has.
pub fn series_of_runs(
    runs: usize,
    rounds: &[SavedRound],
    samples: impl Iterator<Item = Result<RoundSamples, RecordError>>,
) -> Result<Vec<Series>, RecordError> {
    let mut series = vec![Series::new(); runs];
    for samples in samples {
        let samples = samples?;
        let place = (samples.run, samples.round);
        let saved = rounds.iter().find(|saved| (saved.run, saved.round.index) == place);
        let Some(series) = series.get_mut(samples.run as usize) else { continue };
        for metric in saved.map_or(&[][..], |saved| &saved.metrics) {
            let series_of_round = durations(&samples, *metric);
            if !series_of_round.is_empty() {
                series.entry(*metric).or_default().push(series_of_round);
            }
        }
    }
    Ok(series)
}

/// Adds all rounds to their runs; how many each run needs. Until its first rounds have said that,
/// it needs the least.
pub fn take_all(runs: &mut [Run], least: u32, rounds: Vec<SavedRound>) -> Vec<u32> {
    let mut planned = vec![least; runs.len()];
    for saved in rounds {
        let number = saved.run as usize;
        if let Some((run, planned)) = runs.get_mut(number).zip(planned.get_mut(number)) {
            *planned = saved.enough.unwrap_or(*planned);
            take(run, saved);
        }
    }
    planned
}

/// Adds a round to its run, which is complete where this round was the last that it needed.
pub fn take(run: &mut Run, saved: SavedRound) {
    add(&mut run.counts, &saved.round.counts);
    run.rounds.push(saved.round);
    let known = mem::replace(&mut run.rates, saved.rates);
    for figure in &mut run.rates {
        // Each line has the values of the rounds that no line before has.
        let before = known.iter().find(|known| known.metric == figure.metric);
        let before = before.map_or(&[][..], |known| &known.rate.rounds);
        figure.rate.rounds.splice(..0, before.iter().copied());
    }
    for warning in saved.warnings {
        if !run.warnings.contains(&warning) {
            run.warnings.push(warning);
        }
    }
    let done = run.rounds.len();
    run.complete = saved.stopped.is_some();
    run.stopped =
        saved.stopped.unwrap_or_else(|| format!("the run ended early; {done} rounds were saved"));
}

/// Computes the figures of a run; why it has none.
pub fn finish(run: &mut Run, series: &Series, threshold_ns: f64, planned: u32) -> Option<String> {
    let done = run.rounds.len() as u32;
    if done == 0 {
        run.stopped = "the run ended early; 0 rounds were saved".into();
    }
    if run.counts == Counts::default() {
        return None;
    }
    if !run.complete && done < planned {
        let why = "the run ended early".to_owned();
        let incomplete = Warning::Incomplete { done, planned, why };
        run.warnings.push(RecordedWarning::from(&incomplete));
    }
    let unsaved: u64 = run.rounds.iter().map(|round| round.samples_in_histogram_only).sum();
    if unsaved > 0 {
        return Some(format!(
            "{}: no latencies, because {unsaved} samples were only in memory when the run ended",
            run.label
        ));
    }
    let bound_ns = run.widest_clock().map(|clock| clock.bound_ns);
    let figure = |(metric, series): (&Metric, &Vec<Vec<f64>>)| {
        let clock_bound_ns = bound_ns.filter(|_| metric.is_between_ends());
        let clock_ns = clock_bound_ns.unwrap_or(0.0);
        let known = KnownError { clock_ns, ..KnownError::default() };
        let summary = summarize(series, threshold_ns).with_known_error(known);
        let p50 = summary.quantile(0.5).and_then(|quantile| quantile.value);
        // As at the end of a run: a figure below its clock-error bound is dropped.
        let is_above = clock_bound_ns.is_none_or(|bound| p50.is_some_and(|p50| p50.0 > bound));
        let figure = Figure { metric: *metric, unit: "ns".into(), summary, clock_bound_ns };
        is_above.then_some(figure)
    };
    let mut figures: Vec<Figure> = series.iter().filter_map(figure).collect();
    // The one that answers the question first.
    figures.sort_by_key(|figure| figure.metric.name() != run.headline);
    run.figures = figures;
    None
}
