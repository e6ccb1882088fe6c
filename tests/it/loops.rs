//! What the measured loops promise, on a virtual clock and simulated or scripted ends: known
//! answers, no sleeping, the same on every run.

mod schedules;
mod scripted;
mod streams;
mod windows;

use scripted::{Scripted, clock_at};
use wiregauge::clock::{Clock, TickSpan, Ticks, Timebase};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::schedule::Generator;
use wiregauge::loops::waiter::{AnyWaiter, Busy, Waiter};
use wiregauge::loops::{Ended, Loop, LoopContext, Scope, closed};
use wiregauge::pattern::bandwidth::loops as bandwidth;
use wiregauge::pattern::load::{Looked, Outstanding, RequestPath, client};
use wiregauge::pattern::oneway::{sender, window};
use wiregauge::pattern::{latency, oneway, registry};
use wiregauge::plan::{Case, Request, Schedule};
use wiregauge::sample::arena::{Arena, Row};
use wiregauge::sample::join::Times;
use wiregauge::sample::recorder::{MessageCounts, Recorder};
use wiregauge::sample::{Flags, Sample};
use wiregauge::transport::{Blob, Link, Role, Settings, Setup, Traffic, TransportKind, Wait};
use wiregauge::units::{Bytes, MessageRate};

/// What a loop runs on, without a schedule.
fn on<'a, 'm, E, W, C>(
    endpoint: &'a mut E,
    waiter: W,
    clock: C,
    gate: &'a Gate,
    plan: &'a Loop,
    recorder: &'a mut Recorder<'m>,
) -> LoopContext<'a, 'm, E, W, C> {
    LoopContext { endpoint, waiter, clock, gate, plan, generator: None, recorder }
}

/// The same by a schedule.
fn scheduled<'a, 'm, E, W, C>(
    context: LoopContext<'a, 'm, E, W, C>,
    generator: Generator,
) -> LoopContext<'a, 'm, E, W, C> {
    LoopContext { generator: Some(generator), ..context }
}

fn block() -> AnyWaiter {
    AnyWaiter::new(Wait::Block, TickSpan(0))
}

fn plan(messages: u64) -> Loop {
    Loop {
        size: 16,
        messages,
        warmup: 0,
        time: None,
        pause: TickSpan(0),
        burst: 1,
        window: 64,
        every: 1,
        check: true,
        warmup_time: Some(TickSpan(1_000_000_000)),
        loss_after: Some(TickSpan(1_000_000)),
        drain: TickSpan(1_000_000),
        lead: TickSpan(1000),
        stride: 1,
        completions: false,
        reads_send: false,
        stamper: None,
    }
}

/// The client's loop on the synthetic transport.
fn simulate(spec: &str, plan: &Loop) -> (Ended, Vec<Row>, MessageCounts) {
    let settings = Settings::of_values([("synthetic", spec)]).unwrap();
    let setup =
        Setup::new(Role::Client, Traffic::Echo { every: plan.every }, Wait::Busy, plan.size);
    let setup = Setup { window: 64, seed: 7, settings, ..setup };
    let transport = TransportKind::SIMULATED;
    let opening = transport.open(&setup).unwrap();
    let mut endpoint = opening.connect(&Blob::default()).unwrap().endpoint;
    let mut arena = Arena::create(20_000).unwrap();
    let mut recorder = Recorder::new(&mut arena, plan.warmup);
    let clock = transport.descriptor().virtual_clock.unwrap()();
    let ended =
        closed::client(on(&mut endpoint, Busy, clock, &Gate::default(), plan, &mut recorder));
    let seen = recorder.seen;
    (ended, arena.rows().to_vec(), seen)
}

fn latency(row: &Row) -> i64 {
    (row.receive - row.submit).0
}

#[test]
fn reordered_messages_keep_their_latency() {
    let burst = Loop { burst: 10, ..plan(10_000) };
    let (ended, rows, seen) = simulate("constant(1us) reorder(1%,3us)", &burst);
    assert_eq!((ended, rows.len()), (Ended::Count, 10_000));
    let slow = rows.iter().filter(|row| latency(row) == 4000).count();
    assert!((60..140).contains(&slow), "about 1 %: {slow}");
    assert!(rows.iter().all(|row| [1000, 4000].contains(&latency(row))));
    let reordered = rows.iter().filter(|row| row.flags.has(Flags::REORDERED)).count() as u64;
    assert_eq!(seen.reordered, reordered);
    assert!(reordered > 0 && seen.received == 10_000);
}

#[test]
fn a_late_message_is_given_up_and_keeps_its_true_latency() {
    let mut end = Scripted::new(16);
    // The answer to 0 comes after it was given up, between those to 1 and 2.
    end.timed.extend([(2600, 1), (2800, 0), (3000, 2)]);
    let plan = Loop { loss_after: Some(TickSpan(1000)), ..plan(3) };
    let (ended, rows, seen) = end.client(&plan);
    assert_eq!((ended, rows.len()), (Ended::Count, 3));
    assert!(rows[0].flags.has(Flags::LATE) && !rows[0].flags.has(Flags::LOST));
    assert_eq!((rows[0].submit, rows[0].receive), (Ticks(1000), Ticks(2800)));
    // It was given up after 1000 ticks and at most as many polls as lie between two looks.
    let given_up = (rows[1].submit - rows[0].submit).0;
    assert!((1000..1300).contains(&given_up), "{given_up}");
    assert_eq!((rows[1].receive, rows[2].receive), (Ticks(2600), Ticks(3000)));
    assert_eq!((seen.late, seen.received, seen.duplicates), (1, 3, 0));
}

#[test]
fn a_lost_message_is_a_row_without_an_arrival() {
    let (ended, rows, seen) = simulate("constant(1us) loss(1%)", &plan(10_000));
    assert_eq!((ended, rows.len()), (Ended::Count, 10_000));
    let lost = rows.iter().filter(|row| row.flags.has(Flags::LOST)).count() as u64;
    assert!((60..140).contains(&lost), "{lost}");
    assert_eq!((seen.sent, seen.received), (10_000, 10_000 - lost));
    assert!(rows.iter().all(|row| row.submit.0 != 0));
    assert!(rows.iter().all(|row| row.flags.has(Flags::LOST) == (row.receive.0 == 0)));
}

#[test]
fn a_duplicate_is_counted_once_and_changes_no_latency() {
    let (_, rows, seen) = simulate("constant(1us) duplicate(2%)", &plan(10_000));
    assert!(rows.iter().all(|row| latency(row) == 1000));
    let marked = rows.iter().filter(|row| row.flags.has(Flags::DUPLICATE)).count() as u64;
    assert_eq!((seen.duplicates, seen.received), (marked, 10_000));
    assert!((130..270).contains(&marked), "{marked}");
}

#[test]
fn pauses_between_messages_leave_the_latency_alone() {
    let quick = simulate("uniform(1us,2us)", &plan(1000)).1;
    let paused = Loop { pause: TickSpan(10_000_000), ..plan(1000) };
    let slow = simulate("uniform(1us,2us)", &paused).1;
    let of = |rows: &[Row]| rows.iter().map(latency).collect::<Vec<i64>>();
    assert_eq!(of(&quick), of(&slow));
    assert!(slow.windows(2).all(|pair| (pair[1].submit - pair[0].receive).0 == 10_000_000));
}

#[test]
fn a_round_ends_exactly_at_its_count() {
    for (messages, burst) in [(1, 1), (10, 3), (64, 64), (65, 64), (1, 1000)] {
        let (ended, rows, seen) = simulate("constant(1us)", &Loop { burst, ..plan(messages) });
        assert_eq!((ended, rows.len() as u64), (Ended::Count, messages));
        assert_eq!((seen.sent, seen.received), (messages, messages));
    }
}

#[test]
fn the_time_counts_from_the_end_of_the_warmup_and_warm_rows_are_kept() {
    let time = Some(TickSpan(100_000));
    let timed = Loop { time, warmup: 50, ..plan(u64::MAX) };
    let (ended, rows, _) = simulate("constant(1us)", &timed);
    assert_eq!(ended, Ended::Time);
    assert_eq!(rows.iter().filter(|row| row.flags.has(Flags::WARMUP)).count(), 50);
    assert!(rows[..50].iter().all(|row| row.flags.has(Flags::WARMUP)));
    let span = (rows[rows.len() - 1].receive - rows[49].receive).0;
    assert_eq!(span, 100_000, "no message is sent after the deadline");
}

#[test]
fn a_burst_is_stamped_message_by_message_and_matched_by_number() {
    let mut end = Scripted::new(16);
    // Answers in another order than they were sent, one of them twice, and one of nobody's.
    for (after, sequence) in [(50, 3), (10, 0), (1, 0), (1, 77), (5, 2), (1, 1)] {
        end.will_receive(after, sequence);
    }
    let plan = Loop { burst: 4, loss_after: None, ..plan(4) };
    let (ended, rows, seen) = end.client(&plan);
    assert_eq!((ended, rows.len()), (Ended::Count, 4));
    let submitted: Vec<u64> = rows.iter().map(|row| row.submit.0).collect();
    assert!(submitted.windows(2).all(|pair| pair[0] < pair[1]), "each its own: {submitted:?}");
    let order: Vec<u32> = rows.iter().map(|row| row.order).collect();
    assert_eq!(order, [2, 4, 3, 1]);
    assert_eq!((seen.received, seen.duplicates, seen.foreign), (4, 1, 1));
    assert_eq!(seen.reordered, 3, "0, 2 and 1 came after 3");
    assert_eq!(rows[1].receive.0 - rows[3].receive.0, 18);
}

#[test]
fn one_answer_for_several_messages_keeps_all_send_stamps() {
    let burst = Loop { burst: 4, every: 4, ..plan(40) };
    let (ended, rows, seen) = simulate("constant(1us)", &burst);
    assert_eq!((ended, rows.len()), (Ended::Count, 40));
    for (sequence, row) in rows.iter().enumerate() {
        assert!(row.submit.0 != 0 && !row.flags.has(Flags::LOST));
        assert_eq!(row.receive.0 != 0, sequence % 4 == 3, "message {sequence}");
    }
    assert_eq!((seen.sent, seen.received), (40, 10));
}

#[test]
fn answers_that_come_while_there_is_no_room_are_kept() {
    // Room for two, and an answer to each before the next two go.
    let mut end = Scripted::new(16);
    end.room = 2;
    end.echoes = true;
    let plan = Loop { burst: 100, loss_after: None, ..plan(300) };
    let (ended, rows, seen) = end.client(&plan);
    assert_eq!((ended, rows.len()), (Ended::Count, 300));
    assert_eq!((seen.sent, seen.received, seen.corrupt), (300, 300, 0));
    assert!(rows.iter().all(|row| row.receive > row.submit));
}

#[test]
fn small_messages_are_numbered_by_their_neighbours() {
    for size in 1..8 {
        let small = Loop { size, burst: 16, ..plan(3000) };
        let (ended, rows, seen) = simulate("constant(1us) reorder(5%,3us)", &small);
        assert_eq!((ended, rows.len()), (Ended::Count, 3000), "{size} B");
        assert_eq!((seen.received, seen.foreign, seen.corrupt), (3000, 0, 0), "{size} B");
    }
}

fn oneway_case() -> Case {
    oneway::request(oneway::Spec::default()).plan().unwrap().cases.remove(0)
}

/// A periodic schedule on a clock of nanoseconds.
fn generator(rate: f64) -> Generator {
    let case = oneway_case();
    let schedule = Schedule::Periodic { rate: MessageRate(rate) };
    let time = Timebase::nanoseconds(Ticks(0));
    Generator::of(&Case { schedule, ..case }, &time).unwrap().unwrap()
}

#[test]
fn a_stop_ends_every_loop() {
    let gate = Gate::default();
    gate.stop();
    let long = Loop { time: Some(TickSpan(i64::MAX / 4)), loss_after: None, ..plan(u64::MAX) };
    let mut arena = Arena::create(10).unwrap();
    // Ends that never receive anything and have little room.
    let end = || Scripted::with_room(3);
    let clock = clock_at(1000);
    let mut recorder = Recorder::new(&mut arena, 0);
    let r = &mut recorder;
    let ended = [
        closed::client(on(&mut end(), Busy, clock, &gate, &long, r)),
        closed::client(on(&mut end(), block(), clock, &gate, &long, r)),
        closed::server::<_, _, _, _, true>(on(&mut end(), Busy, clock, &gate, &long, r), ()),
        closed::server::<_, _, _, _, false>(on(&mut end(), block(), clock, &gate, &long, r), ()),
        sender::client(scheduled(on(&mut end(), Busy, clock, &gate, &long, r), generator(1e-3))),
        window::client(on(&mut end(), Busy, clock, &gate, &long, r)),
        bandwidth::sender(on(&mut end(), Busy, clock, &gate, &long, r)),
        bandwidth::receiver(on(&mut end(), block(), clock, &gate, &long, r)),
        bandwidth::both(on(&mut end(), Busy, clock, &gate, &long, r)),
    ];
    assert_eq!(ended, [Ended::Stopped; 9]);
}

#[test]
fn a_stop_is_seen_within_a_long_pause() {
    let gate = Gate::default();
    let clock = clock_at(1000);
    assert!(gate.idle_until(clock, Ticks(5_000), TickSpan(100)));
    assert_eq!(clock.now(), Ticks(5_000), "exactly");
    gate.stop();
    assert!(!gate.idle_until(clock, Ticks(1 << 60), TickSpan(100)));
    assert!(clock.now() <= Ticks(5_100));
}

#[test]
fn a_link_that_goes_down_ends_every_loop() {
    for (link, expected) in [(Link::Closed, Ended::Closed), (Link::Failed(5), Ended::Failed(5))] {
        let gate = Gate::default();
        let long = Loop { loss_after: None, ..plan(u64::MAX) };
        let mut arena = Arena::create(10).unwrap();
        let mut recorder = Recorder::new(&mut arena, 0);
        let r = &mut recorder;
        let end = || Scripted::with_room(3).on(link);
        let clock = clock_at(1000);
        let ended = [
            closed::client(on(&mut end(), Busy, clock, &gate, &long, r)),
            closed::server::<_, _, _, _, true>(on(&mut end(), block(), clock, &gate, &long, r), ()),
            window::client(on(&mut end(), Busy, clock, &gate, &long, r)),
            bandwidth::sender(on(&mut end(), Busy, clock, &gate, &long, r)),
            bandwidth::receiver(on(&mut end(), block(), clock, &gate, &long, r)),
            bandwidth::both(on(&mut end(), Busy, clock, &gate, &long, r)),
        ];
        assert_eq!(ended, [expected; 6]);
    }
}

#[test]
fn a_server_ends_when_all_that_was_sent_has_come() {
    let gate = Gate::default();
    gate.expect(3);
    let mut end = Scripted::new(16);
    for sequence in 0..3 {
        end.will_receive(10, sequence);
    }
    let mut arena = Arena::create(10).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let clock = clock_at(1000);
    let plan = Loop { every: 0, ..plan(u64::MAX) };
    let ended = closed::server::<_, _, _, _, true>(
        on(&mut end, Busy, clock, &gate, &plan, &mut recorder),
        (),
    );
    assert_eq!((ended, recorder.seen.received), (Ended::Count, 3));
}

#[test]
fn a_server_waits_for_what_is_missing_no_longer_than_the_drain() {
    let gate = Gate::default();
    gate.expect(3);
    let mut end = Scripted::new(16);
    end.will_receive(10, 0);
    let mut arena = Arena::create(10).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let clock = clock_at(1000);
    let plan = Loop { every: 0, ..plan(u64::MAX) };
    let ended = closed::server::<_, _, _, _, true>(
        on(&mut end, Busy, clock, &gate, &plan, &mut recorder),
        (),
    );
    assert_eq!((ended, recorder.seen.received), (Ended::Count, 1));
    let waited = clock.now().0;
    assert!((1_001_000..1_100_000).contains(&waited), "{waited}");
}

#[test]
fn lateness_never_shifts_later_sends() {
    // Without a payload to be filled a late message shares a reading with the one before.
    [false, true].into_iter().for_each(lateness_does_not_shift);
}

fn lateness_does_not_shift(check: bool) {
    // A post takes 250 ns and every 100th one 50 us; a message is due every 1000 ns.
    let mut end = Scripted::new(16);
    end.post_takes = 250;
    end.slow_post = Some((100, 50_000));
    let generator = generator(1e6);
    let mut arena = Arena::create(1000).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let clock = clock_at(5000);
    let plan = Loop { every: 0, check, ..plan(1000) };
    let gate = Gate::default();
    let ended = sender::client(scheduled(
        on(&mut end, Busy, clock, &gate, &plan, &mut recorder),
        generator,
    ));
    assert_eq!((ended, recorder.seen.sent), (Ended::Count, 1000));
    assert!((500..700).contains(&recorder.seen.missed_steps), "{:?}", recorder.seen);
    let rows = arena.rows();
    for (number, row) in rows.iter().enumerate() {
        let due = 5000 + 1000 + 1000 * number as u64;
        assert_eq!(row.intended.0, due, "the grid is exact");
        assert!(row.submit.0 >= due && row.complete > row.submit);
    }
    let late = rows.iter().filter(|row| row.submit > row.intended).count();
    assert!((500..700).contains(&late), "it catches up after each stall: {late}");
    assert_eq!(rows[99].submit, rows[99].intended);
}

#[test]
fn a_wait_for_room_is_lateness_and_no_part_of_a_post() {
    let mut end = Scripted::with_room(3);
    (end.post_takes, end.poll_takes) = (100, 40_000);
    let mut arena = Arena::create(100).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let plan = Loop { every: 0, check: false, window: 3, ..plan(100) };
    let (clock, gate) = (clock_at(5000), Gate::default());
    let ended = sender::client(scheduled(
        on(&mut end, Busy, clock, &gate, &plan, &mut recorder),
        generator(1e6),
    ));
    assert_eq!((ended, recorder.seen.sent), (Ended::Count, 100));
    let rows = arena.rows();
    assert!(rows.iter().all(|row| row.complete - row.submit == TickSpan(100)), "{rows:?}");
    assert!(rows[99].submit - rows[99].intended > TickSpan(1_000_000));
}

#[test]
fn a_bandwidth_sample_stands_for_a_stride() {
    let mut end = Scripted::new(16);
    (0..1000).for_each(|sequence| end.will_receive(1, sequence));
    let mut arena = Arena::create(100).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let plan = Loop { stride: 16, warmup: 160, ..plan(1000) };
    let ended = bandwidth::receiver(on(
        &mut end,
        Busy,
        clock_at(1000),
        &Gate::default(),
        &plan,
        &mut recorder,
    ));
    assert_eq!((ended, recorder.seen.received), (Ended::Count, 1000));
    assert_eq!((recorder.seen.reordered, recorder.seen.corrupt), (0, 0));
    let rows = arena.rows();
    assert_eq!(rows.len(), 1000 / 16);
    assert_eq!(rows.iter().filter(|row| row.flags.has(Flags::WARMUP)).count(), 10);
    assert!(rows.iter().enumerate().all(|(n, row)| row.receive.0 == 1000 + 16 * (n as u64 + 1)));
}

#[test]
fn a_bandwidth_sender_ends_at_its_count_with_every_post_completed() {
    let mut end = Scripted::with_room(5);
    let mut arena = Arena::create(2000).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let gate = Gate::default();
    let plan = plan(1000);
    let ended = bandwidth::sender(on(&mut end, Busy, clock_at(1000), &gate, &plan, &mut recorder));
    assert_eq!((ended, recorder.seen.sent), (Ended::Count, 1000));
    assert_eq!((end.posted, end.completed), (1000, 1000));
    assert_eq!(end.overwritten, 0, "a slot was written before it had completed");
    assert_eq!(arena.rows().len(), 1000);
}

#[test]
fn both_ways_ends_when_all_is_sent_completed_and_received() {
    let mut end = Scripted::with_room(5);
    (0..500).for_each(|sequence| end.will_receive(3, sequence));
    let mut arena = Arena::create(2000).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let gate = Gate::default();
    let ended =
        bandwidth::both(on(&mut end, Busy, clock_at(1000), &gate, &plan(500), &mut recorder));
    assert_eq!((ended, recorder.seen.sent, recorder.seen.received), (Ended::Count, 500, 500));
    assert_eq!((end.posted, end.completed, end.overwritten), (500, 500, 0));
}

#[test]
fn an_end_that_is_still_warming_up_when_the_other_has_ended_does_not_wait_for_ever() {
    let mut end = Scripted::with_room(5);
    (0..30).for_each(|sequence| end.will_receive(3, sequence));
    let mut arena = Arena::create(2000).unwrap();
    let mut recorder = Recorder::new(&mut arena, 100);
    let gate = Gate::default();
    gate.expect(30);
    let by_time = Loop { time: Some(TickSpan(50)), warmup: 100, ..plan(u64::MAX) };
    let ended = bandwidth::both(on(&mut end, Busy, clock_at(1000), &gate, &by_time, &mut recorder));
    assert_eq!((ended, recorder.seen.received), (Ended::WarmingUp, 30));
    assert!(!ended.as_planned());
}

/// The samples of a pattern from the rows of both ends, on a clock of nanoseconds.
fn joined(request: Request, rows: [&[Row]; 2]) -> Vec<Sample> {
    let case = Request { sizes: vec![Bytes(16)], ..request }.plan().unwrap().cases.remove(0);
    let analysis = registry::analysis(case.pattern.name()).unwrap();
    let time = Timebase::nanoseconds(Ticks(0));
    analysis.samples(&case, 0, rows, Times::of_one_host(&time))
}

#[test]
fn rows_of_a_writer_that_was_killed_are_readable() {
    let arena = Arena::create(100).unwrap();
    {
        let mut writer = Arena::open(&arena.path()).unwrap();
        let mut recorder = Recorder::new(&mut writer, 0);
        for sequence in [0, 1, 4] {
            recorder.round_trip(sequence, Ticks(10 + sequence), Ticks(20), Flags::default());
            recorder.handled(sequence + 1);
        }
        // Its memory goes as a killed process's does: without a word.
    }
    let rows = arena.rows();
    assert_eq!((rows.len(), arena.progress()), (5, 5));
    assert_eq!(rows[1].submit, Ticks(11));
    assert_eq!(rows[2], Row::default(), "a row that was not written yet is all zero");
    let samples = joined(latency::request(Default::default()), [rows, &[]]);
    assert_eq!((samples[4].submit_ns, samples[4].receive_ns), (14.0, 20.0));
    assert!(samples[2].submit_ns.is_nan() && samples[2].receive_ns.is_nan());
    assert!(!samples[2].flags.has(Flags::LOST), "nothing is known of it");
}

#[test]
fn a_message_that_never_reached_the_server_is_lost_one_way() {
    let sent = |at| Row { submit: Ticks(at), flags: Flags::LOST, ..Row::default() };
    let came = |at| Row { receive: Ticks(at), ..Row::default() };
    let rows = [&[sent(5), sent(6), sent(7)][..], &[came(9), Row::default()]];
    let samples = joined(oneway::request(oneway::Spec::default()), rows);
    let lost: Vec<bool> = samples.iter().map(|s| s.flags.has(Flags::LOST)).collect();
    assert_eq!(lost, [false, true, true], "whether the answer came says nothing");
    assert_eq!(samples[0].receive_ns, 9.0);
}

/// A server that answers one request for each look.
struct OneAtATime(std::collections::VecDeque<u64>);

impl RequestPath for OneAtATime {
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, _: &Loop) -> Option<Ticks> {
        self.0.push_back(sequence);
        Some(clock.now())
    }

    fn has_completed(&self) -> bool {
        true
    }

    fn poll<W: Waiter, C: Clock>(
        &mut self,
        _: &mut W,
        _: bool,
        clock: C,
        _: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let answered = self.0.pop_front();
        answered.into_iter().for_each(|sequence| take(sequence, clock.now(), false));
        Looked { any: answered.is_some(), ended: None }
    }
}

#[test]
fn answers_that_come_when_all_is_sent_count_as_handled() {
    let plan = Loop { window: 1000, loss_after: None, ..plan(100) };
    let mut arena = Arena::create(100).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let gate = Gate::default();
    let scope = Scope { clock: clock_at(1000), gate: &gate, plan: &plan };
    let mut path = OneAtATime(Default::default());
    let requests = &mut Outstanding::with_room();
    let clients = client::Clients(1000);
    let ended = client::client(&mut path, Busy, scope, requests, &mut recorder, clients);
    drop(recorder);
    assert_eq!(ended, Ended::Count);
    // Sixteen requests before each look: seven are answered by then, and each that comes after
    // shows that the round goes on.
    assert_eq!(arena.progress(), 100 + 93);
}
