//! The kernel's own trace of what runs on each CPU (ftrace), stamped by the counter that the loops
//! read.
//!
//! An instance of its own: other users of the trace are not disturbed, and it goes when it is
//! dropped. Where the trace's file system is not mounted, one is opened that nobody else sees.

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where it is usually mounted.
const USUAL: &str = "/sys/kernel/tracing";
/// What an instance of this program is called before its process's number.
const NAME: &str = "wiregauge-";
/// KiB of a CPU's buffer at most, and of all: 16 B an event, so that some 100 000 a second fit.
const MOST_KIB: usize = 4096;
const ALL_KIB: usize = 256 << 10;
/// The longest text of a CPU's trace: 150 B a line.
const LONGEST: u64 = 64 << 20;
/// Without these there is no trace.
const NEEDED: [&str; 1] = ["sched/sched_switch"];
/// Those of this architecture that there are.
const USEFUL: [&str; 5] = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors",
];

/// A trace.
pub struct Tracer {
    folder: PathBuf,
    _mounted: Option<OwnedFd>,
}

impl Tracer {
    /// Prepares one for so many CPUs.
    ///
    /// # Errors
    /// Why there is none, and what would allow it: a sentence.
    pub fn open(cpus: usize) -> Result<Tracer, String> {
        let (root, mounted) = root()?;
        let instances = root.join("instances");
        remove_left(&instances);
        let folder = instances.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| refused("making an instance", &error))?;
        let tracer = Tracer { folder, _mounted: mounted };
        tracer.write("tracing_on", "0").map_err(|error| refused("stopping it", &error))?;
        tracer.write("trace_clock", "x86-tsc").map_err(|error| refused("its clock", &error))?;
        let kib = MOST_KIB.min(ALL_KIB / cpus.max(1)).max(64).to_string();
        tracer.write("buffer_size_kb", &kib).map_err(|error| refused("its buffer", &error))?;
        for event in NEEDED {
            let on = tracer.write(&format!("events/{event}/enable"), "1");
            on.map_err(|error| refused(event, &error))?;
        }
        for event in USEFUL {
            // A kernel that lacks one tells less: its gaps are then outside of what it recorded.
            let _ = tracer.write(&format!("events/{event}/enable"), "1");
        }
        Ok(tracer)
    }

    fn write(&self, file: &str, text: &str) -> std::io::Result<()> {
        fs::write(self.folder.join(file), text)
    }

    /// Empties the buffers and begins.
    pub fn begin(&self) {
        let _ = self.write("trace", "");
        let _ = self.write("tracing_on", "1");
    }

    /// Ends, so that what was recorded stays.
    pub fn end(&self) {
        let _ = self.write("tracing_on", "0");
    }

    /// What was recorded on a CPU, and whether older events were lost.
    pub fn lines(&self, cpu: u32) -> (String, bool) {
        let folder = self.folder.join(format!("per_cpu/cpu{cpu}"));
        let stats = fs::read_to_string(folder.join("stats")).unwrap_or_default();
        let lost = crate::value_of(&stats, "overrun", ':').is_some_and(|lost| lost != "0");
        let mut bytes = Vec::new();
        if let Ok(file) = fs::File::open(folder.join("trace")) {
            // What could be read is told; the rest is as if it had been lost.
            let _ = file.take(LONGEST).read_to_end(&mut bytes);
        }
        (String::from_utf8_lossy(&bytes).into_owned(), lost)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir(&self.folder);
    }
}

fn refused(what: &str, error: &dyn std::fmt::Display) -> String {
    format!(
        "the kernel's trace cannot be used ({what}: {error}): run as root on a kernel with ftrace"
    )
}

/// The folder of the trace's file system: where it is mounted, or one of this process alone.
fn root() -> Result<(PathBuf, Option<OwnedFd>), String> {
    let usual = Path::new(USUAL);
    if usual.join("instances").is_dir() {
        return Ok((usual.to_owned(), None));
    }
    let mounted = || -> rustix::io::Result<OwnedFd> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    let mounted = mounted().map_err(|error| refused("opening its file system", &error))?;
    let folder = PathBuf::from(format!("/proc/self/fd/{}", mounted.as_raw_fd()));
    Ok((folder, Some(mounted)))
}

/// Removes the instances of processes that were killed.
fn remove_left(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
