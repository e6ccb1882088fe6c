//! Compresses files that become part of the program, to a fifth or a quarter. Both build scripts
//! use it; `core/src/shipped.rs` unpacks.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Compresses bytes into a file of this name in the build's output.
pub fn compressed(name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = std::env::var("OUT_DIR")?;
    let file = BufWriter::new(File::create(Path::new(&folder).join(name))?);
    let mut encoder = ZlibEncoder::new(file, Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()?.flush()?;
    Ok(())
}

/// Compresses the texts below a folder whose file names have one of these endings. Each is its path
/// in the folder, a byte 0, the text and a byte 0, which neither may contain.
pub fn texts(name: &str, root: &str, endings: &[&str]) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={root}");
    let mut bytes = Vec::new();
    for path in files(Path::new(root))? {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if endings.contains(&ending) {
            let text = fs::read_to_string(&path)?;
            let inside = path.strip_prefix(root)?.to_str().ok_or("a name that is no text")?;
            for part in [inside, &text] {
                if part.contains('\0') {
                    return Err(format!("{}: a byte 0", path.display()).into());
                }
                bytes.extend_from_slice(part.as_bytes());
                bytes.push(0);
            }
        }
    }
    compressed(name, &bytes)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}
