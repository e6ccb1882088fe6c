//! The agent daemon: pairing, limits, rejected peers, and what becomes of its processes.

mod rejected_peers;

use crate::support::controller::{Controller, Scratch};
use crate::support::daemon::{
    Daemon, HERE, controller_folder, controlling, driven, kill, pair, program, refused,
};
use crate::support::far::FarHost;
use crate::support::program::PROGRAM;
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use std::panic::resume_unwind;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};
use wiregauge::control::frame;
use wiregauge::control::protocol::{FromAgent, MAGIC, ToAgent, VERSION};
use wiregauge::plan::host_spec::words;
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;
use wiregauge::remote::daemon::dial;
use wiregauge::remote::daemon::identity::Identity;
use wiregauge::warning::Subject;
use wiregauge_test_support::bounded::{ForeignFault, LIMIT, SOON, in_spite_of, output, until};

/// A round that lasts until somebody ends it.
const LONG: &str = "latency --transport tcp --wait block --count 300000 --warmup 50 --pause 200us \
                    --rounds 1 --out run";

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

#[test]
fn a_host_without_ssh_is_measured_with() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    host.enter();
    let listen = format!("--listen {}:0", host.address);
    let agent = Daemon::of(&scratch, host.program(PROGRAM), &listen);
    agent.pair(&scratch);
    let line = "latency --transport tcp,udp --wait block --count 500 --rounds 2 --out run";
    let ended = driven(&scratch, &agent.host(), line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = record(&scratch);
    assert!(found.complete && found.runs.len() == 2, "{ended:?}");
    for run in &found.runs {
        assert_eq!((run.counts.received, run.counts.rejected_peers), (1100, 0), "{}", run.label);
        let granted = &run.rounds[0].server.effective_settings;
        assert_eq!((&granted["address"], &granted["interface"]), (&host.address, &host.interface));
    }
    let named = format!("[{}]:{}", agent.at.ip(), agent.at.port());
    assert_eq!(found.plan.hosts[0].agent.as_deref(), Some(&*named));
    assert_eq!(found.hosts[0].address.as_deref(), Some(&*host.address));
    fs::remove_dir_all(scratch.join("run")).unwrap();
    let line = "oneway --transport udp --wait block --count 300 --rounds 1 --out run";
    let ended = driven(&scratch, &agent.host(), line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(record(&scratch).runs[0].rounds[0].clock.is_some(), "{ended:?}");
    let ended = driven(&scratch, &agent.host(), "clocks --time 1s");
    assert!(ended.stdout.contains("offset us"), "{ended:?}");
    agent.await_no_processes();
    for said in ["pairing: ended", "probe: ended", "latency udp block 64 B (server): ended"] {
        agent.await_log(said);
    }
    agent.await_log("clocks: the controller left");
}

#[test]
fn agents_are_hosts_as_any_other() {
    let scratch = Scratch::new();
    let agents: Vec<Daemon> = (0..3).map(|_| Daemon::start(&scratch, "")).collect();
    agents.iter().for_each(|agent| agent.pair(&scratch));
    let list: Vec<String> = agents.iter().map(Daemon::host).collect();
    let list = list.join(",");
    let line = "latency --wait block --count 100 --rounds 1 --all-pairs --out run --hosts";
    let words: Vec<&str> = line.split(' ').chain([&*list]).collect();
    let ended = Controller::of(&scratch, program(&scratch, &words)).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = record(&scratch);
    assert!(found.complete && found.hosts.len() == 3, "{ended:?}");
    assert!(found.runs.iter().all(|run| run.counts.received == 110), "{ended:?}");
    agents.iter().for_each(|agent| agent.await_log("ended"));
}

#[test]
fn agents_that_refuse_each_other_are_measured_with_this_host() {
    let scratch = Scratch::new();
    // Each allows this host, and has an address of its own.
    let agents = ["127.0.0.2", "127.0.0.3"].map(|own| {
        let options = format!("--listen {own}:0 --peers 127.0.0.1");
        Daemon::of(&scratch, Command::new(PROGRAM), &options)
    });
    agents.iter().for_each(|agent| agent.pair(&scratch));
    let [one, other] = [&agents[0], &agents[1]].map(Daemon::host);
    let line = "latency --transport tcp,udp --wait block --count 100 --rounds 1 --all-pairs \
                --out run --hosts";
    let list = format!("here,{one},{other}");
    let words: Vec<&str> = line.split_whitespace().chain([&*list]).collect();
    let ended = Controller::of(&scratch, program(&scratch, &words)).end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = record(&scratch);
    let complete = found.runs.iter().filter(|run| run.complete).count();
    assert_eq!((complete, found.faults.len()), (4, 2), "{:?}", found.faults);
    for fault in &found.faults {
        assert!(fault.contains("start it with --peers 127.0.0."), "{fault}");
    }
    // It is wrong use where nothing else is left.
    let list = format!("{one},{other}");
    let line = "latency --transport tcp --count 100 --hosts";
    let words: Vec<&str> = line.split_whitespace().chain([&*list]).collect();
    let ended = Controller::of(&scratch, program(&scratch, &words)).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("--peers 127.0.0.3"), "{ended:?}");
}

#[test]
fn the_paths_of_transports_that_an_agent_does_not_allow_are_not_tried() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "--transports homa");
    agent.pair(&scratch);
    let words = ["hosts", "--to", &agent.host()];
    let ended = Controller::of(&scratch, program(&scratch, &words)).end();
    assert!(ended.stdout.contains("not allowed"), "{ended:?}");
    let said = "no data path is tried: this agent does not allow tcp: use one of homa";
    assert!(ended.stdout.contains(said), "{ended:?}");
    assert!(matches!(ended.code, Some(3 | 4)), "3 where homa is there: {ended:?}");
    agent.await_no_processes();
}

#[test]
fn only_who_was_paired_is_let_in() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    let said = refused(&scratch, &agent.host(), "latency", 2);
    assert!(said.contains("not paired with the agent at 127.0.0.1"), "{said}");
    // Of another agent's certificate it is told that this is not the one.
    agent.pair(&scratch);
    let other = Daemon::start(&scratch, "");
    let known = |at: &Daemon| controller_folder(&scratch).join(format!("agents/{}.pem", at.at));
    fs::copy(known(&agent), known(&other)).unwrap();
    let said = refused(&scratch, &other.host(), "latency", 2);
    assert!(said.contains("is not the agent that this host is paired with"), "{said}");
    // One that the agent has forgotten.
    fs::remove_dir_all(agent.folder.join("controllers")).unwrap();
    let said = refused(&scratch, &agent.host(), "latency", 2);
    assert!(said.contains("is not paired with this host (UnknownCA)"), "{said}");
    agent.await_log("rejected: ");
    assert!(agent.processes().is_empty());
}

#[test]
fn what_a_pairing_over_ipv6_prints_is_what_measures() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6 loopback address");
        return;
    }
    let scratch = Scratch::new();
    let agent = Daemon::of(&scratch, Command::new(PROGRAM), &format!("--listen [::1]:0 {HERE}"));
    let (_, said) = pair(&scratch, agent.at, &"0000-".repeat(8));
    assert!(said.contains(&format!("the agent at {} rejected the secret", agent.at)), "{said}");
    let (code, said) = pair(&scratch, agent.at, &agent.offer());
    assert_eq!(code, Some(0), "{said}");
    let (_, to) = said.trim().rsplit_once("measure with --to ").unwrap();
    let to = words(to).unwrap();
    assert_eq!(to, [format!("agent:{}", agent.at)]);
    let line = "latency --transport tcp --wait block --count 100 --rounds 1 --out run";
    let ended = driven(&scratch, &to[0], line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(record(&scratch).complete, "{ended:?}");
}

#[test]
fn a_secret_pairs_once_and_a_wrong_one_never_and_closes_nothing() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    let secret = agent.offer();
    let wrong = "0000-".repeat(8);
    for typed in ["", "not a secret"] {
        let (code, said) = pair(&scratch, agent.at, typed);
        assert!(code == Some(2) && said.contains("invalid secret"), "{said}");
    }
    let (code, said) = pair(&scratch, agent.at, &wrong);
    assert!(code == Some(2) && said.contains("rejected the secret"), "{said}");
    agent.await_log("pairing with a wrong secret");
    let (code, said) = pair(&scratch, agent.at, &secret);
    assert_eq!(code, Some(0), "{said}");
    let (code, _) = pair(&scratch, agent.at, &secret);
    assert_eq!(code, Some(2), "used already");
    // Strangers cannot close what is offered.
    let secret = agent.offer();
    for _ in 0..12 {
        assert_eq!(pair(&scratch, agent.at, &wrong).0, Some(2));
    }
    assert_eq!(fs::read_dir(agent.folder.join("controllers")).unwrap().count(), 1);
    let (code, said) = pair(&scratch, agent.at, &secret);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_certificate_that_has_expired_is_refused_on_either_side() {
    let scratch = Scratch::new();
    let expired = Identity::valid(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    expired.save(&controller_folder(&scratch)).unwrap();
    let agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let said = refused(&scratch, &agent.host(), "latency", 2);
    assert!(said.contains("this host's certificate has expired, says the agent"), "{said}");
    agent.await_log("rejected: ");
    fs::remove_file(controller_folder(&scratch).join("identity.pem")).unwrap();
    let folder = scratch.join("expired");
    expired.save(&folder).unwrap();
    let listen = "--listen 127.0.0.1:0";
    let agent = Daemon::who_is(folder, Command::new(PROGRAM), listen);
    agent.pair(&scratch);
    let said = refused(&scratch, &agent.host(), "latency", 2);
    assert!(said.contains("the certificate of the agent at"), "{said}");
}

#[test]
fn another_version_is_refused_in_one_sentence() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let (host, port) = (agent.at.ip().to_string(), agent.at.port());
    for version in [VERSION + 1, 0] {
        let opened = dial::open(&controller_folder(&scratch), &host, port);
        let (mut reader, mut writer) = opened.map_err(|fault| fault.to_string()).unwrap();
        reader.deadline = Some(Instant::now() + LIMIT);
        let hello = ToAgent::Hello { magic: MAGIC, version, secret: [0; 32], asks_program: false };
        frame::write(&mut writer, &hello).unwrap();
        let said: FromAgent = frame::read(&mut reader).unwrap();
        let FromAgent::Refused { wrong_use: true, sentence } = said else { panic!("{said:?}") };
        let speaks = format!("speaks version {version} of the control protocol");
        assert!(sentence.contains(&speaks), "{sentence}");
        writer.close();
    }
    agent.await_log("refused: the controller speaks version");
    agent.await_no_processes();
}

#[test]
fn each_limit_is_a_sentence() {
    let scratch = Scratch::new();
    let limits = "--longest-run 1s --highest-rate 10k --most-memory 1MiB --transports tcp";
    let agent = Daemon::start(&scratch, limits);
    agent.await_log(
        "limits: rounds of at most 1 s, at most 10.000 k msg/s, memory of at most 1 MiB",
    );
    agent.pair(&scratch);
    let paced = "latency --wait block --pause 1ms --rounds 1";
    for (line, code, says) in [
        (format!("{paced} --time 2s"), 2, "at most 1 s (--longest-run)"),
        (format!("{paced} --count 10 --size 1MiB"), 2, "allows at most 1 MiB (--most-memory)"),
        ("latency --count 10".into(), 2, "pace it with --rate or --pause"),
        ("latency --pause 10us --count 10".into(), 2, "the round sends 100.000 k msg/s"),
        (format!("{paced} --transport udp"), 4, "does not allow udp: use one of tcp"),
    ] {
        let ended = driven(&scratch, &agent.host(), &format!("{line} --out limited"));
        assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(all.contains(says), "{line}: {ended:?}");
        let _ = fs::remove_dir_all(scratch.join("limited"));
    }
    let ended = driven(&scratch, &agent.host(), &format!("{paced} --count 10 --out run"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    agent.await_log("refused: the round takes 2 s, and this agent allows at most 1 s");
}

#[test]
fn an_agent_lets_in_from_where_it_is_told_and_uses_the_ports_that_it_is_told() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "--allow 192.0.2.0/24");
    let (code, said) = pair(&scratch, agent.at, &agent.offer());
    assert!(code == Some(2) && said.lines().count() == 1, "{said}");
    agent.await_log("rejected: address not allowed (--allow)");
    // One port, which somebody else has.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let agent = Daemon::start(&scratch, &format!("--ports {port}-{port} --allow 127.0.0.0/8"));
    agent.pair(&scratch);
    let line = "latency --wait block --count 100 --rounds 1 --out run";
    let ended = driven(&scratch, &agent.host(), line);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(all.contains(&format!("all allowed ports {port}-{port} are in use")), "{all}");
    let _ = fs::remove_dir_all(scratch.join("run"));
    drop(taken);
    let ended = driven(&scratch, &agent.host(), line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // It is enough for the connections of all threads of a server, and for all rounds.
    fs::remove_dir_all(scratch.join("run")).unwrap();
    let line = "rpc --transport tcp --wait block --workload w1 --rps 1k --time 100ms --rounds 2 \
                --ports 3 --server-ports 2 --connections 4 --out run";
    let ended = driven(&scratch, &agent.host(), line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let usage = &record(&scratch).runs[0].rounds[0].server;
    assert_eq!(usage.effective_settings["connections"], "12", "{usage:?}");
}

#[test]
fn an_agent_is_on_loopback_unless_told_otherwise_and_once() {
    let scratch = Scratch::new();
    let agent = Daemon::of(&scratch, Command::new(PROGRAM), "");
    assert_eq!(agent.at, "127.0.0.1:7425".parse().unwrap());
    agent.await_log("reachable from this host only (see --listen; rounds need --peers)");
    let again = output(&mut program(&scratch, &["agent"]));
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(4), "{said}");
    assert!(said.contains("127.0.0.1:7425 is in use by another daemon or program"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_process_that_is_killed_is_named_and_the_samples_are_kept() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let controller = controlling(&scratch, &agent.host(), LONG);
    controller.await_messages(300);
    let [process] = agent.processes()[..] else { panic!("{:?}", agent.processes()) };
    kill(process);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = record(&scratch);
    let [fault] = found.faults.as_slice() else { panic!("{:?}", found.faults) };
    assert!(fault.contains("killed by signal 9") || fault.contains("closed by"), "{fault}");
    assert!(found.runs[0].counts.received > 200 && !found.complete);
    agent.await_log("the agent's process was killed by signal 9 (SIGKILL)");
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_and_the_samples_are_kept() {
    let scratch = Scratch::new();
    let mut agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let controller = controlling(&scratch, &agent.host(), LONG);
    controller.await_messages(300);
    let [process] = agent.processes()[..] else { panic!("{:?}", agent.processes()) };
    agent.kill();
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = record(&scratch);
    assert!(found.runs[0].counts.received > 200 && !found.complete, "{:?}", found.faults);
    let lives = || fs::exists(format!("/proc/{process}")).unwrap();
    until("its process ends", SOON, || !lives());
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_on_the_agent_s_host() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let controller = controlling(&scratch, &agent.host(), LONG);
    controller.await_messages(300);
    assert_eq!(agent.processes().len(), 1);
    controller.signal(Signal::KILL);
    let ended = controller.end();
    agent.await_no_processes();
    assert!(ended.survivors.is_empty(), "{ended:?}");
    agent.await_log("latency tcp block 64 B (server): ");
    // It goes on for the next one.
    let line = "latency --wait block --count 100 --rounds 1 --out run";
    assert_eq!(driven(&scratch, &agent.host(), line).code, Some(0));
}

#[test]
fn a_run_on_the_cpus_of_an_agent_s_host_says_so() {
    in_spite_of(ForeignFault::CpuOfOneThread, || {
        // A thread that has entered a network stays in it.
        let attempt = std::thread::spawn(two_runs_on_one_cpu).join();
        attempt.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn two_runs_on_one_cpu() {
    let scratch = Scratch::new();
    // Hosts with networks of their own do not see what other tests run meanwhile.
    let Some(host) = FarHost::beside(&scratch) else { return };
    host.enter();
    let listen = format!("--listen {}:0", host.address);
    let agent = Daemon::of(&scratch, host.program(PROGRAM), &listen);
    agent.pair(&scratch);
    let line = "latency --wait block --count 300 --rounds 1 --cpus 0,0 --out run";
    let shared = || {
        let ended = driven(&scratch, &agent.host(), line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warnings = record(&scratch).warnings.into_iter();
        fs::remove_dir_all(scratch.join("run")).unwrap();
        warnings.filter(|one| one.kind == "shared_cpus").map(|one| one.subject).collect::<Vec<_>>()
    };
    assert_eq!(shared(), []);
    let mut long = host.program(PROGRAM);
    long.args(LONG.replace("run", "long").split_whitespace()).args(["--cpus", "0,0"]);
    let long = Controller::of(&scratch, long);
    long.await_messages(300);
    assert_eq!(shared(), [Some(Subject::Host(agent.at.to_string()))]);
    long.signal(Signal::INT);
    long.end();
}

#[test]
fn many_agents_are_up_and_paired_at_once() {
    const MANY: usize = 64;
    let scratch = Scratch::new();
    let begin = Instant::now();
    let up = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..MANY / 4 {
                    let agent = Daemon::start(&scratch, "");
                    agent.pair(&scratch);
                    up.lock().unwrap().push(agent);
                }
            });
        }
    });
    let up = up.into_inner().unwrap();
    eprintln!("{MANY} agents were started and paired in {:.2} s", begin.elapsed().as_secs_f64());
    let agents = fs::read_dir(controller_folder(&scratch).join("agents")).unwrap();
    assert_eq!(agents.count(), MANY);
    assert!(up.iter().all(|agent| agent.log().contains("pairing: ended")));
}
