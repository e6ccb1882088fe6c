//! Reads the forms in which VILLASnode keeps samples, for tests and fuzzing: wiregauge itself
//! writes files and never reads one.

use serde_json::Value as Json;
use wiregauge_signal::format::{Format, binary};
use wiregauge_signal::{Kind, MOST_VALUES, Sample, TimeOfDay, Value, message_bytes, read_message};

/// Why a text or a message is no sample.
type Foreign = String;

/// It ends within a sample.
const SHORT: &str = "it ends within a sample";

fn too_many(values: usize) -> String {
    format!("a sample of {values} values; at most {MOST_VALUES} are allowed")
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Foreign> {
    Err(what.into())
}

/// The value of a word, as the kind of its signal says.
fn value(word: &str, kind: Kind) -> Result<Value, Foreign> {
    let parsed = match kind {
        Kind::Float => word.parse().ok().map(Value::Float),
        Kind::Integer => word.parse().ok().map(Value::Integer),
        Kind::Boolean => match word {
            "0" | "false" => Some(Value::Boolean(false)),
            "1" | "true" => Some(Value::Boolean(true)),
            _ => None,
        },
        Kind::Complex => complex(word),
    };
    parsed.map_or_else(|| wrong(format!("'{word}' is no {}", kind.name())), Ok)
}

/// `1.5-2i`, `1.5` or `2i`.
fn complex(word: &str) -> Option<Value> {
    let Some(both) = word.strip_suffix('i') else {
        return Some(Value::Complex(word.parse().ok()?, 0.0));
    };
    // The sign that parts them is the last that begins no exponent.
    let is_sign = |(at, sign): &(usize, char)| {
        matches!(sign, '+' | '-') && *at > 0 && !both[..*at].ends_with(['e', 'E'])
    };
    Some(match both.char_indices().rfind(is_sign) {
        Some((at, _)) => Value::Complex(both[..at].parse().ok()?, both[at..].parse().ok()?),
        None => Value::Complex(0.0, both.parse().ok()?),
    })
}

/// Reads the samples of a file or a message.
///
/// # Errors
/// What is no sample of this format, with the number of the sample or line.
pub fn read(format: Format, bytes: &[u8], kind: Kind) -> Result<Vec<Sample>, Foreign> {
    match format {
        Format::Binary => binary(bytes, kind),
        Format::Human => lines(bytes, |line| human(line, kind)),
        Format::Csv => lines(bytes, |line| csv(line, kind)),
        Format::Json => lines(bytes, json),
    }
}

/// Each message; start and stop carry no sample.
fn binary(bytes: &[u8], kind: Kind) -> Result<Vec<Sample>, Foreign> {
    let mut samples = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let header = rest.get(..16).ok_or(SHORT)?;
        let (version, message_type) = (header[0] >> 4, header[0] >> 2 & 3);
        if version != 2 {
            return wrong(format!("version {version} of villas.binary; 2 is known"));
        }
        let count = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if count > MOST_VALUES {
            return wrong(too_many(count));
        }
        let datagram = rest.get(..binary::datagram_bytes(count)).ok_or(SHORT)?;
        let mut message = vec![0; message_bytes(count)];
        if message_type == 0 {
            binary::decode(datagram, kind, &mut message).ok_or("too many ns of a second")?;
            samples.extend(read_message(&message, kind));
        }
        rest = &rest[datagram.len()..];
    }
    Ok(samples)
}

/// Reads a sample of each line that is neither empty nor a comment.
fn lines(
    bytes: &[u8],
    read: impl Fn(&str) -> Result<Sample, Foreign>,
) -> Result<Vec<Sample>, Foreign> {
    let Ok(text) = std::str::from_utf8(bytes) else { return wrong("it is not UTF-8") };
    let known = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let numbered = text.lines().enumerate().filter(|(_, line)| known(line));
    numbered
        .map(|(number, line)| {
            let sample = read(line).and_then(|sample| match sample.values.len() {
                0..=MOST_VALUES => Ok(sample),
                many => wrong(too_many(many)),
            });
            sample.map_err(|error| format!("line {}: {error}", number + 1))
        })
        .collect()
}

fn human(line: &str, kind: Kind) -> Result<Sample, Foreign> {
    let mut words = line.split_whitespace();
    let time = words.next().ok_or(SHORT)?;
    let values: Vec<&str> = words.collect();
    let (time, sequence) = match time.split_once('(') {
        Some((time, rest)) => {
            // An F behind it marks the first sample of a frame.
            let rest = rest.strip_suffix('F').unwrap_or(rest);
            let digits = rest.strip_suffix(')').ok_or(SHORT)?;
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
    let bad = || format!("'{text}' is not a time: expected seconds.nanoseconds");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let seconds = whole.parse().map_err(|_| bad())?;
    Ok(TimeOfDay { seconds, nanoseconds: digits.parse().map_err(|_| bad())? })
}

/// A time so many seconds later.
fn later(origin: TimeOfDay, delay: &str) -> Result<TimeOfDay, Foreign> {
    let known = delay.parse::<f64>().ok().filter(|delay| delay.abs() < 1e9);
    let Some(delay) = known else { return wrong(format!("'{delay}' is not a delay in seconds")) };
    let ns = (delay * 1e9).round() as i64;
    Ok(TimeOfDay::from_ns(origin.as_ns().wrapping_add(ns as u64)))
}

fn csv(line: &str, kind: Kind) -> Result<Sample, Foreign> {
    let fields: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [seconds, nanoseconds, delay, sequence, values @ ..] = fields.as_slice() else {
        return wrong(SHORT);
    };
    let whole = |name: &str, word: &str| -> Result<u64, Foreign> {
        word.parse().or_else(|_| wrong(format!("'{word}' is not a number of {name}")))
    };
    // VILLASnode writes nan for what a sample does not have.
    let known = |name: &str, word: &str| if word == "nan" { Ok(0) } else { whole(name, word) };
    let nanoseconds = known("nanoseconds", nanoseconds)?;
    if nanoseconds >= 1_000_000_000 {
        return wrong(format!("{nanoseconds} ns of a second"));
    }
    let origin = TimeOfDay { seconds: known("seconds", seconds)?, nanoseconds: nanoseconds as u32 };
    let received = match *delay {
        "nan" => None,
        delay => Some(later(origin, delay)?),
    };
    let values = values.iter().map(|word| value(word, kind)).collect::<Result<_, _>>()?;
    Ok(Sample { sequence: known("the sequence", sequence)?, origin, received, values })
}

fn json(line: &str) -> Result<Sample, Foreign> {
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
        values: data.iter().map(json_value).collect::<Result<_, _>>()?,
    })
}

fn json_value(json: &Json) -> Result<Value, Foreign> {
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
