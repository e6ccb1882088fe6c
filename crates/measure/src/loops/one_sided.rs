//! What loops of operations on the other end's memory share: the client posts, and the server's
//! process only provides the memory.

use super::{Ended, LoopContext};
use std::time::{Duration, Instant};
use wiregauge_host::interrupt::nap;
use wiregauge_transport::Endpoint;

/// Between two looks of an end that has nothing to do, where nobody interrupts it. Each wakes its
/// CPU, on which the operations may be carried out.
const NAP: Duration = Duration::from_millis(100);

/// The same of an end whose library carries out the operations, in calls.
const LOOK: Duration = Duration::from_millis(1);

/// The end whose memory is used: it waits until the other has finished, and shows that it is alive.
pub fn memory<E: Endpoint, W, C>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, gate, recorder, .. } = context;
    let is_busy = endpoint.serves_by_progress();
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
        if is_busy {
            let until = Instant::now() + LOOK;
            while Instant::now() < until {
                endpoint.progress();
            }
        } else {
            nap(NAP);
        }
    }
}
