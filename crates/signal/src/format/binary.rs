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

use crate::{Kind, METADATA, MOST_VALUES, Sample, TimeOfDay, VALUE, Value, number, put_metadata};

/// What begins a sample: version 2, and the type of data.
const VERSION: u8 = 2;
const DATA: u8 = 0;
const HEADER: usize = 16;
/// Bytes of a value.
const WORD: usize = 4;

/// Appends a sample.
pub fn write(sample: &Sample, out: &mut Vec<u8>) {
    let values = &sample.values[..sample.values.len().min(MOST_VALUES)];
    out.extend(header(values.len() as u16, sample.sequence, sample.origin));
    values.iter().for_each(|value| out.extend(word(*value).to_be_bytes()));
}

/// Bytes of the datagram of a sample of `values` values.
pub const fn datagram_bytes(values: usize) -> usize {
    HEADER + WORD * values
}

/// Writes a message of ours as a datagram of this form. Called where time is measured: no
/// allocation.
///
/// # Panics
/// Where the message has no metadata, or the datagram no room for them.
#[inline]
pub fn encode(message: &[u8], kind: Kind, datagram: &mut [u8]) {
    let (metadata, values) = message.split_at(METADATA);
    let field = |at: usize| number(&metadata[at..at + 8]);
    let origin = TimeOfDay { seconds: field(8), nanoseconds: field(16) as u32 };
    let count = values.len() / VALUE;
    datagram[..HEADER].copy_from_slice(&header(count as u16, field(0), origin));
    let words = datagram[HEADER..].chunks_exact_mut(WORD);
    for (to, value) in words.zip(values.chunks_exact(VALUE)) {
        to.copy_from_slice(&word(kind.value(number(value))).to_be_bytes());
    }
}

/// Writes a datagram of this form as a message of ours, and gives its origin; `None` if it has
/// another form or number of values. Called where time is measured: no allocation.
#[inline]
pub fn decode(datagram: &[u8], kind: Kind, message: &mut [u8]) -> Option<TimeOfDay> {
    let header = datagram.get(..HEADER)?;
    let field = |at: usize| theirs(&header[at..at + 4]);
    let (seconds, nanoseconds) = (field(8).into(), field(12));
    let values = (message.len() - METADATA) / VALUE;
    // The two reserved bits may be anything.
    let is_ours = header[0] >> 2 == VERSION << 2 | DATA
        && theirs(&header[2..4]) as usize == values
        && datagram.len() == datagram_bytes(values)
        && nanoseconds < 1_000_000_000;
    if !is_ours {
        return None;
    }
    let origin = TimeOfDay { seconds, nanoseconds };
    put_metadata(message, field(4).into(), origin);
    let words = datagram[HEADER..].chunks_exact(WORD);
    for (to, bytes) in message[METADATA..].chunks_exact_mut(VALUE).zip(words) {
        to.copy_from_slice(&value(theirs(bytes), kind).bits().to_le_bytes());
    }
    Some(origin)
}

/// A number of this form: big-endian.
#[inline]
fn theirs(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

#[inline]
fn header(count: u16, sequence: u64, origin: TimeOfDay) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = VERSION << 4 | DATA << 2;
    header[2..4].copy_from_slice(&count.to_be_bytes());
    header[4..8].copy_from_slice(&(sequence as u32).to_be_bytes());
    header[8..12].copy_from_slice(&(origin.seconds as u32).to_be_bytes());
    header[12..16].copy_from_slice(&origin.nanoseconds.to_be_bytes());
    header
}

/// The 32 bits of a value.
#[inline]
fn word(value: Value) -> u32 {
    match value {
        Value::Float(value) => (value as f32).to_bits(),
        Value::Integer(value) => value as u32,
        Value::Boolean(value) => u32::from(value),
        Value::Complex(re, _) => re.to_bits(),
    }
}

/// The value of 32 bits.
#[inline]
fn value(bits: u32, kind: Kind) -> Value {
    match kind {
        Kind::Float => Value::Float(f64::from(f32::from_bits(bits))),
        Kind::Integer => Value::Integer(i64::from(bits as i32)),
        Kind::Boolean => Value::Boolean(bits != 0),
        Kind::Complex => Value::Complex(f32::from_bits(bits), 0.0),
    }
}
