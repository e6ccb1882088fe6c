//! What the instrument adds to a latency: the loop of `latency` on the null transport, in many
//! passes before the rounds, and figures that lie below it. Pure.

use super::pattern::RunSoFar;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Figure, Instrument};
use wiregauge_stats::Metric;
use wiregauge_stats::quantile::rank;

/// Messages of a pass. 200 take 4 us on a fast clock: a stall of the host is in one pass of many,
/// and the p99 of a pass is no message of it that the host held up alone.
const PASS: usize = 200;

/// The instrument's overhead, from the null rounds that stood before every round. Its p50 and p99
/// are medians over the passes of each pass's own: what the host took from a few passes is the
/// noise of its CPUs and not what the loop adds.
pub fn instrument(runs: &[RunSoFar], resolution_ns: f64) -> Instrument {
    // In simulated time the loop takes none.
    let real = || runs.iter().filter(|run| !run.case.transport.simulates_time());
    let rounds = real().flat_map(|run| &run.overhead);
    let recording = real().flat_map(|run| run.recording_ns.iter().copied()).collect();
    of_rounds(rounds.map(Vec::as_slice), recording, resolution_ns)
}

pub fn of_rounds<'a>(
    rounds: impl Iterator<Item = &'a [f64]>,
    recording: Vec<f64>,
    resolution_ns: f64,
) -> Instrument {
    let passes: Vec<Vec<f64>> =
        rounds.flat_map(|round| round.chunks(PASS)).map(|pass| sorted(pass.to_vec())).collect();
    let over = |p: f64| {
        let each = passes.iter().filter_map(|pass| nearest_rank(pass, p)).collect();
        nearest_rank(&sorted(each), 0.5).unwrap_or(f64::NAN)
    };
    let overhead_p99_ns = over(0.99);
    Instrument {
        overhead_p50_ns: over(0.5),
        overhead_p99_ns,
        count: passes.iter().map(|pass| pass.len() as u64).sum(),
        passes: passes.len() as u64,
        error_ns: overhead_p99_ns + resolution_ns,
        recording_ns: nearest_rank(&sorted(recording), 0.5).unwrap_or(f64::NAN),
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn nearest_rank(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = rank(p, sorted.len() as u64);
    sorted.get((rank as usize).checked_sub(1)?).copied()
}

/// Returns what the instrument adds to a metric, as a share of what it adds to a round trip: that
/// of half of one is half. What lies within the loop, and differences of latencies, have nothing of
/// it.
fn share(metric: Metric) -> f64 {
    match metric {
        Metric::HalfRtt => 0.5,
        Metric::Lateness | Metric::Post | Metric::Jitter => 0.0,
        _ => 1.0,
    }
}

/// Returns what the instrument adds to the latencies of a metric, in ns.
pub fn added_ns(metric: Metric, instrument: &Instrument) -> f64 {
    let added_ns = share(metric) * instrument.overhead_p50_ns;
    if added_ns.is_finite() { added_ns } else { 0.0 }
}

/// Warns of a median that what the instrument adds could explain alone. Half of a round trip has
/// half of it.
pub fn below(figure: &Figure, instrument: &Instrument) -> Option<Warning> {
    let error_ns = Some(share(figure.metric)).filter(|share| *share > 0.0)? * instrument.error_ns;
    let p50_ns = figure.summary.quantile(0.5)?.value?.0;
    let metric = figure.metric.name();
    (p50_ns <= error_ns).then_some(Warning::BelowOverhead { metric, p50_ns, error_ns })
}
