//! The simulation: what is on the way, and the time.

use super::spec::{Delay, Synthetic};
use crate::{Endpoint, Events, Link, MOST_EVENTS, Posted, Role, Setup, Slot};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wiregauge_clock::{Clock, Virtual};

/// By how much time jumps when an end polls and nothing is on the way: coarse, since nothing can
/// happen meanwhile, and fine against every time-out.
const IDLE_STEP_NS: u64 = 100_000;
/// What a post takes where nothing answers, so that a sender without a schedule has a rate.
const POST_NS: u64 = 10;
/// A duplicate comes so long after the original.
const DUPLICATE_NS: f64 = 1000.0;
/// Messages for which the simulation has room, touched, before its first one. It keeps all messages
/// of a round for the server's turn: of more it takes memory as it goes, which costs no simulated
/// time.
const ROOM_MESSAGES: usize = 16 << 10;
/// Payload bytes for which it has room at most.
const MAX_ROOM_BYTES: usize = 4 << 20;
/// Virtual time begins here, so that a clock that is behind does not fall below zero.
const BEGIN_NS: u64 = 10_000_000_000;

thread_local! {
    /// This thread's virtual time; leaked once a thread, so that the clock is `'static`.
    static NOW: Virtual<'static> = Virtual(Box::leak(Box::new(AtomicU64::new(BEGIN_NS))));
}

/// This thread's virtual clock, in nanoseconds.
pub fn clock() -> Virtual<'static> {
    NOW.with(|now| *now)
}

/// Something that will arrive: when, in which order among equals, which message.
type Coming = Reverse<(u64, u64, u64)>;

/// Both ends' common state.
pub struct World {
    spec: Synthetic,
    stalls: HashMap<u64, f64>,
    random: ChaCha8Rng,
    now: Virtual<'static>,
    /// Messages per answer, where there is any.
    every: Option<u32>,
    posted: u64,
    order: u64,
    /// On the way to the client (answers), and to the server: all of the run, replayed later.
    coming: [BinaryHeap<Coming>; 2],
    /// Payloads of the messages that were posted, one behind the other.
    payloads: Vec<u8>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> World {
        let now = clock();
        now.set(BEGIN_NS);
        let spec = setup.settings.get::<Synthetic>("synthetic").unwrap_or_default();
        World {
            stalls: spec.stalls.iter().copied().collect(),
            spec,
            random: ChaCha8Rng::seed_from_u64(setup.seed),
            now,
            every: setup.traffic.answered_every(),
            posted: 0,
            order: 0,
            coming: [touched(ROOM_MESSAGES).into(), touched(ROOM_MESSAGES).into()],
            payloads: touched((ROOM_MESSAGES * setup.size).min(MAX_ROOM_BYTES)),
        }
    }

    /// The delay of a message, or `None` when it is lost.
    fn draw(&mut self, message: u64) -> Option<f64> {
        let delay = match self.spec.delay {
            Delay::Constant(ns) => ns,
            Delay::Normal(mean_ns, sd_ns) => {
                let z: f64 = StandardNormal.sample(&mut self.random);
                (mean_ns + sd_ns * z).max(0.0)
            }
            Delay::Exponential(least_ns, mean_ns) => {
                let e: f64 = Exp1.sample(&mut self.random);
                least_ns + mean_ns * e
            }
            Delay::Uniform(low_ns, high_ns) => {
                low_ns + (high_ns - low_ns) * self.random.random::<f64>()
            }
        };
        let slow = self.spec.slow;
        let delay = match slow {
            Some(slow) if message < slow.before && self.happens(slow.share) => slow.delay_ns,
            _ => delay,
        };
        if self.happens(self.spec.loss) {
            return None;
        }
        let held_up = if self.happens(self.spec.reorder) { self.spec.reorder_ns } else { 0.0 };
        Some(self.stalls.get(&message).copied().unwrap_or(delay + held_up))
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.random::<f64>() < probability
    }

    fn post(&mut self, payload: &[u8]) {
        let message = self.posted;
        self.posted += 1;
        let sent = self.now.now().0;
        if self.every.is_none() {
            self.now.set(sent + POST_NS);
        }
        self.payloads.extend_from_slice(payload);
        let Some(delay) = self.draw(message) else { return };
        let there = self.every.map_or(delay, |_| delay * self.spec.forward_share);
        let twice = self.happens(self.spec.duplicate);
        for extra in [0.0, DUPLICATE_NS].into_iter().take(1 + usize::from(twice)) {
            self.order += 1;
            let at = sent + (there + extra).round() as u64;
            let coming = Reverse((at, self.order, message));
            self.coming(Role::Server).push(coming);
            if self.every.is_some_and(|every| (message + 1).is_multiple_of(u64::from(every))) {
                let at = sent + (delay + extra).round() as u64;
                let coming = Reverse((at, self.order, message));
                self.coming(Role::Client).push(coming);
            }
        }
    }

    /// What is on the way to an end.
    fn coming(&mut self, role: Role) -> &mut BinaryHeap<Coming> {
        &mut self.coming[role.pick(0, 1)]
    }

    /// What the server's clock shows at a true time.
    fn server_time(&self, true_ns: u64) -> u64 {
        let since = (true_ns - BEGIN_NS) as f64;
        let shown = since * (1.0 + self.spec.drift_ppm * 1e-6) + self.spec.offset_ns;
        BEGIN_NS.saturating_add_signed(shown.round() as i64)
    }
}

/// Returns an empty list with this much room, every page of it touched.
fn touched<T>(room: usize) -> Vec<T> {
    let mut list = Vec::with_capacity(room);
    wiregauge_host::touch(list.spare_capacity_mut());
    list
}

/// The two ends take turns, so that nobody waits for it.
fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of the simulation.
pub struct SyntheticEndpoint {
    world: Arc<Mutex<World>>,
    role: Role,
    size: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    completed: u32,
}

impl SyntheticEndpoint {
    pub(super) fn new(world: Arc<Mutex<World>>, setup: &Setup) -> SyntheticEndpoint {
        if setup.role == Role::Server {
            // The server's turn: from the beginning of time again.
            let mut world = lock(&world);
            let begin = world.server_time(BEGIN_NS);
            world.now.set(begin);
            world.coming(Role::Client).clear();
        }
        let size = setup.size.max(1);
        SyntheticEndpoint {
            world,
            role: setup.role,
            size,
            outgoing: vec![0; size * MOST_EVENTS].into_boxed_slice(),
            incoming: vec![0; size * MOST_EVENTS].into_boxed_slice(),
            completed: 0,
        }
    }
}

impl Endpoint for SyntheticEndpoint {
    fn slots(&self) -> u32 {
        MOST_EVENTS as u32
    }

    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() % MOST_EVENTS * self.size;
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        &mut memory[at..at + self.size]
    }

    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if self.role == Role::Client {
            let at = slot.number() % MOST_EVENTS * self.size;
            debug_assert_eq!(length, self.size);
            lock(&self.world).post(&self.outgoing[at..at + self.size]);
        }
        self.completed += 1;
        Posted::Accepted
    }

    fn flush(&mut self) {}

    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        let mut world = lock(&self.world);
        while !events.is_full() {
            let Some(&Reverse((at, _, message))) = world.coming(self.role).peek() else { break };
            let at = self.role.pick(at, world.server_time(at));
            if at > world.now.now().0 {
                if events.any() || self.completed != 0 {
                    break;
                }
                world.now.set(at);
            }
            world.coming(self.role).pop();
            let number = events.arrivals().len();
            let payload = &world.payloads[message as usize * self.size..][..self.size];
            self.incoming[number * self.size..][..self.size].copy_from_slice(payload);
            events.arrive(Slot::arrived(number as u32), self.size as u32);
        }
        events.completed = std::mem::take(&mut self.completed);
        if !events.any() {
            if self.role == Role::Server {
                // The server replays what has been: after the last message nothing comes.
                events.link = Link::Closed;
            }
            world.now.advance(IDLE_STEP_NS);
        }
        events.any()
    }

    fn wait(&mut self, events: &mut Events) {
        let _ = self.poll(events);
    }
}
