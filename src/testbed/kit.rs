//! What a machine boots: Debian's kernel with the modules on offer, and the first file system.

use super::cache;
use super::error::{TestbedError, file};
use super::tools::{self, call, private_folder};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

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

const INIT: &[u8] = include_bytes!("../../testbed/init");
const GUEST: &[u8] = include_bytes!("../../testbed/guest");

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
pub fn prepare(
    cache: &Path,
    package: Option<&Path>,
    tell: &dyn Fn(&str),
) -> Result<Kit, TestbedError> {
    let wanted = [FIRST.join(" "), OFFERED.join(" ")].join(" ");
    let key = match package {
        Some(path) => {
            let given = fs::read(path).map_err(file("reading", path))?;
            cache::hash(&[&given, wanted.as_bytes()])
        }
        None => cache::hash(&[wanted.as_bytes()]),
    };
    let kernel = cache::entry(cache, &format!("kernel-{key}"), |folder| {
        tell("preparing Debian's kernel for the testbed; this is done once");
        unpack(folder, package)
    })?;
    let list = kernel.join("list");
    let list = fs::read(&list).map_err(file("reading", &list))?;
    let busybox = tools::find("busybox").unwrap_or_default();
    let busybox = fs::read(&busybox).map_err(file("reading", &busybox))?;
    let key = cache::hash(&[&list, &busybox, INIT, GUEST]);
    let first = cache::entry(cache, &format!("initrd-{key}"), |folder| {
        let archive = first_files(&kernel, busybox)?;
        let path = folder.join("initrd");
        fs::write(&path, archive).map_err(file("writing", &path))
    })?;
    Ok(Kit {
        kernel: kernel.join("vmlinuz"),
        initrd: first.join("initrd"),
        modules: kernel.join("lib/modules"),
    })
}

/// Fills a folder with `vmlinuz` and `lib/modules/VERSION`.
fn unpack(folder: &Path, package: Option<&Path>) -> Result<(), TestbedError> {
    let whole = folder.join("whole");
    fs::create_dir(&whole).map_err(file("making", &whole))?;
    let package = match package {
        Some(path) => path.canonicalize().map_err(file("finding", path))?,
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
    fs::remove_dir_all(&whole).map_err(file("removing", &whole))
}

/// A program of Debian's own.
fn debian(program: &str) -> Result<Command, TestbedError> {
    tools::find(program).map(Command::new).ok_or_else(|| {
        let sentence = format!("{program} not found: the testbed needs Debian's package tools");
        TestbedError::Unable(sentence)
    })
}

/// Downloads the package of Debian's present kernel into a folder. Nothing is installed.
fn fetch(folder: &Path) -> Result<PathBuf, TestbedError> {
    let how = |error: TestbedError| {
        TestbedError::Unable(format!(
            "the testbed's kernel could not be fetched ({error}); run apt-get update, or give \
             the file of a linux-image package by --kernel"
        ))
    };
    let depends = call(debian("apt-cache")?.args(["depends", META_PACKAGE]), "").map_err(how)?;
    let name = package_of(&String::from_utf8_lossy(&depends)).ok_or_else(|| {
        how(TestbedError::Unable(format!("apt has no kernel for {META_PACKAGE}")))
    })?;
    let mut download = debian("apt-get")?;
    call(download.args(["download", &name]).current_dir(folder), "").map_err(how)?;
    let packages = fs::read_dir(folder).map_err(file("reading", folder))?;
    let mut packages = packages.flatten().map(|entry| entry.path());
    packages
        .find(|path| path.extension() == Some(OsStr::new("deb")))
        .ok_or_else(|| how(TestbedError::Unable(format!("{name} was not downloaded"))))
}

/// The kernel's package in what apt-cache says of the package that depends on it.
fn package_of(depends: &str) -> Option<String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::to_owned).find(|name| name.starts_with("linux-image-"))
}

/// The kernel's version: the one folder of modules in its package.
fn version_in(tree: &Path) -> Result<String, TestbedError> {
    let modules = tree.join("lib/modules");
    let found = fs::read_dir(&modules).map_err(file("reading", &modules))?;
    let mut names = found.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.next().ok_or_else(|| {
        TestbedError::Unable(format!(
            "the kernel's package has no modules in {}",
            modules.display()
        ))
    })
}

fn depmod(tree: &Path, version: &str) -> Result<(), TestbedError> {
    call(tools::command("depmod").arg("-b").arg(tree).arg(version), "").map(drop)
}

/// The files of modules and of all that they need, each after those that it needs.
fn closure(tree: &Path, version: &str, names: &[&str]) -> Result<Vec<PathBuf>, TestbedError> {
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
fn plain_module(module: &Path) -> Result<(Vec<u8>, String), TestbedError> {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    if let Some(plain) = name.strip_suffix(".xz") {
        let content = call(debian("xz")?.arg("-dc").arg(module), "")?;
        return Ok((content, plain.to_owned()));
    }
    let content = fs::read(module).map_err(file("reading", module))?;
    Ok((content, name.into_owned()))
}

fn copy(from: &Path, to: &Path) -> Result<(), TestbedError> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(file("making", parent))?;
    }
    fs::copy(from, to).map(drop).map_err(file("copying", from))
}

/// The first file system as the archive that the kernel unpacks: cpio in the format `newc`
/// (`Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel), not compressed.
fn first_files(kernel: &Path, busybox: Vec<u8>) -> Result<Vec<u8>, TestbedError> {
    let version = version_in(kernel)?;
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("bin/busybox".into(), busybox),
        ("init".into(), INIT.into()),
        ("guest".into(), GUEST.into()),
    ];
    let mut order = String::new();
    for module in closure(kernel, &version, &FIRST)? {
        let (content, name) = plain_module(&module)?;
        order += &format!("{name}\n");
        files.push((format!("modules/{name}"), content));
    }
    files.push(("modules/order".into(), order.into()));
    let (root, mut names) = (private_folder("initrd")?, FOLDERS.map(String::from).to_vec());
    for name in FOLDERS {
        let path = root.path().join(name);
        fs::create_dir(&path).map_err(file("making", &path))?;
    }
    for (name, content) in files {
        let path = root.path().join(&name);
        let written = fs::write(&path, content);
        let written =
            written.and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
        written.map_err(file("writing", &path))?;
        names.push(name);
    }
    for applet in APPLETS {
        let path = root.path().join("bin").join(applet);
        symlink("busybox", &path).map_err(file("making", &path))?;
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
