//! `villas.human`: `seconds.nanoseconds+offset(sequence)`, then a tab before each value. The offset
//! is the delay in seconds from origin to receipt, where that is known.

use super::words::{Foreign, value, word, wrong};
use crate::signal::{Kind, Sample, TimeOfDay};
use std::io::Write;

pub fn write(sample: &Sample, out: &mut Vec<u8>) {
    let TimeOfDay { seconds, nanoseconds } = sample.origin;
    let _ = write!(out, "{seconds}.{nanoseconds:09}");
    if let Some(received) = sample.received {
        let delay = received.as_ns().wrapping_sub(sample.origin.as_ns()) as i64;
        let _ = write!(out, "{:+e}", delay as f64 / 1e9);
    }
    let _ = write!(out, "({})", sample.sequence);
    for one in &sample.values {
        out.push(b'\t');
        word(*one, out);
    }
    out.push(b'\n');
}

pub fn read(line: &str, kind: Kind) -> Result<Sample, Foreign> {
    let mut words = line.split_whitespace();
    let time = words.next().ok_or(Foreign::Short)?;
    let values: Vec<&str> = words.collect();
    let (time, sequence) = match time.split_once('(') {
        Some((time, rest)) => {
            // An F behind it marks the first sample of a frame.
            let rest = rest.strip_suffix('F').unwrap_or(rest);
            let digits = rest.strip_suffix(')').ok_or(Foreign::Short)?;
            (
                time,
                digits
                    .parse()
                    .or_else(|_| wrong(format!("'{digits}' is not a sequence number")))?,
            )
        }
        None => (time, 0),
    };
    // The first character may be no sign: a time is not negative.
    let sign = time.char_indices().skip(1).find(|(_, c)| matches!(c, '+' | '-'));
    let (time, delay) = match sign {
        Some((at, _)) => (&time[..at], Some(&time[at..])),
        None => (time, None),
    };
    let origin = seconds(time)?;
    let received = delay.map(|delay| later(origin, delay)).transpose()?;
    let values = values.into_iter().map(|word| value(word, kind)).collect::<Result<_, _>>()?;
    Ok(Sample { sequence, origin, received, values })
}

/// `1700000000.5` is half a second after; digits beyond nanoseconds are dropped.
fn seconds(text: &str) -> Result<TimeOfDay, Foreign> {
    let bad = || Foreign::Wrong(format!("'{text}' is not a time: expected seconds.nanoseconds"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let seconds = whole.parse().map_err(|_| bad())?;
    Ok(TimeOfDay { seconds, nanoseconds: digits.parse().map_err(|_| bad())? })
}

/// A time so many seconds later.
pub(super) fn later(origin: TimeOfDay, delay: &str) -> Result<TimeOfDay, Foreign> {
    let known = delay.parse::<f64>().ok().filter(|delay| delay.abs() < 1e9);
    let Some(delay) = known else { return wrong(format!("'{delay}' is not a delay in seconds")) };
    let ns = (delay * 1e9).round() as i64;
    Ok(TimeOfDay::from_ns(origin.as_ns().wrapping_add(ns as u64)))
}
