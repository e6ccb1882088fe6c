//! Posts a list of sends, and checks those that make no completion.

use super::endpoint::VerbsEndpoint;
use super::options::Service;
use crate::transport::Link;
use fabric_sys::verbs::inline;
use fabric_sys::verbs::types::*;

impl VerbsEndpoint {
    /// Checks unsignalled sends: an error makes a completion by itself, and a signalled empty send
    /// after them shows that they have completed.
    #[cold]
    pub(super) fn look_after_sends(&mut self) {
        self.reap();
        // A payload that was copied is free already, and a datagram knows no address of memory.
        if self.staged > 0 || self.queues.inline || self.config.service == Service::Ud {
            return;
        }
        let (pairs, other) = (&self.queues.pairs, &self.other);
        self.order.ask_for_tails(|pair, request| {
            let mut nothing = ibv_send_wr {
                wr_id: request,
                opcode: IBV_WR_RDMA_WRITE,
                send_flags: IBV_SEND_SIGNALED,
                ..ibv_send_wr::default()
            };
            nothing.wr.rdma.remote_addr = other.memory;
            nothing.wr.rdma.rkey = other.key;
            let mut bad = std::ptr::null_mut();
            // SAFETY: a live queue pair and a list of one without memory.
            unsafe { inline::post_send(pairs[pair].raw(), &mut nothing, &mut bad) == 0 }
        });
    }

    /// The state of the link after a call that posts.
    #[cold]
    pub(super) fn refuse(&mut self, errno: i32) {
        self.link = Link::Failed(errno);
    }

    /// The queue pair that the send at this place of the list goes to.
    #[inline(always)]
    pub(super) fn pair_of(&self, place: usize) -> usize {
        match self.queues.pairs.len() {
            1 => 0,
            count => (self.first + place) % count,
        }
    }

    /// Hands the list to `ibv_post_send`, each queue pair its share; 0 or an errno.
    #[inline(always)]
    pub(super) fn ring_classic(&mut self) -> i32 {
        let (count, staged) = (self.queues.pairs.len(), self.staged);
        let lists = &mut *self.lists;
        for number in 0..staged {
            lists.sends[number].next = match number + count < staged {
                true => &mut lists.sends[number + count],
                false => std::ptr::null_mut(),
            };
        }
        for head in 0..count.min(staged) {
            let pair = self.pair_of(head);
            let (qp, list) = (self.queues.pairs[pair].raw(), &mut self.lists.sends[head]);
            let mut bad = std::ptr::null_mut();
            // SAFETY: a live queue pair; the list was linked just now, and its memory is registered
            // and left alone until the send completes.
            let error = unsafe { inline::post_send(qp, list, &mut bad) };
            if error != 0 {
                return error;
            }
        }
        0
    }
}
