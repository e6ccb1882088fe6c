//! The transport `mpi`: launches of this program by whichever launcher is installed, ranks that a
//! user has launched, and ranks that die. What is not installed is passed over.

mod lost_ranks;

use crate::support::controller::{Controller, Ended, Scratch};
use crate::support::program::PROGRAM;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;
use wiregauge_test_support::bounded::{ForeignFault, LIMIT, SOON, in_spite_of, output, until};

/// In the environment of all processes of a test.
const MARK: &str = "WIREGAUGE_TEST_MARK";
/// Each launcher with what a user of root needs, and what its library calls itself.
const LAUNCHERS: [(&str, &str); 2] =
    [("mpirun.openmpi --allow-run-as-root --oversubscribe", "Open MPI"), ("mpirun.mpich", "MPICH")];

fn installed() -> Vec<(&'static str, &'static str)> {
    let is_installed = |(launcher, _): &(&str, &str)| {
        let program = launcher.split(' ').next().unwrap();
        let found = output(Command::new("sh").args(["-c", &format!("command -v {program}")]));
        if !found.status.success() {
            eprintln!("skipped: {program} is not installed");
        }
        found.status.success()
    };
    LAUNCHERS.into_iter().filter(is_installed).collect()
}

fn mark(scratch: &Scratch) -> String {
    scratch.0.display().to_string()
}

/// Runs these words; the input stays open, whose end kills MPICH's launcher.
fn started(scratch: &Scratch, words: &[&str]) -> Controller {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(MARK, mark(scratch));
    Controller::with_input(scratch, command, Stdio::piped())
}

fn measured(scratch: &Scratch, more: &str) -> Ended {
    let words: Vec<&str> = more.split(' ').collect();
    started(scratch, &[&[PROGRAM][..], &words].concat()).end()
}

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

/// The setting of this name that was in effect in each round.
fn effective(record: &Record, name: &str) -> Vec<String> {
    let rounds = record.runs.iter().flat_map(|run| &run.rounds);
    rounds.map(|round| round.client.effective_settings[name].clone()).collect()
}

/// Agents of a test: their processes.
fn agents(scratch: &Scratch) -> Vec<i32> {
    let own = format!("{MARK}={}", mark(scratch));
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let of_test = String::from_utf8_lossy(&read("environ")).split('\0').any(|one| one == own);
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        // A launcher's command ends in the same words.
        let words: Vec<&str> = line.split_terminator('\0').collect();
        of_test && matches!(words[..], [program, "run-role"] if program.ends_with("wiregauge"))
    })
    .collect()
}

#[test]
fn each_round_is_a_launch_of_its_own() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --transport mpi --mpirun {launcher} --count 200 --rounds 2 --check --out run"
        );
        let ended = measured(&scratch, &line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete && record.runs[0].counts.received == 440, "{ended:?}");
        assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{record:?}");
        assert_eq!(effective(&record, "mpi_rank"), ["0 of 2"; 2]);
        assert_eq!(effective(&record, "rounds_of_process"), ["1"; 2]);
        assert!(agents(&scratch).is_empty());
    }
}

#[test]
fn streams_are_held_back_by_their_receivers_and_lose_nothing() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "bandwidth --transport mpi --mpirun {launcher} --size 8,100kB --direction bi \
             --count 2000 --rounds 1 --check --out run"
        );
        let ended = measured(&scratch, &line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete, "{ended:?}");
        for run in &record.runs {
            assert_eq!((run.counts.lost, run.counts.sent), (0, run.counts.received), "{ended:?}");
        }
    }
}

/// On one CPU a rank tells the other of two steps before that looks.
#[test]
fn two_ranks_open_their_memory_on_one_cpu() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --operation write --size 8 --count 50 --rounds 2 --cpus 0,0 \
             --transport mpi --mpirun {launcher} --out run"
        );
        let ended = measured(&scratch, &line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(record(&scratch).complete, "{ended:?}");
    }
}

/// Each one-sided operation, by what asks for it. A write is seen by the other end, but in
/// `bandwidth`; the others only by their completion.
#[test]
fn operations_on_the_other_rank_s_memory_complete_once_each() {
    const LINES: [&str; 8] = [
        "latency --operation write --size 8,100kB --check",
        "latency --operation read --size 8,100kB",
        "latency --operation fetch_add --size 8",
        "bandwidth --operation write --size 8,100kB",
        "bandwidth --operation read --size 8,100kB",
        "bandwidth --operation fetch_add --size 8",
        "oneway --operation write --size 300 --rate 20k --check",
        "load --operation write --rate 10k --time 50ms",
    ];
    for (launcher, name) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        for line in LINES {
            let scratch = Scratch::new();
            let count = if line.contains("--time") { "" } else { "--count 500" };
            let line =
                format!("{line} {count} --transport mpi --mpirun {launcher} --rounds 2 --out run");
            let words: Vec<&str> = line.split_whitespace().collect();
            let ended = started(&scratch, &[&[PROGRAM][..], &words].concat()).end();
            assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
            let record = record(&scratch);
            assert!(record.complete, "{line}: {ended:?}");
            for run in &record.runs {
                let counts = &run.counts;
                assert_eq!((counts.lost, counts.corrupt), (0, 0), "{line}: {ended:?}");
                assert!(counts.sent >= 500 || line.contains("--time"), "{line}: {ended:?}");
                assert_eq!(counts.received, counts.sent, "{line}: {ended:?}");
            }
            assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{line}");
            let operation = line.split(' ').skip_while(|word| *word != "--operation").nth(1);
            let effective = effective(&record, "operation");
            assert!(effective.iter().all(|one| Some(&**one) == operation), "{line}");
            assert!(agents(&scratch).is_empty(), "{line}");
        }
    }
}

/// The other rank only provides its memory, and shows a thousand times a second that it is alive.
#[test]
fn a_line_a_second_counts_operations_and_not_looks_of_the_rank_that_provides_memory() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let ended = measured(
            &scratch,
            &format!(
                "bandwidth --operation read --size 64MiB --window 1 --time 3s --rounds 1 \
                 --report-every 1s --transport mpi --mpirun {launcher} --out run"
            ),
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = ended.stdout.lines().filter(|line| line.starts_with(' '));
        let fields = lines.map(|line| line.split_whitespace().map_while(|word| word.parse().ok()));
        let (mut told, mut before) = (0.0, 0.0);
        for fields in fields {
            let fields: Vec<f64> = fields.collect();
            let [at, thousands, ..] = fields[..] else { continue };
            told += (at - before) * thousands * 1e3;
            before = at;
        }
        let sent = record(&scratch).runs[0].counts.sent as f64;
        // Each line's rate is told to one message a second.
        assert!(before > 0.0 && told <= sent + before + 1.0, "{told} of {sent}: {ended:?}");
    }
}

#[test]
fn ranks_that_a_user_has_launched_share_their_processes_and_say_so() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let line = format!(
            "{launcher} -n 2 {PROGRAM} latency --transport mpi --size 8,1KiB --count 200 \
             --rounds 2 --out run"
        );
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout.matches("kept in").count(), 1, "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete, "{ended:?}");
        assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{record:?}");
        let mut rounds = effective(&record, "rounds_of_process");
        rounds.sort();
        assert_eq!(rounds, ["1", "2", "3", "4"], "one process for all rounds of both cases");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

/// The rank of a process, by its launcher.
fn rank_of(pid: i32) -> Option<String> {
    let set = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let set = String::from_utf8_lossy(&set).into_owned();
    let values = set.split('\0').filter_map(|one| one.split_once('='));
    let mut ranks = values.filter(|(name, _)| ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].contains(name));
    ranks.next().map(|(_, rank)| rank.to_string())
}

/// The CPU that a launcher binds each of two ranks to.
fn given_by(launcher: &str) -> [u32; 2] {
    let scratch = Scratch::new();
    let says =
        "echo rank $OMPI_COMM_WORLD_RANK$PMI_RANK $(grep Cpus_allowed_list /proc/self/status)";
    let mut words: Vec<&str> = launcher.split(' ').collect();
    words.extend(["-n", "2", "sh", "-c", says]);
    let ended = started(&scratch, &words).end();
    ["rank 0 ", "rank 1 "].map(|rank| {
        let list = ended.stdout.lines().find_map(|line| line.strip_prefix(rank));
        let cpu = list.and_then(|list| list.split_whitespace().nth(1)?.parse().ok());
        cpu.unwrap_or_else(|| panic!("{ended:?}"))
    })
}

/// A launcher binds its ranks, and what binds a launcher binds those that it does not: nobody
/// measures beyond. While MPI is initialised its library looks at the other CPUs.
#[test]
fn ranks_measure_on_the_cpus_that_they_were_given() {
    let Some(cpu) = wiregauge::host::allowed_cpus().last().copied() else { return };
    for (launcher, _) in installed() {
        let program = launcher.split(' ').next().unwrap();
        let bound = format!("taskset -c {cpu} {launcher}");
        let line = "latency --transport mpi --count 100 --rounds 1 --out run";
        for (line, given) in [
            (format!("{bound} -n 2 {PROGRAM} {line}"), given_by(&bound)),
            (format!("taskset -c {cpu} {PROGRAM} {line} --mpirun {program}"), [cpu; 2]),
        ] {
            in_spite_of(ForeignFault::LauncherPollsForEver, || {
                let scratch = Scratch::new();
                let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
                assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
                let cpus = record(&scratch).runs[0].rounds[0].cpus.unwrap();
                assert_eq!([cpus.client, cpus.server], given, "{line}");
            });
        }
    }
}

/// Among processes of this host, each in a round of its own, and among the ranks of a job, whose
/// rounds share them.
#[test]
fn nodes_exchange_over_mpi_and_lose_nothing() {
    for (launcher, _) in installed() {
        let program = launcher.split(' ').next().unwrap();
        let line = "exchange --transport mpi --size 2KiB --time 100ms --rounds 2 --check --out run";
        let own = format!("{PROGRAM} {line} --nodes 3 --mpirun {program}");
        let of_job = format!("{launcher} -n 3 {PROGRAM} {line}");
        let puts = "--operation write --chaotic --spread 50%";
        for (line, rounds) in [
            (format!("{own} {puts}"), ["1", "1"]),
            (format!("{of_job} {puts}"), ["1", "2"]),
            (own, ["1", "1"]),
            (of_job, ["1", "2"]),
        ] {
            let scratch = Scratch::new();
            let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let record = record(&scratch);
            let counts = &record.runs[0].counts;
            assert!(record.complete && counts.received > 20, "{counts:?}: {ended:?}");
            assert_eq!((counts.received, counts.corrupt), (counts.sent, 0), "{ended:?}");
            assert_eq!(effective(&record, "rounds_of_process"), rounds, "{ended:?}");
        }
    }
}

#[test]
fn a_study_of_other_ranks_says_so_and_runs_and_a_command_is_refused() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let study = "title = \"t\"\n[all]\nrounds = 1\nnodes = 4\nmax-late = \"10s\"\n\
                     [[collective]]\nseries = \"s\"\ncount = 20\n";
        fs::write(scratch.join("four.toml"), study).unwrap();
        let line = format!("{launcher} -n 2 {PROGRAM} run four.toml --out run");
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("2 nodes run instead of 4"), "{ended:?}");
        assert_eq!(record(&scratch).runs[0].case.topology.ranks.len(), 2);
        for (words, sentence) in [
            ("collective --nodes 4", "--nodes 4: this job has 2 ranks"),
            ("run four.toml --mpirun mpirun", "--mpirun: the ranks are those of this job"),
        ] {
            let line = format!("{launcher} -n 2 {PROGRAM} {words}");
            let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
            assert_ne!(ended.code, Some(0), "{ended:?}");
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(said.contains(sentence), "{ended:?}");
        }
    }
}

/// All operations, in one run each.
const OPERATIONS: &str = "barrier,bcast,reduce,allreduce,reduce+bcast,gather,gatherv,scatter,\
                          scatterv,allgather,allgatherv,alltoall,alltoallv,reduce_scatter,\
                          reduce_scatter_block,scan";

#[test]
fn every_collective_operation_gives_what_it_must_by_both_forms() {
    for (launcher, _) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        let nonblocking = OPERATIONS.replace("reduce+bcast,", "");
        let forms = [(OPERATIONS.to_string(), 16), (format!("{nonblocking} --nonblocking"), 15)];
        for (operations, count) in forms {
            let scratch = Scratch::new();
            let line = format!(
                "collective --mpirun {launcher} --collective {operations} --size 72 --count 30 \
                 --warmup 5 --rounds 1 --out run"
            );
            let ended = measured(&scratch, &line);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let record = record(&scratch);
            assert!(record.complete && record.runs.len() == count, "{ended:?}");
            for run in &record.runs {
                let counts = &run.counts;
                let found = (counts.sent, counts.received, counts.corrupt, counts.warmup);
                assert_eq!(found, (35, 35, 0, 5), "{}: {ended:?}", run.label);
                assert_eq!(run.rounds[0].samples, 35, "{}", run.label);
            }
        }
    }
}

#[test]
fn a_launch_of_three_ranks_measures_what_all_of_them_do() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        // Three ranks on two CPUs are late.
        let line = format!(
            "{launcher} -n 3 {PROGRAM} collective --collective allreduce,gather --size 32 \
             --count 20 --warmup 0 --rounds 2 --max-late 10s --out run"
        );
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete && record.runs.len() == 2, "{ended:?}");
        for run in &record.runs {
            assert_eq!((run.counts.received, run.counts.corrupt), (40, 0), "{ended:?}");
            assert_eq!(run.figures[0].metric.name(), "collective");
            assert_eq!(run.figures[0].summary.count, 40, "{ended:?}");
        }
        let mut rounds = effective(&record, "rounds_of_process");
        rounds.sort();
        assert_eq!(rounds, ["1", "2", "3", "4"], "one process for all rounds of both cases");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

/// Returns the CPU time that a process has used, by /proc/PID/stat in ticks of 10 ms.
fn cpu_time(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

#[test]
fn a_rank_that_is_killed_in_an_operation_ends_it_and_what_was_measured_is_kept() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "collective --mpirun {launcher} --compute 2ms --time 60s --rounds 2 --max-late 10s \
             --out run"
        );
        let words: Vec<&str> = line.split(' ').collect();
        let controller = started(&scratch, &[&[PROGRAM][..], &words].concat());
        until("both ranks run", LIMIT, || agents(&scratch).len() == 2);
        // A launch whose ranks do not come says so; the start of MPI takes less CPU time than this.
        until("both ranks measure", LIMIT, || {
            agents(&scratch).iter().all(|pid| cpu_time(*pid) > Duration::from_secs(1))
        });
        let pid = Pid::from_raw(agents(&scratch)[0]).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let ended = controller.end();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(launcher) && said.contains("node"), "{ended:?}");
        let record = record(&scratch);
        assert!(!record.complete && record.runs[0].rounds[0].samples > 0, "{ended:?}");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

#[test]
fn what_cannot_be_launched_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    for (line, says) in [
        ("latency --transport mpi --wait block", "MPI has no descriptor to sleep on"),
        ("latency --transport mpi --to node1", "start wiregauge by mpirun or srun"),
        ("latency --transport mpi --operation write_imm", "operations carry no immediate value"),
        ("latency --transport mpi --operation fetch_add --size 16", "the size of an atomic"),
        ("oneway --transport mpi --operation read --rate 1k", "which the other end does not see"),
        ("load --transport mpi --operation read --rate 1k", "which the other end does not see"),
        ("rpc --transport mpi --operation read", "which the other end does not see"),
        ("latency --transport tcp --mpirun mpirun", "tcp does not support --mpirun"),
        ("collective --transport tcp", "tcp does not support collective"),
        ("collective --size 12", "allreduce adds numbers of 8 B: use a multiple of it"),
        ("collective --collective reduce+bcast --nonblocking", "reduce+bcast is two calls"),
    ] {
        let ended = measured(&scratch, line);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
    }
    for (line, says) in [
        ("latency --transport mpi --mpirun no-such-mpirun", "no-such-mpirun is not installed"),
        ("latency --transport mpi --mpi-library libc.so.6", "has no MPI_Get_library_version"),
    ] {
        let ended = measured(&scratch, line);
        assert!(ended.code.is_some_and(|code| code == 4 || code == 2), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(says) || said.contains("no MPI library"), "{ended:?}");
    }
    for (launcher, name) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --operation compare_swap --size 8 --transport mpi --mpirun {launcher} \
             --count 100 --rounds 1 --out {launcher}"
        );
        let ended = measured(&scratch, &line);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        // Open MPI 5 is not refused.
        let is_refused = said.contains("crashes in MPI_Compare_and_swap");
        assert!(is_refused || ended.code == Some(0), "{ended:?}");
        assert!(!is_refused || name == "Open MPI", "{ended:?}");
    }
    for (launcher, _) in installed() {
        let line = format!("{launcher} -n 3 {PROGRAM} latency --transport mpi --out run");
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        let says = "needs a launch of two ranks, and this one has 3";
        assert_eq!(ended.stderr.matches(says).count(), 1, "{ended:?}");
    }
}
