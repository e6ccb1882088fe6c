//! Which runs of two records belong together.

use super::Pair;
use serde_json::Value;
use wiregauge_base::options::{UsageError, refuse};
use wiregauge_figures::record::schema::{Record, Run};

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

    /// Whether it selects all runs.
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
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

    /// The runs that are selected.
    pub fn runs(&self) -> Vec<&Run> {
        let is_wanted = |run: &&Run| {
            self.selection.0.iter().all(|(key, value)| self.value_of(run, key) == *value)
        };
        self.record.runs.iter().filter(is_wanted).collect()
    }
}

/// Which runs of two sides belong together.
pub(super) struct Matches<'a> {
    /// Those of the same case but for what the selections name; where each side has one run, those
    /// two.
    pub pairs: Vec<Pair<'a>>,
    /// Those of A and those of B that belong to none of the other side.
    pub alone: [Vec<&'a Run>; 2],
    /// All of B.
    pub judged: Vec<&'a Run>,
}

impl<'a> Matches<'a> {
    /// Those of two sides.
    pub fn new(a: &'a Side, b: &'a Side) -> Matches<'a> {
        let (firsts, seconds) = (a.runs(), b.runs());
        let pairs = pairs([a, b], &firsts, &seconds);
        let alone = |runs: &[&'a Run], of: fn(&Pair<'a>) -> u32| {
            let has_none = |run: &&'a Run| pairs.iter().all(|pair| of(pair) != run.index);
            runs.iter().copied().filter(has_none).collect()
        };
        let alone = [alone(&firsts, |pair| pair.a.index), alone(&seconds, |pair| pair.b.index)];
        Matches { pairs, alone, judged: seconds }
    }

    /// A record that is compared with nothing.
    pub fn without_other(record: &'a Record) -> Matches<'a> {
        let judged = record.runs.iter().collect();
        Matches { pairs: Vec::new(), alone: [Vec::new(), Vec::new()], judged }
    }

    /// One pair of runs.
    pub fn one(pair: &Pair<'a>) -> Matches<'a> {
        let alone = [Vec::new(), Vec::new()];
        Matches { pairs: vec![*pair], alone, judged: vec![pair.b] }
    }
}

fn pairs<'a>([a, b]: [&'a Side; 2], firsts: &[&'a Run], seconds: &[&'a Run]) -> Vec<Pair<'a>> {
    if let ([first], [second]) = (firsts, seconds)
        && first.case.pattern == second.case.pattern
    {
        return vec![Pair { a: first, b: second }];
    }
    // Two series of one study are made to be compared: their cases stand in the same order.
    let are_series = a.selection.names("series") && b.selection.names("series");
    if are_series && firsts.len() == seconds.len() {
        return firsts.iter().zip(seconds).map(|(a, b)| Pair { a, b }).collect();
    }
    let is_selected = |key: &str| a.selection.names(key) || b.selection.names(key);
    let is_same = |first: &Run, second: &Run| {
        let same =
            |key: &&str| is_selected(key) || a.value_of(first, key) == b.value_of(second, key);
        KEYS.iter().all(same) && first.case.point == second.case.point
    };
    let all = firsts.iter().flat_map(|a| seconds.iter().map(|b| Pair { a, b }));
    all.filter(|pair| is_same(pair.a, pair.b)).collect()
}
