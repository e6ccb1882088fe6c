//! Processes that launchers start together: Slurm, Open MPI, MPICH, and whoever numbers them by
//! hand. Each test passes over what is not installed.

mod slurm;

use crate::support::controller::{Controller, Ended, Scratch};
use crate::support::program::PROGRAM;
use rustix::process::Signal;
use slurm::Cluster;
use std::fs;
use std::process::{Command, Stdio};
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;
use wiregauge_test_support::bounded::{LIMIT, SOON, output, until};

/// The first port of jobs that are started by hand.
const PORT: u16 = 18426;
/// In the environment of all processes of a test.
const MARK: &str = "WIREGAUGE_TEST_MARK";
const LATENCY: &str = "latency --wait block --count 200 --rounds 1 --out run";
/// A round that lasts until somebody ends it.
const LONG: &str = "latency --wait block --count 3000000 --pause 100us --rounds 1 --out run";

fn is_installed(program: &str) -> bool {
    let found = output(Command::new("sh").args(["-c", &format!("command -v {program}")]));
    if !found.status.success() {
        eprintln!("skipped: {program} is not installed");
    }
    found.status.success()
}

/// A launcher's command with the program and its arguments behind it.
fn launched(scratch: &Scratch, launcher: &str, line: &str) -> Command {
    let mut words = launcher.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(PROGRAM).args(line.split(' ')).env(MARK, mark(scratch));
    command
}

/// Runs it to its end. Its input stays open: MPICH's launcher is killed by SIGPIPE where it hands
/// on the end of its input to ranks that have ended.
fn finished(scratch: &Scratch, command: Command) -> Ended {
    Controller::with_input(scratch, command, Stdio::piped()).end()
}

fn mark(scratch: &Scratch) -> String {
    scratch.0.display().to_string()
}

/// Processes of a test, each with what else its environment says.
fn processes(scratch: &Scratch) -> Vec<(i32, String)> {
    let own = format!("{MARK}={}", mark(scratch));
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let words = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', "\n");
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let is_ours = words.lines().any(|word| word == own) && name.starts_with("wiregauge");
        is_ours.then_some((pid, words))
    })
    .collect()
}

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

/// Asserts that so many ranks were measured with, and that one process alone has told of it.
fn measured(scratch: &Scratch, ended: &Ended, others: usize) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches("kept in").count(), 1, "{ended:?}");
    let found = record(scratch);
    assert!(found.complete, "{ended:?}");
    let names: Vec<&str> = found.hosts.iter().map(|host| host.name.as_str()).collect();
    let ranks: Vec<String> = (1..=others).map(|rank| format!("rank:{rank}")).collect();
    assert_eq!(names, ranks);
    assert!(found.runs.iter().all(|run| run.counts.received == 220), "{ended:?}");
    assert!(processes(scratch).is_empty(), "{:?}", processes(scratch));
}

#[test]
fn ranks_of_open_mpi_measure_with_each_other() {
    let scratch = Scratch::new();
    if !is_installed("mpirun.openmpi") {
        return;
    }
    let launcher = "mpirun.openmpi --allow-run-as-root --oversubscribe -np 2";
    let ended = finished(&scratch, launched(&scratch, launcher, LATENCY));
    measured(&scratch, &ended, 1);
}

#[test]
fn ranks_compare_their_clocks_and_are_looked_at_like_other_hosts() {
    let scratch = Scratch::new();
    if !is_installed("mpirun.mpich") {
        return;
    }
    let launcher = "mpirun.mpich -np 3";
    let clocks = launched(&scratch, launcher, "clocks --time 500ms --out run");
    let ended = finished(&scratch, clocks);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches("kept in").count(), 1, "{ended:?}");
    let found = record(&scratch);
    let compared: Vec<&str> =
        found.clocks.iter().map(|one| &*found.hosts[one.host as usize].name).collect();
    assert_eq!(compared, ["rank:1", "rank:2"], "{ended:?}");
    assert!(found.clocks.iter().all(|one| one.known.last().unwrap().clock.exchanges > 20));
    assert!(processes(&scratch).is_empty(), "{:?}", processes(&scratch));

    let ended = finished(&scratch, launched(&scratch, launcher, "hosts --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let reached: Vec<(&str, bool)> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["host"].as_str().unwrap(), one["reached"].as_bool().unwrap()))
        .collect();
    assert_eq!(reached, [("rank:1", true), ("rank:2", true)], "{ended:?}");
    assert!(processes(&scratch).is_empty(), "{:?}", processes(&scratch));

    let named = finished(&scratch, launched(&scratch, launcher, "hosts --hosts a,b"));
    let said = "hosts are named, but this is rank 0 of 3";
    assert_eq!(named.stderr.matches(said).count(), 1, "{named:?}");
}

#[test]
fn ranks_of_mpich_measure_with_each_other() {
    let scratch = Scratch::new();
    if !is_installed("mpirun.mpich") {
        return;
    }
    let ended = finished(&scratch, launched(&scratch, "mpirun.mpich -np 3", LATENCY));
    measured(&scratch, &ended, 2);
    // A wrong request is said once.
    let launcher = launched(&scratch, "mpirun.mpich -np 3", "latency --count 0");
    let ended = finished(&scratch, launcher);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(said.matches("--count: '0' is out of range").count(), 1, "{ended:?}");
}

#[test]
fn ranks_of_slurm_measure_with_each_other_and_end_with_the_first() {
    let scratch = Scratch::new();
    if !["srun", "slurmctld", "slurmd", "munge", "munged"].into_iter().all(is_installed) {
        return;
    }
    let Some(cluster) = Cluster::start(&scratch) else { return };
    let study = "title = \"t\"\n[all]\nrounds = 1\n[[latency]]\nseries = \"s\"\n\
                 transport = \"tcp\"\n\
                 wait = \"block\"\ncount = 200\n";
    fs::write(scratch.join("study.toml"), study).unwrap();
    let srun = |launcher: &str, line: &str| {
        let mut command = launched(&scratch, launcher, line);
        cluster.tell(&mut command);
        Controller::of(&scratch, command)
    };
    let ended = srun("srun -N4 -n4", "run study.toml --out run").end();
    measured(&scratch, &ended, 3);
    fs::remove_dir_all(scratch.join("run")).unwrap();

    let controller = srun("srun -N2 -n2 --kill-on-bad-exit=0", LONG);
    // Two ranks, both ends' agents, and the way to the second.
    until("a round runs", LIMIT, || processes(&scratch).len() >= 5);
    let is_first = |words: &str| words.lines().any(|word| word == "SLURM_PROCID=0");
    let first = processes(&scratch).into_iter().filter(|(_, words)| is_first(words));
    let first = first.map(|(pid, _)| pid).min().unwrap();
    let pid = rustix::process::Pid::from_raw(first).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until("all end", SOON, || processes(&scratch).is_empty());
    assert_ne!(controller.end().code, Some(0));
}

/// A rank that is numbered by hand.
fn by_hand(scratch: &Scratch, rank: u32, secret: Option<&str>) -> Controller {
    numbered(scratch, LATENCY, rank, secret)
}

fn numbered(scratch: &Scratch, line: &str, rank: u32, secret: Option<&str>) -> Controller {
    let line = format!("{line} --rank {rank} --ranks 2 --leader 127.0.0.1:{PORT}");
    let mut command = launched(scratch, "env", &line);
    command.env_remove("WIREGAUGE_JOB_SECRET");
    if let Some(secret) = secret {
        command.env("WIREGAUGE_JOB_SECRET", secret);
    }
    Controller::of(scratch, command)
}

#[test]
fn ranks_that_share_a_secret_need_no_launcher() {
    let scratch = Scratch::new();
    let secret = Some("9f86d081884c7d659a2feaa0c55ad015");
    let (second, first) = (by_hand(&scratch, 1, secret), by_hand(&scratch, 0, secret));
    let ended = first.end();
    let second = second.end();
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), ""), "{second:?}");
    measured(&scratch, &ended, 1);
}

#[test]
fn a_rank_whose_controller_is_killed_fails_and_says_so() {
    let scratch = Scratch::new();
    let secret = Some("9f86d081884c7d659a2feaa0c55ad015");
    let [second, first] = [1, 0].map(|rank| numbered(&scratch, LONG, rank, secret));
    first.await_messages(300);
    first.signal(Signal::KILL);
    let second = second.end();
    assert_eq!(second.code, Some(4), "{second:?}");
    assert!(second.stderr.contains("rank 0, the controller, was killed"), "{second:?}");
    assert_eq!(second.stderr.lines().count(), 1, "{second:?}");
    assert_eq!(first.end().code, None);
    until("all end", SOON, || processes(&scratch).is_empty());
}

#[test]
fn a_rank_that_is_killed_early_is_no_daemon_that_somebody_should_start() {
    let scratch = Scratch::new();
    let secret = Some("9f86d081884c7d659a2feaa0c55ad015");
    let line = "latency --wait block --count 5000 --pause 100us --rounds 3 --out run";
    let [second, first] = [1, 0].map(|rank| numbered(&scratch, line, rank, secret));
    first.await_messages(300);
    second.signal(Signal::KILL);
    let ended = first.end();
    assert!(![Some(0), None].contains(&ended.code), "{ended:?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("the rank at 127.0.0.1:"), "{ended:?}");
    for advice in ["wiregauge agent", "wiregauge pair", "daemon"] {
        assert!(!said.contains(advice), "{advice}: {ended:?}");
    }
}

/// Returns the addresses at which a process listens, as /proc/net/tcp has them.
fn listening(process: u32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let sockets: Vec<String> = descriptors
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect();
    let mut all = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_own = sockets.contains(&format!("socket:[{}]", words[9]));
            if words[3] == "0A" && is_own {
                all.push(words[1].to_owned());
            }
        }
    }
    all
}

#[test]
fn another_secret_is_named_at_once_and_rank_0_listens_where_it_was_told() {
    let scratch = Scratch::new();
    let first = by_hand(&scratch, 0, Some("9f86d081884c7d659a2feaa0c55ad015"));
    until("rank 0 listens", LIMIT, || !listening(first.id()).is_empty());
    // Other jobs on this host may have the first ports.
    let [address] = &listening(first.id())[..] else { panic!("{:?}", listening(first.id())) };
    let port = address.strip_prefix("0100007F:").expect("127.0.0.1 and nowhere else");
    let port = u16::from_str_radix(port, 16).unwrap();
    assert!(port >= PORT, "{port}");
    let second = by_hand(&scratch, 1, Some("another secret, as long as it must be")).end();
    assert_eq!(second.code, Some(2), "{second:?}");
    assert_eq!(
        second.stderr,
        format!(
            "wiregauge: rank 1 and rank 0 at 127.0.0.1:{port} have different secrets: set \
             WIREGAUGE_JOB_SECRET to the same for all ranks\n"
        )
    );
    // Anybody may come with another secret: rank 0 says so and waits on.
    first.signal(Signal::INT);
    let ended = first.end();
    let said = "a rank at 127.0.0.1 has another secret: set WIREGAUGE_JOB_SECRET to the same";
    assert_eq!(ended.stderr.matches(said).count(), 1, "{ended:?}");
}

#[test]
fn ranks_without_a_secret_are_refused_in_a_sentence() {
    let scratch = Scratch::new();
    for (secret, says) in [
        (None, "share no secret: set WIREGAUGE_JOB_SECRET"),
        (Some("short"), "WIREGAUGE_JOB_SECRET is too short"),
    ] {
        for rank in [0, 1] {
            let ended = by_hand(&scratch, rank, secret).end();
            assert_eq!(ended.code, Some(4), "{ended:?}");
            assert!(ended.stderr.contains(says), "{ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        }
    }
    let mut named = launched(&scratch, "env", "latency --to node1");
    named.env("WIREGAUGE_RANK", "0").env("WIREGAUGE_RANKS", "2").env("WIREGAUGE_LEADER", "a");
    let ended = Controller::of(&scratch, named).end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("hosts are named, but this is rank 0 of 2"), "{ended:?}");
}
