//! What loops of operations on the other end's memory share: the client posts, and the server's
//! process only provides the memory.

use super::{Ended, Loop, LoopContext};
use crate::clock::Ticks;
use std::time::Duration;

/// Between two looks of an end that has nothing to do.
const LOOK: Duration = Duration::from_millis(1);

/// When the time of a round is up. It counts from the end of the warm-up, which its messages or its
/// time end, whichever comes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    /// The warm-up lasts no longer.
    warm_until: Option<Ticks>,
    end: Option<Ticks>,
}

impl Deadline {
    /// Whether the time is up, `messages` after the begin. The first call begins the warm-up.
    #[inline(always)]
    pub fn is_past(&mut self, now: Ticks, messages: u64, plan: &Loop) -> bool {
        let Some(time) = plan.time else { return false };
        match self.end {
            Some(end) => now >= end,
            None => {
                let warm_until = *self.warm_until.get_or_insert(now + plan.warmup_time);
                if messages >= plan.warmup || now >= warm_until {
                    self.end = Some(now + time);
                }
                false
            }
        }
    }

    /// Whether the time has begun to count.
    #[inline(always)]
    pub fn is_warm(&self) -> bool {
        self.end.is_some()
    }
}

/// The end whose memory is used: it waits until the other has finished, and shows that it is alive.
pub fn memory<E, W, C>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { gate, recorder, .. } = context;
    let mut looks = 0;
    loop {
        if gate.is_stopped() {
            return Ended::Stopped;
        }
        if gate.expected().is_some() {
            return Ended::Count;
        }
        looks += 1;
        recorder.handled(looks);
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TickSpan;
    use crate::pattern::bandwidth;
    use crate::units::Span;

    #[test]
    fn the_warm_up_ends_by_its_messages_or_by_its_time() {
        let mut request = bandwidth::request(bandwidth::Spec::default());
        request.time = Some(Span(2_000_000_000));
        let case = request.plan().unwrap().cases.remove(0);
        let plan = Loop::new(&case, |span| TickSpan(span.0 as i64));
        // A message takes so long, in ns; how many are sent, and when the loop ends.
        let run = |each: u64| {
            let mut deadline = Deadline::default();
            let mut sent = 1;
            while !deadline.is_past(Ticks(sent * each), sent, &plan) {
                sent += 1;
            }
            (sent, sent * each)
        };
        // 64 KiB over 30 Mb/s: 0.2 s of warm-up, and not 1000 messages or 17.5 s.
        let (sent, end) = run(17_500_000);
        assert!((2_200_000_000..2_260_000_000).contains(&end), "{end}");
        assert_eq!(sent, 128);
        // 1000 quick ones.
        let (sent, end) = run(1000);
        assert_eq!((sent, end), (2_001_000, 2_001_000_000));
    }
}
