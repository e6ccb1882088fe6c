//! Runs in containers: in control groups, which root makes here, in a network without a loopback,
//! under resource limits. The groups are of the version that the host has; the emulated machine has
//! version 2 (`testbed/control_groups.rs`).

use crate::support::Scratch;
use crate::support::program::{PROGRAM, Printed};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use wiregauge::record::read_record;
use wiregauge::record::schema::{Record, RecordedWarning};
use wiregauge_test_support::bounded::{LIMIT, output, start, until, until_some};

/// A run that is soon over, also on a machine that does much else.
const SHORT: &str = "--wait block --count 500 --rounds 1";

/// A limit of a control group.
enum Limit {
    /// CPU time in microseconds in each 10 ms.
    Cpu(u32),
    /// Bytes of memory.
    Memory(u64),
    /// Processes and threads.
    Tasks(u32),
}

impl Limit {
    fn controller(&self) -> &'static str {
        match self {
            Limit::Cpu(_) => "cpu",
            Limit::Memory(_) => "memory",
            Limit::Tasks(_) => "pids",
        }
    }

    fn write(&self, folder: &Path, is_second: bool) {
        match self {
            Limit::Cpu(us) if is_second => write(folder, "cpu.max", format!("{us} 10000")),
            Limit::Cpu(us) => {
                write(folder, "cpu.cfs_period_us", "10000");
                write(folder, "cpu.cfs_quota_us", us.to_string());
            }
            Limit::Memory(bytes) if is_second => {
                write(folder, "memory.max", bytes.to_string());
                // Else what is too much goes there, where the host has any.
                let _ = fs::write(folder.join("memory.swap.max"), "0");
            }
            Limit::Memory(bytes) => write(folder, "memory.limit_in_bytes", bytes.to_string()),
            Limit::Tasks(tasks) => write(folder, "pids.max", tasks.to_string()),
        }
    }
}

fn write(folder: &Path, file: &str, text: impl AsRef<[u8]>) {
    fs::write(folder.join(file), text).unwrap();
}

/// A control group, which goes when it is dropped.
struct ControlGroup {
    folder: PathBuf,
    /// It is of version 2.
    is_second: bool,
}

impl ControlGroup {
    /// Makes one with a limit; `None`, with a printed reason: it cannot be made here.
    fn new(limit: &Limit) -> Option<ControlGroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wiregauge-test-{}-{number}", std::process::id());
        let controller = limit.controller();
        let first = parent_of_version_one(controller);
        let is_second = first.is_none();
        let parent = first.or_else(|| parent_of_version_two(controller));
        let Some(parent) = parent.filter(|_| geteuid().is_root()) else {
            eprintln!("skipped: no control group for {controller} can be made, or not root");
            return None;
        };
        let folder = parent.join(name);
        if let Err(error) = fs::create_dir(&folder) {
            eprintln!("skipped: {} cannot be made: {error}", folder.display());
            return None;
        }
        let group = ControlGroup { folder, is_second };
        limit.write(&group.folder, is_second);
        Some(group)
    }

    /// The file that counts the processes that the OOM killer has ended.
    fn kills(&self) -> PathBuf {
        let file = if self.is_second { "memory.events" } else { "memory.oom_control" };
        self.folder.join(file)
    }

    /// A command of the program in the group.
    fn command(&self, scratch: &Scratch, arguments: &str) -> Command {
        let mut shell = Command::new("sh");
        let line =
            format!("echo $$ > {}/cgroup.procs && exec \"$0\" {arguments}", self.folder.display());
        shell.args(["-c", &line, PROGRAM]).current_dir(&scratch.0);
        shell
    }

    fn run(&self, scratch: &Scratch, arguments: &str) -> Printed {
        printed(&mut self.command(scratch, arguments))
    }

    /// The processes in it.
    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Of a test that has failed processes are left.
        for process in self.processes().into_iter().filter_map(|one| Pid::from_raw(one as i32)) {
            let _ = kill_process(process, Signal::KILL);
        }
        let folder = &self.folder;
        until("the control group goes", LIMIT, || {
            fs::remove_dir(folder).is_ok() || !folder.exists()
        });
    }
}

/// The path of this process's group: of version 2 without a controller.
fn own_group(controller: Option<&str>) -> Option<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut groups = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let found = groups.find(|(names, _)| match controller {
        Some(controller) => names.split(',').any(|name| name == controller),
        None => names.is_empty(),
    });
    found.map(|(_, path)| path.trim_start_matches('/').to_owned())
}

/// The own group of a controller of version 1, in which others can be made.
fn parent_of_version_one(controller: &str) -> Option<PathBuf> {
    Some(Path::new("/sys/fs/cgroup").join(controller).join(own_group(Some(controller))?))
}

/// The group of version 2 nearest to the own one whose groups have a controller. One with processes
/// has none to give, unless it is the topmost.
fn parent_of_version_two(controller: &str) -> Option<PathBuf> {
    let mounted = Path::new("/sys/fs/cgroup");
    let own = mounted.join(own_group(None)?);
    let mut above = own.ancestors().take_while(|folder| folder.starts_with(mounted));
    let found = above.find(|folder| {
        let enabled = folder.join("cgroup.subtree_control");
        let own = fs::read_to_string(&enabled).unwrap_or_default();
        own.split_whitespace().any(|name| name == controller)
            || fs::write(&enabled, format!("+{controller}")).is_ok()
    });
    found.map(Path::to_owned)
}

fn printed(command: &mut Command) -> Printed {
    let ended = output(command);
    let stdout = String::from_utf8(ended.stdout).unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    Printed { code: ended.status.code(), stdout, stderr }
}

fn assert_is_empty(scratch: &Scratch) {
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

fn warnings(record: &Record) -> Vec<&RecordedWarning> {
    record.runs.iter().flat_map(|run| &run.warnings).chain(&record.warnings).collect()
}

#[test]
fn a_quota_that_stops_a_run_is_named_and_nobody_else_is_blamed() {
    // Less than a task gets at a time, so that it is used up on a busy machine, too.
    let Some(group) = ControlGroup::new(&Limit::Cpu(1000)) else { return };
    let scratch = Scratch::new();
    // Both ends poll, so that they use up the quota of each period.
    let ended = group
        .run(&scratch, "latency --transport shm --wait busy --time 500ms --rounds 1 --out run");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = record(&scratch);
    let quota = record.environment.container.cpu_quota.unwrap();
    assert_eq!((quota.quota_us, quota.period_us), (1000, 10_000));
    let warnings = warnings(&record);
    let own = warnings.iter().find(|one| one.kind == "throttled").expect("a warning of its own");
    assert!(own.advice.contains("raise the CPU quota") && own.advice.contains("docker --cpus"));
    let blames: Vec<_> =
        warnings.iter().filter(|one| one.advice.contains("stop other processes")).collect();
    assert!(blames.is_empty(), "{blames:#?}");
    let counters = &record.runs[0].rounds[0].client.final_counters;
    assert!(counters["counter.cgroup.throttled"].parse::<u64>().unwrap() > 0, "{counters:?}");
    let seen = group.run(&scratch, "doctor --check cpu_quota");
    assert_eq!(seen.code, Some(1), "{seen:?}");
    assert!(seen.stdout.contains("raise cpu.max"), "{seen:?}");
}

#[test]
fn a_round_beyond_the_memory_of_its_group_is_refused_before_it_runs() {
    let Some(group) = ControlGroup::new(&Limit::Memory(96 << 20)) else { return };
    let scratch = Scratch::new();
    let large = "latency --transport unix --wait block --count 3000000 --rounds 1 --out run";
    let refused = group.run(&scratch, large);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "MiB of memory, and the control group has ";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(refused.stderr.contains("left of 96 MiB: raise memory.max"), "{refused:?}");
    assert_is_empty(&scratch);
    let fits = group.run(&scratch, &format!("latency --transport unix {SHORT} --out run"));
    assert_eq!(fits.code, Some(0), "{fits:?}");
    let memory = record(&scratch).environment.container.memory.unwrap();
    assert_eq!(memory.limit_bytes, 96 << 20);
    assert!(memory.left_bytes() > 0 && memory.used_bytes > 0, "{memory:?}");
}

/// Takes memory until the kernel has killed a process of the group.
const HOG: &str = "
import sys
open(sys.argv[1] + '/cgroup.procs', 'w').write('0')
taken = []
for _ in range(200):
    if 'oom_kill 0' not in open(sys.argv[2]).read():
        break
    taken.append(bytearray(b'x' * (1 << 20)))
";

#[test]
fn an_agent_that_the_oom_killer_kills_is_said_to_be() {
    let Some(group) = ControlGroup::new(&Limit::Memory(96 << 20)) else { return };
    let scratch = Scratch::new();
    let long =
        "latency --transport unix --wait block --pause 1ms --count 100000 --rounds 1 --out run";
    let controller = start(&mut group.command(&scratch, long));
    let agents = until_some("both agents", LIMIT, || {
        let agents: Vec<u32> =
            group.processes().into_iter().filter(|one| *one != controller.child.id()).collect();
        (agents.len() == 2).then_some(agents)
    });
    // The kernel kills this one before all others, whatever they have.
    fs::write(format!("/proc/{}/oom_score_adj", agents[0]), "1000").unwrap();
    let mut hog = Command::new("python3");
    let took = output(hog.args(["-c", HOG]).args([&group.folder, &group.kills()]));
    // What the agent shares with the controller is not freed, so that this may be killed, too.
    assert!(matches!(took.status.code(), Some(0) | None), "{took:?}");
    let ended = controller.end(LIMIT);
    assert!(matches!(ended.status.code(), Some(3 | 4)), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    let faults = record(&scratch).faults.join("; ");
    let of_memory = "was killed by signal 9 (SIGKILL): its control group has 96 MiB of memory";
    assert!(faults.contains(of_memory), "{faults}\n{said}");
    assert!(faults.contains("raise memory.max (docker --memory"), "{faults}");
}

/// The processes that a process has started.
fn children_of(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|number| is_child(*number, parent)).collect()
}

fn is_child(number: u32, parent: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(1) == Some(parent.to_string().as_str())
}

/// The threads of a process.
fn threads_of(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).map_or(0, |tasks| tasks.count())
}

#[test]
fn threads_beyond_the_limit_of_the_group_are_refused_before_the_run() {
    let Some(group) = ControlGroup::new(&Limit::Tasks(9)) else { return };
    let scratch = Scratch::new();
    for (line, receivers) in [
        ("latency --transport unix", 0),
        ("rpc --transport unix --rps 1000 --no-unloaded --connections 2 --receivers 2", 2),
    ] {
        let refused = group.run(&scratch, &format!("{line} {SHORT} --out run"));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let (before, after) = refused
            .stderr
            .split_once(" more processes and threads, and the control group allows ")
            .unwrap_or_else(|| panic!("{refused:?}"));
        assert!(after.contains("of 9: raise pids.max"), "{refused:?}");
        assert_is_empty(&scratch);
        // As many as a run starts for its two agents.
        let long = format!("{line} --wait block --time 60s --rounds 1 --out run");
        let controller = start(Command::new(PROGRAM).args(long.split(' ')).current_dir(&scratch.0));
        let needed: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
        let of_controller = 2 * 2;
        until("both agents have their threads", LIMIT, || {
            let agents = children_of(controller.child.id());
            let all: usize = agents.iter().copied().map(threads_of).sum();
            agents.len() == 2 && all + of_controller == needed
        });
        let own = threads_of(controller.child.id());
        assert!(own > of_controller, "{own}");
        let pid = Pid::from_raw(controller.child.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        controller.end(LIMIT);
        assert_eq!(needed, 2 * 5 + of_controller + receivers);
        fs::remove_dir_all(scratch.join("run")).unwrap();
    }
}

/// A script, whose $0 is the program, under resource limits or in a network of its own.
fn shell(scratch: &Scratch, before: &[&str], script: &str) -> Printed {
    let words = before.iter().copied().chain(["sh", "-c", script, PROGRAM]);
    let words: Vec<&str> = words.collect();
    printed(Command::new(words[0]).args(&words[1..]).current_dir(&scratch.0))
}

#[test]
fn resource_limits_that_a_round_exceeds_are_told_before_it_runs() {
    let scratch = Scratch::new();
    let large = "latency --transport unix --wait block --count 5000000 --rounds 1 --out run";
    for (limit, name) in [("-v 200000", "RLIMIT_AS"), ("-f 20000", "RLIMIT_FSIZE")] {
        let refused = shell(&scratch, &[], &format!("ulimit {limit}; exec \"$0\" {large}"));
        assert_eq!(refused.code, Some(2), "{limit}: {refused:?}");
        assert!(refused.stderr.contains(name), "{limit}: {refused:?}");
        assert_is_empty(&scratch);
    }
}

#[test]
fn a_refused_run_makes_no_folder_and_restores_nothing() {
    let scratch = Scratch::new();
    let large = "latency --transport unix --wait block --count 5000000 --rounds 1";
    let refused = shell(&scratch, &[], &format!("ulimit -f 20000; exec \"$0\" {large}"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_is_empty(&scratch);
    let study = "title = 'Is it restored?'\nrestore = 'touch restored'\n[all]\nrounds = 1\n\
                 [[latency]]\nseries = 'one'\ntransport = 'unix'\nprepare = 'touch prepared'\n\
                 count = 5000000\n";
    fs::write(scratch.join("study.toml"), study).unwrap();
    let run = "ulimit -f 20000; exec \"$0\" run study.toml --prepare";
    let refused = shell(&scratch, &[], run);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("RLIMIT_FSIZE"), "{refused:?}");
    fs::remove_file(scratch.join("study.toml")).unwrap();
    assert_is_empty(&scratch);
}

#[test]
fn without_a_loopback_only_what_needs_it_is_missing() {
    let scratch = Scratch::new();
    let root = geteuid().is_root();
    let alone = if root { &["unshare", "-n"][..] } else { &["unshare", "-r", "-n"][..] };
    let remedy = "ip link set lo up";
    if !output(Command::new(alone[0]).args(&alone[1..]).arg("true")).status.success() {
        eprintln!("skipped: no network namespace can be made here");
        return;
    }
    let listed = shell(&scratch, alone, "exec \"$0\" list --json");
    let all: Value = serde_json::from_str(&listed.stdout).unwrap();
    for one in all.as_array().unwrap() {
        let reason = one["reason"].as_str().unwrap_or_default();
        match one["transport"].as_str().unwrap() {
            "tcp" | "udp" => assert!(reason.contains(remedy), "{one}"),
            _ => assert!(!reason.contains("loopback"), "{one}"),
        }
    }
    let none = shell(&scratch, alone, &format!("exec \"$0\" latency --transport tcp {SHORT}"));
    assert_eq!(none.code, Some(4), "{none:?}");
    assert!(none.stderr.contains("tcp: ") && none.stderr.contains(remedy), "{none:?}");
    let some = format!("exec \"$0\" latency --transport tcp,unix {SHORT} --out run");
    let some = shell(&scratch, alone, &some);
    assert_eq!(some.code, Some(0), "{some:?}");
    let record = record(&scratch);
    let missing: Vec<&str> = record.unavailable.iter().map(|one| one.transport.as_str()).collect();
    assert_eq!((missing, record.faults.len()), (vec!["tcp"], 0));
    let seen = shell(&scratch, alone, "exec \"$0\" doctor --check loopback");
    assert!(seen.code == Some(1) && seen.stdout.contains(remedy), "{seen:?}");
    let up = format!("{remedy} && exec \"$0\" latency --transport tcp {SHORT} --out up");
    let up = shell(&scratch, alone, &up);
    assert_eq!(up.code, Some(0), "{up:?}");
}

/// `/sys` may show the interfaces of another network namespace, in which they are up.
#[test]
fn an_interface_that_is_down_in_this_namespace_is_refused() {
    let scratch = Scratch::new();
    let root = geteuid().is_root();
    let alone = if root { &["unshare", "-n"][..] } else { &["unshare", "-r", "-n"][..] };
    let script = format!(
        "ip addr add 10.9.9.9/32 dev lo && \
         exec \"$0\" latency --transport tcp --interface lo {SHORT}"
    );
    if !output(Command::new(alone[0]).args(&alone[1..]).arg("true")).status.success() {
        eprintln!("skipped: no network namespace can be made here");
        return;
    }
    let refused = shell(&scratch, alone, &script);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is down"), "{refused:?}");
}
