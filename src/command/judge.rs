//! What a comparison means for whoever started the command: the exit code, files for a CI system,
//! and the baseline that a run becomes.

use super::console::{complain, layout, print_report, print_text};
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

/// Names a baseline and the run that is compared with it; two runs that were given, by the names of
/// their operands.
pub fn names(baseline: Option<&Baseline>) -> [String; 2] {
    match baseline {
        Some(baseline) => [format!("baseline {}", baseline.name()), "this run".into()],
        None => SERIES.map(str::to_owned),
    }
}

/// Compares a run that was measured with a baseline, and judges it by limits. `None`: neither was
/// asked for.
pub fn measured(
    record: &Record,
    baseline: Option<Record>,
    options: &RunOptions,
) -> Option<Comparison> {
    let judge = &options.judge;
    match baseline {
        Some(baseline) => {
            let [a, b] = names(judge.baseline.as_ref());
            let (a, b) = (Side::whole(a, baseline), Side::whole(b, record.clone()));
            Some(Comparison::new(&a, &b, &judge.limits))
        }
        None if judge.limits.is_empty() && judge.baseline.is_none() => None,
        None => Some(Comparison::alone(record, &judge.limits)),
    }
}

/// Compares the two series of a run whose rounds took turns.
pub fn compared(record: &Record, options: &RunOptions) -> Comparison {
    let [a, b] = SERIES.map(|name| {
        let (record, selection) = (record.clone(), Selection::of_series(name));
        Side { name: name.to_owned(), record, selection }
    });
    Comparison::new(&a, &b, &options.judge.limits)
}

/// Returns how a comparison is laid out; where stdout is the record's, lines are not broken.
fn layout_of(options: &RunOptions) -> Layout {
    match options.json {
        true => Layout { verbose: true, ..Layout::default() },
        false => layout(&options.display),
    }
}

/// Prints a comparison below a run's report or above it; where stdout is the record's alone, to
/// stderr.
pub fn tell(all: &Comparison, is_above: bool, options: &RunOptions) -> Result<(), CommandError> {
    let told = comparison::whole(all, &layout_of(options));
    if told.is_empty() {
        return Ok(());
    }
    let mut text = Text::default();
    if !is_above {
        text.end_line();
    }
    text.append(told);
    if is_above {
        text.end_line();
    }
    let lines = text.to_string();
    match options.json {
        true => lines.lines().filter(|line| !line.is_empty()).for_each(|line| complain(&line)),
        false => print_report(&text, options.display.color).map(drop)?,
    }
    Ok(())
}

/// Writes the files that a CI system reads, saves the baseline, and gives the exit code of a run
/// that was compared, or was not.
pub fn finish_measured(
    all: Option<&Comparison>,
    record: &Record,
    kept: Option<&Path>,
    options: &RunOptions,
) -> Result<Exit, CommandError> {
    match all {
        Some(all) => finish(all, record, kept, options),
        None => finish(&Comparison::alone(record, &[]), record, kept, options),
    }
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
        save(baseline, run, record.complete, all.verdict(), options)?;
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

/// Saves a run as a baseline, unless it is incomplete or a limit says that it must not be the one
/// with which the next is compared: a gate that was red once would be green from then on.
fn save(
    baseline: &Baseline,
    run: &Path,
    is_complete: bool,
    verdict: Option<Verdict>,
    options: &RunOptions,
) -> Result<(), CommandError> {
    let name = baseline.name();
    let kept = match verdict {
        _ if !is_complete => Some("an incomplete run is not saved as a baseline".into()),
        Some(Verdict::Exceeded) => Some(format!(
            "not saved as baseline {name}, since a limit was exceeded: to make it the baseline, \
             run without --fail-if"
        )),
        Some(Verdict::Inconclusive) if baseline.is_saved() => Some(format!(
            "baseline {name} is kept, since a limit is inconclusive: to replace it, run without \
             --fail-if"
        )),
        Some(Verdict::Held | Verdict::Inconclusive) | None => None,
    };
    if let Some(kept) = kept {
        complain(&kept);
        return Ok(());
    }
    let saved = format!("saved as baseline {name} in {}", baseline.save(run)?.display());
    match options.json {
        true => complain(&saved),
        false => print_text(&(saved + "\n")).map(drop)?,
    }
    Ok(())
}
