//! Compresses the object of the programs that stamp in the kernel: it is mostly types and
//! relocations, and takes a fifth so.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::error::Error;
use std::fs::File;
use std::path::Path;

const OBJECT: &str = "src/host/trace/stamps.bpf.o";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={OBJECT}");
    let folder = std::env::var("OUT_DIR")?;
    let file = File::create(Path::new(&folder).join("stamps.bpf.o.z"))?;
    let mut encoder = ZlibEncoder::new(file, Compression::best());
    std::io::copy(&mut File::open(OBJECT)?, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}
