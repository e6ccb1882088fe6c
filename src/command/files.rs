//! Texts of the definition as files: man pages and completions, for those who package the program.

use super::console::print;
use super::{CommandError, Exit};
use std::path::Path;

/// Writes files by their names below a directory, which is made, and prints their paths.
pub fn write(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<Exit, CommandError> {
    let mut written = String::new();
    for (name, text) in files {
        let path = directory.join(name);
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        fs_err::write(&path, text)?;
        written.push_str(&format!("{}\n", path.display()));
    }
    print(written)
}
