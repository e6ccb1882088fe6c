//! Two records, or two parts of one, beside each other: the difference of each figure, what limits
//! say of it, and what else differs between the two.
//!
//! Takes records alone, as every report; must never read a file.

mod answer;
mod conditions;
pub mod junit;
mod limits;
pub mod markdown;
mod selection;

pub use answer::{Answer, Change};
pub use conditions::{Condition, between};
pub use limits::JudgedLimit;
pub use selection::{Selection, Side};

use super::scale::Scale;
use selection::Matches;
use serde::Serialize;
use wiregauge_base::units::quantile_name;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Metric, RateMetric, Record, RecordedWarning, Run};
use wiregauge_stats::{Difference, Limit, Missing, Verdict, compare};

/// Two runs that are compared.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The run that is compared with.
    pub a: &'a Run,
    /// The run that is judged.
    pub b: &'a Run,
}

/// The difference of one figure.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Which runs.
    pub runs: String,
    /// Which figure.
    pub figure: String,
    /// What it is in.
    #[serde(skip)]
    pub scale: Scale,
    /// `None`: `missing` says why.
    pub difference: Option<Difference>,
    /// Why there is no difference.
    pub missing: Option<Missing>,
    /// Whether the interval of the difference excludes zero.
    pub differs: Option<bool>,
}

/// All that a comparison says.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// How many pairs of runs were compared.
    #[serde(skip)]
    pub pairs: usize,
    /// In a sentence for each two runs; where no run has a counterpart, one that says so.
    pub answers: Vec<Answer>,
    /// What the limits say.
    pub limits: Vec<JudgedLimit>,
    /// The difference of each figure.
    pub rows: Vec<Line>,
    /// What else differs, the worst first.
    pub conditions: Vec<Condition>,
    /// What weakens the comparison.
    pub warnings: Vec<RecordedWarning>,
}

impl Pair<'_> {
    /// What both are called; of two series what is in them.
    pub fn label(&self) -> String {
        let (a, b) = (self.a.label.as_str(), self.b.label.as_str());
        let [a, b] = match (a.split_once(": "), b.split_once(": ")) {
            (Some((_, of_a)), Some((_, of_b))) if a != b => [of_a, of_b],
            _ => [a, b],
        };
        if a == b { a.into() } else { format!("{a} -> {b}") }
    }
}

/// The runs of two sides that belong together.
pub fn pairs<'a>(a: &'a Side, b: &'a Side) -> Vec<Pair<'a>> {
    Matches::new(a, b).pairs
}

impl Line {
    fn new(runs: &str, figure: String, scale: Scale, found: Result<Difference, Missing>) -> Line {
        let (difference, missing) = (found.ok(), found.err());
        let differs = difference.as_ref().map(Difference::excludes_zero);
        Line { runs: runs.to_owned(), figure, scale, difference, missing, differs }
    }
}

impl Comparison {
    /// Compares the runs of two sides that belong together; each limit has its text. Where no run
    /// has a counterpart, the limits are judged all the same: those that compare are inconclusive.
    pub fn new(a: &Side, b: &Side, limits: &[(String, Limit)]) -> Comparison {
        let matches = Matches::new(a, b);
        // One record is of one machine and one time, and its cases took turns.
        let is_one = a.record.started == b.record.started && a.record.command == b.record.command;
        let unavailable = b.selection.is_whole().then_some(b.record.unavailable.as_slice());
        let not_interleaved = (!is_one).then(|| (&Warning::NotInterleaved).into());
        let answers: Vec<Answer> = matches.pairs.iter().map(Answer::new).collect();
        Comparison {
            pairs: matches.pairs.len(),
            answers: if answers.is_empty() { vec![Answer::of_no_pair()] } else { answers },
            limits: limits::judged(limits, &matches, &b.record, unavailable.unwrap_or_default()),
            rows: matches.pairs.iter().flat_map(differences).collect(),
            conditions: conditions::differing(a, b, &matches, is_one),
            warnings: not_interleaved.into_iter().collect(),
        }
    }

    /// What limits say of a record alone. One that compares has nothing to compare with.
    pub fn alone(record: &Record, limits: &[(String, Limit)]) -> Comparison {
        let (comparing, alone): (Vec<_>, Vec<_>) =
            limits.iter().cloned().partition(|(_, limit)| limit.compares());
        let mut judged =
            limits::judged(&alone, &Matches::without_other(record), record, &record.unavailable);
        let unknown =
            |(text, _): (String, Limit)| JudgedLimit::unknown(&text, "there is no baseline yet");
        judged.extend(comparing.into_iter().map(unknown));
        Comparison {
            pairs: 0,
            answers: Vec::new(),
            limits: judged,
            rows: Vec::new(),
            conditions: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// What all limits say together: the worst of them. `None`: there is no limit.
    pub fn verdict(&self) -> Option<Verdict> {
        let worst_first = [Verdict::Exceeded, Verdict::Inconclusive, Verdict::Held];
        let has = |verdict: &Verdict| self.limits.iter().any(|one| one.verdict() == *verdict);
        worst_first.into_iter().find(has)
    }
}

fn differences(pair: &Pair<'_>) -> Vec<Line> {
    let (Pair { a: first, b: second }, runs) = (pair, pair.label());
    let mut rows = Vec::new();
    for &metric in Metric::ALL {
        let (Some(a), Some(b)) = (first.summary(metric), second.summary(metric)) else { continue };
        for (p, difference) in compare::quantiles(a, b) {
            let figure = format!("{}.{}", metric.name(), quantile_name(p));
            rows.push(Line::new(&runs, figure, Scale::Time, difference));
        }
    }
    for &metric in RateMetric::ALL {
        let (Some(a), Some(b)) = (first.rate(metric), second.rate(metric)) else { continue };
        let (figure, scale) = (metric.name().to_owned(), Scale::of_rate(metric));
        rows.push(Line::new(&runs, figure, scale, compare::rates(a, b)));
    }
    rows
}
