//! What <infiniband/verbs.h> defines in line on the classic data path: a call through the
//! provider's table in the context.

use super::types::*;
use std::ffi::c_int;

/// What a provider that lacks an operation is taken to have returned.
const UNSUPPORTED: c_int = 95; // EOPNOTSUPP

/// A provider's functions of the classic data path, looked up once: providers fill their table when
/// a device is opened. The contracts are those of [`post_send`], [`post_recv`] and [`poll_cq`].
#[derive(Clone, Copy)]
pub struct DataPath {
    /// As [`post_send`].
    pub post_send: PostSend,
    /// As [`post_recv`].
    pub post_recv: PostRecv,
    /// As [`poll_cq`].
    pub poll_cq: PollCq,
}

/// `ibv_post_send`.
pub type PostSend =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
/// `ibv_post_recv`.
pub type PostRecv =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;
/// `ibv_poll_cq`.
pub type PollCq = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;

impl DataPath {
    /// That of the device of this queue pair.
    ///
    /// # Safety
    /// `qp` is a live queue pair.
    pub unsafe fn of(qp: *mut ibv_qp) -> DataPath {
        // SAFETY: a live object has a live context whose table the provider has filled.
        let table = unsafe { &(*(*qp).context).ops };
        DataPath {
            post_send: table.post_send.unwrap_or(no_post_send),
            post_recv: table.post_recv.unwrap_or(no_post_recv),
            poll_cq: table.poll_cq.unwrap_or(no_poll_cq),
        }
    }
}

unsafe extern "C" fn no_post_send(
    _: *mut ibv_qp,
    _: *mut ibv_send_wr,
    _: *mut *mut ibv_send_wr,
) -> c_int {
    UNSUPPORTED
}

unsafe extern "C" fn no_post_recv(
    _: *mut ibv_qp,
    _: *mut ibv_recv_wr,
    _: *mut *mut ibv_recv_wr,
) -> c_int {
    UNSUPPORTED
}

unsafe extern "C" fn no_poll_cq(_: *mut ibv_cq, _: c_int, _: *mut ibv_wc) -> c_int {
    -UNSUPPORTED
}

/// Declares calls through the table in the context of their first argument.
macro_rules! in_line {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($object:ident: $type:ty, $($argument:ident: $of:ty),+) else $without:expr;
    )+) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name($object: $type, $($argument: $of),+) -> c_int {
            // SAFETY: a live object has a live context whose table the provider has filled.
            match unsafe { (*(*$object).context).ops.$name } {
                // SAFETY: passed on to the caller.
                Some(call) => unsafe { call($object, $($argument),+) },
                None => $without,
            }
        }
    )+};
}

in_line! {
    /// Posts a list of sends; 0 or an errno. `bad` points to the first that was not taken.
    ///
    /// # Safety
    /// `qp` is a live queue pair, the list is well formed, and its memory is registered and stays
    /// until completion.
    fn post_send(qp: *mut ibv_qp, list: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr)
        else UNSUPPORTED;

    /// Posts a list of receives; 0 or an errno.
    ///
    /// # Safety
    /// As for [`post_send`].
    fn post_recv(qp: *mut ibv_qp, list: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr)
        else UNSUPPORTED;

    /// Posts a list of receives to a shared receive queue; 0 or an errno.
    ///
    /// # Safety
    /// As for [`post_send`], of a live shared receive queue.
    fn post_srq_recv(srq: *mut ibv_srq, list: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr)
        else UNSUPPORTED;

    /// Takes up to `most` completions; how many, or below 0.
    ///
    /// # Safety
    /// `cq` is a live completion queue, and `into` has room for `most`.
    fn poll_cq(cq: *mut ibv_cq, most: c_int, into: *mut ibv_wc) else -UNSUPPORTED;

    /// Asks for an event at the next completion, or with 1 at the next that was solicited; 0 or an
    /// errno.
    ///
    /// # Safety
    /// `cq` is a live completion queue with a channel.
    fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) else UNSUPPORTED;
}
