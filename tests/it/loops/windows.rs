//! A sender through a window, on a scripted end: how much is on the way, where a burst ends, and
//! which times are stamped.

use super::scripted::{Scripted, clock_at};
use super::{on, plan};
use wiregauge::clock::TickSpan;
use wiregauge::loops::gate::Gate;
use wiregauge::loops::waiter::Busy;
use wiregauge::loops::{Ended, Loop};
use wiregauge::pattern::oneway::window;
use wiregauge::sample::arena::{Arena, Row};

/// What a sender of this plan left behind, and the messages that were on the way before each poll.
fn sent(plan: &Loop, mut end: Scripted) -> (Vec<Row>, Vec<usize>) {
    let mut arena = Arena::create(1000).unwrap();
    let mut recorder = wiregauge::sample::recorder::Recorder::new(&mut arena, plan.warmup);
    let gate = Gate::default();
    let context = on(&mut end, Busy, clock_at(1000), &gate, plan, &mut recorder);
    assert_eq!(window::client(context), Ended::Count);
    assert_eq!((end.completed, end.overwritten), (plan.messages, 0));
    assert_eq!((recorder.seen.sent, end.posted), (plan.messages, plan.messages));
    let rows = arena.rows().to_vec();
    assert_eq!(rows.len() as u64, plan.messages);
    (rows, end.before_polls)
}

fn through(window: u64, burst: u64, pause: i64) -> Loop {
    Loop { window, burst, pause: TickSpan(pause), every: 0, ..plan(40) }
}

#[test]
fn a_burst_longer_than_the_window_flows_through_it() {
    let (rows, on_the_way) = sent(&through(4, 40, 0), Scripted::new(16));
    assert_eq!(on_the_way, vec![4; 10], "the window is full before each look for room");
    assert!(rows.windows(2).all(|pair| pair[0].submit < pair[1].submit));
    // Four that follow each other without a poll between them, then one poll.
    let gaps: Vec<i64> = rows.windows(2).map(|two| (two[1].submit - two[0].submit).0).collect();
    assert_eq!(gaps[..8], [1, 1, 1, 2, 1, 1, 1, 2]);
    // No more than the slots that there are.
    let (_, on_the_way) = sent(&through(64, 40, 0), Scripted::new(16));
    assert_eq!(on_the_way, vec![8; 5]);
}

#[test]
fn the_next_burst_begins_when_all_has_completed_and_a_pause_after_the_last_post() {
    let (rows, on_the_way) = sent(&through(8, 5, 0), Scripted::new(16));
    assert_eq!(on_the_way, vec![5; 8]);
    assert!(rows.iter().all(|row| row.complete.0 == 0), "nobody looked when each completed");
    let (rows, on_the_way) = sent(&through(3, 5, 700), Scripted::new(16));
    assert_eq!(on_the_way, [3, 2].repeat(8));
    for (number, two) in (1..).zip(rows.windows(2)) {
        let gap = (two[1].submit - two[0].submit).0;
        assert_eq!(gap >= 700, number % 5 == 0, "{gap} before message {number}");
        assert!(gap <= 700, "{gap} before message {number}: the pause is not added to");
    }
    let (rows, _) = sent(&through(3, 1, 700), Scripted::new(16));
    assert!(rows.windows(2).all(|two| (two[1].submit - two[0].submit).0 == 700));
}

#[test]
fn a_post_without_room_is_stamped_again() {
    // It takes 2 messages, though 8 slots are free.
    let (rows, on_the_way) = sent(&through(8, 40, 0), Scripted::with_room(2));
    assert_eq!(on_the_way, vec![2; 20]);
    // A poll of one tick, then the stamp, the post of one tick and the next stamp.
    let gaps: Vec<i64> = rows.windows(2).map(|two| (two[1].submit - two[0].submit).0).collect();
    assert_eq!(gaps[..4], [1, 2, 1, 2]);
}

#[test]
fn each_completion_is_stamped_where_there_is_one() {
    let plan = Loop { completions: true, ..through(8, 40, 0) };
    let (rows, on_the_way) = sent(&plan, Scripted::new(16));
    assert_eq!(on_the_way, vec![1; 40], "a look after each post");
    // The post and the poll take a tick each.
    assert!(rows.iter().all(|row| (row.complete - row.submit).0 == 2), "{:?}", rows[1]);
}

#[test]
fn the_time_of_a_round_ends_it_within_a_burst() {
    let plan = Loop { time: Some(TickSpan(100)), ..through(4, 1_000_000, 0) };
    let plan = Loop { messages: u64::MAX, ..plan };
    let mut arena = Arena::create(1000).unwrap();
    let mut recorder = wiregauge::sample::recorder::Recorder::new(&mut arena, 0);
    let gate = Gate::default();
    let mut end = Scripted::new(16);
    let ended = window::client(on(&mut end, Busy, clock_at(1000), &gate, &plan, &mut recorder));
    assert_eq!(ended, Ended::Time);
    assert!((70..=90).contains(&end.posted), "{}", end.posted);
    assert_eq!(end.posted, end.completed);
}
