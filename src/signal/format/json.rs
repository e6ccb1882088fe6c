//! `json`: an object a line, with `ts.origin` and `ts.received` as `[seconds, nanoseconds]`,
//! `sequence` and `data`. A value's own form tells its kind: a number with a point or exponent, a
//! whole number, true or false, or an object with `real` and `imag`.

use super::words::{Foreign, wrong};
use crate::signal::{Sample, TimeOfDay, Value};
use serde_json::{Map, Value as Json, json};

pub fn write(sample: &Sample, out: &mut Vec<u8>) {
    let time = |time: TimeOfDay| json!([time.seconds, time.nanoseconds]);
    let mut times = Map::new();
    times.insert("origin".into(), time(sample.origin));
    if let Some(received) = sample.received {
        times.insert("received".into(), time(received));
    }
    let value = |value: &Value| match *value {
        // What is no number has no form in JSON.
        Value::Float(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Boolean(value) => json!(value),
        Value::Complex(real, imag) => json!({ "real": real, "imag": imag }),
    };
    let data: Vec<Json> = sample.values.iter().map(value).collect();
    let whole = json!({ "ts": times, "sequence": sample.sequence, "data": data });
    // Writing to a vector does not fail.
    let _ = serde_json::to_writer(&mut *out, &whole);
    out.push(b'\n');
}

pub fn read(line: &str) -> Result<Sample, Foreign> {
    let whole: Json = serde_json::from_str(line).or_else(|error| wrong(error.to_string()))?;
    let time = |name: &str| -> Result<Option<TimeOfDay>, Foreign> {
        let Some(found) = whole.get("ts").and_then(|times| times.get(name)) else {
            return Ok(None);
        };
        let part = |at: usize| found.get(at).and_then(Json::as_u64);
        let nanoseconds = part(1).and_then(|ns| u32::try_from(ns).ok());
        match (part(0), nanoseconds.filter(|ns| *ns < 1_000_000_000)) {
            (Some(seconds), Some(nanoseconds)) => Ok(Some(TimeOfDay { seconds, nanoseconds })),
            _ => wrong(format!("'ts.{name}' is not [seconds, nanoseconds]")),
        }
    };
    let Some(data) = whole.get("data").and_then(Json::as_array) else {
        return wrong("the list 'data' is missing");
    };
    Ok(Sample {
        sequence: whole.get("sequence").and_then(Json::as_u64).unwrap_or(0),
        origin: time("origin")?.unwrap_or_default(),
        received: time("received")?,
        values: data.iter().map(value).collect::<Result<_, _>>()?,
    })
}

fn value(json: &Json) -> Result<Value, Foreign> {
    let part = |name: &str| json.get(name).and_then(Json::as_f64).map(|part| part as f32);
    Ok(match json {
        Json::Bool(value) => Value::Boolean(*value),
        Json::Null => Value::Float(f64::NAN),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            (None, Some(value)) => Value::Float(value),
            (None, None) => return wrong(format!("{number} is not a value")),
        },
        Json::Object(_) => match (part("real"), part("imag")) {
            (Some(real), Some(imag)) => Value::Complex(real, imag),
            _ => return wrong("an object without 'real' and 'imag' is not a value"),
        },
        Json::String(_) | Json::Array(_) => return wrong("a string or a list is not a value"),
    })
}
