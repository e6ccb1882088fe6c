//! Taking completions: of receives, which are arrivals, and of sends.

use super::credits::TELLS;
use super::endpoint::VerbsEndpoint;
use super::memory::GRH;
use super::options::CallStyle;
use super::queues::Queues;
use super::resources::CompletionQueue;
use crate::{Events, Link, MOST_EVENTS, Operation, Slot};
use fabric_sys::verbs::inline;
use fabric_sys::verbs::types::*;
use std::ffi::c_int;

impl VerbsEndpoint {
    /// Takes completions of receives.
    #[inline(always)]
    pub(super) fn receive(&mut self, events: &mut Events) {
        let Some(found) = self.poll_queue(|queues| &queues.receive, events.most()) else { return };
        let header = if self.has_header() { GRH as u32 } else { 0 };
        for number in 0..found {
            let completion = &self.lists.completions[number];
            if completion.status != IBV_WC_SUCCESS {
                self.failed(number, "receive");
                continue;
            }
            let slot = completion.wr_id as u32;
            self.handed[self.handed_count] = slot;
            if let Some(numbers) = &mut self.numbers {
                // SAFETY: the member of both views is a number; only of a send with an immediate
                // value it is looked at.
                let immediate = unsafe { completion.__bindgen_anon_1.imm_data };
                numbers.note(self.handed_count, u32::from_be(immediate));
            }
            self.handed_count += 1;
            let length = match self.config.operation {
                // The message lies where the immediate value says, and not where the receive was.
                Operation::WriteImm => {
                    // SAFETY: a receive with an immediate value has it in this member.
                    let immediate = u32::from_be(unsafe { completion.__bindgen_anon_1.imm_data });
                    let at = immediate as usize % self.memory.layout.arriving;
                    let whole = self.memory.layout.size as u32;
                    let length = match self.config.has_many_lengths {
                        true => completion.byte_len.min(whole),
                        false => whole,
                    };
                    events.arrive(Slot::arrived(at as u32), length);
                    continue;
                }
                _ => completion.byte_len.saturating_sub(header),
            };
            events.arrive(Slot::arrived(slot), length);
        }
    }

    /// Takes completions of sends.
    #[inline(always)]
    pub(super) fn reap(&mut self) {
        let Some(found) = self.poll_queue(|queues| &queues.send, MOST_EVENTS) else { return };
        for number in 0..found {
            let completion = &self.lists.completions[number];
            if completion.status != IBV_WC_SUCCESS {
                self.failed(number, self.config.operation.name());
            } else if let Some(credits) = &mut self.credits
                && completion.wr_id == TELLS
            {
                credits.is_telling = false;
            } else {
                self.order.completed(completion.wr_id);
                if let Some(stamps) = &mut self.queues.stamps {
                    stamps.keep(completion.wr_id, self.lists.stamps[number]);
                }
            }
        }
        if found > 0 {
            self.order.settle();
        }
    }

    /// Takes at most `most` completions of a queue into the list; how many.
    #[inline(always)]
    fn poll_queue(&mut self, queue: fn(&Queues) -> &CompletionQueue, most: usize) -> Option<usize> {
        if most == 0 {
            return Some(0);
        }
        let polling = self.config.polling;
        let queue = queue(&self.queues);
        let into = &mut self.lists.completions[..most];
        let stamps = &mut self.lists.stamps[..most];
        let found = match polling {
            // SAFETY: a live queue, and room for as many completions.
            CallStyle::Classic => unsafe {
                inline::poll_cq(queue.raw(), most as c_int, into.as_mut_ptr())
            },
            CallStyle::Extended => queue.poll_extended(into, stamps),
        };
        if found < 0 {
            self.link = Link::Failed(-found);
            return None;
        }
        Some((found as usize).min(most))
    }

    /// Reads the device's async events. A device that can no longer be asked is gone.
    #[cold]
    pub(super) fn read_async_events(&mut self) {
        while let Some(event) = self.queues.receive.channel().parent.event() {
            let link = match event {
                Ok(event) => self.errors.async_event(event),
                Err(_) => Link::Failed(libc::ENODEV),
            };
            if self.link == Link::Up {
                self.link = link;
            }
            if event.is_err() {
                return;
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn failed(&mut self, number: usize, what: &'static str) {
        let link = self.errors.note(what, &self.lists.completions[number]);
        if self.link == Link::Up {
            self.link = link;
        }
    }
}
