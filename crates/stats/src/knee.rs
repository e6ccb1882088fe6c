//! The knee of a curve over load, and the highest rate that keeps a bound. Pure.

use super::compare::{Estimate, difference};
use super::{Interval, Quantile, Rate, Summary, Value};
use wiregauge_plan::{Schedule, Slo};

/// Of what was offered, the share that must be achieved: else the arrivals were not those that were
/// asked for.
const ACHIEVED: f64 = 0.99;

/// Returns true if fewer were sent, or answered, than were offered in the same time. One
/// of the messages may be on either side of the end of that time.
pub fn falls_short(offered: f64, achieved: f64, messages: u64) -> bool {
    achieved < (ACHIEVED - 1.0 / messages.max(1) as f64) * offered
}

/// The quantile of a curve where no bound names one.
pub const BOUNDED: f64 = 0.99;
/// Fewer points show no knee.
const LEAST_POINTS: usize = 3;
/// A median response that is this many times the quietest is beyond the knee: nearly all of it is
/// waiting.
const BEYOND: f64 = 10.0;

wiregauge_base::options::named_enum! {
    /// How the rates that were tried bracket the one that a sweep looked for.
    pub enum Bracket {
        /// Between the rates tried below and above it.
        Within = "within",
        /// At the rate or above: no higher rate that was tried says anything against it.
        AtLeast = "at_least",
        /// At the rate or below, where no lower one was tried.
        AtMost = "at_most",
        /// No rate that was tried stands out.
        Unresolved = "unresolved",
    }
}

/// The rates that cannot be told from the one with the highest power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knee {
    /// The position of the point with the highest power among those tried.
    pub best: usize,
    /// The position of the lowest rate of them.
    pub lowest: usize,
    /// The position of the highest rate of them.
    pub highest: usize,
    /// The place of the knee relative to the lowest and the highest.
    pub bracket: Bracket,
}

/// A rate that a sweep looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The position of its point among those tried.
    pub at: usize,
    /// Where the rate is relative to that point's.
    pub bracket: Bracket,
}

/// What became of the requests of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Posted.
    pub sent: u64,
    /// Intended and never posted.
    pub unsent: u64,
    /// Answered.
    pub answered: u64,
    /// Times that one was due and waited for a buffer.
    pub held_up: u64,
}

/// Whether a point keeps a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Yes,
    No,
    /// The quantile is below the bound, and its interval reaches above it.
    Maybe,
    /// The point says nothing of the server, or the quantile is above the bound and its interval
    /// reaches below it.
    Unknown,
}

/// What was measured at one offered rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Messages per second that were intended.
    pub offered: f64,
    /// Messages per second that were sent.
    pub achieved: Estimate,
    /// Whether less than was offered was sent, or was answered.
    pub falls_short: bool,
    /// The median response in ns; `None` where nothing is known of it.
    pub p50: Option<Estimate>,
    /// Upper bound in ns of the quantile that has a bound; infinite where the samples give none,
    /// NaN where nothing is known of it.
    pub bounded_ns: f64,
    /// Lower bound of that quantile in ns; 0 where the samples give none.
    pub bounded_from_ns: f64,
    /// That quantile in ns; NaN where it has no value.
    pub bounded_value_ns: f64,
    /// Whether the generator itself was the limit: the point says nothing of the server.
    pub generator_bound: bool,
}

impl Point {
    /// `None` without a schedule. The rates are those of what was offered, sent and answered;
    /// `bounded` is the quantile that has a bound.
    pub fn new(
        schedule: Schedule,
        [offered, achieved, answers]: [Option<&Rate>; 3],
        requests: Requests,
        response: Option<&Summary>,
        bounded: f64,
    ) -> Option<Point> {
        let Requests { sent, unsent, answered, held_up } = requests;
        let unknown = Estimate::from((f64::NAN, None));
        let achieved = achieved.and_then(Rate::estimate).unwrap_or(unknown);
        let asked = schedule.rate()?.0;
        let intended = offered.map_or(asked, |rate| rate.value);
        let is_sent_late = falls_short(intended, achieved.value, sent);
        let is_answered = answered as f64 >= ACHIEVED * (sent + unsent) as f64;
        // Answers that come later than they are asked for pile up.
        let fastest = answers.and_then(|rate| rate.interval).map(|interval| interval.high.0);
        let piles_up = fastest.is_some_and(|rate| falls_short(intended, rate, answered));
        // Of a point without an answer the response says that, and not how slow the server is.
        let response = response.filter(|_| answered > 0);
        let of_bound = response.and_then(|summary| summary.quantile(bounded));
        let from = of_bound.and_then(|quantile| quantile.interval);
        let value = of_bound.and_then(|quantile| quantile.value);
        Some(Point {
            offered: asked,
            achieved,
            falls_short: is_sent_late || !is_answered || piles_up,
            p50: response.and_then(|summary| summary.estimate(0.5)),
            bounded_ns: of_bound.map_or(f64::NAN, upper),
            bounded_from_ns: from.map_or(0.0, |interval| interval.low.0),
            bounded_value_ns: value.map_or(f64::NAN, |value| value.0),
            generator_bound: is_sent_late && held_up == 0,
        })
    }

    /// Returns Kleinrock's power: what is achieved over what it takes. The knee is where it is
    /// highest (L. Kleinrock, Power and deterministic rules of thumb, ICC 1979). `None` where it is
    /// not known.
    fn power(&self) -> Option<Estimate> {
        let ratio = difference(self.p50?, self.achieved)?;
        let interval = ratio.relative_interval.map(|Interval { low, high }| Interval {
            low: Value(low.0 + 1.0),
            high: Value(high.0 + 1.0),
        });
        Some((ratio.relative?.0 + 1.0, interval).into())
    }

    /// An interval that has the limit in it shows neither that it is kept nor that it is broken.
    fn keeps(&self, slo: Slo) -> Keeps {
        let limit_ns = slo.below.0 as f64;
        if self.bounded_ns.is_nan() || self.generator_bound {
            Keeps::Unknown
        } else if self.falls_short || self.bounded_from_ns >= limit_ns {
            Keeps::No
        } else if self.bounded_ns < limit_ns {
            Keeps::Yes
        } else if self.bounded_value_ns < limit_ns {
            Keeps::Maybe
        } else {
            Keeps::Unknown
        }
    }

    /// Whether it says something of the server: it carried the load, or failed to.
    fn is_known(&self) -> bool {
        !self.generator_bound && self.p50.is_some()
    }
}

/// The upper end of a quantile's interval; NaN where the quantile has no value.
fn upper(quantile: &Quantile) -> f64 {
    let bound = quantile.interval.map_or(f64::INFINITY, |interval| interval.high.0);
    quantile.value.map_or(f64::NAN, |_| bound)
}

/// The positions of the points, by rising rate.
fn by_rate(points: &[Point]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*a].offered.total_cmp(&points[*b].offered));
    order
}

/// Returns the knee among points: the rates whose power is not shown to be below the highest. Where
/// they reach to the lowest rate that says anything it is there or below, where they reach to the
/// highest there or above, and unresolved where they do both. Fewer than three points show none.
pub fn knee(points: &[Point]) -> Option<Knee> {
    let order = by_rate(points);
    let known: Vec<usize> = order.into_iter().filter(|at| points[*at].is_known()).collect();
    let p50 = |at: &usize| points[*at].p50.map_or(f64::INFINITY, |p50| p50.value);
    let quietest = known.iter().map(p50).fold(f64::INFINITY, f64::min);
    let carried = known.iter().copied().filter(|at| !points[*at].falls_short);
    let near = carried.filter(|at| p50(at) <= BEYOND * quietest);
    let powers: Vec<(usize, Estimate)> =
        near.filter_map(|at| Some((at, points[at].power()?))).collect();
    let (best, most) = *powers.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    if known.len() < 2 || points.len() < LEAST_POINTS {
        return None;
    }
    let mut alike = powers.iter().filter(|(at, power)| {
        let relative = difference(most, *power).and_then(|found| found.relative_interval);
        *at == best || relative.is_none_or(|relative| relative.high.0 >= 0.0)
    });
    let (lowest, _) = *alike.next()?;
    let highest = alike.next_back().map_or(lowest, |(at, _)| *at);
    let bracket = match (known.first() == Some(&lowest), known.last() == Some(&highest)) {
        (true, true) => Bracket::Unresolved,
        (true, false) => Bracket::AtMost,
        (false, true) => Bracket::AtLeast,
        (false, false) => Bracket::Within,
    };
    Some(Knee { best, lowest, highest, bracket })
}

/// Returns the highest rate that keeps a bound with all lower ones keeping it too: within its point
/// and the next, at least that of its point where no higher one broke the bound, at most that of
/// the lowest where not even this kept it. `None`: no point shows it, and one that may keep it does
/// not show that it breaks it.
pub fn highest(points: &[Point], slo: Slo) -> Option<Found> {
    let mut kept = None;
    let mut is_open = false;
    for at in by_rate(points) {
        match points[at].keeps(slo) {
            Keeps::Yes => kept = Some(at),
            Keeps::Maybe => is_open = true,
            Keeps::Unknown => {}
            Keeps::No => {
                return match kept {
                    Some(at) => Some(Found { at, bracket: Bracket::Within }),
                    None if is_open => None,
                    None => Some(Found { at, bracket: Bracket::AtMost }),
                };
            }
        }
    }
    kept.map(|at| Found { at, bracket: Bracket::AtLeast })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Delivered;
    use wiregauge_base::units::MessageRate;

    #[test]
    fn less_than_99_percent_fall_short_and_one_message_of_few_does_not() {
        assert!(falls_short(1000.0, 980.0, 1000) && !falls_short(1000.0, 991.0, 1000));
        assert!(!falls_short(1000.0, 989.0, 1000), "99 %, and one at the end of the time");
        assert!(!falls_short(20.0, 19.0, 20) && falls_short(20.0, 18.0, 20));
        assert!(falls_short(1000.0, 989.0, 1_000_000));
    }

    /// Returns a figure without an error.
    fn exactly(value: f64) -> Estimate {
        (value, Some(Interval { low: Value(value), high: Value(value) })).into()
    }

    /// Returns the knee where only one rate may be it.
    fn only(at: usize, bracket: Bracket) -> Option<Knee> {
        Some(Knee { best: at, lowest: at, highest: at, bracket })
    }

    /// A rate whose median response is known, in ns.
    fn point(offered: f64, p50_ns: f64) -> Point {
        Point {
            offered,
            achieved: exactly(offered),
            falls_short: false,
            p50: Some(exactly(p50_ns)),
            bounded_ns: 3.0 * p50_ns,
            bounded_from_ns: 3.0 * p50_ns,
            bounded_value_ns: 3.0 * p50_ns,
            generator_bound: false,
        }
    }

    #[test]
    fn a_rate_that_is_not_carried_is_no_knee() {
        // Of the last a fifth was answered, and quickly.
        let mut points = [point(2e4, 1e4), point(1e5, 3e4), point(3e5, 4e4)];
        assert_eq!(knee(&points), only(2, Bracket::AtLeast));
        points[2].falls_short = true;
        assert_eq!(knee(&points), only(1, Bracket::Within));
        points.iter_mut().for_each(|point| point.falls_short = true);
        assert_eq!(knee(&points), None);
    }

    #[test]
    fn a_knee_at_the_edge_of_the_rates_is_a_bound() {
        let rising = [point(2e4, 1e4), point(1e5, 1e4), point(3e5, 1e4)];
        assert_eq!(knee(&rising), only(2, Bracket::AtLeast));
        let falling = [point(3e5, 1e8), point(2e4, 1e4), point(1e5, 1e7)];
        assert_eq!(knee(&falling), only(1, Bracket::AtMost));
        // What lies beyond and says nothing of the server leaves the edge where it is.
        let unknown = Point { p50: None, falls_short: true, ..point(1e6, 1.0) };
        let late = Point { generator_bound: true, falls_short: true, ..point(2e6, 1e4) };
        let points = [rising[0], rising[1], unknown, late];
        assert_eq!(knee(&points), only(1, Bracket::AtLeast));
        assert_eq!(knee(&points[..1]), None);
        assert_eq!(knee(&points[1..]), None, "one of three says anything");
    }

    /// A rate whose median response has this error, as a share.
    fn uncertain(offered: f64, p50_ns: f64, error: f64) -> Point {
        let low = Value(p50_ns * (1.0 - error));
        let high = Value(p50_ns * (1.0 + error));
        Point { p50: Some((p50_ns, Some(Interval { low, high })).into()), ..point(offered, p50_ns) }
    }

    #[test]
    fn the_knee_is_all_rates_that_cannot_be_told_from_the_best() {
        fn knee_with(error: f64) -> Knee {
            // Powers of 1, 1.8, 2.2, 2 and 1.
            let points = [(1e4, 1e4), (2e4, 1.11e4), (3e4, 1.36e4), (4e4, 2e4), (5e4, 5e4)];
            knee(&points.map(|(offered, p50_ns)| uncertain(offered, p50_ns, error))).unwrap()
        }
        assert_eq!(knee_with(0.01), only(2, Bracket::Within).unwrap());
        let alike = Knee { best: 2, lowest: 1, highest: 3, bracket: Bracket::Within };
        assert_eq!(knee_with(0.2), alike);
        assert_eq!(knee_with(0.9).bracket, Bracket::Unresolved);
        // The narrowest interval is not the best for that.
        let points = [point(1e4, 1e4), uncertain(2e4, 1e4, 0.3), point(3e4, 2e4)];
        assert_eq!(knee(&points).unwrap().best, 1);
        let one_round = points.map(|point| Point {
            p50: point.p50.map(|p50| Estimate { interval: None, ..p50 }),
            ..point
        });
        assert_eq!(knee(&one_round).unwrap().bracket, Bracket::Unresolved);
    }

    #[test]
    fn a_rate_at_which_nearly_all_is_waiting_is_no_knee() {
        // What is below it says little; 94 ms are 900 times what a request takes.
        let waits = point(4e4, 94e6);
        let [low, middle, high] =
            [1e4, 2e4, 5e4].map(|rate| Point { falls_short: true, ..point(rate, 1e5) });
        assert_eq!(knee(&[low, middle, waits]), None);
        let points = [point(1e4, 1e5), waits, high];
        assert_eq!(knee(&points), only(0, Bracket::AtMost));
    }

    #[test]
    fn a_bound_is_kept_by_what_the_interval_allows_and_what_is_unknown_breaks_none() {
        let slo = Slo { quantile: 0.99, below: wiregauge_base::units::Span(50_000) };
        let points = [point(1e4, 1e4), point(2e4, 1.2e4), point(4e4, 2e4)];
        assert_eq!(highest(&points, slo), Some(Found { at: 1, bracket: Bracket::Within }));
        assert_eq!(highest(&points[..2], slo), Some(Found { at: 1, bracket: Bracket::AtLeast }));
        assert_eq!(highest(&points[2..], slo), Some(Found { at: 0, bracket: Bracket::AtMost }));
        // Nothing was answered at 15 k/s.
        let none = Point { p50: None, bounded_ns: f64::NAN, ..point(1.5e4, 1.0) };
        let none = Point { falls_short: true, ..none };
        let found = highest(&[points[0], points[1], points[2], none], slo);
        assert_eq!(found, Some(Found { at: 1, bracket: Bracket::Within }));
        assert_eq!(highest(&[none], slo), None);
        let equal = Point { bounded_ns: 5e4, bounded_from_ns: 5e4, ..points[0] };
        let equal = [Point { bounded_value_ns: 5e4, ..equal }];
        assert_eq!(highest(&equal, slo), Some(Found { at: 0, bracket: Bracket::AtMost }));
    }

    #[test]
    fn a_point_whose_interval_has_the_limit_in_it_neither_keeps_nor_breaks_it() {
        let slo = Slo { quantile: 0.99, below: wiregauge_base::units::Span(50_000) };
        let wide = Point { bounded_ns: 9e4, bounded_from_ns: 1e4, ..point(1e4, 1e4) };
        let broken = point(4e4, 2e4);
        assert_eq!(highest(&[wide], slo), None);
        assert_eq!(highest(&[wide, broken], slo), None, "the lower one may keep it");
        let kept = point(5e3, 1e4);
        let found = Found { at: 0, bracket: Bracket::Within };
        assert_eq!(highest(&[kept, wide, broken], slo), Some(found));
        let unresolved = Point { bounded_ns: f64::INFINITY, bounded_from_ns: 0.0, ..wide };
        assert_eq!(highest(&[unresolved], slo), None);
        // One that is above it, though not beyond its error, keeps no other from being broken.
        let above = Point { bounded_value_ns: 6e4, ..wide };
        let found = Found { at: 1, bracket: Bracket::AtMost };
        assert_eq!(highest(&[above, broken], slo), Some(found));
        assert_eq!(highest(&[above], slo), None);
        // What was not carried is broken, however fast the few answers were.
        let short = Point { falls_short: true, ..wide };
        let found = Found { at: 0, bracket: Bracket::AtMost };
        assert_eq!(highest(&[short], slo), Some(found));
    }

    #[test]
    fn a_point_takes_the_upper_bound_of_what_was_answered() {
        let rounds = [0, 40].map(|add| (1..=10_000).map(|ns| f64::from(ns + add)).collect());
        let summary = crate::summarize::<Vec<f64>>(&rounds, f64::INFINITY);
        let schedule = Schedule::Periodic { rate: MessageRate(1000.0) };
        let all = Requests { sent: 1000, answered: 1000, ..Requests::default() };
        fn rate<const N: usize>(rates: &[f64; N]) -> Rate {
            crate::rate::rate(&rates.map(|work| Delivered { work, seconds: 1.0 }))
        }
        let sent = rate(&[1000.0; 6]);
        let with = |answers: Option<&Rate>, requests| {
            let rates = [Some(&sent), Some(&sent), answers];
            Point::new(schedule, rates, requests, Some(&summary), 0.99).unwrap()
        };
        let new = |requests| with(None, requests);
        let interval = summary.quantile(0.99).unwrap().interval.unwrap();
        assert!(interval.high.0 > 9900.0, "{interval:?}");
        assert_eq!(new(all).bounded_ns, interval.high.0);
        assert_eq!(new(all).bounded_from_ns, interval.low.0);
        assert_eq!(new(all).bounded_value_ns, (9900.0_f64 * 9940.0).sqrt());
        assert!(!new(all).falls_short);
        // All were answered in the end, at 60 % of the rate; it may have been the whole rate.
        let slow = with(Some(&rate(&[590.0, 600.0, 610.0, 600.0, 600.0, 600.0])), all);
        assert!(slow.falls_short && !slow.generator_bound);
        assert!(!with(Some(&rate(&[100.0, 600.0, 1100.0])), all).falls_short);
        // 99 % answered; a fifth answered; nothing answered; a tenth never sent.
        assert!(!new(Requests { answered: 990, ..all }).falls_short);
        assert!(new(Requests { answered: 200, ..all }).falls_short);
        let none = new(Requests { answered: 0, ..all });
        assert!(none.falls_short && none.p50.is_none() && none.bounded_ns.is_nan());
        assert!(new(Requests { unsent: 100, ..all }).falls_short);
        // A generator that waited for no buffer was too slow itself.
        let late = rate(&[900.0; 6]);
        let late = |held_up| {
            let requests = Requests { held_up, ..all };
            let rates = [Some(&sent), Some(&late), None];
            Point::new(schedule, rates, requests, Some(&summary), 0.99).unwrap()
        };
        assert!(late(0).generator_bound && !late(1).generator_bound && late(1).falls_short);
    }
}
