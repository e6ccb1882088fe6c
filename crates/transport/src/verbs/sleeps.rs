//! How an end sleeps: alone, and (through its alarm) as one of several ends of a thread.

use super::endpoint::VerbsEndpoint;
use crate::*;
use fabric_sys::verbs::inline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a poll sleeps for a send at most.
const LONGEST_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl VerbsEndpoint {
    /// Asks for an event at the next completion.
    pub(super) fn ask_for_events(&mut self) {
        // SAFETY: two live queues, each with a channel.
        let error = unsafe {
            inline::req_notify_cq(self.queues.receive.raw(), 0)
                | match self.config.reaps_busily {
                    true => 0,
                    false => inline::req_notify_cq(self.queues.send.raw(), 0),
                }
        };
        if error != 0 {
            self.refuse(error.abs());
        }
    }

    /// Whether a sleep would miss a send that completes, or the end of the link.
    pub(super) fn polls_for_sends(&self, awaits: bool) -> bool {
        self.link != Link::Up || (self.config.reaps_busily && awaits)
    }

    /// Takes the events that have been there, and asks for the next: whether there were none.
    pub(super) fn arm_after(&mut self, was_readable: bool) -> bool {
        if was_readable {
            self.queues.receive.channel().drain();
            self.read_async_events();
            self.ask_for_events();
        }
        !was_readable
    }

    /// Sleeps until an armed queue or the device has an event, or for this long.
    pub(super) fn sleep(&mut self, most: Option<Timespec>) {
        let channel = self.queues.receive.channel();
        let (completed, async_event) = (channel.descriptor(), channel.parent.events());
        let mut watched =
            [PollFd::new(&completed, PollFlags::IN), PollFd::new(&async_event, PollFlags::IN)];
        // EINTR comes back with nothing, as the contract allows.
        let _ = poll(&mut watched, most.as_ref());
        let has_async_event = !watched[1].revents().is_empty();
        channel.drain();
        if has_async_event {
            self.read_async_events();
        }
    }

    /// Sleeps until a send completes, and reports it; for a bounded time, since who polls may have
    /// something else to look at.
    #[inline(never)]
    pub(super) fn sleep_for_sends(&mut self, events: &mut Events) -> bool {
        // An event between the last poll and the arming would be missed.
        // SAFETY: a live queue with a channel.
        let error = unsafe { inline::req_notify_cq(self.queues.send.raw(), 0) };
        if error != 0 {
            self.refuse(error.abs());
        }
        let awaited = self.order.retired;
        self.reap();
        if self.order.retired == awaited && self.link == Link::Up {
            self.sleep(Some(LONGEST_SLEEP));
            self.reap();
        }
        self.report(events);
        events.any()
    }
}
