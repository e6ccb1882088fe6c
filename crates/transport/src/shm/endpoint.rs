//! The data path of `shm`: messages into one ring, and out of the other.

use super::region::{Region, Ring};
use super::ring::{Consumer, Doorbell, Producer, Slots};
use crate::{
    Arrival, Endpoint, Events, Link, MOST_EVENTS, Polled, PostList, Posted, Setup, Slot, Traffic,
};
use rustix::thread::futex;
use std::sync::Arc;

/// A connected end.
pub struct ShmEndpoint {
    producer: Producer<Ring>,
    consumer: Consumer<Ring>,
    size: usize,
    slots: u32,
    outgoing: Box<[u8]>,
    /// Messages that the last poll took out, and how many it may take.
    incoming: Box<[u8]>,
    batch: usize,
    /// Messages whose completion has been reported.
    reported: u64,
    /// Pauses of a poll that finds nothing of a stream: a receiver that looks all the time takes
    /// the cache lines away that the sender is about to write, and both crawl.
    lull: u32,
    /// Messages taken after which the consumer's position is published at once. Half of the ring
    /// for a ping-pong: an answer would wait for the cache line, so [`ShmEndpoint::tidy_up`]
    /// publishes.
    publish_after: u64,
    /// Whether the other end may sleep and must be rung.
    rings: bool,
    /// Messages that had been handed over at the last ring, and whether the consumer's position was
    /// published since.
    rung: u64,
    published: bool,
    /// Whether a post found no room: then a sleep ends when there is room.
    crowded: bool,
    region: Arc<Region>,
    side: usize,
}

/// Pauses (about 40 cycles each) of a stream's poll that found nothing: in so long a sender writes
/// some tens of cells, which is what makes reading them a stream, too.
const LULL: u32 = 16;

/// Memory for the messages that one poll takes out: a cache's worth.
const BATCH_BYTES: usize = 256 << 10;

impl ShmEndpoint {
    /// The end of this role over mapped memory.
    pub(super) fn new(region: Arc<Region>, setup: &Setup) -> ShmEndpoint {
        let side = setup.role.pick(0, 1);
        let size = setup.size.max(1);
        let slots = (setup.window as usize).clamp(1, MOST_EVENTS);
        let is_echo = matches!(setup.traffic, Traffic::Echo { .. });
        // An echo's window is all that can arrive at once; more would only mispredict branches.
        let most = if is_echo { slots } else { MOST_EVENTS };
        let batch = (BATCH_BYTES / size).clamp(1, most);
        ShmEndpoint {
            producer: Producer::new(Ring::of(&region, side)),
            consumer: Consumer::new(Ring::of(&region, 1 - side)),
            size,
            slots: slots as u32,
            outgoing: vec![1; slots * size].into_boxed_slice(),
            incoming: vec![1; batch * size].into_boxed_slice(),
            batch,
            reported: 0,
            lull: if is_echo { 0 } else { LULL },
            publish_after: region.layout.cells / if is_echo { 2 } else { 4 },
            rings: setup.wait.sleeps(),
            rung: 0,
            published: false,
            crowded: false,
            region,
            side,
        }
    }

    /// Takes what has arrived.
    #[inline(always)]
    fn take(&mut self, events: &mut Events) {
        let most = self.batch.min(events.most());
        let took = |place, message: &[u8]| {
            events.place(place, Slot::arrived(place as u32), message.len() as u32);
        };
        let taken = self.consumer.pop(&mut self.incoming, self.size, most, took);
        events.placed(taken);
        self.published |= self.consumer.publish(self.publish_after);
    }

    /// A poll where nothing has arrived.
    #[inline(always)]
    fn idle(&mut self, events: &mut Events) -> bool {
        events.placed(0);
        if self.complete(events) {
            self.tidy_up();
            self.flush();
            return true;
        }
        for _ in 0..self.lull {
            std::hint::spin_loop();
        }
        false
    }

    /// What has completed: all that was handed over.
    #[inline(always)]
    fn completed(&mut self) -> u32 {
        let sent = self.producer.sent();
        let completed = (sent - self.reported) as u32;
        self.reported = sent;
        completed
    }

    /// Reports what has completed; whether there was anything.
    #[inline(always)]
    fn complete(&mut self, events: &mut Events) -> bool {
        events.completed = self.completed();
        events.completed != 0
    }

    /// Does what would cost time later, after a message was sent and before the next arrives. The
    /// sender of a stream has no such idle time: it would await the cache line once a window, and
    /// does so once a lap.
    #[inline(always)]
    fn tidy_up(&mut self) {
        self.published |= self.consumer.publish(self.publish_after / 2);
        if self.lull == 0 {
            self.producer.look_ahead();
        }
    }
}

impl Endpoint for ShmEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.slots
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        &mut memory[at..at + self.size]
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &self.incoming } else { &self.outgoing };
        if !self.producer.push(&memory[at..at + length]) {
            self.crowded = true;
            return Posted::Full;
        }
        Posted::Accepted
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.rings && (self.published || self.rung != self.producer.sent()) {
            self.rung = self.producer.sent();
            self.published = false;
            if Doorbell(self.region.doorbell(1 - self.side)).must_ring() {
                let word = self.region.doorbell(1 - self.side);
                // A wake that fails has nobody to wake.
                let _ = futex::wake(word, futex::Flags::empty(), 1);
            }
        }
    }

    #[inline(always)]
    fn post_list(
        &mut self,
        list: &mut PostList,
        most: u64,
        mut write: impl FnMut(&mut [u8], u64),
    ) -> u64 {
        let mut posted = 0;
        while posted < most {
            // A flush rings for an end that sleeps. Where none does, all messages go as one list.
            let chunk = if self.rings { list.burst - list.unflushed } else { most };
            let mut slots =
                Slots { memory: &mut self.outgoing, size: self.size, next: list.slot as usize };
            let chunk = chunk.min(most - posted);
            let of_list = |slot: &mut [u8], place| write(slot, posted + place);
            let pushed = self.producer.push_each(&mut slots, list.length, chunk, of_list);
            if pushed == 0 {
                self.crowded = true;
                break;
            }
            list.slot = slots.next as u32;
            posted += pushed;
            if self.rings {
                list.unflushed += pushed;
                if list.unflushed == list.burst {
                    list.unflushed = 0;
                    self.flush();
                }
            }
        }
        posted
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        if !self.consumer.is_ready() {
            return self.idle(events);
        }
        self.take(events);
        self.complete(events);
        self.flush();
        true
    }

    #[inline(always)]
    fn poll_each(&mut self, events: &mut Events, mut take: impl FnMut(&[u8])) -> bool {
        if !self.consumer.is_ready() {
            return self.idle(events);
        }
        let most = self.batch.min(events.most());
        self.consumer.pop(&mut self.incoming, self.size, most, |_, message| take(message));
        events.placed(0);
        self.published |= self.consumer.publish(self.publish_after);
        self.complete(events);
        self.flush();
        true
    }

    #[inline(always)]
    fn poll_one(&mut self, _: &mut Events) -> Polled {
        let taken = self.consumer.pop_one(&mut self.incoming[..self.size]);
        let completed = self.completed();
        let arrival = taken.map(|length| Arrival { slot: Slot::arrived(0), length: length as u32 });
        if arrival.is_some() {
            self.published |= self.consumer.publish(self.publish_after);
        } else if completed != 0 {
            self.tidy_up();
        } else {
            return Polled::default();
        }
        self.flush();
        Polled { arrival, completed, link: Link::Up }
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        if self.poll(events) {
            return;
        }
        let word = self.region.doorbell(self.side);
        let doorbell = Doorbell(word);
        doorbell.about_to_sleep();
        let crowded = std::mem::take(&mut self.crowded);
        let can_go_on = self.consumer.is_ready() || (crowded && self.producer.has_room());
        if !can_go_on {
            // EAGAIN: rung in between. EINTR: a signal, as the contract allows.
            let _ = futex::wait(word, futex::Flags::empty(), 1, None);
        }
        doorbell.awake();
        self.take(events);
        self.complete(events);
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::Layout;
    use super::*;
    use crate::{Role, Wait};

    /// Both ends of a stream in this process; the messages of 8 B go from the first to the second.
    fn ends(wait: Wait) -> (ShmEndpoint, ShmEndpoint) {
        let setup = |role| Setup { window: 3, ..Setup::new(role, Traffic::Forward, wait, 8) };
        let region = Region::create(Layout::of(&setup(Role::Client))).unwrap();
        let end = |role| ShmEndpoint::new(Arc::clone(&region), &setup(role));
        (end(Role::Client), end(Role::Server))
    }

    fn list(burst: u64) -> PostList {
        PostList { length: 8, burst, slot: 0, unflushed: 0 }
    }

    /// Posts a list of numbered messages; how many were taken.
    fn post(end: &mut ShmEndpoint, list: &mut PostList, first: u64, most: u64) -> u64 {
        end.post_list(list, most, |slot, place| {
            slot.copy_from_slice(&(first + place).to_le_bytes());
        })
    }

    /// Takes what one poll finds.
    fn taken(end: &mut ShmEndpoint) -> Vec<u64> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        let any = end.poll_each(&mut events, |message| {
            found.push(u64::from_le_bytes(message.try_into().unwrap()));
        });
        assert_eq!((any, events.arrivals().len()), (!found.is_empty(), 0));
        found
    }

    #[test]
    fn a_list_is_posted_as_far_as_there_is_room_and_completes() {
        let (mut sender, mut receiver) = ends(Wait::Busy);
        let (mut list, mut events) = (list(1), Events::default());
        assert_eq!(post(&mut sender, &mut list, 0, 5), 5);
        assert_eq!(list.slot, 2, "three slots, one after the other");
        assert!(sender.poll(&mut events));
        assert_eq!((events.completed, events.arrivals().len()), (5, 0));
        assert_eq!(post(&mut sender, &mut list, 5, 1000), 251, "of 256 cells");
        assert_eq!(post(&mut sender, &mut list, 256, 1), 0);
        assert!(sender.poll(&mut events));
        assert_eq!(events.completed, 251);
        let found: Vec<u64> = (0..4).flat_map(|_| taken(&mut receiver)).collect();
        assert_eq!(found, (0..256).collect::<Vec<u64>>());
        assert!(taken(&mut receiver).is_empty());
        assert_eq!(post(&mut sender, &mut list, 256, 1), 1);
        assert_eq!(taken(&mut receiver), [256]);
    }

    #[test]
    fn messages_are_handed_over_and_named_alike() {
        let (mut sender, mut receiver) = ends(Wait::Busy);
        let (mut list, mut events) = (list(1), Events::default());
        events.limit(2);
        assert_eq!(post(&mut sender, &mut list, 0, 4), 4);
        let mut found = Vec::new();
        assert!(receiver.poll_each(&mut events, |message| found.push(message[0])));
        assert_eq!(found, [0, 1], "no more than the events may have");
        assert!(receiver.poll(&mut events));
        let named: Vec<u8> = events.arrivals().iter().map(|at| receiver.message(at)[0]).collect();
        assert_eq!(named, [2, 3]);
    }

    /// What one poll finds of messages of these lengths in slots of `size` bytes; all were sent.
    fn found_of(size: usize, lengths: &[usize]) -> Vec<Vec<u8>> {
        let setup =
            |role| Setup { window: 8, ..Setup::new(role, Traffic::Forward, Wait::Busy, size) };
        let region = Region::create(Layout::of(&setup(Role::Client))).unwrap();
        let end = |role| ShmEndpoint::new(Arc::clone(&region), &setup(role));
        let (mut sender, mut receiver) = (end(Role::Client), end(Role::Server));
        for (number, length) in lengths.iter().enumerate() {
            let slot = Slot::sending(number as u32);
            for (at, byte) in sender.payload(slot).iter_mut().enumerate() {
                *byte = (at + 100 * number) as u8;
            }
            assert_eq!(sender.post(slot, *length), Posted::Accepted);
        }
        let (mut events, mut found) = (Events::default(), Vec::new());
        receiver.poll_each(&mut events, |message| found.push(message.to_vec()));
        found
    }

    #[test]
    fn messages_of_other_lengths_come_between_those_that_fill_their_slots() {
        for size in [8, 9, 16, 64, 100] {
            let lengths = [size, 3, size, size, 0, 8, size - 1, size];
            let sent = lengths.iter().enumerate().map(|(number, length)| {
                (0..*length).map(|at| (at + 100 * number) as u8).collect::<Vec<u8>>()
            });
            assert_eq!(found_of(size, &lengths), sent.collect::<Vec<_>>(), "slots of {size} B");
        }
    }

    #[test]
    fn an_end_that_sleeps_is_rung_after_a_burst_and_not_before() {
        let (mut sender, receiver) = ends(Wait::Block);
        let mut list = list(2);
        let sleeps = || receiver.region.doorbell(1).load(std::sync::atomic::Ordering::Relaxed) == 1;
        Doorbell(receiver.region.doorbell(1)).about_to_sleep();
        assert_eq!(post(&mut sender, &mut list, 0, 1), 1);
        assert_eq!((sleeps(), list.unflushed), (true, 1));
        assert_eq!(post(&mut sender, &mut list, 1, 2), 2);
        assert_eq!((sleeps(), list.unflushed), (false, 1));
    }
}
