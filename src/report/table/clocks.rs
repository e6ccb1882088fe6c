//! The clocks of two hosts over a time: a line for each part of it.

use super::number::{US, short};
use super::{Cell, Grid};
use crate::record::schema::ClockOffset;

/// Seconds since the begin and what was known then.
pub fn clocks(all: &[(f64, &ClockOffset)]) -> String {
    let mut grid = Grid::new([
        "after s",
        "offset us",
        "± us",
        "drift ppm",
        "± ppm",
        "exchanges",
        "shortest us",
        "steps",
    ]);
    for (after_s, clock) in all {
        grid.row([
            Cell::Number(short(*after_s)),
            // Whole: an offset of days keeps its nanoseconds.
            Cell::Number(format!("{:.3}", clock.offset_ns * US)),
            Cell::Number(short(clock.bound_ns * US)),
            Cell::Number(format!("{:.4}", clock.drift_ppm)),
            Cell::Number(short(clock.drift_bound_ppm)),
            Cell::count(clock.exchanges),
            Cell::Number(short(clock.shortest_round_trip_ns * US)),
            Cell::count(clock.steps),
        ]);
    }
    format!(
        "{grid}offset: the other host's clock less this one's, each since its own epoch; drift: \
         what it gains; the truth lies within ±\n"
    )
}
