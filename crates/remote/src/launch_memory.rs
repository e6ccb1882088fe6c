//! Shared memory of a launch of MPI, which its libraries leave behind where their processes are
//! killed. Open MPI is given a folder for it, which goes with the launch, and which the next launch
//! removes where its owner was killed, too. MPICH has no such setting: its files are found by their
//! name, and removed once no process has them any more.

use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use wiregauge_host::private_folder::PrivateFolder;

/// Folder in which Linux has shared memory that has a name.
const SHARED_MEMORY: &str = "/dev/shm";
/// Settings of Open MPI 4 and 5 for its segments and for the folder of a session.
const FOLDERS_OF_OPEN_MPI: [&str; 4] = [
    "OMPI_MCA_btl_vader_backing_directory",
    "OMPI_MCA_btl_sm_backing_directory",
    "OMPI_MCA_orte_tmpdir_base",
    "PRTE_MCA_prte_tmpdir_base",
];
/// Begin of the names of MPICH's files. It removes the names once all ranks are connected, so only
/// those of ranks that are killed before remain.
const OF_MPICH: &str = "mpich_shar_tmp";

/// Shared memory of a launch. Drop it when all of its processes have ended.
#[derive(Debug)]
pub(crate) struct LaunchMemory {
    /// `None` where there is no shared memory of that kind: the library says so.
    folder: Option<PrivateFolder>,
    begun: SystemTime,
}

impl LaunchMemory {
    /// Makes the folder.
    pub fn new() -> LaunchMemory {
        let folder = PrivateFolder::new_in(Path::new(SHARED_MEMORY), "mpi").ok();
        LaunchMemory { folder, begun: SystemTime::now() }
    }

    /// Names the folder to a launcher, unless the user has named another.
    pub fn set(&self, command: &mut Command) {
        let Some(folder) = &self.folder else { return };
        for name in FOLDERS_OF_OPEN_MPI {
            if std::env::var_os(name).is_none() {
                command.env(name, folder.path());
            }
        }
    }
}

impl Drop for LaunchMemory {
    fn drop(&mut self) {
        remove_abandoned(Path::new(SHARED_MEMORY), self.begun);
    }
}

/// Removes MPICH's files of this user that were made since and that no process has.
fn remove_abandoned(folder: &Path, begun: SystemTime) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(OF_MPICH));
        let Ok(file) = entry.metadata() else { continue };
        let is_ours = file.is_file() && file.uid() == geteuid().as_raw();
        let is_new = file.modified().is_ok_and(|modified| modified >= begun);
        if is_named && is_ours && is_new {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        return;
    }
    let used = used_files();
    for file in files.iter().filter(|file| !used.contains(file)) {
        let _ = fs::remove_file(file);
    }
}

/// Lists the folders of all processes.
fn processes() -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir("/proc").into_iter().flatten().flatten()
}

/// Returns the files that processes have open or mapped. A file is mapped before it is closed, so
/// descriptors are read first.
fn used_files() -> Vec<PathBuf> {
    let mut used = Vec::new();
    for process in processes() {
        let descriptors = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        used.extend(descriptors.filter_map(|one| fs::read_link(one.path()).ok()));
    }
    for process in processes() {
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        used.extend(maps.lines().filter_map(|line| Some(line[line.find('/')?..].into())));
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_files_that_no_process_has_any_more_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let begun = SystemTime::now() - Duration::from_secs(1);
        let open = fs::File::create(path("mpich_shar_tmpopen00")).unwrap();
        for name in ["mpich_shar_tmpgone00", "mpich_shar_tmpolder0", "another"] {
            fs::write(path(name), "").unwrap();
        }
        let older = fs::File::options().write(true).open(path("mpich_shar_tmpolder0")).unwrap();
        older.set_modified(begun - Duration::from_secs(60)).unwrap();
        drop(older);
        remove_abandoned(folder.path(), begun);
        assert!(!path("mpich_shar_tmpgone00").exists());
        for name in ["mpich_shar_tmpopen00", "mpich_shar_tmpolder0", "another"] {
            assert!(path(name).exists(), "{name}");
        }
        drop(open);
        remove_abandoned(folder.path(), begun);
        assert!(!path("mpich_shar_tmpopen00").exists());
    }

    #[test]
    fn what_a_process_has_mapped_is_used() {
        // The program itself is mapped, and no descriptor of it is open.
        let program = std::env::current_exe().unwrap();
        assert!(used_files().contains(&program), "{}", program.display());
    }
}
