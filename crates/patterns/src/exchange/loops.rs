//! The loop of a node: sends by slots or as fast as its queues take it, and receives from all.
//!
//! Between the stamp of a send and the post lies the header of the message; between the arrival of
//! messages and their stamp lies the poll that found them.

use super::lengths::{HEADER, Lengths};
use super::slots::Slots;
use crate::prelude::*;
use wiregauge_measure::loops::waiter::{AnyWaiter, POLLS};
use wiregauge_transport::Arrival;
use wiregauge_transport::endpoint_set::{self, EndpointSet, Left};

/// In the number of a message: it is the last of its connection and carries nothing.
const LAST: u64 = 1 << 63;

/// The number of a connection that is not there.
const NOBODY: u32 = u32::MAX;
/// Longest sleep: then a node looks whether its time is up.
const NAP: Span = Span(5_000_000);
/// Nothing sleeps for less before a slot: a wake-up takes longer, and would only make it later.
const SHORTEST_NAP: Span = Span(2_000);

/// What a node knows of an exchange before it begins.
pub struct NodePlan {
    /// Its rank.
    pub rank: u32,
    /// Who sends to whom in which slot.
    pub slots: Slots,
    /// Length of a slot; `None`: every queue is kept full.
    pub slot: Option<TickSpan>,
    /// The scale of the clock, with which what is left until a slot becomes a sleep.
    pub ns_per_tick: f64,
    /// Whether a send is left out whose slot is over or whose queue is full.
    pub skips_late: bool,
    /// Whether it gives its CPU to another node where nothing has happened.
    pub yields: bool,
    /// From one message of a connection that is recorded to the next.
    pub stride: u64,
    /// Time from the begin that is left out of the figures.
    pub warmup: TickSpan,
    /// The agreed begin.
    pub begin: Ticks,
    /// The ranks of the nodes that it is connected to, and the lengths of the messages to each.
    pub peers: Vec<(u32, Lengths)>,
}

/// A connection to another node.
struct Peer {
    rank: u32,
    /// Whether anything is sent to it.
    is_sent_to: bool,
    flow: Flow,
    lengths: Lengths,
    /// The number of the next message that is to come.
    next: u64,
    /// Messages that have come since the last that was recorded.
    in_stride: u64,
    /// Whether the last message was posted, and whether the last of the other has come.
    has_ended: bool,
    is_over: bool,
}

/// A node while it runs.
struct Node<'a, C> {
    own: &'a NodePlan,
    scope: Scope<'a, C>,
    peers: Box<[Peer]>,
    /// The number of the connection to each rank, up to the last that has one.
    numbers: Box<[u32]>,
    /// Rows that have been written.
    rows: u64,
    /// The next slot, its begin, and whether its send waits for room.
    slot: u64,
    due: Ticks,
    is_held_up: bool,
    /// The node that is served first in a turn.
    first: usize,
    /// When the warm-up and the sending end.
    warm: Ticks,
    end: Ticks,
    /// When something came last.
    heard: Ticks,
}

/// Runs a node.
pub fn node<E: Endpoint, C: Clock>(
    own: &NodePlan,
    context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
) -> Ended {
    let LoopContext { endpoint: set, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut node = Node::new(own, set, Scope { clock, gate, plan });
    let mut events = Events::default();
    let (mut turns, mut sleepy) = (0u32, own.begin);
    loop {
        let now = clock.now();
        let posted = match now < node.end {
            true if own.slot.is_some() => node.send_due(set, now, recorder),
            true => node.send_all(set, recorder),
            false => node.say_last(set, recorder),
        };
        let (any, link) = node.look(set, &mut waiter, &mut events, recorder);
        recorder.handled(recorder.seen.sent + recorder.seen.received);
        if let Some(ended) = link {
            return ended;
        }
        if now >= node.end && node.is_over(now) {
            recorder.seen.unsent += node.not_sent();
            return Ended::Time;
        }
        turns = if any || posted { 0 } else { turns + 1 };
        if turns > 0 && waiter.sleeps() {
            let nap = match own.slot {
                Some(_) => node.until_slot(waiter.spin()),
                None => (waiter.spin().0 == 0 || now >= sleepy).then_some(NAP),
            };
            if let Some(nap) = nap {
                let peers = &node.peers;
                set.sleep(nap, |end| peers.get(end).is_some_and(Peer::is_sending));
            }
        } else if turns == 0 {
            sleepy = now + waiter.spin();
        } else if own.yields {
            std::thread::yield_now();
        }
        if (turns >= POLLS || waiter.sleeps() || any) && gate.is_stopped() {
            return Ended::Stopped;
        }
        turns %= POLLS;
    }
}

impl<'a, C: Clock> Node<'a, C> {
    fn new<E: Endpoint>(own: &'a NodePlan, set: &EndpointSet<E>, scope: Scope<'a, C>) -> Self {
        let peer = |(end, &(rank, lengths)): (&E, &(u32, Lengths))| Peer {
            rank,
            is_sent_to: own.slots.sends(own.rank, rank),
            flow: Flow::through(end, scope.plan),
            lengths,
            next: 0,
            in_stride: 0,
            has_ended: false,
            is_over: false,
        };
        let time = scope.plan.time.unwrap_or(TickSpan(0));
        let ranks = own.peers.iter().map(|(rank, _)| *rank as usize + 1).max().unwrap_or(0);
        let mut numbers = vec![NOBODY; ranks].into_boxed_slice();
        for (number, (rank, _)) in (0..).zip(&own.peers) {
            numbers[*rank as usize] = number;
        }
        Node {
            own,
            scope,
            peers: set.ends.iter().zip(&own.peers).map(peer).collect(),
            numbers,
            rows: 0,
            slot: 0,
            due: own.begin,
            is_held_up: false,
            first: 0,
            warm: own.begin + own.warmup,
            end: own.begin + own.warmup + time,
            heard: own.begin,
        }
    }

    /// Fills every queue, each time another one first; whether anything was posted.
    #[inline(always)]
    fn send_all<E: Endpoint>(
        &mut self,
        set: &mut EndpointSet<E>,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let count = self.peers.len();
        let mut any = false;
        for turn in 0..count {
            let number = (self.first + turn) % count;
            let mut posted = false;
            while self.peers[number].is_sent_to && self.post(set, number, Ticks(0), recorder) {
                posted = true;
            }
            if posted {
                set.ends[number].flush();
                set.stir(number);
                any = true;
            }
        }
        self.first = if self.first + 1 >= count { 0 } else { self.first + 1 };
        any
    }

    /// Posts what is due by the slots; whether anything was posted.
    #[inline(always)]
    fn send_due<E: Endpoint>(
        &mut self,
        set: &mut EndpointSet<E>,
        now: Ticks,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let Some(length) = self.own.slot else { return false };
        let mut any = false;
        while self.due <= now {
            if let Some(to) = self.own.slots.to(self.own.rank, self.slot) {
                let number = self.numbers.get(to as usize).map_or(NOBODY, |one| *one) as usize;
                let is_past = self.own.skips_late && now >= self.due + length;
                if !is_past && self.post(set, number, self.due, recorder) {
                    set.ends[number].flush();
                    set.stir(number);
                    any = true;
                } else if self.own.skips_late {
                    recorder.seen.missed_steps += 1;
                } else {
                    recorder.seen.held_up += u64::from(!self.is_held_up);
                    self.is_held_up = true;
                    return any;
                }
            }
            self.is_held_up = false;
            self.slot += 1;
            self.due = self.due + length;
        }
        any
    }

    /// How long a node may sleep that has nothing to do: until its next slot, less the time that it
    /// polls before that; a send that waits for room is woken by the room. `None`: not at all.
    fn until_slot(&self, spin: TickSpan) -> Option<Span> {
        let now = self.scope.clock.now();
        if self.is_held_up || now >= self.end {
            return Some(NAP);
        }
        let left = (self.due.min(self.end) - now).0 - spin.0;
        // Turned into nanoseconds once a sleep, as a timer does: what that is wrong by does not
        // add up, since the next sleep begins from a fresh reading.
        let left = left as f64 * self.own.ns_per_tick;
        (left >= SHORTEST_NAP.0 as f64).then(|| Span(left as u64).min(NAP))
    }

    /// Sends of slots before the end that were never posted.
    fn not_sent(&self) -> u64 {
        let (Some(length), mut due, mut missing) = (self.own.slot, self.due, 0) else { return 0 };
        let mut slot = self.slot;
        while due < self.end {
            missing += u64::from(self.own.slots.to(self.own.rank, slot).is_some());
            (slot, due) = (slot + 1, due + length);
        }
        missing
    }

    /// Posts the next message to a node, where its queue has room.
    #[inline(always)]
    fn post<E: Endpoint>(
        &mut self,
        set: &mut EndpointSet<E>,
        number: usize,
        intended: Ticks,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let (Some(peer), Some(end)) = (self.peers.get_mut(number), set.ends.get_mut(number)) else {
            return false;
        };
        if !peer.flow.has_room() {
            return false;
        }
        let (sequence, slot) = (peer.flow.sent, peer.flow.slot());
        let length = peer.lengths.of(sequence);
        let message = &mut end.payload(slot)[..length];
        if self.scope.plan.check {
            payload::fill(&mut message[HEADER..], sequence);
        }
        let stamps = [intended.0, self.scope.clock.now().0];
        write(message, sequence, stamps);
        let posted = peer.flow.post(end, slot, length);
        recorder.seen.sent += u64::from(posted);
        posted
    }

    /// Says on each connection that nothing more comes; whether anything was posted.
    fn say_last<E: Endpoint>(&mut self, set: &mut EndpointSet<E>, _: &mut Recorder<'_>) -> bool {
        let mut any = false;
        for (number, peer) in self.peers.iter_mut().enumerate() {
            if peer.has_ended || !peer.flow.has_room() {
                continue;
            }
            let (end, slot) = (&mut set.ends[number], peer.flow.slot());
            let length = peer.lengths.of(peer.flow.sent);
            write(&mut end.payload(slot)[..length], peer.flow.sent | LAST, [0, 0]);
            if peer.flow.post(end, slot, length) {
                peer.has_ended = true;
                end.flush();
                set.stir(number);
                any = true;
            }
        }
        any
    }

    /// Whether all has been sent and all that comes has come. Over a transport that loses messages
    /// the last one may be among them: what does not come for a while does not come.
    fn is_over(&self, now: Ticks) -> bool {
        let is_done = |peer: &Peer| peer.has_ended && peer.flow.outstanding() == 0;
        let all = self.peers.iter().all(is_done);
        let has_all = self.peers.iter().all(|peer| peer.is_over);
        let loses = self.scope.plan.loss_after.is_some();
        let is_quiet = now >= self.heard.max(self.end) + self.scope.plan.drain;
        all && (has_all || (loses && is_quiet))
    }

    /// Takes what has come; whether anything has happened, and why the round has to end.
    #[inline(always)]
    fn look<E: Endpoint>(
        &mut self,
        set: &mut EndpointSet<E>,
        waiter: &mut AnyWaiter,
        events: &mut Events,
        recorder: &mut Recorder<'_>,
    ) -> (bool, Option<Ended>) {
        let (mut any, mut ended) = (false, None);
        set.look(false, |number, end, sleeps| {
            waiter.attempt(sleeps, end, events);
            any |= events.any();
            let Some(peer) = self.peers.get_mut(number) else { return Left::default() };
            peer.flow.complete(events);
            if !events.arrivals().is_empty() {
                let now = self.scope.clock.now();
                self.heard = now;
                let warm = if now < self.warm { Flags::WARMUP } else { Flags::default() };
                for arrival in events.arrivals() {
                    let stride = self.own.stride;
                    let check = self.scope.plan.check;
                    let Some(stamps) = peer.take(end, arrival, check, recorder) else { continue };
                    if peer.in_stride == stride {
                        peer.in_stride = 0;
                        let [intended, submit] = stamps;
                        recorder.delivered(self.rows, [intended, submit, now], peer.rank, warm);
                        self.rows += 1;
                    }
                }
            }
            // A node that has all leaves.
            if events.link != Link::Up && !(peer.is_over && peer.has_ended) {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::left(events, peer.flow.outstanding() as u32)
        });
        (any, ended)
    }
}

impl Peer {
    /// Whether the transport still has messages to it.
    fn is_sending(&self) -> bool {
        self.flow.outstanding() > 0
    }

    /// Takes a message: the times in it, or nothing where it carries none.
    #[inline(always)]
    fn take<E: Endpoint>(
        &mut self,
        end: &mut E,
        arrival: &Arrival,
        check: bool,
        recorder: &mut Recorder<'_>,
    ) -> Option<[Ticks; 2]> {
        let message = end.message(arrival);
        let Some((number, stamps)) = read(message) else {
            recorder.seen.foreign += 1;
            return None;
        };
        if number & LAST != 0 {
            // What was lost before it is known by it.
            recorder.seen.gaps += (number & !LAST).saturating_sub(self.next);
            self.next = self.next.max(number & !LAST);
            self.is_over = true;
            return None;
        }
        if number >= self.next {
            recorder.seen.gaps += number - self.next;
            self.next = number + 1;
        } else {
            recorder.seen.reordered += 1;
        }
        if check && !payload::verify(message.get(HEADER..).unwrap_or_default(), number) {
            recorder.seen.corrupt += 1;
        }
        recorder.seen.received += 1;
        self.in_stride += 1;
        Some(stamps)
    }
}

/// Writes the header of a message: its number, the intended time and the submit.
#[inline(always)]
fn write(message: &mut [u8], number: u64, [intended, submit]: [u64; 2]) {
    if let Some(head) = message.first_chunk_mut::<HEADER>() {
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..16].copy_from_slice(&intended.to_le_bytes());
        head[16..].copy_from_slice(&submit.to_le_bytes());
    }
}

/// Reads it; `None`: the message is too short to have one.
#[inline(always)]
fn read(message: &[u8]) -> Option<(u64, [Ticks; 2])> {
    let head = message.first_chunk::<HEADER>()?;
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&head[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    Some((word(0), [Ticks(word(8)), Ticks(word(16))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let mut message = [7; 30];
        write(&mut message, LAST | 5, [11, 13]);
        assert_eq!(read(&message), Some((LAST | 5, [Ticks(11), Ticks(13)])));
        assert_eq!(message[HEADER..], [7; 6]);
        assert_eq!(read(&message[..23]), None);
    }
}
