//! Quantities as types, and how a person writes and reads them.
//!
//! Every stage uses this module; it uses none. Parsing is exact about what is allowed, because a
//! wrong unit must be refused in one sentence before anything runs.

mod injected_clock_error;

pub use injected_clock_error::{InjectedClockError, Step};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A number of bytes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A length of time in nanoseconds, as a person asks for it (`--time 2s`, `--pause 10us`).
///
/// Measured times are not of this type: see the package `clock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Messages per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageRate(pub f64);

impl MessageRate {
    /// The highest: above it a message has less than a nanosecond.
    pub const MOST: f64 = 1e9;
}

/// Bytes of payload per second. Printed as MB/s (10^6 B/s) or Gb/s (10^9 b/s), never bare.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteRate(pub f64);

/// Bits per second of a link, as it is asked for (`--rate 1gbit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(pub u64);

/// A time in ns as a number of the unit that leaves one to three digits before the point.
pub fn scaled_ns(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        a if a < 1e3 => (ns, "ns"),
        a if a < 1e6 => (ns * 1e-3, "us"),
        a if a < 1e9 => (ns * 1e-6, "ms"),
        _ => (ns * 1e-9, "s"),
    }
}

/// `p50`, `p99.9`: the usual name of a quantile.
pub fn quantile_name(p: f64) -> String {
    if p >= 1.0 {
        return "max".into();
    }
    // Six digits: 0.9999 * 100 is 99.99000000000001.
    format!("p{}", (p * 1e8).round() / 1e6)
}

/// A number of things: `1 round`, `3 rounds`.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// CPUs in the kernel's notation: `0-3,8`.
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(cpu, expected)| **cpu == *expected).count();
        let last = rest[run - 1];
        parts.push(if run == 1 { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[run..];
    }
    parts.join(",")
}

/// A time of RFC 3339 without the fraction of its second; any other text as it is.
pub fn to_the_second(time: &str) -> String {
    let whole = |time: jiff::Timestamp| jiff::Timestamp::from_second(time.as_second()).ok();
    time.parse().ok().and_then(whole).map_or_else(|| time.to_owned(), |time| time.to_string())
}

/// Longest span that a person may ask for: a week. Longer is a slip, and keeps sums far from
/// overflow.
pub const LONGEST: Span = Span(7 * 24 * 3600 * 1_000_000_000);

/// How a quantity is written.
struct Notation {
    kind: &'static str,
    /// Each with what it is in the smallest one.
    units: &'static [(&'static str, u64)],
    allowed: &'static str,
}

/// Most digits of a number: more than any quantity has, and their value fits 128 bits.
const MOST_DIGITS: usize = 19;

impl Notation {
    /// A number as it is written, and what one of it is in the smallest unit.
    fn split<'a>(&self, text: &'a str) -> Option<(&'a str, u64)> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let (power, unit) = power_of_ten(rest)?;
        let (_, factor) = self.units.iter().find(|(name, _)| *name == unit.trim_start())?;
        Some((number, factor.checked_mul(power)?))
    }

    /// A quantity that is a whole number of its smallest unit, exactly as written: 0.3us is 300 ns
    /// although 0.3 has no exact binary form; 0.0001ns is not a whole number.
    fn whole(&self, text: &str) -> Option<u64> {
        let (number, factor) = self.split(text)?;
        let (before, after) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{before}{after}");
        if digits.len() > MOST_DIGITS {
            return None;
        }
        // An empty or a second point is no number.
        let units = digits.parse::<u128>().ok()?.checked_mul(factor.into())?;
        let places = 10u128.checked_pow(u32::try_from(after.len()).ok()?)?;
        units.is_multiple_of(places).then(|| u64::try_from(units / places).ok())?
    }

    fn read(&self, text: &str, limits: RangeInclusive<u64>) -> Result<u64, String> {
        self.whole(text).filter(|n| limits.contains(n)).ok_or_else(|| self.wrong(text))
    }

    /// What was written wrong, and what is allowed.
    fn wrong(&self, text: &str) -> String {
        format!("invalid {} '{text}': use {}", self.kind, self.allowed)
    }
}

/// The factor that a text such as `e6kB` starts with (1 without an exponent), and what follows.
fn power_of_ten(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return Some((1, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (exponent, unit) = rest.split_at(end);
    Some((10u64.checked_pow(exponent.parse().ok()?)?, unit))
}

/// A whole number as it is typed, such as 500 or 1e6.
pub fn whole_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let (power, rest) = power_of_ten(rest)?;
    digits.parse::<u64>().ok().filter(|_| rest.is_empty())?.checked_mul(power)
}

/// A value in the first of these units that is not above it, or in the last.
fn scaled(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    let fits = units.iter().find(|(unit, _)| value >= *unit).or(units.last());
    fits.map_or((value, ""), |(unit, name)| (value / unit, name))
}

/// Largest quantity: what an `f64` still counts one by one, as JSON's readers do.
const MOST: u64 = 1 << 53;

impl Bytes {
    /// 2^20 bytes.
    pub const MIB: Bytes = Bytes(1 << 20);
}

const SIZES: Notation = Notation {
    kind: "size",
    units: &[
        ("", 1),
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        // Not in lower case: perftest, iperf3, qperf and netperf agree on `64K`, but `64k` is
        // 65536 B to iperf3 and 64000 B to qperf and netperf.
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
    ],
    allowed: "a whole number of bytes such as 64, 64K or 64KiB, 1M or 1MiB (2^10, 2^20), 64kB, 1MB \
              (10^3, 10^6) or 1e6",
};

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        SIZES.read(text, 0..=MOST).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// In the largest binary unit that keeps it whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
            n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
            n => format!("{n} B"),
        };
        f.pad(&text)
    }
}

impl Span {
    /// As the standard library's type.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

const TIMES: Notation = Notation {
    kind: "time",
    units: &[
        ("ns", 1),
        ("nsec", 1),
        ("us", 1_000),
        ("usec", 1_000),
        ("ms", 1_000_000),
        ("msec", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    allowed: "a number with ns, us, ms, s, min or h, at most a week, such as 10us or 1.5s",
};

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        match text {
            // Zero is zero in any unit.
            "0" => Ok(Span(0)),
            text => TIMES.read(text, 0..=LONGEST.0).map(Span),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let (value, unit) = scaled(self.0 as f64, &units);
        f.pad(&format!("{value} {unit}"))
    }
}

const MESSAGE_RATES: Notation = Notation {
    kind: "rate",
    units: &[("", 1), ("k", 1_000), ("M", 1_000_000)],
    allowed: "messages per second above 0 and up to 1000M, such as 500, 10k or 1.5M",
};

impl FromStr for MessageRate {
    type Err = String;

    fn from_str(text: &str) -> Result<MessageRate, String> {
        let parsed = MESSAGE_RATES.split(text.strip_suffix("/s").unwrap_or(text));
        let rate =
            parsed.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit as f64));
        let allowed = rate.filter(|rate| *rate > 0.0 && *rate <= MessageRate::MOST);
        allowed.map(MessageRate).ok_or_else(|| MESSAGE_RATES.wrong(text))
    }
}

impl fmt::Display for MessageRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = scaled(self.0, &[(1e6, "M msg/s"), (1e3, "k msg/s"), (1.0, "msg/s")]);
        f.pad(&format!("{value:.3} {unit}"))
    }
}

const BIT_RATES: Notation = Notation {
    kind: "rate",
    units: &[("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)],
    allowed: "bits per second from 10kbit to 1000gbit, such as 100mbit or 1gbit",
};

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<BitRate, String> {
        // Below the first a frame takes more than a second, and above the second no link is.
        BIT_RATES.read(text, 10_000..=1_000_000_000_000).map(BitRate)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} MB/s", self.0 / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_explicit() {
        assert_eq!("64KiB".parse(), Ok(Bytes(65536)));
        assert_eq!("64kB".parse(), Ok(Bytes(64000)));
        assert_eq!("8".parse(), Ok(Bytes(8)));
        assert_eq!("1.5KiB".parse(), Ok(Bytes(1536)));
        assert_eq!("0.3us".parse(), Ok(Span(300)));
        assert_eq!("2s".parse(), Ok(Span(2_000_000_000)));
        assert_eq!("10k/s".parse(), Ok(MessageRate(1e4)));
        assert_eq!("2.5gbit".parse(), Ok(BitRate(2_500_000_000)));
    }

    #[test]
    fn what_the_peers_users_write_is_understood_where_all_agree_on_it() {
        for (text, bytes) in [("64K", 65536), ("1M", 1 << 20), ("2G", 2 << 30), ("1e6", 1_000_000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for (text, ns) in [("10sec", 10_000_000_000), ("5usec", 5_000), ("1e3ns", 1_000)] {
            assert_eq!(text.parse(), Ok(Span(ns)), "{text}");
        }
        assert_eq!("1e6".parse(), Ok(MessageRate(1e6)));
        assert_eq!("2.5e5/s".parse(), Ok(MessageRate(2.5e5)));
        assert_eq!((whole_number("1e6"), whole_number("20")), (Some(1_000_000), Some(20)));
        for bad in ["", "e6", "1e", "1e99", "1e6k", "-1", "1.5e3"] {
            assert_eq!(whole_number(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_ambiguous_or_wrong_is_refused_with_what_is_allowed() {
        for bad in ["", "64k", "1m", "-1", "1.5", "1e", "1e99", "64 kib", "99999999999GiB", "NaN"] {
            let refusal = bad.parse::<Bytes>().unwrap_err();
            assert!(refusal.contains(&format!("'{bad}'")) && refusal.contains("use "));
        }
        for bad in [
            "5", "1week", ".", ".s", "1..5s", "1.5.5s", "0.0ms1", "1.1ns", "0.0001ns", "9999999h",
            "s",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        for bad in ["0", "1G", "-5", "1e10"] {
            assert!(bad.parse::<MessageRate>().is_err(), "{bad}");
        }
        for bad in ["0gbit", "1", "1Gb/s", "1bit", "9kbit", "2000gbit", "-1gbit"] {
            assert!(bad.parse::<BitRate>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_time_is_read_to_the_nanosecond(ns in 0u64..=LONGEST.0) {
            let typed = format!("{}.{:09}s", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(typed.parse(), Ok(Span(ns)));
        }

        #[test]
        fn nothing_that_is_typed_panics(text: String) {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<MessageRate>();
            let _ = text.parse::<BitRate>();
        }

        #[test]
        fn a_size_survives_being_written(n in 0u64..1 << 50) {
            let written = Bytes(n).to_string().replace(' ', "");
            prop_assert_eq!(written.parse(), Ok(Bytes(n)));
        }
    }
}
