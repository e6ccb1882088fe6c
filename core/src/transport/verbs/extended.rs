//! Posting by `ibv_wr_start` to `ibv_wr_complete`.

use super::endpoint::VerbsEndpoint;
use super::options::Service;
use crate::transport::Operation;
use fabric_sys::verbs::types::*;

/// What a provider that lacks a call is taken to have returned.
const UNSUPPORTED: i32 = libc::EOPNOTSUPP;

impl VerbsEndpoint {
    /// Hands the list over, request by request, each queue pair its share; 0 or an errno.
    #[inline(always)]
    pub(super) fn ring_extended(&mut self) -> i32 {
        let library = self.memory.registration.library;
        for head in 0..self.queues.pairs.len().min(self.staged) {
            let pair = self.pair_of(head);
            // SAFETY: a live queue pair that was made as an extended one.
            let qp = unsafe { (library.ibv_qp_to_qp_ex)(self.queues.pairs[pair].raw()) };
            // SAFETY: as above; the calls follow the order that the manual asks for, between a
            // start and a complete, with memory that is registered and left alone until completion.
            let error = unsafe { self.ring_through(qp, head) }.unwrap_or(UNSUPPORTED);
            if error != 0 {
                return error;
            }
        }
        0
    }

    /// Posts the sends of the list that belong to the queue pair of the one at `head`.
    ///
    /// # Safety
    /// `qp` is that live extended queue pair.
    #[inline(always)]
    unsafe fn ring_through(&mut self, qp: *mut ibv_qp_ex, head: usize) -> Option<i32> {
        // SAFETY: the caller's promise; the two members of the union that are read hold integers,
        // the list is zeroed when it is made, and what `post` has not written is not handed over.
        unsafe {
            ((*qp).wr_start?)(qp);
            for number in (head..self.staged).step_by(self.queues.pairs.len()) {
                let send = &self.lists.sends[number];
                let piece = &self.lists.send_pieces[number];
                (*qp).wr_id = send.wr_id;
                // The flag for inline is the call's own business, but the provider of Soft-RoCE
                // (rdma-core 44 and, so far, later) forgets it.
                (*qp).wr_flags = send.send_flags;
                let (rdma, at) = (send.wr.rdma, send.wr.atomic);
                let (key, address) = (rdma.rkey, rdma.remote_addr);
                let immediate = send.__bindgen_anon_1.imm_data;
                match self.config.operation {
                    Operation::Send => ((*qp).wr_send?)(qp),
                    Operation::SendImm => ((*qp).wr_send_imm?)(qp, immediate),
                    Operation::Write => ((*qp).wr_rdma_write?)(qp, key, address),
                    Operation::WriteImm => ((*qp).wr_rdma_write_imm?)(qp, key, address, immediate),
                    Operation::Read => ((*qp).wr_rdma_read?)(qp, key, address),
                    Operation::FetchAdd => {
                        ((*qp).wr_atomic_fetch_add?)(qp, at.rkey, at.remote_addr, at.compare_add);
                    }
                    Operation::CompareSwap => {
                        let (key, address) = (at.rkey, at.remote_addr);
                        ((*qp).wr_atomic_cmp_swp?)(qp, key, address, at.compare_add, at.swap);
                    }
                }
                if self.config.service == Service::Ud {
                    let to = send.wr.ud;
                    ((*qp).wr_set_ud_addr?)(qp, to.ah, to.remote_qpn, to.remote_qkey);
                }
                if self.queues.inline {
                    let length = piece.length as usize;
                    ((*qp).wr_set_inline_data?)(qp, piece.addr as *mut _, length);
                } else {
                    ((*qp).wr_set_sge?)(qp, piece.lkey, piece.addr, piece.length);
                }
            }
            Some(((*qp).wr_complete?)(qp))
        }
    }
}
