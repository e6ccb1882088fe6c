//! Whether what is known of two hosts' clocks is true, by what else is known of them: the measured
//! messages themselves, and a second model. Of two hosts whose clocks are both compared with a
//! third's (the controller's) the messages between them close the triangle.
//!
//! No message arrives before it was sent. A message that was sent at `sent` and reached the other
//! host at `reached`, and whose answer was here at `heard`, says so twice, in one time: by the
//! clocks' offset as it is known. These are the bounds of an exchange of times, but of another way,
//! by other stamps: the programs' own, and not the kernel's.

use super::LocalNs;
use super::offset::Model;

/// A stamp in one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// When.
    pub ns: f64,
    /// What that may be wrong by, by what is known of the clocks; 0 for that host's own whose time
    /// it is.
    pub bound_ns: f64,
}

impl At {
    /// How long after another.
    fn after(self, other: At) -> f64 {
        self.ns - other.ns
    }

    /// By how much it is before another, more than both may be wrong by.
    fn beyond(self, other: At) -> f64 {
        other.ns - self.ns - self.bound_ns - other.bound_ns
    }
}

/// A measured message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// One host has sent it.
    pub sent: At,
    /// It reached the other.
    pub reached: At,
    /// Its answer was back; `None`: there was none.
    pub heard: Option<At>,
}

/// What a second source says of an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// The offset is not less; `None` where nothing bounds it from there.
    pub least_ns: Option<f64>,
    /// It is not more.
    pub most_ns: Option<f64>,
    /// How much more the two are apart than both may be wrong by; 0 where they agree.
    pub beyond_ns: f64,
}

/// What converting ticks to nanoseconds rounds, several times over.
const ROUNDING_NS: f64 = 1.0;

/// What messages say of an offset (the second host's clock less the first one's) that is known as
/// `offset_ns`, and whether both can be. `None` without any message.
///
/// The messages are of different times: each is compared with what is known of its own, and what is
/// left is added to `offset_ns`.
pub fn cross_check_with_traffic(
    offset_ns: f64,
    messages: impl IntoIterator<Item = Message>,
) -> Option<Check> {
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
    most.is_finite().then(|| Check { least_ns: told(least), most_ns: told(most), beyond_ns })
}

/// What one model says of the other's offset at a time.
pub fn by_model(model: &Model, other: &Model, at: LocalNs) -> Check {
    let (told, asked) = (other.offset_at(at), model.offset_at(at));
    Check {
        least_ns: Some(told.ns - told.bound_ns),
        most_ns: Some(told.ns + told.bound_ns),
        beyond_ns: ((told.ns - asked.ns).abs() - told.bound_ns - asked.bound_ns).max(0.0),
    }
}

#[cfg(test)]
mod tests;
