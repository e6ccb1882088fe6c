//! What a poll has found: messages that have arrived, posts that have completed, and the state of
//! the connection.

use super::{MOST_EVENTS, Slot};

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Its slot: readable, and postable (an echo), until the next poll or wait.
    pub slot: Slot,
    /// Its length in bytes.
    pub length: u32,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Works.
    #[default]
    Up,
    /// The other end has closed it.
    Closed,
    /// It failed with this errno.
    Failed(i32),
}

/// The events of one poll, in fixed memory that is reused.
#[derive(Debug)]
pub struct Events {
    arrivals: [Arrival; MOST_EVENTS],
    arrived: usize,
    most: usize,
    /// Posts that have completed since the last poll, in the order of posting. Their slots may be
    /// written again.
    pub completed: u32,
    /// The state of the connection.
    pub link: Link,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            arrivals: [Arrival::default(); MOST_EVENTS],
            arrived: 0,
            most: MOST_EVENTS,
            completed: 0,
            link: Link::Up,
        }
    }
}

impl Events {
    /// Clears the events of the previous poll. A transport's poll begins with it.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.arrived = 0;
        self.completed = 0;
    }

    /// Sets how many messages a poll may hand over from now on (default [`MOST_EVENTS`]). With 0 it
    /// brings only completions, and a later poll brings what has arrived.
    #[inline(always)]
    pub fn limit(&mut self, most: usize) {
        self.most = most.min(MOST_EVENTS);
    }

    /// How many messages a poll may hand over.
    #[inline(always)]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Adds a message that has arrived. The caller ensures that there is room.
    #[inline(always)]
    pub fn arrive(&mut self, slot: Slot, length: u32) {
        if let Some(place) = self.arrivals.get_mut(self.arrived) {
            *place = Arrival { slot, length };
            self.arrived += 1;
        }
    }

    /// Sets arrival number `place`; [`Self::placed`] then sets how many there are. For transports
    /// that count in a register.
    #[inline(always)]
    pub fn place(&mut self, place: usize, slot: Slot, length: u32) {
        if let Some(free) = self.arrivals.get_mut(place) {
            *free = Arrival { slot, length };
        }
    }

    /// Sets the number of arrivals after [`Self::place`].
    #[inline(always)]
    pub fn placed(&mut self, arrived: usize) {
        self.arrived = arrived.min(MOST_EVENTS);
    }

    /// Whether no further arrival fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.arrived >= self.most
    }

    /// The messages that have arrived, oldest first.
    #[inline(always)]
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals[..self.arrived]
    }

    /// Whether there is any event.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.arrived != 0 || self.completed != 0 || self.link != Link::Up
    }
}

/// What one poll has found where at most one message is to come: small enough for registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polled {
    /// The message that has arrived.
    pub arrival: Option<Arrival>,
    /// As [`Events::completed`].
    pub completed: u32,
    /// The state of the connection. Where a message has arrived, the next poll may say it.
    pub link: Link,
}

impl Polled {
    /// The first of these events.
    #[inline(always)]
    pub fn first_of(events: &Events) -> Polled {
        let arrival = events.arrivals().first().copied();
        Polled { arrival, completed: events.completed, link: events.link }
    }

    /// Whether there is any event.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.arrival.is_some() || self.completed != 0 || self.link != Link::Up
    }
}
