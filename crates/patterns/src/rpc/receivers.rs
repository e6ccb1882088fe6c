//! Threads that take the replies of a port of `rpc` while the port sends: a reply is stamped when
//! it is there, however busy the port is. Each has handles of its own on a share of the port's
//! connections, and hands over what it saw through a ring that neither side locks.

use super::draws::head_of;
use crate::load::MOST_OUTSTANDING;
use crate::prelude::*;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use wiregauge_base::threads;
use wiregauge_clock::AnyClock;
use wiregauge_host::ResourceUse;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::waiter::AnyWaiter;
use wiregauge_transport::SetupError;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// A connection that works, and one that was closed; others failed with an errno.
const UP: i64 = -1;
const CLOSED: i64 = -2;

/// A reply: the low half of its number, its length, whether it is broken, and when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenReply {
    pub low: u32,
    pub length: u32,
    pub broken: bool,
    pub receive: Ticks,
}

/// The end of a thread that takes replies.
pub struct ReplyProducer {
    ring: Producer<SeenReply>,
    link: Arc<AtomicI64>,
}

/// The end of its port. The thread that takes replies ends when it looks after this is dropped.
pub struct ReplyConsumer {
    ring: Consumer<SeenReply>,
    link: Arc<AtomicI64>,
}

/// The two ends of what a thread that takes replies hands over to its port.
pub fn handover() -> (ReplyProducer, ReplyConsumer) {
    let (mut put, mut take) = RingBuffer::new(MOST_OUTSTANDING as usize);
    // Each page is touched here: in the loop the first touch would be a fault.
    let none = SeenReply { low: 0, length: 0, broken: false, receive: Ticks(0) };
    while put.push(none).is_ok() {}
    while take.pop().is_ok() {}
    let link = Arc::new(AtomicI64::new(UP));
    (ReplyProducer { ring: put, link: Arc::clone(&link) }, ReplyConsumer { ring: take, link })
}

impl ReplyProducer {
    /// Puts one in. Where there is no room the port is far behind, and it is waited for.
    #[inline]
    fn put(&mut self, seen: SeenReply) {
        while self.ring.push(seen).is_err() && !self.ring.is_abandoned() {
            std::hint::spin_loop();
        }
    }

    /// Says so where a connection works no more; whether it does.
    fn works(&self, link: Link) -> bool {
        let says = |word| self.link.store(word, Ordering::Release);
        match link {
            Link::Up => return true,
            Link::Closed => says(CLOSED),
            Link::Failed(errno) => says(errno.into()),
        }
        false
    }
}

impl ReplyConsumer {
    /// Takes the oldest out.
    #[inline]
    pub(super) fn take(&mut self) -> Option<SeenReply> {
        self.ring.pop().ok()
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        match self.link.load(Ordering::Acquire) {
            UP => None,
            CLOSED => Some(Ended::Closed),
            errno => Some(Ended::Failed(errno as i32)),
        }
    }
}

/// The loop of a thread that takes replies, until the port has ended or a connection has.
///
/// A sleep comes back now and then by itself, so that the end is noticed (`EndpointSet::watched`).
pub fn receiver<E: Endpoint, C: Clock>(
    set: &mut EndpointSet<E>,
    mut waiter: AnyWaiter,
    clock: C,
    plan: &Loop,
    mut replies: ReplyProducer,
) {
    let mut events = Events::default();
    let mut sleepy = clock.now() + waiter.spin();
    let mut works = true;
    while works && !replies.ring.is_abandoned() {
        let mut any = false;
        let sleeps = waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= sleepy);
        set.look(sleeps, |_, endpoint, sleeps| {
            waiter.attempt(sleeps, endpoint, &mut events);
            if !events.arrivals().is_empty() {
                any = true;
                let receive = clock.now();
                for arrival in events.arrivals() {
                    let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
                    let head = head_of(message);
                    let broken = plan.check && !payload::verify(message, head);
                    let (low, length) = (head as u32, arrival.length);
                    replies.put(SeenReply { low, length, broken, receive });
                }
            }
            works &= replies.works(events.link);
            endpoint_set::left(&events, 0)
        });
        if any && waiter.spin().0 > 0 {
            sleepy = clock.now() + waiter.spin();
        }
    }
}

/// A round for a thread that takes replies, told when it begins.
pub struct Receiving {
    /// The way to wait for a reply.
    pub waiter: AnyWaiter,
    /// The clock that stamps replies.
    pub clock: AnyClock,
    /// The case in ticks.
    pub plan: Loop,
    /// The way to the port.
    pub replies: ReplyProducer,
}

/// A thread that takes replies: it waits for the round to begin, because during the round one that
/// the system refuses would be too late.
pub struct ReceiverThread {
    begins: Sender<Receiving>,
    thread: JoinHandle<ResourceUse>,
}

impl ReceiverThread {
    /// Starts one over its share of the connections, on this CPU.
    ///
    /// # Errors
    /// The system starts no further thread.
    pub fn start(mut share: Endpoints, cpu: Option<u32>) -> Result<ReceiverThread, SetupError> {
        let (begins, round) = mpsc::channel::<Receiving>();
        let thread = threads::spawn("take the replies", move || {
            cpu.inspect(|cpu| drop(wiregauge_host::pin_to(*cpu)));
            wiregauge_host::prefault();
            // A round that fails before it begins drops the other end.
            let Ok(Receiving { waiter, clock, plan, replies }) = round.recv() else {
                return ResourceUse::default();
            };
            let used = ResourceUse::of_thread();
            receiver(&mut share, waiter, clock, &plan, replies);
            ResourceUse::of_thread().since(&used)
        });
        let thread = thread.map_err(|error| SetupError::Refused(error.to_string()))?;
        Ok(ReceiverThread { begins, thread })
    }

    /// Begins the round.
    pub fn begin(&self, round: Receiving) {
        let _ = self.begins.send(round);
    }

    /// Waits for its end, which that of the round's [`ReplyConsumer`] brings about; returns what it
    /// used, unless it panicked.
    pub fn join(self) -> Option<ResourceUse> {
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_no_room_ends_with_the_port() {
        let (mut replies, mut given) = handover();
        let one = SeenReply { low: 1, length: 8, broken: false, receive: Ticks(1) };
        (0..MOST_OUTSTANDING).for_each(|_| replies.put(one));
        let all: Vec<SeenReply> = std::iter::from_fn(|| given.take()).collect();
        assert_eq!(all, vec![one; MOST_OUTSTANDING as usize]);
        (0..MOST_OUTSTANDING).for_each(|_| replies.put(one));
        drop(given);
        replies.put(SeenReply { low: 2, ..one });
        assert_eq!(replies.ring.slots(), 0);
    }

    #[test]
    fn how_a_connection_ended_is_told() {
        let (replies, given) = handover();
        assert!(replies.works(Link::Up));
        assert_eq!(given.ended(), None);
        assert!(!replies.works(Link::Failed(104)));
        assert_eq!(given.ended(), Some(Ended::Failed(104)));
        assert!(!replies.works(Link::Closed));
        assert_eq!(given.ended(), Some(Ended::Closed));
    }
}
