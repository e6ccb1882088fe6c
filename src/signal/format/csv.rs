//! `csv`: `seconds,nanoseconds,offset,sequence`, then the values. The offset is the delay in
//! seconds from origin to receipt; `nan` stands for what is not known.

use super::human::later;
use super::words::{Foreign, value, word, wrong};
use crate::signal::{Kind, Sample, TimeOfDay};
use std::io::Write;

pub fn write(sample: &Sample, out: &mut Vec<u8>) {
    let TimeOfDay { seconds, nanoseconds } = sample.origin;
    let _ = write!(out, "{seconds},{nanoseconds:09},");
    match sample.received {
        Some(received) => {
            let delay = received.as_ns().wrapping_sub(sample.origin.as_ns()) as i64;
            let sign = if delay < 0 { "-" } else { "" };
            let delay = delay.unsigned_abs();
            let _ = write!(out, "{sign}{}.{:09}", delay / 1_000_000_000, delay % 1_000_000_000);
        }
        None => out.extend(b"nan"),
    }
    let _ = write!(out, ",{}", sample.sequence);
    for one in &sample.values {
        out.push(b',');
        word(*one, out);
    }
    out.push(b'\n');
}

pub fn read(line: &str, kind: Kind) -> Result<Sample, Foreign> {
    let fields: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [seconds, nanoseconds, delay, sequence, values @ ..] = fields.as_slice() else {
        return Err(Foreign::Short);
    };
    let whole = |name: &str, word: &str| -> Result<u64, Foreign> {
        word.parse().or_else(|_| wrong(format!("'{word}' is not a number of {name}")))
    };
    // VILLASnode writes nan for what a sample does not have.
    let known = |name: &str, word: &str| if word == "nan" { Ok(0) } else { whole(name, word) };
    let nanoseconds = known("nanoseconds", nanoseconds)?;
    if nanoseconds >= 1_000_000_000 {
        return Err(Foreign::Nanoseconds(nanoseconds));
    }
    let origin = TimeOfDay { seconds: known("seconds", seconds)?, nanoseconds: nanoseconds as u32 };
    let received = match *delay {
        "nan" => None,
        delay => Some(later(origin, delay)?),
    };
    let values = values.iter().map(|word| value(word, kind)).collect::<Result<_, _>>()?;
    Ok(Sample { sequence: known("the sequence", sequence)?, origin, received, values })
}
