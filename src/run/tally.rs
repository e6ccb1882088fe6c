//! What became of a round's messages: how many, and in what time.

use super::stream;
use super::window;
use crate::loops::role;
use crate::plan::{Case, Direction, Pattern};
use crate::record::schema::Counts;
use crate::run::round::{Finished, Part};
use crate::sample::{Flags, RoundSamples, Sample};
use crate::stats::rate::Delivered;
use std::collections::BTreeMap;

/// What was delivered between the first stamp that counts and the last, in the time that all
/// threads of a way share; both ways added.
pub(super) fn delivered(samples: &RoundSamples, stride: f64, direction: Direction) -> Delivered {
    let way = |is_back: bool| {
        let of_way = samples.samples.iter().filter(|s| s.flags.has(Flags::REVERSE) == is_back);
        let mut flows: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in of_way {
            let flow = flows.entry(sample.thread).or_default();
            // Of the warm-up the last stamp counts: it begins what comes after.
            if sample.flags.has(Flags::WARMUP) {
                flow.clear();
            }
            flow.push(sample.receive_ns);
        }
        window::delivered(&flows.into_values().collect::<Vec<_>>(), stride)
    };
    let there = way(false);
    match direction {
        Direction::Uni => there,
        Direction::Bi => {
            let back = way(true);
            let rates =
                [there, back].map(|d| if d.seconds > 0.0 { d.work / d.seconds } else { 0.0 });
            let seconds = there.seconds.max(back.seconds);
            Delivered { work: (rates[0] + rates[1]) * seconds, seconds }
        }
    }
}

/// `each` of work for every stamp but the first, in the time from the first to the last.
pub(super) fn between(stamps: impl Iterator<Item = f64>, each: f64) -> Delivered {
    let mut count = 0u64;
    let mut ends: Option<(f64, f64)> = None;
    for stamp in stamps.filter(|stamp| !stamp.is_nan()) {
        count += 1;
        let (first, last) = ends.unwrap_or((stamp, stamp));
        ends = Some((first.min(stamp), last.max(stamp)));
    }
    let seconds = ends.map_or(0.0, |(first, last)| (last - first) / 1e9);
    Delivered { work: count.saturating_sub(1) as f64 * each, seconds }
}

/// The counts of one round of all threads; `each` has the samples of each.
pub(super) fn counts_of_all(
    case: &Case,
    finished: &Finished,
    each: &[RoundSamples],
) -> (Counts, Vec<Counts>) {
    let parts = finished.client.iter().zip(each).enumerate();
    let counted: Vec<Counts> = parts
        .map(|(number, (client, samples))| {
            counts(case, client, finished.server.get(number), samples)
        })
        .collect();
    let mut all = Counts::default();
    counted.iter().for_each(|one| add(&mut all, one));
    if case.rpc.is_some() {
        // Of requests the server counts what came broken; the client has what came back so.
        let outcomes = finished.server.iter().filter_map(|part| part.outcome.as_ref());
        all.corrupt += outcomes.map(|outcome| outcome.seen.corrupt).sum::<u64>();
    }
    (all, counted)
}

/// The counts of one thread in one round, as both ends saw it.
fn counts(case: &Case, client: &Part, server: Option<&Part>, samples: &RoundSamples) -> Counts {
    let seen = |part: &Part| part.outcome.as_ref().map(|outcome| outcome.seen).unwrap_or_default();
    let (at_client, mut at_server) = (seen(client), server.map(seen).unwrap_or_default());
    if let Some(simulated) = client.outcome.as_ref().and_then(|outcome| outcome.server_seen) {
        at_server = simulated;
    }
    let both = case.pattern == Pattern::Bandwidth && case.direction == Direction::Bi;
    let comes_back =
        matches!(case.pattern, Pattern::Latency | Pattern::Load) || role::is_one_sided(case);
    let receiver = if comes_back && !both { at_client } else { at_server };
    let was_sent = |s: &&Sample| !s.flags.has(Flags::MISSED);
    let has = |flag: Flags| {
        let sent = samples.samples.iter().filter(was_sent);
        sent.filter(|s| s.flags.has(flag)).count() as u64
    };
    let mut counts = Counts {
        sent: at_client.sent + if both { at_server.sent } else { 0 },
        received: receiver.received + if both { at_client.received } else { 0 },
        duplicates: receiver.duplicates,
        reordered: receiver.reordered,
        strangers: [Some(client), server]
            .into_iter()
            .flatten()
            .filter_map(|part| part.outcome.as_ref())
            .map(|outcome| outcome.strangers)
            .sum(),
        missed_steps: at_client.missed_steps,
        gaps: receiver.gaps,
        held_up: at_client.held_up,
        unsent: at_client.unsent,
        corrupt: receiver.corrupt + if both { at_client.corrupt } else { 0 },
        ..Counts::default()
    };
    if client.outcome.is_none() || receiver.received == 0 {
        // A process that was killed told no counts: its samples and its progress did.
        let stride = role::stride(case);
        let arrived = samples.samples.iter().filter(|s| !s.receive_ns.is_nan()).count() as u64;
        counts.received = counts.received.max(arrived * stride);
        let told = (samples.samples.len() as u64 * stride).max(client.arena.progress());
        counts.sent = counts.sent.max(told).max(counts.received);
    }
    counts.warmup = match case.pattern {
        Pattern::Bandwidth => case.warmup.min(counts.sent),
        Pattern::Latency | Pattern::Oneway | Pattern::Load => has(Flags::WARMUP),
    };
    if case.stream.is_some() {
        counts.lost_before_first = stream::lost_before_first(samples);
    }
    counts.lost = counts.sent.saturating_sub(counts.received) + counts.unsent;
    counts
}

/// Adds one round to all.
pub(super) fn add(all: &mut Counts, one: &Counts) {
    all.sent += one.sent;
    all.received += one.received;
    all.warmup += one.warmup;
    all.lost += one.lost;
    all.duplicates += one.duplicates;
    all.reordered += one.reordered;
    all.corrupt += one.corrupt;
    all.strangers += one.strangers;
    all.missed_steps += one.missed_steps;
    all.gaps += one.gaps;
    all.held_up += one.held_up;
    all.unsent += one.unsent;
    all.lost_before_first += one.lost_before_first;
}
