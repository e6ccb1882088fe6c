//! Single gaps that stand out of a round, and what the counters of both ends say of them. Pure.

use std::collections::BTreeMap;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Round, Stall, StallCause, Usage};
use wiregauge_plan::Case;
use wiregauge_sample::{Flags, Sample};
use wiregauge_stats::quantile::rank;

/// A gap is at least so long: shorter ones are the tail, which the quantiles show.
const LEAST_NS: f64 = 1e6;
/// ... and so many medians of its round.
const MEDIANS: f64 = 20.0;
/// Gaps of a run that are kept: the longest.
const MOST: usize = 3;
/// Messages of a round from which its median is taken, evenly spread.
const LOOKED_AT: usize = 1 << 14;
/// An end that waited for this share of a gap or more may have caused it ...
const WAITED: f64 = 0.9;
/// ... unless it waited for more than this many times as long in its round, ...
const MAX_WAITED: f64 = 2.0;
/// ... and one that waited for less than this has not.
const NOT_WAITED: f64 = 0.5;

/// What takes time in a round: a message, or (of a rate) the time between two stamps.
#[derive(Clone, Copy)]
struct Span {
    /// Since the begin of the round.
    at_ns: f64,
    length_ns: f64,
    thread: u32,
}

/// The longest gaps of a round that stand out. Of those that overlap the longest is kept: what one
/// stall held up waited together.
pub fn of_round(case: &Case, samples: &[Sample], round: &Round, is_rate: bool) -> Vec<Stall> {
    let begins = Begins::of(case, samples, round, is_rate);
    let spans = || spans(samples, &begins, is_rate);
    let Some(median_ns) = median(spans().step_by(samples.len().div_ceil(LOOKED_AT).max(1))) else {
        return Vec::new();
    };
    let least_ns = LEAST_NS.max(MEDIANS * median_ns);
    let mut long: Vec<Span> = spans().filter(|span| span.length_ns >= least_ns).collect();
    // Of a bandwidth in both directions one stands behind the other.
    long.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    let mut found: Vec<Span> = Vec::new();
    let mut until_ns = f64::NEG_INFINITY;
    for span in long {
        match found.last_mut().filter(|_| span.at_ns < until_ns) {
            Some(last) if last.length_ns < span.length_ns => *last = span,
            Some(_) => {}
            None => found.push(span),
        }
        until_ns = until_ns.max(span.at_ns + span.length_ns);
    }
    keep_longest(&mut found, |span| span.length_ns);
    // Simulated time passes whatever the thread waits for.
    let is_real = !case.transport.simulates_time();
    let mut stalls: Vec<Stall> =
        found.into_iter().map(|span| stall(span, round, is_real)).collect();
    stalls.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    stalls
}

/// The gaps of a run: the longest of those of its rounds, and a note of each.
pub fn of_run(mut stalls: Vec<Stall>) -> (Vec<Stall>, Vec<Warning>) {
    keep_longest(&mut stalls, |stall| stall.length_ns);
    let notes = stalls.iter().map(|stall| {
        let Stall { length_ns, at_ns, round, .. } = *stall;
        Warning::Stall { length_ns, at_s: at_ns / 1e9, round, why: why(stall) }
    });
    let notes = notes.collect();
    (stalls, notes)
}

/// Drops all but the longest, which stand in that order; of equal ones the first are kept.
fn keep_longest<T>(all: &mut Vec<T>, length: impl Fn(&T) -> f64) {
    all.sort_by(|a, b| length(b).total_cmp(&length(a)));
    all.truncate(MOST);
}

/// The flow of a sample: its thread and its direction.
fn flow(sample: &Sample) -> (u32, bool) {
    (sample.thread, sample.flags.has(Flags::REVERSE))
}

/// When a sample's message took up its time; of a rate its stamp.
fn begin(sample: &Sample, is_rate: bool) -> f64 {
    match is_rate {
        true => sample.receive_ns,
        false if sample.intended_ns.is_nan() => sample.submit_ns,
        false => sample.intended_ns,
    }
}

/// When a round began, by the clock of each flow's stamps.
enum Begins {
    /// All have one clock.
    One(f64),
    /// The ends are on two hosts, whose clocks may have other epochs: each flow's first stamp.
    Each(BTreeMap<(u32, bool), f64>),
}

impl Begins {
    fn of(case: &Case, samples: &[Sample], round: &Round, is_rate: bool) -> Begins {
        if !case.topology.is_between_hosts() {
            return Begins::One(round.started_ns);
        }
        let mut each = BTreeMap::new();
        for sample in samples {
            let begin = begin(sample, is_rate);
            let first = each.entry(flow(sample)).or_insert(begin);
            // NaN gives way.
            *first = begin.min(*first);
        }
        Begins::Each(each)
    }

    fn of_flow(&self, sample: &Sample) -> f64 {
        match self {
            Begins::One(begin) => *begin,
            Begins::Each(each) => each.get(&flow(sample)).copied().unwrap_or(f64::NAN),
        }
    }
}

/// What took time after the warm-up, in the order of the samples.
fn spans(samples: &[Sample], begins: &Begins, is_rate: bool) -> impl Iterator<Item = Span> {
    let mut last: BTreeMap<(u32, bool), f64> = BTreeMap::new();
    samples.iter().filter_map(move |s| {
        let begin_ns = match is_rate {
            true => last.insert(flow(s), s.receive_ns)?,
            false => begin(s, is_rate),
        };
        let length_ns = s.receive_ns - begin_ns;
        let counts = length_ns.is_finite() && !s.flags.has(Flags::WARMUP);
        let at_ns = begin_ns - begins.of_flow(s);
        counts.then_some(Span { at_ns, length_ns, thread: s.thread })
    })
}

fn median(spans: impl Iterator<Item = Span>) -> Option<f64> {
    let mut lengths: Vec<f64> = spans.map(|span| span.length_ns).collect();
    let at = (rank(0.5, lengths.len() as u64) as usize).checked_sub(1)?;
    Some(*lengths.select_nth_unstable_by(at, f64::total_cmp).1)
}

fn stall(span: Span, round: &Round, is_real: bool) -> Stall {
    let Span { at_ns, length_ns, thread } = span;
    let of_thread = round.threads.get(thread as usize);
    let waited = |usage: &Usage| usage.waited_ns.filter(|_| is_real);
    let client_waited_ns = waited(of_thread.map_or(&round.client, |thread| &thread.client));
    let server_waited_ns = waited(of_thread.map_or(&round.server, |thread| &thread.server));
    Stall {
        round: round.index,
        thread,
        at_ns,
        length_ns,
        client_waited_ns,
        server_waited_ns,
        cause: cause(length_ns, client_waited_ns, server_waited_ns),
    }
}

/// What the times for which both ends waited for a CPU, in the whole round, say of a gap.
fn cause(length_ns: f64, client: Option<f64>, server: Option<f64>) -> StallCause {
    let Some((client, server)) = client.zip(server) else { return StallCause::Unknown };
    // Who waited for much longer than the gap did so elsewhere, too: whether in it is not known.
    let may = |waited_ns: f64| (WAITED..=MAX_WAITED).contains(&(waited_ns / length_ns));
    let has_not = |waited_ns: f64| waited_ns < NOT_WAITED * length_ns;
    match (may(client), may(server)) {
        (true, true) => StallCause::BothWaited,
        (true, false) if has_not(server) => StallCause::ClientWaited,
        (false, true) if has_not(client) => StallCause::ServerWaited,
        (false, false) if has_not(client) && has_not(server) => StallCause::NeitherWaited,
        _ => StallCause::Unknown,
    }
}

fn why(stall: &Stall) -> String {
    let waited = |who: &str, ns: Option<f64>| {
        let ms = ns.unwrap_or_default() / 1e6;
        format!("the {who} waited {ms:.1} ms for its CPU in that round")
    };
    match stall.cause {
        StallCause::ClientWaited => waited("client", stall.client_waited_ns),
        StallCause::ServerWaited => waited("server", stall.server_waited_ns),
        StallCause::BothWaited => "both ends waited about that long for their CPUs".into(),
        StallCause::NeitherWaited => "neither end waited half as long for its CPU".into(),
        StallCause::Unknown => "the kernel's counters do not show why".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::warning::RecordedWarning;
    use wiregauge_patterns::latency;

    fn case() -> Case {
        latency::request(Default::default()).plan().unwrap().cases.remove(0)
    }

    /// Round trips of 10 us, one after another, with some that take longer.
    fn samples(slow: &[(u64, f64)]) -> Vec<Sample> {
        let mut now = 5e8;
        let none = f64::NAN;
        let sample = |number: u64| {
            let took = slow.iter().find(|(at, _)| *at == number).map_or(1e4, |(_, ns)| *ns);
            let submit = now;
            now += took;
            Sample::new(number, 64, [none, submit, none, now, none], Flags::default())
        };
        (0..1000).map(sample).collect()
    }

    fn round(client_waited_ns: f64, server_waited_ns: f64) -> Round {
        let usage = |ns| Usage { waited_ns: Some(ns), ..Usage::default() };
        let (client, server) = (usage(client_waited_ns), usage(server_waited_ns));
        Round { index: 3, started_ns: 5e8, client, server, ..Round::default() }
    }

    fn said(samples: &[Sample], round: &Round) -> Vec<String> {
        let (_, notes) = of_run(of_round(&case(), samples, round, false));
        notes.iter().map(|note| RecordedWarning::from(note).sentence).collect()
    }

    #[test]
    fn a_stall_has_its_place_its_length_and_the_end_that_waited() {
        let one = samples(&[(500, 7.1e6)]);
        let at = "one gap of 7.10 ms at 0.0 s of round 3";
        assert_eq!(
            said(&one, &round(1e4, 7.3e6)),
            [format!("{at}: the server waited 7.3 ms for its CPU in that round")]
        );
        assert_eq!(
            said(&one, &round(7e6, 0.0)),
            [format!("{at}: the client waited 7.0 ms for its CPU in that round")]
        );
        let neither = "neither end waited half as long for its CPU";
        assert_eq!(said(&one, &round(0.0, 1e6)), [format!("{at}: {neither}")]);
        // Half of it on one side proves nothing, nor does a kernel that does not count.
        let unknown = [format!("{at}: the kernel's counters do not show why")];
        assert_eq!(said(&one, &round(5e6, 0.0)), unknown);
        // Waits of a whole round that are 25 times as long as the gap are not of the gap.
        assert_eq!(said(&one, &round(1.5e8, 1.7e8)), unknown);
        assert_eq!(said(&one, &round(1.5e8, 0.0)), unknown);
        let uncounted = Round { client: Usage::default(), ..round(0.0, 0.0) };
        assert_eq!(said(&one, &uncounted), unknown);
        assert!(said(&samples(&[]), &round(0.0, 7e6)).is_empty());
        assert!(said(&samples(&[(9, 9e5)]), &round(0.0, 7e6)).is_empty(), "the tail");
    }

    #[test]
    fn the_longest_gaps_are_kept_and_what_one_stall_held_up_is_one() {
        let many = samples(&[(10, 2e6), (30, 9e6), (50, 3e6), (70, 8e6), (90, 7e6)]);
        let found = of_round(&case(), &many, &round(0.0, 0.0), false);
        let lengths = |stalls: &[Stall]| stalls.iter().map(|s| s.length_ns).collect::<Vec<_>>();
        assert_eq!(lengths(&found), [9e6, 8e6, 7e6]);
        // An open loop: ten thousand requests, of which those of 20 ms wait for its end.
        let late = |number: u32| {
            let intended = f64::from(number) * 1e4;
            let end = if (2000..4000).contains(&number) { 4e7 } else { intended + 5e3 };
            let stamps = [intended, intended, f64::NAN, end, f64::NAN];
            Sample::new(number.into(), 64, stamps, Flags::default())
        };
        let open: Vec<Sample> = (0..10_000).map(late).collect();
        let found = of_round(&case(), &open, &Round::default(), false);
        assert_eq!((lengths(&found), found[0].at_ns), (vec![2e7], 2e7));
    }

    #[test]
    fn a_rate_has_gaps_between_its_stamps() {
        let mark = |number: u32| {
            let receive = f64::from(number) * 1e4 + if number < 700 { 0.0 } else { 4e6 };
            let none = f64::NAN;
            Sample::new(number.into(), 64, [none, none, none, receive, none], Flags::default())
        };
        let marks: Vec<Sample> = (0..1000).map(mark).collect();
        let found = of_round(&case(), &marks, &Round::default(), true);
        let [Stall { length_ns, at_ns, .. }] = found[..] else { panic!("{found:?}") };
        assert_eq!((length_ns, at_ns), (4.01e6, 6.99e6));
    }

    /// Stamps of one direction, 10 us apart from a time on, a gap of so many ns before each stamp
    /// of these numbers.
    fn marks(from_ns: f64, gaps: &[(u32, f64)], flags: Flags) -> Vec<Sample> {
        let none = f64::NAN;
        let mark = |number: u32| {
            let gaps = gaps.iter().filter(|(at, _)| *at <= number);
            let receive = from_ns + f64::from(number) * 1e4 + gaps.map(|(_, ns)| ns).sum::<f64>();
            Sample::new(number.into(), 64, [none, none, none, receive, none], flags)
        };
        (0..1000).map(mark).collect()
    }

    fn lengths_and_places(stalls: &[Stall]) -> Vec<(f64, f64)> {
        stalls.iter().map(|stall| (stall.length_ns, stall.at_ns)).collect()
    }

    #[test]
    fn gaps_of_both_directions_are_compared_by_their_time() {
        // The forward direction stalls at its last message; the reverse direction, whose stamps
        // follow, stalls earlier.
        let there = marks(0.0, &[(999, 9e6)], Flags::default());
        let back = marks(0.0, &[(100, 5e6), (500, 2e6)], Flags::REVERSE);
        let found = of_round(&case(), &[there, back].concat(), &Round::default(), true);
        // The reverse direction's second gap, of 2.01 ms at 9.99 ms, lies within the forward one's.
        assert_eq!(lengths_and_places(&found), [(5.01e6, 0.99e6), (9.01e6, 9.98e6)]);
    }

    #[test]
    fn a_gap_between_two_hosts_has_its_place_by_its_own_clock() {
        let mut case = case();
        case.topology.ranks[1].host = Some(0);
        // The other host has been up for a day.
        let day = 86_400e9;
        let all = marks(day, &[(700, 4e6)], Flags::default());
        let round = Round { started_ns: 5e8, ..Round::default() };
        let found = of_round(&case, &all, &round, true);
        assert_eq!(lengths_and_places(&found), [(4.01e6, 6.99e6)]);
    }

    #[test]
    fn the_longest_of_several_equal_gaps_is_kept() {
        let many = samples(&[(10, 2e6), (30, 2e6), (50, 2e6), (70, 9e6)]);
        let found = of_round(&case(), &many, &round(0.0, 0.0), false);
        let lengths: Vec<f64> = found.iter().map(|stall| stall.length_ns).collect();
        assert_eq!(lengths, [2e6, 2e6, 9e6]);
    }

    #[test]
    fn gaps_that_follow_each_other_are_two_and_of_equal_ones_the_first_is_kept() {
        let found = |samples: &[Sample]| {
            lengths_and_places(&of_round(&case(), samples, &round(0.0, 0.0), false))
        };
        assert_eq!(found(&[]), []);
        // 10 of 10 us, then 2 ms and at once 3 ms.
        let two = [(2e6, 1e5), (3e6, 2.1e6)];
        assert_eq!(found(&samples(&[(10, 2e6), (11, 3e6)])), two);
        // The least is 1 ms, or 20 medians.
        assert_eq!(found(&samples(&[(10, 1e6), (20, 999_999.0)])), [(1e6, 1e5)]);
        let slow: Vec<(u64, f64)> = (0..1000).map(|number| (number, 1e5)).collect();
        let with = |ns: f64| {
            let mut slow = slow.clone();
            slow[1].1 = ns;
            found(&samples(&slow))
        };
        assert_eq!((with(2e6), with(1.9e6)), (vec![(2e6, 1e5)], vec![]));
        // Two that wait together for 5 ms, and two in the warm-up.
        let open = |number: u32| {
            let intended = 5e8 + f64::from(number) * 1e3;
            let ns = if [7, 8, 107, 108].contains(&number) { 5e6 } else { 100.0 };
            let flags = if number < 10 { Flags::WARMUP } else { Flags::default() };
            let stamps = [intended, intended + 50.0, f64::NAN, intended + ns, f64::NAN];
            Sample::new(number.into(), 64, stamps, flags)
        };
        let together: Vec<Sample> = (0..1000).map(open).collect();
        assert_eq!(found(&together), [(5e6, 1.07e5)]);
    }

    #[test]
    fn an_end_may_have_caused_what_it_waited_for_and_not_what_it_waited_half_as_long_for() {
        let (client, server) = (StallCause::ClientWaited, StallCause::ServerWaited);
        let (both, neither) = (StallCause::BothWaited, StallCause::NeitherWaited);
        let unknown = StallCause::Unknown;
        for (client_ns, server_ns, known) in [
            (9.0, 9.0, both),
            (9.0, 4.9, client),
            (4.9, 9.0, server),
            (9.0, 5.0, unknown),
            (5.0, 9.0, unknown),
            (8.9, 0.0, unknown),
            (0.0, 8.9, unknown),
            (4.9, 4.9, neither),
            (5.0, 4.9, unknown),
            (4.9, 5.0, unknown),
        ] {
            let found = cause(10.0, Some(client_ns), Some(server_ns));
            assert_eq!(found, known, "{client_ns} {server_ns}");
        }
    }

    #[test]
    fn the_waiting_is_that_of_the_thread_and_none_in_simulated_time() {
        let usage = |ns| Usage { waited_ns: Some(ns), ..Usage::default() };
        let thread = |client, server| wiregauge_figures::record::schema::Thread {
            client: usage(client),
            server: usage(server),
            ..Default::default()
        };
        let round = Round { threads: vec![thread(1.0, 2.0), thread(3.0, 4.0)], ..round(8.0, 9.0) };
        let waited = |thread, is_real| {
            let found = stall(Span { at_ns: 0.0, length_ns: 1e7, thread }, &round, is_real);
            (found.client_waited_ns, found.server_waited_ns)
        };
        assert_eq!(waited(1, true), (Some(3.0), Some(4.0)));
        assert_eq!(waited(2, true), (Some(8.0), Some(9.0)), "of all");
        assert_eq!(waited(1, false), (None, None));
        let mut simulated = case();
        simulated.transport = wiregauge_transport::TransportKind::SIMULATED;
        let found = of_round(&simulated, &samples(&[(9, 5e6)]), &round, false);
        assert_eq!(found[0].cause, StallCause::Unknown);
        let real = of_round(&case(), &samples(&[(9, 5e6)]), &round, false);
        assert_eq!(real[0].cause, StallCause::NeitherWaited);
    }
}
