//! The three binary interfaces of MPI, which differ in constants alone: one table each.
//!
//! A handle is an `int` in MPICH's and a pointer in the others. All of them are passed as `usize`:
//! a function that takes an `int` reads the lower half of the register, or of the eight bytes on
//! the stack (System V ABI for x86-64, AAPCS64), and one that writes an `int` through a pointer
//! writes the first half of a `usize` that was zero before, on a little-endian machine. Arrays of
//! handles would differ in their stride, so no function that takes one is used.

use libloading::Library;
use std::ffi::c_int;

/// Which of the three it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// That of Open MPI 4 and 5 (`libmpi.so.40`).
    OpenMpi,
    /// That of MPICH since 3.1, of Intel MPI, MVAPICH and Cray (`libmpi.so.12`, Debian's
    /// `libmpich.so.12`).
    Mpich,
    /// That of the standard, since MPI 5.0 (`libmpi_abi.so.1`).
    Standard,
}

impl Abi {
    /// In a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Abi::OpenMpi => "Open MPI's ABI",
            Abi::Mpich => "the MPICH ABI",
            Abi::Standard => "the MPI 5.0 standard ABI",
        }
    }
}

/// What the headers define and no function tells.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// `MPI_COMM_WORLD`.
    pub comm_world: usize,
    /// `MPI_BYTE`.
    pub byte: usize,
    /// `MPI_DOUBLE`.
    pub double: usize,
    /// `MPI_INT64_T`.
    pub int64: usize,
    /// `MPI_SUM`.
    pub sum: usize,
    /// `MPI_MAX`.
    pub max: usize,
    /// `MPI_REQUEST_NULL`.
    pub request_null: usize,
    /// `MPI_INFO_NULL`.
    pub info_null: usize,
    /// `MPI_ERRORS_RETURN`.
    pub errors_return: usize,
    /// `MPI_STATUS_IGNORE`.
    pub status_ignore: usize,
    /// `MPI_THREAD_MULTIPLE`.
    pub thread_multiple: c_int,
}

/// Of `mpi.h` of MPICH 4.0.2 and 5.0.2, the same in both.
const MPICH: Constants = Constants {
    comm_world: 0x4400_0000,
    byte: 0x4c00_010d,
    double: 0x4c00_080b,
    int64: 0x4c00_083a,
    sum: 0x5800_0003,
    max: 0x5800_0001,
    request_null: 0x2c00_0000,
    info_null: 0x1c00_0000,
    errors_return: 0x5400_0001,
    status_ignore: 1,
    thread_multiple: 3,
};

/// Of MPI 5.0, appendix A.1.1 and chapter 20, and of `mpi_abi.h` of MPICH 5.0.2.
const STANDARD: Constants = Constants {
    comm_world: 0x101,
    byte: 0x247,
    double: 0x214,
    int64: 0x258,
    sum: 0x21,
    max: 0x23,
    request_null: 0x180,
    info_null: 0x130,
    errors_return: 0x143,
    status_ignore: 0,
    thread_multiple: 4096,
};

impl Constants {
    /// Those of an opened library.
    pub(super) fn of(abi: Abi, library: &Library) -> Option<Constants> {
        match abi {
            Abi::Mpich => Some(MPICH),
            Abi::Standard => Some(STANDARD),
            Abi::OpenMpi => open_mpi(library),
        }
    }
}

/// Of `mpi.h` of Open MPI 4.1.4 and 5.0.11, the same in both: a handle is the address of an object
/// that the library exports (`OMPI_PREDEFINED_GLOBAL`).
fn open_mpi(library: &Library) -> Option<Constants> {
    let object = |name: &str| address(library, name);
    Some(Constants {
        comm_world: object("ompi_mpi_comm_world")?,
        byte: object("ompi_mpi_byte")?,
        double: object("ompi_mpi_double")?,
        int64: object("ompi_mpi_int64_t")?,
        sum: object("ompi_mpi_op_sum")?,
        max: object("ompi_mpi_op_max")?,
        request_null: object("ompi_request_null")?,
        info_null: object("ompi_mpi_info_null")?,
        errors_return: object("ompi_mpi_errors_return")?,
        status_ignore: 0,
        thread_multiple: 3,
    })
}

/// The address of a symbol.
pub(super) fn address(library: &Library, name: &str) -> Option<usize> {
    // SAFETY: the symbol is not used by this type: only its address is taken.
    let found = unsafe { library.get::<*const u8>(name) };
    found.ok().map(|symbol| (*symbol) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handles of one table that mean different things are different, or a column was copied.
    #[test]
    fn no_two_handles_of_a_kind_are_the_same() {
        for table in [MPICH, STANDARD] {
            let Constants { comm_world, byte, double, int64, sum, max, .. } = table;
            let Constants { request_null: null, info_null, errors_return: handler, .. } = table;
            let mut handles = [comm_world, byte, double, int64, sum, max, null, info_null, handler];
            handles.sort_unstable();
            assert!(handles.windows(2).all(|two| two[0] != two[1]), "{table:?}");
        }
    }
}
