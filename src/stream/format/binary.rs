//! `villas.binary`: 16 bytes of header, then 4 bytes a value, all big-endian.
//!
//! | bytes | are |
//! |---|---|
//! | 0 | version 2 in the high 4 bits, type (0 data, 1 start, 2 stop) in the next 2, 2 reserved |
//! | 1 | index of the source |
//! | 2-3 | number of values |
//! | 4-7 | sequence number, its lower 32 bits |
//! | 8-11, 12-15 | seconds (lower 32 bits) and nanoseconds of the origin |
//!
//! Of a value there are 32 bits: a float loses precision, an integer its upper half, a boolean is
//! an integer, and a complex number has no form here: its real part is sent.

use super::{Foreign, wrong};
use crate::stream::{Kind, MOST_VALUES, Sample, TimeOfDay, Value};

const VERSION: u8 = 2;
const DATA: u8 = 0;
const HEADER: usize = 16;

pub fn write(sample: &Sample, out: &mut Vec<u8>) {
    let values = &sample.values[..sample.values.len().min(MOST_VALUES)];
    out.extend([VERSION << 4 | DATA << 2, 0]);
    out.extend((values.len() as u16).to_be_bytes());
    out.extend((sample.sequence as u32).to_be_bytes());
    out.extend((sample.origin.seconds as u32).to_be_bytes());
    out.extend(sample.origin.nanoseconds.to_be_bytes());
    for value in values {
        let bits = match *value {
            Value::Float(value) => (value as f32).to_bits(),
            Value::Integer(value) => value as u32,
            Value::Boolean(value) => u32::from(value),
            Value::Complex(re, _) => re.to_bits(),
        };
        out.extend(bits.to_be_bytes());
    }
}

pub fn read(bytes: &[u8], kind: Kind) -> Result<Vec<Sample>, Foreign> {
    let mut samples = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (sample, used) = one(rest, kind)?;
        samples.extend(sample);
        rest = &rest[used..];
    }
    Ok(samples)
}

/// The first message, and its length; start and stop carry no sample.
fn one(bytes: &[u8], kind: Kind) -> Result<(Option<Sample>, usize), Foreign> {
    let header = bytes.get(..HEADER).ok_or(Foreign::Short)?;
    let (version, message_type) = (header[0] >> 4, header[0] >> 2 & 3);
    if version != VERSION {
        return wrong(format!("version {version} of villas.binary; {VERSION} is known"));
    }
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let count = usize::from(half(2));
    if count > MOST_VALUES {
        return wrong(format!("a sample of {count} values; at most {MOST_VALUES} are allowed"));
    }
    let nanoseconds = word(12);
    if nanoseconds >= 1_000_000_000 {
        return wrong(format!("{nanoseconds} ns of a second"));
    }
    let end = HEADER + 4 * count;
    let values = bytes.get(HEADER..end).ok_or(Foreign::Short)?;
    let value = |bytes: &[u8]| {
        let bits = bytes.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        match kind {
            Kind::Float => Value::Float(f64::from(f32::from_bits(bits))),
            Kind::Integer => Value::Integer(i64::from(bits as i32)),
            Kind::Boolean => Value::Boolean(bits != 0),
            Kind::Complex => Value::Complex(f32::from_bits(bits), 0.0),
        }
    };
    let sample = Sample {
        sequence: word(4).into(),
        origin: TimeOfDay { seconds: word(8).into(), nanoseconds },
        received: None,
        values: values.chunks_exact(4).map(value).collect(),
    };
    Ok(((message_type == DATA).then_some(sample), end))
}
