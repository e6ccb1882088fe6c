//! The programs of this host that the testbed calls, and which package has one that is missing.

use super::error::{TestbedError, file};
use crate::host::child;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs for root are; the PATH of others often lacks it.
const FOR_ROOT: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Where libibverbs keeps its drivers.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu/libibverbs";

/// Most of what a program said that is told again.
const LAST_WORDS: usize = 600;

/// Programs, by path.
#[derive(Debug)]
pub struct Tools {
    /// The emulator.
    pub qemu: PathBuf,
    /// A static busybox: the first programs of the guest.
    pub busybox: PathBuf,
    /// Makes the index of the guest's modules.
    pub depmod: PathBuf,
    /// Says on which others a module depends.
    pub modprobe: PathBuf,
}

impl Tools {
    /// Finds them all, and what the guest calls from the host's files.
    pub fn find() -> Result<Tools, TestbedError> {
        if !cfg!(target_arch = "x86_64") {
            let sentence = "the testbed's machine is an x86-64 one; this host is of another kind";
            return Err(TestbedError::Unable(sentence.into()));
        }
        let mut missing: Vec<(&str, &str)> = Vec::new();
        let mut need = |program: &'static str, package: &'static str| {
            let found = find(program);
            if found.is_none() {
                missing.push((program, package));
            }
            found.unwrap_or_default()
        };
        let qemu = need("qemu-system-x86_64", "qemu-system-x86");
        let busybox = need("busybox", "busybox-static");
        let depmod = need("depmod", "kmod");
        let modprobe = need("modprobe", "kmod");
        need("ip", "iproute2");
        need("rdma", "iproute2");
        if !busybox.as_os_str().is_empty() && !is_static(&busybox)? {
            missing.push(("a static busybox", "busybox-static"));
        }
        let rxe = std::fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
        if !rxe.map(|entry| entry.file_name()).any(|name| starts(&name, "librxe-")) {
            missing.push(("libibverbs' driver for Soft-RoCE", "ibverbs-providers"));
        }
        match missing.is_empty() {
            true => Ok(Tools { qemu, busybox, depmod, modprobe }),
            false => Err(lacking(&missing)),
        }
    }
}

fn starts(name: &OsStr, with: &str) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(with))
}

/// The error for pairs of a program and its package.
pub fn lacking(missing: &[(&str, &str)]) -> TestbedError {
    let mut packages: Vec<String> = Vec::new();
    for (_, package) in missing {
        if !packages.iter().any(|known| known == package) {
            packages.push((*package).to_owned());
        }
    }
    let programs = missing.iter().map(|(program, _)| (*program).to_owned()).collect();
    TestbedError::Missing { programs, packages }
}

/// The `PATH` of this process and the folders of programs for root.
pub fn search_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    path.push(":");
    path.push(FOR_ROOT);
    path
}

/// A program in the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = search_path();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Whether a program needs no loader: an ELF file that names none. In the guest's first file
/// system there are no libraries.
fn is_static(program: &Path) -> Result<bool, TestbedError> {
    let bytes = std::fs::read(program).map_err(file("reading", program))?;
    let loader = b"/ld-linux";
    Ok(!bytes.windows(loader.len()).any(|window| window == loader))
}

/// Runs a program to its end and gives its standard output.
///
/// Errors: it cannot be started, or its exit code is not 0; its last words are in the error.
pub fn call(
    program: &Path,
    arguments: &[&OsStr],
    folder: Option<&Path>,
) -> Result<Vec<u8>, TestbedError> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let output = child::ends_with_us(&mut command).output().map_err(file("starting", program))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = arguments.iter().map(|word| word.to_string_lossy());
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Err(TestbedError::Tool {
        program: [name].into_iter().chain(words).collect::<Vec<_>>().join(" "),
        said: last_words(&output.stderr),
    })
}

/// The end of a text, as one line without control characters.
pub fn last_words(said: &[u8]) -> String {
    let from = said.len().saturating_sub(LAST_WORDS);
    let text = String::from_utf8_lossy(&said[from..]);
    let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join("; ");
    line.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_each_package_once() {
        let error = lacking(&[("ip", "iproute2"), ("rdma", "iproute2"), ("depmod", "kmod")]);
        assert_eq!(
            error.to_string(),
            "the testbed needs ip, rdma, depmod; install it with: apt-get install iproute2 kmod"
        );
    }

    #[test]
    fn last_words_are_one_short_line() {
        assert_eq!(last_words(b"E: one\r\n\n  two \x1b[0m\n"), "E: one; two [0m");
        assert!(last_words(&[b'x'; 5000]).len() <= LAST_WORDS);
    }
}
