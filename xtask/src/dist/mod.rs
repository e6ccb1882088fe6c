//! Makes what is given to others: a program for the C library of 2018 and later, stripped, with its
//! man pages, completions and licences, as a tar, a .deb and an .rpm below `target/dist`.
//!
//! The compiler links against glibc 2.28 through `zig`, which brings the stubs of every version
//! (RHEL 8 and Debian 10 have that one; Ubuntu 20.04 has 2.31). What comes out is checked: the
//! versions of the symbols that it needs, its size, and that it starts.

mod licences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{at, copy, folder, output, read, root, run, write};

/// What the program is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that starts it.
const GLIBC: Version = Version(2, 28);
/// The largest program that is given away.
const MOST_BYTES: u64 = 25_000_000;
/// The linker and what calls it, from PyPI, with their versions.
const TOOLS: [(&str, &str); 2] = [("cargo-zigbuild", "0.24.0"), ("ziglang", "0.17.1")];
/// The libraries that it may load when it starts: those of glibc. Others are opened when asked for.
const LIBRARIES: [&str; 6] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
];
const ZSH: &str = "_wiregauge";
const SERVICE: &str = "lib/systemd/system/wiregauge-agent.service";
const DOCUMENTS: [&str; 5] =
    ["README.md", "METHOD.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Of a C library: `GLIBC_2.28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

/// A release of one commit.
struct Release {
    /// The checkout.
    root: PathBuf,
    /// The folder for all that is made.
    out: PathBuf,
    /// `0.1.0`.
    version: String,
    /// Seconds since 1970 of the commit: the times of all files, so that one commit gives one tar.
    time: String,
}

/// Builds, checks, packs.
pub fn dist() -> Result<(), String> {
    let root = root()?;
    let changed = output(git(&root).args(["status", "--porcelain"]))?;
    if !changed.is_empty() {
        return Err(format!("a release is of a commit, and these files are not in it:\n{changed}"));
    }
    let out = root.join("target/dist");
    let time = output(git(&root).args(["log", "-1", "--format=%ct"]))?;
    let release = Release { version: version(&root)?, out, time, root };
    release.clear()?;
    let program = release.build()?;
    check(&program)?;
    let tree = release.tree(&program)?;
    release.tar(&tree)?;
    release.deb(&tree)?;
    release.rpm(&tree)
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git
}

/// The first version in Cargo.toml.
fn version(root: &Path) -> Result<String, String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    line.map(|quoted| quoted.trim_matches('"').to_owned())
        .ok_or_else(|| "Cargo.toml has no version".to_owned())
}

impl Release {
    /// Removes the packages of earlier releases.
    fn clear(&self) -> Result<(), String> {
        folder(&self.out)?;
        let entries = fs::read_dir(&self.out).map_err(at(&self.out))?.flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_file()) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        Ok(())
    }

    /// The program, linked against the old C library.
    fn build(&self) -> Result<PathBuf, String> {
        let pinned = TOOLS.map(|(name, version)| format!("{name}=={version}"));
        let tools = self.root.join("target/tools").join(pinned.join("-"));
        if !tools.join("bin/cargo-zigbuild").exists() {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
            run(Command::new(tools.join("bin/pip")).args(["-q", "install"]).args(&pinned))?;
        }
        let commit = output(git(&self.root).args(["describe", "--always"]))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let home = output(Command::new("sh").args(["-c", "echo ${CARGO_HOME:-$HOME/.cargo}"]))?;
        // Panics name source files: not by where they are on this machine.
        let flags = [(self.root.display().to_string(), "."), (home, "/cargo")]
            .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
        let Version(major, minor) = GLIBC;
        run(Command::new(tools.join("bin/cargo-zigbuild"))
            .args(["zigbuild", "--locked", "--profile", "dist", "--bin", "wiregauge", "--target"])
            .arg(format!("{TARGET}.{major}.{minor}"))
            .env("PATH", format!("{}:{path}", tools.join("bin").display()))
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            .env("RUSTFLAGS", flags.join(" "))
            .env("WIREGAUGE_VERSION", format!("{} ({commit})", self.version))
            .current_dir(&self.root))?;
        Ok(self.root.join("target").join(TARGET).join("dist/wiregauge"))
    }

    /// The folder that is packed: what an installer puts below /usr.
    fn tree(&self, program: &Path) -> Result<PathBuf, String> {
        let tree = self.out.join(format!("wiregauge-{}-linux-x86_64", self.version));
        let _ = fs::remove_dir_all(&tree);
        let make = |name: &str| {
            let path = tree.join(name);
            folder(&path)?;
            Ok::<PathBuf, String>(path)
        };
        copy(program, &make("bin")?.join("wiregauge"))?;
        let documents = make("share/doc/wiregauge")?;
        for name in DOCUMENTS {
            copy(&self.root.join(name), &documents.join(name))?;
        }
        write(&documents.join("LICENSES-OF-DEPENDENCIES"), &licences::all(&self.root, TARGET)?)?;
        make("lib/systemd/system")?;
        copy(&self.root.join("deploy/wiregauge-agent.service"), &tree.join(SERVICE))?;
        run(Command::new(program).args(["man", "--dir"]).arg(tree.join("share/man")))?;
        run(Command::new(program).args(["completions", "--dir"]).arg(tree.join("share")))?;
        run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree))?;
        Ok(tree)
    }

    /// One commit gives one tar, to the bit.
    fn tar(&self, tree: &Path) -> Result<(), String> {
        let name = tree.file_name().unwrap_or_default();
        let tar = tree.with_file_name(format!("{}.tar.gz", name.display()));
        run(Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.time))
            .arg("--use-compress-program=gzip -n9")
            .arg("-cf")
            .arg(&tar)
            .arg("-C")
            .arg(&self.out)
            .arg(name))?;
        print_size(&tar)
    }

    /// With Debian's own tool.
    fn deb(&self, tree: &Path) -> Result<(), String> {
        if !is_installed("dpkg-deb") {
            println!("no .deb: there is no dpkg-deb here");
            return Ok(());
        }
        let root = self.out.join("deb");
        let _ = fs::remove_dir_all(&root);
        let control = root.join("DEBIAN");
        folder(&control)?;
        run(Command::new("cp").arg("-a").arg(tree).arg(root.join("usr")))?;
        let unit = root.join("usr").join(SERVICE);
        // A package's program is not below /usr/local.
        write(&unit, &read(&unit)?.replace("/usr/local/bin/", "/usr/bin/"))?;
        let share = root.join("usr/share");
        // Debian's zsh looks here (its zshall(1)).
        folder(&share.join("zsh/vendor-completions"))?;
        let zsh = [share.join("zsh/site-functions"), share.join("zsh/vendor-completions")];
        fs::rename(zsh[0].join(ZSH), zsh[1].join(ZSH)).map_err(at(&zsh[0]))?;
        fs::remove_dir(&zsh[0]).map_err(at(&zsh[0]))?;
        copy(&self.root.join("packaging/copyright"), &share.join("doc/wiregauge/copyright"))?;
        let Version(major, minor) = GLIBC;
        let fields = read(&self.root.join("packaging/control"))?
            .replace("@VERSION@", &self.version)
            .replace("@GLIBC@", &format!("{major}.{minor}"));
        write(&control.join("control"), &fields)?;
        run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
        let deb = self.out.join(format!("wiregauge_{}_amd64.deb", self.version));
        run(Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&root)
            .arg(&deb)
            .env("SOURCE_DATE_EPOCH", &self.time)
            .stdout(Stdio::null()))?;
        print_size(&deb)
    }

    /// With rpm's own tool (Debian's package `rpm`).
    fn rpm(&self, tree: &Path) -> Result<(), String> {
        if !is_installed("rpmbuild") {
            println!("no .rpm: there is no rpmbuild here");
            return Ok(());
        }
        let define = |name: &str, value: &str| ["--define".to_owned(), format!("{name} {value}")];
        let build = self.out.join("rpm");
        let _ = fs::remove_dir_all(&build);
        run(Command::new("rpmbuild")
            .args(["--quiet", "-bb", "--target", "x86_64-linux"])
            .args(define("_topdir", &build.display().to_string()))
            .args(define("release_version", &self.version))
            .args(define("tree", &tree.display().to_string()))
            .arg(self.root.join("packaging/wiregauge.spec"))
            .env("SOURCE_DATE_EPOCH", &self.time))?;
        let name = format!("wiregauge-{}-1.x86_64.rpm", self.version);
        let rpm = self.out.join(&name);
        copy(&build.join("RPMS/x86_64").join(&name), &rpm)?;
        print_size(&rpm)
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn print_size(path: &Path) -> Result<(), String> {
    let size = fs::metadata(path).map_err(at(path))?.len();
    println!("{}: {size} B", path.display());
    Ok(())
}

/// Refuses a program that an old system cannot start, or that grew too large.
fn check(program: &Path) -> Result<(), String> {
    let symbols = output(Command::new("objdump").arg("-T").arg(program))?;
    let newest = needs(&symbols).ok_or("the program needs no version of glibc: not linked?")?;
    if newest > GLIBC {
        let Version(major, minor) = newest;
        return Err(format!(
            "the program needs GLIBC_{major}.{minor}: {}",
            symbols_of(&symbols, newest)
        ));
    }
    let loaded = output(Command::new("objdump").arg("-p").arg(program))?;
    if let Some(library) = libraries(&loaded).find(|name| !LIBRARIES.contains(name)) {
        return Err(format!("the program loads {library}, which no package asks for"));
    }
    let size = fs::metadata(program).map_err(at(program))?.len();
    if size > MOST_BYTES {
        return Err(format!("the program has {size} B; at most {MOST_BYTES} are allowed"));
    }
    println!("{}", output(Command::new(program).arg("--version"))?);
    Ok(())
}

/// The libraries that `objdump -p` lists.
fn libraries(headers: &str) -> impl Iterator<Item = &str> {
    headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED").map(str::trim))
}

/// The versions of the symbols that `objdump -T` lists.
fn versions(symbols: &str) -> impl Iterator<Item = (Version, &str)> {
    symbols.lines().filter_map(|line| {
        let (_, rest) = line.split_once("GLIBC_")?;
        let (number, name) = rest.split_once([')', ' '])?;
        let mut parts = number.split('.').map(str::parse);
        let version = Version(parts.next()?.ok()?, parts.next()?.ok()?);
        Some((version, name.trim()))
    })
}

/// The newest version.
fn needs(symbols: &str) -> Option<Version> {
    versions(symbols).map(|(version, _)| version).max()
}

/// The symbols of a version.
fn symbols_of(symbols: &str, version: Version) -> String {
    let names = versions(symbols).filter(|(one, _)| *one == version).map(|(_, name)| name);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
/tmp/wiregauge:     file format elf64-x86-64

DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) malloc
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.35) hypot
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.9)  pipe2
0000000000000000  w   DF *UND*  0000000000000000 (GCC_3.0) _Unwind_Resume
";

    #[test]
    fn the_libraries_are_those_that_are_needed() {
        let headers = "  NEEDED               libm.so.6\n  INIT  0x10\n  NEEDED  libgcc_s.so.1\n";
        assert_eq!(libraries(headers).collect::<Vec<_>>(), ["libm.so.6", "libgcc_s.so.1"]);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(needs(LISTED), Some(Version(2, 35)));
        assert_eq!(symbols_of(LISTED, Version(2, 35)), "hypot");
        assert_eq!(symbols_of(LISTED, Version(2, 9)), "pipe2");
        assert!(Version(2, 9) < GLIBC);
        assert_eq!(needs("no table"), None);
    }
}
