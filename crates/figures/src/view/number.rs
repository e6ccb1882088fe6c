//! Numbers as a person reads them beside their error.
//!
//! A figure has four significant digits and at most four decimals: what is cut is below 0.05 % or,
//! of a latency in us, below 0.1 ns. Beside an error it is given to the error's last digit, and the
//! error is rounded outward to two significant digits, so that the interval that is printed
//! encloses the one that was found. The page's read-outs follow the same rules (`web/units.js`).

pub use wiregauge_base::units::quantile_name;
use wiregauge_base::units::scaled_ns;
use wiregauge_stats::Interval;

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

/// A share in per cent, two significant digits and no unit.
pub fn percent(share: f64) -> String {
    let value = share * PERCENT;
    fixed(value, decimals(value, 2))
}

/// The text of a size with the sign of a value.
pub fn signed(size: impl std::fmt::Display, value: f64) -> String {
    format!("{}{size}", if value < 0.0 { '-' } else { '+' })
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

/// The interval of a value, each bound as `shown` shows it.
pub fn interval(value: f64, interval: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    match interval {
        None => "no interval".into(),
        Some(interval) if !is_resolved(value, interval) => UNRESOLVED.into(),
        Some(Interval { low, high }) => format!("[{}, {}]", shown(low.0), shown(high.0)),
    }
}

/// As the page shows the interval of a figure below it.
pub fn interval_on_page(value: f64, both: Interval, scale: f64) -> String {
    match is_resolved(value, both) {
        false => UNRESOLVED.into(),
        true => {
            // Outward, as in the terminal: an interval must not be shown narrower than it is.
            let low = outward(both.low.0 * scale, f64::floor);
            let high = outward(both.high.0 * scale, f64::ceil);
            format!("{low} – {high}").replace("inf", "∞")
        }
    }
}

/// What is shown of an interval that does not say how large the figure is.
pub const UNRESOLVED: &str = "unresolved";

/// Whether an interval says how large a figure is: both of its ends are known, and its half is no
/// larger than the figure. One that is lopsided is shown by its ends, which say how far it reaches,
/// unless that is farther than any latency: of two rounds that differ much.
fn has_size(value: f64, interval: Interval) -> bool {
    let is_far = value != 0.0 && larger(value, interval) > FARTHEST * value.abs();
    let is_shown = is_lopsided(value, interval) || larger(value, interval) <= value.abs();
    interval.resolves(value) && is_shown && !is_far
}

/// The longest half of an interval that says something, in values.
const FARTHEST: f64 = 1e5;

/// Whether an interval is shown. One that reaches below 0 is that of a difference, which may be 0.
fn is_resolved(value: f64, interval: Interval) -> bool {
    has_size(value, interval) || interval.low.0 < 0.0 && interval.resolves(value)
}

/// The larger half.
fn larger(value: f64, Interval { low, high }: Interval) -> f64 {
    (value - low.0).max(high.0 - value)
}

/// Whether one half is large, and far larger than the other; so it is where the value is infinite.
fn is_lopsided(value: f64, interval: Interval) -> bool {
    let larger = larger(value, interval);
    let lesser = (value - interval.low.0).min(interval.high.0 - value);
    // Where both are infinite they are no numbers, and neither condition holds.
    value.is_infinite() || (larger > SMALL * value.abs() && larger > LOPSIDED * lesser)
}

/// One half of an interval may be so many times the other before both ends are shown.
const LOPSIDED: f64 = 3.0;
/// Where the larger half is below this share of the value, it is shown alone whatever the other.
const SMALL: f64 = 0.1;

/// A figure, and its error: with its sign, the larger half of its interval; `(low..high)` where
/// one half is large and far larger than the other, as of a quantile that is nearly a stall; or
/// `unresolved` by `is_resolved`.
pub fn with_error(value: f64, interval: Option<Interval>, scale: f64) -> (String, Option<String>) {
    let v = value * scale;
    let Some(interval) = interval.filter(|_| !v.is_nan()) else {
        return (short(v), None);
    };
    if !is_resolved(value, interval) {
        return (short(v), Some(UNRESOLVED.into()));
    }
    let (low, high) = (interval.low.0 * scale, interval.high.0 * scale);
    if is_lopsided(value, interval) {
        let (low, high) = (rounded(low, f64::floor), rounded(high, f64::ceil));
        return (short(v), Some(format!("({low}..{high})")));
    }
    let digits = decimals(larger(value, interval) * scale, 2).max(decimals(v, 4));
    let shown: f64 = fixed(v, digits).parse().unwrap_or(v);
    let error = (high - shown).max(shown - low).max(0.0);
    // Up, since an error must not be shown smaller than it is.
    (fixed(v, digits), Some(format!("±{}", rounded(error, f64::ceil))))
}

/// Returns two significant digits, at most four decimals, rounded so that an interval grows.
fn rounded(v: f64, outward: fn(f64) -> f64) -> String {
    at_decimals(v, decimals(v, 2), outward)
}

/// Returns four significant digits, at most four decimals, rounded so that an interval grows.
fn outward(v: f64, outward: fn(f64) -> f64) -> String {
    at_decimals(v, decimals(v, 4), outward)
}

fn at_decimals(v: f64, places: usize, outward: fn(f64) -> f64) -> String {
    let unit = 10f64.powi(places as i32);
    // What is left of the binary form of a decimal is not a digit of it.
    let units = v * unit;
    let near = (units - units.round()).abs() < 1e-6;
    fixed(if near { units.round() } else { outward(units) } / unit, places)
}

/// How much room a figure for a glance takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// Both ends of a lopsided interval, and words for what is not resolved.
    #[default]
    Enough,
    /// The far end alone (`1.9 ≤2.5`), and a sign (`450 ±?`).
    Little,
}

/// A figure for a glance: its error in two significant digits, and the value to the error's last
/// digit: `3.36 ±0.42`, `40000 ±13000`. `(low..high)` where one half is far larger than the other,
/// `(unresolved)` by `is_resolved`.
pub fn compact(
    value: f64,
    interval: Option<Interval>,
    scale: f64,
    room: Room,
) -> (String, Option<String>) {
    let v = value * scale;
    let Some(interval) = interval.filter(|_| !v.is_nan()) else {
        return match room {
            Room::Enough => (fixed(v, decimals(v, 3)), None),
            Room::Little => (at_place(v, place(v), f64::round), None),
        };
    };
    if !has_size(value, interval) {
        let sign = if room == Room::Little { "±?".into() } else { format!("({UNRESOLVED})") };
        return (at_place(v, place(v), f64::round), Some(sign));
    }
    let (low, high) = (interval.low.0 * scale, interval.high.0 * scale);
    if is_lopsided(value, interval) {
        let (from, to) = (place(low), place(high));
        let ends = (at_place(low, from, f64::floor), at_place(high, to, f64::ceil));
        let error = match (room, high - v > v - low) {
            (Room::Enough, _) => format!("({}..{})", ends.0, ends.1),
            (Room::Little, true) => format!("≤{}", ends.1),
            (Room::Little, false) => format!("≥{}", ends.0),
        };
        // No digit that neither end has.
        return (at_place(v, place(v).max(from.min(to)), f64::round), Some(error));
    }
    let larger = larger(value, interval) * scale;
    if larger == 0.0 {
        return with_error(value, Some(interval), scale);
    }
    // What rounding the value moves it by is in the error, which may grow by a digit.
    let shown = |place: i32| {
        let text = at_place(v, place, f64::round);
        let middle: f64 = text.parse().unwrap_or(v);
        (text, (high - middle).max(middle - low).max(0.0))
    };
    let first = place(larger);
    let (text, error) = shown(first);
    let wider = place(error);
    let (text, error) = if wider > first { shown(wider) } else { (text, error) };
    (text, Some(format!("±{}", at_place(error, first.max(wider), f64::ceil))))
}

/// The power of ten of the second significant digit; at most four decimals.
fn place(v: f64) -> i32 {
    if v == 0.0 || !v.is_finite() {
        return 0;
    }
    let place = v.abs().log10().floor() as i32 - 1;
    // 9.96 has three digits once it is rounded up.
    let digits = (v.abs() / 10f64.powi(place) - 1e-6).ceil();
    (place + i32::from(digits > 99.5)).max(-(MOST_DECIMALS as i32))
}

/// A number whose last digit is that of a power of ten.
fn at_place(v: f64, place: i32, round: fn(f64) -> f64) -> String {
    let unit = 10f64.powi(place.abs());
    let units = if place < 0 { v * unit } else { v / unit };
    // What is left of the binary form of a decimal is not a digit of it.
    let near = (units - units.round()).abs() < 1e-6;
    let units = if near { units.round() } else { round(units) };
    let decimals = usize::try_from(-place).unwrap_or(0);
    fixed(if place < 0 { units / unit } else { units * unit }, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wiregauge_stats::Value;

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
    }

    #[test]
    fn a_lopsided_interval_shows_both_ends() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(shown(2.303, 2.281, 1152.4), pair("2.303", "(2.2..1153)"));
        assert_eq!(shown(100.0, 5.0, 101.0), pair("100.0", "(5.0..101)"));
        assert_eq!(shown(2.0, 0.0, 1.9e5), pair("2.000", "(0..190000)"));
        assert_eq!(shown(2.0, 0.0, 7e14), pair("2.000", "unresolved"));
        assert_eq!(shown(2.0, 1.99, 2.1), pair("2.000", "±0.10"), "a twentieth");
        assert_eq!(shown(f64::INFINITY, 5.07, f64::INFINITY), pair("inf", "(5.0..inf)"));
    }

    #[test]
    fn an_error_above_its_figure_is_unresolved_in_every_view() {
        let cases = [(76.2, 10.0, 170.0, true), (76.2, 0.5, 152.0, false), (4.0, 3.9, 90.0, false)];
        for (value, low, high, is_unresolved) in cases {
            let both = Interval { low: Value(low), high: Value(high) };
            let error = compact(value, Some(both), 1.0, Room::Enough).1.unwrap();
            assert_eq!(error == "(unresolved)", is_unresolved, "{error}");
            let little = compact(value, Some(both), 1.0, Room::Little).1.unwrap();
            assert_eq!(little == "±?", is_unresolved, "{little}");
            let page = interval_on_page(value, both, 1.0);
            for error in [shown(value, low, high).1, page, interval(value, Some(both), short)] {
                assert_eq!(error == "unresolved", is_unresolved, "{error}");
            }
        }
    }

    #[test]
    fn at_a_glance_the_error_has_two_digits_and_the_value_ends_with_it() {
        let (inf, k) = (f64::INFINITY, 1e3);
        let cases = [
            (3.36, 2.94, 3.78, "3.36 ±0.42"),
            (40_239.0, 27_737.0, 52_741.0, "40000 ±13000"),
            (15.3243, 15.32, 15.3284, "15.3243 ±0.0043"),
            (1250.0, 1187.5, 1275.0, "1250 ±63"),
            (0.1826, 0.171, 0.1943, "0.183 ±0.012"),
            (99.7, 89.75, 109.65, "100 ±11"),
            (5.0, 5.0, 5.0, "5.000 ±0"),
            (0.02505, 0.02505, 0.02505, "0.0250 ±0.0001"),
            (1.916, 1.83, 2.5, "1.9 (1.8..2.5)"),
            (2.303, 2.281, 1152.4, "2.3 (2.2..1200)"),
            (121.3, -14.7, 257.3, "120 (unresolved)"),
            (2303.0, 1151.0 - 1152.0 * k, 1152.0 * k, "2300 (unresolved)"),
            (449.8, -inf, 500.0, "450 (unresolved)"),
            (inf, 5.07, inf, "inf (5.0..inf)"),
        ];
        for (value, low, high, text) in cases {
            let interval = Interval { low: Value(low), high: Value(high) };
            let (value, error) = compact(value, Some(interval), 1.0, Room::Enough);
            assert_eq!(format!("{value} {}", error.unwrap()), text);
        }
        assert_eq!(compact(4044.4, None, 1.0, Room::Enough), ("4044".into(), None));
        assert_eq!(compact(98_830.0, None, US, Room::Enough), ("98.8".into(), None));
        let little = |value, low, high| {
            let interval = Interval { low: Value(low), high: Value(high) };
            let (value, error) = compact(value, Some(interval), 1.0, Room::Little);
            format!("{value} {}", error.unwrap())
        };
        assert_eq!(little(1.916, 1.83, 2.5), "1.9 ≤2.5");
        assert_eq!(little(100.0, 5.0, 101.0), "100 ≥5.0");
        assert_eq!(little(449.8, -inf, 500.0), "450 ±?");
        assert_eq!(compact(98_830.0, None, US, Room::Little), ("99".into(), None));
    }

    #[test]
    fn the_page_shows_no_interval_narrower_than_it_is() {
        let page = |low, high| {
            let both = Interval { low: Value(low), high: Value(high) };
            interval_on_page((low + high) / 2.0, both, 1.0)
        };
        assert_eq!(page(3.333_33, 4.666_67), "3.333 – 4.667");
        assert_eq!(page(3.333_99, 4.666_01), "3.333 – 4.667");
        assert_eq!(page(3.5, 4.5), "3.500 – 4.500");
        assert_eq!(page(12_345.6, 12_399.4), "12345 – 12400");
    }

    #[test]
    fn an_end_that_the_samples_cannot_give_is_said() {
        let open = Interval { low: Value(f64::NEG_INFINITY), high: Value(5.0) };
        assert_eq!(with_error(1.0, Some(open), US).1.as_deref(), Some("unresolved"));
        // A difference may be 0.
        let around = Interval { low: Value(-2.0), high: Value(2.0) };
        assert_eq!(with_error(0.5, Some(around), 1.0).1.as_deref(), Some("±2.5"));
        assert_eq!(shown(1.0, 0.5, f64::INFINITY).1, "unresolved");
        assert_eq!(interval(1.0, Some(open), short), "unresolved");
        assert_eq!(interval_on_page(1.0, open, US), "unresolved");
        let lost = Interval { low: Value(5.0), high: Value(f64::INFINITY) };
        assert_eq!(interval(f64::INFINITY, Some(lost), short), "[5.000, inf]");
        assert_eq!(interval(1.0, None, short), "no interval");
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
    fn shares_have_two_digits_and_changes_a_sign() {
        let shares = [0.12, 0.0912, 0.1149, 1.5, 7415.2, 0.000_351].map(percent);
        assert_eq!(shares, ["12", "9.1", "11", "150", "741520", "0.035"]);
        assert_eq!([signed(3, 1.0), signed(3, -1.0)], ["+3", "-3"]);
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
            prop_assume!(e != UNRESOLVED);
            let v: f64 = v.parse().unwrap();
            let (below, above) = match e.strip_prefix('±') {
                Some(e) => (v - e.parse::<f64>().unwrap(), v + e.parse::<f64>().unwrap()),
                None => {
                    let (low, high) = e[1..e.len() - 1].split_once("..").unwrap();
                    (low.parse().unwrap(), high.parse().unwrap())
                }
            };
            // Four decimals are the end of it: half of the last.
            prop_assert!(below <= low + 6e-5 && above >= high - 6e-5, "{v} {e}: {low} {high}");
        }

        #[test]
        fn what_a_glance_shows_encloses_the_interval_in_few_digits(
            value in 1e-3f64..1e9, down in 0.0f64..1.0, up in 0.0f64..1.0, power in -6i32..1
        ) {
            let width = value * 10f64.powi(power);
            let (low, high) = (value - down * width, value + up * width);
            let interval = Interval { low: Value(low), high: Value(high) };
            let (v, e) = compact(value, Some(interval), 1.0, Room::Enough);
            let (v, e): (f64, _) = (v.parse().unwrap(), e.unwrap());
            let digits = |text: &str| {
                let digits = text.replace('.', "");
                digits.trim_start_matches('0').trim_end_matches('0').len()
            };
            let (below, above) = match e.strip_prefix('±') {
                Some(e) => {
                    prop_assert!(digits(e) <= 2, "{v} ±{e}");
                    (v - e.parse::<f64>().unwrap(), v + e.parse::<f64>().unwrap())
                }
                None => {
                    let (low, high) = e[1..e.len() - 1].split_once("..").unwrap();
                    prop_assert!(digits(low) <= 2 && digits(high) <= 2, "{e}");
                    (low.parse().unwrap(), high.parse().unwrap())
                }
            };
            let allowed = 1.1e-4 + 1e-6 * value;
            let encloses = below <= low + allowed && above >= high - allowed;
            prop_assert!(encloses, "{v} {e}: {low} {high}");
        }

        #[test]
        fn any_number_can_be_shown(v: f64, low: f64, high: f64) {
            let interval = Interval { low: Value(low), high: Value(high) };
            let _ = with_error(v, Some(interval), US);
            let _ = compact(v, Some(interval), US, Room::Enough);
            prop_assert!(!short(v).is_empty() && !span(v).is_empty());
        }
    }
}
