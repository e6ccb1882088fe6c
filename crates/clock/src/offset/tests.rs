//! Offsets of clocks whose truth is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// A clock whose truth is known: what it is ahead by, gains, and is set by at a time.
#[derive(Clone, Copy, Debug)]
struct Truth {
    offset_ns: f64,
    ppm: f64,
    step: Option<(f64, f64)>,
}

impl Truth {
    fn other(&self, here: f64) -> f64 {
        let stepped = self.step.filter(|(at, _)| here >= *at).map_or(0.0, |(_, by)| by);
        here + self.offset_ns + here * self.ppm * 1e-6 + stepped
    }
}

/// Exchanges every 10 ms with delays of a least and an exponential part each way.
fn exchanges(truth: Truth, seconds: f64, ways: [(f64, f64); 2], seed: u64) -> Vec<Exchange> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut delay = |(least, mean): (f64, f64)| {
        let part: f64 = Exp1.sample(&mut random);
        least + mean * part
    };
    let count = (seconds * 100.0) as usize;
    (0..count)
        .map(|number| {
            let sent = number as f64 * 1e7;
            let reached = sent + delay(ways[0]);
            let answered = reached + 2000.0;
            let heard = answered + delay(ways[1]);
            Exchange {
                sent: LocalNs(sent),
                reached: LocalNs(truth.other(reached)),
                answered: LocalNs(truth.other(answered)),
                heard: LocalNs(heard),
            }
        })
        .collect()
}

const EVEN: [(f64, f64); 2] = [(5000.0, 3000.0), (5000.0, 3000.0)];

#[test]
fn the_truth_lies_within_the_bound_whatever_the_clock_and_the_way() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for trial in 0..300 {
        let truth = Truth {
            offset_ns: random.random_range(-1e15..1e15),
            ppm: random.random_range(-50.0..50.0),
            step: None,
        };
        let loads = [EVEN, [(9000.0, 1000.0), (3000.0, 500.0)], [(5000.0, 2e6), (5000.0, 4e5)]];
        let model = Model::fit(&exchanges(truth, 3.0, loads[trial % 3], trial as u64)).unwrap();
        assert!(model.steps.is_empty(), "trial {trial}");
        for place in 0..40 {
            let at = f64::from(place) * 1e8;
            let offset = model.offset_at(LocalNs(at));
            let off = (offset.ns - (truth.other(at) - at)).abs();
            // 10^15 ns are exact to 1/8 ns in each stamp.
            assert!(off <= offset.bound_ns + 0.5, "trial {trial}: {off} of {}", offset.bound_ns);
        }
        let drift = model.drift_at(LocalNs(1e9)).unwrap();
        assert!((drift.ppm - truth.ppm).abs() <= drift.bound_ppm, "trial {trial}: {drift:?}");
    }
}

#[test]
fn a_step_costs_certainty_and_never_truth() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for trial in 0..700 {
        let by: f64 = random.random_range(40e3..1e9);
        let truth = Truth {
            offset_ns: random.random_range(-1e12..1e12),
            ppm: random.random_range(-50.0..50.0),
            step: Some((random.random_range(0.3e9..2.7e9), if trial % 2 == 0 { by } else { -by })),
        };
        let loads = [EVEN, [(9000.0, 1000.0), (3000.0, 500.0)]];
        let model = Model::fit(&exchanges(truth, 3.0, loads[trial % 2], trial as u64)).unwrap();
        assert!(!model.steps.is_empty(), "trial {trial}: {truth:?}");
        for place in 0..300 {
            let at = f64::from(place) * 1e7 + random.random_range(0.0..1e7);
            let offset = model.offset_at(LocalNs(at));
            let off = (offset.ns - (truth.other(at) - at)).abs();
            assert!(
                off <= offset.bound_ns + 0.5,
                "trial {trial}: {off} of {} at {at}",
                offset.bound_ns
            );
        }
    }
}

#[test]
fn ten_seconds_of_an_even_way_give_the_drift_within_a_tenth_of_a_ppm() {
    let truth = Truth { offset_ns: 1e9, ppm: 20.0, step: None };
    let model = Model::fit(&exchanges(truth, 10.0, EVEN, 3)).unwrap();
    let drift = model.drift_at(LocalNs(5e9)).unwrap();
    assert!((drift.ppm - 20.0).abs() < 0.1, "{drift:?}");
}

#[test]
fn the_drift_that_is_told_is_nearer_to_the_truth_than_its_bound_by_far() {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let idle = [(1000.0, 300.0), (1500.0, 200.0)];
    let loads = [idle, [(5000.0, 4e5), (5000.0, 300.0)], [(9000.0, 1000.0), (3000.0, 500.0)]];
    let (mut worst, mut off_later) = (0.0f64, 0.0f64);
    for trial in 0..90 {
        let ppm = random.random_range(-50.0..50.0);
        let truth = Truth { offset_ns: 1e9, ppm, step: None };
        let mut made = exchanges(truth, 10.0, loads[trial % 3], trial as u64);
        // Load for a quarter of the time.
        if trial % 2 == 0 {
            made[300..550].iter_mut().for_each(|one| one.heard.0 += 1e6);
        }
        let model = Model::fit(&made).unwrap();
        let drift = model.drift_at(LocalNs(9e9)).unwrap();
        worst = worst.max((drift.ppm - ppm).abs() / drift.bound_ppm);
        let later = model.offset_at(LocalNs(110e9));
        // Where the ways are uneven the shift is off too, by half of the difference.
        if trial % 3 == 0 {
            off_later = off_later.max((later.ns - (truth.other(110e9) - 110e9)).abs());
        }
        assert!((drift.ppm - ppm).abs() <= drift.bound_ppm, "trial {trial}: {drift:?}");
    }
    assert!(worst < 0.1, "off by {worst} of the bound");
    assert!(off_later < 2000.0, "off by {off_later} ns after 100 s");
}

#[test]
fn the_line_of_a_rate_goes_through_the_middle_of_what_is_allowed() {
    let rhomb = [(0.0, -1.0), (2.0, 0.0), (4.0, 1.0), (2.0, 0.0)];
    let middle = |rate| line::through_the_middle(&rhomb, rate);
    assert_eq!(
        [-1.0, 0.5, 1.0].map(middle),
        [Some((0.0, -1.0)), Some((3.0, 0.5)), Some((4.0, 1.0))]
    );
    let square = [(-1.0, -1.0), (3.0, -1.0), (3.0, 1.0), (-1.0, 1.0)];
    assert_eq!(
        [-1.0, 0.3].map(|rate| line::through_the_middle(&square, rate)),
        [Some((1.0, -1.0)), Some((1.0, 0.3))]
    );
    assert_eq!(line::through_the_middle(&[(5.0, 0.0)], 0.0), Some((5.0, 0.0)));
    assert_eq!(line::through_the_middle(&[], 0.0), None);
}

#[test]
fn asymmetry_is_inside_the_bound_and_cannot_be_told_from_an_offset() {
    let truth = Truth { offset_ns: 0.0, ppm: 0.0, step: None };
    let uneven = [(9000.0, 10.0), (3000.0, 10.0)];
    let model = Model::fit(&exchanges(truth, 3.0, uneven, 3)).unwrap();
    let offset = model.offset_at(LocalNs(1e9));
    assert!((offset.ns - 3000.0).abs() < 100.0, "half of the difference: {offset:?}");
    assert!((offset.bound_ns - 6000.0).abs() < 200.0, "half of the round trip: {offset:?}");
}

#[test]
fn the_bound_grows_with_the_age_of_the_exchanges() {
    let truth = Truth { offset_ns: 1e9, ppm: -30.0, step: None };
    let model = Model::fit(&exchanges(truth, 10.0, EVEN, 9)).unwrap();
    let bounds: Vec<f64> =
        [10e9, 20e9, 60e9, 110e9].map(|at| model.offset_at(LocalNs(at)).bound_ns).to_vec();
    assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
}

#[test]
fn a_clock_that_is_set_begins_a_new_piece_and_is_told() {
    for by in [-40_000.0, 50_000.0, 1e9] {
        let truth = Truth { offset_ns: 5e6, ppm: 10.0, step: Some((2e9, by)) };
        let model = Model::fit(&exchanges(truth, 4.0, EVEN, 5)).unwrap();
        assert_eq!(model.steps.len(), 1, "{by}");
        assert!((model.steps[0].0 - 2e9).abs() < 0.5e9, "{by}: {:?}", model.steps);
        for at in [1e9, 3e9] {
            let offset = model.offset_at(LocalNs(at));
            let off = (offset.ns - (truth.other(at) - at)).abs();
            assert!(off <= offset.bound_ns, "{by}: {off} at {at}");
        }
    }
}

#[test]
fn a_time_of_the_other_s_clock_is_found_here() {
    let truth = Truth { offset_ns: -3e14, ppm: 50.0, step: None };
    let model = Model::fit(&exchanges(truth, 30.0, EVEN, 5)).unwrap();
    assert!(model.pieces.len() >= 2);
    for at in [0.0, 1e9, 15e9, 29e9] {
        let (here, bound) = model.here(LocalNs(truth.other(at)));
        assert!((here.0 - at).abs() <= bound + 1.0, "{} for {at}, +-{bound}", here.0);
    }
}

#[test]
fn exchanges_that_no_clock_has_made_do_no_harm() {
    let stamp = || -1e18f64..1e18;
    proptest!(|(stamps in proptest::collection::vec((stamp(), stamp(), stamp(), stamp()), 0..30))| {
        let made: Vec<Exchange> = stamps
            .iter()
            .map(|s| Exchange {
                sent: LocalNs(s.0),
                reached: LocalNs(s.1),
                answered: LocalNs(s.2),
                heard: LocalNs(s.3),
            })
            .collect();
        if let Some(model) = Model::fit(&made) {
            let _ = model.offset_at(LocalNs(0.0));
            let _ = model.here(LocalNs(1e9));
        }
    });
}

#[test]
fn a_clock_that_is_set_while_an_exchange_is_on_its_way_is_within_the_bound() {
    // Ways of 4 ms: there until 4, back until 8.002 of every 10 ms.
    let slow = [(4e6, 1.0), (4e6, 1.0)];
    for after_ms in [1.0, 3.0, 5.0, 7.0, 9.0] {
        for by in [1e9, -1e9, 5e7, -5e7] {
            let at = 1e9 + after_ms * 1e6;
            let truth = Truth { offset_ns: 5e6, ppm: 20.0, step: Some((at, by)) };
            let model = Model::fit(&exchanges(truth, 2.0, slow, 5)).unwrap();
            assert_eq!(model.steps.len(), 1, "{after_ms} ms, {by} ns");
            for place in 0..4000 {
                let here = f64::from(place) * 5e5;
                let offset = model.offset_at(LocalNs(here));
                let off = (offset.ns - (truth.other(here) - here)).abs();
                let told = offset.bound_ns;
                assert!(off <= told, "{after_ms} ms, {by} ns: off by {off} of {told} at {here}");
            }
        }
    }
}

#[test]
fn a_few_exchanges_of_working_clocks_have_a_model_too() {
    let mut random = ChaCha8Rng::seed_from_u64(17);
    for trial in 0..400 {
        let truth = Truth {
            offset_ns: random.random_range(-1e13..1e13),
            ppm: random.random_range(-50.0..50.0),
            step: None,
        };
        let made = exchanges(truth, 1.0, EVEN, trial);
        for count in [1, 2, 3, 5, 8, 13, 40, 100] {
            assert!(Model::fit(&made[..count]).is_some(), "trial {trial}, {count} exchanges");
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_other_host_says_the_bound_is_a_number(
        times in prop::collection::vec(
            (
                prop_oneof![-1e18..1e18, 0.0..1e9, Just(0.0), Just(1e18)],
                prop_oneof![-1e18..1e18, 0.0..1e5, Just(0.0)],
            ),
            1..40,
        ),
    ) {
        let all = times.into_iter().enumerate().map(|(number, (reached, later))| Exchange {
            sent: LocalNs(number as f64 * 1e6),
            reached: LocalNs(reached),
            answered: LocalNs(reached + later),
            heard: LocalNs(number as f64 * 1e6 + 1e5),
        });
        let exchanges: Vec<Exchange> = all.filter(|one| one.round_trip_ns() >= 0.0).collect();
        if let Some(model) = Model::fit(&exchanges) {
            for exchange in &exchanges {
                let bound_ns = model.offset_at(exchange.sent).bound_ns;
                prop_assert!(bound_ns >= 0.0, "{bound_ns} of {exchange:?}");
            }
        }
    }
}

#[test]
fn a_queue_before_one_way_leaves_the_rate_to_the_other() {
    let truth = Truth { offset_ns: 1e6, ppm: 20.0, step: None };
    let (quiet, loaded) = ((5000.0, 10.0), (5000.0, 1e5));
    for ways in [[quiet, loaded], [loaded, quiet]] {
        let model = Model::fit(&exchanges(truth, 10.0, ways, 3)).unwrap();
        let [begin, end] = [0.0, 1e10].map(|at| model.offset_at(LocalNs(at)).ns);
        let ppm = (end - begin) / 1e10 * 1e6;
        assert!((ppm - truth.ppm).abs() < 2e-3, "{ppm} ppm");
    }
}

/// An exchange with a clock that is ahead by `ahead_ns`, and gains from the start of time on.
fn exchange(sent: f64, ahead_ns: f64, ppm: f64) -> Exchange {
    let truth = Truth { offset_ns: ahead_ns, ppm, step: None };
    Exchange {
        sent: LocalNs(sent),
        reached: LocalNs(truth.other(sent + 8000.0)),
        answered: LocalNs(truth.other(sent + 10_000.0)),
        heard: LocalNs(sent + 20_000.0),
    }
}

/// Far from zero, so that a sum in place of a difference shows.
const FAR: f64 = 1e12;

#[track_caller]
fn near(value: f64, truth: f64, within: f64) {
    assert!((value - truth).abs() < within, "{value} for {truth}");
}

#[test]
fn the_time_that_the_other_host_took_is_not_part_of_the_round_trip() {
    assert_eq!(exchange(FAR, 5e6, 0.0).round_trip_ns(), 18_000.0);
}

#[test]
fn where_either_of_two_offsets_may_hold_the_bound_spans_both() {
    let (one, other) = (Offset { ns: 10.0, bound_ns: 1.0 }, Offset { ns: 20.0, bound_ns: 2.0 });
    assert_eq!(one.or(other), Offset { ns: 15.5, bound_ns: 6.5 });
    assert_eq!(other.or(one), Offset { ns: 15.5, bound_ns: 6.5 });
}

#[test]
fn one_exchange_gives_half_of_its_round_trip_as_the_bound_and_any_drift() {
    let model = Model::fit(&[exchange(FAR, 5e6, 0.0)]).unwrap();
    let offset = model.offset_at(LocalNs(FAR + 10_000.0));
    // 8000 there and 10000 back. A rate of 1000 ppm reaches 10 ns further, rounding 0.1 at the
    // exchange and 0.1 in the answer.
    near(offset.ns, 5e6 - 1000.0, 0.01);
    near(offset.bound_ns, 9000.0 + 10.0 + 0.2, 0.01);
    let drift = model.drift_at(LocalNs(FAR)).unwrap();
    near(drift.ppm, 0.0, 1e-9);
    near(drift.bound_ppm, 1000.0 + 0.02, 1e-6);
}

#[test]
fn uneven_clocks_widen_the_bound_by_a_fiftieth_of_a_ppm_before_and_after_the_middle() {
    let piece = Piece::over(&[exchange(FAR, 5e6, 0.0)]).unwrap();
    let middle = FAR + 10_000.0;
    near(piece.slack(middle), 0.1, 1e-9);
    near(piece.slack(middle - 1e9), 20.1, 1e-9);
    near(piece.slack(middle + 3e9), 60.1, 1e-9);
}

#[test]
fn two_exchanges_give_the_drift_in_the_middle_of_what_they_allow() {
    let made = [exchange(FAR, 5e6, 200.0), exchange(FAR + 1e9, 5e6, 200.0)];
    let drift = Model::fit(&made).unwrap().drift_at(LocalNs(FAR)).unwrap();
    near(drift.ppm, 200.0, 0.01);
    // 18 us in 1 s; 10 ns more at each end and 0.02 ppm in the answer for clocks that are uneven.
    near(drift.bound_ppm, 18.0 + 0.02 + 0.02, 0.01);
}

#[test]
fn a_cut_through_corners_keeps_each_once() {
    let mut piece = Piece::over(&[exchange(FAR, 5e6, 0.0)]).unwrap();
    let rhomb = vec![(-1.0, 0.0), (0.0, -1.0), (1.0, 0.0), (0.0, 1.0)];
    piece.corners = rhomb.clone();
    piece.cut(0.0, 0.0, 1.0);
    assert_eq!(piece.corners, [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0)]);
    piece.corners = rhomb;
    piece.cut(0.0, 0.0, -1.0);
    assert_eq!(piece.corners, [(0.0, -1.0), (1.0, 0.0), (0.0, 1.0)]);
}

#[test]
fn a_time_is_as_far_from_a_piece_as_from_its_nearer_end() {
    let piece = Piece::over(&[exchange(FAR, 0.0, 0.0), exchange(FAR + 1e9, 0.0, 0.0)]).unwrap();
    let (begin, end) = (FAR + 20_000.0, FAR + 1e9);
    let distances = [begin - 5.0, begin, begin + 7.0, end - 7.0, end, end + 9.0]
        .map(|at| piece.distance(LocalNs(at)));
    assert_eq!(distances, [5.0, 0.0, 0.0, 0.0, 0.0, 9.0]);
}

#[test]
fn the_drift_is_that_of_the_nearest_piece() {
    let (early, late) = ([0.0, 1e9, 2e9], [3e9, 4e9, 5e9]);
    let made: Vec<Exchange> = (early.iter().map(|at| exchange(FAR + at, 0.0, 200.0)))
        .chain(late.iter().map(|at| exchange(FAR + at, 1e12, -300.0)))
        .collect();
    let model = Model::fit(&made).unwrap();
    for (after, ppm) in [(-1e9, 200.0), (1e9, 200.0), (4e9, -300.0), (6e9, -300.0)] {
        near(model.drift_at(LocalNs(FAR + after)).unwrap().ppm, ppm, 0.01);
    }
}

#[test]
fn a_line_is_believed_for_twenty_seconds_and_the_next_begins_where_it_ends() {
    let made = [0.0, 1e10, LONGEST_NS - 20_000.0, 2.5e10].map(|at| exchange(FAR + at, 5e6, 20.0));
    assert_eq!(made[2].heard.0 - made[0].sent.0, LONGEST_NS);
    let model = Model::fit(&made).unwrap();
    let spans: Vec<(f64, f64)> = model.pieces.iter().map(|p| (p.from_ns, p.to_ns)).collect();
    let [first, _, third, last] = made;
    assert_eq!(spans, [(first.heard.0, third.sent.0), (third.heard.0, last.sent.0)]);
    assert!(model.steps.is_empty(), "{:?}", model.steps);
}

#[test]
fn between_the_last_exchange_before_a_step_and_the_first_after_it_either_offset_may_hold() {
    let made: Vec<Exchange> = (0..10)
        .map(|number| {
            exchange(FAR + f64::from(number) * 1e9, if number < 5 { 5e6 } else { 1e9 }, 0.0)
        })
        .collect();
    let model = Model::fit(&made).unwrap();
    assert_eq!(model.steps, [made[5].sent]);
    let spans: Vec<(f64, f64)> = model.pieces.iter().map(|p| (p.from_ns, p.to_ns)).collect();
    assert_eq!(spans, [(made[0].heard.0, made[4].sent.0), (made[5].heard.0, made[9].sent.0)]);
    let (before, after) = (made[4].sent, made[5].heard);
    // 18 us of round trip, and what uneven clocks add in 2 s.
    for (at, ahead_ns) in [(before, 5e6), (after, 1e9)] {
        let offset = model.offset_at(at);
        near(offset.ns, ahead_ns, 2000.0);
        near(offset.bound_ns, 9000.0, 9000.0);
    }
    for at in [before.0 + 1.0, after.0 - 1.0] {
        let offset = model.offset_at(LocalNs(at));
        near(offset.ns, 5e6 + (1e9 - 5e6) / 2.0, 20_000.0);
        near(offset.bound_ns, (1e9 - 5e6) / 2.0, 30_000.0);
    }
}
