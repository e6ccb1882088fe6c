//! An HdrHistogram interval log, version 1.3, as jHiccup writes and HistogramLogAnalyzer,
//! HistogramLogProcessor and the readers of other languages read: one interval for each round and
//! metric, with a tag for each run and metric.
//!
//! EXECUTIVE SUMMARY: a value read from it is within 0.5 ns plus 0.1 % of a sample.
//!
//! DETAILS: those tools take values for whole nanoseconds, so a sample is rounded to the nearest.
//! Three significant digits keep each bin narrower than 1/1000 of its values; all tools print the
//! highest value that a bin stands for. A histogram has no infinity: a message that never arrived
//! counts as [`NEVER_NS`], which no message takes, so that it is in each quantile and in the
//! maximum.

use super::ExportError;
use super::rows::{Row, RunContext};
use super::selection::Selected;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};
use wiregauge_figures::record::schema::{Record, Round};

/// What a message that never arrived counts as: 24 h, the highest value.
pub const NEVER_NS: u64 = 24 * 3600 * 1_000_000_000;
/// The first line names the version of the format.
const FORMAT: &str = "[Histogram log format version 1.3]";
/// `Interval_Max`, which is for people, is in ms as in other logs.
const NS_PER_MS: f64 = 1e6;

/// Writes the log of the selected samples.
pub(super) fn write(
    record: &Record,
    chosen: Selected<'_>,
    sink: &mut impl Write,
    failed: impl Fn(io::Error) -> ExportError,
) -> Result<(), ExportError> {
    let mut serializer = V2DeflateSerializer::new();
    // No figure depends on it: the record's epoch was about then.
    let start = record.started_at().unwrap_or(UNIX_EPOCH);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(FORMAT)
        .add_comment("[Logged by wiregauge; values are nanoseconds]")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(sink, &mut serializer)
        .map_err(&failed)?;
    let mut open: Vec<Interval> = Vec::new();
    chosen.each(|rows| {
        let Some(first) = rows.first() else { return Ok(()) };
        let is_over = |one: &Interval| (one.run, one.round) != (first.context.run, first.round);
        for interval in open.extract_if(.., |one| is_over(one)) {
            interval.write(record, &mut log).map_err(&failed)?;
        }
        match open.iter_mut().find(|one| one.metric == first.metric) {
            Some(interval) => interval.count(rows),
            None => {
                let mut interval = Interval::new(first).map_err(&failed)?;
                interval.count(rows);
                open.push(interval);
            }
        }
        Ok(())
    })?;
    open.iter().try_for_each(|interval| interval.write(record, &mut log)).map_err(&failed)
}

/// The tag of a run and a metric: the run's label with `_` for what a tag may not hold.
pub(super) fn tag(context: &RunContext, metric: &str) -> String {
    let kept = |c: char| if c.is_whitespace() || c == ',' { '_' } else { c };
    format!("{}:{metric}", context.case).chars().map(kept).collect()
}

/// One metric of one round.
struct Interval {
    run: u32,
    round: u32,
    metric: &'static str,
    tag: String,
    values: Histogram<u64>,
    never: u64,
}

impl Interval {
    fn new(row: &Row<'_>) -> io::Result<Interval> {
        let values = Histogram::new_with_bounds(1, NEVER_NS, 3).map_err(io::Error::other)?;
        let (run, round, metric) = (row.context.run, row.round, row.metric);
        Ok(Interval { run, round, metric, tag: tag(row.context, metric), values, never: 0 })
    }

    fn count(&mut self, rows: &[Row<'_>]) {
        for row in rows {
            let is_never = row.value_ns == f64::INFINITY;
            self.never += u64::from(is_never);
            // The cast takes what is below 0, by an error of two clocks, for 0.
            let ns = if is_never { NEVER_NS } else { row.value_ns.round() as u64 };
            self.values.saturating_record(ns);
        }
    }

    fn write<W: Write>(
        &self,
        record: &Record,
        log: &mut IntervalLogWriter<'_, '_, W, V2DeflateSerializer>,
    ) -> io::Result<()> {
        let run = record.runs.iter().find(|run| run.index == self.run);
        let round = run.and_then(|run| run.rounds.iter().find(|round| round.index == self.round));
        let Some(Round { started_ns, length_ns, samples_in_histogram_only, .. }) = round else {
            return Ok(());
        };
        let (tag, round) = (&self.tag, self.round);
        if self.never > 0 {
            let never = self.never;
            log.write_comment(&format!("{tag} round {round}: {never} never arrived, here 24 h"))?;
        }
        if *samples_in_histogram_only > 0 {
            let left = format!("{samples_in_histogram_only} samples were not stored");
            log.write_comment(&format!("{tag} round {round}: {left}"))?;
        }
        let [started, length] = [*started_ns, *length_ns].map(|ns| Duration::from_nanos(ns as u64));
        log.write_histogram(&self.values, started, length, Tag::new(tag)).map_err(told)
    }
}

fn told<E: Error + Send + Sync + 'static>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
