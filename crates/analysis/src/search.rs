//! The next points of a search over load: where the curve is not known well enough yet. Pure.
//!
//! First a closed loop of many clients tells what the server can do. Then a grid of rates from
//! nearly idle to above that. Then points between the knee and its neighbours, and, where a bound
//! is given, between the highest rate that keeps it and the lowest that does not.

use std::collections::BTreeMap;
use wiregauge_base::units::MessageRate;
use wiregauge_plan::Slo;
use wiregauge_stats::knee::{Bracket, Found, Knee, Point, highest, knee};

/// Shares of the server's capacity that the first points offer.
const GRID: [f64; 9] = [0.05, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3];
/// Points that lie closer than this are not parted any more.
const CLOSE: f64 = 1.05;
/// Most times that points are added.
pub const MOST_PASSES: u32 = 5;
/// Which of the added cases are measured at the same time: the first that follow from the runs of a
/// group, the second ones, and so on. `added` has the numbers of those that follow from each run.
pub fn together(groups: &[Vec<u32>], added: &BTreeMap<u32, Vec<u32>>) -> Vec<Vec<u32>> {
    let of_group = |group: &Vec<u32>| {
        let each: Vec<&Vec<u32>> = group.iter().filter_map(|origin| added.get(origin)).collect();
        let most = each.iter().map(|added| added.len()).max().unwrap_or(0);
        (0..most)
            .map(|rank| each.iter().filter_map(|added| added.get(rank).copied()).collect())
            .filter(|group: &Vec<u32>| group.len() > 1)
            .collect::<Vec<Vec<u32>>>()
    };
    groups.iter().flat_map(of_group).collect()
}

/// The rates of the first points for a server that answers `capacity` requests per second. Empty if
/// the capacity is unknown (in a short round all answers may come at once).
pub fn grid(capacity: f64) -> Vec<f64> {
    let is_rate = |rate: &f64| (1.0..=MessageRate::MOST).contains(rate);
    GRID.iter().map(|share| rounded(share * capacity)).filter(is_rate).collect()
}

/// The rates that are to be measured next; none: the curve is known well enough.
pub fn next(points: &[Point], slo: Option<Slo>) -> Vec<f64> {
    let mut rates: Vec<f64> = points.iter().map(|point| point.offered).collect();
    rates.sort_by(f64::total_cmp);
    let mut wanted = Vec::new();
    let between = |low: Option<f64>, high: Option<f64>| {
        let (low, high) = low.zip(high)?;
        (high / low > CLOSE).then(|| rounded((low * high).sqrt()))
    };
    if let Some(knee) = knee(points) {
        let at = points[knee.best].offered;
        let lower = rates.iter().copied().rfind(|rate| *rate < at);
        let higher = rates.iter().copied().find(|rate| *rate > at);
        wanted.extend(between(lower, Some(at)));
        wanted.extend(between(Some(at), higher));
        let Knee { lowest, highest, bracket, .. } = knee;
        let edge = if bracket == Bracket::AtMost { lowest } else { highest };
        wanted.extend(beyond(Found { at: edge, bracket }, points, &rates));
    }
    if let Some(found) = slo.and_then(|slo| highest(points, slo)) {
        let kept = points[found.at].offered;
        let broken = rates.iter().copied().find(|rate| *rate > kept);
        match found.bracket {
            // Even the lowest is too much.
            Bracket::AtMost | Bracket::Unresolved => {}
            Bracket::Within | Bracket::AtLeast => wanted.extend(between(Some(kept), broken)),
        }
        wanted.extend(beyond(found, points, &rates));
    }
    wanted.retain(|rate| (1.0..=MessageRate::MOST).contains(rate));
    wanted.sort_by(f64::total_cmp);
    wanted.dedup();
    wanted
}

/// A rate beyond the edge at which something was found: where the edge is a point that was measured
/// and says nothing of the server, a rate further out would say no more.
fn beyond(found: Found, points: &[Point], rates: &[f64]) -> Option<f64> {
    let at = points[found.at].offered;
    match found.bracket {
        Bracket::AtMost if rates.first() == Some(&at) => Some(rounded(at / 10.0)),
        Bracket::AtLeast if rates.last() == Some(&at) => Some(rounded(at * 1.5)),
        _ => None,
    }
}

/// Three digits: a rate that a person can type again.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 2.0);
    ((rate / unit).round() * unit * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::Span;
    use wiregauge_stats::compare::Estimate;
    use wiregauge_stats::{Interval, Value};

    #[test]
    fn what_follows_from_runs_at_the_same_time_is_at_the_same_time() {
        let added = BTreeMap::from([(0, vec![6, 7]), (1, vec![8, 9]), (2, vec![10])]);
        let groups = [vec![0, 1], vec![2, 3], vec![4, 5]];
        assert_eq!(together(&groups, &added), [[6, 8], [7, 9]]);
        // Of the second only one point follows.
        let added = BTreeMap::from([(0, vec![6, 7]), (1, vec![8]), (2, vec![9, 10])]);
        assert_eq!(together(&[vec![0, 1, 2]], &added), [vec![6, 8, 9], vec![7, 10]]);
    }

    fn exactly(value: f64) -> Estimate {
        (value, Some(Interval { low: Value(value), high: Value(value) })).into()
    }

    /// A server of one queue (M/M/1) that takes 1 us for a request: the power is highest at half.
    fn mm1(offered: f64) -> Point {
        let load = offered / 1e6;
        let achieved = offered.min(1e6);
        let mean = if load < 1.0 { 1000.0 / (1.0 - load) } else { f64::INFINITY };
        let p50_ns = mean * std::f64::consts::LN_2;
        let bounded_ns = mean * 100f64.ln();
        let falls_short = achieved < offered;
        Point {
            offered,
            achieved: exactly(achieved),
            falls_short,
            p50: Some(exactly(p50_ns)),
            bounded_ns,
            bounded_from_ns: bounded_ns,
            bounded_value_ns: bounded_ns,
            generator_bound: false,
        }
    }

    fn search(slo: Option<Slo>) -> Vec<Point> {
        let mut points: Vec<Point> = grid(1e6).into_iter().map(mm1).collect();
        for _ in 0..MOST_PASSES {
            points.extend(next(&points, slo).into_iter().map(mm1));
        }
        points
    }

    #[test]
    fn the_knee_of_a_queue_is_found_where_theory_puts_it() {
        let points = search(None);
        let found = points[knee(&points).unwrap().best].offered;
        assert!((found / 5e5 - 1.0).abs() < 0.05, "{found}");
        assert!(points.len() <= 9 + 2 * MOST_PASSES as usize);
        assert!(points.windows(2).all(|pair| pair[0].offered != pair[1].offered));
    }

    #[test]
    fn the_highest_rate_within_a_bound_is_found_within_a_twentieth() {
        // p99 = 1 us ln 100 / (1 - load) < 20 us: load < 0.76974.
        let slo = Slo { quantile: 0.99, below: Span(20_000) };
        let points = search(Some(slo));
        let found = points[highest(&points, slo).unwrap().at].offered;
        assert!((found / 769_740.0) <= 1.0 && found / 769_740.0 > 0.95, "{found}");
        let low = Slo { quantile: 0.99, below: Span(1000) };
        let found = highest(&search(Some(low)), low).unwrap();
        assert_eq!(found.bracket, Bracket::AtMost, "not even idle keeps it");
    }

    #[test]
    fn a_knee_at_the_edge_is_looked_for_beyond_it() {
        let points: Vec<Point> = [1e5, 2e5, 3e5].map(mm1).into();
        assert_eq!(knee(&points).unwrap().bracket, Bracket::AtLeast);
        assert!(next(&points, None).contains(&4.5e5));
        let points: Vec<Point> = [6e5, 8e5, 9e5].map(mm1).into();
        assert_eq!(knee(&points).unwrap().bracket, Bracket::AtMost);
        assert!(next(&points, None).contains(&6e4));
    }

    #[test]
    fn the_grid_has_shares_of_the_capacity_in_three_digits() {
        let expected =
            [617.0, 3090.0, 6170.0, 8640.0, 9870.0, 11_100.0, 12_300.0, 13_600.0, 16_000.0];
        assert_eq!(grid(12_340.0), expected);
        assert_eq!((rounded(0.0375), rounded(1234.5)), (0.04, 1230.0));
        // Below one request per second nothing is offered.
        assert_eq!(grid(4.0), [1.0, 2.0, 2.8, 3.2, 3.6, 4.0, 4.4, 5.2]);
    }

    #[test]
    fn what_lies_closer_than_a_twentieth_is_not_parted() {
        // The power is highest at half of 1e6: the knee is at 500000.
        let at = |lower: f64, higher: f64| next(&[lower, 5e5, higher].map(mm1), None);
        // The geometric means with the neighbours, in three digits.
        assert_eq!(at(4e5, 6e5), [447_000.0, 548_000.0]);
        assert_eq!(at(4.8e5, 6e5), [548_000.0], "5/4.8 is 1.042");
        assert_eq!(at(4e5, 5.2e5), [447_000.0], "1.04");
        assert!(at(4.8e5, 5.25e5).is_empty(), "1.05");
        assert_eq!(at(4.7e5, 5.26e5), [485_000.0, 513_000.0], "1.064 and 1.052");
    }

    #[test]
    fn beyond_a_rate_that_was_measured_there_is_no_other() {
        // Of the one outside of the others the generator was the limit.
        let with = |offered: [f64; 4], outside: usize| {
            let mut points = offered.map(mm1);
            points[outside].generator_bound = true;
            next(&points, None)
        };
        assert_eq!(with([1e5, 2e5, 3e5, 4e5], 3), [245_000.0, 346_000.0]);
        assert_eq!(with([5e4, 6e5, 8e5, 9e5], 0), [173_000.0, 693_000.0]);
    }

    #[test]
    fn a_capacity_that_could_not_be_told_gives_no_points() {
        assert!(grid(f64::INFINITY).is_empty());
        assert!(grid(f64::NAN).is_empty());
        assert!(grid(4e9).iter().all(|rate| *rate <= MessageRate::MOST));
    }

    #[test]
    fn a_point_where_the_generator_was_the_limit_is_no_knee() {
        let mut points: Vec<Point> = grid(1e6).into_iter().map(mm1).collect();
        let first = knee(&points).unwrap().best;
        points[first].generator_bound = true;
        assert_ne!(knee(&points).unwrap().best, first);
        points.iter_mut().for_each(|point| point.generator_bound = true);
        assert_eq!((knee(&points), next(&points, None)), (None, vec![]));
    }
}
