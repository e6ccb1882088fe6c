//! What loops of operations on the other end's memory share: the client posts, and the server's
//! process only provides the memory.

use super::{Ended, Loop, LoopContext};
use crate::clock::Ticks;
use std::time::Duration;

/// Between two looks of an end that has nothing to do.
const LOOK: Duration = Duration::from_millis(1);

/// Whether the time that counts is up; it counts from the end of the warm-up.
#[inline(always)]
pub fn past(now: Ticks, end: &mut Option<Ticks>, messages: u64, plan: &Loop) -> bool {
    match plan.time {
        Some(time) if messages >= plan.warmup => now >= *end.get_or_insert(now + time),
        _ => false,
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
