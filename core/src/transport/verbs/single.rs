//! The sends of an end with one queue pair, and which of them have completed: what
//! [`order`](super::order) is for several, with what a post and a poll read kept ready.

/// The work request that carries nothing.
pub const NOTHING: u64 = u64::MAX;

/// The sends of the one queue pair, numbered from 0.
#[derive(Debug)]
pub(super) struct Single {
    /// Every n-th send makes a completion.
    every: u64,
    /// Whether a payload was copied when it was posted. It may then be written again at once, in
    /// the order of the sends that make a completion.
    copies: bool,
    /// Sends that may be on their way.
    depth: u64,
    /// Sends that were taken.
    pub posted: u64,
    /// As many may be taken before a completion has to come.
    pub limit: u64,
    /// The next send that makes a completion.
    signals: u64,
    /// Completions that were asked for and have not come.
    awaited: u64,
    /// Sends that are known to have completed.
    pub retired: u64,
    /// The first send that has not completed and makes a completion.
    next_signalled: u64,
    /// Sends that count as completed once they are posted.
    pub free: u64,
    /// The sends before a signalled nothing that is on its way.
    asked_after: Option<u64>,
}

impl Single {
    /// For so many sends on their way, of which every n-th makes a completion.
    pub fn new(depth: u64, every: u64, inline: bool) -> Single {
        let every = every.max(1);
        let mut single = Single {
            every,
            copies: inline && every > 1,
            depth,
            posted: 0,
            limit: 0,
            signals: every - 1,
            awaited: 0,
            retired: 0,
            next_signalled: every - 1,
            free: 0,
            asked_after: None,
        };
        single.settle();
        single
    }

    /// Takes a send; whether it is to make a completion.
    #[inline(always)]
    pub fn take(&mut self) -> bool {
        let is_signalled = self.posted == self.signals;
        if is_signalled {
            self.signals += self.every;
            self.awaited += 1;
        }
        self.posted += 1;
        is_signalled
    }

    /// Whether a completion is to come.
    #[inline(always)]
    pub fn awaits(&self) -> bool {
        self.awaited != 0
    }

    /// Notes a completion by the number of its work request.
    pub fn completed(&mut self, request: u64) {
        self.awaited = self.awaited.saturating_sub(1);
        let done = match request {
            NOTHING => self.asked_after.take().unwrap_or(0),
            request => request + 1,
        };
        self.retired = self.retired.max(done.min(self.posted));
    }

    /// Works out what follows from some completions.
    pub fn settle(&mut self) {
        if self.retired > self.next_signalled {
            // Mostly one period has passed, and a division costs more than all the rest.
            self.next_signalled = match self.retired - self.next_signalled <= self.every {
                true => self.next_signalled + self.every,
                false => (self.retired / self.every + 1) * self.every - 1,
            };
        }
        self.limit = self.retired + self.depth;
        self.free = if self.copies { self.next_signalled } else { self.retired };
    }

    /// Whether the last sends will not say when they complete, and nothing was asked after them.
    pub fn is_silent(&self) -> bool {
        self.posted > self.retired && self.awaited == 0
    }

    /// Notes that a signalled nothing was posted.
    pub fn ask(&mut self) {
        self.asked_after = Some(self.posted);
        self.awaited += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Order;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_copied_payload_is_free_before_the_next_that_makes_a_completion() {
        let mut single = Single::new(8, 4, true);
        let signalled: Vec<_> = (0..5).map(|_| single.take()).collect();
        assert_eq!(signalled, [false, false, false, true, false]);
        assert_eq!((single.free, single.limit, single.awaits()), (3, 8, true));
        single.completed(3);
        single.settle();
        assert_eq!((single.retired, single.free, single.limit), (4, 7, 12));
        assert!(!single.awaits());
    }

    #[test]
    fn a_tail_is_asked_for_once_and_counts_what_was_posted_by_then() {
        let mut single = Single::new(8, 8, false);
        (0..3).for_each(|_| assert!(!single.take()));
        assert!(single.is_silent());
        single.ask();
        assert!(!single.is_silent());
        // A send that follows the question is not part of the answer.
        assert!(!single.take());
        single.completed(NOTHING);
        single.settle();
        assert_eq!((single.retired, single.free), (3, 3));
        assert!(single.is_silent());
    }

    proptest! {
        /// Each step posts some sends, or completes the oldest that makes a completion.
        #[test]
        fn it_agrees_with_the_order_of_several_queue_pairs(
            every in 1u64..9, steps in proptest::collection::vec(0usize..6, 0..60)
        ) {
            let mut order = Order::new(1, every);
            let mut single = Single::new(100, every, true);
            let mut coming = std::collections::VecDeque::new();
            for step in steps {
                for _ in 0..step {
                    let number = single.posted;
                    let is_signalled = single.take();
                    prop_assert_eq!(order.take(true), is_signalled);
                    coming.extend(is_signalled.then_some(number));
                }
                if step == 0 && let Some(number) = coming.pop_front() {
                    single.completed(number);
                    order.completed(number);
                    single.settle();
                    order.settle();
                }
                prop_assert_eq!(single.awaits(), order.awaits());
                prop_assert_eq!(single.retired, order.retired);
                prop_assert_eq!(single.next_signalled, order.next_signalled);
            }
        }

        #[test]
        fn whatever_the_completions_say_nothing_overflows(
            every in 1u64..9, requests in proptest::collection::vec(any::<u64>(), 0..50)
        ) {
            let mut single = Single::new(64, every, false);
            for request in requests {
                single.take();
                single.completed(request);
                single.settle();
                prop_assert!(single.retired <= single.posted);
            }
        }
    }
}
