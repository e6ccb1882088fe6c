//! Device and GPU memory: allocated, and registered with the adapter.

use super::adapter::Adapter;
use super::gpu::GpuMemory;
use super::memory_kind::MemoryKind;
use super::resources::{Context, Domain, Owned, Registration};
use crate::{Result, SetupError};
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{dma_buf, extended};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use wiregauge_base::units::Bytes;

/// Allocated memory of the device.
pub type DeviceMemory = Owned<ibv_dm, Arc<Context>>;

/// The owner of the memory, which is freed after its registration.
#[allow(dead_code, reason = "kept alive")]
pub enum Foreign {
    Device(DeviceMemory),
    Gpu(GpuMemory),
}

/// Registered memory.
pub struct Registered {
    // Dropped in this order.
    pub registration: Registration,
    pub keeper: Foreign,
    /// The address of its first byte in work requests, local and remote.
    pub address: u64,
    /// The function that registered it, for the record.
    pub way: &'static str,
}

/// Lengths of device memory are multiples of this: a cache line.
const LINE: usize = 64;

/// Bytes of the device's own memory.
///
/// # Errors
/// The device has none.
pub fn device_bytes(context: &Context, name: &str) -> Result<usize> {
    let most = context.further_attributes().map_or(0, |attributes| attributes.max_dm_size);
    ensure!(
        most > 0,
        SetupError::NotAllowed(format!(
            "{name} does not support --memory device, since it has no memory of its own: \
             use --memory host"
        ))
    );
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}

/// Allocates and registers at least `least` bytes.
pub fn register(
    adapter: &Adapter,
    kind: MemoryKind,
    least: usize,
    access: u32,
) -> Result<Registered> {
    match kind {
        MemoryKind::Device => of_device(adapter, least.next_multiple_of(LINE), access),
        _ => of_gpu(adapter, kind, GpuMemory::new(kind, least)?, access),
    }
}

fn of_device(adapter: &Adapter, bytes: usize, access: u32) -> Result<Registered> {
    let (domain, most) = (&adapter.domain, device_bytes(&adapter.domain.parent, &adapter.name)?);
    let (needed, has) = (Bytes(bytes as u64), Bytes(most as u64));
    ensure!(
        bytes <= most,
        SetupError::NotAllowed(format!(
            "--memory device: the slots need {needed}, and {} has {has}: use smaller messages or \
             fewer of them (--window, --queue-pairs)",
            adapter.name
        ))
    );
    let memory = allocate(&domain.parent, bytes)?;
    // It has no address of its own: the first byte is 0.
    let registration = register_device(domain, &memory, bytes, access | IBV_ACCESS_ZERO_BASED)?;
    let keeper = Foreign::Device(memory);
    Ok(Registered { registration, keeper, address: 0, way: "ibv_reg_dm_mr" })
}

fn allocate(context: &Arc<Context>, length: usize) -> Result<DeviceMemory> {
    let mut attributes = ibv_alloc_dm_attr { length, ..ibv_alloc_dm_attr::default() };
    // SAFETY: a live context, and attributes that live through the calls.
    let (made, free) = unsafe {
        let free = extended::free_dm(context.raw());
        let none = std::ptr::null_mut();
        let made = free.map_or(none, |_| extended::alloc_dm(context.raw(), &mut attributes));
        (made, free)
    };
    let Some(free) = free else {
        return Err(SetupError::Refused("this provider cannot free device memory".into()));
    };
    let of = (context.library, Arc::clone(context));
    let what = format_args!("allocating {length} B of device memory");
    // SAFETY: it was made just now, and is freed with its owner.
    unsafe { DeviceMemory::take(made, free, of, what) }
}

fn register_device(
    domain: &Arc<Domain>,
    memory: &DeviceMemory,
    bytes: usize,
    access: u32,
) -> Result<Registration> {
    // SAFETY: a live domain, and memory of its device that is freed after the registration.
    let made = unsafe { extended::reg_dm_mr(domain.raw(), memory.raw(), bytes, access) };
    let of = (domain.library, Arc::clone(domain));
    let what = format_args!("registering {bytes} B of device memory");
    // SAFETY: it was made just now.
    unsafe { Registration::take(made, domain.library.ibv_dereg_mr, of, what) }
}

/// Registers a dma-buf from `offset` on; work requests name its first byte by `address`.
fn register_dma_buf(
    domain: &Arc<Domain>,
    descriptor: BorrowedFd<'_>,
    (offset, address): (u64, u64),
    bytes: usize,
    access: u32,
) -> Result<Registration, String> {
    let library = dma_buf().map_err(|missing| missing.to_string())?;
    let (descriptor, access) = (descriptor.as_raw_fd() as c_int, access as c_int);
    // SAFETY: a live domain and an open dma-buf.
    let made = unsafe {
        (library.ibv_reg_dmabuf_mr)(domain.raw(), offset, bytes, address, descriptor, access)
    };
    let of = (domain.library, Arc::clone(domain));
    // SAFETY: it was made just now; the registration keeps the dma-buf.
    let made =
        unsafe { Registration::take(made, domain.library.ibv_dereg_mr, of, "ibv_reg_dmabuf_mr") };
    made.map_err(|error| error.to_string())
}

/// Registers GPU memory as a dma-buf where both drivers support it, else by its address, which
/// needs a peer-memory driver (nvidia-peermem, or amdgpu with peer memory).
fn of_gpu(
    adapter: &Adapter,
    kind: MemoryKind,
    memory: GpuMemory,
    access: u32,
) -> Result<Registered> {
    let (domain, address, bytes) = (&adapter.domain, memory.address, memory.bytes);
    let by_dma_buf = memory.export().and_then(|exported| {
        let place = (exported.offset, address);
        register_dma_buf(domain, exported.descriptor.as_fd(), place, bytes, access)
    });
    let (registration, way) = match by_dma_buf {
        Ok(registration) => (registration, "ibv_reg_dmabuf_mr"),
        Err(why) => {
            // SAFETY: the memory goes after the registration.
            let made = unsafe { domain.register(address as *mut u8, bytes, access as i32) };
            let by_peer = made.map_err(|error| {
                SetupError::Refused(format!(
                    "--memory {kind} cannot be registered with {}: neither as a dma-buf ({why}) \
                     nor by its address ({error}); load nvidia-peermem, or use drivers that export \
                     dma-bufs",
                    adapter.name
                ))
            })?;
            (by_peer, "ibv_reg_mr")
        }
    };
    Ok(Registered { registration, keeper: Foreign::Gpu(memory), address, way })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_sys::verbs::{Verbs, verbs};
    use std::sync::Mutex;

    /// Calls of the made-up provider, in order.
    static CALLS: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn called(what: String) {
        CALLS.lock().unwrap().push(what);
    }

    // SAFETY: as the provider's function; its caller passes what it has got from these.
    unsafe extern "C" fn query(
        _: *mut ibv_context,
        _: *const ibv_query_device_ex_input,
        attributes: *mut ibv_device_attr_ex,
        _: usize,
    ) -> c_int {
        // SAFETY: room for the answer.
        unsafe { (*attributes).max_dm_size = 128 << 10 };
        0
    }

    // SAFETY: as above.
    unsafe extern "C" fn alloc(
        _: *mut ibv_context,
        attributes: *mut ibv_alloc_dm_attr,
    ) -> *mut ibv_dm {
        // SAFETY: well-formed attributes.
        called(format!("alloc_dm {}", unsafe { (*attributes).length }));
        Box::into_raw(Box::default())
    }

    // SAFETY: as above.
    unsafe extern "C" fn free(memory: *mut ibv_dm) -> c_int {
        called("free_dm".into());
        // SAFETY: made by `alloc`, and freed once.
        drop(unsafe { Box::from_raw(memory) });
        0
    }

    // SAFETY: as above.
    unsafe extern "C" fn register(
        _: *mut ibv_pd,
        _: *mut ibv_dm,
        offset: u64,
        length: usize,
        access: u32,
    ) -> *mut ibv_mr {
        let is_zero_based = access & IBV_ACCESS_ZERO_BASED != 0;
        called(format!("reg_dm_mr {offset} {length} zero-based {is_zero_based}"));
        Box::into_raw(Box::default())
    }

    // SAFETY: as above.
    unsafe extern "C" fn deregister(registration: *mut ibv_mr) -> c_int {
        called("dereg_mr".into());
        // SAFETY: made by `register`, and released once.
        drop(unsafe { Box::from_raw(registration) });
        0
    }

    // SAFETY: what nobody has made needs no release.
    unsafe extern "C" fn leave_context(_: *mut ibv_context) -> c_int {
        0
    }

    // SAFETY: as above.
    unsafe extern "C" fn leave_domain(_: *mut ibv_pd) -> c_int {
        0
    }

    #[test]
    fn device_memory_is_registered_from_zero_on_and_freed_after_its_registration() {
        let Ok(library) = verbs() else { return eprintln!("not checked here: no libibverbs") };
        let library = Box::leak(Box::new(Verbs { ibv_dereg_mr: deregister, ..*library }));
        // SAFETY: a table of functions of which most are missing, and null pointers.
        let table: &mut verbs_context = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
        table.context.abi_compat = usize::MAX as *mut _;
        table.sz = size_of::<verbs_context>();
        table.query_device_ex = Some(query);
        let raw = &raw mut table.context;
        // SAFETY: the context of a table that lives on.
        let context = unsafe { Context::take(raw, leave_context, (library, ()), "a context") };
        let context = Arc::new(context.unwrap());
        let domain = Box::leak(Box::new(ibv_pd { context: raw, ..ibv_pd::default() }));
        let of = (&*library, Arc::clone(&context));
        // SAFETY: as above.
        let domain = unsafe { Domain::take(domain, leave_domain, of, "a domain") };
        let domain = Arc::new(domain.unwrap());
        assert_eq!(device_bytes(&context, "mlx5_0").unwrap(), 128 << 10);
        assert!(allocate(&context, 64).is_err(), "a provider without device memory");
        // SAFETY: the table that was leaked above, which nobody reads meanwhile.
        unsafe {
            let table = raw.byte_sub(std::mem::offset_of!(verbs_context, context));
            let table = table.cast::<verbs_context>();
            (*table).alloc_dm = Some(alloc);
            (*table).free_dm = Some(free);
            (*table).reg_dm_mr = Some(register);
        }
        let memory = allocate(&context, 8192).unwrap();
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
        let registration = register_device(&domain, &memory, 8192, access).unwrap();
        let keeper = Foreign::Device(memory);
        drop(Registered { registration, keeper, address: 0, way: "ibv_reg_dm_mr" });
        let calls = std::mem::take(&mut *CALLS.lock().unwrap());
        let right = ["alloc_dm 8192", "reg_dm_mr 0 8192 zero-based true", "dereg_mr", "free_dm"];
        assert_eq!(calls, right);
    }
}
