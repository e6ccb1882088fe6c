//! The knee of a curve over load, and the highest rate that keeps a bound. Pure.

use crate::plan::{Schedule, Slo};

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

/// What was measured at one offered rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Messages per second that were intended.
    pub offered: f64,
    /// Messages per second that were sent.
    pub achieved: f64,
    /// Whether that is less than was offered.
    pub falls_short: bool,
    /// The median response in ns; infinite where half was lost, NaN where there is none.
    pub p50_ns: f64,
    /// The quantile of the bound in ns.
    pub bounded_ns: f64,
    /// Whether the generator itself was the limit: the point says nothing of the server.
    pub generator_bound: bool,
}

impl Point {
    /// `None` without a schedule. `sent` messages, of which `held_up` waited for a buffer;
    /// `quantile_ns` gives a quantile of the response, `bounded` is the one that has a bound.
    pub fn new(
        schedule: Schedule,
        achieved: f64,
        (sent, held_up): (u64, u64),
        quantile_ns: impl Fn(f64) -> f64,
        bounded: f64,
    ) -> Option<Point> {
        let falls_short = falls_short(schedule, achieved, sent);
        Some(Point {
            offered: schedule.rate()?.0,
            achieved,
            falls_short,
            p50_ns: quantile_ns(0.5),
            bounded_ns: quantile_ns(bounded),
            generator_bound: falls_short && held_up == 0,
        })
    }

    /// Kleinrock's power: what is achieved over what it takes. The knee is where it is highest
    /// (L. Kleinrock, Power and deterministic rules of thumb, ICC 1979).
    fn power(&self) -> f64 {
        let power = self.achieved / self.p50_ns;
        if power.is_nan() || self.generator_bound { 0.0 } else { power }
    }

    /// Whether it keeps a bound.
    pub fn keeps(&self, slo: Slo) -> bool {
        !self.falls_short && self.bounded_ns < slo.below.0 as f64
    }
}

/// The position of the knee among points.
pub fn knee(points: &[Point]) -> Option<usize> {
    let best = (0..points.len()).max_by(|a, b| points[*a].power().total_cmp(&points[*b].power()));
    best.filter(|at| points[*at].power() > 0.0)
}

/// The highest rate that keeps a bound with all lower ones keeping it too.
pub fn highest(points: &[Point], slo: Slo) -> Option<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*a].offered.total_cmp(&points[*b].offered));
    order.into_iter().take_while(|at| points[*at].keeps(slo)).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MessageRate;

    #[test]
    fn few_random_messages_are_not_a_generator_that_is_too_slow() {
        let rate = MessageRate(1000.0);
        let (periodic, poisson) = (Schedule::Periodic { rate }, Schedule::Poisson { rate });
        assert!(falls_short(periodic, 980.0, 1000) && !falls_short(periodic, 991.0, 1000));
        // 1000 messages spread by 3.2 %, a million by 0.1 %.
        assert!(!falls_short(poisson, 920.0, 1000) && falls_short(poisson, 880.0, 1000));
        assert!(falls_short(poisson, 980.0, 1_000_000));
        assert!(!falls_short(Schedule::ClosedLoop, 0.0, 0));
    }
}
