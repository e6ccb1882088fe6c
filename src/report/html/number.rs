//! Numbers as a person reads them in a table.
//!
//! Four significant digits and at most four decimals: what is cut is below 0.05 % or, for a
//! latency in us, below 0.1 ns. The exact value stands in the `value` of the `data` element.

use crate::stats::{Interval, Value};

/// Latencies are given in ns and shown in us.
pub const US: f64 = 1e-3;
/// Bytes per second, shown in MB/s.
pub const MB: f64 = 1e-6;
/// Bytes per second, shown in Gb/s.
pub const GB: f64 = 8e-9;
/// Messages per second, shown in millions.
pub const MILLION: f64 = 1e-6;

/// Four significant digits, at most four decimals.
pub fn short(v: f64) -> String {
    if v == f64::INFINITY {
        return "∞".to_owned();
    } else if v == f64::NEG_INFINITY {
        return "-∞".to_owned();
    } else if v.is_nan() {
        return "?".to_owned();
    }
    let decimals = match v.abs() {
        0.0 => 0,
        a if a < 1.0 => 4,
        a if a < 10.0 => 3,
        a if a < 100.0 => 2,
        a if a < 1000.0 => 1,
        _ => 0,
    };
    format!("{v:.decimals$}")
}

/// The characters of the point and the decimals, by which a column is aligned.
pub fn fraction(v: f64) -> usize {
    let text = short(v);
    text.find('.').map_or(0, |at| text.len() - at)
}

/// A figure that aligns with others on its decimal point: its fraction is as wide as that of the
/// column, `width` characters.
pub fn aligned(exact: f64, scale: f64, width: usize) -> String {
    let text = short(exact * scale);
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("<data value=\"{}\">{whole}<span class=\"f{width}\">{rest}</span></data>", plain(exact))
}

/// Both bounds of an interval, small, below its figure.
pub fn interval(i: Option<Interval>, scale: f64) -> String {
    match i {
        None => "<span class=\"ci\">no interval</span>".to_owned(),
        Some(Interval { low, high }) => format!(
            "<span class=\"ci\" data-low=\"{}\" data-high=\"{}\">{} – {}</span>",
            plain(low.0),
            plain(high.0),
            short(low.0 * scale),
            short(high.0 * scale)
        ),
    }
}

/// The shortest text that reads back as the same number.
pub fn plain(v: f64) -> String {
    if v.is_finite() { format!("{v}") } else { Value(v).0.to_string().to_lowercase() }
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
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
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
    match n {
        n if n >= 1 << 30 && n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (f64::INFINITY, "∞"),
        ];
        for (v, text) in cases {
            assert_eq!(short(v), text);
        }
    }

    #[test]
    fn spans_counts_and_sizes() {
        assert_eq!(span(21.0), "21 ns");
        assert_eq!(span(5e6), "5 ms");
        assert_eq!(span(2000e9), "2000 s");
        assert_eq!(count(1_000_000), "1\u{202f}000\u{202f}000");
        assert_eq!(
            (bytes(64), bytes(65536), bytes(1500)),
            ("64 B".into(), "64 KiB".into(), "1500 B".into())
        );
    }
}
