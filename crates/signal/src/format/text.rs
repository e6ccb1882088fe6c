//! The forms that are lines of text, a sample each.

use crate::{Sample, TimeOfDay, Value};
use serde_json::{Map, Value as Json, json};
use std::io::Write;

/// Nanoseconds from origin to receipt, where that is known.
fn delay_ns(sample: &Sample) -> Option<i64> {
    sample.received.map(|received| received.as_ns().wrapping_sub(sample.origin.as_ns()) as i64)
}

/// `villas.human`: `seconds.nanoseconds+offset(sequence)`, then a tab before each value. The offset
/// is the delay in seconds from origin to receipt, where that is known.
pub fn human(sample: &Sample, out: &mut Vec<u8>) {
    let TimeOfDay { seconds, nanoseconds } = sample.origin;
    // Writing to a vector does not fail; so below.
    let _ = write!(out, "{seconds}.{nanoseconds:09}");
    if let Some(delay) = delay_ns(sample) {
        let _ = write!(out, "{:+e}", delay as f64 / 1e9);
    }
    let _ = write!(out, "({})", sample.sequence);
    words(b'\t', sample, out);
}

/// `csv`: `seconds,nanoseconds,offset,sequence`, then the values. The offset is the delay in
/// seconds from origin to receipt; `nan` stands for what is not known.
pub fn csv(sample: &Sample, out: &mut Vec<u8>) {
    let TimeOfDay { seconds, nanoseconds } = sample.origin;
    let _ = write!(out, "{seconds},{nanoseconds:09},");
    match delay_ns(sample) {
        Some(delay) => {
            let (sign, delay) = (if delay < 0 { "-" } else { "" }, delay.unsigned_abs());
            let _ = write!(out, "{sign}{}.{:09}", delay / 1_000_000_000, delay % 1_000_000_000);
        }
        None => out.extend(b"nan"),
    }
    let _ = write!(out, ",{}", sample.sequence);
    words(b',', sample, out);
}

/// The values as words, each behind a separator. Numbers are the shortest that read back as the
/// same.
fn words(separator: u8, sample: &Sample, out: &mut Vec<u8>) {
    for value in &sample.values {
        out.push(separator);
        let _ = match value {
            Value::Float(value) => write!(out, "{value:?}"),
            Value::Integer(value) => write!(out, "{value}"),
            Value::Boolean(value) => write!(out, "{}", u8::from(*value)),
            Value::Complex(re, im) => write!(out, "{re:?}{im:+?}i"),
        };
    }
    out.push(b'\n');
}

/// `json`: an object a line, with `ts.origin` and `ts.received` as `[seconds, nanoseconds]`,
/// `sequence` and `data`. The form of a value shows its kind: a number with a point or exponent, a
/// whole number, true or false, or an object with `real` and `imag`.
pub fn json(sample: &Sample, out: &mut Vec<u8>) {
    let time = |time: TimeOfDay| json!([time.seconds, time.nanoseconds]);
    let mut times = Map::new();
    times.insert("origin".into(), time(sample.origin));
    times.extend(sample.received.map(|received| ("received".into(), time(received))));
    let value = |value: &Value| match *value {
        // What is no number has no form in JSON.
        Value::Float(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Boolean(value) => json!(value),
        Value::Complex(real, imag) => json!({ "real": real, "imag": imag }),
    };
    let data: Vec<Json> = sample.values.iter().map(value).collect();
    let whole = json!({ "ts": times, "sequence": sample.sequence, "data": data });
    let _ = writeln!(out, "{whole}");
}
