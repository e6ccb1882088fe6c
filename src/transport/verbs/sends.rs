//! Handing a list of sends to the adapter, and learning of those that make no completion.

use super::endpoint::{NUDGE, VerbsEndpoint};
use super::options::Service;
use crate::transport::Link;
use fabric_sys::verbs::inline;
use fabric_sys::verbs::types::*;

impl VerbsEndpoint {
    /// Sends that are on their way unsignalled would never be heard of: a signalled nothing after
    /// them tells.
    #[cold]
    pub(super) fn nudge(&mut self) {
        let is_tail = self.posted - self.staged as u64 > self.retired && !self.awaits_send();
        if self.shape.inline || !is_tail || self.shape.service == Service::Ud {
            return;
        }
        let mut nothing = ibv_send_wr {
            wr_id: NUDGE,
            opcode: IBV_WR_RDMA_WRITE,
            send_flags: IBV_SEND_SIGNALED,
            ..ibv_send_wr::default()
        };
        nothing.wr.rdma.remote_addr = self.other.memory;
        nothing.wr.rdma.rkey = self.other.key;
        let mut bad = std::ptr::null_mut();
        // SAFETY: a live queue pair and a list of one without memory.
        let error = unsafe { inline::post_send(self.qp.raw(), &mut nothing, &mut bad) };
        self.nudged = error == 0;
    }

    /// The state of the link after a call that posts.
    #[cold]
    pub(super) fn refuse(&mut self, errno: i32) {
        self.link = Link::Failed(errno);
    }

    /// Hands the list to `ibv_post_send`.
    #[inline(always)]
    pub(super) fn ring_classic(&mut self) -> i32 {
        let last = self.staged - 1;
        let lists = &mut *self.lists;
        for number in 0..last {
            lists.sends[number].next = &mut lists.sends[number + 1];
        }
        lists.sends[last].next = std::ptr::null_mut();
        let mut bad = std::ptr::null_mut();
        // SAFETY: a live queue pair; the list was linked just now, and its memory is registered and
        // left alone until the send completes.
        unsafe { inline::post_send(self.qp.raw(), &mut lists.sends[0], &mut bad) }
    }
}
