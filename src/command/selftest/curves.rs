//! The row that judges what is read off a curve over load.

use super::Outcome;
use crate::plan::Slo;
use crate::stats::compare::Estimate;
use crate::stats::knee::{Bracket, Found, Knee, Point, highest, knee};
use crate::stats::{Interval, Value};
use crate::units::Span;

/// What the server takes for a request.
const SERVICE_NS: f64 = 1e4;

/// Returns a figure without an error.
fn exactly(value: f64) -> Estimate {
    (value, Some(Interval { low: Value(value), high: Value(value) })).into()
}

/// A queue with random arrivals and one server that takes the same time for each request: at a load
/// rho a request takes 1 + rho / (2 (1 - rho)) of that time (Pollaczek and Khinchine).
fn point(load: f64) -> Point {
    let rate = load * 1e9 / SERVICE_NS;
    let took_ns = SERVICE_NS * (1.0 + load / (2.0 * (1.0 - load)));
    Point {
        offered: rate,
        achieved: exactly(rate),
        falls_short: false,
        p50: Some(exactly(took_ns)),
        bounded_ns: took_ns,
        bounded_from_ns: took_ns,
        bounded_value_ns: took_ns,
        generator_bound: false,
    }
}

/// Returns the knee where only one rate may be it.
fn only(knee: Option<Knee>) -> Option<Found> {
    let Knee { best, lowest, highest, bracket } = knee?;
    (best == lowest && best == highest).then_some(Found { at: best, bracket })
}

/// T22: power is highest at rho = 2 - sqrt(2) = 0.586, and twice the service time is taken at 2/3:
/// of the tenths both say 0.6. A sweep that ends before them says "at least". A point at which
/// nothing was carried, and one at which the generator was the limit, are neither.
pub fn t22_knee_and_limit() -> Outcome {
    let slo = Slo { quantile: 0.99, below: Span(2 * SERVICE_NS as u64) };
    let mut points: Vec<Point> = (1..10).map(|tenth| point(f64::from(tenth) / 10.0)).collect();
    let short = [only(knee(&points[..5])), highest(&points[..5], slo)];
    let fast = Some(exactly(SERVICE_NS / 2.0));
    points.push(Point { falls_short: true, p50: fast, ..point(0.95) });
    points.push(Point { generator_bound: true, falls_short: true, p50: fast, ..point(0.97) });
    let whole = [only(knee(&points)), highest(&points, slo)];
    let word = |found: Option<Found>| match found {
        Some(Found { at, bracket }) => {
            let load = points[at].offered * SERVICE_NS / 1e9;
            format!("{load:.1}{}", if bracket == Bracket::AtLeast { " or more" } else { "" })
        }
        None => "none".to_owned(),
    };
    let [measured, cut] = [whole, short].map(|found| found.map(word).join(" and "));
    let passes = whole == [Some(Found { at: 5, bracket: Bracket::Within }); 2]
        && short == [Some(Found { at: 4, bracket: Bracket::AtLeast }); 2];
    let truth = "0.6 and 0.6; 0.5 or more of a sweep to 0.5".to_owned();
    Ok((truth, format!("{measured}; {cut}"), passes))
}
