//! Numbers as a person reads them beside their error.
//!
//! An error is rounded up to two significant digits and its figure is given to the error's last
//! digit, but with four significant digits at least; so the interval that is printed encloses the
//! one that was found. Latencies are in us with at most four decimals, 0.1 ns.

use super::Cell;
use crate::record::schema::{RateMetric, Run};
use crate::stats::{Interval, Quantile, Rate, Summary, Value};

/// Latencies are given in ns and shown in us.
pub const US: f64 = 1e-3;
/// Bytes per second, shown in MB/s.
pub const MEGABYTES: f64 = 1e-6;
/// Bytes per second, shown in Gb/s.
pub const GIGABITS: f64 = 8e-9;
/// Messages per second, shown in thousands.
pub const THOUSANDS: f64 = 1e-3;

/// What stands where there are too few samples for a quantile.
pub const TOO_SMALL: &str = "n too small";
/// Most decimals of anything.
const MOST_DECIMALS: usize = 4;

/// Decimals that leave so many significant digits.
fn decimals(v: f64, digits: i32) -> usize {
    if v == 0.0 || !v.is_finite() {
        return 0;
    }
    let before = v.abs().log10().floor() as i32 + 1;
    usize::try_from(digits - before).unwrap_or(0).min(MOST_DECIMALS)
}

/// A number with so many decimals; `inf` and `-inf` where it is infinite, `?` where it is none.
fn fixed(v: f64, decimals: usize) -> String {
    match v {
        v if v.is_nan() => "?".into(),
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        v => {
            let text = format!("{v:.decimals$}");
            // Nothing is below zero that is shown as zero.
            let zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
            if zero { text.trim_start_matches('-').to_owned() } else { text }
        }
    }
}

/// Four significant digits, at most four decimals.
pub fn short(v: f64) -> String {
    fixed(v, decimals(v, 4))
}

/// A length of time in the unit that leaves one to three digits before the point.
pub fn span(ns: f64) -> String {
    let (scale, unit) = match ns.abs() {
        a if a < 1e3 => (1.0, "ns"),
        a if a < 1e6 => (1e-3, "us"),
        a if a < 1e9 => (1e-6, "ms"),
        _ => (1e-9, "s"),
    };
    let text = short(ns * scale);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {unit}")
}

/// A figure, and its error: the wider side of its interval.
pub fn with_error(value: f64, interval: Option<Interval>, scale: f64) -> [Cell; 2] {
    let v = value * scale;
    let Some(Interval { low, high }) = interval else {
        return [Cell::Number(short(v)), Cell::none()];
    };
    if v.is_nan() {
        return [Cell::Number(short(v)), Cell::none()];
    }
    let (low, high) = (low.0 * scale, high.0 * scale);
    if !(v.is_finite() && low.is_finite() && high.is_finite()) {
        return [Cell::Number(short(v)), Cell::Number("±inf".into())];
    }
    let digits = decimals((high - v).max(v - low), 2).max(decimals(v, 4));
    let shown: f64 = fixed(v, digits).parse().unwrap_or(v);
    let error = (high - shown).max(shown - low).max(0.0);
    let places = decimals(error, 2);
    let unit = 10f64.powi(places as i32);
    // Up, since an error must not be told smaller than it is; what is left of the binary form
    // of a decimal is not an error.
    let up = (error * unit - 1e-6).ceil().max(0.0) / unit;
    [Cell::Number(fixed(v, digits)), Cell::Number(format!("±{}", fixed(up, places)))]
}

/// A quantile in us and its error.
pub fn quantile(summary: Option<&Summary>, p: f64) -> [Cell; 2] {
    let Some(summary) = summary else { return [Cell::none(), Cell::none()] };
    let found: Option<&Quantile> = summary.quantiles.iter().find(|q| q.p == p);
    match found.and_then(|q| Some((q.value?, q.interval))) {
        Some((Value(ns), interval)) => with_error(ns, interval, US),
        None => [TOO_SMALL.into(), Cell::none()],
    }
}

/// The true maximum in us, and the least and the greatest of the rounds' maxima.
pub fn maximum(summary: Option<&Summary>) -> [Cell; 2] {
    let Some(summary) = summary else { return [Cell::none(), Cell::none()] };
    let of_rounds: Vec<f64> = summary.rounds.iter().map(|round| round.max.0).collect();
    let least = of_rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = of_rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = match of_rounds.len() {
        0 | 1 => Cell::none(),
        _ => Cell::Text(format!("{}..{}", short(least * US), short(greatest * US))),
    };
    [Cell::Number(short(summary.max.0 * US)), range]
}

/// A rate and its error.
pub fn rate(run: Option<&Run>, metric: RateMetric, scale: f64) -> [Cell; 2] {
    let found = run.and_then(|run| run.rates.iter().find(|figure| figure.metric == metric));
    match found.map(|figure| &figure.rate) {
        Some(Rate { value, interval, .. }) if !value.is_nan() => {
            with_error(*value, *interval, scale)
        }
        Some(_) | None => [Cell::none(), Cell::none()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(value: f64, low: f64, high: f64) -> (String, String) {
        let interval = Interval { low: Value(low), high: Value(high) };
        let [Cell::Number(value), Cell::Number(error)] = with_error(value, Some(interval), 1.0)
        else {
            panic!()
        };
        (value, error)
    }

    #[test]
    fn a_figure_is_given_to_the_last_digit_of_its_error() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(shown(15.3243, 15.32, 15.3284), pair("15.3243", "±0.0043"));
        assert_eq!(shown(15.3243, 15.0, 16.1), pair("15.32", "±0.78"));
        assert_eq!(shown(5003.2, 4900.0, 5100.0), pair("5003", "±103"));
        assert_eq!(shown(0.1243, 0.1243, 0.1243), pair("0.1243", "±0"));
        assert_eq!(shown(1.0, 0.5, f64::INFINITY), pair("1.000", "±inf"));
        assert_eq!(shown(f64::INFINITY, 5.0, f64::INFINITY), pair("inf", "±inf"));
    }

    #[test]
    fn spans_carry_their_unit() {
        let spans = [21.0, 1500.0, 5e6, 2000e9].map(span);
        assert_eq!(spans, ["21 ns", "1.5 us", "5 ms", "2000 s"]);
    }

    proptest! {
        #[test]
        fn what_is_printed_encloses_the_interval(
            value in 1e-3f64..1e9, down in 0.0f64..1.0, up in 0.0f64..1.0, power in -6i32..3
        ) {
            let width = value * 10f64.powi(power);
            let (low, high) = (value - down * width, value + up * width);
            let (v, e) = shown(value, low, high);
            let v: f64 = v.parse().unwrap();
            let e: f64 = e.trim_start_matches('±').parse().unwrap();
            // Four decimals are the end of it: half of the last.
            prop_assert!(v - e <= low + 6e-5 && v + e >= high - 6e-5, "{v} ±{e}: {low} {high}");
        }

        #[test]
        fn any_number_can_be_shown(v: f64, low: f64, high: f64) {
            let interval = Interval { low: Value(low), high: Value(high) };
            let _ = with_error(v, Some(interval), US);
            prop_assert!(!short(v).is_empty() && !span(v).is_empty());
        }
    }
}
