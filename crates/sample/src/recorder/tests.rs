//! Rows, counts and histograms with known answers.

use super::super::histogram::Totals;
use super::*;

/// What the calls leave in memory for so many rows, with what was seen and kept beyond.
fn recorded(
    rows: usize,
    warmup: u64,
    calls: impl FnOnce(&mut Recorder<'_>),
) -> (Vec<Row>, MessageCounts, Beyond) {
    let mut arena = Arena::create(rows).unwrap();
    let mut recorder = Recorder::new(&mut arena, warmup);
    assert_eq!(recorder.capacity(), rows as u64);
    calls(&mut recorder);
    let (seen, beyond) = (recorder.seen, recorder.into_beyond());
    (arena.rows().to_vec(), seen, beyond)
}

fn row(stamps: [u64; 4], flags: Flags, order: u32) -> Row {
    let [intended, submit, receive, complete] = stamps.map(Ticks);
    Row { intended, submit, receive, complete, flags, order }
}

/// Finite samples with their extremes, and lost ones.
fn of(beyond: &Option<SparseHistogram>) -> Option<(u64, i64, i64, u64)> {
    let Totals { finite, min, max, lost, .. } = beyond.as_ref()?.totals;
    Some((finite, min, max, lost))
}

const NONE: Flags = Flags(0);

#[test]
fn what_was_sent_one_way_has_its_row() {
    let (rows, seen, _) = recorded(4, 2, |recorder| {
        recorder.sent(0, Ticks(10), Ticks(11), Ticks(12));
        recorder.missed(1, Ticks(20));
        recorder.sent(2, Ticks(30), Ticks(31), Ticks(0));
        recorder.completed(2, Ticks(35));
        recorder.stood(2, Ticks(33));
        recorder.missed(3, Ticks(40));
        recorder.sent(4, Ticks(50), Ticks(51), Ticks(0));
    });
    let truth = [
        row([10, 11, 0, 12], Flags::WARMUP, 0),
        row([20, 0, 0, 0], Flags::MISSED.with(Flags::WARMUP), 0),
        row([30, 33, 0, 35], NONE, 0),
        row([40, 0, 0, 0], Flags::MISSED, 0),
    ];
    assert_eq!(rows, truth);
    assert_eq!(seen, MessageCounts { missed_steps: 2, ..MessageCounts::default() });
}

#[test]
fn what_arrived_one_way_is_counted_by_what_became_of_it() {
    let (rows, seen, _) = recorded(5, 0, |recorder| {
        // Number 0 is passed over and comes behind 1, and once more; 2 comes behind 3.
        for (number, at) in [(1, 100), (0, 101), (0, 102), (3, 103), (2, 104), (4, 105)] {
            recorder.arrived(number, Ticks(at), number == 3);
        }
        recorder.arrived(9, Ticks(106), false);
    });
    let again = Flags::REORDERED.with(Flags::DUPLICATE);
    let truth = [
        row([0, 0, 101, 0], again, 2),
        row([0, 0, 100, 0], NONE, 1),
        row([0, 0, 104, 0], Flags::REORDERED, 4),
        row([0, 0, 103, 0], Flags::CORRUPT, 3),
        row([0, 0, 105, 0], NONE, 5),
    ];
    assert_eq!(rows, truth);
    let truth = MessageCounts {
        received: 5,
        duplicates: 1,
        reordered: 2,
        corrupt: 1,
        foreign: 1,
        gaps: 2,
        ..MessageCounts::default()
    };
    assert_eq!(seen, truth);
}

#[test]
fn round_trips_without_a_row_are_counted_beyond_but_for_the_warm_up() {
    let calls = |recorder: &mut Recorder<'_>| {
        recorder.round_trip(0, Ticks(5), Ticks(9), NONE);
        recorder.round_trip(1, Ticks(15), Ticks(20), Flags::CORRUPT);
        recorder.round_trip(2, Ticks(30), Ticks(41), NONE);
    };
    let (rows, _, beyond) = recorded(2, 1, calls);
    let truth = [row([0, 5, 9, 0], Flags::WARMUP, 1), row([0, 15, 20, 0], Flags::CORRUPT, 2)];
    assert_eq!(rows, truth);
    assert_eq!(of(&beyond.service), Some((1, 11, 11, 0)));
    assert_eq!((of(&beyond.response), of(&beyond.lateness)), (None, None));
    assert_eq!(of(&recorded(2, 3, calls).2.service), None);
}

#[test]
fn round_trips_in_their_order_leave_what_others_leave() {
    let trips = [(0, 5, 9), (1, 15, 20), (2, 30, 41), (3, 50, 52)];
    for (rows, warmup) in [(2, 1), (2, 3), (8, 2), (0, 0)] {
        let [one_by_one, in_order] = [false, true].map(|in_order| {
            recorded(rows, warmup, |recorder| {
                for (sequence, submit, receive) in trips {
                    let (submit, receive) = (Ticks(submit), Ticks(receive));
                    match in_order {
                        _ if sequence == 1 => recorder.unanswered(1, Ticks(0), submit),
                        true => recorder.next_round_trip(sequence, submit, receive),
                        false => recorder.round_trip(sequence, submit, receive, NONE),
                    }
                }
            })
        });
        assert_eq!(in_order.0, one_by_one.0);
        assert_eq!(of(&in_order.2.service), of(&one_by_one.2.service));
    }
}

#[test]
fn an_answer_that_is_not_awaited_is_late_a_duplicate_or_foreign() {
    let (rows, seen, _) = recorded(2, 0, |recorder| {
        recorder.seen.sent = 3;
        recorder.unanswered(0, Ticks(0), Ticks(5));
        recorder.unanswered(1, Ticks(0), Ticks(6));
        recorder.straggler(1, Ticks(9));
        recorder.straggler(1, Ticks(10));
        recorder.straggler(2, Ticks(11));
        recorder.straggler(3, Ticks(12));
    });
    let late = Flags::LATE.with(Flags::DUPLICATE);
    assert_eq!(rows, [row([0, 5, 0, 0], Flags::LOST, 0), row([0, 6, 9, 0], late, 0)]);
    let truth = MessageCounts {
        sent: 3,
        received: 1,
        late: 1,
        duplicates: 2,
        foreign: 1,
        ..MessageCounts::default()
    };
    assert_eq!(seen, truth);
}

#[test]
fn requests_of_a_schedule_keep_three_times_beyond_their_rows() {
    let (rows, seen, beyond) = recorded(2, 1, |recorder| {
        recorder.sent(0, Ticks(1), Ticks(2), Ticks(0));
        recorder.sent(1, Ticks(3), Ticks(4), Ticks(0));
        recorder.answered(1, [Ticks(3), Ticks(4), Ticks(8)], Flags::CORRUPT);
        recorder.answered(0, [Ticks(1), Ticks(2), Ticks(9)], NONE);
        recorder.answered(3, [Ticks(10), Ticks(12), Ticks(20)], NONE);
        // Without a schedule there is no intended time.
        recorder.answered(2, [Ticks(0), Ticks(30), Ticks(37)], NONE);
    });
    let truth = [row([1, 2, 9, 0], Flags::WARMUP, 2), row([3, 4, 8, 0], Flags::CORRUPT, 1)];
    assert_eq!(rows, truth);
    assert_eq!(seen, MessageCounts { received: 4, reordered: 2, ..MessageCounts::default() });
    assert_eq!(of(&beyond.service), Some((2, 7, 8, 0)));
    assert_eq!(of(&beyond.response), Some((1, 10, 10, 0)));
    assert_eq!(of(&beyond.lateness), Some((1, 2, 2, 0)));
    let warm = recorded(1, 3, |recorder| {
        recorder.answered(2, [Ticks(1), Ticks(2), Ticks(3)], NONE);
        recorder.unanswered(2, Ticks(1), Ticks(2));
    });
    assert!(warm.2.service.is_none() && warm.2.response.is_none());
}

#[test]
fn a_request_without_an_answer_is_lost_or_was_never_sent() {
    let (rows, _, beyond) = recorded(2, 1, |recorder| {
        recorder.unanswered(0, Ticks(10), Ticks(0));
        recorder.unanswered(1, Ticks(20), Ticks(21));
        recorder.unanswered(2, Ticks(30), Ticks(0));
        recorder.unanswered(3, Ticks(0), Ticks(41));
        recorder.unanswered(4, Ticks(50), Ticks(51));
    });
    let unsent = Flags::UNSENT.with(Flags::WARMUP);
    assert_eq!(rows, [row([10, 0, 0, 0], unsent, 0), row([20, 21, 0, 0], Flags::LOST, 0)]);
    let lost = |of: Option<(u64, i64, i64, u64)>| of.map(|(finite, _, _, lost)| (finite, lost));
    assert_eq!(lost(of(&beyond.service)), Some((0, 2)));
    assert_eq!(lost(of(&beyond.response)), Some((0, 2)));
}

#[test]
fn the_controller_sees_how_many_messages_were_handled() {
    let mut arena = Arena::create(1).unwrap();
    Recorder::new(&mut arena, 0).handled(5);
    assert_eq!(arena.progress(), 5);
}

#[test]
fn a_mark_of_a_bandwidth_run_is_a_row() {
    let (rows, _, _) =
        recorded(3, 0, |recorder| recorder.mark(1, Ticks(7), Ticks(8), Flags::REVERSE));
    assert_eq!(rows, [row([0; 4], NONE, 0), row([0, 7, 8, 0], Flags::REVERSE, 0)]);
}

#[test]
fn the_first_message_after_the_warm_up_is_not_part_of_it() {
    let (rows, _, _) = recorded(3, 1, |recorder| {
        recorder.missed(0, Ticks(10));
        recorder.missed(1, Ticks(20));
    });
    assert_eq!(rows[0].flags, Flags::MISSED.with(Flags::WARMUP));
    assert_eq!(rows[1].flags, Flags::MISSED);
    let (_, seen, beyond) = recorded(1, 2, |recorder| {
        recorder.answered(1, [Ticks(0), Ticks(10), Ticks(15)], NONE);
        recorder.answered(2, [Ticks(0), Ticks(20), Ticks(27)], NONE);
        recorder.answered(2, [Ticks(0), Ticks(20), Ticks(28)], NONE);
    });
    assert_eq!(of(&beyond.service), Some((2, 7, 8, 0)));
    assert_eq!(seen.reordered, 0, "the same once more");
}
