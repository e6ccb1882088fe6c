//! What <infiniband/verbs.h> defines in line on the classic data path: a call through the
//! provider's table in the context.

use super::types::*;
use std::ffi::c_int;

/// What a provider that lacks an operation is taken to have returned.
const UNSUPPORTED: c_int = 95; // EOPNOTSUPP

/// Posts a list of sends; 0 or an errno. `bad` points to the first that was not taken.
///
/// # Safety
/// `qp` is a live queue pair, the list is well formed, and its memory is registered and stays until
/// completion.
#[inline(always)]
pub unsafe fn post_send(
    qp: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: a live queue pair has a live context whose table the provider has filled.
    match unsafe { (*(*qp).context).ops.post_send } {
        // SAFETY: passed on to the caller.
        Some(post) => unsafe { post(qp, list, bad) },
        None => UNSUPPORTED,
    }
}

/// Posts a list of receives; 0 or an errno.
///
/// # Safety
/// As for [`post_send`].
#[inline(always)]
pub unsafe fn post_recv(
    qp: *mut ibv_qp,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as for `post_send`.
    match unsafe { (*(*qp).context).ops.post_recv } {
        // SAFETY: passed on to the caller.
        Some(post) => unsafe { post(qp, list, bad) },
        None => UNSUPPORTED,
    }
}

/// Posts a list of receives to a shared receive queue; 0 or an errno.
///
/// # Safety
/// As for [`post_send`], of a live shared receive queue.
#[inline(always)]
pub unsafe fn post_srq_recv(
    srq: *mut ibv_srq,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as for `post_send`.
    match unsafe { (*(*srq).context).ops.post_srq_recv } {
        // SAFETY: passed on to the caller.
        Some(post) => unsafe { post(srq, list, bad) },
        None => UNSUPPORTED,
    }
}

/// Takes up to `most` completions; how many, or below 0.
///
/// # Safety
/// `cq` is a live completion queue, and `into` has room for `most`.
#[inline(always)]
pub unsafe fn poll_cq(cq: *mut ibv_cq, most: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: as for `post_send`.
    match unsafe { (*(*cq).context).ops.poll_cq } {
        // SAFETY: passed on to the caller.
        Some(poll) => unsafe { poll(cq, most, into) },
        None => -UNSUPPORTED,
    }
}

/// Asks for an event at the next completion; 0 or an errno.
///
/// # Safety
/// `cq` is a live completion queue with a channel.
#[inline]
pub unsafe fn req_notify_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: as for `post_send`.
    match unsafe { (*(*cq).context).ops.req_notify_cq } {
        // SAFETY: passed on to the caller.
        Some(arm) => unsafe { arm(cq, 0) },
        None => UNSUPPORTED,
    }
}
