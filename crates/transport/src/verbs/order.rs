//! The order of sends over the queue pairs of an end, and which of them have completed.
//!
//! Send *m* goes over queue pair *m* mod *n*. Each queue pair completes its own sends in order, so
//! those that are done are the ones before the first that some queue pair still owes. That send is
//! walked on to, one by one: each send is passed once, however many queue pairs there are.
//!
//! Where the service completes sends in any order (SRD), each makes a completion, and those before
//! the first that is still on its way are done.

use crate::MOST_EVENTS;

/// The most queue pairs of an end: perftest's limit, and few enough for an address.
pub const MOST_QUEUE_PAIRS: u32 = 16_384;
/// Most work requests of all send queues of an end: as many as 256 queues of the greatest depth.
const MOST_REQUESTS: u64 = 1 << 23;
/// Sends whose queue pairs are looked at in one call while an end polls: as many as a list holds,
/// so that a poll is delayed by less than a microsecond.
const LOOK_AT: u64 = MOST_EVENTS as u64;
/// The work request that carries nothing, of queue pair 0; that of the next is one less.
const NOTHING: u64 = u64::MAX;

/// Refuses more work requests than an end may have; `pairs` send queues of `depth`.
pub fn check_requests(pairs: u64, depth: u64) -> Result<(), String> {
    let all = pairs.saturating_mul(depth);
    ensure!(
        all <= MOST_REQUESTS,
        "--queue-pairs {pairs} with --send-depth {depth} are {all} work requests: use --send-depth \
         1 to {}, since an end has at most {MOST_REQUESTS}",
        MOST_REQUESTS / pairs.max(1)
    );
    Ok(())
}

/// How far a queue pair is, in counts of its own sends.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    posted: u64,
    /// Up to and with the last that makes a completion.
    signalled: u64,
    /// Known to have completed.
    done: u64,
    /// The sends up to and with the first after those that makes a completion.
    says_next: u64,
    /// The sends before a signalled nothing that is on its way.
    asked_after: Option<u64>,
}

impl Pair {
    /// Works out which send after those that are done makes the next completion: every n-th. Mostly
    /// one period has passed, and a division costs more than all the rest.
    #[inline(always)]
    fn look_ahead(&mut self, every: u64) {
        if self.done >= self.says_next {
            self.says_next = match self.done - self.says_next < every {
                true => self.says_next + every,
                false => (self.done / every + 1) * every,
            };
        }
    }
}

/// A send, and the queue pair that it goes over: counted, since a division costs more than a step.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    send: u64,
    pair: usize,
    /// Which of the sends of that queue pair it is.
    round: u64,
}

impl Place {
    /// Goes on to the next send; behind the last queue pair, `rounds` further on.
    #[inline(always)]
    fn step(&mut self, pairs: usize, rounds: u64) {
        self.pair += 1;
        self.send += 1;
        if self.pair == pairs {
            self.pair = 0;
            self.round += rounds;
            self.send += (rounds - 1) * pairs as u64;
        }
    }
}

/// The sends of all queue pairs of an end.
#[derive(Debug, Default)]
pub(super) struct Order {
    pairs: Vec<Pair>,
    /// Every n-th send of a queue pair makes a completion.
    every: u64,
    /// The queue pair that takes the next send.
    pub turn: usize,
    /// Sends that were taken.
    pub posted: u64,
    /// Completions that were asked for, and that have come.
    asked: u64,
    answered: u64,
    /// Sends that are known to have completed.
    pub retired: u64,
    /// The first send that has not completed and will say so.
    pub next_signalled: u64,
    /// Of several queue pairs: the first send that has not completed, the first of those that will
    /// say so, and the send from which on the next call looks for tails.
    oldest: Place,
    oldest_signalled: Place,
    looked_to: u64,
    /// Of a service that completes its sends in any order: which of those on their way have
    /// completed, by the number of the send modulo the length. Else empty.
    scattered: Vec<bool>,
}

impl Order {
    /// For `pairs` queue pairs.
    pub fn new(pairs: usize, every: u64) -> Order {
        let (pairs, every) = (pairs.max(1), every.max(1));
        let round = every - 1;
        let oldest_signalled = Place { send: round * pairs as u64, pair: 0, round };
        let pairs = vec![Pair::default(); pairs];
        let mut order = Order { pairs, every, oldest_signalled, ..Order::default() };
        order.settle();
        order
    }

    /// For `pairs` queue pairs of which each send makes a completion, in any order, and at most
    /// `depth` sends are on their way.
    pub fn scattered(pairs: usize, depth: u64) -> Order {
        let mut order = Order::new(pairs, 1);
        order.scattered = vec![false; depth.clamp(1, MOST_REQUESTS) as usize];
        order
    }

    /// Takes a send; whether it is to make a completion. `is_only`: there is one queue pair.
    #[inline(always)]
    pub fn take(&mut self, is_only: bool) -> bool {
        let pair = &mut self.pairs[if is_only { 0 } else { self.turn }];
        pair.posted += 1;
        let is_signalled = pair.posted - pair.signalled >= self.every;
        if is_signalled {
            pair.signalled = pair.posted;
            self.asked += 1;
        }
        self.posted += 1;
        if !is_only {
            self.turn += 1;
            if self.turn == self.pairs.len() {
                self.turn = 0;
            }
        }
        is_signalled
    }

    /// Whether a completion is to come.
    #[inline(always)]
    pub fn awaits(&self) -> bool {
        self.asked > self.answered
    }

    /// Notes a completion by the number of its work request.
    #[inline(always)]
    pub fn completed(&mut self, request: u64) {
        self.answered += 1;
        let count = self.pairs.len();
        if !self.scattered.is_empty() {
            self.completed_in_any_order(request);
        } else if request > NOTHING - u64::from(MOST_QUEUE_PAIRS) {
            let Some(pair) = self.pairs.get_mut((NOTHING - request) as usize) else { return };
            pair.done = pair.done.max(pair.asked_after.take().unwrap_or(0));
        } else if count == 1 {
            self.pairs[0].done = self.pairs[0].done.max(request + 1);
        } else {
            let pair = &mut self.pairs[(request % count as u64) as usize];
            pair.done = pair.done.max(request / count as u64 + 1);
        }
    }

    /// Notes the completion of a send that is on its way; what retires is what no gap is before.
    #[inline(never)]
    fn completed_in_any_order(&mut self, request: u64) {
        let length = self.scattered.len() as u64;
        if !(self.retired..self.posted).contains(&request) {
            return;
        }
        if let Some(is_done) = self.scattered.get_mut((request % length) as usize) {
            *is_done = true;
        }
        while self.retired < self.posted {
            let oldest = (self.retired % length) as usize;
            if !std::mem::take(&mut self.scattered[oldest]) {
                return;
            }
            self.retired += 1;
        }
    }

    /// Works out what has retired, after some completions.
    #[inline(always)]
    pub fn settle(&mut self) {
        if !self.scattered.is_empty() {
            // It has retired already.
            self.next_signalled = self.retired;
        } else if let [pair] = &mut self.pairs[..] {
            pair.look_ahead(self.every);
            self.retired = pair.done.min(self.posted);
            self.next_signalled = pair.says_next - 1;
        } else {
            self.settle_several();
        }
    }

    /// Out of line: inside a loop it would take the registers of the usual case.
    #[inline(never)]
    fn settle_several(&mut self) {
        let count = self.pairs.len();
        let Order { oldest, oldest_signalled, .. } = self;
        while oldest.send < self.posted && self.pairs[oldest.pair].done > oldest.round {
            oldest.step(count, 1);
        }
        while oldest_signalled.send < self.posted
            && self.pairs[oldest_signalled.pair].done > oldest_signalled.round
        {
            oldest_signalled.step(count, self.every);
        }
        self.retired = oldest.send;
        self.next_signalled = oldest_signalled.send;
    }

    /// The queue pairs with a tail of sends that will not say when they complete, each with the
    /// number of the work request that is to ask: it is taken as posted. A call looks at a part of
    /// the sends that are on their way; the next goes on behind it.
    #[cold]
    pub fn ask_for_tails(&mut self, mut post: impl FnMut(usize, u64) -> bool) {
        let count = self.pairs.len() as u64;
        let (end, is_whole) = (self.retired + self.in_question(), self.in_question() <= LOOK_AT);
        let goes_on = !is_whole && (self.retired..end).contains(&self.looked_to);
        let begin = if goes_on { self.looked_to } else { self.retired };
        self.looked_to = end.min(begin + LOOK_AT);
        for send in begin..self.looked_to {
            let number = (send % count) as usize;
            let pair = &mut self.pairs[number];
            let says_nothing = pair.signalled <= pair.done && pair.asked_after.is_none();
            if pair.posted > pair.done && says_nothing && post(number, NOTHING - number as u64) {
                pair.asked_after = Some(pair.posted);
                self.asked += 1;
            }
        }
    }

    /// How many calls look at all sends that are on their way, wherever the last one ended.
    #[cold]
    pub fn looks(&self) -> u64 {
        match self.in_question() {
            0..=LOOK_AT => 1,
            more => more.div_ceil(LOOK_AT) + 1,
        }
    }

    /// Sends on their way, one of each queue pair at most: those after them are of the same ones.
    fn in_question(&self) -> u64 {
        (self.posted - self.retired).min(self.pairs.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(order: &mut Order, count: usize) -> Vec<bool> {
        (0..count).map(|_| order.take(false)).collect()
    }

    #[test]
    fn one_queue_pair_retires_up_to_the_send_that_said_so() {
        let mut order = Order::new(1, 4);
        assert_eq!(taken(&mut order, 5), [false, false, false, true, false]);
        assert!(order.awaits());
        assert_eq!((order.retired, order.next_signalled), (0, 3));
        order.completed(3);
        order.settle();
        assert_eq!((order.retired, order.next_signalled), (4, 7));
        assert!(!order.awaits());
    }

    #[test]
    fn what_a_slower_queue_pair_owes_holds_the_others_back() {
        let mut order = Order::new(3, 1);
        taken(&mut order, 7);
        for request in [0, 2, 3, 5, 6] {
            order.completed(request);
        }
        order.settle();
        assert_eq!(order.retired, 1, "send 1 is still on its way");
        order.completed(1);
        order.settle();
        assert_eq!(order.retired, 4, "and now send 4");
        order.completed(4);
        order.settle();
        assert_eq!(order.retired, 7);
    }

    #[test]
    fn sends_that_complete_in_any_order_retire_in_that_of_their_posts() {
        use proptest::prelude::*;
        proptest!(|(pairs in 1usize..4, depth in 1u64..9,
                    steps in proptest::collection::vec((any::<bool>(), any::<u64>()), 0..200))| {
            let mut order = Order::scattered(pairs, depth);
            let mut open = Vec::new();
            for (posts, choice) in steps {
                if posts && order.posted - order.retired < depth {
                    open.push(order.posted);
                    prop_assert!(order.take(pairs == 1));
                } else if !open.is_empty() {
                    let request = open.swap_remove((choice % open.len() as u64) as usize);
                    order.completed(request);
                    // One that came before, and one that was never posted.
                    order.completed_in_any_order(request);
                    order.completed_in_any_order(order.posted + choice % 9);
                    order.settle();
                }
                let oldest = open.iter().min().copied().unwrap_or(order.posted);
                prop_assert_eq!((order.retired, order.awaits()), (oldest, !open.is_empty()));
            }
        });
    }

    #[test]
    fn a_tail_is_asked_for_once_and_counts_what_was_posted_by_then() {
        let mut order = Order::new(2, 8);
        taken(&mut order, 5);
        let mut asked = Vec::new();
        order.ask_for_tails(|pair, request| {
            asked.push((pair, request));
            true
        });
        assert_eq!(asked, [(0, u64::MAX), (1, u64::MAX - 1)]);
        order.ask_for_tails(|_, _| panic!("asked twice"));
        // Sends that follow the question are not part of the answer.
        taken(&mut order, 2);
        order.completed(u64::MAX);
        order.completed(u64::MAX - 1);
        order.settle();
        assert_eq!(order.retired, 5);
        assert!(!order.awaits());
    }

    #[test]
    fn each_queue_pair_has_its_own_period() {
        let mut order = Order::new(2, 2);
        assert_eq!(taken(&mut order, 6), [false, false, true, true, false, false]);
        assert_eq!(order.next_signalled, 2);
        order.completed(2);
        order.settle();
        assert_eq!((order.retired, order.next_signalled), (1, 3));
    }

    #[test]
    fn more_work_requests_than_an_end_has_are_refused_with_the_depth_that_fits() {
        assert!(check_requests(16_384, 512).is_ok());
        let refused = check_requests(16_384, 513).unwrap_err();
        assert!(refused.contains("use --send-depth 1 to 512"), "{refused}");
    }

    /// What has retired, and the next that will say so, by a look at every queue pair.
    fn settled_slowly(order: &Order) -> (u64, u64) {
        let (count, every) = (order.pairs.len() as u64, order.every);
        let of = |round: fn(&Pair, u64) -> u64| {
            let sends =
                (0..).zip(&order.pairs).map(|(number, pair)| round(pair, every) * count + number);
            sends.min().unwrap()
        };
        let retired = of(|pair, _| pair.done).min(order.posted);
        (retired, of(|pair, every| (pair.done / every + 1) * every - 1))
    }

    #[test]
    fn what_is_walked_to_is_what_a_look_at_every_queue_pair_finds() {
        use proptest::prelude::*;
        proptest!(|(pairs in 2usize..9, every in 1u64..5,
                    steps in proptest::collection::vec((any::<bool>(), 0usize..9), 0..200))| {
            let mut order = Order::new(pairs, every);
            for (posts, pair) in steps {
                let number = pair % pairs;
                let Pair { done, signalled, .. } = order.pairs[number];
                if posts {
                    order.take(false);
                } else if signalled > done {
                    // Completions come in the order of a queue pair's own signalled sends.
                    let own = (done / every + 1) * every - 1;
                    order.completed(own * pairs as u64 + number as u64);
                    order.settle();
                    prop_assert_eq!((order.retired, order.next_signalled), settled_slowly(&order));
                }
            }
        });
    }

    #[test]
    fn of_the_most_queue_pairs_each_tail_is_asked_for_in_parts() {
        let mut order = Order::new(MOST_QUEUE_PAIRS as usize, 8);
        taken(&mut order, 1000);
        let mut asked = Vec::new();
        for call in 1..=order.looks() {
            order.ask_for_tails(|pair, _| {
                asked.push(pair as u64);
                true
            });
            assert_eq!(asked.len() as u64, (call * LOOK_AT).min(1000));
        }
        assert_eq!(asked, (0..1000).collect::<Vec<_>>());
        for pair in 0..1000 {
            order.completed(NOTHING - pair);
        }
        order.settle();
        assert_eq!((order.retired, order.looks()), (1000, 1));
    }

    #[test]
    fn whatever_the_completions_say_nothing_overflows() {
        use proptest::prelude::*;
        proptest!(|(pairs in 1usize..9, every in 1u64..9,
                    requests in proptest::collection::vec(any::<u64>(), 0..50))| {
            let mut order = Order::new(pairs, every);
            for request in requests {
                order.completed(request >> 8);
                order.completed(u64::MAX - request % 100);
                order.settle();
            }
        });
    }
}
