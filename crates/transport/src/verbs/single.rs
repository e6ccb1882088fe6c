//! The sends of an end with one queue pair, and which of them have completed: what
//! [`order`](super::order) is for several, with what a post and a poll read kept ready.

/// The work request that carries nothing.
pub const NOTHING: u64 = u64::MAX;

/// No number of a send.
const NEVER: u64 = NOTHING - 1;

/// The sends of the one queue pair, numbered from 0.
#[derive(Debug)]
pub(super) struct Single {
    /// Every n-th send makes a completion.
    every: u64,
    /// Whether a payload was copied when it was posted. It may then be written again at once, in
    /// the order of the sends that make a completion.
    copies: bool,
    /// Whether a message that arrives answers all sends before it: they have completed by then.
    answered: bool,
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
    /// Sends below this one count as completed once they are posted: those that have completed,
    /// that were answered, or whose payloads are copied.
    free: u64,
    /// The sends before a signalled nothing that is on its way.
    asked_after: Option<u64>,
    /// Sends below this one are ordinary: there is room for them, they make no completion, they
    /// count as completed once they are posted or answered, and none is staged before them.
    pub ordinary: u64,
    /// Where each send makes a completion: sends below this one may go alone, as there is room for
    /// them and none is staged before them.
    pub alone: u64,
    /// Where each send makes a completion and none is staged: the number of the oldest that has not
    /// completed.
    next_alone: u64,
    /// Sends that were taken and not yet handed to the adapter.
    pub staged: u64,
    /// Sends that have completed since the last report.
    done: u32,
}

impl Single {
    /// For so many sends on their way, of which every n-th makes a completion.
    pub fn new(depth: u64, every: u64, inline: bool, answered: bool) -> Single {
        let every = every.max(1);
        let copies = inline && every > 1;
        let mut single = Single {
            every,
            copies,
            answered: answered && !copies && every > 1,
            depth,
            posted: 0,
            limit: 0,
            signals: every - 1,
            awaited: 0,
            retired: 0,
            next_signalled: every - 1,
            free: 0,
            asked_after: None,
            ordinary: 0,
            alone: 0,
            next_alone: NEVER,
            staged: 0,
            done: 0,
        };
        single.settle();
        single
    }

    /// Takes an ordinary send that is handed over at once.
    #[inline(always)]
    pub fn take_ordinary(&mut self) {
        self.posted += 1;
        self.done += u32::from(self.copies);
    }

    /// Notes that a message has arrived.
    #[inline(always)]
    pub fn arrived(&mut self) {
        if self.answered {
            let posted = self.posted - self.staged;
            self.done += posted.saturating_sub(self.free) as u32;
            self.free = self.free.max(posted);
        }
    }

    /// Takes a send that goes alone, is handed over at once and makes a completion.
    #[inline(always)]
    pub fn take_alone(&mut self) {
        self.signals += 1;
        self.awaited += 1;
        self.posted += 1;
    }

    /// Whether the next send is to make a completion.
    #[inline(always)]
    pub fn signals_next(&self) -> bool {
        self.posted == self.signals
    }

    /// Takes a send, which is staged.
    #[inline(always)]
    pub fn take(&mut self) {
        if self.signals_next() {
            self.signals += self.every;
            self.awaited += 1;
        }
        self.posted += 1;
        self.staged += 1;
        (self.ordinary, self.alone, self.next_alone) = (0, 0, NEVER);
    }

    /// Notes that all staged sends are handed to the adapter.
    #[inline(always)]
    pub fn hand_over(&mut self) {
        let before = self.counted();
        self.staged = 0;
        self.done += (self.counted() - before) as u32;
        self.look_ahead();
    }

    /// Works out what a post and a poll read of a queue in which nothing is staged.
    #[inline(always)]
    fn look_ahead(&mut self) {
        self.ordinary = self.ordinary_below();
        let is_alone = self.every == 1 && self.staged == 0;
        (self.alone, self.next_alone) =
            if is_alone { (self.limit, self.retired) } else { (0, NEVER) };
    }

    #[inline(always)]
    fn ordinary_below(&self) -> u64 {
        match (self.copies || self.answered) && self.staged == 0 {
            true => self.next_signalled.min(self.limit),
            false => 0,
        }
    }

    /// The sends that have completed since the last report.
    #[inline(always)]
    pub fn report(&mut self) -> u32 {
        std::mem::take(&mut self.done)
    }

    /// Whether sends have completed that were not reported.
    pub fn has_news(&self) -> bool {
        self.done > 0
    }

    /// The sends that count as completed.
    #[inline(always)]
    fn counted(&self) -> u64 {
        self.free.min(self.posted - self.staged)
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

    /// As [`completed`](Self::completed) and [`settle`](Self::settle) of one completion. Where each
    /// send makes one, it is mostly that of the oldest.
    #[inline(always)]
    pub fn settle_one(&mut self, request: u64) {
        if request == self.next_alone && self.awaited != 0 {
            self.awaited -= 1;
            self.next_alone += 1;
            self.retired = self.next_alone;
            self.next_signalled = self.next_alone;
            self.free = self.next_alone;
            self.limit += 1;
            self.alone = self.limit;
            self.done += 1;
        } else {
            self.completed(request);
            self.settle();
        }
    }

    /// Works out what follows from some completions.
    pub fn settle(&mut self) {
        let before = self.counted();
        if self.retired > self.next_signalled {
            // Mostly one period has passed, and a division costs more than all the rest.
            self.next_signalled = match self.retired - self.next_signalled <= self.every {
                true => self.next_signalled + self.every,
                false => (self.retired / self.every + 1) * self.every - 1,
            };
        }
        self.limit = self.retired + self.depth;
        self.free = if self.copies { self.next_signalled } else { self.retired.max(self.free) };
        self.look_ahead();
        self.done += (self.counted() - before) as u32;
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

    /// Takes a send; whether it makes a completion.
    fn take(single: &mut Single) -> bool {
        let is_signalled = single.signals_next();
        single.take();
        is_signalled
    }

    #[test]
    fn a_copied_payload_is_free_before_the_next_that_makes_a_completion() {
        let mut single = Single::new(8, 4, true, false);
        let signalled: Vec<_> = (0..5).map(|_| take(&mut single)).collect();
        assert_eq!(signalled, [false, false, false, true, false]);
        assert_eq!((single.free, single.limit, single.awaits()), (3, 8, true));
        single.completed(3);
        single.settle();
        assert_eq!((single.retired, single.free, single.limit), (4, 7, 12));
        assert!(!single.awaits());
    }

    #[test]
    fn a_report_has_what_completed_since_the_last() {
        let mut single = Single::new(8, 4, true, false);
        // Ordinary ones are handed over at once, staged ones with the list.
        assert_eq!(single.ordinary, 3);
        single.take_ordinary();
        assert_eq!((single.report(), single.report()), (1, 0));
        (0..4).for_each(|_| single.take());
        assert_eq!(single.report(), 0);
        single.hand_over();
        // Numbers 1 and 2: number 3 makes a completion, and number 4 comes after it.
        assert_eq!((single.report(), single.staged), (2, 0));
        single.completed(3);
        single.settle();
        assert_eq!((single.report(), single.ordinary), (2, 7));
    }

    #[test]
    fn no_send_is_ordinary_whose_payload_is_read_later_or_for_which_there_is_no_room() {
        assert_eq!(Single::new(8, 4, false, false).ordinary, 0);
        assert_eq!(Single::new(8, 1, true, false).ordinary, 0);
        assert_eq!(Single::new(2, 4, true, false).ordinary, 2);
    }

    #[test]
    fn what_was_answered_has_completed_and_its_completion_counts_no_second_time() {
        let mut single = Single::new(8, 3, false, true);
        assert_eq!(single.ordinary, 2);
        for _ in 0..2 {
            single.take_ordinary();
            assert_eq!(single.report(), 0);
            single.arrived();
            assert_eq!(single.report(), 1);
        }
        assert!(take(&mut single));
        single.hand_over();
        single.arrived();
        assert_eq!((single.report(), single.awaits()), (1, true));
        single.completed(2);
        single.settle();
        assert_eq!((single.report(), single.retired, single.ordinary), (0, 3, 5));
        // One whose completion comes before its answer.
        single.take_ordinary();
        single.ask();
        single.completed(NOTHING);
        single.settle();
        single.arrived();
        assert_eq!(single.report(), 1);
    }

    #[test]
    fn an_arrival_is_no_answer_where_nothing_says_so() {
        let mut single = Single::new(8, 3, false, false);
        take(&mut single);
        single.hand_over();
        single.arrived();
        assert_eq!((single.report(), single.ordinary), (0, 0));
    }

    #[test]
    fn a_tail_is_asked_for_once_and_counts_what_was_posted_by_then() {
        let mut single = Single::new(8, 8, false, false);
        (0..3).for_each(|_| assert!(!take(&mut single)));
        assert!(single.is_silent());
        single.ask();
        assert!(!single.is_silent());
        // A send that follows the question is not part of the answer.
        assert!(!take(&mut single));
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
            let mut single = Single::new(100, every, true, false);
            let mut coming = std::collections::VecDeque::new();
            let mut reported = 0;
            for step in steps {
                for _ in 0..step {
                    let number = single.posted;
                    let is_signalled = take(&mut single);
                    prop_assert_eq!(order.take(true), is_signalled);
                    coming.extend(is_signalled.then_some(number));
                }
                if step == 0 && let Some(number) = coming.pop_front() {
                    single.completed(number);
                    order.completed(number);
                    single.settle();
                    order.settle();
                }
                single.hand_over();
                reported += u64::from(single.report());
                prop_assert_eq!(reported, single.free.min(single.posted));
                prop_assert_eq!(single.awaits(), order.awaits());
                prop_assert_eq!(single.retired, order.retired);
                prop_assert_eq!(single.next_signalled, order.next_signalled);
            }
        }

        #[test]
        fn completions_one_by_one_are_those_of_a_list(
            every in 1u64..4, steps in proptest::collection::vec(any::<bool>(), 0..100)
        ) {
            let of = || Single::new(9, every, false, false);
            let (mut one, mut list) = (of(), of());
            let mut coming = std::collections::VecDeque::new();
            for posts in steps {
                if posts && one.posted < one.limit {
                    let number = one.posted;
                    coming.extend(take(&mut list).then_some(number));
                    match one.posted < one.alone {
                        true => one.take_alone(),
                        false => one.take(),
                    }
                    one.hand_over();
                    list.hand_over();
                } else if let Some(number) = coming.pop_front() {
                    one.settle_one(number);
                    list.completed(number);
                    list.settle();
                }
                prop_assert_eq!(one.report(), list.report());
                prop_assert_eq!(format!("{one:?}"), format!("{list:?}"));
            }
        }

        #[test]
        fn whatever_the_completions_say_nothing_overflows(
            every in 1u64..9, requests in proptest::collection::vec(any::<u64>(), 0..50)
        ) {
            let mut single = Single::new(64, every, false, false);
            for request in requests {
                single.take();
                single.completed(request);
                single.settle();
                single.settle_one(request);
                prop_assert!(single.retired <= single.posted);
            }
        }
    }
}
