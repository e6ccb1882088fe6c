//! `compare`: the difference of each quantile of two runs, and whether a limit was exceeded.

use super::console::show;
use super::{CommandError, Exit};
use crate::cli::Typed;
use crate::options::{UsageError, refuse};
use crate::record::read_record;
use crate::record::schema::{Metric, RateMetric, Record, RecordedWarning, Run};
use crate::report::scale::Scale;
use crate::report::table::comparison::{self, Line};
use crate::report::warnings;
use crate::stats::compare;
use crate::stats::limit::Limit;
use crate::units::quantile_name;
use crate::warning::Warning;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// One side of a comparison: a record and which of its runs.
struct Side {
    record: Record,
    /// (what, value) that a run's case must have.
    wanted: Vec<(String, String)>,
}

/// What is compared: `key=value` of a selection.
const KEYS: [&str; 6] = ["pattern", "transport", "wait", "threads", "size", "direction"];

fn value_of(run: &Run, key: &str) -> String {
    let case = &run.case;
    match key {
        "pattern" => case.pattern.clone(),
        "transport" => case.transport.name().into(),
        "wait" => case.wait.name().into(),
        "threads" => case.threads().to_string(),
        "size" => case.size.0.to_string(),
        // One of the pattern's own; other patterns have none.
        key => case.spec.get(key).map_or_else(String::new, |value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }),
    }
}

impl Side {
    fn read(text: &str) -> Result<Side, CommandError> {
        let (dir, selection) = match text.rsplit_once('@') {
            // A directory's own name may hold an @.
            Some((dir, selection)) if !Path::new(text).exists() => (dir, selection),
            _ => (text, ""),
        };
        let pair = |word: &str| match word.split_once('=') {
            Some((key, value)) if KEYS.contains(&key) => Ok((key.to_owned(), value.to_owned())),
            _ => refuse(format!(
                "invalid selection '{word}': use key=value, where key is one of {}",
                KEYS.join(", ")
            )),
        };
        let words = selection.split(',').filter(|word| !word.is_empty());
        let wanted = words.map(pair).collect::<Result<_, CommandError>>()?;
        Ok(Side { record: read_record(Path::new(dir))?, wanted })
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.record
            .runs
            .iter()
            .filter(|run| self.wanted.iter().all(|(key, value)| value_of(run, key) == *value))
    }
}

/// A limit as it was judged.
#[derive(Serialize)]
struct Judged {
    runs: String,
    limit: String,
    exceeded: bool,
    verdict: String,
}

/// All that a comparison says.
#[derive(Serialize)]
struct Comparison {
    rows: Vec<Line>,
    limits: Vec<Judged>,
    warnings: Vec<RecordedWarning>,
}

/// Compares.
pub fn compare(typed: &Typed) -> Result<Exit, CommandError> {
    let side = |name| Side::read(&typed.operand(name).unwrap_or_default());
    let (a, b) = (side("A")?, side("B")?);
    let limits = typed
        .given
        .read_list("fail-if", |text| text.parse().map(|limit: Limit| (text.to_owned(), limit)));
    let pairs = pair(&a, &b);
    let none = "no runs of the two match: select them as DIR@transport=tcp,wait=busy,size=64";
    ensure!(!pairs.is_empty(), UsageError(none.into()));
    let mut all = Comparison { rows: Vec::new(), limits: Vec::new(), warnings: Vec::new() };
    for (first, second) in &pairs {
        let runs = match first.label == second.label {
            true => first.label.clone(),
            false => format!("{} -> {}", first.label, second.label),
        };
        differences(first, second, &runs, &mut all.rows);
        for (text, limit) in &limits {
            all.limits.push(judge(limit, text, first, second, &runs));
        }
    }
    if a.record.started != b.record.started {
        all.warnings.push((&Warning::NotInterleaved).into());
    }
    let exceeded = all.limits.iter().any(|judged| judged.exceeded);
    show(typed.given.flag("json"), &all, text)?;
    Ok(if exceeded { Exit::EXCEEDED } else { Exit::RIGHT })
}

/// The runs that belong together: those of the same case but for what the selections name; where
/// each side has one run, those two.
fn pair<'a>(a: &'a Side, b: &'a Side) -> Vec<(&'a Run, &'a Run)> {
    let (firsts, seconds): (Vec<&Run>, Vec<&Run>) = (a.runs().collect(), b.runs().collect());
    if let ([first], [second]) = (firsts.as_slice(), seconds.as_slice())
        && first.case.pattern == second.case.pattern
    {
        return vec![(first, second)];
    }
    let selected = |key: &str| [a, b].iter().any(|side| side.wanted.iter().any(|(k, _)| k == key));
    let same = |first: &Run, second: &Run| {
        KEYS.iter().all(|key| selected(key) || value_of(first, key) == value_of(second, key))
    };
    let all = firsts.iter().flat_map(|a| seconds.iter().map(|b| (*a, *b)));
    all.filter(|(first, second)| same(first, second)).collect()
}

fn differences(first: &Run, second: &Run, runs: &str, rows: &mut Vec<Line>) {
    for &metric in Metric::ALL {
        let (Some(a), Some(b)) = (first.summary(metric), second.summary(metric)) else { continue };
        for (p, difference) in compare::quantiles(a, b) {
            let figure = format!("{}.{}", metric.name(), quantile_name(p));
            rows.push(Line::new(runs, figure, Scale::Time, difference));
        }
    }
    for &metric in RateMetric::ALL {
        let (Some(a), Some(b)) = (first.rate(metric), second.rate(metric)) else { continue };
        let (figure, scale) = (metric.name().to_owned(), Scale::of_rate(metric));
        rows.push(Line::new(runs, figure, scale, compare::rates(a, b)));
    }
}

fn judge(limit: &Limit, text: &str, first: &Run, second: &Run, runs: &str) -> Judged {
    // A limit that cannot be judged does not pass a gate.
    let (exceeded, verdict) = match limit.is_exceeded(Some(first), second) {
        Ok(false) => (false, "kept".to_string()),
        Ok(true) => (true, "exceeded".to_string()),
        Err(why) => (true, format!("cannot be judged: {why}")),
    };
    Judged { runs: runs.into(), limit: text.into(), exceeded, verdict }
}

fn text(all: &Comparison) -> String {
    let mut text = comparison::table(&all.rows);
    for judged in &all.limits {
        text.push_str(&format!("limit {} ({}): {}\n", judged.limit, judged.runs, judged.verdict));
    }
    let warnings = all.warnings.iter().map(|warning| (warning, None));
    text + &warnings::text(&warnings::grouped(warnings))
}
