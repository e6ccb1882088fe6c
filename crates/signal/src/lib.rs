//! Streams of samples: a time and up to 1024 values each, as a real-time simulator sends them.
//!
//! Takes a [`source::Source`]; gives the bytes of a message, and of a file that VILLASnode reads
//! too. A message is 24 bytes of metadata (number, origin time) and 8 bytes a value.
//!
//! Must never: know who carries the message, or wait for a disk in a measured loop
//! ([`mod@file`] has a thread of its own).

pub mod file;
pub mod format;
pub mod source;

use serde::{Deserialize, Serialize};

/// Most values of a sample.
pub const MOST_VALUES: usize = 1024;
/// Bytes of a message before its values: the number, the seconds and the nanoseconds of its origin.
pub const METADATA: usize = 24;
/// Bytes of a value.
pub const VALUE: usize = 8;

wiregauge_base::options::named_enum! {
    /// What a value is.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Kind {
        /// A number of 64 bits.
        #[default]
        Float = "float",
        /// A signed whole number of 64 bits.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// Two numbers of 32 bits: the real and the imaginary part.
        Complex = "complex",
    }
}

impl Kind {
    /// A value of this kind from its 8 bytes as a message carries them.
    pub fn value(self, bits: u64) -> Value {
        match self {
            Kind::Float => Value::Float(f64::from_bits(bits)),
            Kind::Integer => Value::Integer(bits as i64),
            Kind::Boolean => Value::Boolean(bits != 0),
            Kind::Complex => {
                Value::Complex(f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32))
            }
        }
    }

    /// The nearest value of this kind.
    pub fn of(self, value: f64) -> Value {
        match self {
            Kind::Float => Value::Float(value),
            Kind::Integer => Value::Integer(value as i64),
            Kind::Boolean => Value::Boolean(value > 0.0),
            Kind::Complex => Value::Complex(value as f32, 0.0),
        }
    }
}

/// One value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Float(f64),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// The real and the imaginary part.
    Complex(f32, f32),
}

impl Value {
    /// Its 8 bytes as a message carries them.
    pub fn bits(self) -> u64 {
        match self {
            Value::Float(value) => value.to_bits(),
            Value::Integer(value) => value as u64,
            Value::Boolean(value) => u64::from(value),
            Value::Complex(re, im) => u64::from(re.to_bits()) | u64::from(im.to_bits()) << 32,
        }
    }
}

/// A time of day: seconds since 1970 (UTC) and nanoseconds of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimeOfDay {
    /// Seconds.
    pub seconds: u64,
    /// Below 10^9.
    pub nanoseconds: u32,
}

impl TimeOfDay {
    /// From nanoseconds since 1970.
    pub fn from_ns(ns: u64) -> TimeOfDay {
        TimeOfDay { seconds: ns / 1_000_000_000, nanoseconds: (ns % 1_000_000_000) as u32 }
    }

    /// Nanoseconds since 1970; wraps in the year 2554.
    pub fn as_ns(self) -> u64 {
        self.seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::from(self.nanoseconds))
    }
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Its number: gaps are steps that were missed, or samples that never came.
    pub sequence: u64,
    /// When it was made.
    pub origin: TimeOfDay,
    /// When it came; `None`: not known.
    pub received: Option<TimeOfDay>,
    /// The values.
    pub values: Vec<Value>,
}

/// A number of a message: little-endian.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Bytes of a message of `values` values.
pub const fn message_bytes(values: usize) -> usize {
    METADATA + VALUE * values
}

/// Writes the metadata of a message. Called where time is measured: no allocation.
///
/// # Panics
/// Where there is no room for them: a message of a stream is never shorter.
#[inline]
pub fn put_metadata(message: &mut [u8], sequence: u64, origin: TimeOfDay) {
    message[..8].copy_from_slice(&sequence.to_le_bytes());
    message[8..16].copy_from_slice(&origin.seconds.to_le_bytes());
    message[16..24].copy_from_slice(&u64::from(origin.nanoseconds).to_le_bytes());
}

/// Reads a message; `None` if the bytes are not one.
pub fn read_message(message: &[u8], kind: Kind) -> Option<Sample> {
    let word = |at: usize| Some(number(message.get(at..at + 8)?));
    let nanoseconds = u32::try_from(word(16)?).ok().filter(|ns| *ns < 1_000_000_000)?;
    let values = message.get(METADATA..)?;
    if values.len() % VALUE != 0 || values.len() / VALUE > MOST_VALUES {
        return None;
    }
    Some(Sample {
        sequence: word(0)?,
        origin: TimeOfDay { seconds: word(8)?, nanoseconds },
        received: None,
        values: values.chunks_exact(VALUE).map(|bytes| kind.value(number(bytes))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_survives_its_eight_bytes() {
        let values = [
            (Kind::Float, Value::Float(-0.1)),
            (Kind::Integer, Value::Integer(i64::MIN)),
            (Kind::Boolean, Value::Boolean(true)),
            (Kind::Complex, Value::Complex(1.5, -2.25)),
        ];
        for (kind, value) in values {
            assert_eq!(kind.value(value.bits()), value);
        }
    }

    proptest! {
        #[test]
        fn a_message_is_read_back(
            sequence: u64, ns: u64, bits in prop::collection::vec(any::<u64>(), 0..20)
        ) {
            let mut message = vec![0; message_bytes(bits.len())];
            put_metadata(&mut message, sequence, TimeOfDay::from_ns(ns));
            for (place, bits) in message[METADATA..].chunks_exact_mut(VALUE).zip(&bits) {
                place.copy_from_slice(&bits.to_le_bytes());
            }
            let back = read_message(&message, Kind::Integer).unwrap();
            prop_assert_eq!((back.sequence, back.origin.as_ns()), (sequence, ns));
            let found: Vec<u64> = back.values.iter().map(|value| value.bits()).collect();
            prop_assert_eq!(found, bits);
        }

        #[test]
        fn foreign_bytes_are_a_message_or_none(bytes: Vec<u8>) {
            let _ = read_message(&bytes, Kind::Float);
        }
    }
}
