//! Compresses what the program has in it: the studies, the published figures, and the object of the
//! programs that stamp in the kernel, which is mostly types and relocations.

#[path = "build/pack.rs"]
mod pack;

use std::error::Error;

const OBJECT: &str = "src/host/trace/stamps.bpf.o";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={OBJECT}");
    pack::compressed("stamps.bpf.o.z", &std::fs::read(OBJECT)?)?;
    pack::texts("studies.z", "studies", &["toml"])?;
    pack::texts("references.z", "references", &["toml"])
}
