//! What is made once and kept: folders with a list of what is in them, checked at every use.
//!
//! A folder appears whole or not at all: it is made under a hidden name and renamed. One process
//! at a time makes or checks, the others wait for the lock.

use fs_err as fs;
use std::io;
use std::path::{Path, PathBuf};
use wiregauge_host::user_folder;

/// Environment variable that names the cache's folder.
pub const CACHE_VARIABLE: &str = "WIREGAUGE_TESTBED_CACHE";

/// The list of a folder's files, in it.
const LIST: &str = "list";

/// First line of a list. Another version's folder is made again.
const HEADING: &str = "wiregauge testbed 1";

/// Where the cache is: the environment's [`CACHE_VARIABLE`], or the user's own folder for caches.
pub fn folder() -> io::Result<PathBuf> {
    let found = user_folder(CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache", "wiregauge/testbed")
        .map_err(io::Error::other)?;
    fs::create_dir_all(&found)?;
    // The guest sees the same path, whatever its working directory.
    fs::canonicalize(&found)
}

/// A folder of the cache: the one that is there, where it is whole; otherwise `make` fills it.
pub fn entry(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let path = cache.join(name);
    let lock = fs::File::create(cache.join("lock"))?;
    lock.file().lock()?;
    if is_whole(&path) {
        return Ok(path);
    }
    // Left by a process that was killed, or damaged: nobody else is here while the lock is held.
    let hidden = cache.join(format!(".{name}"));
    for old in [&hidden, &path] {
        if old.symlink_metadata().is_ok() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir(&hidden)?;
    make(&hidden).inspect_err(|_| drop(fs::remove_dir_all(&hidden)))?;
    fs::write(hidden.join(LIST), list_of(&hidden)?)?;
    rustix::fs::syncfs(lock.file())?;
    fs::rename(&hidden, &path)?;
    Ok(path)
}

/// Whether a folder holds all that its list names, unchanged.
fn is_whole(folder: &Path) -> bool {
    let Ok(listed) = fs::read_to_string(folder.join(LIST)) else { return false };
    list_of(folder).is_ok_and(|found| found == listed)
}

/// A line for each file below a folder but the list: hash, path.
fn list_of(folder: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name != LIST {
                lines.push(format!("{} {name}", hash(&[&fs::read(&path)?])));
            }
        }
    }
    lines.sort_unstable();
    Ok(format!("{HEADING}\n{}\n", lines.join("\n")))
}

/// FNV-1a of 64 bits over the parts and their lengths, in hexadecimal. It finds damage; it does
/// not guard against malice: who may write the cache may write this program too.
pub fn hash(parts: &[&[u8]]) -> String {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let whole = parts.iter().fold(0xcbf2_9ce4_8422_2325, |sum, part| {
        part.iter().chain(&(part.len() as u64).to_le_bytes()).fold(sum, step)
    });
    format!("{whole:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("wg-cache-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn fill(folder: &Path, made: &AtomicU32) -> io::Result<()> {
        made.fetch_add(1, Ordering::Relaxed);
        fs::create_dir(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/file"), "content").unwrap();
        fs::write(folder.join("other"), "more").unwrap();
        Ok(())
    }

    #[test]
    fn an_entry_is_made_once_and_again_where_it_is_damaged() {
        let scratch = Scratch::new("damage");
        let made = AtomicU32::new(0);
        let get = || entry(&scratch.0, "kit", |folder| fill(folder, &made)).unwrap();
        let path = get();
        assert_eq!((get(), made.load(Ordering::Relaxed)), (path.clone(), 1));
        let harms: [&dyn Fn(); 4] = [
            &|| fs::write(path.join("deep/file"), "kontent").unwrap(),
            &|| fs::remove_file(path.join("other")).unwrap(),
            &|| fs::write(path.join("strange"), "").unwrap(),
            &|| fs::write(path.join(LIST), "").unwrap(),
        ];
        for (number, harm) in harms.iter().enumerate() {
            harm();
            assert_eq!(get(), path);
            assert_eq!(made.load(Ordering::Relaxed), number as u32 + 2);
            assert_eq!(fs::read_to_string(path.join("deep/file")).unwrap(), "content");
        }
    }

    #[test]
    fn what_a_killed_process_left_is_no_entry() {
        let scratch = Scratch::new("killed");
        let made = AtomicU32::new(0);
        let failed = entry(&scratch.0, "kit", |folder| {
            fill(folder, &made)?;
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err() && !scratch.0.join("kit").exists());
        fs::create_dir(scratch.0.join(".kit")).unwrap();
        fs::write(scratch.0.join(".kit/half"), "").unwrap();
        entry(&scratch.0, "kit", |folder| fill(folder, &made)).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn first_uses_at_the_same_time_make_it_once() {
        let scratch = Scratch::new("race");
        let made = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| entry(&scratch.0, "kit", |folder| fill(folder, &made)).unwrap());
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_hash_is_fnv_1a_and_tells_parts_apart() {
        assert_eq!(hash(&[]), "cbf29ce484222325");
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
