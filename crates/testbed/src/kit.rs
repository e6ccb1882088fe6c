//! What a machine boots: Debian's kernel with the modules on offer, and the first file system.

use super::cache;
use super::tools::{self, call};
use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge_host::private_folder::PrivateFolder;

/// The package whose only dependency of that form is Debian's present kernel.
const META_PACKAGE: &str = "linux-image-amd64";

/// Modules that the first file system loads, to reach the host's files and the driver.
const FIRST: [&str; 6] =
    ["virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay"];

/// Modules that a command may load in the guest, beside those of the RDMA device.
#[rustfmt::skip]
const OFFERED: [&str; 42] = [
    "rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib",
    // What rdma_rxe, sctp and tls ask the kernel for by the name of an algorithm.
    "crc32_generic", "crc32_pclmul", "crc32c_generic", "sha1_generic", "sha256_generic", "hmac",
    "dummy", "veth", "bridge", "ifb", "macvlan", "ipvlan", "vxlan", "tun", "8021q", "bonding",
    "sctp", "sctp_diag", "tcp_diag", "udp_diag", "unix_diag", "af_packet_diag", "tcp_dctcp",
    "tcp_bbr", "sch_netem", "sch_tbf", "sch_htb", "sch_prio", "sch_fq", "sch_fq_codel",
    "sch_ingress", "cls_u32", "cls_matchall", "act_mirred", "act_police", "vsock_loopback", "tls",
];

/// Programs of the first file system, all of them busybox.
const APPLETS: [&str; 7] = ["sh", "mount", "insmod", "switch_root", "mkdir", "cp", "poweroff"];

/// Its empty folders, in which other file systems are mounted.
const FOLDERS: [&str; 8] = ["bin", "proc", "sys", "dev", "host", "memory", "new", "modules"];

/// Indices that depmod reads: modules that are part of the kernel itself, and their order.
const INDICES: [&str; 3] = ["modules.builtin", "modules.builtin.modinfo", "modules.order"];

const INIT: &[u8] = include_bytes!("../files/init");
const GUEST: &[u8] = include_bytes!("../files/guest");

/// What a machine boots.
#[derive(Debug)]
pub struct Kit {
    /// The kernel.
    pub kernel: PathBuf,
    /// The first file system.
    pub initrd: PathBuf,
    /// What is `/lib/modules` in the guest.
    pub modules: PathBuf,
}

/// The kit of the cache, made where it is not there or damaged.
pub fn prepare(cache: &Path, package: Option<&Path>, tell: &dyn Fn(&str)) -> io::Result<Kit> {
    let wanted = [FIRST.join(" "), OFFERED.join(" ")].join(" ");
    let mut parts = Vec::from_iter(package.map(fs::read).transpose()?);
    parts.push(wanted.into());
    let key = cache::hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let kernel = cache::entry(cache, &format!("kernel-{key}"), |folder| {
        tell("preparing Debian's kernel for the testbed; this is done once");
        unpack(folder, package)
    })?;
    let list = fs::read(kernel.join("list"))?;
    let busybox = fs::read(tools::find("busybox").unwrap_or_default())?;
    let key = cache::hash(&[&list, &busybox, INIT, GUEST]);
    let first = cache::entry(cache, &format!("initrd-{key}"), |folder| {
        fs::write(folder.join("initrd"), first_files(&kernel, busybox)?)
    })?;
    Ok(Kit {
        kernel: kernel.join("vmlinuz"),
        initrd: first.join("initrd"),
        modules: kernel.join("lib/modules"),
    })
}

/// Fills a folder with `vmlinuz` and `lib/modules/VERSION`.
fn unpack(folder: &Path, package: Option<&Path>) -> io::Result<()> {
    let whole = folder.join("whole");
    fs::create_dir(&whole)?;
    let package = match package {
        Some(path) => fs::canonicalize(path)?,
        None => fetch(&whole)?,
    };
    call(debian("dpkg")?.arg("-x").args([&package, &whole]), "")?;
    let version = version_in(&whole)?;
    depmod(&whole, &version)?;
    let [from, to] = [&whole, folder].map(|base| base.join("lib/modules").join(&version));
    let names: Vec<&str> = FIRST.iter().chain(&OFFERED).copied().collect();
    for module in closure(&whole, &version, &names)? {
        let below = module.strip_prefix(&from).unwrap_or(&module);
        copy(&module, &to.join(below))?;
    }
    for index in INDICES {
        copy(&from.join(index), &to.join(index))?;
    }
    copy(&whole.join("boot").join(format!("vmlinuz-{version}")), &folder.join("vmlinuz"))?;
    depmod(folder, &version)?;
    fs::remove_dir_all(&whole)
}

/// A program of Debian's own.
fn debian(program: &str) -> io::Result<Command> {
    tools::find(program).map(Command::new).ok_or_else(|| {
        io::Error::other(format!("{program} not found: the testbed needs Debian's package tools"))
    })
}

/// Downloads the package of Debian's present kernel into a folder. Nothing is installed.
fn fetch(folder: &Path) -> io::Result<PathBuf> {
    let none = || io::Error::other(format!("apt has no kernel for {META_PACKAGE}"));
    let fetched = || {
        let depends = call(debian("apt-cache")?.args(["depends", META_PACKAGE]), "")?;
        let name = package_of(&String::from_utf8_lossy(&depends)).ok_or_else(none)?;
        call(debian("apt-get")?.args(["download", &name]).current_dir(folder), "")?;
        let mut packages = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        let missing = || io::Error::other(format!("apt did not download {name}"));
        packages.find(|path| path.extension() == Some(OsStr::new("deb"))).ok_or_else(missing)
    };
    fetched().map_err(|error| {
        io::Error::other(format!(
            "the testbed's kernel could not be fetched ({error}); run apt-get update, or give \
             the file of a linux-image package by --kernel"
        ))
    })
}

/// The kernel's package in what apt-cache says of the package that depends on it.
fn package_of(depends: &str) -> Option<String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::to_owned).find(|name| name.starts_with("linux-image-"))
}

/// The kernel's version: the one folder of modules in its package.
fn version_in(tree: &Path) -> io::Result<String> {
    let modules = tree.join("lib/modules");
    let found = fs::read_dir(&modules)?.flatten();
    let mut names = found.filter_map(|entry| entry.file_name().into_string().ok());
    let none = || format!("the kernel's package has no modules in {}", modules.display());
    names.next().ok_or_else(|| io::Error::other(none()))
}

fn depmod(tree: &Path, version: &str) -> io::Result<()> {
    call(tools::command("depmod").arg("-b").arg(tree).arg(version), "").map(drop)
}

/// The files of modules and of all that they need, each after those that it needs.
fn closure(tree: &Path, version: &str, names: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in names {
        let mut modprobe = tools::command("modprobe");
        modprobe.args(["--show-depends", "-d"]).arg(tree).args(["-S", version, name]);
        for module in modules_of(&call(&mut modprobe, "")?) {
            if !files.contains(&module) {
                files.push(module);
            }
        }
    }
    Ok(files)
}

/// The paths in lines as `insmod PATH OPTIONS`; what is built into the kernel has another word.
/// A path ends at the first blank after `.ko`, or `.ko.xz` where modules are compressed.
fn modules_of(said: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    let lines = said.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let rest = line.strip_prefix(b"insmod ")?;
        let suffix = rest.windows(3).rposition(|window| window == b".ko")?;
        let end = rest[suffix..].iter().position(|byte| *byte == b' ');
        let path = &rest[..end.map_or(rest.len(), |end| suffix + end)];
        Some(PathBuf::from(OsStr::from_bytes(path)))
    })
}

/// The content and the name of a module as the first file system needs it: insmod of busybox
/// reads no compressed ones.
fn plain_module(module: &Path) -> io::Result<(Vec<u8>, String)> {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    Ok(match name.strip_suffix(".xz") {
        Some(plain) => (call(debian("xz")?.arg("-dc").arg(module), "")?, plain.to_owned()),
        None => (fs::read(module)?, name.into_owned()),
    })
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop)
}

/// The first file system as the archive that the kernel unpacks: cpio in the format `newc`
/// (`Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel), not compressed.
fn first_files(kernel: &Path, busybox: Vec<u8>) -> io::Result<Vec<u8>> {
    let (root, mut names) = (PrivateFolder::new("initrd")?, FOLDERS.map(String::from).to_vec());
    for name in FOLDERS {
        fs::create_dir(root.path().join(name))?;
    }
    let mut put = |name: &str, content: &[u8]| {
        let path = root.path().join(name);
        fs::write(&path, content)?;
        names.push(name.into());
        fs::set_permissions(&path, Permissions::from_mode(0o755))
    };
    put("bin/busybox", &busybox)?;
    put("init", INIT)?;
    put("guest", GUEST)?;
    let mut order = String::new();
    for module in closure(kernel, &version_in(kernel)?, &FIRST)? {
        let (content, name) = plain_module(&module)?;
        put(&format!("modules/{name}"), &content)?;
        order += &format!("{name}\n");
    }
    put("modules/order", order.as_bytes())?;
    for applet in APPLETS {
        symlink("busybox", root.path().join("bin").join(applet))?;
        names.push(format!("bin/{applet}"));
    }
    let mut cpio = tools::command("busybox");
    cpio.args(["cpio", "-o", "-H", "newc", "-R", "0:0"]).current_dir(root.path());
    // A folder stands before what is in it.
    call(&mut cpio, &(names.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_meta_package_depends_on() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Depends: other\n";
        assert_eq!(package_of(said).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(package_of("E: No packages found\n"), None);
    }

    #[test]
    fn modules_are_read_without_their_options() {
        let said = b"insmod /k/a.ko \nbuiltin crc32\ninsmod /k b/dummy.ko.xz numdummies=0\n";
        let paths: Vec<PathBuf> = modules_of(said).collect();
        assert_eq!(paths, [Path::new("/k/a.ko"), Path::new("/k b/dummy.ko.xz")]);
    }

    #[test]
    fn the_scripts_call_only_programs_that_the_first_file_system_has() {
        let text = String::from_utf8_lossy(INIT);
        for word in ["insmod ", "mount ", "mkdir ", "cp ", "switch_root ", "poweroff "] {
            assert!(text.contains(word) && APPLETS.contains(&word.trim()), "{word}");
        }
    }
}
