//! Queue pairs: what makes those of each service, their states and attributes.

use super::adapter::Adapter;
use super::memory_kind::MemoryKind;
use super::options;
use super::resources::{
    CompletionQueue, Context, Domain, Owned, QueuePair, SharedReceives, done, errno,
};
use super::service::Service;
use super::srd;
use crate::{Result, Setup};
use fabric_sys::verbs::efa::{Efa, efadv_device_attr};
use fabric_sys::verbs::extended;
use fabric_sys::verbs::mlx5::{self, *};
use fabric_sys::verbs::types::*;
use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::Arc;

// <infiniband/verbs.h> casts the one to the other, too.
const _: () =
    assert!(offset_of!(ibv_qp_init_attr_ex, qp_type) == offset_of!(ibv_qp_init_attr, qp_type));

/// An extended reliable connection domain.
pub type XrcDomain = Owned<ibv_xrcd, Arc<Context>>;

/// Whose calls make the queue pairs of an end.
#[derive(Clone, Copy)]
pub enum Maker {
    /// libibverbs' own.
    Verbs,
    /// libmlx5's, of dynamically connected ones where `is_dynamic`; else without the delivery of
    /// short messages in completions, from which the provider would copy them to their memory.
    Mlx5 { library: &'static Mlx5, is_dynamic: bool },
    /// libefa's, and what the device can.
    Efa { library: &'static Efa, device: efadv_device_attr },
}

impl Maker {
    /// The calls for a service.
    ///
    /// # Errors
    /// The library, the provider or the device lacks what the service needs, in a sentence that
    /// says what to use instead.
    pub fn of(setup: &Setup, adapter: &Adapter) -> Result<Maker> {
        let (service, name) = (options::service(&setup.settings), &adapter.name);
        match service {
            Service::Xrc => {
                check_xrc(name, &adapter.device)?;
                Ok(Maker::for_memory(setup, adapter))
            }
            Service::Dc => {
                let library = mlx5::mlx5().map_err(|missing| service.lacks(name, &missing))?;
                ensure!(
                    is_of_mlx5(library, adapter),
                    service.lacks(name, &"it is not an adapter of NVIDIA's provider mlx5")
                );
                Ok(Maker::Mlx5 { library, is_dynamic: true })
            }
            Service::Srd => {
                let (library, device) = srd::device(setup, adapter)?;
                Ok(Maker::Efa { library, device })
            }
            Service::Rc | Service::Uc | Service::Ud => Ok(Maker::for_memory(setup, adapter)),
        }
    }

    /// libibverbs' own, but for memory that the CPU does not write.
    fn for_memory(setup: &Setup, adapter: &Adapter) -> Maker {
        let is_of_host = MemoryKind::of(&setup.settings, setup.role) == MemoryKind::Host;
        let library = mlx5::mlx5().ok().filter(|_| !is_of_host);
        match library.filter(|library| is_of_mlx5(library, adapter)) {
            Some(library) => Maker::Mlx5 { library, is_dynamic: false },
            None => Maker::Verbs,
        }
    }

    /// A queue pair that sends, in state RESET. Gives the inline size that was granted, too.
    pub fn make(
        &self,
        (adapter, service): (&Adapter, Service),
        mut attributes: ibv_qp_init_attr_ex,
        is_extended: bool,
    ) -> Result<(QueuePair, u32)> {
        let domain = &adapter.domain;
        attributes.pd = domain.raw();
        attributes.comp_mask |= IBV_QP_INIT_ATTR_PD;
        if is_extended {
            attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        }
        let (context, plain) = (domain.parent.raw(), (&raw mut attributes).cast());
        let raw = match *self {
            // SAFETY: a live context, and attributes that name live queues.
            Maker::Verbs if is_extended => unsafe {
                extended::create_qp_ex(context, &mut attributes)
            },
            // SAFETY: as above; the attributes begin as the plain ones do.
            Maker::Verbs => unsafe { (domain.library.ibv_create_qp)(domain.raw(), plain) },
            Maker::Mlx5 { library, is_dynamic } => {
                let mut own = own_attributes(is_dynamic.then_some((MLX5DV_DCTYPE_DCI, 0)));
                // SAFETY: as above.
                unsafe { (library.mlx5dv_create_qp)(context, &mut attributes, &mut own) }
            }
            // SAFETY: as above.
            Maker::Efa { library, .. } => unsafe {
                srd::create(library, domain.raw(), &mut attributes, is_extended)
            },
        };
        let granted = attributes.cap;
        let what = format_args!(
            "creating a queue pair with {} sends, {} receives and {} B inline",
            granted.max_send_wr, granted.max_recv_wr, granted.max_inline_data
        );
        let is_unknown = raw.is_null() && errno().raw_os_error() == Some(libc::EOPNOTSUPP);
        // SAFETY: it was made just now.
        let made = unsafe { domain.own(raw, domain.library.ibv_destroy_qp, what) };
        match made {
            Err(error) if is_unknown => Err(service.lacks(&adapter.name, &error)),
            made => Ok((made?, granted.max_inline_data)),
        }
    }

    /// A queue pair of an XRC domain that receives into the queues that messages name.
    pub fn receiver(&self, domain: &Arc<Domain>, of: &XrcDomain) -> Result<QueuePair> {
        let mut attributes = ibv_qp_init_attr_ex {
            qp_type: IBV_QPT_XRC_RECV,
            comp_mask: IBV_QP_INIT_ATTR_XRCD,
            xrcd: of.raw(),
            ..ibv_qp_init_attr_ex::default()
        };
        let context = domain.parent.raw();
        let raw = match *self {
            Maker::Mlx5 { library, .. } => {
                let mut own = own_attributes(None);
                // SAFETY: a live context, and attributes that name a live domain of it.
                unsafe { (library.mlx5dv_create_qp)(context, &mut attributes, &mut own) }
            }
            // SAFETY: as above.
            _ => unsafe { extended::create_qp_ex(context, &mut attributes) },
        };
        let what = "creating an XRC queue pair that receives";
        // SAFETY: it was made just now.
        unsafe { domain.own(raw, domain.library.ibv_destroy_qp, what) }
    }

    /// The functions that address the work requests of a dynamically connected queue pair.
    pub fn addresses(&self) -> Option<&'static Mlx5> {
        match *self {
            Maker::Mlx5 { library, is_dynamic: true } => Some(library),
            _ => None,
        }
    }

    /// The most bytes that may be inline, where the device says so.
    pub fn most_inline(&self) -> Option<u32> {
        match self {
            Maker::Efa { device, .. } => Some(device.inline_buf_size.into()),
            _ => None,
        }
    }

    /// Whether the retries of a receiver that is not ready can be set.
    pub fn sets_rnr_retries(&self) -> bool {
        match self {
            Maker::Efa { device, .. } => srd::sets_rnr_retries(device),
            _ => true,
        }
    }
}

/// Refuses XRC where the device does not say that it has it.
fn check_xrc(name: &str, device: &ibv_device_attr) -> Result<()> {
    ensure!(
        device.device_cap_flags & IBV_DEVICE_XRC != 0,
        Service::Xrc.lacks(name, &"its capabilities lack IBV_DEVICE_XRC")
    );
    Ok(())
}

fn is_of_mlx5(library: &Mlx5, adapter: &Adapter) -> bool {
    // SAFETY: a live context names its device.
    unsafe { (library.mlx5dv_is_supported)((*adapter.domain.parent.raw()).device) }
}

/// What mlx5 is told beside the attributes: the kind of a dynamically connected queue pair and its
/// key, and that nothing is delivered in completions.
fn own_attributes(dynamic: Option<(u32, u64)>) -> mlx5dv_qp_init_attr {
    let (dc_type, dct_access_key) = dynamic.unwrap_or_default();
    let dc = if dynamic.is_some() { MLX5DV_QP_INIT_ATTR_MASK_DC } else { 0 };
    mlx5dv_qp_init_attr {
        comp_mask: dc | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        create_flags: MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        dc_type,
        dct_access_key,
        ..mlx5dv_qp_init_attr::default()
    }
}

/// A queue pair that receives from any initiator that shows the key. It has a number once it is
/// ready to receive.
pub fn target(
    library: &'static Mlx5,
    domain: &Arc<Domain>,
    (send, receive): (&CompletionQueue, &CompletionQueue),
    shared: &SharedReceives,
    key: u64,
) -> Result<QueuePair> {
    let mut attributes = ibv_qp_init_attr_ex {
        send_cq: send.raw(),
        recv_cq: receive.raw(),
        srq: shared.raw(),
        qp_type: IBV_QPT_DRIVER,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        pd: domain.raw(),
        ..ibv_qp_init_attr_ex::default()
    };
    let mut own = own_attributes(Some((MLX5DV_DCTYPE_DCT, key)));
    let context = domain.parent.raw();
    // SAFETY: a live context, and attributes that name live queues.
    let raw = unsafe { (library.mlx5dv_create_qp)(context, &mut attributes, &mut own) };
    let what = "creating a target of dynamic connections";
    // SAFETY: it was made just now.
    unsafe { domain.own(raw, domain.library.ibv_destroy_qp, what) }
}

impl XrcDomain {
    /// A domain of this process alone.
    pub fn new(context: &Arc<Context>) -> Result<XrcDomain> {
        let mut attributes = ibv_xrcd_init_attr {
            comp_mask: IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
            fd: -1,
            oflags: libc::O_CREAT,
        };
        // SAFETY: a live context and attributes that live through the call.
        let raw = unsafe { extended::open_xrcd(context.raw(), &mut attributes) };
        let of = (context.library, Arc::clone(context));
        // SAFETY: it was made just now; what is made of it is dropped before it (`Queues`).
        unsafe { XrcDomain::take(raw, extended::close_xrcd, of, "opening an XRC domain") }
    }

    /// A queue of `receives` receives for all queue pairs of the domain, whose messages complete
    /// into `queue`; and its number, by which the other end names it.
    pub fn receives(
        &self,
        domain: &Arc<Domain>,
        queue: &CompletionQueue,
        receives: u32,
    ) -> Result<(SharedReceives, u32)> {
        let mut attributes = ibv_srq_init_attr_ex {
            attr: ibv_srq_attr { max_wr: receives, max_sge: 1, srq_limit: 0 },
            comp_mask: IBV_SRQ_INIT_ATTR_TYPE
                | IBV_SRQ_INIT_ATTR_PD
                | IBV_SRQ_INIT_ATTR_XRCD
                | IBV_SRQ_INIT_ATTR_CQ,
            srq_type: IBV_SRQT_XRC,
            pd: domain.raw(),
            xrcd: self.raw(),
            cq: queue.raw(),
            ..ibv_srq_init_attr_ex::default()
        };
        // SAFETY: a live context, and attributes that name live objects of it.
        let raw = unsafe { extended::create_srq_ex(domain.parent.raw(), &mut attributes) };
        let what = format_args!("creating an XRC receive queue of {receives} receives");
        // SAFETY: it was made just now.
        let queue = unsafe { domain.own(raw, domain.library.ibv_destroy_srq, what)? };
        let mut number = 0;
        // SAFETY: a live queue and room for the answer.
        let error = unsafe { extended::get_srq_num(queue.raw(), &mut number) };
        done(error, "asking for the number of an XRC receive queue")?;
        Ok((queue, number))
    }
}

impl QueuePair {
    /// Changes its state.
    pub fn modify(&self, attributes: &mut ibv_qp_attr, mask: u32, what: &str) -> Result<()> {
        // SAFETY: a live queue pair and attributes that live through the call.
        done(unsafe { (self.library.ibv_modify_qp)(self.raw(), attributes, mask as c_int) }, what)
    }

    /// The attributes of this mask, as the device has them.
    pub fn attributes(&self, mask: u32) -> Result<ibv_qp_attr> {
        let (mut attributes, mut made) = (ibv_qp_attr::default(), ibv_qp_init_attr::default());
        let (mask, into) = (mask as c_int, &mut attributes);
        // SAFETY: a live queue pair and room for the answers.
        let error = unsafe { (self.library.ibv_query_qp)(self.raw(), into, mask, &mut made) };
        done(error, "querying the queue pair")?;
        Ok(attributes)
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // SAFETY: a live queue pair.
        unsafe { (*self.raw()).qp_num }
    }
}
