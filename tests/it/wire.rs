//! Between two machines: what arrives of verbs, what the wire loses, what becomes of a run when the
//! other machine's link goes, and whose kernel stamps what.
//!
//! It runs in the first of the testbed's two machines, and starts the server's end in the second
//! over ssh: `./test` does so (step `rdma`), with `testbed/peer` there. Elsewhere each test says so
//! and ends. No claim judges a time. Ends that spin starve emulated machines: they block.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wiregauge_test_support::bounded::{LIMIT, Running, output, start, until};

/// A run between emulated machines ends within this.
const RUN_LIMIT: Duration = Duration::from_secs(300);
/// Where the keys of this machine's side are; it is no part of the host's files.
const KEYS: &str = "/run/near";
/// What the peer waits for before it brings its link up again. The folder is no part of the wire.
const UP_AGAIN: &str = "/out/up";
/// A class of its own for RoCE v2, which is what goes to UDP port 4791: ssh keeps its packets.
const LOSING: &str = "modprobe -a sch_netem sch_prio cls_u32 && \
    tc qdisc add dev wire0 root handle 1: prio bands 4 && \
    tc qdisc add dev wire0 parent 1:4 netem loss LOSS && \
    tc filter add dev wire0 parent 1: protocol ip u32 match ip dport 4791 0xffff flowid 1:4";

fn program() -> String {
    let built = env!("CARGO_BIN_EXE_wiregauge").to_string();
    std::env::var("WIREGAUGE").unwrap_or(built)
}

fn shell(line: &str) {
    let ended = output(Command::new("sh").args(["-c", line]));
    assert!(ended.status.success(), "{line}: {ended:?}");
}

/// The ssh that reaches the other machine; `None`, said on stderr, where there is none.
fn ssh() -> Option<&'static str> {
    static SSH: OnceLock<Option<String>> = OnceLock::new();
    let ssh = SSH.get_or_init(|| {
        let Ok(peer) = std::env::var("WIREGAUGE_TESTBED_PEER") else {
            eprintln!("not checked here: there is no second machine");
            return None;
        };
        fs::create_dir_all(KEYS).unwrap();
        shell(&format!(
            "umask 077; ssh-keygen -q -t ed25519 -N '' -f {KEYS}/user && \
             cp {KEYS}/user.pub /out/user.pub"
        ));
        until("the key of the other machine", LIMIT, || Path::new("/out/host.pub").exists());
        let key = fs::read_to_string("/out/host.pub").unwrap();
        fs::write(format!("{KEYS}/known"), format!("{peer} {key}")).unwrap();
        let config = format!(
            "Host far\n  HostName {peer}\n  User root\n  IdentityFile {KEYS}/user\n  \
             IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {KEYS}/known\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
        );
        fs::write(format!("{KEYS}/config"), config).unwrap();
        // A machine that still starts accepts connections and drops them.
        until("sshd answers", LIMIT, || there("true").status.success());
        Some(format!("ssh -F {KEYS}/config"))
    });
    ssh.as_deref()
}

/// A command line in the other machine.
fn there(line: &str) -> Output {
    output(Command::new("ssh").args(["-F", &format!("{KEYS}/config"), "far", line]))
}

/// A run in its own folder below /run.
struct Run {
    words: String,
    out: String,
    running: Running,
    begin: Instant,
}

impl Run {
    fn start(ssh: &str, words: &str) -> Run {
        let out = "/run/near/out".to_string();
        let _ = fs::remove_dir_all(&out);
        let mut command = Command::new(program());
        command.current_dir(KEYS).args(words.split_whitespace());
        // Others say so themselves.
        if !["run ", "explain "].iter().any(|own| words.starts_with(own)) {
            command.args(["--transport", "verbs", "--rounds", "1"]);
        }
        command.args(["--out", &out]);
        // Nodes are named, and both ends of a pair.
        if !words.contains("--hosts ") {
            command.args(["--to", "far"]);
        }
        command.args(["--ssh", ssh, "--remote-binary", &program()]);
        let running = start(&mut command);
        Run { words: words.to_string(), out, running, begin: Instant::now() }
    }

    /// Its record, where it has ended with this exit code.
    fn end(self, code: i32) -> Value {
        let ended = self.running.end(RUN_LIMIT);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, told) = (text(&ended.stdout), text(&ended.stderr));
        assert_eq!(ended.status.code(), Some(code), "{}: {said}{told}", self.words);
        let record = fs::read_to_string(format!("{}/record.json", self.out)).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        let run = &record["runs"][0];
        println!("{}: {} s", self.words, self.begin.elapsed().as_secs());
        println!("  {} {}", run["counts"], run["rounds"][0]["client"]["final_counters"]);
        record
    }
}

fn counts(record: &Value, name: &str) -> u64 {
    record["runs"][0]["counts"][name].as_u64().unwrap()
}

/// The record of a run that must be whole, in which each message is received or lost.
fn measured(ssh: &str, words: &str) -> Value {
    let record = Run::start(ssh, words).end(0);
    assert_eq!(record["complete"], true, "{words}");
    assert_eq!(record["hosts"][0]["name"], "far", "{words}");
    assert!(counts(&record, "received") > 0, "{words}");
    let all = counts(&record, "received") + counts(&record, "lost");
    assert_eq!(all, counts(&record, "sent"), "{words}");
    assert_eq!(counts(&record, "corrupt"), 0, "{words}");
    assert_eq!(counts(&record, "duplicates"), 0, "{words}");
    record
}

/// What the port of this machine counted while a run was on.
fn counter(record: &Value, name: &str) -> u64 {
    let seen = &record["runs"][0]["rounds"][0]["client"]["final_counters"];
    seen[format!("counter.{name}")].as_str().map_or(0, |text| text.parse().unwrap())
}

/// While it lives, this machine loses some of the packets of RDMA that it sends.
struct Loss;

impl Loss {
    fn of(share: &str) -> Loss {
        shell(&LOSING.replace("LOSS", share));
        Loss
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        let _ = Command::new("tc").args(["qdisc", "del", "dev", "wire0", "root"]).status();
    }
}

#[test]
fn messages_arrive_whole_whatever_the_service() {
    let Some(ssh) = ssh() else { return };
    // One study: the other machine is asked once what it is.
    let all = "title = \"t\"\n[all]\ntransport = \"verbs\"\nwait = \"block\"\nrounds = 1\n\
               count = 100\nwarmup = 10\ncheck = true\n";
    let one = |name: &str| format!("[[latency]]\nseries = \"{name}\"\n");
    let services = ["rc", "uc", "ud"].map(|name| one(name) + &format!("service = \"{name}\"\n"));
    let text = format!("{all}{}{}connect = \"cm\"\n", services.concat(), one("cm"));
    fs::write(format!("{KEYS}/wire.toml"), text).unwrap();
    let record = Run::start(ssh, "run wire.toml").end(0);
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for (run, name) in runs.iter().zip(["rc", "uc", "ud", "cm"]) {
        let count = |name: &str| run["counts"][name].as_u64().unwrap();
        println!("  {name}: {}", run["counts"]);
        assert_eq!((count("sent"), count("corrupt"), count("duplicates")), (110, 0, 0), "{name}");
        assert_eq!(count("received") + count("lost"), 110, "{name}");
        // Of those that promise nothing a loaded machine may lose some.
        let loses = ["uc", "ud"].contains(&name);
        assert!(count("received") > 55 && (loses || count("lost") == 0), "{name}");
        assert_eq!(run["figures"][0]["metric"], "half_rtt", "{name}");
    }
}

/// Each machine has its own kernel, which stamps its own end.
#[test]
fn two_kernels_stamp_a_message_and_the_wire_is_what_lies_between() {
    let Some(ssh) = ssh() else { return };
    let words = "explain latency --transport tcp --wait block --count 400 --rounds 1";
    let record = Run::start(ssh, words).end(0);
    let found = &record["explanation"];
    println!("  {}", found["apart"]);
    assert!(found["apart"]["refused"].is_null(), "{}", found["apart"]);
    assert!(found["apart"]["bound_ns"].as_f64().unwrap() > 0.0);
    let count = |name: &str| found[name].as_u64().unwrap();
    // Clocks of emulated machines are known to some 100 us, and a message may be faster.
    assert!(count("messages") > 200, "{}", count("messages"));
    let stages = found["stages"].as_array().unwrap();
    let of = |name: &str| {
        let own = stages.iter().filter(|stage| stage["name"] == name);
        own.map(|stage| stage["leg"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((of("wire"), of("SoftIRQ and NAPI")), (vec![0, 1], vec![0, 1]));
}

#[test]
fn writes_are_counted_at_the_end_that_makes_them() {
    let Some(ssh) = ssh() else { return };
    let words = "bandwidth --operation write --wait block --size 4096 --time 100ms";
    let record = measured(ssh, words);
    assert_eq!(counts(&record, "lost"), 0);
    assert!(record["runs"][0]["rates"][0]["rate"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn lost_messages_are_infinitely_late() {
    let Some(ssh) = ssh() else { return };
    let _loss = Loss::of("30%");
    // Of 120 messages 36 are lost, with a standard deviation of 5.
    for service in ["uc", "ud"] {
        let words =
            format!("latency --service {service} --wait block --count 120 --warmup 0 --check");
        let record = measured(ssh, &words);
        let (sent, lost) = (counts(&record, "sent"), counts(&record, "lost"));
        assert!(sent == 120 && lost > 12 && lost < 60, "{words}: {lost}");
        let summary = &record["runs"][0]["figures"][0]["summary"];
        assert_eq!((summary["count"].as_u64(), summary["lost"].as_u64()), (Some(120), Some(lost)));
        assert_eq!(summary["max"], "inf", "{words}");
        assert!(summary["max_finite"].as_f64().unwrap() > 0.0, "{words}");
        let quantile = |p: f64| {
            let all = summary["quantiles"].as_array().unwrap();
            all.iter().find(|quantile| quantile["p"] == p).unwrap()["value"].clone()
        };
        assert!(quantile(0.5).as_f64().unwrap() > 0.0, "{words}");
        assert_eq!(quantile(0.9), "inf", "{words}");
    }
}

#[test]
fn a_message_that_has_lost_a_packet_is_lost_and_not_corrupt() {
    let Some(ssh) = ssh() else { return };
    let _loss = Loss::of("10%");
    // Four packets of 1024 B each. More is lost than torn messages explain.
    let words = "latency --service uc --size 4096 --wait block --count 100 --warmup 0 --check";
    let lost = counts(&measured(ssh, words), "lost");
    assert!(lost > 5 && lost < 90, "{lost}");
}

#[test]
fn a_stream_that_loses_messages_ends_and_counts_them() {
    let Some(ssh) = ssh() else { return };
    let _loss = Loss::of("10%");
    let words = "bandwidth --service ud --size 512 --wait block --time 200ms";
    let record = measured(ssh, words);
    assert!(counts(&record, "lost") > 0);
}

/// Writes are found by looking at memory, in the order of the messages.
#[test]
fn writes_are_found_behind_several_that_were_lost() {
    let Some(ssh) = ssh() else { return };
    let _loss = Loss::of("25%");
    // Some five times two in a row are lost.
    let words = "latency --service uc --operation write --count 80 --warmup 0 --check";
    let lost = counts(&measured(ssh, words), "lost");
    assert!(lost > 2 && lost < 40, "{lost}");
}

#[test]
fn a_reliable_connection_sends_again_what_is_lost() {
    let Some(ssh) = ssh() else { return };
    let _loss = Loss::of("10%");
    let words = "latency --service rc --wait block --count 100 --warmup 0 --check";
    let record = measured(ssh, words);
    assert_eq!((counts(&record, "received"), counts(&record, "lost")), (100, 0));
    assert!(counter(&record, "completer_retry_err") > 0);
}

#[test]
fn nodes_on_two_machines_exchange_and_sleep_meanwhile() {
    let Some(ssh) = ssh() else { return };
    let nodes = "exchange --hosts here,far --chaotic --queue 4 --receive-queue 16 \
                 --wait block --time 500ms --check";
    let connections = |record: &Value| {
        let all = record["runs"][0]["details"]["connections"].as_array().unwrap().clone();
        all.iter().filter(|one| one["rate"]["value"].as_f64().unwrap() > 0.0).count()
    };
    for operation in ["send", "write_imm"] {
        let words = format!("{nodes} --size 4096 --operation {operation}");
        let record = measured(ssh, &words);
        assert_eq!((counts(&record, "lost"), connections(&record)), (0, 2), "{words}");
    }
    // What one way loses is missing at the other node alone.
    let _loss = Loss::of("20%");
    let words = format!("{nodes} --size 512 --service ud");
    let record = measured(ssh, &words);
    assert!(counts(&record, "lost") > 0 && counts(&record, "gaps") > 0, "{words}");
}

/// Packets that the port has sent.
fn packets_sent() -> u64 {
    let file = "/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts";
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
fn a_link_that_goes_at_the_other_machine_ends_the_run_and_what_came_is_kept() {
    let Some(ssh) = ssh() else { return };
    let _ = fs::remove_file(UP_AGAIN);
    let before = packets_sent();
    let mut run = Run::start(ssh, "latency --wait block --time 240s --timeout 20s --warmup 0");
    run.running.until("messages pass", RUN_LIMIT, || packets_sent() > before + 100);
    let line = format!(
        "setsid sh -c 'ip link set wire0 down; until [ -e {UP_AGAIN} ]; do sleep 0.2; done; \
         ip link set wire0 up' >/dev/null 2>&1 </dev/null &"
    );
    let mut cut = Command::new("ssh");
    cut.args(["-F", &format!("{KEYS}/config"), "far", &line]).stdin(Stdio::null());
    let mut cut = cut.spawn().unwrap();
    let record = run.end(3);
    fs::write(UP_AGAIN, "").unwrap();
    let fault = record["faults"][0].as_str().unwrap();
    println!("  {fault}");
    assert_eq!(record["complete"], false);
    assert!(counts(&record, "received") > 20 && counts(&record, "lost") <= 1);
    // Soft-RoCE takes seven retries for endless ones: the stall ends what an adapter would.
    let seen = &record["runs"][0]["rounds"][0]["client"]["final_counters"];
    let named = seen["error.send.retry_exc"].is_string()
        && fault.contains("lost its connection: Connection timed out");
    let stalled = fault.contains("stalled: the client handled no message for 20 s");
    assert!(named || stalled, "{fault} {seen}");
    assert!(counter(&record, "completer_retry_err") > 0, "{seen}");
    // Who was started there does not outlive the run for long.
    until("the agent ends", LIMIT, || there("! pgrep wiregauge").status.success());
    let _ = cut.kill();
    let _ = cut.wait();
}
