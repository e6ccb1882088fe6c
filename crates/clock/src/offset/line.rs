//! Which of the lines that no exchange forbids is the likeliest.
//!
//! The bound rests on the two shortest ways alone, wherever they fell; what all the others say of
//! the rate is lost in it. Yet in each stretch of time some exchange met no queue, and its way took
//! as long as that of any other stretch but for a little noise. So of each way the shortest of
//! every stretch make a series that rises by the drift: its rate is the median of the rates of all
//! pairs (Theil 1950, Sen 1968), which up to 29 % of stretches under load do not move. The two ways
//! count by how little their series scatter: a queue before one of them leaves the rate to the
//! other. (By the inverse of the scatter. That of its square would be best were the scatter all
//! that is wrong; a host that warms up makes both ways longer or shorter, and that cancels only
//! where they count alike.)
//!
//! It errs where a way grows longer or shorter as a whole all the time; the bound holds then too,
//! because what is chosen is a line of the polygon.

use super::{Exchange, Piece, Point};

/// Stretches of a piece: 32 have 496 pairs, and of 50 exchanges in a second each of a piece of 10 s
/// has 15.
const STRETCHES: usize = 32;
/// With fewer of them the middle of what the polygon allows is as good.
const LEAST_STRETCHES: usize = 8;
/// What a scatter is at least, so that no weight is infinite, in nanoseconds.
const FINEST_NS: f64 = 0.1;

/// The likeliest line of this polygon; `None` where the polygon is empty.
pub(super) fn likeliest(piece: &Piece, exchanges: &[Exchange]) -> Option<Point> {
    let (slowest, fastest) = piece.range(|corner| corner.1);
    let rate = rate(piece, exchanges).unwrap_or((slowest + fastest) / 2.0);
    through_the_middle(&piece.corners, rate.clamp(slowest, fastest.max(slowest)))
}

/// The line of this rate in the middle of the shifts that the polygon leaves it.
pub(super) fn through_the_middle(corners: &[Point], rate: f64) -> Option<Point> {
    let shift = |(number, corner): (usize, &Point)| {
        let next = corners[(number + 1) % corners.len()];
        let (here, there) = (rate - corner.1, next.1 - rate);
        match here + there {
            // An edge of one rate: its other corner begins the next edge.
            0.0 => (here == 0.0).then_some(corner.0),
            both => (here * there >= 0.0).then(|| corner.0 + (next.0 - corner.0) * here / both),
        }
    };
    let shifts = || corners.iter().enumerate().filter_map(shift);
    let (low, high) = (shifts().reduce(f64::min)?, shifts().reduce(f64::max)?);
    Some(((low + high) / 2.0, rate))
}

/// What the shortest ways of all stretches say of the rate.
fn rate(piece: &Piece, exchanges: &[Exchange]) -> Option<f64> {
    let there = |e: &Exchange| (piece.place(e.sent.0), e.reached.0 - e.sent.0);
    // What comes back shows the least, and is turned so that the shortest way is the least too.
    let back = |e: &Exchange| (piece.place(e.heard.0), e.heard.0 - e.answered.0);
    let (there, there_scatter) = median_rate(&shortest(exchanges.iter().map(there)))?;
    let (back, back_scatter) = median_rate(&shortest(exchanges.iter().map(back)))?;
    let (there_weight, back_weight) = (1.0 / there_scatter, 1.0 / back_scatter);
    Some((there * there_weight - back * back_weight) / (there_weight + back_weight))
}

/// The least of each stretch, with its place.
fn shortest(ways: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut least = [None; STRETCHES];
    for (place, way) in ways {
        let number = ((place + 1.0) / 2.0 * STRETCHES as f64) as usize;
        let stretch = &mut least[number.min(STRETCHES - 1)];
        if stretch.is_none_or(|(_, shortest)| way < shortest) {
            *stretch = Some((place, way));
        }
    }
    least.into_iter().flatten().collect()
}

/// The median of the rates of all pairs, and how far the points scatter about the line.
fn median_rate(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < LEAST_STRETCHES {
        return None;
    }
    let pairs = points.iter().enumerate().flat_map(|(number, one)| {
        points[number + 1..].iter().map(move |other| (other.1 - one.1) / (other.0 - one.0))
    });
    let rate = median(pairs.filter(|rate| rate.is_finite()).collect())?;
    let shifts: Vec<f64> = points.iter().map(|point| point.1 - rate * point.0).collect();
    let middle = median(shifts.clone())?;
    let scatter = median(shifts.iter().map(|shift| (shift - middle).abs()).collect())?;
    Some((rate, scatter.max(FINEST_NS)))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_few_stretches_is_the_median_of_pairs() {
        // On a line of slope 3 but for one point.
        let mut points: Vec<(f64, f64)> =
            (0..LEAST_STRETCHES).map(|i| (i as f64, 3.0 * i as f64)).collect();
        points[4].1 += 100.0;
        assert_eq!(median_rate(&points), Some((3.0, FINEST_NS)));
        assert_eq!(median_rate(&points[1..]), None);
    }

    #[test]
    fn of_equally_short_ways_of_a_stretch_the_first_counts() {
        let ways = [(-1.0, 5.0), (-0.99, 5.0), (-0.98, 6.0), (1.0, 4.0), (0.99, 3.0)];
        assert_eq!(shortest(ways.into_iter()), [(-1.0, 5.0), (0.99, 3.0)]);
    }
}
