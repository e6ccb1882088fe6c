//! What a stream has beside the other patterns: steps that were missed, and a file.

use crate::agent::kept;
use crate::record::schema::Round;
use crate::sample::{Flags, RoundSamples};
use crate::stats::rate::Delivered;
use crate::warning::Warning;
use std::collections::BTreeMap;

/// Of each round the samples per second that its source could make: the rate, less the share of the
/// steps that were missed.
pub(super) fn ceiling(rounds: &[Round], rate: f64) -> Vec<Delivered> {
    let of = |round: &Round| {
        let (made, missed) = (round.counts.sent as f64, round.counts.missed_steps as f64);
        let share = if made > 0.0 { made / (made + missed) } else { 0.0 };
        Delivered { work: share * rate, seconds: 1.0 }
    };
    rounds.iter().map(of).collect()
}

/// Of each round the steps that were missed, over all of them.
pub(super) fn missed(rounds: &[Round]) -> Vec<Delivered> {
    let of = |round: &Round| {
        let (made, missed) = (round.counts.sent as f64, round.counts.missed_steps as f64);
        Delivered { work: missed, seconds: made + missed }
    };
    rounds.iter().map(of).collect()
}

/// Samples that were lost before any arrived.
pub(super) fn lost_before_first(samples: &RoundSamples) -> u64 {
    let begin = samples.samples.iter().take_while(|sample| sample.receive_ns.is_nan());
    begin.filter(|sample| sample.flags.has(Flags::LOST)).count() as u64
}

/// The warnings of a stream's file.
pub(super) fn warnings(seen: &BTreeMap<String, String>) -> impl Iterator<Item = Warning> {
    let left_out = seen.get(kept::LEFT_OUT).and_then(|count| count.parse().ok()).unwrap_or(0);
    let short = match seen.get(kept::FAULT).cloned() {
        Some(reason) => Some(Warning::FileFailed { left_out, reason }),
        None => (left_out > 0).then_some(Warning::FileIncomplete { left_out }),
    };
    let beside = seen.contains_key(kept::BESIDE).then_some(Warning::FileOnReceiverCpu);
    [beside, short].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::schema::Counts;
    use crate::sample::Sample;
    use crate::stats::rate::rate;

    #[test]
    fn the_ceiling_is_what_missed_steps_leave() {
        let round = |sent, missed_steps| Round {
            counts: Counts { sent, missed_steps, ..Counts::default() },
            ..Round::default()
        };
        let work = |rounds: &[Round]| ceiling(rounds, 1000.0).iter().map(|d| d.work).collect();
        let found: Vec<f64> = work(&[round(100, 0), round(75, 25), round(0, 0)]);
        assert_eq!(found, [1000.0, 750.0, 0.0]);
        let share = rate(&missed(&[round(100, 0), round(75, 25), round(0, 0)]));
        assert_eq!((share.value, share.rounds), (0.125, vec![0.0, 0.25]));
    }

    #[test]
    fn what_is_lost_before_the_first_is_counted_apart() {
        let none = f64::NAN;
        let sample = |receive, flags| Sample::new(0, 8, [0.0, 0.0, none, receive, none], flags);
        let lost = || sample(none, Flags::LOST);
        let missed = sample(none, Flags::MISSED);
        let samples = vec![lost(), missed, lost(), sample(5.0, Flags::default()), lost()];
        let round = RoundSamples { samples, ..RoundSamples::default() };
        assert_eq!(lost_before_first(&round), 2);
    }
}
