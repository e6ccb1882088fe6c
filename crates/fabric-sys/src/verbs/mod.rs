//! libibverbs and librdmacm, and what two providers add to them.

pub mod efa;
pub mod extended;
pub mod inline;
pub mod mlx5;
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "made from C headers"
)]
#[rustfmt::skip]
pub mod types;

use crate::Missing;
use crate::library::{Known, functions};
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use types::*;

functions! {
    /// Functions of libibverbs.
    Verbs of Known {
        soname: "libibverbs.so.1",
        debian: "libibverbs1 and ibverbs-providers",
        redhat: "libibverbs",
    };
    ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device(context: *mut ibv_context, attributes: *mut ibv_device_attr) -> c_int;
    ibv_query_port(context: *mut ibv_context, port: u8, attributes: *mut ibv_port_attr) -> c_int;
    ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr(pd: *mut ibv_pd, at: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    ibv_create_cq(
        context: *mut ibv_context,
        entries: c_int,
        owner: *mut c_void,
        channel: *mut ibv_comp_channel,
        vector: c_int
    ) -> *mut ibv_cq;
    ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_get_cq_event(
        channel: *mut ibv_comp_channel,
        cq: *mut *mut ibv_cq,
        owner: *mut *mut c_void
    ) -> c_int;
    ibv_ack_cq_events(cq: *mut ibv_cq, events: u32);
    ibv_create_qp(pd: *mut ibv_pd, attributes: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp(qp: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_query_qp(
        qp: *mut ibv_qp,
        attributes: *mut ibv_qp_attr,
        mask: c_int,
        made: *mut ibv_qp_init_attr
    ) -> c_int;
    ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
    ibv_create_ah(pd: *mut ibv_pd, attributes: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
    ibv_create_srq(pd: *mut ibv_pd, attributes: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
    ibv_wc_status_str(status: ibv_wc_status) -> *const c_char;
    ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_ack_async_event(event: *mut ibv_async_event);
    ibv_event_type_str(event: ibv_event_type) -> *const c_char;
}

functions! {
    /// What libibverbs has since rdma-core 34: memory that another driver exports.
    DmaBuf of Known {
        soname: "libibverbs.so.1",
        debian: "libibverbs1",
        redhat: "libibverbs",
    };
    ibv_reg_dmabuf_mr(
        pd: *mut ibv_pd,
        offset: u64,
        length: usize,
        iova: u64,
        descriptor: c_int,
        access: c_int
    ) -> *mut ibv_mr;
}

functions! {
    /// What libibverbs has since rdma-core 30: enhanced connection establishment.
    Ece of Known {
        soname: "libibverbs.so.1",
        debian: "libibverbs1",
        redhat: "libibverbs",
    };
    ibv_query_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int;
    ibv_set_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int;
}

functions! {
    /// Functions of librdmacm.
    Cm of Known {
        soname: "librdmacm.so.1",
        debian: "librdmacm1",
        redhat: "librdmacm",
    };
    rdma_create_event_channel() -> *mut rdma_event_channel;
    rdma_destroy_event_channel(channel: *mut rdma_event_channel);
    rdma_create_id(
        channel: *mut rdma_event_channel,
        id: *mut *mut rdma_cm_id,
        owner: *mut c_void,
        space: rdma_port_space
    ) -> c_int;
    rdma_destroy_id(id: *mut rdma_cm_id) -> c_int;
    rdma_bind_addr(id: *mut rdma_cm_id, address: *mut sockaddr) -> c_int;
    rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_resolve_addr(
        id: *mut rdma_cm_id,
        source: *mut sockaddr,
        destination: *mut sockaddr,
        timeout_ms: c_int
    ) -> c_int;
    rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int;
    rdma_init_qp_attr(
        id: *mut rdma_cm_id,
        attributes: *mut ibv_qp_attr,
        mask: *mut c_int
    ) -> c_int;
    rdma_establish(id: *mut rdma_cm_id) -> c_int;
    rdma_connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int;
    rdma_accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int;
    rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int;
    rdma_get_cm_event(
        channel: *mut rdma_event_channel,
        event: *mut *mut rdma_cm_event
    ) -> c_int;
    rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int;
    rdma_event_str(event: rdma_cm_event_type) -> *const c_char;
    rdma_get_src_port(id: *mut rdma_cm_id) -> u16;
}

/// libibverbs, opened once.
pub fn verbs() -> Result<&'static Verbs, Missing> {
    static OPENED: OnceLock<Result<Verbs, Missing>> = OnceLock::new();
    OPENED.get_or_init(Verbs::load).as_ref().map_err(Clone::clone)
}

/// What registers a dma-buf, looked up once.
pub fn dma_buf() -> Result<&'static DmaBuf, Missing> {
    static OPENED: OnceLock<Result<DmaBuf, Missing>> = OnceLock::new();
    OPENED.get_or_init(DmaBuf::load).as_ref().map_err(Clone::clone)
}

/// What enhances the establishment of connections, looked up once.
pub fn ece() -> Result<&'static Ece, Missing> {
    static OPENED: OnceLock<Result<Ece, Missing>> = OnceLock::new();
    OPENED.get_or_init(Ece::load).as_ref().map_err(Clone::clone)
}

/// librdmacm, opened once.
pub fn cm() -> Result<&'static Cm, Missing> {
    static OPENED: OnceLock<Result<Cm, Missing>> = OnceLock::new();
    OPENED.get_or_init(Cm::load).as_ref().map_err(Clone::clone)
}
