//! The container of this process: what its control groups and resource limits allow, and what they
//! have done to it.
//!
//! Both versions of control groups are read (`Documentation/admin-guide/cgroup-v1` and
//! `cgroup-v2.rst`), also side by side: a controller is where `/proc/self/cgroup` says. A limit of
//! a group holds for all groups below it, so each is read from the process's own group up to the
//! mounted one, and the tightest holds. Groups above a container's own are not shown to it.

use super::Tree;
use super::tree::parse_cpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wiregauge_base::units::{Bytes, format_cpus};

/// The most groups above each other that are read: systemd, Slurm and Kubernetes nest fewer than
/// ten.
const MAX_DEPTH: usize = 64;
/// Advice against a memory limit.
pub const RAISE_MEMORY: &str = "raise memory.max (docker --memory, MemoryMax= of a service)";
/// Advice against a limit of processes and threads.
pub const RAISE_TASKS: &str = "raise pids.max (docker --pids-limit, TasksMax= of a service)";

/// From this on a memory limit of version 1 is none: the kernel shows the largest number of pages.
const NO_MEMORY_LIMIT: u64 = 1 << 60;

/// Resource limits that make a run fail or wait: the name of setrlimit(2), and the line of
/// `/proc/self/limits`.
const RLIMITS: [(&str, &str); 6] = [
    ("as", "Max address space"),
    ("fsize", "Max file size"),
    ("memlock", "Max locked memory"),
    ("nofile", "Max open files"),
    ("nproc", "Max processes"),
    ("stack", "Max stack size"),
];

/// Name of the hard limit of open files among the resource limits: agents raise theirs to it.
pub const HARD_NOFILE: &str = "nofile_hard";

/// Limits by the control groups and resource limits of this process. `None` and empty: no limit, or
/// the kernel does not show one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The tightest CPU quota.
    pub cpu_quota: Option<CpuQuota>,
    /// Stops by quotas since the group was made.
    pub throttled: Throttled,
    /// CPUs that the cpuset allows.
    pub cpuset_cpus: Vec<u32>,
    /// NUMA nodes whose memory the cpuset allows.
    pub cpuset_nodes: Vec<u32>,
    /// The memory limit with the least room.
    pub memory: Option<MemoryLimit>,
    /// Processes of the own group that the kernel's OOM killer has killed.
    pub oom_kills: Option<u64>,
    /// The limit of processes and threads with the least room.
    pub tasks: Option<TaskLimit>,
    /// Resource limits of the process (soft), by their names in setrlimit(2), and
    /// [`HARD_NOFILE`]: a number or `unlimited`.
    pub rlimits: BTreeMap<String, String>,
    /// CAP_IPC_LOCK: the process may lock more memory than `memlock` says.
    pub ipc_lock: bool,
}

/// CPU time that all tasks of a group may use in each period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// CPU time in microseconds ...
    pub quota_us: u64,
    /// ... in each period of this length.
    pub period_us: u64,
}

impl CpuQuota {
    /// Returns how many CPUs it allows to be busy all the time.
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us.max(1) as f64
    }
}

/// Stops of a group by CPU quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods in which the quota was used up, and the group's tasks stopped.
    pub times: u64,
    /// For how long they were stopped, in nanoseconds.
    pub ns: u64,
}

impl Throttled {
    /// Name of the counter of [`times`](Throttled::times) in the record.
    pub const TIMES: &str = "cgroup.throttled";
    /// Name of the counter of [`ns`](Throttled::ns) in the record.
    pub const NS: &str = "cgroup.throttled_ns";

    /// Returns the sum of two.
    #[must_use]
    pub fn and(self, other: Throttled) -> Throttled {
        Throttled {
            times: self.times.saturating_add(other.times),
            ns: self.ns.saturating_add(other.ns),
        }
    }

    /// Returns the counters by name.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([(Self::TIMES.to_owned(), self.times), (Self::NS.to_owned(), self.ns)])
    }
}

/// A limit of memory, and what of it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub limit_bytes: u64,
    /// Charged to the group, the page cache included.
    pub used_bytes: u64,
    /// Pages of files and reclaimable slabs (inodes, directory entries) among that, which the
    /// kernel drops before it refuses memory.
    pub cache_bytes: u64,
}

impl MemoryLimit {
    /// Returns the bytes that the group can still have.
    pub fn left_bytes(&self) -> u64 {
        let held = self.used_bytes.saturating_sub(self.cache_bytes);
        self.limit_bytes.saturating_sub(held)
    }
}

/// A limit of processes and threads, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLimit {
    /// The most that there may be.
    pub limit: u64,
    /// The number that there is now.
    pub used: u64,
}

impl TaskLimit {
    /// Returns how many can still be started.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

impl Container {
    /// Reads what this process may use.
    pub fn read() -> Container {
        Container::read_from(&Tree::default())
    }

    /// Reads it from another tree of files.
    pub fn read_from(tree: &Tree) -> Container {
        let groups = ControlGroups::find(tree);
        Container {
            cpu_quota: groups.cpu_quota(tree),
            throttled: groups.throttled(tree),
            cpuset_cpus: groups.cpuset(tree, "cpus"),
            cpuset_nodes: groups.cpuset(tree, "mems"),
            memory: groups.memory(tree),
            oom_kills: groups.oom_kills(tree),
            tasks: groups.tasks(tree),
            rlimits: rlimits(tree),
            ipc_lock: has_ipc_lock(tree),
        }
    }

    /// Returns its limits in a few words, as a table has them; empty: it has none.
    pub fn shown(&self, cpus_of_host: u32) -> String {
        let quota = self.cpu_quota.map(|quota| format!("{:.3} CPUs of time", quota.cpus()));
        let is_narrow = (1..cpus_of_host as usize).contains(&self.cpuset_cpus.len());
        let memory = self.memory.map(|memory| {
            format!("{} of {} left", rounded(memory.left_bytes()), rounded(memory.limit_bytes))
        });
        let tasks = self.tasks.map(|tasks| format!("{} of {} tasks", tasks.left(), tasks.limit));
        let cpus = is_narrow.then(|| format!("CPUs {}", format_cpus(&self.cpuset_cpus)));
        [quota, cpus, memory, tasks].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns a resource limit; `None`: there is none.
    pub fn rlimit(&self, name: &str) -> Option<u64> {
        self.rlimits.get(name)?.parse().ok()
    }
}

/// Reads whether the effective capabilities have CAP_IPC_LOCK: `CapEff: 000001ffffffffff`.
fn has_ipc_lock(tree: &Tree) -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let set = tree.value("/proc/self/status", "CapEff", ':');
    let set = set.and_then(|set| u64::from_str_radix(&set, 16).ok());
    set.is_some_and(|set| set & CAP_IPC_LOCK != 0)
}

/// Reads the soft limits, and the hard one of open files: `Max locked memory  8388608  8388608
/// bytes`.
pub(super) fn rlimits(tree: &Tree) -> BTreeMap<String, String> {
    let limits = tree.text("/proc/self/limits").unwrap_or_default();
    let mut found = BTreeMap::new();
    for (name, label) in RLIMITS {
        let Some(rest) = limits.lines().find_map(|line| line.strip_prefix(label)) else { continue };
        let mut values = rest.split_whitespace().map(str::to_owned);
        found.extend(values.next().map(|soft| (name.to_owned(), soft)));
        if name == "nofile" {
            found.extend(values.next().map(|hard| (HARD_NOFILE.to_owned(), hard)));
        }
    }
    found
}

/// Notices that the kernel's OOM killer kills a process.
#[derive(Clone, Debug)]
pub struct OomWatch {
    groups: ControlGroups,
    before: OomKills,
}

/// Processes that the kernel's OOM killer has killed so far: of the own control group, and of the
/// host. `None`: the kernel does not count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OomKills {
    of_group: Option<u64>,
    of_host: Option<u64>,
}

impl OomWatch {
    /// Begins now.
    pub fn begin() -> OomWatch {
        OomWatch::begin_in(&Tree::default())
    }

    fn begin_in(tree: &Tree) -> OomWatch {
        let groups = ControlGroups::find(tree);
        OomWatch { before: OomKills::read(&groups, tree), groups }
    }

    /// Returns what has happened since, and what to do, in words that follow a semicolon; `None`:
    /// the OOM killer has killed nothing.
    pub fn explain(&self) -> Option<String> {
        self.explain_in(&Tree::default())
    }

    fn explain_in(&self, tree: &Tree) -> Option<String> {
        let now = OomKills::read(&self.groups, tree);
        if now.of_group > self.before.of_group {
            let limit = self.groups.memory(tree);
            let limit = limit.map(|limit| format!(" has {}", rounded(limit.limit_bytes)));
            let limit = limit.unwrap_or_else(|| " has too little".into());
            return Some(format!(
                "its control group{limit} of memory, and the kernel's OOM killer killed a process: \
                 {RAISE_MEMORY}, or measure fewer or smaller messages"
            ));
        }
        (now.of_host > self.before.of_host).then(|| {
            "the kernel's OOM killer killed a process of this host at that time: free memory, or \
             measure fewer or smaller messages"
                .to_owned()
        })
    }
}

impl OomKills {
    fn read(groups: &ControlGroups, tree: &Tree) -> OomKills {
        let events = tree.text("/proc/vmstat").unwrap_or_default();
        OomKills { of_group: groups.oom_kills(tree), of_host: word_number(&events, "oom_kill") }
    }
}

/// Returns a size in whole MiB, or in whole KiB if it is smaller.
pub fn rounded(bytes: u64) -> Bytes {
    let unit = if bytes >= 1 << 20 { 1 << 20 } else { 1 << 10 };
    Bytes(bytes / unit * unit)
}

/// The version of a hierarchy, which decides the names of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CgroupVersion {
    One,
    Two,
}

impl CgroupVersion {
    /// Reads the memory limit of a group, if it has one.
    fn memory(self, tree: &Tree, folder: &str) -> Option<MemoryLimit> {
        let [limit, used, lists] = match self {
            CgroupVersion::One => ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_"],
            CgroupVersion::Two => ["memory.max", "memory.current", ""],
        };
        let limit_bytes = tree.number(&format!("{folder}/{limit}"))?;
        let used_bytes = tree.number(&format!("{folder}/{used}"))?;
        let stat = tree.text(&format!("{folder}/memory.stat")).unwrap_or_default();
        // Version 1 does not say what of the slabs is reclaimable.
        let dropped = ["active_file", "inactive_file", "slab_reclaimable"];
        let dropped =
            dropped.map(|list| word_number(&stat, &format!("{lists}{list}")).unwrap_or(0));
        // The files are read one after the other.
        let cache_bytes = dropped.into_iter().fold(0, u64::saturating_add).min(used_bytes);
        (limit_bytes < NO_MEMORY_LIMIT).then_some(MemoryLimit {
            limit_bytes,
            used_bytes,
            cache_bytes,
        })
    }
}

/// A controller of this process: its group's folder and those above it, the own one first.
#[derive(Clone, Debug)]
struct Controller {
    version: CgroupVersion,
    folders: Vec<String>,
}

/// The control groups of this process.
#[derive(Clone, Debug, Default)]
pub struct ControlGroups {
    cpu: Option<Controller>,
    cpuset: Option<Controller>,
    memory: Option<Controller>,
    pids: Option<Controller>,
}

impl ControlGroups {
    /// Finds the groups of this process.
    pub fn find(tree: &Tree) -> ControlGroups {
        let own = tree.text("/proc/self/cgroup").unwrap_or_default();
        let mounts = tree.text("/proc/self/mountinfo").unwrap_or_default();
        let [cpu, cpuset, memory, pids] =
            ["cpu", "cpuset", "memory", "pids"].map(|name| Controller::find(name, &own, &mounts));
        ControlGroups { cpu, cpuset, memory, pids }
    }

    /// Returns what quotas have done to this group and those above it so far.
    pub fn throttled(&self, tree: &Tree) -> Throttled {
        let mut all = Throttled::default();
        for (version, folder) in folders(&self.cpu) {
            let stat = tree.text(&format!("{folder}/cpu.stat")).unwrap_or_default();
            let times = word_number(&stat, "nr_throttled").unwrap_or(0);
            let ns = match version {
                CgroupVersion::One => word_number(&stat, "throttled_time"),
                CgroupVersion::Two => {
                    word_number(&stat, "throttled_usec").map(|us| us.saturating_mul(1000))
                }
            };
            all = all.and(Throttled { times, ns: ns.unwrap_or(0) });
        }
        all
    }

    /// Returns how many processes of the own group the kernel's OOM killer has killed, those of
    /// groups below it included in version 2.
    pub fn oom_kills(&self, tree: &Tree) -> Option<u64> {
        folders(&self.memory).find_map(|(version, folder)| {
            let file = match version {
                CgroupVersion::One => "memory.oom_control",
                CgroupVersion::Two => "memory.events",
            };
            word_number(&tree.text(&format!("{folder}/{file}"))?, "oom_kill")
        })
    }

    /// Returns the memory limit with the least room.
    pub fn memory(&self, tree: &Tree) -> Option<MemoryLimit> {
        let limits =
            folders(&self.memory).filter_map(|(version, folder)| version.memory(tree, folder));
        limits.min_by_key(MemoryLimit::left_bytes)
    }

    /// Returns the limit of processes and threads with the least room.
    pub fn tasks(&self, tree: &Tree) -> Option<TaskLimit> {
        let limits = folders(&self.pids).filter_map(|(_, folder)| {
            let limit = tree.number(&format!("{folder}/pids.max"))?;
            Some(TaskLimit { limit, used: tree.number(&format!("{folder}/pids.current"))? })
        });
        limits.min_by_key(TaskLimit::left)
    }

    fn cpu_quota(&self, tree: &Tree) -> Option<CpuQuota> {
        let quotas = folders(&self.cpu).filter_map(|(version, folder)| {
            let (quota, period) = match version {
                CgroupVersion::One => (
                    tree.text(&format!("{folder}/cpu.cfs_quota_us"))?,
                    tree.text(&format!("{folder}/cpu.cfs_period_us"))?,
                ),
                CgroupVersion::Two => {
                    let text = tree.text(&format!("{folder}/cpu.max"))?;
                    let (quota, period) = text.split_once(' ')?;
                    (quota.to_owned(), period.to_owned())
                }
            };
            // -1 and `max` are no limit.
            let quota = CpuQuota { quota_us: quota.parse().ok()?, period_us: period.parse().ok()? };
            (quota.period_us > 0).then_some(quota)
        });
        quotas.min_by(|a, b| a.cpus().total_cmp(&b.cpus()))
    }

    /// Returns what the own cpuset allows, which is within those above it: the kernel sees to that.
    fn cpuset(&self, tree: &Tree, kind: &str) -> Vec<u32> {
        let mut lists = folders(&self.cpuset).filter_map(|(version, folder)| {
            let file = match version {
                CgroupVersion::One => format!("cpuset.effective_{kind}"),
                CgroupVersion::Two => format!("cpuset.{kind}.effective"),
            };
            parse_cpus(&tree.text(&format!("{folder}/{file}"))?)
        });
        lists.next().unwrap_or_default()
    }
}

/// Returns the folders of a controller, the own group's first.
fn folders(controller: &Option<Controller>) -> impl Iterator<Item = (CgroupVersion, &str)> {
    controller.iter().flat_map(|one| one.folders.iter().map(|path| (one.version, path.as_str())))
}

impl Controller {
    /// Finds a controller by the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
    fn find(name: &str, own: &str, mounts: &str) -> Option<Controller> {
        // `4:memory:/docker/1a2b`, and `0::/system.slice/x.service` for all of version 2.
        let lines = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let one = lines.clone().find(|(all, _)| all.split(',').any(|one| one == name));
        let (version, group) = match one {
            Some((_, group)) => (CgroupVersion::One, group),
            None => (CgroupVersion::Two, lines.clone().find(|(all, _)| all.is_empty())?.1),
        };
        let mounted = mounts.lines().filter_map(Mount::parse).find(|mount| match version {
            CgroupVersion::One => {
                mount.kind == "cgroup" && mount.options.split(',').any(|one| one == name)
            }
            CgroupVersion::Two => mount.kind == "cgroup2",
        })?;
        Some(Controller { version, folders: mounted.folders(group) })
    }
}

/// A line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
struct Mount<'a> {
    /// Which part of its file system is mounted.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    /// Options of the file system: of version 1 its controllers.
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (place, system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let root = place.next()?;
        let point = place.next()?;
        let mut system = system.split(' ');
        let kind = system.next()?;
        Some(Mount { root, point, kind, options: system.nth(1)? })
    }

    /// Returns the folders of a group and of those above it that are mounted, the own one first. A
    /// container without a cgroup namespace has its own group mounted as the root. A group that is
    /// not below that (`/../x`) cannot be seen: the root's limits hold then.
    fn folders(&self, group: &str) -> Vec<String> {
        let below = match self.root {
            "/" => Some(group),
            root => {
                group.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        };
        let parts = below.unwrap_or("").split('/').filter(|part| !part.is_empty());
        let parts: Vec<&str> = parts.collect();
        let parts = if parts.contains(&"..") { Vec::new() } else { parts };
        (0..=parts.len())
            .rev()
            .take(MAX_DEPTH)
            .map(|length| {
                let each = std::iter::once(self.point).chain(parts[..length].iter().copied());
                each.collect::<Vec<_>>().join("/")
            })
            .collect()
    }
}

/// Returns the number of a line `key number`.
fn word_number(text: &str, key: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(k, _)| *k == key)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max file size             unlimited            unlimited            bytes
Max stack size            8388608              unlimited            bytes
Max processes             96365                96365                processes
Max open files            64                   20000                files
Max locked memory         65536                8388608              bytes
Max address space         4294967296           unlimited            bytes
";

    /// A tree as Docker has it with version 1; `own` is what is mounted of each hierarchy.
    fn version_one(own: &str) -> Fake {
        let mounts = ["cpu,cpuacct", "memory", "cpuset", "pids"].map(|name| {
            format!("3 2 0:3 {own} /sys/fs/cgroup/{name} ro - cgroup cgroup rw,{name}\n")
        });
        let tmpfs = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n";
        let lines = "5:pids:/job/7\n4:memory:/job/7\n3:cpuset:/job/7\n2:cpu,cpuacct:/job/7\n\
                     1:name=systemd:/init.scope\n0::/\n";
        let fake = Fake::new(&[("proc/self/limits", LIMITS)]);
        fake.file("proc/self/cgroup", lines);
        fake.file("proc/self/mountinfo", &format!("{tmpfs}{}", mounts.concat()));
        fake
    }

    /// A tree as systemd and Kubernetes have it with version 2.
    fn version_two() -> Fake {
        Fake::new(&[
            ("proc/self/cgroup", "0::/kube.slice/pod1/own\n"),
            (
                "proc/self/mountinfo",
                "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                 29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
        ])
    }

    #[test]
    fn limits_of_version_one_are_those_of_the_tightest_group_above() {
        let fake = version_one("/");
        let files = [
            ("cpu,cpuacct/job/7/cpu.cfs_quota_us", "300000\n"),
            ("cpu,cpuacct/job/7/cpu.cfs_period_us", "100000\n"),
            ("cpu,cpuacct/job/7/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 5000\n"),
            ("cpu,cpuacct/job/cpu.cfs_quota_us", "75000\n"),
            ("cpu,cpuacct/job/cpu.cfs_period_us", "50000\n"),
            ("cpu,cpuacct/job/cpu.stat", "nr_periods 9\nnr_throttled 19\nthrottled_time 234000\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("memory/job/7/memory.limit_in_bytes", "1000000\n"),
            ("memory/job/7/memory.usage_in_bytes", "900000\n"),
            ("memory/job/7/memory.stat", "total_inactive_file 500000\ntotal_active_file 100000\n"),
            ("memory/job/7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ("memory/job/memory.limit_in_bytes", "2000000\n"),
            ("memory/job/memory.usage_in_bytes", "1900000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "123456789\n"),
            ("cpuset/job/7/cpuset.effective_cpus", "2-3,6\n"),
            ("cpuset/job/7/cpuset.effective_mems", "1\n"),
            ("pids/job/7/pids.max", "max\n"),
            ("pids/job/7/pids.current", "5\n"),
            ("pids/job/pids.max", "64\n"),
            ("pids/job/pids.current", "50\n"),
        ];
        files.iter().for_each(|(file, text)| fake.file(&format!("sys/fs/cgroup/{file}"), text));
        let found = Container::read_from(&fake.tree);
        assert_eq!(found.cpu_quota, Some(CpuQuota { quota_us: 75_000, period_us: 50_000 }));
        assert_eq!(found.cpu_quota.map(|quota| quota.cpus()), Some(1.5));
        assert_eq!(found.throttled, Throttled { times: 21, ns: 239_000 });
        let memory = found.memory.unwrap();
        assert_eq!((memory.limit_bytes, memory.left_bytes()), (2_000_000, 100_000));
        assert_eq!(found.oom_kills, Some(3));
        assert_eq!((found.cpuset_cpus, found.cpuset_nodes), (vec![2, 3, 6], vec![1]));
        assert_eq!(found.tasks.map(|tasks| (tasks.limit, tasks.left())), Some((64, 14)));
    }

    #[test]
    fn limits_of_version_two_are_those_of_the_tightest_group_above() {
        let fake = version_two();
        let files = [
            // Its own group has only the controllers that the one above has enabled.
            ("kube.slice/pod1/own/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 7\n"),
            ("kube.slice/pod1/own/cpu.max", "max 100000\n"),
            ("kube.slice/pod1/own/memory.max", "max\n"),
            ("kube.slice/pod1/own/memory.current", "300\n"),
            ("kube.slice/pod1/own/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n"),
            ("kube.slice/pod1/cpu.max", "50000 100000\n"),
            ("kube.slice/pod1/cpu.stat", "usage_usec 9\nnr_throttled 18\nthrottled_usec 233\n"),
            ("kube.slice/pod1/memory.max", "5000\n"),
            ("kube.slice/pod1/memory.current", "4000\n"),
            (
                "kube.slice/pod1/memory.stat",
                "anon 1\ninactive_file 400\nactive_file 600\nslab 500\nslab_reclaimable 300\n",
            ),
            ("kube.slice/pod1/memory.events", "oom_kill 8\n"),
            ("kube.slice/pod1/cpuset.cpus.effective", "0-1\n"),
            ("kube.slice/pod1/cpuset.mems.effective", "0\n"),
            ("kube.slice/pod1/pids.max", "4000\n"),
            ("kube.slice/pod1/pids.current", "3999\n"),
            ("kube.slice/pids.max", "9000\n"),
            ("kube.slice/pids.current", "4100\n"),
            ("cpu.stat", "usage_usec 9\n"),
        ];
        files.iter().for_each(|(file, text)| fake.file(&format!("sys/fs/cgroup/{file}"), text));
        let found = Container::read_from(&fake.tree);
        assert_eq!(found.cpu_quota, Some(CpuQuota { quota_us: 50_000, period_us: 100_000 }));
        assert_eq!(found.throttled, Throttled { times: 19, ns: 240_000 });
        let memory = found.memory.unwrap();
        assert_eq!((memory.limit_bytes, memory.left_bytes()), (5000, 2300));
        assert_eq!(found.oom_kills, Some(1));
        assert_eq!((found.cpuset_cpus, found.cpuset_nodes), (vec![0, 1], vec![0]));
        assert_eq!(found.tasks.map(|tasks| tasks.left()), Some(1));
    }

    #[test]
    fn no_more_than_is_used_can_be_dropped() {
        let fake = version_two();
        let group = "sys/fs/cgroup/kube.slice/pod1/own";
        fake.file(&format!("{group}/memory.max"), "5000\n");
        fake.file(&format!("{group}/memory.current"), "700\n");
        fake.file(&format!("{group}/memory.stat"), "inactive_file 400\nslab_reclaimable 600\n");
        let memory = Container::read_from(&fake.tree).memory.unwrap();
        assert_eq!((memory.cache_bytes, memory.left_bytes()), (700, 5000));
    }

    #[test]
    fn a_process_that_the_oom_killer_has_killed_is_told_with_its_limit() {
        let group = "sys/fs/cgroup/kube.slice/pod1/own";
        let fake = version_two();
        fake.file(&format!("{group}/memory.events"), "oom 0\noom_kill 1\n");
        fake.file(&format!("{group}/memory.max"), "67108864\n");
        fake.file(&format!("{group}/memory.current"), "67108864\n");
        fake.file("proc/vmstat", "nr_free_pages 7\noom_kill 3\n");
        let watch = OomWatch::begin_in(&fake.tree);
        assert_eq!(watch.explain_in(&fake.tree), None);
        fake.file("proc/vmstat", "nr_free_pages 7\noom_kill 4\n");
        let of_host = watch.explain_in(&fake.tree).unwrap();
        assert!(
            of_host.starts_with("the kernel's OOM killer killed a process of this host"),
            "{of_host}"
        );
        fake.file(&format!("{group}/memory.events"), "oom 1\noom_kill 2\n");
        let of_group = watch.explain_in(&fake.tree).unwrap();
        assert!(of_group.starts_with("its control group has 64 MiB of memory, "), "{of_group}");
    }

    #[test]
    fn limits_are_shown_in_a_few_words() {
        let limited = Container {
            cpu_quota: Some(CpuQuota { quota_us: 40_000, period_us: 100_000 }),
            cpuset_cpus: vec![2, 3],
            memory: Some(MemoryLimit { limit_bytes: 1 << 29, used_bytes: 1 << 28, cache_bytes: 0 }),
            tasks: Some(TaskLimit { limit: 64, used: 60 }),
            ..Container::default()
        };
        let said = "0.400 CPUs of time, CPUs 2-3, 256 MiB of 512 MiB left, 4 of 64 tasks";
        assert_eq!(limited.shown(8), said);
        assert_eq!(Container { cpuset_cpus: vec![0, 1], ..Container::default() }.shown(2), "");
        assert_eq!((rounded(5_000_000).0, rounded(5000).0), (4 << 20, 4 << 10));
    }

    #[test]
    fn a_container_without_a_namespace_finds_its_group_as_the_mounted_root() {
        let fake = version_one("/job/7");
        fake.file("sys/fs/cgroup/pids/pids.max", "10\n");
        fake.file("sys/fs/cgroup/pids/pids.current", "3\n");
        assert_eq!(Container::read_from(&fake.tree).tasks, Some(TaskLimit { limit: 10, used: 3 }));
        // A process that was moved out of the namespace's root sees `/../other`.
        fake.file("proc/self/cgroup", "5:pids:/../other\n");
        assert_eq!(Container::read_from(&fake.tree).tasks, Some(TaskLimit { limit: 10, used: 3 }));
    }

    #[test]
    fn resource_limits_are_named_as_setrlimit_does() {
        let fake = version_one("/");
        let found = Container::read_from(&fake.tree);
        let soft: Vec<&str> = found.rlimits.values().map(String::as_str).collect();
        // In the order of their names.
        assert_eq!(soft, ["4294967296", "unlimited", "65536", "64", "20000", "96365", "8388608"]);
        assert_eq!((found.rlimit("nofile"), found.rlimit("fsize")), (Some(64), None));
        assert_eq!(found.rlimit(HARD_NOFILE), Some(20_000));
        for (set, has) in [("000001ffffffffff", true), ("0000000000003fff", false), ("x", false)] {
            fake.file("proc/self/status", &format!("Name:\tx\nCapEff:\t{set}\n"));
            assert_eq!(Container::read_from(&fake.tree).ipc_lock, has, "{set}");
        }
    }

    #[test]
    fn what_is_not_there_or_strange_is_no_limit() {
        let none = Container::read_from(&Fake::new(&[]).tree);
        assert_eq!(none, Container::default());
        let fake = version_two();
        for (file, text) in [
            ("cpu.max", "50000\n"),
            ("cpu.stat", "nr_throttled x\n"),
            ("memory.max", "12 GiB\n"),
            ("pids.max", "-5\n"),
            ("cpuset.cpus.effective", "0-\n"),
        ] {
            fake.file(&format!("sys/fs/cgroup/kube.slice/{file}"), text);
        }
        assert_eq!(Container::read_from(&fake.tree), Container::default());
        fake.file("sys/fs/cgroup/cpu.max", "1 0\n");
        assert_eq!(Container::read_from(&fake.tree).cpu_quota, None);
        let deep = format!("0::{}\n", "/x".repeat(10_000));
        fake.file("proc/self/cgroup", &deep);
        assert_eq!(Container::read_from(&fake.tree), Container::default());
    }
}
