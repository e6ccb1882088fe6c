//! What loops of operations on the other end's memory share: the client posts, and the server's
//! process only provides the memory.

use super::{Ended, LoopContext};
use std::time::Duration;

/// Between two looks of an end that has nothing to do.
const LOOK: Duration = Duration::from_millis(1);

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
