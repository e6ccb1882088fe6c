//! Numbers as a person reads them beside their error.
//!
//! A figure has four significant digits and at most four decimals: what is cut is below 0.05 % or,
//! of a latency in us, below 0.1 ns. Beside an error it is given to the error's last digit, and the
//! error is rounded up to two significant digits, so that the interval that is printed encloses the
//! one that was found. The page's read-outs follow the same rules (`web/units.js`).

use crate::stats::Interval;
pub use crate::units::quantile_name;
use crate::units::scaled_ns;

/// Latencies are given in ns and shown in us.
pub const US: f64 = 1e-3;
/// Bytes per second, shown in MB/s.
pub const MEGABYTES: f64 = 1e-6;
/// Bytes per second, shown in Gb/s.
pub const GIGABITS: f64 = 8e-9;
/// Messages per second, shown in thousands.
pub const THOUSANDS: f64 = 1e-3;
/// A share, shown in per cent.
pub const PERCENT: f64 = 1e2;

/// Most decimals of anything.
const MOST_DECIMALS: usize = 4;

/// Decimals that leave `digits` significant digits.
fn decimals(v: f64, digits: i32) -> usize {
    if v == 0.0 || !v.is_finite() {
        return 0;
    }
    let before = v.abs().log10().floor() as i32 + 1;
    usize::try_from(digits - before).unwrap_or(0).min(MOST_DECIMALS)
}

/// A number with this many decimals; `inf` and `-inf` where it is infinite, `?` where it is NaN.
pub fn fixed(v: f64, decimals: usize) -> String {
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

/// As the page shows a number: with `decimals` decimals, or as [`short`].
pub fn on_page(v: f64, decimals: Option<usize>) -> String {
    decimals.map_or_else(|| short(v), |decimals| fixed(v, decimals)).replace("inf", "∞")
}

/// The text of a number, parted before its point.
pub fn at_point(text: &str) -> (&str, &str) {
    text.split_at(text.find('.').unwrap_or(text.len()))
}

/// Four significant digits, at most four decimals.
pub fn short(v: f64) -> String {
    fixed(v, decimals(v, 4))
}

/// The same without zeros at its end.
pub fn trimmed(v: f64) -> String {
    let text = short(v);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A measured time.
pub fn time(ns: f64) -> String {
    let (value, unit) = scaled_ns(ns);
    format!("{} {unit}", short(value))
}

/// A time that was chosen, or is of no great precision: without zeros at its end.
pub fn span(ns: f64) -> String {
    let (value, unit) = scaled_ns(ns);
    format!("{} {unit}", trimmed(value))
}

fn scaled_rate(rate: f64) -> (f64, &'static str) {
    match rate {
        r if r >= 1e6 => (r * 1e-6, "M msg/s"),
        r if r >= 1e3 => (r * 1e-3, "k msg/s"),
        r => (r, "msg/s"),
    }
}

/// Messages per second that were measured.
pub fn per_second(rate: f64) -> String {
    let (value, unit) = scaled_rate(rate);
    format!("{} {unit}", short(value))
}

/// Messages per second that were chosen: without zeros at its end.
pub fn pace(rate: f64) -> String {
    let (value, unit) = scaled_rate(rate);
    format!("{} {unit}", trimmed(value))
}

/// A count in groups of three, parted by narrow spaces that do not break.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(d);
    }
    out
}

/// A size in the largest binary unit that divides it.
pub fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
    let divides = |power: u32| n > 0 && n.trailing_zeros() >= power;
    let (power, unit) = units.into_iter().find(|(power, _)| divides(*power)).unwrap_or((0, "B"));
    format!("{} {unit}", n >> power)
}

/// An interval, each bound as `shown` shows it.
pub fn interval(interval: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    interval.map_or_else(
        || "no interval".into(),
        |Interval { low, high }| format!("[{}, {}]", shown(low.0), shown(high.0)),
    )
}

/// A figure, and its error with its sign: the larger half of its interval.
pub fn with_error(value: f64, interval: Option<Interval>, scale: f64) -> (String, Option<String>) {
    let v = value * scale;
    let Some(Interval { low, high }) = interval.filter(|_| !v.is_nan()) else {
        return (short(v), None);
    };
    let (low, high) = (low.0 * scale, high.0 * scale);
    if !(v.is_finite() && low.is_finite() && high.is_finite()) {
        return (short(v), Some("±inf".into()));
    }
    let digits = decimals((high - v).max(v - low), 2).max(decimals(v, 4));
    let shown: f64 = fixed(v, digits).parse().unwrap_or(v);
    let error = (high - shown).max(shown - low).max(0.0);
    let places = decimals(error, 2);
    let unit = 10f64.powi(places as i32);
    // Up, since an error must not be shown smaller than it is; what is left of the binary form of a
    // decimal is not an error.
    let up = (error * unit - 1e-6).ceil().max(0.0) / unit;
    (fixed(v, digits), Some(format!("±{}", fixed(up, places))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Value;
    use proptest::prelude::*;

    fn shown(value: f64, low: f64, high: f64) -> (String, String) {
        let interval = Interval { low: Value(low), high: Value(high) };
        let (value, error) = with_error(value, Some(interval), 1.0);
        (value, error.unwrap())
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
    fn four_digits_and_at_most_four_decimals() {
        let cases = [
            (0.0, "0"),
            (0.0214, "0.0214"),
            (0.1243, "0.1243"),
            (1.2432, "1.243"),
            (15.317, "15.32"),
            (153.17, "153.2"),
            (5003.2, "5003"),
            (123_456.7, "123457"),
            (-2.5, "-2.500"),
            (f64::INFINITY, "inf"),
        ];
        for (v, text) in cases {
            assert_eq!(short(v), text);
        }
    }

    #[test]
    fn spans_rates_counts_and_sizes() {
        let spans = [21.0, 1500.0, 5e6, 2000e9].map(span);
        assert_eq!(spans, ["21 ns", "1.5 us", "5 ms", "2000 s"]);
        assert_eq!(
            (time(1500.0).as_str(), per_second(1e5).as_str()),
            ("1.500 us", "100.0 k msg/s")
        );
        assert_eq!(count(1_000_000), "1\u{202f}000\u{202f}000");
        assert_eq!([64, 65536, 1500].map(bytes), ["64 B", "64 KiB", "1500 B"]);
        assert_eq!([0.5, 0.999].map(quantile_name), ["p50", "p99.9"]);
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
