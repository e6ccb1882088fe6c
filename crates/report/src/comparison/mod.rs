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

pub use answer::{Answer, Change, change, largest, summary};
pub use conditions::{Condition, between};
pub use limits::JudgedLimit;
pub use selection::{Selection, Side};

use super::scale::Scale;
use selection::Matches;
use serde::Serialize;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Metric, RateMetric, Record, RecordedWarning, Run};
use wiregauge_stats::compare::Estimate;
use wiregauge_stats::limit::Figure;
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
    /// Number of their pair, from 0 on.
    #[serde(skip)]
    pub pair: usize,
    /// Which figure.
    pub figure: String,
    /// True for a figure of the runs' headline.
    #[serde(skip)]
    pub is_headline: bool,
    /// True for a figure that repeats another one: a round trip whose half is there.
    #[serde(skip)]
    pub is_repeated: bool,
    /// The figure of each run with its interval, as in the run's own report.
    #[serde(skip)]
    pub estimates: [Option<Estimate>; 2],
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
    /// Names of the run that is compared with and of the one that is judged.
    pub names: [String; 2],
    /// How many pairs of runs were compared.
    #[serde(skip)]
    pub pairs: usize,
    /// Sentence about all pairs together; empty where there are no two.
    pub summary: String,
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

/// Counts the pairs of words before the first one that differs.
fn count_equal<'a>(pairs: impl Iterator<Item = (&'a &'a str, &'a &'a str)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns two labels as one, with what both begin and end with once: `latency tcp -> shm busy`.
fn between_labels(a: &str, b: &str) -> String {
    let [of_a, of_b] = [a, b].map(|label| label.split(' ').collect::<Vec<&str>>());
    let shared = of_a.len().min(of_b.len()) - 1;
    let first = count_equal(of_a.iter().zip(&of_b).take(shared));
    let last = count_equal(of_a.iter().rev().zip(of_b.iter().rev()).take(shared - first));
    let [own, other] = [&of_a, &of_b].map(|words| words[first..words.len() - last].join(" "));
    let arrow = format!("{own} -> {other}");
    let words = of_a[..first].iter().copied().chain([arrow.as_str()]);
    words.chain(of_a[of_a.len() - last..].iter().copied()).collect::<Vec<_>>().join(" ")
}

impl Pair<'_> {
    /// What both are called; of two series what is in them.
    pub fn label(&self) -> String {
        let (a, b) = (self.a.label.as_str(), self.b.label.as_str());
        let [a, b] = match (a.split_once(": "), b.split_once(": ")) {
            (Some((_, of_a)), Some((_, of_b))) if a != b => [of_a, of_b],
            _ => [a, b],
        };
        if a == b { a.into() } else { between_labels(a, b) }
    }
}

/// The runs of two sides that belong together.
pub fn pairs<'a>(a: &'a Side, b: &'a Side) -> Vec<Pair<'a>> {
    Matches::new(a, b).pairs
}

impl Line {
    fn new(of: (usize, &Pair<'_>), figure: Figure, found: Result<Difference, Missing>) -> Line {
        let (number, pair) = of;
        let (difference, missing) = (found.ok(), found.err());
        let measures_half = pair.b.summary(Metric::HalfRtt).is_some();
        Line {
            runs: pair.label(),
            pair: number,
            is_headline: Figure::of_headline(&pair.b.headline).contains(&figure),
            is_repeated: matches!(figure, Figure::Quantile(Metric::Rtt, _)) && measures_half,
            scale: Scale::of(figure.metric()),
            figure: figure.to_string(),
            estimates: [pair.a, pair.b].map(|run| figure.estimate(run)),
            differs: difference.as_ref().map(Difference::excludes_zero),
            difference,
            missing,
        }
    }
}

impl Comparison {
    /// Compares the runs of two sides that belong together; each limit has its text. Where no run
    /// has a counterpart, the limits are judged all the same: those that compare are inconclusive.
    /// With a limit that compares, only runs of the same case are paired, so that a gate cannot
    /// pass because something else was measured.
    pub fn new(a: &Side, b: &Side, limits: &[(String, Limit)]) -> Comparison {
        let is_gate = limits.iter().any(|(_, limit)| limit.compares());
        let matches = if is_gate {
            Matches::alike(a, b, |pair| conditions::of_cases(a, b, pair))
        } else {
            Matches::new(a, b)
        };
        // One record is of one machine and one time, and its cases took turns.
        let is_one = a.record.started == b.record.started && a.record.command == b.record.command;
        let unavailable = b.selection.is_whole().then_some(b.record.unavailable.as_slice());
        let not_interleaved = (!is_one).then(|| (&Warning::NotInterleaved).into());
        let names = matches.names;
        let answers = matches.pairs.iter().map(|pair| {
            let differing = if is_one { None } else { conditions::of_cases(a, b, pair) };
            Answer::new(pair, names, differing.as_deref())
        });
        let answers: Vec<Answer> = answers.collect();
        let summary =
            if answers.len() > 1 { summary(&matches.pairs, names) } else { String::new() };
        Comparison {
            names: names.map(str::to_owned),
            pairs: matches.pairs.len(),
            summary,
            answers: if answers.is_empty() { vec![Answer::of_no_pair(names)] } else { answers },
            limits: limits::judged(limits, &matches, &b.record, unavailable.unwrap_or_default()),
            rows: matches.pairs.iter().enumerate().flat_map(differences).collect(),
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
            names: Default::default(),
            pairs: 0,
            summary: String::new(),
            answers: Vec::new(),
            limits: judged,
            rows: Vec::new(),
            conditions: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns what all limits say together, in words.
    pub fn verdict_words(&self) -> Option<&'static str> {
        Some(match self.verdict()? {
            Verdict::Held => "all limits held",
            Verdict::Exceeded => "a limit was exceeded",
            Verdict::Inconclusive => "inconclusive: a limit could not be judged",
        })
    }

    /// What all limits say together: the worst of them. `None`: there is no limit.
    pub fn verdict(&self) -> Option<Verdict> {
        let worst_first = [Verdict::Exceeded, Verdict::Inconclusive, Verdict::Held];
        let has = |verdict: &Verdict| self.limits.iter().any(|one| one.verdict() == *verdict);
        worst_first.into_iter().find(has)
    }
}

fn differences(of: (usize, &Pair<'_>)) -> Vec<Line> {
    let Pair { a: first, b: second } = of.1;
    let mut rows = Vec::new();
    for &metric in Metric::ALL {
        let (Some(a), Some(b)) = (first.summary(metric), second.summary(metric)) else { continue };
        for (p, difference) in compare::quantiles(a, b) {
            rows.push(Line::new(of, Figure::Quantile(metric, p), difference));
        }
    }
    for &metric in RateMetric::ALL {
        let (Some(a), Some(b)) = (first.rate(metric), second.rate(metric)) else { continue };
        rows.push(Line::new(of, Figure::Rate(metric), compare::rates(a, b)));
    }
    rows
}
