//! What a comparison means for whoever started the command: the exit code, files for a CI system,
//! and the baseline that a run becomes.

use super::console::{complain, print_report, print_text, whole_layout};
use super::{CommandError, Exit};
use crate::cli::{JudgeOptions, RunOptions};
use crate::host::open_output;
use crate::options::refuse_found;
use crate::record::Baseline;
use crate::record::schema::Record;
use crate::report::comparison::{Comparison, Selection, Side, junit, markdown};
use crate::report::export::ExportError;
use crate::report::table::{Layout, Text, comparison};
use crate::stats::Verdict;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The names of the series that `ab` compares.
pub const SERIES: [&str; 2] = ["A", "B"];

/// The record that a run is to be compared with. There need be none yet of the name under which the
/// run is saved, so that a job that keeps a baseline has a first time.
pub fn baseline(judge: &JudgeOptions) -> Result<Option<Record>, CommandError> {
    let compares = judge.limits.iter().find(|(_, limit)| limit.compares());
    refuse_found(compares.filter(|_| judge.baseline.is_none()), |(text, _)| {
        format!("--fail-if: '{text}' compares two runs: use --baseline NAME as well")
    })?;
    let first = |one: &&Baseline| judge.save_as.as_ref() != Some(one) || one.is_saved();
    Ok(judge.baseline.as_ref().filter(first).map(Baseline::read).transpose()?)
}

/// Judges a run that was measured: beside a baseline, by limits, or not at all.
pub fn measured(
    record: &Record,
    baseline: Option<Record>,
    kept: Option<&Path>,
    options: &RunOptions,
) -> Result<Exit, CommandError> {
    let judge = &options.judge;
    let all = match baseline {
        Some(baseline) => {
            let (a, b) = (Side::whole(baseline), Side::whole(record.clone()));
            Comparison::new(&a, &b, &judge.limits)
        }
        None => Comparison::alone(record, &judge.limits),
    };
    let text = comparison::whole(&all, &layout_of(options));
    let mut below = Text::default();
    if !text.is_empty() {
        below.end_line();
        below.append(text);
    }
    tell(&below, options)?;
    finish(&all, record, kept, options)
}

/// Compares the two series of a run whose rounds took turns.
pub fn compared(record: &Record, options: &RunOptions) -> Comparison {
    let [a, b] =
        SERIES.map(|name| Side { record: record.clone(), selection: Selection::of_series(name) });
    Comparison::new(&a, &b, &options.judge.limits)
}

/// Compares the two series of a run whose rounds took turns, and says what came out.
pub fn sides(record: &Record, options: &RunOptions) -> Result<Comparison, CommandError> {
    let all = compared(record, options);
    let mut text = comparison::whole(&all, &layout_of(options));
    text.end_line();
    tell(&text, options)?;
    Ok(all)
}

/// Of a comparison all columns and warnings, on lines that are not broken where stdout is the
/// record's.
fn layout_of(options: &RunOptions) -> Layout {
    match options.json {
        true => Layout { verbose: true, ..Layout::default() },
        false => whole_layout(),
    }
}

/// Prints a comparison, where stdout is the record's alone to stderr.
fn tell(text: &Text, options: &RunOptions) -> Result<(), CommandError> {
    let lines = text.to_string();
    match options.json {
        true => lines.lines().filter(|line| !line.is_empty()).for_each(|line| complain(&line)),
        false => print_report(text, options.display.color).map(drop)?,
    }
    Ok(())
}

/// Writes the files that a CI system reads, saves the baseline, and gives the exit code.
pub fn finish(
    all: &Comparison,
    record: &Record,
    kept: Option<&Path>,
    options: &RunOptions,
) -> Result<Exit, CommandError> {
    let judge = &options.judge;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| CommandError::Export(ExportError::Write { path, source })
    };
    if let Some(path) = &judge.junit {
        open_output(path, File::options().truncate(true))
            .and_then(|mut file| file.write_all(junit::text(all, record, judge.strict).as_bytes()))
            .map_err(failed(path))?;
    }
    if let Some(path) = &judge.markdown {
        let append = || {
            let mut file = open_output(path, File::options().append(true))?;
            file.write_all(markdown::text(all).as_bytes())
        };
        append().map_err(failed(path))?;
    }
    if let Some((baseline, run)) = judge.save_as.as_ref().zip(kept) {
        if record.complete {
            let name = baseline.name();
            let saved = format!("saved as baseline {name} in {}", baseline.save(run)?.display());
            match options.json {
                true => complain(&saved),
                false => print_text(&(saved + "\n")).map(drop)?,
            }
        } else {
            complain(&"an incomplete run is not saved as a baseline");
        }
    }
    Ok(match all.verdict() {
        Some(Verdict::Exceeded) => Exit::EXCEEDED,
        Some(Verdict::Inconclusive) if judge.strict => Exit::EXCEEDED,
        // What held in a part of a run may not hold in the rest.
        _ if !record.complete => Exit::INCOMPLETE,
        Some(Verdict::Inconclusive) => Exit::INCONCLUSIVE,
        Some(Verdict::Held) | None => Exit::RIGHT,
    })
}
