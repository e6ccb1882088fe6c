//! The loop of a rank: agree with the others on an instant, enter the operation then, leave it.
//!
//! Between the two stamps lies the operation alone, and, of every second non-blocking one, what is
//! computed meanwhile. What is agreed is nanoseconds since the common begin, since ticks of two
//! hosts differ in length; they are converted between two operations.

use super::contents::Turn;
use super::spec::{Spec, Sync};
use crate::prelude::*;
use std::hint::black_box;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::compiled::AnyContext;
use wiregauge_transport::collectives::CollectiveRank;

/// An instant is agreed on at least so long before it: what a rank does in between takes less.
const LEAST_LEAD_NS: i64 = 1000;
/// At most so long before: an agreement that took longer was disturbed.
const MOST_LEAD_NS: i64 = 20_000_000;
/// Errno of an operation that failed (EIO); the counters have MPI's own words.
const FAILED: i32 = 5;
/// What ranks compute with: as much memory as evicts the first level of caches.
const WORK_BYTES: usize = 64 << 10;

/// What a rank knows before it begins.
pub struct RankPlan {
    /// What is asked.
    pub spec: Spec,
    /// Bytes of a block.
    pub size: usize,
    /// The agreed begin.
    pub begin: Ticks,
    /// Nanoseconds of a tick of this host's clock.
    pub ns_per_tick: f64,
    /// How long it computes; 0: not at all, or as long as the operation takes.
    pub compute: TickSpan,
    /// Time from the begin that is left out of the figures.
    pub warm_ns: i64,
    /// Whether it gives its CPU to another rank while it waits.
    pub yields: bool,
}

/// Returns the numbers that a rank computes with.
pub fn work() -> Box<[u64]> {
    (0..(WORK_BYTES / 8) as u64).collect()
}

impl RankPlan {
    /// Common time of a reading: nanoseconds since the begin.
    fn since_begin(&self, at: Ticks) -> i64 {
        ((at - self.begin).0 as f64 * self.ns_per_tick) as i64
    }

    fn ticks(&self, ns: i64) -> TickSpan {
        TickSpan((ns as f64 / self.ns_per_tick) as i64)
    }
}

/// What all ranks agree on before an operation.
struct Agreed {
    /// When they enter it, since the begin.
    enter_ns: i64,
    /// Whether one of them was told to stop.
    is_stopped: bool,
}

/// What an agreement usually takes, from what it was held to take and what the last one took: a
/// quarter more where that was more, half where it was less than half. One that was disturbed for
/// milliseconds hardly counts: ranks that wait for as long in turn are disturbed again.
fn usual_agreement(usual_ns: i64, took_ns: i64) -> i64 {
    let next_ns = match took_ns {
        took_ns if took_ns > usual_ns => usual_ns + usual_ns / 4,
        took_ns if took_ns < usual_ns / 2 => usual_ns / 2,
        _ => usual_ns,
    };
    next_ns.clamp(LEAST_LEAD_NS / 2, MOST_LEAD_NS)
}

/// A rank while it runs.
struct Running<'a, 'm, C> {
    plan: &'a RankPlan,
    own: &'a mut dyn CollectiveRank,
    clock: C,
    gate: &'a wiregauge_measure::loops::gate::Gate,
    recorder: &'a mut Recorder<'m>,
    /// From the last rank's readiness until this one knows of it, usually.
    agreement_ns: i64,
    /// What the last operation took here, and what about half of them take longer than, of all
    /// ranks the slowest.
    took_ns: i64,
    usual_ns: f64,
    work: &'a mut [u64],
}

/// Runs a rank.
pub fn rank(
    plan: &RankPlan,
    own: &mut dyn CollectiveRank,
    work: &mut [u64],
    context: AnyContext<'_, '_, Endpoints>,
) -> Ended {
    let LoopContext { clock, gate, plan: bounds, recorder, .. } = context;
    let (rows, most) = (recorder.capacity(), bounds.messages);
    let end_ns = bounds
        .time
        .map_or(i64::MAX, |time| plan.warm_ns + (time.0 as f64 * plan.ns_per_tick) as i64);
    let turn = Turn {
        operation: plan.spec.operation,
        rank: own.rank(),
        ranks: own.ranks(),
        number: 0,
        size: plan.size,
    };
    let (agreement_ns, took_ns, usual_ns) = (LEAST_LEAD_NS, 0, 0.0);
    let mut running =
        Running { plan, own, clock, gate, recorder, agreement_ns, took_ns, usual_ns, work };
    for number in 0..most {
        let turn = Turn { number, ..turn };
        running.prepare(turn);
        let Some(agreed) = running.agree() else { return Ended::Failed(FAILED) };
        if agreed.is_stopped {
            return Ended::Stopped;
        }
        if agreed.enter_ns >= end_ns {
            return Ended::Time;
        }
        if number >= rows {
            return Ended::Count;
        }
        if !running.take_turn(turn, &agreed, bounds.warmup) {
            return Ended::Failed(FAILED);
        }
    }
    Ended::Count
}

impl<C: Clock> Running<'_, '_, C> {
    /// Agrees with all other ranks; `None`: that failed.
    fn agree(&mut self) -> Option<Agreed> {
        let ready_ns = self.plan.since_begin(self.clock.now());
        let is_stopped = i64::from(self.gate.is_stopped());
        let mut all = [ready_ns, self.agreement_ns, is_stopped, self.took_ns];
        if !self.own.agree(&mut all) {
            return None;
        }
        let [last_ns, agreement_ns, is_stopped, took_ns] = all;
        let took = self.plan.since_begin(self.clock.now()) - last_ns;
        self.agreement_ns = usual_agreement(self.agreement_ns, took);
        self.learn(took_ns as f64, last_ns);
        let lead_ns = (2 * agreement_ns).clamp(LEAST_LEAD_NS, MOST_LEAD_NS);
        Some(Agreed { enter_ns: last_ns + lead_ns, is_stopped: is_stopped > 0 })
    }

    /// Learns in the warm-up how long the operation usually takes: a step up where it took longer
    /// than that, else down, ends near the median. The first operation, which sets up, takes many
    /// times as long: it is halved until it fits. All ranks compute the same.
    fn learn(&mut self, took_ns: f64, now_ns: i64) {
        let is_known = self.usual_ns > 0.0;
        if is_known && now_ns > self.plan.warm_ns {
            return;
        }
        self.usual_ns = match self.usual_ns {
            usual if !is_known || took_ns < usual / 2.0 => took_ns.max(usual / 2.0),
            usual if took_ns > usual => usual * 1.05,
            usual => usual * 0.95,
        };
    }

    /// Fills what this rank gives, and does the work before the operation.
    fn prepare(&mut self, turn: Turn) {
        turn.fill(self.own.input());
        if !self.plan.spec.nonblocking && self.plan.compute.0 > 0 {
            self.compute_until(self.clock.now() + self.plan.compute);
        }
    }

    /// Takes part in one operation; whether it succeeded.
    fn take_turn(&mut self, turn: Turn, agreed: &Agreed, warmup: u64) -> bool {
        let spec = &self.plan.spec;
        let overlaps = spec.nonblocking && turn.number % 2 == 1;
        let at = self.plan.begin + self.plan.ticks(agreed.enter_ns);
        let intended = match spec.sync {
            Sync::Window => {
                self.wait_until(at);
                at
            }
            Sync::Barrier if !self.own.barrier() => return false,
            Sync::Barrier => Ticks(0),
        };
        let (entry, computed, exit, succeeded) = match (spec.nonblocking, overlaps) {
            (false, _) => self.timed(),
            (true, overlaps) => self.timed_in_two(overlaps),
        };
        self.took_ns = if overlaps { self.took_ns } else { self.ns(exit - entry) };
        let is_warm = agreed.enter_ns < self.plan.warm_ns || turn.number < warmup;
        let flags = if is_warm { Flags::WARMUP } else { Flags::default() };
        let flags = if overlaps { flags.with(Flags::OVERLAPPED) } else { flags };
        let is_right = !succeeded || turn.is_right(self.own.output());
        let flags = if is_right { flags } else { flags.with(Flags::CORRUPT) };
        self.recorder.delivered(turn.number, [intended, entry, exit], turn.rank, flags);
        if overlaps {
            self.recorder.completed(turn.number, computed);
        }
        let seen = &mut self.recorder.seen;
        seen.sent += 1;
        seen.received += u64::from(succeeded);
        seen.corrupt += u64::from(!is_right);
        self.recorder.handled(turn.number + 1);
        succeeded
    }

    /// The operation between two stamps.
    #[inline(always)]
    fn timed(&mut self) -> (Ticks, Ticks, Ticks, bool) {
        let entry = self.clock.now();
        let succeeded = self.own.run();
        let exit = self.clock.now();
        (entry, entry, exit, succeeded)
    }

    /// The same of a non-blocking form, whose end is waited for at once or after computing.
    fn timed_in_two(&mut self, overlaps: bool) -> (Ticks, Ticks, Ticks, bool) {
        let usual = self.plan.ticks(self.usual_ns as i64);
        let length = if self.plan.compute.0 > 0 { self.plan.compute } else { usual };
        let entry = self.clock.now();
        let started = self.own.start();
        let computed = if overlaps { self.compute_for(length) } else { TickSpan(0) };
        let succeeded = started && self.own.finish();
        let exit = self.clock.now();
        (entry, entry + computed, exit, succeeded)
    }

    /// Computes for so long; how long that took.
    fn compute_for(&mut self, length: TickSpan) -> TickSpan {
        let begin = self.clock.now();
        self.compute_until(begin + length);
        self.clock.now() - begin
    }

    fn compute_until(&mut self, end: Ticks) {
        let mut place = 0;
        while self.clock.now() < end {
            // A few loads and stores between two looks at the clock.
            for word in self.work.iter_mut().skip(place).take(8) {
                *word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
            }
            place = if place + 8 >= self.work.len() { 0 } else { place + 8 };
        }
        black_box(&self.work);
    }

    fn wait_until(&self, at: Ticks) {
        while self.plan.yields && self.clock.now() < at {
            std::thread::yield_now();
        }
        self.clock.idle_until(at);
    }

    fn ns(&self, span: TickSpan) -> i64 {
        (span.0 as f64 * self.plan.ns_per_tick) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{self, CollectiveRequest};
    use wiregauge_clock::{AnyClock, KernelClock};
    use wiregauge_measure::loops::gate::Gate;
    use wiregauge_measure::loops::waiter::{ADAPTIVE_SPIN, AnyWaiter};
    use wiregauge_sample::arena::Arena;
    use wiregauge_transport::collectives::CollectiveOperation;
    use wiregauge_transport::endpoint_set::EndpointSet;

    /// Two ranks that give the same, of which one is played; its sum is wrong in some operations.
    struct Fake {
        input: Vec<u8>,
        output: Vec<u8>,
        number: u64,
        wrong: fn(u64) -> bool,
        fails: fn(u64) -> bool,
    }

    impl CollectiveRank for Fake {
        fn rank(&self) -> u32 {
            0
        }

        fn ranks(&self) -> u32 {
            2
        }

        fn input(&mut self) -> &mut [u8] {
            &mut self.input
        }

        fn output(&mut self) -> &mut [u8] {
            &mut self.output
        }

        /// Rank 1 gives twice what rank 0 does.
        fn run(&mut self) -> bool {
            let error = f64::from(u8::from((self.wrong)(self.number)));
            for (from, to) in self.input.chunks_exact(8).zip(self.output.chunks_exact_mut(8)) {
                let own = f64::from_ne_bytes(from.try_into().unwrap());
                to.copy_from_slice(&(3.0 * own + error).to_ne_bytes());
            }
            self.number += 1;
            !(self.fails)(self.number)
        }

        fn start(&mut self) -> bool {
            true
        }

        fn finish(&mut self) -> bool {
            self.run()
        }

        fn agree(&mut self, _: &mut [i64; 4]) -> bool {
            true
        }

        fn barrier(&mut self) -> bool {
            true
        }

        fn failed(&self) -> Option<&str> {
            None
        }
    }

    /// Plays 20 operations: how it ended, and what was sent, received and wrong.
    fn played(
        spec: Spec,
        wrong: fn(u64) -> bool,
        fails: fn(u64) -> bool,
    ) -> (Ended, [u64; 3], usize) {
        let operation = CollectiveOperation::Allreduce;
        let asked = CollectiveRequest { spec, operations: vec![operation], ranks: vec![2] };
        let request = Request { count: Some(20), warmup: Some(0), ..collective::request(asked) };
        let case = request.plan().unwrap().cases.remove(0);
        let bounds = Loop::new(&case, |span| TickSpan(span.0 as i64));
        let mut arena = Arena::create(32).unwrap();
        let mut recorder = Recorder::new(&mut arena, 0);
        let (gate, mut none) = (Gate::default(), EndpointSet::new(Vec::new(), None).unwrap());
        let size = 16;
        let mut fake =
            Fake { input: vec![0; size], output: vec![0; size], number: 0, wrong, fails };
        let plan = RankPlan {
            spec,
            size,
            begin: Ticks(0),
            ns_per_tick: 1.0,
            compute: TickSpan(0),
            warm_ns: 0,
            yields: false,
        };
        let ended = rank(
            &plan,
            &mut fake,
            &mut work(),
            LoopContext {
                endpoint: &mut none,
                waiter: AnyWaiter::new(Wait::Busy, TickSpan(ADAPTIVE_SPIN.0 as i64)),
                clock: AnyClock::Kernel(KernelClock::MONOTONIC),
                gate: &gate,
                plan: &bounds,
                generator: None,
                recorder: &mut recorder,
            },
        );
        let seen = recorder.seen;
        drop(recorder);
        let corrupt = arena.rows().iter().filter(|row| row.flags.has(Flags::CORRUPT)).count();
        (ended, [seen.sent, seen.received, seen.corrupt], corrupt)
    }

    #[test]
    fn a_wrong_sum_is_counted_and_flagged_and_a_right_one_is_not() {
        let spec = Spec::default();
        let never = |_| false;
        assert_eq!(played(spec, never, never), (Ended::Count, [20, 20, 0], 0));
        assert_eq!(played(spec, |number| number % 5 == 1, never), (Ended::Count, [20, 20, 4], 4));
        let both = Spec { nonblocking: true, ..spec };
        assert_eq!(played(both, |number| number == 7, never), (Ended::Count, [20, 20, 1], 1));
    }

    #[test]
    fn one_disturbed_agreement_hardly_counts_and_slow_ones_do() {
        let after =
            |all: &[i64]| all.iter().fold(1000, |usual, took| usual_agreement(usual, *took));
        assert_eq!(after(&[9_000_000, 600, 600]), 1250 / 2);
        assert!((8_000_000..=10_000_000).contains(&after(&[8_000_000; 100])));
        assert_eq!(after(&[0; 100]), LEAST_LEAD_NS / 2);
        assert_eq!(after(&[i64::MAX / 4; 1000]), MOST_LEAD_NS);
    }

    #[test]
    fn an_operation_that_fails_ends_the_round() {
        let never = |_| false;
        let found = played(Spec::default(), never, |number| number == 6);
        assert_eq!(found, (Ended::Failed(FAILED), [6, 5, 0], 0));
    }
}
