//! What two runs say of a limit: that it held, that it was exceeded, or that it is inconclusive.

use super::compare::difference;
use super::limit::{Bound, Figures, Limit, Side};
use super::student::t_975;
use super::{Interval, Value};
use serde::Serialize;
use wiregauge_plan::request::MOST_ROUNDS;

wiregauge_base::options::named_enum! {
    /// What is known of a limit.
    pub enum Verdict {
        /// The whole 95 % interval keeps the limit.
        Held = "held",
        /// The whole 95 % interval lies beyond it.
        Exceeded = "exceeded",
        /// Neither, or there is no interval.
        Inconclusive = "inconclusive",
    }
}

/// A limit as two runs judge it. Relative changes are shares (0.1 is 10 %), all else is in the unit
/// of the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The change that was held against the bound, or the figure itself where the bound is one.
    pub measured: Option<Value>,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The larger half of the interval: a smaller change could not have been shown.
    pub smallest_change: Option<Value>,
    /// Rounds of each run that would have decided; `None`: the verdict is clear, nothing is known
    /// of the spread of rounds, or the figure is a maximum or a minimum, whose interval does not
    /// narrow with more rounds.
    pub needed: Option<Needed>,
    /// Why there is no interval, a sentence.
    pub reason: Option<String>,
}

/// How many rounds of each run it takes until an interval has left a limit behind, if the estimate
/// stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needed {
    /// So many.
    Rounds(u32),
    /// More than a run may have.
    MoreThan(u32),
    /// The estimate lies on the limit: no number of rounds.
    Never,
}

/// What is held against a bound.
struct Measured {
    value: f64,
    interval: Interval,
    bound: f64,
    /// Whether the three are relative changes, whose intervals are those of logarithms.
    is_relative: bool,
    /// Runs whose rounds add degrees of freedom.
    runs: u32,
}

impl Limit {
    /// What `b` says of the limit, against `a` where it compares.
    ///
    /// It is exceeded where the whole 95 % interval lies beyond the bound, held where the whole
    /// interval does not, and inconclusive else: of the difference of the two runs for `+10%` and
    /// `+2us`, of the figure for `100us`. So a limit on which the true value lies exactly is called
    /// exceeded in at most one case of 40 and held in at most one of 40, however long the runs are,
    /// and no run is called good because it was too short. The true value of a maximum is here the
    /// one that half of all rounds exceed ([`super::limit::Figure::estimate`]).
    pub fn judge(&self, a: Option<&dyn Figures>, b: &dyn Figures) -> Judgement {
        let measured = match self.measured(a, b) {
            Ok(measured) => measured,
            Err(reason) => return Judgement::unknown(reason),
        };
        let Interval { low, high } = measured.interval;
        let is_beyond = [low.0, high.0].map(|end| self.side.is_beyond(end, measured.bound));
        let verdict = match is_beyond {
            [true, true] => Verdict::Exceeded,
            [false, false] => Verdict::Held,
            _ => Verdict::Inconclusive,
        };
        let rounds = a.into_iter().chain([b]).map(|run| self.figure.rounds(run)).min();
        let may_narrow = verdict == Verdict::Inconclusive && !self.figure.is_extreme();
        let half = (measured.value - low.0).max(high.0 - measured.value);
        Judgement {
            verdict,
            measured: Some(Value(measured.value)),
            interval: Some(measured.interval),
            // Of a figure that is infinite both halves are no numbers.
            smallest_change: (!half.is_nan()).then_some(Value(half)),
            needed: rounds.filter(|_| may_narrow).and_then(|done| measured.needed(self.side, done)),
            reason: None,
        }
    }

    /// What is held against the bound, or why there is no such thing.
    fn measured(&self, a: Option<&dyn Figures>, b: &dyn Figures) -> Result<Measured, String> {
        let figure = self.figure;
        let no_interval = || {
            let rounds = a.into_iter().chain([b]).map(|run| figure.rounds(run)).min();
            match figure.least_rounds() {
                // An offered rate is chosen and not measured.
                least if rounds.unwrap_or(0) >= least => format!("{figure} has no interval"),
                least => format!("{figure} has no interval: measure {least} rounds or more"),
            }
        };
        let of_b =
            figure.estimate(b).ok_or_else(|| format!("{figure} has no value: see its count"))?;
        if let Bound::Absolute(bound) = self.bound {
            let interval = of_b.interval.ok_or_else(no_interval)?;
            let value = of_b.value;
            return Ok(Measured { value, interval, bound, is_relative: false, runs: 1 });
        }
        let base = a.and_then(|a| figure.estimate(a));
        let base = base.ok_or_else(|| format!("{figure} has no value in the run compared with"))?;
        let found =
            difference(base, of_b).ok_or_else(|| format!("{figure} is infinite in both runs"))?;
        let runs = if base.scatter.is_some() && of_b.scatter.is_some() { 2 } else { 1 };
        let (value, interval, bound, is_relative) = match self.bound {
            Bound::Relative(bound) => {
                let relative = found.relative.ok_or_else(|| {
                    let a = found.a.0;
                    format!("{figure} of {a} has no relative change: limit the difference")
                })?;
                (relative, found.relative_interval, bound, true)
            }
            Bound::Difference(bound) | Bound::Absolute(bound) => {
                (found.absolute, found.interval, bound, false)
            }
        };
        let interval = interval.ok_or_else(no_interval)?;
        Ok(Measured { value: value.0, interval, bound, is_relative, runs })
    }
}

impl Measured {
    /// Finds the fewest rounds m for which the interval leaves the bound behind. That of n rounds
    /// in each of k runs reaches t(k(n-1)) s/sqrt(n) to each side, so m is enough if
    /// t(k(m-1))/t(k(n-1)) sqrt(n/m) times the half of the interval that crosses the bound is no
    /// longer than the way from the estimate to the bound. On logarithms where the interval is one
    /// of logarithms. A plan and no promise: with m rounds half of all such runs are decided.
    fn needed(&self, side: Side, done: u32) -> Option<Needed> {
        let scale = |x: f64| if self.is_relative { x.max(-1.0).ln_1p() } else { x };
        let crossing = match side.is_beyond(self.value, self.bound) == (side == Side::Above) {
            true => self.interval.low,
            false => self.interval.high,
        };
        let half = (scale(self.value) - scale(crossing.0)).abs();
        let distance = (scale(self.value) - scale(self.bound)).abs();
        let student = |rounds: u32| t_975(f64::from(self.runs) * (f64::from(rounds) - 1.0));
        let now = student(done)?;
        if distance == 0.0 {
            return Some(Needed::Never);
        }
        let reach = |rounds: u32| {
            let narrower = (f64::from(done) / f64::from(rounds)).sqrt();
            Some(half * narrower * student(rounds)? / now)
        };
        let is_enough = |rounds: &u32| reach(*rounds).is_some_and(|reach| reach <= distance);
        let enough = (done + 1..=MOST_ROUNDS).find(is_enough);
        Some(enough.map_or(Needed::MoreThan(MOST_ROUNDS), Needed::Rounds))
    }
}

impl Judgement {
    /// That of a limit of which nothing is known.
    pub fn unknown(reason: String) -> Judgement {
        Judgement {
            verdict: Verdict::Inconclusive,
            measured: None,
            interval: None,
            smallest_change: None,
            needed: None,
            reason: Some(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{normal, random};
    use super::super::rate::{Delivered, rate};
    use super::super::{Basis, Metric, Rate, RateMetric, Summary, summarize};
    use super::*;

    struct One(Summary, Rate);

    impl Figures for One {
        fn summary(&self, metric: Metric) -> Option<&Summary> {
            (metric == Metric::Rtt).then_some(&self.0)
        }

        fn rate(&self, metric: RateMetric) -> Option<&Rate> {
            (metric == RateMetric::Bandwidth).then_some(&self.1)
        }
    }

    /// A run with round trips around `mean` ns and `bandwidth` MB/s.
    fn run(seed: u64, mean: f64, bandwidth: f64) -> One {
        let mut chance = random(seed);
        let rounds: Vec<Vec<f64>> =
            (0..6).map(|_| normal(&mut chance, 2_000, mean, 50.0)).collect();
        let noise = normal(&mut chance, 6, bandwidth * 1e6, bandwidth * 1e4);
        let delivered: Vec<Delivered> =
            noise.iter().map(|work| Delivered { work: *work, seconds: 1.0 }).collect();
        One(summarize(&rounds, 1e4), rate(&delivered))
    }

    /// A run whose bandwidth and its interval are known, in B/s, of six rounds.
    fn known(value: f64, low: f64, high: f64) -> One {
        let interval = Some(Interval { low: Value(low), high: Value(high) });
        One(
            summarize(&[[1.0]], 1.0),
            Rate { value, interval, basis: Basis::Pooled, rounds: vec![value; 6] },
        )
    }

    fn judge(limit: &str, a: &One, b: &One) -> Judgement {
        limit.parse::<Limit>().unwrap().judge(Some(a), b)
    }

    fn verdict(limit: &str, a: &One, b: &One) -> Verdict {
        judge(limit, a, b).verdict
    }

    #[test]
    fn the_whole_interval_decides() {
        let a = known(100.0, 100.0, 100.0);
        let b = |low, high| known(112.0, low, high);
        let cases = [
            ("bandwidth>+10%", 111.0, 113.0, Verdict::Exceeded),
            ("bandwidth>+10%", 109.0, 115.0, Verdict::Inconclusive),
            ("bandwidth>+20%", 109.0, 115.0, Verdict::Held),
            ("bandwidth>+12B/s", 111.0, 113.0, Verdict::Inconclusive),
            ("bandwidth>+14B/s", 110.0, 114.0, Verdict::Held),
            ("bandwidth>+9B/s", 110.0, 114.0, Verdict::Exceeded),
            ("bandwidth<-10%", 111.0, 113.0, Verdict::Held),
            ("bandwidth>110B/s", 111.0, 113.0, Verdict::Exceeded),
            ("bandwidth>110B/s", 109.0, 113.0, Verdict::Inconclusive),
            ("bandwidth>113B/s", 109.0, 113.0, Verdict::Held),
            ("bandwidth<115B/s", 111.0, 113.0, Verdict::Exceeded),
            ("bandwidth<111B/s", 111.0, 113.0, Verdict::Held),
            ("bandwidth>+1000%", 1.0, f64::INFINITY, Verdict::Inconclusive),
        ];
        for (limit, low, high, expected) in cases {
            assert_eq!(verdict(limit, &a, &b(low, high)), expected, "{limit} {low}..{high}");
        }
        let slower = known(88.0, 87.0, 89.0);
        assert_eq!(verdict("bandwidth<-10%", &a, &slower), Verdict::Exceeded);
        assert_eq!(verdict("bandwidth<-12%", &a, &slower), Verdict::Inconclusive);
        assert_eq!(verdict("bandwidth<-15%", &a, &slower), Verdict::Held);
    }

    #[test]
    fn a_change_of_which_nothing_is_known_is_not_held() {
        // +641 %; on logarithms the half is 8.912 and the way to the bound 1.907: 0.2140 of it, and
        // sqrt(6/79) t(78)/t(5) is 0.2134.
        let (a, b) = (known(10.0, 0.001, 12.0), known(74.1, 0.01, 1e5));
        let found = judge("bandwidth>+10%", &a, &b);
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert!(found.smallest_change.unwrap().0 > 100.0, "{found:?}");
        assert_eq!(found.needed, Some(Needed::Rounds(79)), "{found:?}");
    }

    #[test]
    fn the_smallest_change_is_the_larger_half_of_the_interval() {
        let (a, b) = (known(100.0, 100.0, 100.0), known(112.0, 109.0, 116.0));
        assert_eq!(judge("bandwidth>+10B/s", &a, &b).smallest_change, Some(Value(4.0)));
        assert_eq!(judge("bandwidth>110B/s", &a, &b).smallest_change, Some(Value(4.0)));
        let infinite = known(f64::INFINITY, f64::INFINITY, f64::INFINITY);
        let found = judge("bandwidth>110B/s", &a, &infinite);
        assert_eq!((found.verdict, found.smallest_change), (Verdict::Exceeded, None));
    }

    #[test]
    fn the_run_of_fewer_rounds_decides_how_many_are_needed() {
        let of_rounds = |mut run: One, rounds: usize| {
            run.1.rounds = vec![run.1.value; rounds];
            run
        };
        let base = || known(100.0, 100.0, 100.0);
        // The half that crosses is 6 and the way to the bound 1.5. t of 1, 2 and 3 is 12.706, 4.303
        // and 3.182: of 3 rounds sqrt(2/3) 4.303/12.706 is 0.277 and of 4 sqrt(2/4) 3.182/12.706 is
        // 0.177.
        let two = || of_rounds(known(106.0, 100.0, 112.0), 2);
        let needed = |a: &One, b: &One| judge("bandwidth>+4.5B/s", a, b).needed;
        assert_eq!(needed(&base(), &two()), Some(Needed::Rounds(4)));
        assert_eq!(needed(&of_rounds(base(), 2), &of_rounds(two(), 6)), Some(Needed::Rounds(4)));
        // As long as the way: more than the rounds there are, one at least.
        let near = known(106.0, 103.0, 109.0);
        assert_eq!(judge("bandwidth>+3B/s", &base(), &near).needed, Some(Needed::Rounds(7)));
    }

    #[test]
    fn rounds_that_would_decide_follow_from_students_t() {
        let a = known(100.0, 100.0, 100.0);
        let needed = |limit: &str, b: &One| judge(limit, &a, b).needed;
        // The half that crosses is twice the way, so sqrt(6/n) t(n-1)/t(5) must be a half: of 16
        // rounds it is 0.508, of 17 it is 0.490.
        let half_the_way = known(106.0, 100.0, 112.0);
        assert_eq!(needed("bandwidth>+3B/s", &half_the_way), Some(Needed::Rounds(17)));
        assert_eq!(needed("bandwidth>+9B/s", &half_the_way), Some(Needed::Rounds(17)));
        let lopsided = known(106.0, 100.0, 1e6);
        assert_eq!(needed("bandwidth>+3B/s", &lopsided), Some(Needed::Rounds(17)), "low decides");
        let fallen = known(94.0, 88.0, 100.0);
        assert_eq!(needed("bandwidth<-3B/s", &fallen), Some(Needed::Rounds(17)));
        assert_eq!(needed("bandwidth<-9B/s", &fallen), Some(Needed::Rounds(17)));
        assert_eq!(needed("bandwidth>+6B/s", &half_the_way), Some(Needed::Never));
        let near = Some(Needed::MoreThan(MOST_ROUNDS));
        assert_eq!(needed("bandwidth>+6.01B/s", &half_the_way), near);
        assert_eq!(needed("bandwidth>+13B/s", &half_the_way), None, "it held");
    }

    #[test]
    fn a_regression_beyond_the_limit_exceeds_it_and_one_within_does_not() {
        let (a, slower, little) = (run(1, 1e3, 100.0), run(2, 1.2e3, 80.0), run(3, 1.05e3, 97.0));
        let (held, exceeded) = (Verdict::Held, Verdict::Exceeded);
        assert_eq!(verdict("rtt.p50>+10%", &a, &slower), exceeded);
        assert_eq!(verdict("rtt.p50>+10%", &a, &little), held, "significant but within");
        assert_eq!(verdict("rtt.p50<-10%", &a, &slower), held);
        assert_eq!(verdict("rtt.p50<-10%", &slower, &a), exceeded);
        assert_eq!(verdict("rtt.p99>+100ns", &a, &slower), exceeded);
        assert_eq!(verdict("bandwidth<-5%", &a, &slower), exceeded);
        assert_eq!(verdict("rtt.max>1us", &a, &a), exceeded);
        assert_eq!(verdict("rtt.max>1s", &a, &a), held);
    }

    #[test]
    fn chance_does_not_exceed_a_limit_of_nothing() {
        let failed = (0..400).filter(|seed| {
            let (a, b) = (run(2 * seed, 1e3, 1.0), run(2 * seed + 1, 1e3, 1.0));
            verdict("rtt.p50>+0%", &a, &b) == Verdict::Exceeded
        });
        let failed = failed.count();
        assert!((2..=18).contains(&failed), "one in 40, with a standard deviation of 3: {failed}");
    }

    /// A run of so many rounds of one sample each, around 1000 ns: what half of all rounds exceed
    /// is 1000 ns, and what half fall below.
    fn rounds(seed: u64, rounds: usize) -> One {
        let single = normal(&mut random(seed), rounds, 1e3, 50.0).into_iter().map(|ns| [ns]);
        One(summarize(&single.collect::<Vec<_>>(), 1e4), rate(&[]))
    }

    #[test]
    fn chance_exceeds_a_limit_of_an_extreme_once_in_forty_however_few_the_rounds() {
        for count in 2..=9 {
            let pair = |seed: u64| [rounds(2 * seed, count), rounds(2 * seed + 1, count)];
            let pairs: Vec<[One; 2]> = (0..400).map(pair).collect();
            for limit in ["rtt.max>1us", "rtt.max>+0%", "rtt.min>1us", "rtt.min<-0%"] {
                let exceeded =
                    pairs.iter().filter(|[a, b]| verdict(limit, a, b) == Verdict::Exceeded);
                // 10 of 400, and two standard errors.
                assert!(exceeded.count() <= 16, "{limit} of {count} rounds");
            }
        }
    }

    #[test]
    fn more_rounds_are_not_said_to_decide_on_an_extreme() {
        let (a, b) = (rounds(1, 8), rounds(2, 8));
        for limit in ["rtt.max>1us", "rtt.max>+0%", "rtt.min<1us", "rtt.min<-0%"] {
            let found = judge(limit, &a, &b);
            assert_eq!((found.verdict, found.needed), (Verdict::Inconclusive, None), "{limit}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_inconclusive_with_a_reason() {
        let (a, mut b) = (run(1, 1e3, 1.0), run(2, 1e3, 1.0));
        let reason = |found: Judgement| {
            assert_eq!((found.verdict, found.measured), (Verdict::Inconclusive, None));
            found.reason.unwrap()
        };
        assert!(reason(judge("rtt.p99.99>+10%", &a, &b)).contains("see its count"));
        assert!(reason(judge("one_way.p50>1us", &a, &b)).contains("see its count"));
        let alone = "rtt.p50>+10%".parse::<Limit>().unwrap().judge(None, &b);
        assert!(reason(alone).contains("in the run compared with"));
        b.0 = summarize(&[normal(&mut random(1), 500, 9e3, 1.0)], 1.0);
        let few = "rtt.max has no interval: measure 6 rounds or more";
        assert_eq!(reason(judge("rtt.max>+10%", &a, &b)), few);
        assert_eq!(reason(judge("rtt.max>1us", &a, &b)), few);
        assert_eq!(reason(judge("rtt.max>1us", &a, &rounds(1, 5))), few);
        let bandwidth = "bandwidth has no interval: measure 2 rounds or more";
        b.1 = rate(&[Delivered { work: 1.0, seconds: 1.0 }]);
        assert_eq!(reason(judge("bandwidth<1B/s", &a, &b)), bandwidth);
        assert_eq!(reason(judge("bandwidth<-1B/s", &a, &b)), bandwidth, "one round of B");
        assert_eq!(reason(judge("bandwidth<-1B/s", &b, &a)), bandwidth, "one round of A");
        b.1.rounds = vec![1.0; 2];
        assert_eq!(reason(judge("bandwidth<1B/s", &a, &b)), "bandwidth has no interval");
    }
}
