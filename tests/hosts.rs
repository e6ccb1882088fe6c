//! Measurements between two hosts: the server's end is started over a real ssh, in a network
//! namespace that is joined to this one by a veth pair.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod driver;
#[path = "hosts/far.rs"]
#[allow(dead_code)]
mod far;

use driver::{Driver, Ended, Scratch, wiregauge};
use far::FarHost;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wiregauge::launch::frame;
use wiregauge::launch::protocol::{FromAgent, VERSION};
use wiregauge::record::SampleReader;
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wiregauge");

/// A command to the other host, which finds this program there.
fn command<'a>(host: &'a FarHost, line: &'a str) -> Vec<&'a str> {
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--ssh", &host.ssh]);
    if !line.contains("--push") && !line.contains("--remote-binary") {
        words.extend(["--remote-binary", PROGRAM]);
    }
    words
}

fn measured(scratch: &Scratch, host: &FarHost, line: &str) -> (Record, Ended) {
    let line = format!("{line} --to far --out run");
    let ended = wiregauge(scratch, &command(host, &line));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.complete, "{ended:?}");
    host.await_no_agents();
    (record, ended)
}

fn refused(scratch: &Scratch, host: &FarHost, line: &str, code: i32) -> String {
    let ended = wiregauge(scratch, &command(host, line));
    assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{line}: {ended:?}");
    assert!(!scratch.join("wiregauge-runs").exists(), "{line}: nothing has run");
    ended.stderr
}

#[test]
fn latency_is_measured_between_two_network_stacks() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "latency --transport tcp,udp --wait block --count 500 --rounds 2";
    let (record, ended) = measured(&scratch, &host, line);
    assert_eq!(record.runs.len(), 2);
    for run in &record.runs {
        assert_eq!((run.counts.sent, run.counts.received), (1100, 1100), "{}", run.label);
        let granted = |role: &str| {
            let round = &run.rounds[0];
            let usage = if role == "client" { &round.client } else { &round.server };
            (usage.granted["address"].clone(), usage.granted["interface"].clone())
        };
        assert_eq!(granted("client"), (host.own.clone(), host.own_interface.clone()));
        assert_eq!(granted("server"), (host.address.clone(), host.interface.clone()));
        assert!(run.doubts.iter().all(|doubt| doubt.kind != "not_on_the_wire"));
    }
    let there = &record.hosts[0];
    assert_eq!((there.name.as_str(), there.address.as_deref()), ("far", Some(&*host.address)));
    // Its environment is of its own network.
    let names = |interfaces: &[wiregauge::host::Interface]| {
        interfaces.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
    };
    assert!(names(&there.environment.interfaces).contains(&host.interface));
    assert!(!names(&record.environment.interfaces).contains(&host.interface));
    assert!(!there.environment.host.is_empty() && there.environment.kernel.is_some());
    assert!(there.clock.frequency_hz > 1e6 && !there.noise.is_empty());
    assert!(record.doubts.iter().all(|doubt| doubt.kind != "not_on_the_wire"));
    assert!(ended.stdout.contains("hosts: client on "), "{ended:?}");
}

#[test]
fn bandwidth_brings_the_far_side_s_samples_home() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    for (way, count) in [("uni", 1), ("bi", 2)] {
        let line = format!(
            "bandwidth --transport tcp --size 64KiB --time 100ms --rounds 2 --direction {way}"
        );
        let (record, _) = measured(&scratch, &host, &line);
        let run = &record.runs[0];
        assert!(run.rates[0].rate.value > 1e6, "{:?}", run.rates);
        assert!(run.rounds.iter().all(|round| round.samples > 10 * count), "{:?}", run.rounds);
        fs::remove_dir_all(scratch.join("run")).unwrap();
    }
}

#[test]
fn an_interface_is_named_on_each_side() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let names = format!("{},{}", host.own_interface, host.interface);
    let line = format!("latency --transport udp --count 100 --rounds 1 --interface {names}");
    let (record, _) = measured(&scratch, &host, &line);
    assert_eq!(record.runs[0].rounds[0].server.granted["interface"], host.interface);
    fs::remove_dir_all(scratch.join("run")).unwrap();
    let line = format!("latency --to far --interface {0},{0}", host.own_interface);
    let said = refused(&scratch, &host, &line, 2);
    let wrong = format!("far: --interface: there is no network interface '{}'", host.own_interface);
    assert!(said.contains(&wrong) && said.contains(&host.interface), "{said}");
}

#[test]
fn a_host_that_cannot_be_reached_is_told_in_one_sentence() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let said = refused(&scratch, &host, "latency --to closed", 4);
    assert!(said.starts_with("wiregauge: ssh to closed failed (ssh: connect to host"), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    let said = refused(&scratch, &host, "latency --to far --remote-binary /no/wiregauge", 4);
    assert!(said.contains("there is no wiregauge on far where its shell looks"), "{said}");
    assert!(said.contains("--remote-binary") && said.contains("--push"), "{said}");
    let said = refused(&scratch, &host, "latency --to far --remote-binary /dev/null", 4);
    assert!(said.contains("wiregauge on far cannot be executed"), "{said}");
    let said = refused(&scratch, &host, "latency --to far --cpus 0,9999", 2);
    assert!(said.contains("far: --cpus: CPU 9999 is not online"), "{said}");
}

/// A program of one line of shell.
fn script(scratch: &Scratch, name: &str, line: &str) -> String {
    let path = scratch.join(name);
    fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A program that answers whatever it hears with these bytes.
fn answering(scratch: &Scratch, name: &str, bytes: &[u8]) -> String {
    let answer = scratch.join(&format!("{name}.bytes"));
    fs::write(&answer, bytes).unwrap();
    script(scratch, name, &format!("head -c 20 >/dev/null; cat {}", answer.display()))
}

#[test]
fn another_version_there_is_refused() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let framed = |message: &FromAgent| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, message).unwrap();
        bytes
    };
    let sentence = format!("the driver speaks version {VERSION} of the control protocol");
    let older = framed(&FromAgent::Refused { wrong_use: true, sentence: sentence.clone() });
    let newer = framed(&FromAgent::Welcome { pid: 7, tool: "99.0.0".into() });
    // Of version 2: a length of 2, the first variant, and a number.
    let oldest = [2, 0, 0, 0, 0, 7].to_vec();
    for (name, bytes, code, says) in [
        ("older", older, 2, sentence.as_str()),
        ("newer", newer, 2, "wiregauge on far is version 99.0.0, and this one is version"),
        ("oldest", oldest, 2, "wiregauge on far speaks another protocol"),
        ("chatty", b"Welcome to far!\n".to_vec(), 4, "far prints text where an agent should"),
    ] {
        let program = answering(&scratch, name, &bytes);
        let line = format!("latency --to far --remote-binary {program}");
        let said = refused(&scratch, &host, &line, code);
        assert!(said.contains(says), "{name}: {said}");
    }
}

#[test]
fn what_is_copied_there_is_removed() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let folders = || {
        let all = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        all.filter(|entry| entry.path().join("wiregauge").exists()).count()
    };
    let before = folders();
    measured(&scratch, &host, "latency --transport tcp --count 100 --rounds 1 --push");
    assert_eq!(folders(), before);
}

#[test]
fn a_dead_connection_leaves_what_was_measured() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    for wait in ["busy", "block"] {
        let line = format!(
            "latency --transport tcp --wait {wait} --count 300000 --warmup 50 --pause 100us \
             --rounds 1 --to far --out run"
        );
        let driver = Driver::start(&scratch, &command(&host, &line));
        driver.await_messages(300);
        host.kill_sessions();
        let ended = driver.end();
        let fault = kept(&scratch, &ended);
        assert!(fault.contains("the server's process on far is gone: ssh ended"), "{fault}");
        host.await_no_agents();
        fs::remove_dir_all(scratch.join("run")).unwrap();
    }
}

#[test]
fn an_interrupt_ends_both_sides() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "latency --transport udp --wait block --count 300000 --warmup 50 --pause 100us \
                --rounds 1 --to far --out run";
    let driver = Driver::start(&scratch, &command(&host, line));
    driver.await_messages(300);
    driver.signal_group(Signal::INT);
    let ended = driver.end();
    assert_eq!(kept(&scratch, &ended), "latency udp block 64 B: interrupted by the user");
    host.await_no_agents();
}

/// Asserts that a run was kept as an incomplete one; its fault.
fn kept(scratch: &Scratch, ended: &Ended) -> String {
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.took < Duration::from_secs(15), "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(!record.complete && record.runs[0].counts.received > 200, "{ended:?}");
    let [fault] = record.faults.as_slice() else { panic!("{:?}", record.faults) };
    fault.clone()
}

#[test]
fn one_way_is_measured_by_two_clocks_that_were_compared() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "oneway --transport tcp,udp --wait block --count 500 --rounds 2";
    let (record, ended) = measured(&scratch, &host, line);
    assert_eq!(record.runs.len(), 2);
    for run in &record.runs {
        assert_eq!((run.counts.sent, run.counts.received), (1100, 1100), "{}", run.label);
        for round in &run.rounds {
            let clock = round.clock.as_ref().expect("an offset");
            assert!(clock.exchanges >= 200 && clock.steps == 0, "{clock:?}");
            assert!(clock.bound_ns > 0.0 && clock.shortest_round_trip_ns > 0.0, "{clock:?}");
            // One clock under two names: only the calibrations differ, each by some ppm at most.
            assert!(clock.drift_ppm.abs() <= clock.drift_bound_ppm + 5.0, "{clock:?}");
        }
        let doubted = run.doubts.iter().any(|doubt| doubt.kind == "clocks_unknown");
        match run.figures.first() {
            Some(figure) => assert!(figure.clock_bound_ns.is_some() && !doubted),
            None => assert!(doubted, "neither a figure nor a reason"),
        }
    }
    assert!(ended.stdout.contains("clocks: oneway tcp block 64 B: no one-way time"), "{ended:?}");
    // No message arrives before it was sent, within what the clocks are known by.
    let file = scratch.join("run/samples.parquet");
    let mut samples = SampleReader::open(&file).unwrap();
    while let Some(round) = samples.next_round() {
        let round = round.unwrap();
        let run = &record.runs[round.run as usize];
        let bound = run.rounds[round.round as usize].clock.as_ref().unwrap().bound_ns;
        for sample in &round.samples {
            let one_way = sample.receive_ns - sample.submit_ns;
            assert!(one_way >= -bound - 1.0 && one_way < 1e9, "{one_way} ns, bound {bound} ns");
        }
    }
}

#[test]
fn a_schedule_is_kept_between_two_hosts() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "oneway --transport udp --wait block --rate 2k --count 500 --warmup 0 --rounds 1";
    let (record, ended) = measured(&scratch, &host, line);
    let run = &record.runs[0];
    assert_eq!(run.counts.sent, 500, "{ended:?}");
    assert_eq!(run.counts.received + run.counts.lost, 500, "{ended:?}");
    let told: Vec<&str> = run.figures.iter().map(|figure| figure.metric.name()).collect();
    let doubted = run.doubts.iter().any(|doubt| doubt.kind == "clocks_unknown");
    assert!(told == ["one_way", "response", "service"] || doubted, "{told:?}: {ended:?}");
    assert!(run.figures.iter().all(|figure| figure.clock_bound_ns.is_some()), "{ended:?}");
}

#[test]
fn the_clocks_of_two_hosts_are_compared_over_a_time() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let ended = wiregauge(&scratch, &command(&host, "clocks --to far --time 2s --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let of = |row: usize, name: &str| rows[row][name].as_f64().unwrap();
    assert_eq!(rows.len(), 10);
    assert!(of(9, "exchanges") > of(0, "exchanges") && of(9, "after_s") > 1.5, "{rows:?}");
    // One clock under two names: whatever was known earlier must agree with what is known last.
    for row in 0..10 {
        let apart = (of(row, "offset_ns") - of(9, "offset_ns")).abs();
        let drifted = 5e3 * of(9, "after_s");
        assert!(apart <= of(row, "bound_ns") + of(9, "bound_ns") + drifted, "{rows:?}");
    }
    assert!(of(9, "drift_bound_ppm") < of(0, "drift_bound_ppm"), "{rows:?}");
    host.await_no_agents();
    let table = wiregauge(&scratch, &command(&host, "clocks --to far --time 1s"));
    assert!(table.stdout.contains("offset us") && table.stdout.lines().count() == 12, "{table:?}");
}

#[test]
fn a_study_runs_between_two_hosts() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let entry = |pattern: &str| {
        format!("title = \"t\"\n[[{pattern}]]\nseries = \"s\"\ntransport = \"tcp\"\ncount = 100\n")
    };
    fs::write(scratch.join("there.toml"), entry("latency")).unwrap();
    let (record, _) = measured(&scratch, &host, "run there.toml --quick");
    assert_eq!(record.hosts[0].name, "far");
    assert_eq!(record.plan.hosts[0].host, "far");
}

#[test]
fn a_stranger_on_the_wire_is_dropped_and_counted() {
    let scratch = Scratch::new();
    let Some(mut host) = FarHost::beside(&scratch) else { return };
    // The client learns of the port some time after it is open.
    let bytes = scratch.join("bytes");
    let slow = format!(
        "{} \"$@\" | while dd bs=1M count=1 of={bytes} status=none; [ -s {bytes} ]; do sleep 0.3; \
         cat {bytes}; done",
        host.ssh,
        bytes = bytes.display()
    );
    host.ssh = script(&scratch, "slow-ssh", &slow);
    // Knocks at whatever listens on the far side, as often as it can.
    let over = AtomicBool::new(false);
    let knocked = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Also where the run fails before it says that it is over.
            let deadline = Instant::now() + Duration::from_secs(40);
            while !over.load(Ordering::Relaxed) && Instant::now() < deadline {
                for port in host.listening() {
                    let _ = std::net::TcpStream::connect((host.address.as_str(), port));
                }
            }
        });
        let line = "latency --transport tcp --wait block --count 100 --rounds 2";
        let (record, _) = measured(&scratch, &host, line);
        over.store(true, Ordering::Relaxed);
        record.runs[0].counts
    });
    assert_eq!((knocked.sent, knocked.received), (220, 220));
    assert!(knocked.strangers > 0, "{knocked:?}");
}

#[test]
fn an_interface_with_nothing_but_a_link_local_address_is_measured() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    host.take_ipv4_away_here();
    let line = format!(
        "latency --transport tcp,udp --wait block --count 100 --rounds 1 --out run --interface {}",
        host.own_interface
    );
    let ended = wiregauge(&scratch, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    for run in &record.runs {
        let granted = &run.rounds[0].server.granted;
        assert!(granted["address"].starts_with("fe80::"), "{granted:?}");
        assert_eq!(granted["interface"], host.own_interface);
        // Two ends on one host: no wire.
        assert!(run.doubts.iter().any(|doubt| doubt.kind == "not_on_the_wire"), "{}", run.label);
    }
}
