//! Cross-checks of the offset between two hosts' clocks: by the measured messages themselves, and
//! by a second model. For two hosts whose clocks are both compared with the controller's, the
//! messages between them close the triangle.
//!
//! No message arrives before it was sent. A message that was sent at `sent`, reached the other host
//! at `reached`, and whose answer arrived here at `heard`, bounds the offset twice. These are the
//! bounds of a clock exchange, but over another path and by other stamps: the programs' own instead
//! of the kernel's.

use super::LocalNs;
use super::offset::Model;
use serde::{Deserialize, Serialize};

/// A stamp in one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedTime {
    /// When.
    pub ns: f64,
    /// Bound of its error, from the clock comparison; 0 for the host whose time it is.
    pub bound_ns: f64,
}

impl BoundedTime {
    /// How long after another.
    fn after(self, other: BoundedTime) -> f64 {
        self.ns - other.ns
    }

    /// By how much it is before another, beyond the bounds of both.
    fn beyond(self, other: BoundedTime) -> f64 {
        other.ns - self.ns - self.bound_ns - other.bound_ns
    }
}

/// A measured message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// One host has sent it.
    pub sent: BoundedTime,
    /// It reached the other.
    pub reached: BoundedTime,
    /// Its answer was back; `None`: there was none.
    pub heard: Option<BoundedTime>,
}

/// The bounds of an offset by a second source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OffsetCheck {
    /// The offset is not less; `None` where nothing bounds it from there.
    pub least_ns: Option<f64>,
    /// It is not more.
    pub most_ns: Option<f64>,
    /// Difference of the two beyond the bounds of both; 0 where they agree.
    pub beyond_ns: f64,
}

/// Rounding of several conversions of ticks to nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// Bounds an offset (the second host's clock less the first one's), estimated as `offset_ns`, by
/// messages. `None` without any message.
///
/// The messages are of different times: each is compared with the estimate at its own time, and the
/// remainder is added to `offset_ns`.
pub fn cross_check_with_traffic(
    offset_ns: f64,
    messages: impl IntoIterator<Item = Message>,
) -> Option<OffsetCheck> {
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut beyond: f64 = 0.0;
    for Message { sent, reached, heard } in messages {
        most = most.min(reached.after(sent));
        beyond = beyond.max(reached.beyond(sent));
        if let Some(heard) = heard {
            least = least.max(reached.after(heard));
            beyond = beyond.max(heard.beyond(reached));
        }
    }
    let told = |bound: f64| bound.is_finite().then_some(offset_ns + bound);
    let beyond_ns = if beyond > ROUNDING_NS { beyond } else { 0.0 };
    most.is_finite().then(|| OffsetCheck { least_ns: told(least), most_ns: told(most), beyond_ns })
}

/// Bounds the offset of a model at a time by another model.
pub fn by_model(model: &Model, other: &Model, at: LocalNs) -> OffsetCheck {
    let (told, asked) = (other.offset_at(at), model.offset_at(at));
    OffsetCheck {
        least_ns: Some(told.ns - told.bound_ns),
        most_ns: Some(told.ns + told.bound_ns),
        beyond_ns: ((told.ns - asked.ns).abs() - told.bound_ns - asked.bound_ns).max(0.0),
    }
}

impl OffsetCheck {
    /// Of the first clock by the second.
    pub fn turned(self) -> OffsetCheck {
        let turned = |ns: f64| -ns;
        let (least_ns, most_ns) = (self.most_ns.map(turned), self.least_ns.map(turned));
        OffsetCheck { least_ns, most_ns, ..self }
    }

    /// Between two hosts of which each was compared with this one.
    pub fn less(self, from: OffsetCheck) -> OffsetCheck {
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        let from = from.turned();
        OffsetCheck {
            least_ns: sum(self.least_ns, from.least_ns),
            most_ns: sum(self.most_ns, from.most_ns),
            beyond_ns: self.beyond_ns.max(from.beyond_ns),
        }
    }
}

#[cfg(test)]
mod tests;
