//! GPU memory, allocated by the vendor's library, which is loaded only when it is asked for.

use super::memory_kind::MemoryKind;
use crate::{Result, SetupError};
use fabric_sys::accelerator::{self, CU_DMA_BUF_FD, Cuda, Hip};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// Allocations are multiples of this, so that they begin on a page boundary of both the GPU and the
/// host: a dma-buf must.
const PAGE: usize = 2 << 20;

/// The library that allocated the memory.
#[derive(Clone, Copy)]
enum Maker {
    Cuda { library: &'static Cuda, device: c_int, context: *mut c_void },
    Hip(&'static Hip),
}

/// Allocated memory.
pub struct GpuMemory {
    maker: Maker,
    /// Its first byte in the GPU's address space.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
}

/// GPU memory as a dma-buf, which other drivers can import.
pub struct Exported {
    pub descriptor: OwnedFd,
    /// Offset of the memory's first byte in the dma-buf.
    pub offset: u64,
}

impl GpuMemory {
    /// Allocates at least `least` bytes on the GPU that is asked for.
    pub fn new(kind: MemoryKind, least: usize) -> Result<GpuMemory> {
        let bytes = least.next_multiple_of(PAGE);
        match kind {
            MemoryKind::Cuda(number) => Self::of_cuda(number, bytes),
            MemoryKind::Rocm(number) => Self::of_hip(number, bytes),
            MemoryKind::Host | MemoryKind::Device => {
                Err(SetupError::NotAllowed(format!("--memory {kind} is not GPU memory")))
            }
        }
    }

    fn of_cuda(number: u8, bytes: usize) -> Result<GpuMemory> {
        let library = accelerator::cuda().map_err(|missing| missing_library("cuda", &missing))?;
        let done = |error, what: &str| match error {
            0 => Ok(()),
            _ => Err(failed("cuda", number, what, &cuda_name(library, error))),
        };
        let (mut count, mut device, mut context, mut address) = (0, 0, null_mut(), 0);
        // SAFETY: the driver's functions, in the order that its manual asks for, with room for each
        // answer; a context is retained before anything is allocated in it.
        unsafe {
            done((library.cuInit)(0), "cuInit")?;
            done((library.cuDeviceGetCount)(&mut count), "cuDeviceGetCount")?;
            check_number("cuda", number, count)?;
            done((library.cuDeviceGet)(&mut device, number.into()), "cuDeviceGet")?;
            let retained = (library.cuDevicePrimaryCtxRetain)(&mut context, device);
            done(retained, "cuDevicePrimaryCtxRetain")?;
            // From here on `Drop` releases the context.
            let maker = Maker::Cuda { library, device, context };
            let mut memory = GpuMemory { maker, address, bytes };
            done((library.cuCtxSetCurrent)(context), "cuCtxSetCurrent")?;
            let what = format!("cuMemAlloc of {bytes} B");
            done((library.cuMemAlloc_v2)(&mut address, bytes), &what)?;
            memory.address = address;
            Ok(memory)
        }
    }

    fn of_hip(number: u8, bytes: usize) -> Result<GpuMemory> {
        let library = accelerator::hip().map_err(|missing| missing_library("rocm", &missing))?;
        let done = |error, what: &str| match error {
            0 => Ok(()),
            _ => Err(failed("rocm", number, what, &hip_name(library, error))),
        };
        let (mut count, mut address) = (0, null_mut());
        // SAFETY: as above, of HIP.
        unsafe {
            done((library.hipGetDeviceCount)(&mut count), "hipGetDeviceCount")?;
            check_number("rocm", number, count)?;
            done((library.hipSetDevice)(number.into()), "hipSetDevice")?;
            let what = format!("hipMalloc of {bytes} B");
            done((library.hipMalloc)(&mut address, bytes), &what)?;
        }
        Ok(GpuMemory { maker: Maker::Hip(library), address: address as u64, bytes })
    }

    /// Exports it as a dma-buf.
    ///
    /// # Errors
    /// Why the driver cannot, in words.
    pub fn export(&self) -> Result<Exported, String> {
        let (mut descriptor, mut offset) = (-1, 0);
        let (at, bytes) = (self.address as *const c_void, self.bytes);
        match self.maker {
            Maker::Cuda { library, .. } => {
                let export = accelerator::cuda_export().map_err(|missing| missing.to_string())?;
                let handle = (&raw mut descriptor).cast();
                // SAFETY: live memory of this length, and room for a descriptor.
                let error = unsafe {
                    (export.cuMemGetHandleForAddressRange)(
                        handle,
                        self.address,
                        bytes,
                        CU_DMA_BUF_FD,
                        0,
                    )
                };
                let name = || cuda_name(library, error);
                ensure!(error == 0, "cuMemGetHandleForAddressRange: {}", name());
            }
            Maker::Hip(_) => {
                let export = accelerator::hsa_export().map_err(|missing| missing.to_string())?;
                // SAFETY: as above.
                let error = unsafe {
                    (export.hsa_amd_portable_export_dmabuf)(at, bytes, &mut descriptor, &mut offset)
                };
                ensure!(error == 0, "hsa_amd_portable_export_dmabuf: status {error:#x}");
            }
        }
        ensure!(descriptor >= 0, "the export gave no file descriptor");
        // SAFETY: a descriptor that was made just now for this process, which closes it: a
        // registration keeps the dma-buf by itself.
        Ok(Exported { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) }, offset })
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // SAFETY: what was allocated and retained by these libraries, once. A failure leaves
        // nothing to be done: the process ends soon.
        unsafe {
            match self.maker {
                Maker::Cuda { library, device, context } => {
                    (library.cuCtxSetCurrent)(context);
                    if self.address != 0 {
                        (library.cuMemFree_v2)(self.address);
                    }
                    (library.cuDevicePrimaryCtxRelease_v2)(device);
                }
                Maker::Hip(library) => {
                    (library.hipFree)(self.address as *mut c_void);
                }
            }
        }
    }
}

fn missing_library(kind: &str, missing: &fabric_sys::Missing) -> SetupError {
    SetupError::NotAllowed(format!("--memory {kind}: {missing}"))
}

fn failed(kind: &str, number: u8, what: &str, error: &str) -> SetupError {
    SetupError::Refused(format!("--memory {kind}:{number}: {what}: {error}"))
}

fn check_number(kind: &str, number: u8, count: c_int) -> Result<()> {
    let is_there = c_int::from(number) < count;
    let sentence = match count {
        ..=0 => format!("--memory {kind}:{number}: this host has no such GPU"),
        1 => format!("--memory {kind}:{number} is out of range: use {kind}:0, the only GPU here"),
        _ => format!("--memory {kind}:{number} is out of range: use {kind}:0 to {}", count - 1),
    };
    ensure!(is_there, SetupError::NotAllowed(sentence));
    Ok(())
}

fn cuda_name(library: &Cuda, error: c_int) -> String {
    let mut name = std::ptr::null();
    // SAFETY: room for a pointer to a static string, which is null for an unknown number.
    unsafe {
        (library.cuGetErrorName)(error, &mut name);
        text_of(name, error)
    }
}

fn hip_name(library: &Hip, error: c_int) -> String {
    // SAFETY: a static string for every number.
    unsafe { text_of((library.hipGetErrorName)(error), error) }
}

/// # Safety
/// A static string, or null.
unsafe fn text_of(name: *const c_char, error: c_int) -> String {
    if name.is_null() {
        return format!("error {error}");
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_those_that_are() {
        let refused = |number, count| check_number("cuda", number, count).err();
        assert!(refused(0, 1).is_none() && refused(3, 4).is_none());
        let sentence = |number, count| refused(number, count).unwrap().to_string();
        assert_eq!(sentence(4, 4), "--memory cuda:4 is out of range: use cuda:0 to 3");
        assert!(sentence(1, 1).contains("the only GPU here"));
        assert!(sentence(0, 0).contains("no such GPU"));
    }
}
