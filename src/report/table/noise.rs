//! Gaps that a spinning core saw: a line a CPU, and a histogram of each.

use super::number::{US, short, span};
use super::{Cell, Grid};
use crate::record::schema::Noise;

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// What stands in a sentence.
pub fn sentence(noise: &Noise) -> String {
    let of_time = 100.0 * noise.lost_ns / noise.observed_ns.max(1.0);
    format!(
        "CPU {}: {} gaps above {} in {}, {} % of the time, the longest {}",
        noise.cpu,
        noise.gaps,
        span(noise.gap_threshold_ns),
        span(noise.observed_ns),
        short(of_time),
        span(noise.longest_ns)
    )
}

/// CPUs, and a histogram of each that saw a gap.
pub fn noise(all: &[Noise]) -> String {
    let mut grid =
        Grid::new(["CPU", "gaps", "above us", "in s", "lost us", "lost %", "longest us"]);
    for noise in all {
        grid.row([
            Cell::Text(noise.cpu.to_string()),
            Cell::count(noise.gaps),
            Cell::Number(short(noise.gap_threshold_ns * US)),
            Cell::Number(short(noise.observed_ns / 1e9)),
            Cell::Number(short(noise.lost_ns * US)),
            Cell::Number(short(100.0 * noise.lost_ns / noise.observed_ns.max(1.0))),
            Cell::Number(short(noise.longest_ns * US)),
        ]);
    }
    let histograms = all.iter().filter_map(histogram);
    let tables = std::iter::once(grid.to_string()).chain(histograms);
    tables.collect::<Vec<_>>().join("\n")
}

fn histogram(noise: &Noise) -> Option<String> {
    let seen = |&&(_, count): &&(f64, u64)| count > 0;
    let bins: Vec<&(f64, u64)> = noise.histogram.iter().filter(seen).collect();
    let most = bins.iter().map(|(_, count)| *count).max()? as f64;
    let mut grid = Grid::new(["CPU", "from us", "to us", "gaps", "(logarithmic)"]);
    for &&(from, count) in &bins {
        // Logarithmic, so that one long gap among a million short ones is seen.
        let bar = (BAR * (count as f64).ln_1p() / most.ln_1p()).ceil() as usize;
        grid.row([
            Cell::Text(noise.cpu.to_string()),
            Cell::Number(short(from * US)),
            Cell::Number(short(from * 2.0 * US)),
            Cell::count(count),
            Cell::Text("#".repeat(bar)),
        ]);
    }
    Some(grid.to_string())
}
