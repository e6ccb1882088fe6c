//! The programs of this host that the testbeds call, and which package has one that is missing.

use fs_err as fs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wiregauge_host::child;

/// Where programs for root are; the PATH of others often lacks it.
const FOR_ROOT: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Where libibverbs keeps its drivers.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu/libibverbs";

/// Longest end of a program's output that is quoted, in bytes.
const LAST_WORDS: usize = 600;

/// Between two looks at something that is awaited.
const LOOK: Duration = Duration::from_millis(10);

/// A program, and Debian's package that has it.
pub type Needed = (&'static str, &'static str);

/// Refuses a host that lacks what a virtual machine needs: programs that are called here, and those
/// that the guest calls from the host's files.
pub fn check_for_machines() -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::Error::other("the testbed needs an x86-64 host"));
    }
    let mut missing = lacking(&[
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("depmod", "kmod"),
        ("modprobe", "kmod"),
        ("ip", "iproute2"),
        ("rdma", "iproute2"),
    ]);
    if let Some(busybox) = find("busybox")
        && !is_static(&busybox)?
    {
        missing.push(("a static busybox", "busybox-static"));
    }
    let mut drivers = fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
    if !drivers.any(|entry| entry.file_name().as_bytes().starts_with(b"librxe-")) {
        missing.push(("libibverbs' driver for Soft-RoCE", "ibverbs-providers"));
    }
    require(&missing)
}

/// Those that this host lacks.
pub fn lacking(needed: &[Needed]) -> Vec<Needed> {
    needed.iter().copied().filter(|(program, _)| find(program).is_none()).collect()
}

/// Refuses where something is missing. Programs of one package stand together.
pub fn require(missing: &[Needed]) -> io::Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let (programs, mut packages): (Vec<_>, Vec<_>) = missing.iter().copied().unzip();
    packages.dedup();
    Err(io::Error::other(format!(
        "the testbed needs {}; install it with: apt-get install {}",
        programs.join(", "),
        packages.join(" ")
    )))
}

/// The `PATH` of this process and the folders of programs for root.
pub fn search_path() -> OsString {
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
fn is_static(program: &Path) -> io::Result<bool> {
    let bytes = fs::read(program)?;
    let loader = b"/ld-linux";
    Ok(!bytes.windows(loader.len()).any(|window| window == loader))
}

/// A program of the search path, to be called.
pub fn command(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| program.into()))
}

/// Runs a program to its end and gives its standard output; `input` is what it reads.
///
/// Errors: it cannot be started, or its exit code is not 0; its last words are in the error.
pub fn call(command: &mut Command, input: &str) -> io::Result<Vec<u8>> {
    command.env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that stops reading says why at its end.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.extend(input.lines().map(|line| format!("{line};").into()));
    let said = last_words(&output.stderr);
    Err(io::Error::other(format!("{} failed: {said}", words.join(" "))))
}

/// Starts a program that ends with this one.
pub fn start(command: &mut Command) -> io::Result<Child> {
    child::ends_with_us(command).spawn().map_err(|error| {
        let program = Path::new(command.get_program()).display();
        io::Error::other(format!("starting {program}: {error}"))
    })
}

/// Makes a folder for this process alone among the temporary files; it goes with its owner.
pub fn private_folder(kind: &str) -> io::Result<TempDir> {
    let prefix = format!("wiregauge-{kind}-{}-", std::process::id());
    let only_ours = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(&prefix).permissions(only_ours).tempdir()
}

/// The number of the signal that told this process to end; 0 until one has.
pub fn signals() -> io::Result<Arc<AtomicUsize>> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)?;
    }
    Ok(signal)
}

/// Looks again and again until there is something; `None` where there is nothing at the deadline.
pub fn wait_until<T>(deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let found = look();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(LOOK);
    }
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
        let missing = [("ip", "iproute2"), ("rdma", "iproute2"), ("depmod", "kmod")];
        assert_eq!(
            require(&missing).unwrap_err().to_string(),
            "the testbed needs ip, rdma, depmod; install it with: apt-get install iproute2 kmod"
        );
    }

    #[test]
    fn last_words_are_one_short_line() {
        assert_eq!(last_words(b"E: one\r\n\n  two \x1b[0m\n"), "E: one; two [0m");
        assert!(last_words(&[b'x'; 5000]).len() <= LAST_WORDS);
    }

    #[test]
    fn a_private_folder_goes_with_its_owner() {
        let private = private_folder("test").unwrap();
        let path = private.path().to_path_buf();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "").unwrap();
        drop(private);
        assert!(!path.exists());
    }
}
