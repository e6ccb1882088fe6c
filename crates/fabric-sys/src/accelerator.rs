//! Memory of GPUs: the functions of CUDA's driver, HIP and HSA that allocate it and hand it to an
//! RDMA adapter.
#![allow(non_snake_case, reason = "the libraries' own names")]

use crate::Missing;
use crate::library::{Known, functions};
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// `CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD` of <cuda.h>: a range of memory as a dma-buf.
pub const CU_DMA_BUF_FD: c_int = 1;

functions! {
    /// Functions of CUDA's driver. The suffix names the version that <cuda.h> has since 2010.
    Cuda of Known {
        soname: "libcuda.so.1",
        debian: "libcuda1",
        redhat: "nvidia-driver-cuda-libs",
    };
    cuInit(flags: c_uint) -> c_int;
    cuDeviceGetCount(count: *mut c_int) -> c_int;
    cuDeviceGet(device: *mut c_int, number: c_int) -> c_int;
    cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int;
    cuCtxSetCurrent(context: *mut c_void) -> c_int;
    cuMemAlloc_v2(address: *mut c_ulonglong, bytes: usize) -> c_int;
    cuMemFree_v2(address: c_ulonglong) -> c_int;
    cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int;
}

functions! {
    /// What CUDA's driver has since version 11.7.
    CudaExport of Known {
        soname: "libcuda.so.1",
        debian: "libcuda1",
        redhat: "nvidia-driver-cuda-libs",
    };
    cuMemGetHandleForAddressRange(
        handle: *mut c_void,
        address: c_ulonglong,
        bytes: usize,
        kind: c_int,
        flags: c_ulonglong
    ) -> c_int;
}

functions! {
    /// Functions of HIP, by the name that every version of ROCm installs.
    Hip of Known {
        soname: "libamdhip64.so",
        debian: "libamdhip64-dev",
        redhat: "hip-runtime-amd",
    };
    hipGetDeviceCount(count: *mut c_int) -> c_int;
    hipSetDevice(device: c_int) -> c_int;
    hipMalloc(address: *mut *mut c_void, bytes: usize) -> c_int;
    hipFree(address: *mut c_void) -> c_int;
    hipGetErrorName(error: c_int) -> *const c_char;
}

functions! {
    /// What the runtime below HIP has since ROCm 5.3.
    HsaExport of Known {
        soname: "libhsa-runtime64.so.1",
        debian: "libhsa-runtime64-1",
        redhat: "hsa-rocr",
    };
    hsa_amd_portable_export_dmabuf(
        address: *const c_void,
        bytes: usize,
        descriptor: *mut c_int,
        offset: *mut u64
    ) -> c_int;
}

/// Declares a function that opens a library once.
macro_rules! opened_once {
    ($($(#[$doc:meta])* $name:ident: $table:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name() -> Result<&'static $table, Missing> {
            static OPENED: OnceLock<Result<$table, Missing>> = OnceLock::new();
            OPENED.get_or_init($table::load).as_ref().map_err(Clone::clone)
        }
    )+};
}

opened_once! {
    /// libcuda, opened once.
    cuda: Cuda;
    /// What a late libcuda can.
    cuda_export: CudaExport;
    /// libamdhip64, opened once.
    hip: Hip;
    /// What a late libhsa-runtime64 can.
    hsa_export: HsaExport;
}
