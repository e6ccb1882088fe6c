//! The knee of a curve over load, and the highest rate that keeps a bound. Pure.

use super::{Quantile, Rate, Summary};
use wiregauge_plan::{Schedule, Slo};

/// Of what was offered, the share that must be achieved: else the arrivals were not those that were
/// asked for.
const ACHIEVED: f64 = 0.99;
/// Standard deviations that the number of a Poisson process's messages may be below its mean.
const CHANCE: f64 = 3.0;

/// Whether fewer were sent than were offered: of a random schedule, so many messages spread by the
/// root of their number.
pub fn falls_short(schedule: Schedule, achieved: f64, messages: u64) -> bool {
    let Some(offered) = schedule.rate() else { return false };
    let chance = match schedule {
        Schedule::Poisson { .. } | Schedule::OnOff { .. } => {
            CHANCE / (messages.max(1) as f64).sqrt()
        }
        _ => 0.0,
    };
    achieved < (ACHIEVED - chance) * offered.0
}

/// The quantile of a curve where no bound names one.
pub const BOUNDED: f64 = 0.99;
/// Fewer points show no knee.
const LEAST_POINTS: usize = 3;

wiregauge_base::options::named_enum! {
    /// How the rates that were tried bracket the one that a sweep looked for.
    pub enum Bracket {
        /// Between the rates tried below and above it.
        Within = "within",
        /// At the rate or above: no higher rate that was tried says anything against it.
        AtLeast = "at_least",
        /// At the rate or below, where no lower one was tried.
        AtMost = "at_most",
    }
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
    pub achieved: f64,
    /// Whether less than was offered was sent, or was answered.
    pub falls_short: bool,
    /// Upper bound of the median response in ns; infinite where the samples give none, NaN where
    /// nothing is known of the median.
    pub p50_ns: f64,
    /// The same of the quantile that has a bound.
    pub bounded_ns: f64,
    /// Lower bound of that quantile in ns; 0 where the samples give none.
    pub bounded_from_ns: f64,
    /// That quantile in ns; NaN where it has no value.
    pub bounded_value_ns: f64,
    /// Whether the generator itself was the limit: the point says nothing of the server.
    pub generator_bound: bool,
}

impl Point {
    /// `None` without a schedule. `answers` is the rate of the answers, `bounded` the quantile that
    /// has a bound.
    pub fn new(
        schedule: Schedule,
        achieved: f64,
        answers: Option<&Rate>,
        requests: Requests,
        response: Option<&Summary>,
        bounded: f64,
    ) -> Option<Point> {
        let Requests { sent, unsent, answered, held_up } = requests;
        let is_sent_late = falls_short(schedule, achieved, sent);
        let is_answered = answered as f64 >= ACHIEVED * (sent + unsent) as f64;
        // Answers that come later than they are asked for pile up.
        let fastest = answers.and_then(|rate| rate.interval).map(|interval| interval.high.0);
        let piles_up = fastest.is_some_and(|rate| falls_short(schedule, rate, answered));
        // Of a point without an answer the response says that, and not how slow the server is.
        let response = response.filter(|_| answered > 0);
        let upper = |p| response.and_then(|summary| summary.quantile(p)).map_or(f64::NAN, upper);
        let of_bound = response.and_then(|summary| summary.quantile(bounded));
        let from = of_bound.and_then(|quantile| quantile.interval);
        let value = of_bound.and_then(|quantile| quantile.value);
        Some(Point {
            offered: schedule.rate()?.0,
            achieved,
            falls_short: is_sent_late || !is_answered || piles_up,
            p50_ns: upper(0.5),
            bounded_ns: upper(bounded),
            bounded_from_ns: from.map_or(0.0, |interval| interval.low.0),
            bounded_value_ns: value.map_or(f64::NAN, |value| value.0),
            generator_bound: is_sent_late && held_up == 0,
        })
    }

    /// Kleinrock's power: what is achieved over what it takes, at most. The knee is where it is
    /// highest (L. Kleinrock, Power and deterministic rules of thumb, ICC 1979). 0 where the server
    /// did not carry what was offered.
    fn power(&self) -> f64 {
        let power = self.achieved / self.p50_ns;
        if power.is_nan() || self.falls_short { 0.0 } else { power }
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
        !self.generator_bound && !self.p50_ns.is_nan()
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

/// The knee among points: the highest power. At the lowest rate that says anything the knee is
/// there or below, at the highest there or above. Fewer than three points show none.
pub fn knee(points: &[Point]) -> Option<Found> {
    let order = by_rate(points);
    let known: Vec<usize> = order.into_iter().filter(|at| points[*at].is_known()).collect();
    let power = |place: &usize| points[known[*place]].power();
    let best = (0..known.len()).max_by(|a, b| power(a).total_cmp(&power(b)))?;
    if power(&best) <= 0.0 || known.len() < 2 || points.len() < LEAST_POINTS {
        return None;
    }
    let bracket = match best {
        0 => Bracket::AtMost,
        last if last + 1 == known.len() => Bracket::AtLeast,
        _ => Bracket::Within,
    };
    Some(Found { at: known[best], bracket })
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
    fn few_random_messages_are_not_a_generator_that_is_too_slow() {
        let rate = MessageRate(1000.0);
        let (periodic, poisson) = (Schedule::Periodic { rate }, Schedule::Poisson { rate });
        assert!(falls_short(periodic, 980.0, 1000) && !falls_short(periodic, 991.0, 1000));
        assert!(!falls_short(periodic, 990.0, 1000), "99 % are enough");
        // 1000 messages spread by 3.2 %, a million by 0.1 %.
        assert!(!falls_short(poisson, 920.0, 1000) && falls_short(poisson, 880.0, 1000));
        assert!(falls_short(poisson, 980.0, 1_000_000));
        assert!(!falls_short(Schedule::ClosedLoop, 0.0, 0));
    }

    /// A rate whose median response is known up to a bound, in ns.
    fn point(offered: f64, p50_ns: f64) -> Point {
        Point {
            offered,
            achieved: offered,
            falls_short: false,
            p50_ns,
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
        assert_eq!(knee(&points), Some(Found { at: 2, bracket: Bracket::AtLeast }));
        points[2].falls_short = true;
        assert_eq!(knee(&points), Some(Found { at: 1, bracket: Bracket::Within }));
        points.iter_mut().for_each(|point| point.falls_short = true);
        assert_eq!(knee(&points), None);
    }

    #[test]
    fn a_knee_at_the_edge_of_the_rates_is_a_bound() {
        let rising = [point(2e4, 1e4), point(1e5, 1e4), point(3e5, 1e4)];
        assert_eq!(knee(&rising), Some(Found { at: 2, bracket: Bracket::AtLeast }));
        let falling = [point(3e5, 1e8), point(2e4, 1e4), point(1e5, 1e7)];
        assert_eq!(knee(&falling), Some(Found { at: 1, bracket: Bracket::AtMost }));
        // What lies beyond and says nothing of the server leaves the edge where it is.
        let unknown = Point { p50_ns: f64::NAN, falls_short: true, ..point(1e6, 1.0) };
        let late = Point { generator_bound: true, falls_short: true, ..point(2e6, 1e4) };
        let points = [rising[0], rising[1], unknown, late];
        assert_eq!(knee(&points), Some(Found { at: 1, bracket: Bracket::AtLeast }));
        assert_eq!(knee(&points[..1]), None);
        assert_eq!(knee(&points[1..]), None, "one of three says anything");
    }

    #[test]
    fn a_bound_is_kept_by_what_the_interval_allows_and_what_is_unknown_breaks_none() {
        let slo = Slo { quantile: 0.99, below: wiregauge_base::units::Span(50_000) };
        let points = [point(1e4, 1e4), point(2e4, 1.2e4), point(4e4, 2e4)];
        assert_eq!(highest(&points, slo), Some(Found { at: 1, bracket: Bracket::Within }));
        assert_eq!(highest(&points[..2], slo), Some(Found { at: 1, bracket: Bracket::AtLeast }));
        assert_eq!(highest(&points[2..], slo), Some(Found { at: 0, bracket: Bracket::AtMost }));
        // Nothing was answered at 15 k/s.
        let none = Point { p50_ns: f64::NAN, bounded_ns: f64::NAN, ..point(1.5e4, 1.0) };
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
        let ns: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let summary = crate::summarize(&[ns], f64::INFINITY);
        let schedule = Schedule::Periodic { rate: MessageRate(1000.0) };
        let all = Requests { sent: 1000, answered: 1000, ..Requests::default() };
        let with = |answers: Option<&Rate>, requests| {
            Point::new(schedule, 1000.0, answers, requests, Some(&summary), 0.99).unwrap()
        };
        let new = |requests| with(None, requests);
        let interval = summary.quantile(0.99).unwrap().interval.unwrap();
        assert!(interval.high.0 > 9900.0, "{interval:?}");
        assert_eq!(new(all).bounded_ns, interval.high.0);
        assert_eq!(new(all).bounded_from_ns, interval.low.0);
        assert_eq!(new(all).bounded_value_ns, 9900.0);
        assert!(!new(all).falls_short);
        // All were answered in the end, at 60 % of the rate; it may have been the whole rate.
        let rate = |rates: &[f64]| {
            let work: Vec<Delivered> =
                rates.iter().map(|work| Delivered { work: *work, seconds: 1.0 }).collect();
            crate::rate::rate(&work)
        };
        let slow = with(Some(&rate(&[590.0, 600.0, 610.0, 600.0, 600.0, 600.0])), all);
        assert!(slow.falls_short && !slow.generator_bound);
        assert!(!with(Some(&rate(&[100.0, 600.0, 1100.0])), all).falls_short);
        // 99 % answered; a fifth answered; nothing answered; a tenth never sent.
        assert!(!new(Requests { answered: 990, ..all }).falls_short);
        assert!(new(Requests { answered: 200, ..all }).falls_short);
        let none = new(Requests { answered: 0, ..all });
        assert!(none.falls_short && none.p50_ns.is_nan() && none.bounded_ns.is_nan());
        assert!(new(Requests { unsent: 100, ..all }).falls_short);
        // A generator that waited for no buffer was too slow itself.
        let late = |held_up| {
            let requests = Requests { held_up, ..all };
            Point::new(schedule, 900.0, None, requests, Some(&summary), 0.99).unwrap()
        };
        assert!(late(0).generator_bound && !late(1).generator_bound && late(1).falls_short);
    }
}
