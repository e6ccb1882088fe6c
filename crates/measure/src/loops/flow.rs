//! The bookkeeping of a sender: which slot is free, and how far the posts have completed.

use super::gate::Gate;
use super::payload;
use super::waiter::Waiter;
use super::{Ended, Loop, Scope};
use wiregauge_clock::Clock;
use wiregauge_transport::{Endpoint, Events, Link, PostList, Posted, Slot};

/// A sender's messages, from slot to completion.
pub struct Flow {
    slots: u32,
    list: PostList,
    window: u64,
    /// Messages posted.
    pub sent: u64,
    /// Messages completed.
    pub completed: u64,
}

impl Flow {
    /// A flow through an endpoint's sending slots, as many at a time as there are.
    pub fn of<E: Endpoint>(endpoint: &E) -> Flow {
        let slots = endpoint.slots();
        let list = PostList { length: 0, burst: 1, slot: 0, unflushed: 0 };
        Flow { slots, list, window: slots.into(), sent: 0, completed: 0 }
    }

    /// The same with no more at a time than the case allows.
    pub fn through<E: Endpoint>(endpoint: &E, plan: &Loop) -> Flow {
        let flow = Flow::of(endpoint);
        Flow { window: flow.window.min(plan.window.max(1)), ..flow }
    }

    /// Messages that have been posted and not completed.
    #[inline(always)]
    pub fn outstanding(&self) -> u64 {
        self.sent - self.completed
    }

    /// Takes what a poll has found.
    #[inline(always)]
    pub fn complete(&mut self, events: &Events) {
        self.completed = (self.completed + u64::from(events.completed)).min(self.sent);
    }

    /// Whether the next message may be written and posted.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.outstanding() < self.window
    }

    /// The slot of the next message.
    #[inline(always)]
    pub fn slot(&self) -> Slot {
        Slot::sending(self.list.slot)
    }

    /// Writes the next message into its slot.
    #[inline(always)]
    pub fn write<E: Endpoint>(&self, endpoint: &mut E, plan: &Loop) -> Slot {
        let slot = self.slot();
        payload::write(endpoint.payload(slot), self.sent, plan.check);
        slot
    }

    /// Posts what was written; `false` when there is no room.
    #[inline(always)]
    pub fn post<E: Endpoint>(&mut self, endpoint: &mut E, slot: Slot, length: usize) -> bool {
        // A match, and no sum of a bool: rustc 1.95 at opt-level 3 lost `+= u64::from(accepted)`
        // here (the conformance suite, built with optimisation, saw it).
        match endpoint.post(slot, length) {
            Posted::Accepted => {
                self.sent += 1;
                self.list.slot += 1;
                if self.list.slot == self.slots {
                    self.list.slot = 0;
                }
                true
            }
            Posted::Full => false,
        }
    }

    /// Writes and posts up to `most` messages, as far as there is room, and flushes after each
    /// burst; how many were posted.
    #[inline(always)]
    pub fn post_some<E: Endpoint>(&mut self, endpoint: &mut E, plan: &Loop, most: u64) -> u64 {
        let most = most.min(self.window - self.outstanding());
        let (first, check) = (self.sent, plan.check);
        let mut list = PostList { length: plan.size, burst: plan.burst, ..self.list };
        // Told apart here, and not for each message: filling is a call, which takes registers.
        let posted = if check {
            endpoint.post_list(&mut list, most, |slot, place| payload::fill(slot, first + place))
        } else {
            endpoint.post_list(&mut list, most, |slot, place| payload::number(slot, first + place))
        };
        self.sent = first + posted;
        self.list = list;
        posted
    }

    /// One attempt to make room. `Some` when the round has to end.
    #[inline]
    pub fn make_room<E: Endpoint, W: Waiter>(
        &mut self,
        endpoint: &mut E,
        waiter: &mut W,
        events: &mut Events,
        gate: &Gate,
    ) -> Option<Ended> {
        self.list.unflushed = 0;
        endpoint.flush();
        waiter.once(endpoint, events);
        self.completed += u64::from(events.completed);
        if events.link != Link::Up {
            return Some(Ended::of(events.link));
        }
        gate.is_stopped().then_some(Ended::Stopped)
    }

    /// Sees to it that all that was posted has completed, for a while, since the other end may be
    /// gone.
    pub fn drain<E: Endpoint, W: Waiter, C: Clock>(
        &mut self,
        endpoint: &mut E,
        waiter: &mut W,
        events: &mut Events,
        Scope { clock, gate, plan }: Scope<'_, C>,
    ) -> Option<Ended> {
        let until = clock.now() + plan.drain;
        endpoint.flush();
        while self.completed < self.sent && clock.now() < until {
            // The other end may go as soon as it has all: what has completed comes first.
            let ended = self.make_room(endpoint, waiter, events, gate);
            if self.completed < self.sent && ended.is_some() {
                return ended;
            }
        }
        None
    }
}
