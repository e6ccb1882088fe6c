//! Posts a list of sends, and checks those that make no completion.

use super::endpoint::VerbsEndpoint;
use super::service::Service;
use crate::Link;
use fabric_sys::verbs::inline;
use fabric_sys::verbs::types::*;
use std::ops::Range;

impl VerbsEndpoint {
    /// Checks unsignalled sends, of many queue pairs some: an error makes a completion by itself,
    /// and a signalled empty send after them shows that they have completed.
    #[cold]
    pub(super) fn look_after_sends(&mut self) {
        self.reap();
        // A payload that was copied is free already; UD has no RDMA operations, and each send of
        // SRD makes a completion.
        let asks = !matches!(self.config.service, Service::Ud | Service::Srd);
        if self.staged > 0 || self.queues.inline || !asks {
            return;
        }
        let mut order = std::mem::take(&mut self.order);
        order.ask_for_tails(|pair, request| self.post_nothing(pair, request));
        self.order = order;
    }

    /// Posts a signalled work request without memory to this queue pair; whether it was taken.
    pub(super) fn post_nothing(&self, pair: usize, request: u64) -> bool {
        self.post_beside(pair, request, (self.other.memory, None))
    }

    /// Posts a signalled write beside the messages, to this place of the other end's memory;
    /// whether it was taken. What is written is registered, and left alone until it completes.
    pub(super) fn post_beside(
        &self,
        pair: usize,
        request: u64,
        (to, piece): (u64, Option<ibv_sge>),
    ) -> bool {
        if self.config.service == Service::Dc {
            return self.post_beside_extended(pair, request, (to, piece));
        }
        let mut piece = piece;
        let mut write = ibv_send_wr {
            wr_id: request,
            opcode: IBV_WR_RDMA_WRITE,
            send_flags: IBV_SEND_SIGNALED,
            num_sge: i32::from(piece.is_some()),
            sg_list: piece.as_mut().map_or(std::ptr::null_mut(), |piece| &raw mut *piece),
            ..ibv_send_wr::default()
        };
        write.wr.rdma.remote_addr = to;
        write.wr.rdma.rkey = self.other.key;
        write.qp_type.xrc.remote_srqn = self.other.shared;
        let mut bad = std::ptr::null_mut();
        // SAFETY: a live queue pair and a list of one, whose piece the call copies; what it names
        // is registered.
        unsafe { inline::post_send(self.queues.pairs[pair].raw(), &mut write, &mut bad) == 0 }
    }

    /// The same of all queue pairs, however many, before a sleep that they are to end.
    #[cold]
    pub(super) fn look_after_all_sends(&mut self) {
        for _ in 0..self.order.looks() {
            self.look_after_sends();
        }
    }

    /// The state of the link after a call that posts.
    #[cold]
    #[inline(never)]
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
        // The last of each share ends its list.
        for send in &mut self.lists.sends[staged.saturating_sub(count)..staged] {
            send.next = std::ptr::null_mut();
        }
        let error = self.ring_heads();
        self.link_sends(staged.saturating_sub(count)..staged);
        error
    }

    /// Links these sends of the list, each to the next for the same queue pair.
    #[inline(always)]
    pub(super) fn link_sends(&mut self, numbers: Range<usize>) {
        let count = self.queues.pairs.len();
        let sends = &mut self.lists.sends;
        for number in numbers {
            let next =
                sends.get_mut(number + count).map_or(std::ptr::null_mut(), |next| &raw mut *next);
            sends[number].next = next;
        }
    }

    #[inline(always)]
    fn ring_heads(&mut self) -> i32 {
        let (count, staged) = (self.queues.pairs.len(), self.staged);
        for head in 0..count.min(staged) {
            let pair = self.pair_of(head);
            let (qp, list) = (self.queues.pairs[pair].raw(), &mut self.lists.sends[head]);
            let mut bad = std::ptr::null_mut();
            // SAFETY: a live queue pair; the list is linked in place, and its memory is registered
            // and left alone until the send completes.
            let error = unsafe { inline::post_send(qp, list, &mut bad) };
            if error != 0 {
                return error;
            }
        }
        0
    }
}
