//! Which runs of two records belong together.

use super::Pair;
use crate::options::{UsageError, refuse};
use crate::record::schema::{Record, Run};
use serde_json::Value;

/// What selects runs: the keys of `key=value`.
const KEYS: [&str; 7] = ["series", "pattern", "transport", "wait", "threads", "size", "direction"];

/// Some of the runs of a record, by (key, value) that each must have; all where it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(Vec<(String, String)>);

/// One side of a comparison: a record, and which of its runs.
pub struct Side {
    /// The record.
    pub record: Record,
    /// The runs.
    pub selection: Selection,
}

impl Side {
    /// All runs of a record.
    pub fn whole(record: Record) -> Side {
        Side { record, selection: Selection::default() }
    }
}

impl std::str::FromStr for Selection {
    type Err = UsageError;

    /// Reads `transport=tcp,wait=busy`.
    fn from_str(text: &str) -> Result<Selection, UsageError> {
        let pair = |word: &str| match word.split_once('=') {
            Some((key, value)) if KEYS.contains(&key) => Ok((key.to_owned(), value.to_owned())),
            _ => refuse(format!(
                "invalid selection '{word}': use key=value, where key is one of {}",
                KEYS.join(", ")
            )),
        };
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(pair).collect::<Result<_, _>>().map(Selection)
    }
}

impl Selection {
    /// The runs of a series.
    pub fn of_series(name: &str) -> Selection {
        Selection(vec![("series".into(), name.into())])
    }

    /// Whether it says anything of a key.
    pub fn names(&self, key: &str) -> bool {
        self.0.iter().any(|(named, _)| named == key)
    }
}

impl Side {
    fn value_of(&self, run: &Run, key: &str) -> String {
        let case = &run.case;
        match key {
            "series" => {
                let study = self.record.plan.study.as_ref();
                let series = study.and_then(|study| study.series_of(run.index));
                series.map_or_else(String::new, |series| series.name.clone())
            }
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

    fn runs(&self) -> Vec<&Run> {
        let is_wanted = |run: &&Run| {
            self.selection.0.iter().all(|(key, value)| self.value_of(run, key) == *value)
        };
        self.record.runs.iter().filter(is_wanted).collect()
    }
}

/// The runs that belong together, and the labels of those of each side that belong to none: those
/// of the same case but for what the selections name; where each side has one run, those two.
pub(super) fn pairs<'a>(a: &'a Side, b: &'a Side) -> (Vec<Pair<'a>>, [Vec<&'a str>; 2]) {
    let (firsts, seconds) = (a.runs(), b.runs());
    if let ([first], [second]) = (firsts.as_slice(), seconds.as_slice())
        && first.case.pattern == second.case.pattern
    {
        return (vec![Pair { a: first, b: second }], [Vec::new(), Vec::new()]);
    }
    // Two series of one study are made to be compared: their cases stand in the same order.
    let are_series = a.selection.names("series") && b.selection.names("series");
    if are_series && firsts.len() == seconds.len() {
        let both = firsts.iter().zip(&seconds).map(|(a, b)| Pair { a, b });
        return (both.collect(), [Vec::new(), Vec::new()]);
    }
    let is_selected = |key: &str| a.selection.names(key) || b.selection.names(key);
    let is_same = |first: &Run, second: &Run| {
        let same =
            |key: &&str| is_selected(key) || a.value_of(first, key) == b.value_of(second, key);
        KEYS.iter().all(same) && first.case.point == second.case.point
    };
    let all = firsts.iter().flat_map(|a| seconds.iter().map(|b| Pair { a, b }));
    let pairs: Vec<Pair<'a>> = all.filter(|pair| is_same(pair.a, pair.b)).collect();
    let alone = |runs: &[&'a Run], of: fn(&Pair<'a>) -> u32| {
        let has_none = |run: &&&Run| pairs.iter().all(|pair| of(pair) != run.index);
        runs.iter().filter(has_none).map(|run| run.label.as_str()).collect()
    };
    let alone = [alone(&firsts, |pair| pair.a.index), alone(&seconds, |pair| pair.b.index)];
    (pairs, alone)
}
