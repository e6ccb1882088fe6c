//! What NVIDIA's provider adds to libibverbs for dynamically connected queue pairs:
//! <infiniband/mlx5dv.h> of rdma-core, as far as it is used here.
#![allow(non_camel_case_types, reason = "the header's own names")]

use super::types::*;
use crate::Missing;
use crate::library::{Known, functions};
use std::mem::offset_of;
use std::sync::OnceLock;

/// `create_flags` of [`mlx5dv_qp_init_attr`] are set.
pub const MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS: u64 = 1 << 0;
/// `dc_type` and `dct_access_key` of [`mlx5dv_qp_init_attr`] are set.
pub const MLX5DV_QP_INIT_ATTR_MASK_DC: u64 = 1 << 1;
/// Short messages are not delivered in completions, from where the CPU would copy them.
pub const MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE: u32 = 1 << 3;
/// A queue pair that receives from any initiator that knows its number and key.
pub const MLX5DV_DCTYPE_DCT: u32 = 1;
/// A queue pair that sends, to a target that each work request names.
pub const MLX5DV_DCTYPE_DCI: u32 = 2;

/// What a queue pair is made with beyond what all providers know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct mlx5dv_qp_init_attr {
    /// Which members are set.
    pub comp_mask: u64,
    /// Flags of its creation.
    pub create_flags: u32,
    /// The header has a structure of its own from here to the key.
    pub padding: u32,
    /// Initiator or target.
    pub dc_type: u32,
    /// The key that initiators must show, of a target (else the numbers of a DCI's streams).
    pub dct_access_key: u64,
    /// Calls beyond the usual ones.
    pub send_ops_flags: u64,
}

/// The functions that address a work request of a DCI. More follow, which are not used here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mlx5dv_qp_ex {
    /// Which members are set.
    pub comp_mask: u64,
    /// Sets the target of the work request that was begun last.
    pub wr_set_dc_addr:
        Option<unsafe extern "C" fn(*mut mlx5dv_qp_ex, *mut ibv_ah, target: u32, key: u64)>,
}

// As the header of rdma-core 44 on x86-64 lays them out.
const _: () = {
    assert!(size_of::<mlx5dv_qp_init_attr>() == 40);
    assert!(offset_of!(mlx5dv_qp_init_attr, dc_type) == 16);
    assert!(offset_of!(mlx5dv_qp_init_attr, dct_access_key) == 24);
    assert!(offset_of!(mlx5dv_qp_init_attr, send_ops_flags) == 32);
    assert!(offset_of!(mlx5dv_qp_ex, wr_set_dc_addr) == 8);
};

functions! {
    /// Functions of libmlx5: the library that libibverbs loads as provider, by its own name.
    Mlx5 of Known {
        soname: "libmlx5.so.1",
        debian: "ibverbs-providers",
        redhat: "libibverbs",
    };
    mlx5dv_is_supported(device: *mut ibv_device) -> bool;
    mlx5dv_create_qp(
        context: *mut ibv_context,
        attributes: *mut ibv_qp_init_attr_ex,
        own: *mut mlx5dv_qp_init_attr
    ) -> *mut ibv_qp;
    mlx5dv_qp_ex_from_ibv_qp_ex(qp: *mut ibv_qp_ex) -> *mut mlx5dv_qp_ex;
}

/// libmlx5, opened once.
pub fn mlx5() -> Result<&'static Mlx5, Missing> {
    static OPENED: OnceLock<Result<Mlx5, Missing>> = OnceLock::new();
    OPENED.get_or_init(Mlx5::load).as_ref().map_err(Clone::clone)
}
