//! Runs in containers: in control groups of version 1, which root makes here, in a network without
//! a loopback, under resource limits. Version 2 is read from made-up trees
//! (`crates/host/src/container.rs`) and followed in the emulated machine (`testbed/recipes.rs`).

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

/// A control group of version 1, which goes when it is dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one with these limits; `None`, with a printed reason: it cannot be made here.
    fn new(controller: &str, limits: &[(&str, &str)]) -> Option<ControlGroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wiregauge-test-{}-{number}", std::process::id());
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let lines = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let path = lines.clone().find(|(names, _)| *names == controller);
        let Some((_, path)) = path.filter(|_| geteuid().is_root()) else {
            eprintln!("skipped: no control group of version 1 for {controller}, or not root");
            return None;
        };
        let mounted = Path::new("/sys/fs/cgroup").join(controller);
        let folder = mounted.join(path.trim_start_matches('/')).join(name);
        if let Err(error) = fs::create_dir(&folder) {
            eprintln!("skipped: {} cannot be made: {error}", folder.display());
            return None;
        }
        let group = ControlGroup(folder);
        limits.iter().for_each(|(file, text)| fs::write(group.0.join(file), text).unwrap());
        Some(group)
    }

    /// A command of the program in the group.
    fn command(&self, scratch: &Scratch, arguments: &str) -> Command {
        let mut shell = Command::new("sh");
        let line =
            format!("echo $$ > {}/cgroup.procs && exec \"$0\" {arguments}", self.0.display());
        shell.args(["-c", &line, PROGRAM]).current_dir(&scratch.0);
        shell
    }

    fn run(&self, scratch: &Scratch, arguments: &str) -> Printed {
        printed(&mut self.command(scratch, arguments))
    }

    /// The processes in it.
    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Of a test that has failed processes are left.
        for process in self.processes().into_iter().filter_map(|one| Pid::from_raw(one as i32)) {
            let _ = kill_process(process, Signal::KILL);
        }
        let folder = &self.0;
        until("the control group goes", LIMIT, || {
            fs::remove_dir(folder).is_ok() || !folder.exists()
        });
    }
}

fn printed(command: &mut Command) -> Printed {
    let ended = output(command);
    let stdout = String::from_utf8(ended.stdout).unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    Printed { code: ended.status.code(), stdout, stderr }
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
    let limits = [("cpu.cfs_period_us", "10000"), ("cpu.cfs_quota_us", "1000")];
    let Some(group) = ControlGroup::new("cpu", &limits) else { return };
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
    let Some(group) = ControlGroup::new("memory", &[("memory.limit_in_bytes", "96M")]) else {
        return;
    };
    let scratch = Scratch::new();
    let large = "latency --transport unix --wait block --count 3000000 --rounds 1 --out run";
    let refused = group.run(&scratch, large);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "MiB of memory, and the control group has ";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(refused.stderr.contains("left of 96 MiB: raise memory.max"), "{refused:?}");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left");
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
    if 'oom_kill 0' not in open(sys.argv[1] + '/memory.oom_control').read():
        break
    taken.append(bytearray(b'x' * (1 << 20)))
";

#[test]
fn an_agent_that_is_killed_for_want_of_memory_is_said_to_be() {
    let Some(group) = ControlGroup::new("memory", &[("memory.limit_in_bytes", "96M")]) else {
        return;
    };
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
    let took = output(hog.args(["-c", HOG]).arg(&group.0));
    assert!(took.status.success(), "{took:?}");
    let ended = controller.end(LIMIT);
    assert!(matches!(ended.status.code(), Some(3 | 4)), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    let faults = record(&scratch).faults.join("; ");
    let of_memory = "was killed by signal 9 (SIGKILL): its control group has 96 MiB of memory";
    assert!(faults.contains(of_memory), "{faults}\n{said}");
    assert!(faults.contains("raise memory.max (docker --memory)"), "{faults}");
}

#[test]
fn threads_beyond_the_limit_of_the_group_are_refused_before_the_run() {
    let Some(group) = ControlGroup::new("pids", &[("pids.max", "9")]) else { return };
    let scratch = Scratch::new();
    let refused = group.run(&scratch, &format!("latency --transport unix {SHORT} --out run"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("more processes and threads, and the control group allows "));
    assert!(refused.stderr.contains("of 9: raise pids.max"), "{refused:?}");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left");
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
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left");
    }
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
    let refused = shell(&scratch, alone, &script);
    if refused.stderr.contains("unshare") {
        eprintln!("skipped: {}", refused.stderr);
        return;
    }
    assert!(matches!(refused.code, Some(2 | 4)), "{refused:?}");
    assert!(refused.stderr.contains("is down"), "{refused:?}");
}
