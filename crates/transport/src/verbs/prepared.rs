//! Work requests that are written once, but for what a message changes.

use super::memory::Layout;
use crate::MOST_EVENTS;
use fabric_sys::verbs::types::*;

/// A send and its piece of memory.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Send {
    pub request: ibv_send_wr,
    pub piece: ibv_sge,
}

/// The sends that one flush may hand over.
pub(super) type Sends = [Send; MOST_EVENTS];

/// A receive and its piece of memory.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Receive {
    pub request: ibv_recv_wr,
    pub piece: ibv_sge,
}

/// Where the sends of an end go.
pub(super) enum Towards {
    /// To the queue pair that its own is connected to.
    Connected,
    /// To this queue pair, by an address handle and with its key: datagrams.
    Datagrams { handle: *mut ibv_ah, pair: u32, key: u32 },
    /// Into the memory with this key.
    Memory(u32),
    /// To the words of the memory with this key, to each of which one is added.
    Words(u32),
}

/// Sends of one operation. `key` is that of the own memory.
pub(super) fn sends(opcode: ibv_wr_opcode, key: u32, towards: &Towards) -> Box<Sends> {
    let mut all = Box::new([Send::default(); MOST_EVENTS]);
    for send in &mut *all {
        send.piece.lkey = key;
        send.request.sg_list = &mut send.piece;
        send.request.num_sge = 1;
        send.request.opcode = opcode;
        let wr = &mut send.request.wr;
        match *towards {
            Towards::Connected => {}
            Towards::Datagrams { handle, pair, key } => {
                wr.ud.ah = handle;
                wr.ud.remote_qpn = pair;
                wr.ud.remote_qkey = key;
            }
            Towards::Memory(rkey) => {
                wr.rdma = ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr: 0, rkey };
            }
            Towards::Words(rkey) => {
                wr.atomic = ibv_send_wr__bindgen_ty_2__bindgen_ty_2 {
                    remote_addr: 0,
                    compare_add: 1,
                    swap: 0,
                    rkey,
                };
            }
        }
    }
    all
}

/// A receive into each slot for arrivals, of memory that begins at `base`. So many bytes of a
/// header come before each message.
pub(super) fn receives(layout: &Layout, base: u64, key: u32, header: usize) -> Box<[Receive]> {
    let mut all = vec![Receive::default(); layout.arriving].into_boxed_slice();
    for (slot, receive) in all.iter_mut().enumerate() {
        receive.piece.addr = base + (layout.arrival_at(slot) - header) as u64;
        receive.piece.length = (header + layout.size) as u32;
        receive.piece.lkey = key;
        receive.request.wr_id = slot as u64;
        receive.request.sg_list = &mut receive.piece;
        receive.request.num_sge = 1;
    }
    all
}
