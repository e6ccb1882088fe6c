//! The step at which a figure becomes worse at once while something grows. Pure.

use super::Interval;

/// The least factor by which a figure becomes worse at a cliff.
pub const CLIFF: f64 = 1.5;

/// A figure at one place of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The place.
    pub x: f64,
    /// The figure.
    pub value: f64,
    /// The 95 % interval of the figure.
    pub interval: Option<Interval>,
}

/// A step between two neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    /// The last point before it.
    pub before: Point,
    /// The first point behind it.
    pub behind: Point,
    /// The factor by which the figure is worse there.
    pub factor: f64,
    /// The smallest factor that the two intervals allow: between the ends that face each other.
    pub least: f64,
}

/// Returns the step at which a figure becomes worse by the largest factor, if that is at least
/// [`CLIFF`] even between the ends of their intervals that face each other: the spread of the
/// rounds is no cliff. `points` are in the order of their places. A figure without an interval
/// proves nothing.
pub fn cliff(points: &[Point], more_is_better: bool) -> Option<Cliff> {
    let steps = points.windows(2).filter_map(|two| {
        let [before, behind] = *two else { return None };
        let first = before.interval?;
        let second = behind.interval?;
        let (factor, least) = if more_is_better {
            (before.value / behind.value, first.low.0 / second.high.0)
        } else {
            (behind.value / before.value, second.low.0 / first.high.0)
        };
        (least >= CLIFF && factor.is_finite()).then_some(Cliff { before, behind, factor, least })
    });
    steps.max_by(|a, b| a.factor.total_cmp(&b.factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Returns points at 1, 2, 4, ..., each with an interval of this share of its value.
    fn points(values: &[f64], half: f64) -> Vec<Point> {
        let numbered = values.iter().enumerate();
        numbered
            .map(|(step, value)| {
                let low = Value(value * (1.0 - half));
                let high = Value(value * (1.0 + half));
                let interval = Some(Interval { low, high });
                Point { x: f64::from(1 << step), value: *value, interval }
            })
            .collect()
    }

    #[test]
    fn the_steepest_step_is_the_cliff_and_a_slope_is_none() {
        let times = points(&[10.0, 11.0, 18.0, 45.0, 50.0], 0.02);
        let found = cliff(&times, false).unwrap();
        assert_eq!((found.before.x, found.behind.x, found.factor), (4.0, 8.0, 2.5));
        assert!((found.least - 45.0 * 0.98 / (18.0 * 1.02)).abs() < 1e-12, "{}", found.least);
        // As rates it falls nowhere; turned round it does.
        assert_eq!(cliff(&times, true), None);
        let rates = points(&[100.0, 90.0, 45.0, 44.0], 0.02);
        let found = cliff(&rates, true).unwrap();
        assert_eq!((found.before.x, found.behind.x, found.factor), (2.0, 4.0, 2.0));
        // Four times in all, and at no step by half.
        assert_eq!(cliff(&points(&[10.0, 14.0, 20.0, 28.0, 40.0], 0.01), false), None);
    }

    #[test]
    fn a_step_within_the_intervals_is_none() {
        assert!(cliff(&points(&[10.0, 20.0], 0.1), false).is_some());
        assert_eq!(cliff(&points(&[10.0, 20.0], 0.2), false), None);
        let mut unknown = points(&[10.0, 20.0], 0.1);
        unknown[1].interval = None;
        assert_eq!(cliff(&unknown, false), None);
        assert_eq!(cliff(&points(&[10.0], 0.1), false), None);
        // A rate of none is a fault and no cliff of unknown height.
        assert_eq!(cliff(&points(&[10.0, 0.0], 0.1), true), None);
    }
}
