//! Second sources for offsets whose truth is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::offset::Exchange;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// A host's clock: what it shows at a common time.
#[derive(Clone, Copy)]
struct Host {
    offset_ns: f64,
    ppm: f64,
}

impl Host {
    fn shows(&self, common: f64) -> f64 {
        self.offset_ns + common * (1.0 + self.ppm * 1e-6)
    }
}

const A: Host = Host { offset_ns: 0.0, ppm: 0.0 };
const B: Host = Host { offset_ns: 3e9, ppm: 40.0 };
const WAY: (f64, f64) = (4000.0, 2000.0);

fn delays(seed: u64) -> impl FnMut((f64, f64)) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    move |(least, mean)| {
        let part: f64 = Exp1.sample(&mut random);
        least + mean * part
    }
}

/// The model of one host's clock by another's, from exchanges over 2 s; `late_ns` is what the
/// second host's stamps are wrong by.
fn model(one: Host, other: Host, seed: u64, late_ns: f64) -> Model {
    let mut delay = delays(seed);
    let exchange = |number: u32| {
        let sent = f64::from(number) * 1e7;
        let reached = sent + delay(WAY);
        let answered = reached + 1000.0;
        let heard = answered + delay(WAY);
        Exchange {
            sent: LocalNs(one.shows(sent)),
            reached: LocalNs(other.shows(reached) + late_ns),
            answered: LocalNs(other.shows(answered) + late_ns),
            heard: LocalNs(one.shows(heard)),
        }
    };
    Model::fit(&(0..200).map(exchange).collect::<Vec<_>>()).unwrap()
}

/// Messages from a to b and their answers, in a's time by a model of b's clock.
fn messages(model: &Model, ways: [(f64, f64); 2], answered: bool) -> Vec<Message> {
    let mut delay = delays(99);
    let own = |ns: f64| BoundedTime { ns, bound_ns: 0.0 };
    let of_b = |shown: f64| {
        let (at, bound_ns) = model.here(LocalNs(shown));
        BoundedTime { ns: at.0, bound_ns }
    };
    let message = |number: u32| {
        let sent = f64::from(number) * 1e5;
        let reached = sent + delay(ways[0]);
        let heard = reached + 300.0 + delay(ways[1]);
        Message {
            sent: own(A.shows(sent)),
            reached: of_b(B.shows(reached)),
            heard: answered.then(|| own(A.shows(heard))),
        }
    };
    (0..20_000).map(message).collect()
}

#[test]
fn traffic_agrees_with_a_true_model_and_bounds_the_offset_itself() {
    let at = LocalNs(1e9);
    let truth = B.shows(1e9) - 1e9;
    let true_model = model(A, B, 1, 0.0);
    for ways in [[WAY, WAY], [(9000.0, 500.0), (3000.0, 500.0)], [(1500.0, 1e6), (1500.0, 1e6)]] {
        let known = true_model.offset_at(at).ns;
        let check = cross_check_with_traffic(known, messages(&true_model, ways, true)).unwrap();
        assert_eq!(check.beyond_ns, 0.0, "{ways:?}");
        let (least, most) = (check.least_ns.unwrap(), check.most_ns.unwrap());
        // What one model is off by at another time moves the bounds by no more than its own bound.
        let room = 2.0 * true_model.offset_at(at).bound_ns;
        assert!(least <= truth + room && truth - room <= most, "{least} {truth} {most}");
    }
    let one_way =
        cross_check_with_traffic(truth, messages(&true_model, [WAY, WAY], false)).unwrap();
    assert_eq!((one_way.least_ns, one_way.beyond_ns), (None, 0.0));
    assert_eq!(cross_check_with_traffic(truth, []), None);
}

#[test]
fn a_known_message_bounds_the_offset() {
    let at = |ns: f64, bound_ns: f64| BoundedTime { ns, bound_ns };
    let check = |heard: f64| {
        let message =
            Message { sent: at(100.0, 0.0), reached: at(350.0, 20.0), heard: Some(at(heard, 0.0)) };
        cross_check_with_traffic(5.0, [message]).unwrap()
    };
    // It reached the other 250 after it was sent, and 50 after its answer was back.
    let found = check(300.0);
    assert_eq!((found.least_ns, found.most_ns, found.beyond_ns), (Some(55.0), Some(255.0), 30.0));
    assert_eq!(check(329.0).beyond_ns, 0.0, "1 ns may be rounding");
}

#[test]
fn traffic_contradicts_a_model_that_is_wrong_by_more_than_the_way_is_long() {
    let at = LocalNs(1e9);
    for (wrong_ns, answered, seen) in [
        // The other's clock seems ahead: messages seem to arrive before they were sent.
        (60_000.0, true, true),
        (60_000.0, false, true),
        // It seems behind: the answers do, and without answers nobody sees it.
        (-60_000.0, true, true),
        (-60_000.0, false, false),
        // Within the way nothing can be seen.
        (1000.0, true, false),
    ] {
        let wrong = model(A, B, 1, wrong_ns);
        let known = wrong.offset_at(at).ns;
        let check =
            cross_check_with_traffic(known, messages(&wrong, [WAY, WAY], answered)).unwrap();
        assert_eq!(check.beyond_ns > 0.0, seen, "{wrong_ns} {answered}: {check:?}");
        if seen {
            assert!((40_000.0..60_000.0).contains(&check.beyond_ns), "{check:?}");
        }
    }
}

#[test]
fn two_models_agree_where_their_bounds_meet() {
    let at = LocalNs(1e9);
    let one = model(A, B, 1, 0.0);
    assert_eq!(by_model(&one, &model(A, B, 2, 0.0), at).beyond_ns, 0.0);
    let truth = B.shows(1e9) - 1e9;
    let stated = |ns: f64| Model::stated(crate::offset::Offset { ns, bound_ns: 500.0 });
    assert_eq!(by_model(&stated(truth), &one, at).beyond_ns, 0.0);
    let check = by_model(&stated(truth + 50_000.0), &one, at);
    assert!((30_000.0..50_000.0).contains(&check.beyond_ns), "{check:?}");
    let check = by_model(&one, &stated(3e9), at);
    let off = [check.least_ns.unwrap() - (3e9 - 500.0), check.most_ns.unwrap() - (3e9 + 500.0)];
    assert!(off.iter().all(|ns| ns.abs() < 1.0), "{check:?}");
}
