//! Runs of `stream`: what became of their steps.

use super::{Spec, Stream};
use crate::prelude::*;
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{ends_of, told_apart};
use wiregauge_figures::view::number::PERCENT;

type Steps<'a> = (&'a Run, Spec);

/// Returns the share of a stream's steps that were missed or lost.
fn gone(counts: &Counts) -> f64 {
    let steps = (counts.sent + counts.missed_steps).max(1);
    (counts.missed_steps + counts.lost) as f64 / steps as f64
}

impl PatternView for Stream {
    /// Says how many steps a stream missed or lost; of several, which one most.
    fn answer(&self, record: &Record) -> Vec<String> {
        let runs = record.runs.iter().filter(|run| run.case.spec::<Spec>("stream").is_some());
        let runs: Vec<&Run> = runs.collect();
        let names = told_apart(&runs, ends_of);
        let worst = runs
            .iter()
            .zip(&names)
            .max_by(|(a, _), (b, _)| gone(&a.counts).total_cmp(&gone(&b.counts)));
        let Some((run, name)) = worst else { return Vec::new() };
        let Counts { sent, missed_steps, lost, .. } = run.counts;
        let steps = sent + missed_steps;
        let what = format!("of {steps} steps, {missed_steps} were missed and {lost} lost");
        match runs.len() {
            1 => vec![format!("{name}: {what}.")],
            all if gone(&run.counts) == 0.0 => {
                vec![format!("None of {all} streams missed or lost a step.")]
            }
            all => vec![format!("{name} is the worst of {all} streams: {what}.")],
        }
    }

    fn section(&self, record: &Record) -> Option<Section> {
        let runs = record.runs.iter().filter_map(|run| Some((run, run.case.spec("stream")?)));
        let rate = |metric, scale| move |row: &Steps<'_>| Cell::rate(Some(row.0), metric, scale);
        let count = |of: fn(&Counts) -> u64| move |row: &Steps<'_>| Cell::Count(of(&row.0.counts));
        let speed = byte_rate::or(ByteRateUnit::Megabytes);
        let fields = [
            number("values", "", |row: &Steps<'_>| Cell::Count(row.1.values.into())),
            number("steps/s", "", |row: &Steps<'_>| {
                let rate = row.0.case.schedule.rate().map_or(0.0, |rate| rate.0);
                Cell::Count(rate.round() as u64)
            }),
            number("missed", "", count(|counts| counts.missed_steps)),
            figure("missed %", "", rate(RateMetric::Missed, PERCENT)),
            number("lost", "", |row: &Steps<'_>| Cell::lost(row.0.counts.lost)),
            number("before the first", "", count(|counts| counts.lost_before_first)),
            number("gaps", "", count(|counts| counts.gaps)),
            number("reordered", "", count(|counts| counts.reordered)),
            figure("ceiling", speed.name(), rate(RateMetric::Ceiling, speed.factor())),
        ];
        let table = Table::of(runs, own(record).into_iter().chain(ends()).chain(fields))?;
        let table = table.caption(Note::new("Steps of the streams", Show::Page));
        let results = vec![Table { id: "stream-table".into(), ..table }];
        Some(Section { results, ..Section::new("stream", "Streams") })
    }
}
