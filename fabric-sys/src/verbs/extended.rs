//! What <infiniband/verbs.h> defines in line for the extended interface: queue pairs with
//! `ibv_wr_*`, through the table that stands before the context.

use super::types::*;
use std::mem::offset_of;

/// The larger context around an extended one, and null around a plain one.
///
/// # Safety
/// `context` is live.
unsafe fn around(context: *mut ibv_context) -> *mut verbs_context {
    /// What `abi_compat` holds where there is more before the context.
    const EXTENDED: usize = usize::MAX;
    // SAFETY: a live context can be read.
    if unsafe { (*context).abi_compat } as usize != EXTENDED {
        return std::ptr::null_mut();
    }
    // SAFETY: an extended context is the last member of a verbs_context.
    unsafe { context.byte_sub(offset_of!(verbs_context, context)).cast() }
}

/// Makes an extended queue pair; null (with errno) where the provider cannot.
///
/// # Safety
/// `context` is live and `attributes` well formed.
pub unsafe fn create_qp_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: passed on to the caller.
    let around = unsafe { around(context) };
    if around.is_null() {
        return std::ptr::null_mut();
    }
    let least = offset_of!(verbs_context, context) - offset_of!(verbs_context, create_qp_ex);
    // SAFETY: `sz` says how much of the table the library has filled, counted from its end.
    let has_it = unsafe { (*around).sz } >= least + size_of::<ibv_context>();
    // SAFETY: as above.
    match unsafe { (*around).create_qp_ex } {
        // SAFETY: passed on to the caller.
        Some(create) if has_it => unsafe { create(context, attributes) },
        _ => std::ptr::null_mut(),
    }
}
