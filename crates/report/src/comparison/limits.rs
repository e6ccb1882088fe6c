//! What limits say of pairs of runs, in a sentence each.

use super::selection::{Counterpart, Matches};
use crate::number::{PERCENT, percent, signed, trimmed};
use crate::scale::Scale;
use serde::Serialize;
use wiregauge_figures::record::schema::{Record, Run, Unavailable};
use wiregauge_stats::limit::{Bound, Figures, Limit};
use wiregauge_stats::verdict::Needed;
use wiregauge_stats::{Interval, Judgement, Verdict};

/// A limit as it was judged.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedLimit {
    /// Of which runs.
    pub runs: String,
    /// The limit as typed.
    pub limit: String,
    /// What the runs say.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// About how long a run with the needed rounds takes.
    pub needed_seconds: Option<f64>,
    /// All of this in a sentence.
    pub sentence: String,
}

impl JudgedLimit {
    /// One that cannot be judged.
    fn open(runs: &str, limit: &str, reason: &str) -> JudgedLimit {
        let judgement = Judgement::unknown(reason.into());
        let sentence = no_interval(&judgement);
        let (runs, limit) = (runs.into(), limit.into());
        JudgedLimit { runs, limit, judgement, needed_seconds: None, sentence }
    }

    /// One that no run can be judged by.
    pub(super) fn unknown(limit: &str, reason: &str) -> JudgedLimit {
        JudgedLimit::open("all runs", limit, reason)
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }
}

/// A limit and what it is judged by.
struct Judge<'a> {
    text: &'a str,
    limit: &'a Limit,
    /// The record of B.
    record: &'a Record,
}

/// Each limit for the runs that measured its figure: one that compares for each pair, one of the
/// figure itself for each run of B. What cannot be judged is inconclusive, since a gate that looks
/// at nothing must not pass: a run without a counterpart under a limit that compares, a run of B
/// that lacks a figure that its counterpart has, a transport that could not be measured under a
/// limit of the figure itself, and a limit whose figure no run measured.
pub(super) fn judged(
    limits: &[(String, Limit)],
    matches: &Matches<'_>,
    record: &Record,
    unavailable: &[Unavailable],
) -> Vec<JudgedLimit> {
    let of_limit = |(text, limit): &(String, Limit)| {
        let judge = Judge { text, limit, record };
        let mut judged = match limit.compares() {
            true => judge.pairs(matches),
            false => [judge.runs(matches), judge.missing(unavailable)].concat(),
        };
        if judged.is_empty() {
            let reason = format!("no run measured {}", limit.figure.metric());
            judged.push(JudgedLimit::unknown(text, &reason));
        }
        judged
    };
    limits.iter().flat_map(of_limit).collect()
}

impl Judge<'_> {
    fn pairs(&self, matches: &Matches<'_>) -> Vec<JudgedLimit> {
        let is_measured = |run: &Run| self.limit.figure.is_measured(run);
        let pairs = matches.pairs.iter().filter(|pair| is_measured(pair.a) || is_measured(pair.b));
        let pairs = pairs.map(|pair| self.judge(pair.label(), Some(pair.a), pair.b));
        let others = [Counterpart::B, Counterpart::A];
        let alone = matches.alone.iter().zip(others).flat_map(|(runs, other)| {
            let runs = runs.iter().filter(|run| is_measured(run));
            runs.map(move |run| {
                let reason = matches.reason_alone(run, other);
                JudgedLimit::open(&run.label, self.text, &reason)
            })
        });
        pairs.chain(alone).collect()
    }

    fn runs(&self, matches: &Matches<'_>) -> Vec<JudgedLimit> {
        let figure = self.limit.figure;
        let is_wanted = |run: &&&Run| {
            let mut others = matches.pairs.iter().filter(|pair| pair.b.index == run.index);
            figure.is_measured(**run) || others.any(|pair| figure.is_measured(pair.a))
        };
        let runs = matches.judged.iter().filter(is_wanted);
        runs.map(|run| self.judge(run.label.clone(), None, run)).collect()
    }

    /// The transports of which nothing is known.
    fn missing(&self, unavailable: &[Unavailable]) -> Vec<JudgedLimit> {
        let open = |one: &Unavailable| {
            let reason = format!("not measured: {}", one.reason);
            JudgedLimit::open(&one.transport, self.text, &reason)
        };
        unavailable.iter().map(open).collect()
    }

    fn judge(&self, runs: String, a: Option<&Run>, b: &Run) -> JudgedLimit {
        let (limit, figure) = (self.limit, self.limit.figure);
        let judgement = limit.judge(a.map(|run| run as &dyn Figures), b);
        let done = a.into_iter().chain([b]).map(|run| figure.rounds(run)).min().unwrap_or(0);
        let needed_seconds = match judgement.needed {
            Some(Needed::Rounds(rounds)) => {
                let took = self.record.seconds();
                took.map(|took| took * f64::from(rounds) / f64::from(done))
            }
            _ => None,
        };
        let sentence = sentence(limit, &judgement, needed_seconds);
        JudgedLimit { runs, limit: self.text.into(), judgement, needed_seconds, sentence }
    }
}

fn sentence(limit: &Limit, judgement: &Judgement, needed_seconds: Option<f64>) -> String {
    let verdict = judgement.verdict.name();
    let (Some(measured), Some(Interval { low, high })) = (judgement.measured, judgement.interval)
    else {
        return no_interval(judgement);
    };
    let shown = |value: f64| shown(limit, value);
    let mut text =
        format!("{verdict}: {} ({} to {})", shown(measured.0), shown(low.0), shown(high.0));
    if judgement.verdict != Verdict::Inconclusive {
        return text;
    }
    if limit.figure.is_extreme() {
        let advice = "limit a quantile, or use --strict";
        return format!("{text}; more rounds need not settle {}: {advice}", limit.figure);
    }
    match judgement.smallest_change.filter(|change| change.0.is_finite()) {
        Some(change) => {
            text += &format!("; these runs cannot show a change below {}", size(limit, change.0));
        }
        None => text += "; these runs cannot show any change",
    }
    let took = needed_seconds.map_or_else(String::new, |seconds| match seconds < 120.0 {
        true => format!(" (about {} s a run)", seconds.ceil()),
        false => format!(" (about {} min a run)", (seconds / 60.0).ceil()),
    });
    match judgement.needed {
        Some(Needed::Rounds(rounds)) => {
            text += &format!("; about {rounds} rounds would decide{took}");
        }
        Some(Needed::MoreThan(most)) => {
            text += &format!("; more than {most} rounds would be needed: make rounds longer");
        }
        Some(Needed::Never) => text += "; the estimate equals the limit: more rounds cannot decide",
        None => {}
    }
    text
}

fn no_interval(judgement: &Judgement) -> String {
    let why = judgement.reason.as_deref().unwrap_or("nothing was measured");
    format!("{}: {why}", judgement.verdict.name())
}

/// A change or a figure, in the terms in which a limit is written.
fn shown(limit: &Limit, value: f64) -> String {
    match limit.bound {
        Bound::Absolute(_) => Scale::of(limit.figure.metric()).text(value),
        _ => signed(size(limit, value.abs()), value),
    }
}

/// The size of a change, without a sign.
fn size(limit: &Limit, value: f64) -> String {
    match (limit.bound, Scale::of(limit.figure.metric())) {
        (Bound::Relative(_), _) => format!("{} %", percent(value)),
        // A change of 1 % of a share would be read as a relative one.
        (_, Scale::Share) => format!("{} percentage points", trimmed(value * PERCENT)),
        (_, scale) => scale.text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_share_is_not_read_as_a_relative_one() {
        let limit = |typed: &str| typed.parse::<Limit>().unwrap();
        assert_eq!(shown(&limit("missed>1%"), 0.02), "2 %");
        assert_eq!(shown(&limit("missed>+0.01"), 0.02), "+2 percentage points");
        assert_eq!(shown(&limit("missed>+10%"), 0.02), "+2.0 %");
        assert_eq!(size(&limit("missed>1%"), 0.02), "2 percentage points");
        assert_eq!(shown(&limit("cpu_client>200ns"), 250.0), "250.0 ns");
        assert_eq!(shown(&limit("slowdown>+0.5"), -0.25), "-0.25×");
    }
}
