//! Student's t, and mean and deviation.

use super::CONFIDENCE;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The two-sided 95 % point of Student's t for these degrees of freedom; `None` below 1.
pub fn t_975(freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Mean and standard deviation (n-1) in two passes. NaN without values, and a NaN standard
/// deviation of fewer than two.
///
/// The second pass subtracts the mean first, so the error stays within a few units in the last
/// place times n, however large the mean is against the deviation (Higham 2002, 1.9).
pub fn mean_sd<I: Iterator<Item = f64> + Clone>(values: I) -> (f64, f64) {
    let (sum, n) = values.clone().fold((0.0, 0_u64), |(s, n), x| (s + x, n + 1));
    let mean = sum / n as f64;
    let (squares, rest) = values.fold((0.0, 0.0), |(q, r), x| {
        let d = x - mean;
        (q + d * d, r + d)
    });
    if n < 2 {
        return (mean, f64::NAN);
    }
    // What rounding left in the mean, taken out of the squares.
    let squares: f64 = squares - rest * rest / n as f64;
    (mean, (squares.max(0.0) / (n - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_is_that_of_the_tables() {
        for (freedom, t) in [(1, 12.706), (2, 4.303), (4, 2.776), (30, 2.042), (1000, 1.962)] {
            assert!((t_975(f64::from(freedom)).unwrap() - t).abs() < 5e-4, "{freedom}");
        }
        assert_eq!(t_975(0.0), None);
    }

    #[test]
    fn a_large_mean_does_not_drown_the_deviation() {
        let (mean, sd) = mean_sd([1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0].into_iter());
        assert_eq!((mean, sd), (1e15 + 2.0, 1.0));
        // The mean 1e16 + 4/3 is rounded to 1e16 + 2; the squares are 8/3 all the same.
        let (_, sd) = mean_sd([1e16, 1e16 + 2.0, 1e16 + 2.0].into_iter());
        assert!((sd - (4.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{sd}");
        assert_eq!(mean_sd([1.0, 3.0].into_iter()), (2.0, 2.0_f64.sqrt()));
    }
}
