//! The identity of a program: the hash of the file that runs, whatever its path names by now.

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::Path;

/// The file that runs in a process, also where its path was removed or names another file.
pub const RUNNING: &str = "/proc/self/exe";

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramIdentity {
    /// SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// The architecture that it is built for, such as `x86_64`.
    pub architecture: String,
}

impl ProgramIdentity {
    /// This process's program.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn own() -> io::Result<ProgramIdentity> {
        let sha256 = hash_of(Path::new(RUNNING))?;
        Ok(ProgramIdentity { sha256, architecture: std::env::consts::ARCH.into() })
    }

    /// Returns true if both may run the two ends of a round: the same file, or one for each
    /// architecture.
    pub fn fits(&self, other: &ProgramIdentity) -> bool {
        self.architecture != other.architecture || self.sha256 == other.sha256
    }

    /// The first digits, for sentences.
    pub fn short(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}

/// The SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// It cannot be read.
pub fn hash_of(path: &Path) -> io::Result<String> {
    let mut file = wiregauge_host::open_file(path)?;
    let mut context = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex::encode(context.finish())),
            length => context.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_fits_itself_and_those_of_other_architectures() {
        let own = ProgramIdentity::own().unwrap();
        assert_eq!(own.sha256, hash_of(&std::env::current_exe().unwrap()).unwrap());
        let rebuilt = ProgramIdentity { sha256: "0".repeat(64), ..own.clone() };
        assert!(own.fits(&own) && !own.fits(&rebuilt));
        let elsewhere = ProgramIdentity { architecture: "pdp11".into(), ..rebuilt };
        assert!(own.fits(&elsewhere));
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // FIPS 180-4, of an empty message.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(hash_of(file.path()).unwrap(), empty);
    }
}
