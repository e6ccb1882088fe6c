//! Makes what is given to others: a program for the C library of 2018 and later, stripped, with its
//! man pages, completions and licences, as a tar, a .deb and an .rpm below `target/dist`.
//!
//! The compiler links against glibc 2.28 through `zig`, which brings the stubs of every version
//! (RHEL 8 and Debian 10 have that one; Ubuntu 20.04 has 2.31). What comes out is checked: the
//! versions of the symbols that it needs, its size, and that it starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the program is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that starts it.
const GLIBC: Version = Version(2, 28);
/// The largest program that is given away.
const MOST_BYTES: u64 = 12_000_000;
/// The linker and what calls it, from PyPI.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];
const SERVICE: &str = "lib/systemd/system/wiregauge-agent.service";
const DOCUMENTS: [&str; 5] =
    ["README.md", "METHOD.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Of a C library: `GLIBC_2.28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

/// What is packed, and where from.
struct Release {
    /// The checkout.
    root: PathBuf,
    /// Where all that is made goes.
    out: PathBuf,
    /// `0.1.0`.
    version: String,
    /// Seconds since 1970 of the commit: the times of all files, so that one commit gives one tar.
    time: String,
}

/// Builds, checks, packs.
pub fn dist() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let out = root.join("target/dist");
    let time = text(git(&root).args(["log", "-1", "--format=%ct"]))?;
    let release = Release { version: version(&root)?, out, time, root };
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

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// What a command prints, without the newline at its end.
fn text(command: &mut Command) -> Result<String, String> {
    let done = command.stderr(Stdio::inherit()).output();
    let done = done.map_err(|error| format!("{command:?}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{command:?}: {}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
}

impl Release {
    /// The program, linked against the old C library.
    fn build(&self) -> Result<PathBuf, String> {
        let tools = self.out.join("tools");
        if !tools.join("bin/cargo-zigbuild").exists() {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
            let pip = tools.join("bin/pip");
            run(Command::new(pip).args(["-q", "install"]).args(TOOLS))?;
        }
        let commit = text(git(&self.root).args(["describe", "--always", "--dirty"]))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let Version(major, minor) = GLIBC;
        run(Command::new(tools.join("bin/cargo-zigbuild"))
            .args(["zigbuild", "--locked", "--profile", "dist", "--bin", "wiregauge", "--target"])
            .arg(format!("{TARGET}.{major}.{minor}"))
            .env("PATH", format!("{}:{path}", tools.join("bin").display()))
            .env("WIREGAUGE_VERSION", format!("{} ({commit})", self.version))
            .current_dir(&self.root))?;
        Ok(self.root.join("target").join(TARGET).join("dist/wiregauge"))
    }

    /// The folder that is packed: what an installer puts below /usr.
    fn tree(&self, program: &Path) -> Result<PathBuf, String> {
        let tree = self.out.join(format!("wiregauge-{}-linux-x86_64", self.version));
        let _ = fs::remove_dir_all(&tree);
        let make = |folder: &str| {
            let path = tree.join(folder);
            fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<PathBuf, String>(path)
        };
        copy(program, &make("bin")?.join("wiregauge"))?;
        let documents = make("share/doc/wiregauge")?;
        for name in DOCUMENTS {
            copy(&self.root.join(name), &documents.join(name))?;
        }
        make("lib/systemd/system")?;
        copy(&self.root.join("deploy/wiregauge-agent.service"), &tree.join(SERVICE))?;
        run(Command::new(program).args(["man", "--dir"]).arg(tree.join("share/man")))?;
        run(Command::new(program).args(["completions", "--dir"]).arg(tree.join("share")))?;
        Ok(tree)
    }

    /// One commit gives one tar, to the bit.
    fn tar(&self, tree: &Path) -> Result<(), String> {
        let name = tree.file_name().unwrap_or_default();
        let tar = tree.with_extension("").with_file_name(format!("{}.tar.gz", name.display()));
        run(Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.time))
            .arg("--use-compress-program=gzip -n9")
            .arg("-cf")
            .arg(&tar)
            .arg("-C")
            .arg(&self.out)
            .arg(name))?;
        made(&tar)
    }

    /// With Debian's own tool.
    fn deb(&self, tree: &Path) -> Result<(), String> {
        if !has("dpkg-deb") {
            println!("no .deb: there is no dpkg-deb here");
            return Ok(());
        }
        let root = self.out.join("deb");
        let _ = fs::remove_dir_all(&root);
        let control = root.join("DEBIAN");
        fs::create_dir_all(&control).map_err(|error| format!("{}: {error}", control.display()))?;
        run(Command::new("cp").arg("-a").arg(tree).arg(root.join("usr")))?;
        let unit = root.join("usr").join(SERVICE);
        // A package's program is not below /usr/local.
        let text = read(&unit)?.replace("/usr/local/bin/", "/usr/bin/");
        fs::write(&unit, text).map_err(|error| format!("{}: {error}", unit.display()))?;
        let Version(major, minor) = GLIBC;
        let fields = read(&self.root.join("packaging/control"))?
            .replace("@VERSION@", &self.version)
            .replace("@GLIBC@", &format!("{major}.{minor}"));
        let path = control.join("control");
        fs::write(&path, fields).map_err(|error| format!("{}: {error}", path.display()))?;
        let deb = self.out.join(format!("wiregauge_{}_amd64.deb", self.version));
        run(Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&root)
            .arg(&deb)
            .env("SOURCE_DATE_EPOCH", &self.time)
            .stdout(Stdio::null()))?;
        made(&deb)
    }

    /// With rpm's own tool (Debian's package `rpm`).
    fn rpm(&self, tree: &Path) -> Result<(), String> {
        if !has("rpmbuild") {
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
        made(&rpm)
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn made(path: &Path) -> Result<(), String> {
    let size = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    println!("{}: {size} B", path.display());
    Ok(())
}

/// Refuses a program that an old system cannot start, or that grew too large.
fn check(program: &Path) -> Result<(), String> {
    let symbols = text(Command::new("objdump").arg("-T").arg(program))?;
    let newest = needs(&symbols).ok_or("the program needs no version of glibc: not linked?")?;
    if newest > GLIBC {
        let Version(major, minor) = newest;
        return Err(format!("the program needs GLIBC_{major}.{minor}: {}", of(&symbols, newest)));
    }
    let size = fs::metadata(program).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("the program has {size} B; at most {MOST_BYTES} are allowed"));
    }
    println!("{}", text(Command::new(program).arg("--version"))?);
    Ok(())
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
fn of(symbols: &str, version: Version) -> String {
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
    fn versions_are_compared_as_numbers() {
        assert_eq!(needs(LISTED), Some(Version(2, 35)));
        assert_eq!(of(LISTED, Version(2, 35)), "hypot");
        assert_eq!(of(LISTED, Version(2, 9)), "pipe2");
        assert!(Version(2, 9) < GLIBC);
        assert_eq!(needs("no table"), None);
    }
}
