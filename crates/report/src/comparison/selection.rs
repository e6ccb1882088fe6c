//! Which runs of two records belong together.

use super::Pair;
use serde_json::Value;
use wiregauge_base::options::{UsageError, refuse};
use wiregauge_base::units::Bytes;
use wiregauge_figures::record::schema::{Record, Run};

/// What selects runs: the keys of `key=value`.
const KEYS: [&str; 7] = ["series", "pattern", "transport", "wait", "threads", "size", "direction"];

/// Some of the runs of a record, by (key, value) that each must have; all where it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(Vec<(String, String)>);

/// One side of a comparison: a record, and which of its runs.
pub struct Side {
    /// Name in sentences and tables.
    pub name: String,
    /// The record.
    pub record: Record,
    /// The runs.
    pub selection: Selection,
}

impl Side {
    /// All runs of a record, by this name.
    pub fn whole(name: impl Into<String>, record: Record) -> Side {
        Side { name: name.into(), record, selection: Selection::default() }
    }
}

impl std::str::FromStr for Selection {
    type Err = UsageError;

    /// Reads `transport=tcp,wait=busy`.
    fn from_str(text: &str) -> Result<Selection, UsageError> {
        let pair = |word: &str| match word.split_once('=') {
            // As a record has it, whatever unit was typed.
            Some(("size", value)) => {
                let size: Bytes = value.parse().map_err(UsageError::from)?;
                Ok(("size".to_owned(), size.0.to_string()))
            }
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

    /// Returns which of several pairs of hosts, pairs of nodes and rails a run has measured.
    fn place_of(&self, run: &Run) -> [Option<String>; 3] {
        let plan = &self.record.plan;
        let nodes = run.case.part.pair.map(|[from, to]| format!("{from} to {to}"));
        let is_one_of_several = plan.pairs.is_some() || nodes.is_some();
        let hosts = is_one_of_several.then(|| plan.hosts_of(&run.case));
        [hosts, nodes, plan.rail(&run.case)]
    }

    /// The runs that are selected.
    pub fn runs(&self) -> Vec<&Run> {
        let is_wanted = |run: &&Run| {
            self.selection.0.iter().all(|(key, value)| self.value_of(run, key) == *value)
        };
        self.record.runs.iter().filter(is_wanted).collect()
    }
}

/// One of two sides, in which a run of the other one is looked for.
#[derive(Clone, Copy)]
pub(super) enum Counterpart {
    A,
    B,
}

/// Which runs of two sides belong together.
pub(super) struct Matches<'a> {
    /// The names of both sides.
    pub names: [&'a str; 2],
    /// Those of the same case but for what the selections name; where each side has one run, those
    /// two, unless only like cases are paired.
    pub pairs: Vec<Pair<'a>>,
    /// Runs that would be pairs, with what makes their cases different ones, in words.
    unlike: Vec<(Pair<'a>, String)>,
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
        let mut matches = Matches {
            names: [&a.name, &b.name],
            pairs,
            unlike: Vec::new(),
            alone: [Vec::new(), Vec::new()],
            judged: seconds,
        };
        matches.find_alone(&firsts);
        matches
    }

    /// Pairs the runs of two sides that have the same case; `difference` describes how two cases
    /// differ. Two series of studies differ on purpose, and are paired all the same.
    pub fn alike(
        a: &'a Side,
        b: &'a Side,
        difference: impl Fn(&Pair<'a>) -> Option<String>,
    ) -> Matches<'a> {
        let mut matches = Matches::new(a, b);
        if are_series(a, b) {
            return matches;
        }
        let all = std::mem::take(&mut matches.pairs);
        for pair in all {
            match difference(&pair) {
                None => matches.pairs.push(pair),
                Some(names) => matches.unlike.push((pair, names)),
            }
        }
        matches.find_alone(&a.runs());
        matches
    }

    /// Finds the runs that belong to none of the other side; `firsts` are all of A.
    fn find_alone(&mut self, firsts: &[&'a Run]) {
        let alone = |runs: &[&'a Run], of: fn(&Pair<'a>) -> u32| {
            let has_none = |run: &&'a Run| self.pairs.iter().all(|pair| of(pair) != run.index);
            runs.iter().copied().filter(has_none).collect()
        };
        self.alone = [alone(firsts, |pair| pair.a.index), alone(&self.judged, |pair| pair.b.index)];
    }

    /// Returns why a run has no counterpart on the side of this name.
    pub fn reason_alone(&self, run: &Run, other: Counterpart) -> String {
        let unlike = self.unlike.iter().find_map(|(Pair { a, b }, differing)| match other {
            Counterpart::A if b.index == run.index => Some((a, differing)),
            Counterpart::B if a.index == run.index => Some((b, differing)),
            Counterpart::A | Counterpart::B => None,
        });
        let [a, b] = self.names;
        let reason = match other {
            Counterpart::A => format!("{a} does not have this case"),
            Counterpart::B => format!("{b} does not have this case"),
        };
        match unlike {
            None => reason,
            Some((instead, differing)) => {
                format!("{reason}, but {} ({b}: {differing})", instead.label)
            }
        }
    }

    /// A record that is compared with nothing.
    pub fn without_other(record: &'a Record) -> Matches<'a> {
        let judged = record.runs.iter().collect();
        let alone = [Vec::new(), Vec::new()];
        Matches { names: ["", ""], pairs: Vec::new(), unlike: Vec::new(), alone, judged }
    }

    /// One pair of runs.
    pub fn one(pair: &Pair<'a>) -> Matches<'a> {
        let alone = [Vec::new(), Vec::new()];
        let (names, judged) = (["", ""], vec![pair.b]);
        Matches { names, pairs: vec![*pair], unlike: Vec::new(), alone, judged }
    }
}

/// Returns true for two series of studies, which are made to be compared.
fn are_series(a: &Side, b: &Side) -> bool {
    a.selection.names("series") && b.selection.names("series")
}

fn pairs<'a>([a, b]: [&'a Side; 2], firsts: &[&'a Run], seconds: &[&'a Run]) -> Vec<Pair<'a>> {
    if let ([first], [second]) = (firsts, seconds)
        && first.case.pattern == second.case.pattern
    {
        return vec![Pair { a: first, b: second }];
    }
    // The cases of two series stand in the same order.
    if are_series(a, b) && firsts.len() == seconds.len() {
        return firsts.iter().zip(seconds).map(|(a, b)| Pair { a, b }).collect();
    }
    let is_selected = |key: &str| a.selection.names(key) || b.selection.names(key);
    let is_same = |first: &Run, second: &Run| {
        let same =
            |key: &&str| is_selected(key) || a.value_of(first, key) == b.value_of(second, key);
        KEYS.iter().all(same)
            && first.case.point == second.case.point
            && a.place_of(first) == b.place_of(second)
    };
    let all = firsts.iter().flat_map(|a| seconds.iter().map(|b| Pair { a, b }));
    all.filter(|pair| is_same(pair.a, pair.b)).collect()
}
