//! The programs that stamp the kernel's trace points, from C to an object that is committed.

use crate::command::{output, root, run};
use std::process::Command;

/// Makes `crates/host/src/trace/stamps.bpf.o`. Its types (BTF) stay, which the loader needs; the
/// debug information, which names this machine's paths, does not.
pub fn bpf() -> Result<(), String> {
    let folder = root()?.join("crates/host/src/trace");
    println!("{}", output(Command::new("clang").arg("--version"))?.lines().next().unwrap_or(""));
    // v3: atomic instructions that return the old value, from Linux 5.12 on.
    let clang = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"];
    // The object names the source as it is called here, not where this checkout lies.
    let here = ["-fdebug-compilation-dir=.", "stamps.bpf.c", "-o", "stamps.bpf.o"];
    run(Command::new("clang").args(clang).args(here).current_dir(&folder))?;
    run(Command::new("llvm-strip").args(["-g", "stamps.bpf.o"]).current_dir(&folder))
}
