//! Posting by `ibv_wr_start` to `ibv_wr_complete`.

use super::endpoint::VerbsEndpoint;
use super::service::Service;
use crate::Operation;
use fabric_sys::verbs::mlx5::mlx5dv_qp_ex;
use fabric_sys::verbs::types::*;

/// What a provider that lacks a call is taken to have returned.
const UNSUPPORTED: i32 = libc::EOPNOTSUPP;

/// Where the work requests of a queue pair go.
#[derive(Clone, Copy)]
enum Receiver {
    /// To the queue pair that it is connected to.
    Connected,
    /// To the queue pair of this number, which has this key, by this way.
    Datagram(*mut ibv_ah, u32, u32),
    /// To the one that it is connected to, into the receive queue of this number.
    Queue(u32),
    /// To the target of this number, which has this key, by this way.
    Target(*mut mlx5dv_qp_ex, *mut ibv_ah, u32, u64),
}

impl VerbsEndpoint {
    /// Hands the list over, request by request, each queue pair its share; 0 or an errno.
    #[inline(always)]
    pub(super) fn ring_extended(&mut self) -> i32 {
        for head in 0..self.queues.pairs.len().min(self.staged) {
            let pair = self.pair_of(head);
            let qp = self.extended_pair(pair);
            // SAFETY: a live queue pair that was made as an extended one; the calls follow the
            // order that the manual asks for, between a start and a complete, with memory that is
            // registered and left alone until completion.
            let error = unsafe { self.ring_through(qp, pair, head) }.unwrap_or(UNSUPPORTED);
            if error != 0 {
                return error;
            }
        }
        0
    }

    /// A queue pair that was made as an extended one.
    #[inline(always)]
    fn extended_pair(&self, pair: usize) -> *mut ibv_qp_ex {
        let library = self.memory.registration.library;
        // SAFETY: a live queue pair that was made as an extended one.
        unsafe { (library.ibv_qp_to_qp_ex)(self.queues.pairs[pair].raw()) }
    }

    /// Where the work requests of a queue pair go; `None`: nobody can be named.
    #[inline(always)]
    fn receiver_of(&self, qp: *mut ibv_qp_ex, pair: usize) -> Option<Receiver> {
        Some(match self.config.service {
            Service::Rc | Service::Uc => Receiver::Connected,
            Service::Xrc => Receiver::Queue(self.other.shared),
            Service::Ud | Service::Srd => {
                let (route, key) = self.route.as_ref()?;
                Receiver::Datagram(route.raw(), self.other.pairs.get(pair)?.0, *key)
            }
            Service::Dc => {
                let (route, _) = self.route.as_ref()?;
                let library = self.queues.maker.addresses()?;
                // SAFETY: a live queue pair that this library has made as an extended one.
                let own = unsafe { (library.mlx5dv_qp_ex_from_ibv_qp_ex)(qp) };
                let (number, _) = *self.other.receivers.first()?;
                Receiver::Target(own, route.raw(), number, self.other.target_key)
            }
        })
    }

    /// Posts the sends of the list that belong to the queue pair of the one at `head`.
    ///
    /// # Safety
    /// `qp` is that live extended queue pair, of number `pair`.
    #[inline(always)]
    unsafe fn ring_through(&mut self, qp: *mut ibv_qp_ex, pair: usize, head: usize) -> Option<i32> {
        let receiver = self.receiver_of(qp, pair)?;
        // SAFETY: the caller's promise.
        unsafe {
            ((*qp).wr_start?)(qp);
            let filled = self.fill(qp, receiver, head);
            end(qp, filled)
        }
    }

    /// Describes those sends.
    ///
    /// # Safety
    /// `qp` is a live extended queue pair between a start and a complete, and the receiver is of
    /// it.
    #[inline(always)]
    unsafe fn fill(&mut self, qp: *mut ibv_qp_ex, receiver: Receiver, head: usize) -> Option<()> {
        // SAFETY: the caller's promise; the two members of the union that are read hold integers,
        // the list is zeroed when it is made, and what `post` has not written is not handed over.
        unsafe {
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
                address_to(qp, receiver)?;
                if self.queues.inline {
                    let length = piece.length as usize;
                    ((*qp).wr_set_inline_data?)(qp, piece.addr as *mut _, length);
                } else {
                    ((*qp).wr_set_sge?)(qp, piece.lkey, piece.addr, piece.length);
                }
            }
        }
        Some(())
    }

    /// As [`Self::post_beside`], of a queue pair that was made as an extended one.
    #[cold]
    pub(super) fn post_beside_extended(
        &self,
        pair: usize,
        request: u64,
        what: (u64, Option<ibv_sge>),
    ) -> bool {
        let qp = self.extended_pair(pair);
        // SAFETY: a live queue pair that was made as an extended one, which may write; what the
        // request names is registered.
        unsafe { self.write_beside(qp, (pair, request), what) == Some(0) }
    }

    /// # Safety
    /// As for [`Self::ring_through`].
    unsafe fn write_beside(
        &self,
        qp: *mut ibv_qp_ex,
        (pair, request): (usize, u64),
        what: (u64, Option<ibv_sge>),
    ) -> Option<i32> {
        let receiver = self.receiver_of(qp, pair)?;
        // SAFETY: the caller's promise.
        unsafe {
            ((*qp).wr_start?)(qp);
            let filled = self.fill_beside(qp, receiver, request, what);
            end(qp, filled)
        }
    }

    /// # Safety
    /// As for [`Self::fill`].
    unsafe fn fill_beside(
        &self,
        qp: *mut ibv_qp_ex,
        receiver: Receiver,
        request: u64,
        (to, piece): (u64, Option<ibv_sge>),
    ) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            ((*qp).wr_id, (*qp).wr_flags) = (request, IBV_SEND_SIGNALED);
            ((*qp).wr_rdma_write?)(qp, self.other.key, to);
            address_to(qp, receiver)?;
            match piece {
                Some(piece) => ((*qp).wr_set_sge?)(qp, piece.lkey, piece.addr, piece.length),
                None => ((*qp).wr_set_sge_list?)(qp, 0, std::ptr::null()),
            }
        }
        Some(())
    }
}

/// Hands over what was described since the start, or takes all of it back where the provider lacks
/// a call that it needs (`None`): a start without an end would leave the queue pair locked.
///
/// # Safety
/// `qp` is a live extended queue pair after a start.
#[inline(always)]
unsafe fn end(qp: *mut ibv_qp_ex, filled: Option<()>) -> Option<i32> {
    // SAFETY: the caller's promise.
    unsafe {
        if filled.is_some() {
            return Some(((*qp).wr_complete?)(qp));
        }
        if let Some(abort) = (*qp).wr_abort {
            abort(qp);
        }
    }
    None
}

/// Names the receiver of the work request that was begun last.
///
/// # Safety
/// `qp` is a live extended queue pair between a start and a complete, and the receiver is of it.
#[inline(always)]
unsafe fn address_to(qp: *mut ibv_qp_ex, receiver: Receiver) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match receiver {
            Receiver::Connected => {}
            Receiver::Datagram(way, number, key) => ((*qp).wr_set_ud_addr?)(qp, way, number, key),
            Receiver::Queue(number) => ((*qp).wr_set_xrc_srqn?)(qp, number),
            Receiver::Target(own, way, number, key) => {
                ((*own).wr_set_dc_addr?)(own, way, number, key);
            }
        }
    }
    Some(())
}
