//! The difference of two runs in a sentence.

use super::Pair;
use crate::number::percent;
use serde::Serialize;
use wiregauge_base::units::quantile_name;
use wiregauge_stats::limit::Figure;
use wiregauge_stats::{Difference, Missing, compare};

/// What the figure that answers the runs' question says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Which runs.
    pub runs: String,
    /// `B is 12 % slower at p50 (9.1..15 %), no significant difference at p99 (±20 %)`.
    pub sentence: String,
}

/// One figure in the sentence: its name, the preposition before it, and the words for more and for
/// less of it.
struct Part {
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
    /// What follows `no significant difference`.
    Alike(String),
    /// A clause by itself.
    Other(String),
}

impl Answer {
    /// That of two runs, by the headline of the second.
    pub fn new(pair: &Pair<'_>) -> Answer {
        let figures = Figure::of_headline(&pair.b.headline);
        let clauses: Vec<Clause> =
            figures.into_iter().map(|figure| Part::new(pair, figure).clause()).collect();
        let sentence = match clauses.is_empty() {
            true => "B has no figure that answers its question".into(),
            false => sentence(&clauses),
        };
        Answer { runs: pair.label(), sentence }
    }

    /// That of two sides of which no runs belong together.
    pub(super) fn of_no_pair() -> Answer {
        let sentence = "no run of A has the same case as one of B: nothing is compared".into();
        Answer { runs: "all runs".into(), sentence }
    }
}

/// A significant difference of two runs in the figure that answers their question.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The difference as a share of A's figure; infinite where A's is 0 or either is infinite.
    pub share: f64,
    /// What follows the name of the case: `is 12 % slower at p50 (9.1..15 %)`.
    pub words: String,
}

impl Change {
    /// That of a pair in the first figure of its headline; `None` where the intervals show none.
    pub fn of_headline(pair: &Pair<'_>) -> Option<Change> {
        Part::new(pair, Figure::of_headline(&pair.b.headline).into_iter().next()?).change()
    }
}

/// The clauses in one sentence; what two begin with is said once.
fn sentence(clauses: &[Clause]) -> String {
    let mut text = String::new();
    let mut before: Option<&Clause> = None;
    for clause in clauses {
        let (joint, words) = match (before, clause) {
            (Some(Clause::Differs(_)), Clause::Differs(words)) => (", ", words),
            (Some(Clause::Alike(_)), Clause::Alike(words)) => (" or ", words),
            (None, Clause::Differs(words)) => ("B is ", words),
            (Some(_), Clause::Differs(words)) => (", B is ", words),
            (None, Clause::Alike(words)) => ("no significant difference ", words),
            (Some(_), Clause::Alike(words)) => (", no significant difference ", words),
            (None, Clause::Other(words)) => ("", words),
            (Some(_), Clause::Other(words)) => (", ", words),
        };
        text += joint;
        text += words;
        before = Some(clause);
    }
    text
}

impl Part {
    fn new(pair: &Pair<'_>, figure: Figure) -> Part {
        let difference = compare::figures(figure.estimate(pair.a), figure.estimate(pair.b));
        match figure {
            Figure::Quantile(_, p) => Part {
                name: quantile_name(p),
                preposition: "at",
                more: "slower",
                less: "faster",
                difference,
            },
            _ => Part {
                name: figure.to_string(),
                preposition: "in",
                more: "higher",
                less: "lower",
                difference,
            },
        }
    }

    fn clause(&self) -> Clause {
        let name = &self.name;
        let found = match &self.difference {
            Ok(found) => found,
            Err(Missing::TooFew) => return Clause::Other(format!("{name} unknown (n too small)")),
            Err(Missing::BothInfinite) => return Clause::Other(infinite(name, "both")),
        };
        let is_certain = found.excludes_zero();
        // A latency is infinite where more messages were lost than lie beyond the quantile.
        let lost = [(found.a, "A"), (found.b, "B")].into_iter().find(|(v, _)| v.0.is_infinite());
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
                true => Clause::Other(format!("{name} is zero in A and not in B")),
                false => self.alike("zero in A"),
            };
        };
        let (low, high) = (interval.low.0, interval.high.0);
        if !is_certain {
            let half = (relative.0 - low).max(high - relative.0);
            return match half.is_finite() {
                true => self.alike(&format!("±{} %", percent(half))),
                false => self.alike("unresolved"),
            };
        }
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
        let words = match self.clause() {
            Clause::Differs(words) => format!("is {words}"),
            _ if found.b.0.is_infinite() => format!("has an infinite {name} (messages lost)"),
            _ if found.a.0.is_infinite() => format!("has a finite {name}; the baseline lost more"),
            _ => format!("has a {name} above 0, the baseline has not"),
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

    fn of(name: &str, difference: Result<Difference, Missing>) -> Part {
        let (more, less) = ("slower", "faster");
        Part { name: name.into(), preposition: "at", more, less, difference }
    }

    fn clause(name: &str, difference: Result<Difference, Missing>) -> Clause {
        of(name, difference).clause()
    }

    fn words(a: Found, b: Found) -> String {
        sentence(&[part("p50", a, b)])
    }

    const A: Found = (100.0, 100.0, 100.0);

    #[test]
    fn a_difference_is_a_sentence_with_its_interval() {
        let slower = "B is 12 % slower at p50 (9.1..15 %)";
        assert_eq!(words(A, (112.0, 109.1, 115.0)), slower);
        assert_eq!(words(A, (88.0, 85.0, 91.0)), "B is 12 % faster at p50 (9.0..15 %)");
        let alike = "no significant difference at p50 (±20 %)";
        assert_eq!(words(A, (112.0, 92.0, 120.0)), alike);
        let open = words(A, (112.0, 92.0, f64::INFINITY));
        assert_eq!(open, "no significant difference at p50 (unresolved)");
        let zero = (0.0, 0.0, 0.0);
        assert_eq!(words(zero, (1.0, 1.0, 1.0)), "p50 is zero in A and not in B");
        assert_eq!(words(zero, zero), "no significant difference at p50 (zero in A)");
        let one_round = compare::figures(Some((100.0, None).into()), Some((112.0, None).into()));
        assert_eq!(sentence(&[clause("p50", one_round)]), "p50 has no interval");
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
        assert_eq!(near, "no significant difference at p50 (infinite in B)");
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
        assert_eq!(words(lost, A), "has a finite p50; the baseline lost more");
        assert_eq!(words((0.0, 0.0, 0.0), A), "has a p50 above 0, the baseline has not");
    }

    #[test]
    fn what_two_clauses_begin_with_is_said_once() {
        let (slower, alike) = ((112.0, 109.1, 115.0), (112.0, 92.0, 120.0));
        let both = |first, second| sentence(&[part("p50", A, first), part("p99", A, second)]);
        let known = "B is 12 % slower at p50 (9.1..15 %), 12 % slower at p99 (9.1..15 %)";
        assert_eq!(both(slower, slower), known);
        assert_eq!(
            both(alike, alike),
            "no significant difference at p50 (±20 %) or at p99 (±20 %)"
        );
        let known = "no significant difference at p50 (±20 %), B is 12 % slower at p99 (9.1..15 %)";
        assert_eq!(both(alike, slower), known);
        let few = clause("p99", Err(Missing::TooFew));
        let known = "B is 12 % slower at p50 (9.1..15 %), p99 unknown (n too small)";
        assert_eq!(sentence(&[part("p50", A, slower), few]), known);
    }
}
