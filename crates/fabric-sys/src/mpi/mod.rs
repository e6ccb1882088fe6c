//! MPI, whichever is installed: Open MPI, MPICH and its relatives, or one of the standard ABI of
//! MPI 5.0. The library is opened at run time, and its own functions tell which ABI it has.
#![allow(non_snake_case, reason = "the standard's own names")]

mod abi;
mod collectives;
mod windows;

pub use abi::{Abi, Constants};
pub use collectives::Collectives;
use libloading::Library;
use libloading::os::unix;
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
pub use windows::Windows;

/// `MPI_SUCCESS`, the same in all.
pub const MPI_SUCCESS: c_int = 0;
/// At least `MPI_MAX_LIBRARY_VERSION_STRING` and `MPI_MAX_ERROR_STRING` of all.
const LONGEST_TEXT: usize = 8192;

/// The names of libraries that programs are linked with, and their packages.
const NAMES: [Name; 4] = [
    Name { soname: "libmpi.so.40", family: Family::OpenMpi },
    Name { soname: "libmpi.so.12", family: Family::Mpich },
    Name { soname: "libmpich.so.12", family: Family::Mpich },
    Name { soname: "libmpi_abi.so.1", family: Family::Mpich },
];

/// A name to look for.
struct Name {
    soname: &'static str,
    family: Family,
}

/// Whose launcher has started this process: its library must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH, or another one whose processes Hydra starts.
    Mpich,
}

/// Where the library is looked for.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// This file, and no other.
    pub file: Option<PathBuf>,
    /// These folders before those of the system.
    pub folders: Vec<PathBuf>,
    /// Libraries of this family first.
    pub family: Option<Family>,
}

/// A `MPI_Status` of any ABI: 20 B in MPICH's, 24 B in Open MPI's, 32 B in the standard's.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Status([u64; 4]);

macro_rules! functions {
    ($(#[$about:meta])* $table:ident: $($name:ident($($argument:ident: $type:ty),*);)+) => {
        $(#[$about])*
        #[allow(missing_docs, reason = "they are the standard's, with its names")]
        #[derive(Clone, Copy)]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument: $type),*) -> c_int,)+
        }

        impl $table {
            pub(super) fn load(library: &Library, file: &str) -> Result<$table, NoMpi> {
                Ok($table {
                    // SAFETY: the type is the one of the standard's C binding, with handles as the
                    // ABI's module says; the library is never closed.
                    $($name: unsafe { *library.get(stringify!($name)).map_err(|_| {
                        NoMpi::Symbol { file: file.into(), symbol: stringify!($name) }
                    })? },)+
                })
            }
        }
    };
}
use functions;

functions! {
    /// The functions that are used, in the forms of `mpi.h`. A handle is a `usize`: see
    /// [`Constants`].
    Functions:
    MPI_Init_thread(argc: *mut c_int, argv: *mut c_void, wanted: c_int, granted: *mut c_int);
    MPI_Finalize();
    MPI_Query_thread(granted: *mut c_int);
    MPI_Comm_rank(comm: usize, rank: *mut c_int);
    MPI_Comm_size(comm: usize, size: *mut c_int);
    MPI_Comm_set_errhandler(comm: usize, handler: usize);
    MPI_Error_string(code: c_int, text: *mut c_char, length: *mut c_int);
    MPI_Isend(
        from: *const c_void, count: c_int, datatype: usize,
        dest: c_int, tag: c_int, comm: usize, request: *mut usize
    );
    MPI_Irecv(
        to: *mut c_void, count: c_int, datatype: usize,
        source: c_int, tag: c_int, comm: usize, request: *mut usize
    );
    MPI_Wait(request: *mut usize, status: *mut Status);
    MPI_Test(request: *mut usize, flag: *mut c_int, status: *mut Status);
    MPI_Cancel(request: *mut usize);
    MPI_Get_count(status: *const Status, datatype: usize, count: *mut c_int);
}

/// Why there is no MPI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMpi {
    /// None of the known libraries is installed.
    #[error(
        "no MPI library was found ({}); Debian has one in libopenmpi3 or libmpich12, Red Hat in \
         openmpi or mpich",
        names()
    )]
    Nowhere,
    /// The one that was named cannot be opened.
    #[error("{file} cannot be opened as an MPI library: {why}")]
    File {
        /// As it was named.
        file: String,
        /// The loader's words.
        why: String,
    },
    /// Its ABI is unknown.
    #[error("{file} ({version}) has an unknown ABI: use Open MPI, MPICH or an MPI 5.0 library")]
    Abi {
        /// The library.
        file: String,
        /// What it says of itself.
        version: String,
    },
    /// It lacks a function.
    #[error("{file} has no {symbol}: a library of MPI 3.0 or later is needed")]
    Symbol {
        /// The library.
        file: String,
        /// The function.
        symbol: &'static str,
    },
}

fn names() -> String {
    NAMES.map(|name| name.soname).join(", ")
}

/// An opened MPI library.
#[derive(Clone)]
pub struct Mpi {
    /// Its functions.
    pub call: Functions,
    /// Its collective operations.
    pub collectives: Collectives,
    /// Its operations on memory of other ranks.
    pub windows: Windows,
    /// The constants of its ABI.
    pub constants: Constants,
    /// Which ABI it has.
    pub abi: Abi,
    /// What it says of itself, a line: `Open MPI v4.1.4`.
    pub version: String,
    /// The name or path by which it was opened.
    pub file: String,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {} ({})", self.version, self.abi.name(), self.file)
    }
}

impl Mpi {
    /// Opens the first library that is found, for as long as the process lives. A process opens
    /// one: its components find its symbols in the process (`RTLD_GLOBAL`).
    pub fn open(search: &Search) -> Result<Mpi, NoMpi> {
        if let Some(file) = &search.file {
            let file = file.display().to_string();
            return match opened(&file) {
                Ok(library) => Mpi::of(library, file),
                Err(why) => Err(NoMpi::File { file, why }),
            };
        }
        let candidates = candidates(search);
        let found = candidates.into_iter().find_map(|file| Some((opened(&file).ok()?, file)));
        let (library, file) = found.ok_or(NoMpi::Nowhere)?;
        Mpi::of(library, file)
    }

    fn of(library: Library, file: String) -> Result<Mpi, NoMpi> {
        let library: &'static Library = Box::leak(Box::new(library));
        let version = version(library, &file)?;
        let wrong = || NoMpi::Abi { file: file.clone(), version: version.clone() };
        let abi = abi_of(library, &version).ok_or_else(wrong)?;
        let constants = Constants::of(abi, library).ok_or_else(wrong)?;
        let call = Functions::load(library, &file)?;
        let collectives = Collectives::load(library, &file)?;
        let windows = Windows::load(library, &file)?;
        Ok(Mpi { call, collectives, windows, constants, abi, version, file })
    }

    /// What a code of an error means, in the library's words.
    pub fn error(&self, code: c_int) -> String {
        let said = text(|text, length| {
            // SAFETY: the text has room for the longest of any implementation.
            unsafe { (self.call.MPI_Error_string)(code, text, length) }
        });
        said.unwrap_or_else(|| format!("MPI error {code}"))
    }
}

/// The first line of a text that a function writes.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let mut room = vec![0u8; LONGEST_TEXT];
    let mut length = 0;
    let code = write(room.as_mut_ptr().cast(), &mut length);
    room.truncate(usize::try_from(length).ok()?);
    let all = String::from_utf8_lossy(&room);
    let line = all.lines().next()?.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (code == MPI_SUCCESS && !line.is_empty()).then(|| line.to_string())
}

/// What the library says of itself, which it may be asked before it is initialised: of Open MPI
/// what stands before the first comma, of MPICH the number behind its label.
fn version(library: &'static Library, file: &str) -> Result<String, NoMpi> {
    type Ask = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    let symbol = "MPI_Get_library_version";
    // SAFETY: the type is the one of the standard's C binding.
    let ask = unsafe { library.get::<Ask>(symbol) };
    let ask = ask.map_err(|_| NoMpi::Symbol { file: file.into(), symbol })?;
    // SAFETY: the text has room for the longest of any implementation; the standard allows the
    // call at any time.
    let line = text(|text, length| unsafe { ask(text, length) }).unwrap_or_default();
    Ok(short(&line))
}

fn short(line: &str) -> String {
    let words = line.split(',').next().unwrap_or_default().replace(" Version:", "");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which ABI a library has. By its own word where it knows the standard's: MPICH 5 says -1 where
/// the library has its own ABI. By an exported object where it is Open MPI. MPICH's relatives name
/// themselves.
fn abi_of(library: &'static Library, version: &str) -> Option<Abi> {
    type Ask = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: the type is the one of the standard's C binding.
    let asked = unsafe { library.get::<Ask>("MPI_Abi_get_version") };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: both point to an int; the standard allows the call at any time.
    let code = asked.map(|ask| unsafe { ask(&mut major, &mut minor) });
    if code.is_ok_and(|code| code == MPI_SUCCESS) && major == 1 {
        return Some(Abi::Standard);
    }
    if abi::address(library, "ompi_mpi_comm_world").is_some() {
        return Some(Abi::OpenMpi);
    }
    const RELATIVES: [&str; 4] = ["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"];
    RELATIVES.iter().any(|name| version.contains(name)).then_some(Abi::Mpich)
}

fn opened(file: &str) -> Result<Library, String> {
    let flags = unix::RTLD_NOW | unix::RTLD_GLOBAL;
    // SAFETY: the constructors of MPI libraries, and of those that they need, have no
    // precondition; the library is never closed.
    let library = unsafe { unix::Library::open(Some(Path::new(file)), flags) };
    library.map(Library::from).map_err(|error| error.to_string())
}

/// The files to try, in order.
fn candidates(search: &Search) -> Vec<String> {
    let is_last = |name: &&Name| search.family.is_some_and(|family| family != name.family);
    let (mut last, mut names): (Vec<_>, Vec<_>) = NAMES.iter().partition(is_last);
    names.append(&mut last);
    let in_folder = |folder: &PathBuf| {
        let of = |name: &&Name| folder.join(name.soname).display().to_string();
        names.iter().map(of).collect::<Vec<_>>()
    };
    let of_system = names.iter().map(|name| name.soname.to_string());
    search.folders.iter().flat_map(in_folder).chain(of_system).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_the_launcher_s_family_come_first_and_all_are_tried() {
        let of = |family| candidates(&Search { family, ..Search::default() });
        assert_eq!(of(Some(Family::OpenMpi))[0], "libmpi.so.40");
        assert_eq!(of(Some(Family::Mpich))[0], "libmpi.so.12");
        assert_eq!(of(Some(Family::Mpich)).len(), NAMES.len());
        let folders = vec![PathBuf::from("/opt/mpi/lib")];
        let near = candidates(&Search { folders, ..Search::default() });
        assert_eq!((&*near[0], near.len()), ("/opt/mpi/lib/libmpi.so.40", 2 * NAMES.len()));
    }

    #[test]
    fn a_library_s_word_of_itself_is_cut_to_name_and_number() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";
        assert_eq!(short(open), "Open MPI v4.1.4");
        assert_eq!(short("MPICH Version:\t4.0.2"), "MPICH 4.0.2");
        assert_eq!(short("MPICH Version:      5.0.2"), "MPICH 5.0.2");
        let intel = "Intel(R) MPI Library 2021.8 for Linux* OS";
        assert_eq!(short(intel), intel);
    }

    #[test]
    fn a_file_that_is_no_mpi_is_refused_with_its_name() {
        let search = |file: &str| Search { file: Some(file.into()), ..Search::default() };
        let nowhere = Mpi::open(&search("/no/libmpi.so")).unwrap_err().to_string();
        assert!(nowhere.starts_with("/no/libmpi.so cannot be opened"), "{nowhere}");
        let other = Mpi::open(&search("libc.so.6")).unwrap_err().to_string();
        assert!(other.contains("libc.so.6 has no MPI_Get_library_version"), "{other}");
    }
}
