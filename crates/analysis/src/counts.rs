//! What became of a round's messages: how many, and in what time.

use crate::result::ThreadResult;
use wiregauge_clock::Timebase;
use wiregauge_figures::record::schema::{Counts, Round};
use wiregauge_plan::Case;
use wiregauge_sample::{Flags, RoundSamples, Sample};
use wiregauge_stats::rate::Delivered;

/// Which end sees messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The client: what it sends comes back.
    AtClient,
    /// The server.
    AtServer,
    /// Both: messages go both ways.
    AtBoth,
}

/// One round as a collector sees it.
pub struct RoundSeen<'a> {
    /// The case as this round ran it.
    pub case: &'a Case,
    /// The samples of all threads.
    pub samples: &'a RoundSamples,
    /// What the record says of it.
    pub round: &'a Round,
    /// What the client's threads left.
    pub client: &'a [ThreadResult],
    /// What the server's threads left.
    pub server: &'a [ThreadResult],
    /// The scale of the server's clock.
    pub server_time: &'a Timebase,
}

/// `each` of work for every stamp but the first, in the time from the first to the last.
pub fn between(stamps: impl Iterator<Item = f64>, each: f64) -> Delivered {
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

/// The counts of one thread in one round, as both ends saw it.
pub fn counts(
    case: &Case,
    arrivals: Arrivals,
    client: &ThreadResult,
    server: Option<&ThreadResult>,
    samples: &[Sample],
) -> Counts {
    let seen = |part: &ThreadResult| {
        part.outcome.as_ref().map(|outcome| outcome.counts).unwrap_or_default()
    };
    let (at_client, mut at_server) = (seen(client), server.map(seen).unwrap_or_default());
    if let Some(simulated) = client.outcome.as_ref().and_then(|outcome| outcome.server_counts) {
        at_server = simulated;
    }
    let both = arrivals == Arrivals::AtBoth;
    let receiver = if arrivals == Arrivals::AtClient { at_client } else { at_server };
    let ends = [Some(client), server].into_iter().flatten();
    let rejected_peers = ends.filter_map(|part| Some(part.outcome.as_ref()?.rejected_peers));
    // Whatever an agent counted, a sum stays a number.
    let with = |one: u64, other: u64| if both { one.saturating_add(other) } else { one };
    let mut counts = Counts {
        sent: with(at_client.sent, at_server.sent),
        received: with(receiver.received, at_client.received),
        duplicates: receiver.duplicates,
        reordered: receiver.reordered,
        rejected_peers: rejected_peers.fold(0, u64::saturating_add),
        missed_steps: at_client.missed_steps,
        gaps: receiver.gaps,
        held_up: at_client.held_up,
        unsent: at_client.unsent,
        corrupt: with(receiver.corrupt, at_client.corrupt),
        ..Counts::default()
    };
    // A process that was killed reported no counts: its samples and its progress did.
    let has_reported = |part: &ThreadResult| part.outcome.is_some();
    let is_simulated =
        client.outcome.as_ref().is_some_and(|outcome| outcome.server_counts.is_some());
    let receiver_reported = match arrivals {
        Arrivals::AtClient => has_reported(client),
        _ => is_simulated || server.is_some_and(has_reported),
    };
    let stride = case.profile().stride;
    if !receiver_reported {
        let arrived = samples.iter().filter(|s| !s.receive_ns.is_nan()).count() as u64;
        counts.received = counts.received.max(arrived.saturating_mul(stride));
        counts.sent = counts.sent.max(counts.received);
    }
    if !has_reported(client) {
        let with_flag = |flag| samples.iter().filter(|s| s.flags.has(flag)).count() as u64;
        (counts.missed_steps, counts.unsent) = (with_flag(Flags::MISSED), with_flag(Flags::UNSENT));
        // Its progress includes what it has kept as never sent.
        let handled = client.arena.progress().saturating_sub(counts.unsent);
        let posted = samples.iter().filter(|s| was_sent(s)).count() as u64;
        let sent = posted.saturating_mul(stride).max(handled);
        counts.sent = counts.sent.max(sent).max(counts.received);
    }
    counts.warmup = warmup(samples);
    // A transport that loses nothing was cut off when the round ended.
    let missing = counts.sent.saturating_sub(counts.received);
    match case.transport.loses(&case.settings) {
        true => counts.lost = missing,
        false => counts.unfinished = missing,
    }
    counts
}

/// Counts what arrived beyond what was sent as duplicates: a loop that keeps no list of what has
/// arrived cannot tell which messages the path has doubled. Of one that also loses some, as many of
/// these stay hidden.
pub fn move_excess_to_duplicates(counts: &mut Counts) {
    let excess = counts.received.saturating_sub(counts.sent);
    counts.received -= excess;
    counts.duplicates = counts.duplicates.saturating_add(excess);
}

/// Takes out what was under way when the user ended a round: as many samples, and of an endless
/// round over a transport that loses nothing all that is unfinished. `kept`: the other samples.
pub fn leave_out_under_way(case: &Case, left_out: u64, kept: &[Sample], counts: &mut Counts) {
    let samples = left_out.saturating_mul(case.profile().stride);
    let all = if case.is_endless() { counts.unfinished.max(samples) } else { samples };
    counts.sent -= all.min(counts.sent);
    counts.unfinished -= all.min(counts.unfinished);
    counts.lost -= all.min(counts.lost);
    counts.warmup = warmup(kept);
}

/// Returns how many messages of the warm-up were sent.
fn warmup(samples: &[Sample]) -> u64 {
    samples.iter().filter(|s| was_sent(s) && s.flags.has(Flags::WARMUP)).count() as u64
}

/// Whether a sample is of messages that were sent: no missed step, and no request that was intended
/// and never posted.
fn was_sent(sample: &Sample) -> bool {
    !sample.flags.has(Flags::MISSED) && !sample.flags.has(Flags::UNSENT)
}

/// Adds one round to all. Rounds of a journal may hold any numbers.
pub fn add(all: &mut Counts, one: &Counts) {
    macro_rules! sum {
        ($($field:ident),+) => { $(all.$field = all.$field.saturating_add(one.$field);)+ };
    }
    sum!(sent, received, warmup, lost, duplicates, reordered, corrupt, rejected_peers);
    sum!(missed_steps, gaps, held_up, unsent, unfinished, lost_before_first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_sample::recorder::MessageCounts;

    #[test]
    fn counts_of_everything_stay_counts_of_everything() {
        let one = Counts { sent: u64::MAX, lost: 7, ..Counts::default() };
        let mut all = one;
        add(&mut all, &one);
        assert_eq!((all.sent, all.lost), (u64::MAX, 14));
    }

    #[test]
    fn what_a_path_has_doubled_is_a_duplicate() {
        let mut counts = Counts { sent: 10, received: 13, duplicates: 1, ..Counts::default() };
        move_excess_to_duplicates(&mut counts);
        assert_eq!((counts.received, counts.duplicates), (10, 4));
        move_excess_to_duplicates(&mut counts);
        assert_eq!((counts.received, counts.duplicates), (10, 4));
    }

    #[test]
    fn work_is_what_came_after_the_first_stamp_in_the_time_since_it() {
        let stamps = [3e9, f64::NAN, 7e9, 4e9];
        let found = between(stamps.into_iter(), 10.0);
        assert_eq!(found, Delivered { work: 20.0, seconds: 4.0 });
        assert_eq!(between([].into_iter(), 1.0), Delivered { work: 0.0, seconds: 0.0 });
    }

    /// The counts of a round whose ends have sent and received so many messages; `None`: an end was
    /// killed.
    fn counted(
        arrivals: Arrivals,
        client: Option<[u64; 2]>,
        server: Option<[u64; 2]>,
        samples: &[Sample],
    ) -> [u64; 4] {
        let case = wiregauge_patterns::latency::request(Default::default());
        let end = |of: Option<[u64; 2]>| {
            let mut thread = crate::fixtures::finished_thread(0, true, &[]);
            thread.outcome = thread.outcome.zip(of).map(|(mut outcome, [sent, received])| {
                (outcome.counts.sent, outcome.counts.received) = (sent, received);
                outcome
            });
            thread
        };
        let case = case.plan().unwrap().cases.remove(0);
        let found = counts(&case, arrivals, &end(client), Some(&end(server)), samples);
        [found.sent, found.received, found.unfinished, found.warmup]
    }

    /// Samples without a stamp of receipt but for the first two.
    fn samples(flags: &[Flags]) -> Vec<Sample> {
        let sample = |(number, flags): (usize, &Flags)| {
            let receive = if number < 2 { 5.0 } else { f64::NAN };
            Sample::new(number as u64, 8, [0.0, 0.0, f64::NAN, receive, f64::NAN], *flags)
        };
        flags.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn messages_count_where_they_arrive() {
        let samples = samples(&[Flags::default(); 12]);
        let of = |arrivals| counted(arrivals, Some([10, 3]), Some([5, 8]), &samples);
        assert_eq!(of(Arrivals::AtServer), [10, 8, 2, 0]);
        assert_eq!(of(Arrivals::AtClient), [10, 3, 7, 0]);
        assert_eq!(of(Arrivals::AtBoth), [15, 11, 4, 0]);
    }

    #[test]
    fn samples_say_what_an_end_that_was_killed_did_not_count() {
        let warm = Flags::WARMUP;
        let none = Flags::default();
        let samples = samples(&[warm, none, warm.with(Flags::MISSED), none]);
        let of = |client, server| counted(Arrivals::AtServer, client, server, &samples);
        assert_eq!(of(None, None), [3, 2, 1, 1]);
        assert_eq!(of(None, Some([0, 8])), [8, 8, 0, 1]);
        assert_eq!(of(Some([10, 0]), None), [10, 2, 8, 1]);
    }

    #[test]
    fn what_the_receiving_end_has_counted_stands_beside_samples_that_say_more() {
        let samples = samples(&[Flags::default(); 12]);
        let of = |server| counted(Arrivals::AtServer, Some([10, 0]), server, &samples);
        assert_eq!((of(Some([0, 1])), of(None)), ([10, 1, 9, 0], [10, 2, 8, 0]));
        // The server of a simulation is counted by its client.
        let case = wiregauge_patterns::latency::request(Default::default()).plan().unwrap().cases;
        let mut client =
            crate::fixtures::reported(MessageCounts { sent: 10, ..Default::default() });
        let simulated = MessageCounts { received: 1, ..Default::default() };
        client.outcome.as_mut().unwrap().server_counts = Some(simulated);
        let found = counts(&case[0], Arrivals::AtServer, &client, None, &samples);
        assert_eq!((found.sent, found.received), (10, 1));
    }

    /// A schedule of which five requests were sent, three (one as warm-up) were never sent and two
    /// steps were missed. No answer came.
    fn unanswered() -> Vec<Sample> {
        let none = f64::NAN;
        let flags = [
            vec![Flags::LOST.with(Flags::WARMUP)],
            vec![Flags::LOST; 4],
            vec![Flags::UNSENT.with(Flags::WARMUP)],
            vec![Flags::UNSENT; 2],
            vec![Flags::MISSED; 2],
        ];
        let sample = |(number, flags): (usize, Flags)| {
            let submit = if flags.has(Flags::LOST) { number as f64 } else { none };
            Sample::new(number as u64, 64, [number as f64, submit, none, none, none], flags)
        };
        flags.concat().into_iter().enumerate().map(sample).collect()
    }

    fn unanswered_counts(client: &ThreadResult, server: &ThreadResult, at: Arrivals) -> Counts {
        let request = wiregauge_patterns::load::request(Default::default());
        let case = request.plan().unwrap().cases.remove(0);
        counts(&case, at, client, Some(server), &unanswered())
    }

    #[test]
    fn what_was_never_sent_is_not_lost_where_nothing_is_answered() {
        let seen = MessageCounts { sent: 5, unsent: 3, missed_steps: 2, ..Default::default() };
        let [client, server] = [seen, MessageCounts::default()].map(crate::fixtures::reported);
        for at in [Arrivals::AtClient, Arrivals::AtServer] {
            let found = unanswered_counts(&client, &server, at);
            let own = (found.sent, found.received, found.unfinished, found.lost);
            assert_eq!(own, (5, 0, 5, 0), "{at:?}");
            assert_eq!((found.unsent, found.missed_steps, found.warmup), (3, 2, 1), "{at:?}");
        }
    }

    #[test]
    fn a_killed_client_has_sent_what_its_samples_say() {
        let mut client =
            ThreadResult { outcome: None, ..crate::fixtures::reported(Default::default()) };
        let server = crate::fixtures::reported(MessageCounts::default());
        // It had begun to keep what it had not sent.
        client.arena.writer().1.handled(8);
        let found = unanswered_counts(&client, &server, Arrivals::AtClient);
        assert_eq!((found.sent, found.received, found.unfinished), (5, 0, 5));
        assert_eq!((found.unsent, found.missed_steps), (3, 2));
    }
}
