//! `compare`: the difference of each quantile of two runs, and whether limits were held.

use super::console::show;
use super::{CommandError, Exit};
use crate::cli::Typed;
use crate::options::Given;
use crate::record::read_record;
use crate::report::comparison::{Comparison, Selection, Side};
use crate::report::table::comparison;
use crate::stats::{Limit, Verdict};
use std::path::Path;

/// Compares.
pub fn compare(typed: &Typed) -> Result<Exit, CommandError> {
    let side = |name| side(&typed.operand(name).unwrap_or_default());
    let (a, b) = (side("A")?, side("B")?);
    judge(&a, &b, &typed.given)
}

/// Compares two sides as the options of a comparison ask, and prints what it says.
fn judge(a: &Side, b: &Side, given: &Given) -> Result<Exit, CommandError> {
    let limits = given
        .read_list("fail-if", |text| text.parse().map(|limit: Limit| (text.to_owned(), limit)));
    let all = Comparison::new(a, b, &limits)?;
    show(given.flag("json"), &all, comparison::whole)?;
    Ok(match all.verdict() {
        Some(Verdict::Exceeded) => Exit::EXCEEDED,
        Some(Verdict::Inconclusive) if given.flag("strict") => Exit::EXCEEDED,
        Some(Verdict::Inconclusive) => Exit::INCONCLUSIVE,
        Some(Verdict::Held) | None => Exit::RIGHT,
    })
}

/// Reads `DIR` or `DIR@key=value,...`, samples and all: they must be those of the record.
fn side(text: &str) -> Result<Side, CommandError> {
    let (dir, selection) = match text.rsplit_once('@') {
        // A directory's own name may hold an @.
        Some((dir, selection)) if !Path::new(text).exists() => (dir, selection),
        _ => (text, ""),
    };
    let selection: Selection = selection.parse()?;
    Ok(Side { record: read_record(Path::new(dir))?, selection })
}
