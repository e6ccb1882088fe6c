//! How far another host's clock is from this one's, with a bound that cannot lie.
//!
//! In an exchange this host sends at `sent`, the other receives at `reached` and answers at
//! `answered` (both by its clock), and the answer comes at `heard`. No message arrives before it
//! was sent, so for the offset (the other's clock less this one's)
//!
//! > offset at `sent` <= `reached` - `sent`, and offset at `heard` >= `answered` - `heard`.
//!
//! While both clocks run evenly the offset is a line, shift + rate * t. Each exchange cuts two half
//! planes off the plane of (shift, rate): what is left, a convex polygon, holds the truth, whatever
//! the asymmetry of the way. The estimate is a line of the polygon (`offset/line.rs` says which),
//! the bound is how far the polygon reaches from it, and so it is with the drift. That clocks do
//! not run quite evenly is allowed for by [`WANDER`]; where nothing is left a clock was set, or its
//! rate has changed, and a new piece begins.

mod line;

use super::LocalNs;
use serde::{Deserialize, Serialize};

/// One exchange of times, in nanoseconds of each host's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// This host sends.
    pub sent: LocalNs,
    /// The other receives, by its own clock.
    pub reached: LocalNs,
    /// The other answers, by its own clock.
    pub answered: LocalNs,
    /// This host has the answer.
    pub heard: LocalNs,
}

impl Exchange {
    /// The round trip without the other's own time.
    pub fn round_trip_ns(&self) -> f64 {
        (self.heard.0 - self.sent.0) - (self.answered.0 - self.reached.0)
    }
}

/// An offset and what it may be wrong by, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offset {
    /// The other's clock less this one's.
    pub ns: f64,
    /// The truth lies within so much of it.
    pub bound_ns: f64,
}

impl Offset {
    /// What holds where one of two holds, and nobody knows which.
    fn or(self, other: Offset) -> Offset {
        let low = (self.ns - self.bound_ns).min(other.ns - other.bound_ns);
        let high = (self.ns + self.bound_ns).max(other.ns + other.bound_ns);
        Offset { ns: low + (high - low) / 2.0, bound_ns: (high - low) / 2.0 }
    }
}

/// A drift and what it may be wrong by, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// What the other's clock gains on this one's.
    pub ppm: f64,
    /// The truth lies within so much of it.
    pub bound_ppm: f64,
}

/// How much the rate of two quartz clocks may change within a piece, as a share: 0.02 ppm, what a
/// crystal does in a steady room within 20 s (some 0.1 ppm for 1 C).
pub const WANDER: f64 = 0.02e-6;
/// No two working clocks run further apart: 1000 ppm.
const FASTEST: f64 = 1e-3;
/// The longest that one line is believed, in nanoseconds: 20 s.
pub const LONGEST_NS: f64 = 20e9;
/// Room around the polygon, so that rounding never cuts the truth off, in nanoseconds.
const ROUNDING_NS: f64 = 0.1;

/// A point of the plane: the shift in ns, and the rate as ns over half of the piece.
type Point = (f64, f64);

/// A stretch of time in which the offset is a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Where the line surely holds. The first exchange read the other's clock before it was heard,
    /// and the last one after it was sent; a clock may have been set while one was on its way.
    from_ns: f64,
    to_ns: f64,
    /// The middle in time, and half of the length.
    middle_ns: f64,
    half_ns: f64,
    /// What the shifts of the corners are added to: the offset is large, its differences are not.
    base_ns: f64,
    corners: Vec<Point>,
    /// The line that is the estimate: one of the polygon.
    line: Point,
    /// [`WANDER`], or 0 where others keep the clocks even.
    wander: f64,
}

impl Piece {
    /// The piece over these exchanges, with its likeliest line; `None` where no line fits.
    fn over(exchanges: &[Exchange]) -> Option<Piece> {
        let mut piece = Piece::of_all_lines(exchanges)?;
        piece.line = line::likeliest(&piece, exchanges)?;
        Some(piece)
    }

    /// What these exchanges leave of all lines.
    fn of_all_lines(exchanges: &[Exchange]) -> Option<Piece> {
        let (first, last) = (exchanges.first()?, exchanges.last()?);
        let length_ns = last.heard.0 - first.sent.0;
        let middle_ns = first.sent.0 + length_ns / 2.0;
        // A piece of one exchange has a length too.
        let half_ns = (length_ns / 2.0).max(1.0);
        let base_ns = first.reached.0 - first.sent.0;
        let widest = FASTEST * half_ns;
        let reach = first.round_trip_ns().abs() + 2.0 * half_ns;
        let mut piece = Piece {
            from_ns: first.heard.0,
            to_ns: last.sent.0,
            middle_ns,
            half_ns,
            base_ns,
            corners: vec![(-reach, -widest), (reach, -widest), (reach, widest), (-reach, widest)],
            line: (0.0, 0.0),
            wander: WANDER,
        };
        for exchange in exchanges {
            let (sent, heard) = (exchange.sent.0, exchange.heard.0);
            let most = exchange.reached.0 - sent - base_ns + piece.slack(sent);
            let least = exchange.answered.0 - heard - base_ns - piece.slack(heard);
            piece.cut(piece.place(sent), most, 1.0);
            piece.cut(piece.place(heard), least, -1.0);
            if piece.corners.is_empty() {
                return None;
            }
        }
        Some(piece)
    }

    /// A time as a place within the piece: -1 at its begin, 1 at its end.
    fn place(&self, at_ns: f64) -> f64 {
        (at_ns - self.middle_ns) / self.half_ns
    }

    /// What uneven clocks may have gained by that time.
    fn slack(&self, at_ns: f64) -> f64 {
        ROUNDING_NS + self.wander * (at_ns - self.middle_ns).abs()
    }

    /// Keeps the corners with `sign * (shift + rate * place) <= sign * limit` (Sutherland and
    /// Hodgman, 1974, for one edge).
    fn cut(&mut self, place: f64, limit: f64, sign: f64) {
        let beyond = |point: &Point| sign * (point.0 + point.1 * place - limit);
        let mut kept = Vec::with_capacity(self.corners.len() + 1);
        for (number, corner) in self.corners.iter().enumerate() {
            let next = &self.corners[(number + 1) % self.corners.len()];
            let (here, there) = (beyond(corner), beyond(next));
            if here <= 0.0 {
                kept.push(*corner);
            }
            if (here < 0.0 && there > 0.0) || (here > 0.0 && there < 0.0) {
                let part = here / (here - there);
                let between = |a: f64, b: f64| a + part * (b - a);
                kept.push((between(corner.0, next.0), between(corner.1, next.1)));
            }
        }
        self.corners = kept;
    }

    /// The least and the most of a value over the polygon.
    fn range(&self, value: impl Fn(&Point) -> f64) -> (f64, f64) {
        self.corners
            .iter()
            .map(value)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    }

    /// The value of the line that is the estimate, and how far the polygon reaches from it.
    fn estimate(&self, value: impl Fn(&Point) -> f64) -> (f64, f64) {
        let likeliest = value(&self.line);
        let (low, high) = self.range(value);
        (likeliest, (high - likeliest).max(likeliest - low))
    }

    fn offset_at(&self, at: LocalNs) -> Offset {
        let place = self.place(at.0);
        let (likeliest, reach) = self.estimate(|line| line.0 + line.1 * place);
        Offset { ns: self.base_ns + likeliest, bound_ns: reach + self.slack(at.0) }
    }

    fn drift(&self) -> Drift {
        let (likeliest, reach) = self.estimate(|line| line.1 / self.half_ns);
        Drift { ppm: likeliest * 1e6, bound_ppm: (reach + self.wander) * 1e6 }
    }

    /// How far outside of the piece a time is.
    fn distance(&self, at: LocalNs) -> f64 {
        (self.from_ns - at.0).max(at.0 - self.to_ns).max(0.0)
    }
}

/// The offset of another host's clock over a run: lines, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pieces: Vec<Piece>,
    /// Times, by this host's clock, around which the other's was set or changed its rate.
    pub steps: Vec<LocalNs>,
}

impl Model {
    /// The model of these exchanges, in the order in which they were sent; `None` without any.
    pub fn fit(exchanges: &[Exchange]) -> Option<Model> {
        let mut model = Model { pieces: Vec::new(), steps: Vec::new() };
        let mut rest = exchanges;
        while let Some(first) = rest.first() {
            let long = rest.partition_point(|e| e.heard.0 - first.sent.0 <= LONGEST_NS).max(1);
            let fits = longest_that_fits(&rest[..long], false);
            // Between the exchange that no line fits any more and the first that still fits one
            // with it, the clock was set: those before are surely before, that one surely after.
            let sure = match fits < long {
                true => (fits + 1 - longest_that_fits(&rest[..=fits], true)).max(1),
                false => fits,
            };
            let Some(piece) = Piece::over(&rest[..sure]) else {
                // A single exchange that goes backwards does not count.
                rest = &rest[1..];
                continue;
            };
            model.pieces.push(piece);
            if fits < long {
                model.steps.push(rest[fits].sent);
            }
            if fits == rest.len() {
                break;
            }
            // The last exchange is in both pieces, unless it is where the clock was set.
            let shared = usize::from(fits == long && fits > 1);
            rest = &rest[fits - shared..];
        }
        (!model.pieces.is_empty()).then_some(model)
    }

    /// The model of two clocks that others keep right: an offset that stays.
    pub fn stated(offset: Offset) -> Model {
        let piece = Piece {
            from_ns: f64::MIN,
            to_ns: f64::MAX,
            middle_ns: 0.0,
            half_ns: 1.0,
            base_ns: offset.ns,
            corners: vec![(-offset.bound_ns, 0.0), (offset.bound_ns, 0.0)],
            line: (0.0, 0.0),
            wander: 0.0,
        };
        Model { pieces: vec![piece], steps: Vec::new() }
    }

    /// The offset at a time of this host's clock. Its bound grows with the distance from the
    /// exchanges that it was made of.
    pub fn offset_at(&self, at: LocalNs) -> Offset {
        let next = self.pieces.partition_point(|piece| piece.to_ns < at.0);
        let before = next.checked_sub(1).and_then(|number| self.pieces.get(number));
        match (before, self.pieces.get(next)) {
            (_, Some(piece)) if piece.from_ns <= at.0 => piece.offset_at(at),
            // The clock was set somewhere between the two: either may hold.
            (Some(before), Some(after)) => before.offset_at(at).or(after.offset_at(at)),
            (Some(piece), None) | (None, Some(piece)) => piece.offset_at(at),
            (None, None) => Offset { ns: 0.0, bound_ns: f64::INFINITY },
        }
    }

    /// This host's time when the other's clock shows `other`, and what it may be wrong by.
    pub fn here(&self, other: LocalNs) -> (LocalNs, f64) {
        let mut here = other;
        // The offset changes by at most a thousandth of the time: each step is a thousandth of the
        // one before, and the first may be a million seconds.
        for _ in 0..9 {
            here = LocalNs(other.0 - self.offset_at(here).ns);
        }
        (here, self.offset_at(here).bound_ns)
    }

    /// The drift at a time of this host's clock.
    pub fn drift_at(&self, at: LocalNs) -> Option<Drift> {
        let nearest = |a: &&Piece, b: &&Piece| a.distance(at).total_cmp(&b.distance(at));
        self.pieces.iter().min_by(nearest).map(Piece::drift)
    }
}

/// How many exchanges from the first on (or up to the last) a line fits, at least one.
fn longest_that_fits(exchanges: &[Exchange], from_the_end: bool) -> usize {
    let all = exchanges.len();
    let fit = |count: usize| match from_the_end {
        true => Piece::of_all_lines(&exchanges[all - count..]).is_some(),
        false => Piece::of_all_lines(&exchanges[..count]).is_some(),
    };
    if fit(all) {
        return all;
    }
    // What fits so many fits fewer.
    let counts: Vec<usize> = (1..all).collect();
    counts.partition_point(|count| fit(*count)).max(1)
}

#[cfg(test)]
mod tests;
