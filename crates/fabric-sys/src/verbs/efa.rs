//! What Amazon's provider adds to libibverbs for its scalable reliable datagrams:
//! <infiniband/efadv.h> of rdma-core, as far as it is used here.
#![allow(non_camel_case_types, reason = "the header's own names")]

use super::types::*;
use crate::Missing;
use crate::library::{Known, functions};
use std::ffi::c_int;
use std::sync::OnceLock;

/// The type of a scalable reliable datagram's queue pair.
pub const EFADV_QP_DRIVER_TYPE_SRD: u32 = 0;
/// The device reads remote memory.
pub const EFADV_DEVICE_ATTR_CAPS_RDMA_READ: u32 = 1 << 0;
/// The number of its retries while a receiver is not ready can be set.
pub const EFADV_DEVICE_ATTR_CAPS_RNR_RETRY: u32 = 1 << 1;
/// The device writes remote memory.
pub const EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE: u32 = 1 << 3;

/// What a device can.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct efadv_device_attr {
    /// Which members are set.
    pub comp_mask: u64,
    /// Most work requests of a send queue.
    pub max_sq_wr: u32,
    /// Most work requests of a receive queue.
    pub max_rq_wr: u32,
    /// Most pieces of memory of a send.
    pub max_sq_sge: u16,
    /// Most pieces of memory of a receive.
    pub max_rq_sge: u16,
    /// Bytes that may be inline.
    pub inline_buf_size: u16,
    /// Of later versions: bytes that may be inline in a larger work request.
    pub inline_buf_size_ex: u16,
    /// The flags above.
    pub device_caps: u32,
    /// Most bytes of an RDMA operation.
    pub max_rdma_size: u32,
}

/// What a queue pair is made with beyond what all providers know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct efadv_qp_init_attr {
    /// Which members are set.
    pub comp_mask: u64,
    /// The type.
    pub driver_qp_type: u32,
    /// Flags, service level and padding of later versions.
    pub reserved: [u8; 4],
}

// As the header of rdma-core 44 lays them out.
const _: () =
    assert!(size_of::<efadv_device_attr>() == 32 && size_of::<efadv_qp_init_attr>() == 16);

functions! {
    /// Functions of libefa: the library that libibverbs loads as provider, by its own name.
    Efa of Known {
        soname: "libefa.so.1",
        debian: "ibverbs-providers",
        redhat: "libibverbs",
    };
    efadv_query_device(
        context: *mut ibv_context,
        attributes: *mut efadv_device_attr,
        size: u32
    ) -> c_int;
    efadv_create_driver_qp(
        pd: *mut ibv_pd,
        attributes: *mut ibv_qp_init_attr,
        kind: u32
    ) -> *mut ibv_qp;
    efadv_create_qp_ex(
        context: *mut ibv_context,
        attributes: *mut ibv_qp_init_attr_ex,
        own: *mut efadv_qp_init_attr,
        size: u32
    ) -> *mut ibv_qp;
}

/// libefa, opened once.
pub fn efa() -> Result<&'static Efa, Missing> {
    static OPENED: OnceLock<Result<Efa, Missing>> = OnceLock::new();
    OPENED.get_or_init(Efa::load).as_ref().map_err(Clone::clone)
}
