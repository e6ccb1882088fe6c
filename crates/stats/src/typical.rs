//! The figure of a typical round: the centre of the rounds' own values, with an interval over
//! rounds. Pure.

use super::quantile::median_interval;
use super::student::{mean_sd, t_975};
use super::{Basis, Interval, Value};
use std::ops::Range;

/// Rounds from which on the order statistics of their values are a 95 % interval of their median,
/// and from which on groups of rounds are told from chance.
pub const MIN_ROUNDS_OF_MEDIAN: usize = 6;

/// The figure of a typical round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Typical {
    /// The centre of the rounds' values.
    pub value: f64,
    /// The 95 % interval of the centre; `None` for one round.
    pub interval: Option<Interval>,
    /// The kind of centre.
    pub basis: Basis,
}

/// Finds the figure of a typical round from each round's own. `None` without rounds.
///
/// The centre is the geometric mean with Student's interval on logarithms, of values that are not
/// all above 0 the arithmetic mean. Where the rounds fall into [`groups`], or where one is infinite
/// since its messages were lost, it is the median, by nearest rank, with its order statistics. An
/// interval does not reach below 0 where no round does.
pub fn typical(values: &[f64]) -> Option<Typical> {
    let (&first, others) = values.split_first()?;
    if others.is_empty() {
        return Some(Typical { value: first, interval: None, basis: Basis::OneRound });
    }
    let scatter = Scatter::new(values).filter(|_| groups(values).is_none());
    Some(scatter.map_or_else(|| median(values), |scatter| mean(&scatter, values)))
}

/// Finds the arithmetic mean of values that add up, as those of stages do, or that are drawn, as
/// matchings are: where they fall into groups, all of these belong to it. `None` without values,
/// and where one is not finite.
pub fn arithmetic(values: &[f64]) -> Option<Typical> {
    if let [only] = *values {
        return Some(Typical { value: only, interval: None, basis: Basis::OneRound });
    }
    Some(mean(&Scatter::on(ScatterScale::Linear, values)?, values))
}

/// The mean of values with this scatter. Its interval does not reach below 0 where no value does.
fn mean(scatter: &Scatter, values: &[f64]) -> Typical {
    let is_negative = values.iter().any(|value| *value < 0.0);
    let interval = scatter.interval(scatter.freedom).map(|interval| Interval {
        low: if is_negative { interval.low } else { Value(interval.low.0.max(0.0)) },
        ..interval
    });
    let basis = match scatter.scale {
        ScatterScale::Logarithm => Basis::GeometricMean,
        ScatterScale::Linear => Basis::ArithmeticMean,
    };
    Typical { value: scatter.value, interval, basis }
}

/// The median of the rounds. Fewer than [`MIN_ROUNDS_OF_MEDIAN`] do not bound it.
fn median(values: &[f64]) -> Typical {
    let mut rising = values.to_vec();
    rising.sort_by(f64::total_cmp);
    let value = rising[(rising.len() - 1) / 2];
    let unknown = Interval { low: Value(f64::NEG_INFINITY), high: Value(f64::INFINITY) };
    let known = median_interval(values).filter(|_| values.len() >= MIN_ROUNDS_OF_MEDIAN);
    Typical { value, interval: Some(known.unwrap_or(unknown)), basis: Basis::Median }
}

/// Two groups into which rounds fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The rounds with the lower values, rising.
    pub low: Vec<usize>,
    /// The rounds with the higher values, rising.
    pub high: Vec<usize>,
    /// The highest value of the lower group and the lowest of the higher one.
    pub gap: Range<f64>,
}

/// Returns the two groups into which the rounds fall, if the widest gap between neighbours is wider
/// than chance makes it: 0.1 + 1.5/sqrt(R) of the range of all R values, on logarithms where all
/// are above 0. Of R normal values, from 6 to 1000, at most 2.5 % have such a gap (simulated).
/// `None` too for fewer than [`MIN_ROUNDS_OF_MEDIAN`] rounds, and where one is infinite.
pub fn groups(values: &[f64]) -> Option<Groups> {
    let rounds = values.len();
    if rounds < MIN_ROUNDS_OF_MEDIAN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let scale = ScatterScale::new(values);
    let mut order: Vec<usize> = (0..rounds).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let scaled: Vec<f64> = order.iter().map(|round| scale.scaled(values[*round])).collect();
    let gaps: Vec<f64> = scaled.windows(2).map(|two| two[1] - two[0]).collect();
    let widest = gaps.iter().copied().fold(0.0, f64::max);
    let upper = 1 + gaps.iter().rposition(|gap| *gap == widest)?;
    let range = scaled[rounds - 1] - scaled[0];
    let least = 0.1 + 1.5 / (rounds as f64).sqrt();
    if range <= 0.0 || widest <= least * range {
        return None;
    }
    let gap = values[order[upper - 1]]..values[order[upper]];
    let mut high = order.split_off(upper);
    high.sort_unstable();
    order.sort_unstable();
    Some(Groups { low: order, high, gap })
}

/// The scale on which the rounds' values scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterScale {
    /// Logarithms: of values that are all above 0.
    Logarithm,
    /// The values themselves.
    Linear,
}

impl ScatterScale {
    fn new(values: &[f64]) -> ScatterScale {
        if values.iter().all(|value| *value > 0.0) {
            ScatterScale::Logarithm
        } else {
            ScatterScale::Linear
        }
    }

    fn scaled(self, value: f64) -> f64 {
        match self {
            ScatterScale::Logarithm => value.ln(),
            ScatterScale::Linear => value,
        }
    }

    fn value(self, scaled: f64) -> f64 {
        match self {
            ScatterScale::Logarithm => scaled.exp(),
            ScatterScale::Linear => scaled,
        }
    }
}

/// The scatter of the values of two rounds or more around their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// Their mean, geometric where all are above 0.
    pub value: f64,
    /// The scale of the two that follow.
    pub scale: ScatterScale,
    /// The mean.
    pub centre: f64,
    /// The standard error of the mean.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

impl Scatter {
    /// Returns that of two finite values or more; `None` of others.
    pub fn new(values: &[f64]) -> Option<Scatter> {
        Scatter::on(ScatterScale::new(values), values)
    }

    /// Returns that of two finite values or more on a scale.
    fn on(scale: ScatterScale, values: &[f64]) -> Option<Scatter> {
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let (centre, sd) = mean_sd(values.iter().map(|value| scale.scaled(*value)));
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The rounding of logarithms moves no mean out of the values, nor equal ones apart.
        let value = scale.value(centre).clamp(smallest, largest);
        let sd = if smallest == largest { 0.0 } else { sd };
        let rounds = values.len() as f64;
        Some(Scatter { value, scale, centre, error: sd / rounds.sqrt(), freedom: rounds - 1.0 })
    }

    /// Returns the 95 % interval of the mean, with Student's t of this many degrees of freedom.
    pub fn interval(&self, freedom: f64) -> Option<Interval> {
        let half = t_975(freedom)? * self.error;
        if half == 0.0 {
            return Some(Interval { low: Value(self.value), high: Value(self.value) });
        }
        let [low, high] = [-half, half].map(|half| Value(self.scale.value(self.centre + half)));
        Some(Interval { low, high })
    }

    /// Returns the degrees of freedom of the difference of two (Welch, Biometrika 34 (1947) 28).
    pub fn joint_freedom(&self, other: &Scatter) -> f64 {
        let squares = [self, other].map(|one| one.error.powi(2));
        let sum = squares[0] + squares[1];
        let freedom =
            sum.powi(2) / (squares[0].powi(2) / self.freedom + squares[1].powi(2) / other.freedom);
        // Neither scatters.
        if freedom.is_nan() { self.freedom.min(other.freedom) } else { freedom }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(found: Typical) -> (f64, f64) {
        found.interval.map(|i| (i.low.0, i.high.0)).unwrap()
    }

    #[test]
    fn the_centre_is_the_geometric_mean_with_students_interval_on_logarithms() {
        let found = typical(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(found.basis, Basis::GeometricMean);
        assert!((found.value - 2.0).abs() < 1e-12, "{}", found.value);
        // t(2) = 4.302653, of logarithms with the standard deviation ln 2.
        let half = 4.302_653 * 2.0_f64.ln() / 3.0_f64.sqrt();
        let (low, high) = ends(found);
        assert!((low / 2.0 - (-half).exp()).abs() < 1e-6, "{low}");
        assert!((high / 2.0 - half.exp()).abs() < 1e-5, "{high}");
    }

    #[test]
    fn values_that_are_not_all_above_zero_have_an_arithmetic_mean() {
        let found = typical(&[-1.0, 0.0, 4.0]).unwrap();
        assert_eq!((found.value, found.basis), (1.0, Basis::ArithmeticMean));
        // t(2) = 4.302653 and the standard deviation sqrt(7).
        let half = 4.302_653 * (7.0_f64 / 3.0).sqrt();
        assert!((ends(found).0 - (1.0 - half)).abs() < 1e-4, "{found:?}");
        let zero = typical(&[0.0, 0.0, 3.0]).unwrap();
        assert_eq!((zero.value, ends(zero).0), (1.0, 0.0), "no share is below 0");
    }

    #[test]
    fn equal_rounds_have_their_value_to_the_digit() {
        let found = typical(&[1037.3; 6]).unwrap();
        assert_eq!((found.value, ends(found)), (1037.3, (1037.3, 1037.3)));
    }

    #[test]
    fn one_round_has_no_interval_and_none_has_no_figure() {
        let one = typical(&[5.0]).unwrap();
        assert_eq!((one.value, one.interval, one.basis), (5.0, None, Basis::OneRound));
        assert_eq!(typical(&[]), None);
    }

    #[test]
    fn rounds_that_fall_into_groups_have_their_median() {
        let values = [1.0, 1.31, 1.01, 1.02, 1.3, 1.03];
        let found = typical(&values).unwrap();
        assert_eq!((found.value, found.basis), (1.02, Basis::Median));
        assert_eq!(ends(found), (1.0, 1.31));
        let groups = groups(&values).unwrap();
        assert_eq!(
            (groups.low, groups.high, groups.gap),
            (vec![0, 2, 3, 5], vec![1, 4], 1.03..1.3)
        );
    }

    #[test]
    fn a_gap_that_chance_makes_is_no_group() {
        // 0.712 of the range is needed for six: here 0.70, there 0.73.
        fn with_gap(gap: f64) -> [f64; 6] {
            [0.0, 0.1, 0.15, 0.2, 0.3, 0.3 + gap].map(f64::exp)
        }
        assert_eq!(groups(&with_gap(0.70)), None);
        assert!(groups(&with_gap(0.81)).is_some());
        assert_eq!(groups(&[1.0, 1.0, 1.0, 1.0, 9.0]), None, "of five rounds");
        assert_eq!(groups(&[2.0; 9]), None);
    }

    #[test]
    fn a_round_that_lost_its_quantile_leaves_an_end_open() {
        let inf = f64::INFINITY;
        let found = typical(&[1.0, 2.0, inf, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((found.value, ends(found)), (3.0, (1.0, inf)));
        let three = typical(&[1.0, inf, 2.0]).unwrap();
        assert_eq!((three.value, ends(three)), (2.0, (-inf, inf)), "three do not bound a median");
        let many: Vec<f64> = (1..=29).map(f64::from).chain([inf]).collect();
        let found = typical(&many).unwrap();
        assert_eq!((found.value, ends(found)), (15.0, (10.0, 21.0)));
    }

    #[test]
    fn freedom_of_a_difference_is_welchs() {
        let one = Scatter::new(&[1.0, 1.1, 0.9, 1.0]).unwrap();
        let [still, other] = [[1.0; 3], [2.0; 3]].map(|values| Scatter::new(&values).unwrap());
        assert!((one.joint_freedom(&one) - 6.0).abs() < 1e-9);
        assert_eq!(still.joint_freedom(&other), 2.0);
        assert!((still.joint_freedom(&one) - 3.0).abs() < 1e-9);
    }
}
