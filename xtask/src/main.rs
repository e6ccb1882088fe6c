//! Chores that are done by hand now and then.
//!
//! `cargo run --manifest-path xtask/Cargo.toml -- bindings` makes the types of the foreign
//! interfaces in `fabric-sys` again, from the headers of this machine. It needs Debian's
//! `libibverbs-dev`, `librdmacm-dev` and `libclang-dev`; building wiregauge needs none of them.
//!
//! `cargo run --manifest-path xtask/Cargo.toml --no-default-features -- mutate` breaks expressions
//! that figures depend on and says which breaks no test notices; `mutate --all [PATH...]` breaks
//! all that makes figures.
//!
//! `cargo run --manifest-path xtask/Cargo.toml --no-default-features -- bpf` compiles
//! `crates/host/src/trace/stamps.bpf.c`. It needs Debian's `clang` and `llvm`; building wiregauge
//! needs neither.
//!
//! `cargo run --manifest-path xtask/Cargo.toml --no-default-features -- dist` makes a release: a
//! tar, a .deb and an .rpm in `target/dist`. It needs `objdump`, and `rpmbuild` for the last.

mod bpf;
mod command;
mod dist;
mod mutate;

#[cfg(feature = "bindings")]
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What stands above every file that is made here.
#[cfg(feature = "bindings")]
const NOTICE: &str = "\
Made by `cargo run --manifest-path xtask/Cargo.toml -- bindings`: do not edit.

Types and constants of rdma-core's <infiniband/verbs.h> and <rdma/rdma_cma.h>, whose licence may be
chosen: this is under its OpenIB.org BSD licence. The layout is checked at compile time.";

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let done = match asked.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        #[cfg(feature = "bindings")]
        ["bindings"] => bindings(),
        ["mutate"] => mutate::mutate(),
        ["mutate", "--all", ref paths @ ..] => mutate::mutate_all(paths),
        ["bpf"] => bpf::bpf(),
        ["dist"] => dist::dist(),
        _ => {
            eprintln!("usage: xtask bindings | bpf | mutate [--all [PATH...]] | dist");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("xtask: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `crates/fabric-sys/src/verbs/types.rs`.
#[cfg(feature = "bindings")]
fn bindings() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let to: PathBuf = root.join("crates/fabric-sys/src/verbs/types.rs");
    let notice: String =
        NOTICE.lines().map(|l| format!("// {l}").trim_end().to_owned() + "\n").collect();
    let made = bindgen::Builder::default()
        .header_contents("verbs.h", "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n")
        .allowlist_type("(ibv|rdma|verbs)_.*")
        .allowlist_var("(IBV|RDMA)_.*")
        .ignore_functions()
        .default_enum_style(bindgen::EnumVariation::ModuleConsts)
        .constified_enum(".*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_copy(true)
        .layout_tests(true)
        .generate_comments(false)
        .raw_line(notice)
        .generate()
        .map_err(|error| format!("bindgen: {error}"))?;
    made.write_to_file(&to).map_err(|error| format!("writing {}: {error}", to.display()))
}
