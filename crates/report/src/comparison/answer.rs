//! The difference of two runs in a sentence.

use super::Pair;
use crate::model::Cell;
use crate::number::{percent, signed};
use serde::Serialize;
use wiregauge_base::units::{counted, quantile_name};
use wiregauge_stats::limit::Figure;
use wiregauge_stats::{Difference, Missing, compare};

/// Sentence about the figures that answer the question of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Which runs.
    pub runs: String,
    /// `B is 12 % slower at p50 (9.1..15 %), no change shown at p99 (at most 20 %)`.
    pub sentence: String,
}

/// One figure in the sentence: its name, the preposition before it, and the words for more and for
/// less of it.
struct Part<'a> {
    /// Names of both sides.
    sides: [&'a str; 2],
    name: String,
    preposition: &'static str,
    more: &'static str,
    less: &'static str,
    difference: Result<Difference, Missing>,
}

/// What the sentence says of a figure.
#[derive(Debug, PartialEq)]
enum Clause {
    /// What follows `B is`.
    Differs(String),
    /// Words behind `no change shown`: the figure, and how much it may have changed.
    Alike(String),
    /// A clause by itself.
    Other(String),
}

impl Answer {
    /// Answers by the headline of the second of two runs, whose sides have these names. It begins
    /// with what makes their cases different ones, in words.
    pub(super) fn new(pair: &Pair<'_>, sides: [&str; 2], differing: Option<&str>) -> Answer {
        let figures = Figure::of_headline(&pair.b.headline);
        let clauses: Vec<Clause> =
            figures.into_iter().map(|figure| Part::new(pair, sides, figure).clause()).collect();
        let sentence = if clauses.is_empty() {
            format!("{} has no figure that answers its question", sides[1])
        } else {
            sentence(sides[1], &clauses)
        };
        let sentence = match differing {
            None => sentence,
            Some(names) => format!("not the same case ({names}): {sentence}"),
        };
        Answer { runs: pair.label(), sentence }
    }

    /// Answers for two sides of which no runs belong together.
    pub(super) fn of_no_pair([a, b]: [&str; 2]) -> Answer {
        let sentence =
            format!("no run of {a} has the same case as one of {b}: nothing is compared");
        Answer { runs: "all runs".into(), sentence }
    }
}

/// Returns what all pairs of two sides say together: how many have changed in a figure that answers
/// their question, and which one most. Of one pair this is less than its [`Answer`].
pub fn summary(pairs: &[Pair<'_>], sides: [&str; 2]) -> String {
    let changes = pairs.iter().filter_map(|pair| Some((pair, Change::largest(pair, sides)?)));
    let changes: Vec<(&Pair<'_>, Change)> = changes.collect();
    let count = changes.len();
    let all = counted(pairs.len(), "case");
    match changes.iter().max_by(|a, b| a.1.share.total_cmp(&b.1.share)) {
        None if pairs.is_empty() => format!("no case in common with {}", sides[0]),
        None => format!("no change shown in {all}{}", at_most(pairs, sides)),
        Some((pair, most)) => {
            format!("{count} of {all} changed; the largest change: {} {}", pair.label(), most.words)
        }
    }
}

/// Returns how much each figure may have changed in any of these pairs, where that is known of all.
fn at_most(pairs: &[Pair<'_>], sides: [&str; 2]) -> String {
    let mut most: Vec<(String, f64)> = Vec::new();
    for pair in pairs {
        for figure in Figure::of_headline(&pair.b.headline) {
            let part = Part::new(pair, sides, figure);
            let bound = part.difference.as_ref().ok().and_then(largest).unwrap_or(f64::INFINITY);
            let name = format!("{} {}", part.preposition, part.name);
            match most.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.max(bound),
                None => most.push((name, bound)),
            }
        }
    }
    let known = most.iter().filter(|(_, bound)| bound.is_finite());
    let words: Vec<String> =
        known.map(|(name, bound)| format!("{} % {name}", percent(*bound))).collect();
    if words.is_empty() { String::new() } else { format!(" (at most {})", words.join(", ")) }
}

/// Returns the largest change that an interval allows, as a share; `None`: it has no bound.
pub fn largest(found: &Difference) -> Option<f64> {
    let interval = found.relative_interval?;
    let largest = interval.low.0.abs().max(interval.high.0.abs());
    largest.is_finite().then_some(largest)
}

/// Returns the change of a figure in per cent, as a cell: `+12 (9.1..15)`, or how large one may be
/// that is not shown, `none (≤4.0)`.
pub fn change(difference: Option<&Difference>, missing: Option<Missing>) -> Cell {
    let Some(found) = difference else {
        return match missing {
            Some(Missing::BothInfinite) => "both infinite".into(),
            _ => Cell::TooSmall,
        };
    };
    if !found.excludes_zero() {
        let bound = largest(found).map(|most| format!("none (≤{})", percent(most)));
        return bound.unwrap_or_else(|| "unresolved".into()).into();
    }
    let Some((relative, interval)) = found.relative.zip(found.relative_interval) else {
        return "from zero".into();
    };
    let [value, low, high] = [relative.0, interval.low.0, interval.high.0].map(in_percent);
    format!("{value} ({low}..{high})").into()
}

fn in_percent(share: f64) -> String {
    if share.is_finite() { signed(percent(share.abs()), share) } else { signed("inf", share) }
}

/// A significant difference of two runs in one of the figures that answer their question.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The difference as a share of A's figure; infinite where A's is 0 or either is infinite.
    pub share: f64,
    /// What follows the name of the case: `is 12 % slower at p50 (9.1..15 %)`.
    pub words: String,
}

impl Change {
    /// Returns the largest of a pair; `None` where the intervals show none.
    pub fn largest(pair: &Pair<'_>, sides: [&str; 2]) -> Option<Change> {
        let figures = Figure::of_headline(&pair.b.headline).into_iter();
        let changes = figures.filter_map(|figure| Part::new(pair, sides, figure).change());
        changes.reduce(|most, one| if one.share > most.share { one } else { most })
    }
}

/// The clauses in one sentence about a side; what two begin with is said once.
fn sentence(side: &str, clauses: &[Clause]) -> String {
    let mut text = String::new();
    let mut before: Option<&Clause> = None;
    for clause in clauses {
        let is_begun = before.is_some();
        let joint = match (before, clause) {
            (Some(Clause::Differs(_)), Clause::Differs(_)) => ", ".into(),
            (Some(Clause::Alike(_)), Clause::Alike(_)) => " or ".into(),
            (_, Clause::Differs(_)) if is_begun => format!(", {side} is "),
            (_, Clause::Differs(_)) => format!("{side} is "),
            (_, Clause::Alike(_)) if is_begun => ", no change shown ".into(),
            (_, Clause::Alike(_)) => "no change shown ".into(),
            (_, Clause::Other(_)) if is_begun => ", ".into(),
            (_, Clause::Other(_)) => String::new(),
        };
        let (Clause::Differs(words) | Clause::Alike(words) | Clause::Other(words)) = clause;
        text += &joint;
        text += words;
        before = Some(clause);
    }
    text
}

impl<'a> Part<'a> {
    fn new(pair: &Pair<'_>, sides: [&'a str; 2], figure: Figure) -> Part<'a> {
        let difference = compare::figures(figure.estimate(pair.a), figure.estimate(pair.b));
        let (name, preposition, more, less) = match figure {
            Figure::Quantile(_, p) => (quantile_name(p), "at", "slower", "faster"),
            _ => (figure.to_string(), "in", "higher", "lower"),
        };
        Part { sides, name, preposition, more, less, difference }
    }

    fn clause(&self) -> Clause {
        let name = &self.name;
        let [a, b] = self.sides;
        let found = match &self.difference {
            Ok(found) => found,
            Err(Missing::TooFew) => return Clause::Other(format!("{name} unknown (n too small)")),
            Err(Missing::BothInfinite) => return Clause::Other(infinite(name, "both")),
        };
        let is_certain = found.excludes_zero();
        // A latency is infinite where more messages were lost than lie beyond the quantile.
        let lost = [(found.a, a), (found.b, b)].into_iter().find(|(v, _)| v.0.is_infinite());
        match lost {
            Some((_, side)) if is_certain => return Clause::Other(infinite(name, side)),
            Some((_, side)) => return self.alike(&format!("infinite in {side}")),
            None => {}
        }
        if found.interval.is_none() {
            return Clause::Other(format!("{name} has no interval"));
        }
        let Some((relative, interval)) = found.relative.zip(found.relative_interval) else {
            return match is_certain {
                true => Clause::Other(format!("{name} is zero in {a} and not in {b}")),
                false => self.alike(&format!("zero in {a}")),
            };
        };
        if !is_certain {
            return match largest(found) {
                Some(most) => self.alike(&format!("at most {} %", percent(most))),
                None => self.alike("unresolved"),
            };
        }
        let (low, high) = (interval.low.0, interval.high.0);
        let (word, ends) = match relative.0 > 0.0 {
            true => (self.more, [low, high]),
            false => (self.less, [-high, -low]),
        };
        let within = match ends[1].is_finite() {
            true => format!("{}..{} %", percent(ends[0]), percent(ends[1])),
            false => format!("at least {} %", percent(ends[0])),
        };
        let (value, preposition) = (percent(relative.0.abs()), self.preposition);
        Clause::Differs(format!("{value} % {word} {preposition} {name} ({within})"))
    }

    fn change(&self) -> Option<Change> {
        let found = self.difference.as_ref().ok().filter(|found| found.excludes_zero())?;
        let name = &self.name;
        let [a, b] = self.sides;
        let words = match self.clause() {
            Clause::Differs(words) => format!("is {words}"),
            _ if found.b.0.is_infinite() => format!("has an infinite {name} (messages lost)"),
            _ if found.a.0.is_infinite() => format!("has a finite {name}; {a} lost more"),
            _ => format!("has a {name} above 0 in {b}, not in {a}"),
        };
        let share = found.relative.map_or(f64::INFINITY, |relative| relative.0.abs());
        Some(Change { share, words })
    }

    fn alike(&self, why: &str) -> Clause {
        Clause::Alike(format!("{} {} ({why})", self.preposition, self.name))
    }
}

fn infinite(name: &str, side: &str) -> String {
    format!("{name} is infinite in {side} (messages lost or not sent)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_stats::{Interval, Value};

    /// A value and its interval.
    type Found = (f64, f64, f64);

    fn difference(a: Found, b: Found) -> Result<Difference, Missing> {
        let found = |(value, low, high): Found| {
            Some((value, Some(Interval { low: Value(low), high: Value(high) })).into())
        };
        compare::figures(found(a), found(b))
    }

    fn part(name: &str, a: Found, b: Found) -> Clause {
        clause(name, difference(a, b))
    }

    fn of(name: &str, difference: Result<Difference, Missing>) -> Part<'static> {
        let (more, less) = ("slower", "faster");
        Part { sides: ["A", "B"], name: name.into(), preposition: "at", more, less, difference }
    }

    fn clause(name: &str, difference: Result<Difference, Missing>) -> Clause {
        of(name, difference).clause()
    }

    fn words(a: Found, b: Found) -> String {
        sentence("B", &[part("p50", a, b)])
    }

    const A: Found = (100.0, 100.0, 100.0);

    #[test]
    fn a_difference_is_a_sentence_with_its_interval() {
        let slower = "B is 12 % slower at p50 (9.1..15 %)";
        assert_eq!(words(A, (112.0, 109.1, 115.0)), slower);
        assert_eq!(words(A, (88.0, 85.0, 91.0)), "B is 12 % faster at p50 (9.0..15 %)");
        let alike = "no change shown at p50 (at most 20 %)";
        assert_eq!(words(A, (112.0, 92.0, 120.0)), alike);
        let open = words(A, (112.0, 92.0, f64::INFINITY));
        assert_eq!(open, "no change shown at p50 (unresolved)");
        let zero = (0.0, 0.0, 0.0);
        assert_eq!(words(zero, (1.0, 1.0, 1.0)), "p50 is zero in A and not in B");
        assert_eq!(words(zero, zero), "no change shown at p50 (zero in A)");
        let one_round = compare::figures(Some((100.0, None).into()), Some((112.0, None).into()));
        assert_eq!(sentence("B", &[clause("p50", one_round)]), "p50 has no interval");
    }

    #[test]
    fn a_difference_that_is_certain_is_said_where_an_end_or_a_figure_is_infinite() {
        let inf = f64::INFINITY;
        let at_least = "B is 100 % slower at p50 (at least 80 %)";
        assert_eq!(words(A, (200.0, 180.0, inf)), at_least);
        let lost = (inf, 500.0, inf);
        assert_eq!(words(A, lost), "p50 is infinite in B (messages lost or not sent)");
        assert_eq!(words(lost, A), "p50 is infinite in A (messages lost or not sent)");
        assert_eq!(words(lost, lost), "p50 is infinite in both (messages lost or not sent)");
        let near = words((100.0, 90.0, inf), (inf, 95.0, inf));
        assert_eq!(near, "no change shown at p50 (infinite in B)");
    }

    #[test]
    fn a_change_is_significant_and_messages_lost_are_the_largest() {
        let change = |a, b| of("p50", difference(a, b)).change();
        let slower = change(A, (112.0, 109.1, 115.0)).unwrap();
        assert_eq!(slower.words, "is 12 % slower at p50 (9.1..15 %)");
        assert!((slower.share - 0.12).abs() < 1e-9);
        assert_eq!(change(A, (112.0, 92.0, 120.0)), None);
        let lost = (f64::INFINITY, 500.0, f64::INFINITY);
        let words = |a, b| {
            let found = change(a, b).unwrap();
            assert_eq!(found.share, f64::INFINITY);
            found.words
        };
        assert_eq!(words(A, lost), "has an infinite p50 (messages lost)");
        assert_eq!(words(lost, A), "has a finite p50; A lost more");
        assert_eq!(words((0.0, 0.0, 0.0), A), "has a p50 above 0 in B, not in A");
    }

    #[test]
    fn what_two_clauses_begin_with_is_said_once() {
        let (slower, alike) = ((112.0, 109.1, 115.0), (112.0, 92.0, 120.0));
        let both = |first, second| sentence("B", &[part("p50", A, first), part("p99", A, second)]);
        let known = "B is 12 % slower at p50 (9.1..15 %), 12 % slower at p99 (9.1..15 %)";
        assert_eq!(both(slower, slower), known);
        assert_eq!(
            both(alike, alike),
            "no change shown at p50 (at most 20 %) or at p99 (at most 20 %)"
        );
        let known = "no change shown at p50 (at most 20 %), B is 12 % slower at p99 (9.1..15 %)";
        assert_eq!(both(alike, slower), known);
        let few = clause("p99", Err(Missing::TooFew));
        let known = "B is 12 % slower at p50 (9.1..15 %), p99 unknown (n too small)";
        assert_eq!(sentence("B", &[part("p50", A, slower), few]), known);
    }
}
