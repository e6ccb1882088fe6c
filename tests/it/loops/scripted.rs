//! An end that does what a test says, on a virtual clock of its own.

use super::{on, plan};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use wiregauge::clock::{Clock, TickSpan, Ticks, Virtual};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::waiter::Busy;
use wiregauge::loops::{Ended, Loop, closed, payload};
use wiregauge::sample::Flags;
use wiregauge::sample::arena::{Arena, Row};
use wiregauge::sample::recorder::{MessageCounts, Recorder};
use wiregauge::transport::{Endpoint, Events, Link, Posted, Slot};

thread_local! {
    static NOW: Virtual<'static> = Virtual(Box::leak(Box::new(AtomicU64::new(0))));
}

/// This thread's clock, set.
pub fn clock_at(ticks: u64) -> Virtual<'static> {
    let now = NOW.with(|now| *now);
    now.set(ticks);
    now
}

/// Slots of a scripted end.
const SLOTS: usize = 8;

pub struct Scripted {
    size: usize,
    outgoing: Vec<u8>,
    /// What each slot held when it was posted; empty where it has completed.
    held: Vec<Vec<u8>>,
    incoming: Vec<u8>,
    coming: VecDeque<(u64, u64)>,
    /// Arrivals at a time: (when, which), in order.
    pub timed: VecDeque<(u64, u64)>,
    /// Posts that it takes between two polls.
    pub room: usize,
    open: VecDeque<usize>,
    /// Whether each post is answered at the next poll.
    pub echoes: bool,
    /// The state of the link from the first poll on.
    pub link: Link,
    pub post_takes: u64,
    pub poll_takes: u64,
    /// Every so-manieth post takes so long.
    pub slow_post: Option<(u64, u64)>,
    pub posted: u64,
    /// What was posted from the slots of its own messages.
    pub messages: Vec<Vec<u8>>,
    pub completed: u64,
    /// Messages that were on the way before each poll that found some.
    pub before_polls: Vec<usize>,
    /// Messages whose slot was written while they were on the way.
    pub overwritten: u64,
}

impl Scripted {
    pub fn new(size: usize) -> Scripted {
        Scripted {
            size,
            outgoing: vec![0; SLOTS * size],
            held: vec![Vec::new(); SLOTS],
            incoming: vec![0; size * wiregauge::transport::MOST_EVENTS],
            coming: VecDeque::new(),
            timed: VecDeque::new(),
            room: SLOTS,
            open: VecDeque::new(),
            echoes: false,
            link: Link::Up,
            post_takes: 1,
            poll_takes: 1,
            slow_post: None,
            posted: 0,
            messages: Vec::new(),
            completed: 0,
            before_polls: Vec::new(),
            overwritten: 0,
        }
    }

    pub fn with_room(room: usize) -> Scripted {
        Scripted { room, ..Scripted::new(16) }
    }

    pub fn on(self, link: Link) -> Scripted {
        Scripted { link, ..self }
    }

    /// `after` ticks after the one before, or after the poll that finds nothing else, a message
    /// arrives: one a poll.
    pub fn will_receive(&mut self, after: u64, sequence: u64) {
        self.coming.push_back((after, sequence));
    }

    /// Runs the client's closed loop on it.
    pub fn client(mut self, plan: &Loop) -> (Ended, Vec<Row>, MessageCounts) {
        let mut arena = Arena::create(1000).unwrap();
        let mut recorder = Recorder::new(&mut arena, plan.warmup);
        let clock = clock_at(1000);
        let gate = Gate::default();
        let ended = closed::client(on(&mut self, Busy, clock, &gate, plan, &mut recorder));
        assert_eq!(self.overwritten, 0, "a slot was written before it had completed");
        let seen = recorder.seen;
        (ended, arena.rows().to_vec(), seen)
    }

    fn advance(&self, ticks: u64) {
        NOW.with(|now| now.advance(ticks));
    }
}

impl Endpoint for Scripted {
    fn slots(&self) -> u32 {
        SLOTS as u32
    }

    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        &mut memory[at..at + self.size]
    }

    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        assert_eq!(length, self.size);
        if self.open.len() >= self.room {
            return Posted::Full;
        }
        let slow = self.slow_post.filter(|(every, _)| (self.posted + 1).is_multiple_of(*every));
        self.advance(slow.map_or(self.post_takes, |(_, takes)| takes));
        let number = slot.number();
        if !slot.has_arrived() {
            if self.open.contains(&number) {
                self.overwritten += 1;
            }
            self.held[number] = self.payload(slot).to_vec();
            self.messages.push(self.held[number].clone());
            if self.echoes {
                let sequence = payload::sequence(&self.held[number], self.posted);
                self.coming.push_back((5, sequence));
            }
        }
        self.open.push_back(number);
        self.posted += 1;
        Posted::Accepted
    }

    fn flush(&mut self) {}

    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.advance(self.poll_takes);
        self.before_polls.extend(Some(self.open.len()).filter(|open| *open > 0));
        while let Some(number) = self.open.pop_front() {
            let now = &self.outgoing[number * self.size..][..self.size];
            if !self.held[number].is_empty() && self.held[number] != now {
                self.overwritten += 1;
            }
            events.completed += 1;
            self.completed += 1;
        }
        events.link = self.link;
        let now = NOW.with(|now| now.now().0);
        let due = self.timed.front().is_some_and(|(at, _)| *at <= now);
        let timed = if due { self.timed.pop_front() } else { None };
        let timed = timed.map(|(_, sequence)| (1, sequence));
        if let Some((after, sequence)) = timed.or_else(|| self.coming.pop_front()) {
            self.advance(after - 1);
            payload::fill(&mut self.incoming[..self.size], sequence);
            events.arrive(Slot::arrived(0), self.size as u32);
        }
        events.any()
    }

    fn wait(&mut self, events: &mut Events) {
        let _ = self.poll(events);
    }
}

#[test]
fn the_virtual_clock_is_this_threads() {
    use wiregauge::clock::Clock;
    assert_eq!(clock_at(5).now(), Ticks(5));
}

#[test]
fn a_server_of_round_trips_stays_where_a_message_comes_twice() {
    // The second of four comes twice: as many arrivals as messages, and the last is on its way.
    let served = |loss_after| {
        let mut end = Scripted::new(16);
        [0, 1, 1, 2, 3].into_iter().for_each(|sequence| end.will_receive(5, sequence));
        let mut arena = Arena::create(10).unwrap();
        let mut recorder = Recorder::new(&mut arena, 0);
        let gate = Gate::default();
        gate.expect(4);
        let plan = Loop { loss_after, check: false, ..super::plan(4) };
        let context = on(&mut end, Busy, clock_at(1000), &gate, &plan, &mut recorder);
        let ended = closed::server::<_, _, _, _, false>(context, ());
        (ended, end.posted)
    };
    assert_eq!(served(None), (Ended::Count, 4));
    assert_eq!(served(Some(TickSpan(1_000_000))), (Ended::Count, 5));
}

#[test]
fn a_message_that_a_stop_cut_off_is_kept_as_unanswered() {
    let gate = Gate::default();
    gate.stop();
    let long = Loop { loss_after: None, ..plan(u64::MAX) };
    let mut arena = Arena::create(10).unwrap();
    let mut recorder = Recorder::new(&mut arena, 0);
    let mut end = Scripted::with_room(3);
    let ended = closed::client(on(&mut end, Busy, clock_at(1000), &gate, &long, &mut recorder));
    assert_eq!((ended, recorder.seen.sent, recorder.seen.received), (Ended::Stopped, 1, 0));
    let [row] = arena.rows() else { panic!("{} rows", arena.rows().len()) };
    assert!(row.flags.has(Flags::LOST) && row.submit.0 != 0 && row.receive.0 == 0, "{row:?}");
}
