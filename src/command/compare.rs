//! `compare`: the difference of each quantile of two runs, and whether limits were held.

use super::console::{layout, show};
use super::{CommandError, Exit, judge};
use crate::cli::{RunOptions, Typed};
use crate::options::UsageError;
use crate::record::read_record;
use crate::report::comparison::{Comparison, Selection, Side};
use crate::report::table::comparison;
use std::path::{Path, PathBuf};

/// How runs are selected.
const SELECT: &str = "select them as DIR@transport=tcp,wait=busy,size=64";

/// Compares.
pub fn compare(options: &RunOptions, typed: &Typed) -> Result<Exit, CommandError> {
    let named = |name| typed.operand(name).unwrap_or_default();
    let judged = match options.judge.baseline {
        Some(_) => named("A"),
        None => named("B"),
    };
    let [a_name, b_name] = judge::names(options.judge.baseline.as_ref());
    let (b, directory) = side(b_name, &judged)?;
    let a = match &options.judge.baseline {
        Some(baseline) => {
            Side { name: a_name, record: baseline.read()?, selection: b.selection.clone() }
        }
        None => side(a_name, &named("A"))?.0,
    };
    let [of_a, of_b] = [&a, &b].map(|side| (&side.record.started, &side.record.command));
    let are_same = of_a == of_b && a.selection == b.selection;
    // The run that was saved as a baseline may be named beside it.
    let are_named = options.judge.baseline.is_none();
    ensure!(!(are_same && are_named), UsageError("A and B are the same runs: name two".into()));
    let all = Comparison::new(&a, &b, &options.judge.limits);
    // Where there are limits they are inconclusive; a baseline is replaced by the next run.
    let may_be_none = options.judge.baseline.is_some() || !options.judge.limits.is_empty();
    ensure!(
        all.pairs > 0 || may_be_none,
        UsageError(format!("no runs of the two match: {SELECT}"))
    );
    let layout = layout(&options.display);
    show(options.json, &all, |all| comparison::whole(all, &layout).to_string())?;
    judge::finish(&all, &b.record, Some(&directory), options)
}

/// Reads `DIR` or `DIR@key=value,...`, samples and all: they must be those of the record.
fn side(name: String, text: &str) -> Result<(Side, PathBuf), CommandError> {
    let (dir, selection) = match text.rsplit_once('@') {
        // A directory's own name may hold an @.
        Some((dir, selection)) if !Path::new(text).exists() => (dir, selection),
        _ => (text, ""),
    };
    let selection: Selection = selection.parse()?;
    let side = Side { name, record: read_record(Path::new(dir))?, selection };
    let selects = side.selection.is_whole() || !side.runs().is_empty();
    ensure!(selects, UsageError(format!("'{text}' selects no run: {SELECT}")));
    Ok((side, dir.into()))
}
