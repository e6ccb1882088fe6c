//! The source of a stream on a virtual clock: what it sends and what it leaves out.

use super::scripted::{Scripted, clock_at};
use super::{generator, on, plan, scheduled};
use wiregauge::clock::{Ticks, Timebase};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::waiter::Busy;
use wiregauge::loops::{Ended, Loop};
use wiregauge::pattern::stream::loops::{self, Steps};
use wiregauge::sample::Flags;
use wiregauge::sample::arena::{Arena, Row};
use wiregauge::sample::recorder::{MessageCounts, Recorder};
use wiregauge::signal::source::{Shape, Signal, Source};
use wiregauge::signal::{Kind, Sample, Value, read_message};

const DAY_NS: u64 = 7_000_000_000;

/// 1000 steps, one every 1000 ns from 6000 on: the samples that were sent.
fn streamed(end: &mut Scripted, plan: &Loop) -> (Ended, Vec<Row>, MessageCounts, Vec<Sample>) {
    let shape = Shape { signal: Signal::Counter, kind: Kind::Integer, ..Shape::default() };
    let time = Timebase::nanoseconds(Ticks(0));
    let mut steps = Steps::new(Source::new(shape, 1, 1), 1e6, time, DAY_NS);
    let mut arena = Arena::create(1000).unwrap();
    let mut recorder = Recorder::new(&mut arena, plan.warmup);
    let (clock, gate) = (clock_at(5000), Gate::default());
    let context = scheduled(on(end, Busy, clock, &gate, plan, &mut recorder), generator(1e6));
    let ended = loops::source(context, &mut steps);
    let seen = recorder.seen;
    assert_eq!(end.overwritten, 0, "a slot was written before it had completed");
    let samples = end.messages.iter().map(|m| read_message(m, Kind::Integer).unwrap()).collect();
    (ended, arena.rows().to_vec(), seen, samples)
}

fn steps_of(messages: u64) -> Loop {
    Loop { every: 0, check: false, size: 32, ..plan(messages) }
}

#[test]
fn a_source_that_holds_its_rate_misses_nothing() {
    let mut end = Scripted::new(32);
    end.post_takes = 250;
    let (ended, rows, seen, samples) = streamed(&mut end, &steps_of(1000));
    assert_eq!((ended, seen.sent, seen.missed_steps), (Ended::Count, 1000, 0));
    for (number, (row, sample)) in rows.iter().zip(&samples).enumerate() {
        let due = 6000 + 1000 * number as u64;
        assert_eq!((row.intended.0, row.submit.0), (due, due));
        // The origin is the intended time, whenever the sample was made.
        assert_eq!(sample.origin.as_ns(), DAY_NS + due);
        assert_eq!(sample.sequence, number as u64);
        assert_eq!(sample.values, [Value::Integer(number as i64)]);
    }
}

#[test]
fn the_last_step_that_is_due_is_sent_and_those_before_it_are_missed() {
    // After a post of 5.5 us five steps are due: four are missed.
    let mut end = Scripted::new(32);
    end.post_takes = 250;
    end.slow_post = Some((100, 5500));
    let (ended, rows, seen, samples) = streamed(&mut end, &steps_of(1000));
    assert_eq!((ended, seen.sent, seen.missed_steps), (Ended::Count, 964, 36));
    let missed: Vec<usize> =
        (0..1000).filter(|step| rows[*step].flags.has(Flags::MISSED)).collect();
    assert_eq!(missed.len(), 36);
    assert_eq!(missed[..5], [100, 101, 102, 103, 204]);
    for (number, row) in rows.iter().enumerate() {
        let due = 6000 + 1000 * number as u64;
        assert_eq!(row.intended.0, due, "the grid is exact");
        let late = row.submit.0.wrapping_sub(due);
        assert!(row.flags.has(Flags::MISSED) && row.submit.0 == 0 || late < 1000, "{row:?}");
    }
    let sent = (0..1000u64).filter(|step| !missed.contains(&(*step as usize)));
    for (sample, step) in samples.iter().zip(sent) {
        assert_eq!(
            (sample.sequence, &sample.values[..]),
            (step, &[Value::Integer(step as i64)][..])
        );
        assert_eq!(sample.origin.as_ns(), DAY_NS + 6000 + 1000 * step);
    }
}

#[test]
fn a_source_that_never_holds_its_rate_sends_what_it_can() {
    let mut end = Scripted::new(32);
    end.post_takes = 2500;
    let (ended, _, seen, samples) = streamed(&mut end, &steps_of(1000));
    assert_eq!(ended, Ended::Count);
    assert_eq!(seen.sent + seen.missed_steps, 1000);
    assert!((380..=420).contains(&seen.sent), "two of five: {seen:?}");
    assert_eq!(samples.len() as u64, seen.sent);
}
