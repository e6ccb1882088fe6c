//! What <infiniband/verbs.h> defines in line for the extended interface: queue pairs with
//! `ibv_wr_*`, through the table that stands before the context.

use super::types::*;
use std::ffi::c_int;
use std::mem::offset_of;
use std::ptr::null_mut;

/// EOPNOTSUPP of asm-generic/errno.h: what a provider that lacks a call is taken to have returned.
const UNSUPPORTED: c_int = 95;

/// The larger context around an extended one, and null around a plain one.
///
/// # Safety
/// `context` is live.
unsafe fn around(context: *mut ibv_context) -> *mut verbs_context {
    /// What `abi_compat` holds where there is more before the context.
    const EXTENDED: usize = usize::MAX;
    // SAFETY: a live context can be read.
    if unsafe { (*context).abi_compat } as usize != EXTENDED {
        return null_mut();
    }
    // SAFETY: an extended context is the last member of a verbs_context.
    unsafe { context.byte_sub(offset_of!(verbs_context, context)).cast() }
}

/// Whether the library has filled its table down to the member at this offset: `sz` counts from the
/// table's end.
///
/// # Safety
/// `around` is a live extended context.
unsafe fn reaches(around: *mut verbs_context, member: usize) -> bool {
    let least = offset_of!(verbs_context, context) - member;
    // SAFETY: the caller's promise.
    unsafe { (*around).sz >= least + size_of::<ibv_context>() }
}

/// Declares calls through the table before the context, where it reaches so far.
macro_rules! extended {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $of:ty),+) -> $result:ty, else $without:expr;
    )+) => {$(
        $(#[$doc])*
        pub unsafe fn $name(context: *mut ibv_context, $($argument: $of),+) -> $result {
            // SAFETY: passed on to the caller.
            let around = unsafe { around(context) };
            if around.is_null() {
                return $without;
            }
            // SAFETY: as above; the member is read where the table reaches so far.
            unsafe {
                match (*around).$name {
                    Some(call) if reaches(around, offset_of!(verbs_context, $name)) => {
                        call(context, $($argument),+)
                    }
                    _ => $without,
                }
            }
        }
    )+};
}

/// Changes how a completion queue raises events; an errno where the provider cannot.
///
/// # Safety
/// `cq` is live and `attributes` well formed.
pub unsafe fn modify_cq(cq: *mut ibv_cq, attributes: *mut ibv_modify_cq_attr) -> c_int {
    // SAFETY: a live queue has a live context.
    let around = unsafe { around((*cq).context) };
    if around.is_null() {
        return UNSUPPORTED;
    }
    // SAFETY: as above; the member is read where the table reaches so far.
    unsafe {
        match (*around).modify_cq {
            Some(call) if reaches(around, offset_of!(verbs_context, modify_cq)) => {
                call(cq, attributes)
            }
            _ => UNSUPPORTED,
        }
    }
}

/// The function that frees device memory, where the provider has it.
///
/// # Safety
/// `context` is live.
pub unsafe fn free_dm(context: *mut ibv_context) -> Option<FreeDm> {
    // SAFETY: the caller's promise.
    let around = unsafe { around(context) };
    if around.is_null() {
        return None;
    }
    // SAFETY: as above; the member is read where the table reaches so far.
    unsafe { (*around).free_dm.filter(|_| reaches(around, offset_of!(verbs_context, free_dm))) }
}

/// Frees what [`alloc_dm`] has made; 0 or an errno.
// SAFETY: the type of a function that is called with live device memory, once.
pub type FreeDm = unsafe extern "C" fn(*mut ibv_dm) -> c_int;

/// Registers device memory, from its begin on; null (with errno) where the provider cannot.
///
/// # Safety
/// `pd` and `dm` are live, of one device.
pub unsafe fn reg_dm_mr(
    pd: *mut ibv_pd,
    dm: *mut ibv_dm,
    length: usize,
    access: u32,
) -> *mut ibv_mr {
    // SAFETY: a live domain has a live context.
    let around = unsafe { around((*pd).context) };
    if around.is_null() {
        return null_mut();
    }
    // SAFETY: as above; the member is read where the table reaches so far.
    unsafe {
        match (*around).reg_dm_mr {
            Some(call) if reaches(around, offset_of!(verbs_context, reg_dm_mr)) => {
                call(pd, dm, 0, length, access)
            }
            _ => null_mut(),
        }
    }
}

/// Closes what [`open_xrcd`] has opened; an errno where the provider cannot.
///
/// # Safety
/// `domain` is live, and is not used again.
pub unsafe extern "C" fn close_xrcd(domain: *mut ibv_xrcd) -> c_int {
    // SAFETY: a live domain has a live context.
    let around = unsafe { around((*domain).context) };
    if around.is_null() {
        return UNSUPPORTED;
    }
    // SAFETY: as above; the member is read where the table reaches so far.
    unsafe {
        match (*around).close_xrcd {
            Some(call) if reaches(around, offset_of!(verbs_context, close_xrcd)) => call(domain),
            _ => UNSUPPORTED,
        }
    }
}

/// The number by which the other end names a shared receive queue of an XRC domain; an errno where
/// the provider cannot.
///
/// # Safety
/// `queue` is live, and `number` may be written.
pub unsafe fn get_srq_num(queue: *mut ibv_srq, number: *mut u32) -> c_int {
    // SAFETY: a live queue has a live context.
    let around = unsafe { around((*queue).context) };
    if around.is_null() {
        return UNSUPPORTED;
    }
    // SAFETY: as above; the member is read where the table reaches so far.
    unsafe {
        match (*around).get_srq_num {
            Some(call) if reaches(around, offset_of!(verbs_context, get_srq_num)) => {
                call(queue, number)
            }
            _ => UNSUPPORTED,
        }
    }
}

extended! {
    /// Opens a domain whose receive queues several processes may name (XRC); null (with errno)
    /// where the provider cannot.
    ///
    /// # Safety
    /// `context` is live and `attributes` well formed.
    fn open_xrcd(attributes: *mut ibv_xrcd_init_attr) -> *mut ibv_xrcd, else null_mut();

    /// Makes a shared receive queue of any type; null (with errno) where the provider cannot.
    ///
    /// # Safety
    /// `context` is live and `attributes` well formed.
    fn create_srq_ex(attributes: *mut ibv_srq_init_attr_ex) -> *mut ibv_srq, else null_mut();

    /// Allocates memory of the device; null (with errno) where the provider cannot.
    ///
    /// # Safety
    /// `context` is live and `attributes` well formed.
    fn alloc_dm(attributes: *mut ibv_alloc_dm_attr) -> *mut ibv_dm, else null_mut();

    /// Makes an extended queue pair; null (with errno) where the provider cannot.
    ///
    /// # Safety
    /// `context` is live and `attributes` well formed.
    fn create_qp_ex(attributes: *mut ibv_qp_init_attr_ex) -> *mut ibv_qp, else null_mut();

    /// Makes an extended completion queue; null (with errno) where the provider cannot. The table
    /// names a function of the library around the provider's, which fills in the channel and the
    /// locks.
    ///
    /// # Safety
    /// As for [`create_qp_ex`].
    fn create_cq_ex(attributes: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex, else null_mut();

    /// Asks for the attributes of a device beyond the plain ones; an errno where the provider
    /// cannot.
    ///
    /// # Safety
    /// `context` is live, `input` null or well formed, and `attributes` may be written, of this
    /// size.
    fn query_device_ex(
        input: *const ibv_query_device_ex_input,
        attributes: *mut ibv_device_attr_ex,
        size: usize
    ) -> c_int, else UNSUPPORTED;

    /// Reads what the mask of `values` asks for, the device's raw clock; an errno where the
    /// provider cannot.
    ///
    /// # Safety
    /// `context` is live and `values` may be written.
    fn query_rt_values(values: *mut ibv_values_ex) -> c_int, else UNSUPPORTED;
}
