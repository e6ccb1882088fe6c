//! Baselines: copies of run directories under names, with which later runs are compared.
//!
//! A baseline lies in `wiregauge-runs/baselines/NAME`, is complete or not there, and stays when the
//! run that it was copied from is removed. Saving one of the same name replaces it at once.

use super::directory::{
    DEFAULT_BASE, RECORD_FILE, REPORT_FILE, SAMPLES_FILE, publish, sync_directory,
};
use super::error::{RecordError, shown};
use super::read_record;
use super::schema::Record;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The folder of all baselines, in that of all runs.
const FOLDER: &str = "baselines";
/// Longest name in bytes: a word, with room for what stands around it in a file's name.
const LONGEST: usize = 64;

/// The name of a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline(String);

impl FromStr for Baseline {
    type Err = String;

    fn from_str(name: &str) -> Result<Baseline, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=LONGEST).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(is_plain);
        ensure!(
            is_name,
            "invalid name '{name}': use at most {LONGEST} letters, digits, '-', '_' and '.', a \
             letter or digit first"
        );
        Ok(Baseline(name.to_owned()))
    }
}

impl Baseline {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Its run directory.
    pub fn directory(&self) -> PathBuf {
        Path::new(DEFAULT_BASE).join(FOLDER).join(&self.0)
    }

    /// Whether there is one of this name.
    pub fn is_saved(&self) -> bool {
        self.directory().exists()
    }

    /// Its record.
    pub fn read(&self) -> Result<Record, RecordError> {
        let directory = self.directory();
        let (name, path) = (&self.0, shown(&directory));
        ensure!(
            self.is_saved(),
            "there is no baseline '{name}' ({path}): save one with --save-baseline {name}"
        );
        read_record(&directory)
    }

    /// Copies a run directory, in place of the baseline of this name if there is one.
    pub fn save(&self, run: &Path) -> Result<PathBuf, RecordError> {
        let target = self.directory();
        let folder = Path::new(DEFAULT_BASE).join(FOLDER);
        let refused = |source| RecordError::Parent { parent: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(refused)?;
        let prefix = format!(".{}.", self.0);
        let mut hidden = tempfile::Builder::new();
        // As readable as any run directory: the umask takes away what it should.
        hidden.prefix(&prefix).permissions(fs::Permissions::from_mode(0o777));
        let partial = hidden.tempdir_in(&folder).map_err(refused)?;
        for name in [RECORD_FILE, SAMPLES_FILE, REPORT_FILE] {
            let (from, to) = (run.join(name), partial.path().join(name));
            match copy(&from, &to) {
                // A report can be made again, and figures are shown without their samples.
                Err(e) if e.kind() == io::ErrorKind::NotFound && name != RECORD_FILE => {}
                copied => copied.map_err(|e| RecordError::writing(&to, e))?,
            }
        }
        sync_directory(partial.path())?;
        match target.symlink_metadata() {
            // What was there before goes away with the temporary directory.
            Ok(_) => exchange(partial.path(), &target)?,
            Err(_) => publish(partial.path(), &target)?,
        }
        sync_directory(&folder)?;
        Ok(target)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = wiregauge_host::open_file(from)?;
    let mut to = File::create_new(to)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// Exchanges two directories.
fn exchange(one: &Path, other: &Path) -> Result<(), RecordError> {
    let failed = |e: io::Error| RecordError::writing(other, e);
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        // File systems without the flag: for a moment there is no baseline.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let aside = one.with_extension("old");
            fs::rename(other, &aside).map_err(failed)?;
            fs::rename(one, other).map_err(failed)?;
            fs::rename(&aside, one).map_err(failed)
        }
        exchanged => exchanged.map_err(|e| failed(e.into())),
    }
}
