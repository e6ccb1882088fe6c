//! What the values of a stream are over time.
//!
//! With the time `t` since the first sample, the frequency `f`, the amplitude `A`, the offset `o`
//! and the phase `p` (radians), as VILLASnode's signal node has them:
//!
//! | signal | value |
//! |---|---|
//! | random | the value before + a normal number of deviation `sd`: a walk |
//! | sine | o + A sin(2 pi f t + p) |
//! | square | o + A in the first half of a period, o - A in the second |
//! | triangle | o + 4 A (abs(frac(f t + p / 2 pi) - 1/2) - 1/4) |
//! | ramp | o + A frac(f t) |
//! | counter | o + A n, with the number n of the sample |
//! | constant | o + A |
//! | pulse | o + A in the first tenth of a period, else o |
//! | mixed | the values of a sample are random, sine, square and so on in turn (`MIX`) |

use super::{Kind, Value};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

wiregauge_base::options::named_enum! {
    /// What a value is over time.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Signal {
        /// A random walk.
        Random = "random",
        /// A sine.
        Sine = "sine",
        /// Two values, half a period each.
        Square = "square",
        /// Up and down.
        Triangle = "triangle",
        /// Up, and down at once.
        Ramp = "ramp",
        /// The sample's number.
        Counter = "counter",
        /// Always the same.
        Constant = "constant",
        /// A tenth of a period above the rest.
        Pulse = "pulse",
        /// Of each of these some.
        #[default]
        Mixed = "mixed",
    }
}

/// What the values of a `mixed` sample are, one after the other.
const MIX: [Signal; 7] = {
    use Signal::*;
    [Random, Sine, Square, Triangle, Ramp, Constant, Counter]
};

/// The shape of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// What it is.
    pub signal: Signal,
    /// Kind of the values.
    pub kind: Kind,
    /// Periods per second.
    pub frequency: f64,
    /// See the table of the module.
    pub amplitude: f64,
    /// See the table of the module.
    pub offset: f64,
    /// Radians.
    pub phase: f64,
    /// Standard deviation of a step of the walk.
    pub deviation: f64,
}

impl Default for Shape {
    /// As VILLASnode's signal node where nothing else is asked for.
    fn default() -> Shape {
        Shape {
            signal: Signal::default(),
            kind: Kind::default(),
            frequency: 1.0,
            amplitude: 1.0,
            offset: 0.0,
            phase: 0.0,
            deviation: 0.2,
        }
    }
}

/// The values of a stream, sample after sample.
#[derive(Clone, Debug)]
pub struct Source {
    shape: Shape,
    random: ChaCha8Rng,
    /// Where the walk of each value is.
    walks: Vec<f64>,
}

impl Source {
    /// A source of samples of `values` values each.
    pub fn new(shape: Shape, values: usize, seed: u64) -> Source {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Source { shape, random, walks: vec![shape.offset; values] }
    }

    /// Value `index` of the sample `number` at `seconds` since the first. Called where time is
    /// measured: no allocation.
    #[inline]
    pub fn value(&mut self, index: usize, number: u64, seconds: f64) -> Value {
        let signal = match self.shape.signal {
            Signal::Mixed => MIX[index % MIX.len()],
            signal => signal,
        };
        let value = match signal {
            Signal::Random | Signal::Mixed => self.walk(index),
            signal => self.shape.at(signal, number, seconds),
        };
        self.shape.kind.of(value)
    }

    /// Fills the values of a message, 8 bytes each.
    #[inline]
    pub fn fill(&mut self, values: &mut [u8], number: u64, seconds: f64) {
        for (index, place) in values.chunks_exact_mut(super::VALUE).enumerate() {
            place.copy_from_slice(&self.value(index, number, seconds).bits().to_le_bytes());
        }
    }

    fn walk(&mut self, index: usize) -> f64 {
        let drawn: f64 = StandardNormal.sample(&mut self.random);
        let Some(walk) = self.walks.get_mut(index) else { return 0.0 };
        *walk += self.shape.deviation * drawn;
        *walk
    }
}

impl Shape {
    /// A signal that remembers nothing.
    fn at(&self, signal: Signal, number: u64, seconds: f64) -> f64 {
        let Shape { frequency, amplitude, offset, phase, .. } = *self;
        let part = |turns: f64| turns - turns.floor();
        let turn = part(frequency * seconds + phase / TAU);
        match signal {
            Signal::Sine => offset + amplitude * (TAU * frequency * seconds + phase).sin(),
            Signal::Square if turn < 0.5 => offset + amplitude,
            Signal::Square => offset - amplitude,
            Signal::Triangle => offset + 4.0 * amplitude * ((turn - 0.5).abs() - 0.25),
            Signal::Ramp => offset + amplitude * part(frequency * seconds),
            Signal::Counter => offset + amplitude * number as f64,
            Signal::Pulse if turn < 0.1 => offset + amplitude,
            Signal::Pulse => offset,
            Signal::Constant | Signal::Random | Signal::Mixed => offset + amplitude,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(signal: Signal, number: u64, seconds: f64) -> f64 {
        let shape =
            Shape { signal, frequency: 2.0, amplitude: 3.0, offset: 1.0, ..Shape::default() };
        match Source::new(shape, 1, 7).value(0, number, seconds) {
            Value::Float(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn signals_have_their_known_values() {
        assert_eq!(value(Signal::Sine, 0, 0.0), 1.0);
        assert!((value(Signal::Sine, 0, 0.125) - 4.0).abs() < 1e-12);
        assert_eq!((value(Signal::Square, 0, 0.1), value(Signal::Square, 0, 0.4)), (4.0, -2.0));
        assert_eq!(
            (value(Signal::Triangle, 0, 0.0), value(Signal::Triangle, 0, 0.25)),
            (4.0, -2.0)
        );
        assert_eq!((value(Signal::Ramp, 0, 0.25), value(Signal::Ramp, 0, 0.5)), (2.5, 1.0));
        assert_eq!(value(Signal::Counter, 5, 9.0), 16.0);
        assert_eq!(value(Signal::Constant, 5, 9.0), 4.0);
        assert_eq!((value(Signal::Pulse, 0, 0.01), value(Signal::Pulse, 0, 0.3)), (4.0, 1.0));
    }

    #[test]
    fn a_walk_has_steps_of_its_deviation_and_its_seed_repeats_it() {
        let shape = Shape { signal: Signal::Random, deviation: 0.5, ..Shape::default() };
        let walk = |seed| -> Vec<f64> {
            let mut source = Source::new(shape, 1, seed);
            let value = |n| match source.value(0, n, 0.0) {
                Value::Float(value) => value,
                other => panic!("{other:?}"),
            };
            (0..10_000).map(value).collect()
        };
        let walked = walk(1);
        let steps: Vec<f64> = walked.windows(2).map(|two| two[1] - two[0]).collect();
        let variance = steps.iter().map(|s| s * s).sum::<f64>() / steps.len() as f64;
        assert!((variance.sqrt() / 0.5 - 1.0).abs() < 0.03, "{variance}");
        assert_eq!(walk(1), walked);
        assert_ne!(walk(2), walked);
    }

    #[test]
    fn a_mixed_sample_has_of_each() {
        let mut source = Source::new(Shape { kind: Kind::Integer, ..Shape::default() }, 8, 1);
        assert_eq!(source.value(5, 3, 0.0), Value::Integer(1), "constant");
        assert_eq!(source.value(6, 3, 0.0), Value::Integer(3), "counter");
        let mut bytes = [0; 64];
        source.fill(&mut bytes, 3, 0.0);
        assert_eq!(bytes[48..56], 3u64.to_le_bytes());
    }
}
