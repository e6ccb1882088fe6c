//! Folders of one process among the temporary files. A lock tells whether the owner of one lives:
//! what a killed owner has left is removed by the next one that makes a folder of this kind.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Another process may take a folder for an abandoned one before it is locked: then another is
/// made, so often at most.
const MAX_ATTEMPTS: usize = 16;

/// A folder that only this user can read. It is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    _lock: OwnedFd,
}

impl PrivateFolder {
    /// Makes one of this kind, after those that killed owners have left are removed.
    ///
    /// # Errors
    /// There is no room, or the folder of temporary files cannot be written to.
    pub fn new(kind: &str) -> io::Result<PrivateFolder> {
        PrivateFolder::new_in(&std::env::temp_dir(), kind)
    }

    /// Makes one in another folder than that of temporary files, as [`PrivateFolder::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new_in(parent: &Path, kind: &str) -> io::Result<PrivateFolder> {
        let prefix = format!("wiregauge-{kind}-");
        sweep(parent, &prefix);
        let only_ours = Permissions::from_mode(0o700);
        let prefix = format!("{prefix}{}-", std::process::id());
        let mut named = tempfile::Builder::new();
        named.prefix(&prefix).permissions(only_ours);
        for _ in 0..MAX_ATTEMPTS {
            let folder = named.tempdir_in(parent)?;
            if let Some(_lock) = lock(folder.path()) {
                return Ok(PrivateFolder { folder, _lock });
            }
        }
        Err(io::Error::other(format!("no folder of {} stays", parent.display())))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a folder of this user that is there and that nobody else has locked.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty()).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    let now = fstat(&folder).ok()?;
    let is_ours = now.st_uid == rustix::process::geteuid().as_raw();
    (is_ours && now.st_nlink > 0).then_some(folder)
}

/// Removes the folders whose owners are gone. What cannot be removed stays.
fn sweep(parent: &Path, prefix: &str) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let is_of_kind = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        if is_of_kind && let Some(_lock) = lock(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_and_an_abandoned_one_with_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let mine = PrivateFolder::new_in(parent.path(), "test").unwrap();
        assert_eq!(mine.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(mine.path().join("file"), "").unwrap();
        // Those of a killed owner, of another kind, and a link with such a name.
        let left = parent.path().join("wiregauge-test-1-x");
        let other = parent.path().join("wiregauge-other-1-x");
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(left.join("more")).unwrap();
        std::fs::create_dir(&other).unwrap();
        let link = parent.path().join("wiregauge-test-2-x");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        let next = PrivateFolder::new_in(parent.path(), "test").unwrap();
        assert!(!left.exists() && other.exists() && elsewhere.path().exists());
        assert!(mine.path().join("file").exists(), "its owner lives");
        let paths = [mine.path().to_path_buf(), next.path().to_path_buf()];
        drop((mine, next));
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
