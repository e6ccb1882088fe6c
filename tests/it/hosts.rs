//! Measurements between two hosts of `testbed net`: the server's end is started over a real ssh, in
//! another network namespace.

use crate::support::controller::{Controller, Ended, Scratch, samples, wiregauge};
use crate::support::far::FarHost;
use crate::support::program::PROGRAM;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wiregauge::control::frame;
use wiregauge::control::protocol::{FromAgent, VERSION};
use wiregauge::record::SampleReader;
use wiregauge::record::read_record;
use wiregauge::record::schema::{Figure, Metric, Record};
use wiregauge_test_support::bounded::{LIMIT, SOON};

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
    let line = "latency --transport tcp,udp --wait block --count 500 --rounds 2 --verbose";
    let (record, ended) = measured(&scratch, &host, line);
    assert_eq!(record.runs.len(), 2);
    for run in &record.runs {
        assert_eq!((run.counts.sent, run.counts.received), (1100, 1100), "{}", run.label);
        let granted = |role: &str| {
            let round = &run.rounds[0];
            let usage = if role == "client" { &round.client } else { &round.server };
            (
                usage.effective_settings["address"].clone(),
                usage.effective_settings["interface"].clone(),
            )
        };
        assert_eq!(granted("client"), (host.own.clone(), host.own_interface.clone()));
        assert_eq!(granted("server"), (host.address.clone(), host.interface.clone()));
        assert!(run.warnings.iter().all(|warning| warning.kind != "not_on_the_wire"));
    }
    let there = &record.hosts[0];
    assert_eq!((there.name.as_str(), there.address.as_deref()), ("far", Some(&*host.address)));
    // Its environment is of its own network.
    let names = |interfaces: &[wiregauge::host::Interface]| {
        interfaces.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
    };
    assert!(names(&there.environment.interfaces).contains(&host.interface));
    assert!(!names(&record.environment.interfaces).contains(&host.interface));
    assert_eq!(there.environment.host, "wg-h2");
    assert!(there.environment.kernel.is_some());
    assert!(there.clock.frequency_hz > 1e6 && !there.noise.is_empty());
    assert!(record.warnings.iter().all(|warning| warning.kind != "not_on_the_wire"));
    assert!(ended.stdout.contains("hosts: client on "), "{ended:?}");
}

#[test]
fn bandwidth_brings_the_far_side_s_samples_home() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    for (way, count) in [("uni", 1), ("bi", 2)] {
        let line = format!(
            "bandwidth --transport tcp --size 64KiB --time 100ms --warmup 10 --rounds 2 \
             --direction {way}"
        );
        let (record, _) = measured(&scratch, &host, &line);
        let run = &record.runs[0];
        assert!(run.rates[0].rate.value > 1e6, "{:?}", run.rates);
        assert!(run.rounds.iter().all(|round| round.samples > 10 * count), "{:?}", run.rounds);
        fs::remove_dir_all(scratch.join("run")).unwrap();
    }
}

#[test]
fn requests_and_samples_of_a_schedule_reach_the_other_host() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    for line in [
        "rpc --transport tcp --workload w2 --rps 2k --ports 2 --server-ports 2 --time 200ms",
        "load --transport tcp --rate 2k --time 200ms",
        "stream --transport tcp,udp --rate 1k --values 4 --count 200",
    ] {
        let line = format!("{line} --wait block --rounds 1");
        let (record, _) = measured(&scratch, &host, &line);
        for run in &record.runs {
            let counts = run.counts;
            // A busy machine misses steps; they are counted and not sent.
            let due = counts.sent + counts.missed_steps;
            assert!(
                due > 100 && counts.sent > 0 && counts.received == counts.sent,
                "{}: {counts:?}",
                run.label
            );
            assert_eq!(
                run.rounds[0].server.effective_settings["address"], host.address,
                "{}",
                run.label
            );
        }
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
    assert_eq!(record.runs[0].rounds[0].server.effective_settings["interface"], host.interface);
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
    assert!(said.contains("wiregauge not found on far"), "{said}");
    assert!(said.contains("--remote-binary") && said.contains("--push"), "{said}");
    let said = refused(&scratch, &host, "latency --to far --remote-binary /dev/null", 4);
    assert!(said.contains("cannot execute wiregauge on far"), "{said}");
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
    let sentence = format!("the controller speaks version {VERSION} of the control protocol");
    let older = framed(&FromAgent::Refused { wrong_use: true, sentence: sentence.clone() });
    let newer = framed(&FromAgent::Welcome { pid: 7, tool: "99.0.0".into(), program: None });
    // Of version 2: a length of 2, the first variant, and a number.
    let oldest = [2, 0, 0, 0, 0, 7].to_vec();
    for (name, bytes, code, says) in [
        ("older", older, 2, sentence.as_str()),
        ("newer", newer, 2, "wiregauge on far is version 99.0.0, and this one is version"),
        ("oldest", oldest, 2, "wiregauge on far speaks another protocol"),
        ("chatty", b"Welcome to far!\n".to_vec(), 4, "the shell start-up files on far print text"),
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
            "latency --transport tcp --wait {wait} --count 300000 --warmup 50 --pause 200us \
             --rounds 1 --to far --out run"
        );
        let controller = Controller::start(&scratch, &command(&host, &line));
        controller.await_messages(300);
        host.kill_sessions();
        let ended = controller.end();
        let fault = kept(&scratch, &ended);
        assert!(fault.contains("lost the server's process on far: ssh exited"), "{fault}");
        host.await_no_agents();
        fs::remove_dir_all(scratch.join("run")).unwrap();
    }
}

/// The exchanges before it bound the clock still: two clocks are seconds apart.
#[test]
fn one_way_times_are_right_where_the_comparison_of_clocks_ended_before_the_round() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "oneway --transport tcp --wait block --time 2s --rounds 1 --to far --out run";
    let controller = Controller::start(&scratch, &command(&host, line));
    controller.await_messages(300);
    host.kill_first_agent();
    let ended = controller.end();
    assert!(kept(&scratch, &ended).contains("cannot compare the clocks"), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let bound = record.runs[0].rounds[0].clock.as_ref().expect("a known clock").bound_ns;
    let times = samples(&scratch, 0).into_iter().map(|one| one.receive_ns - one.submit_ns);
    let shortest = times.filter(|ns| ns.is_finite()).fold(f64::INFINITY, f64::min);
    // No message takes less than no time, and one of so many takes less than 50 ms.
    assert!(shortest > -bound && shortest < 50e6, "{shortest} ns ± {bound}: {ended:?}");
    host.await_no_agents();
}

#[test]
fn an_interrupt_ends_both_sides() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = "latency --transport udp --wait block --count 300000 --warmup 50 --pause 200us \
                --rounds 1 --to far --out run";
    let controller = Controller::start(&scratch, &command(&host, line));
    controller.await_messages(300);
    controller.signal_group(Signal::INT);
    let ended = controller.end();
    assert_eq!(kept(&scratch, &ended), "latency udp block 64 B: interrupted by the user");
    host.await_no_agents();
}

/// Asserts that a run was kept as an incomplete one; its fault.
fn kept(scratch: &Scratch, ended: &Ended) -> String {
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.took < SOON, "{ended:?}");
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
            // The messages themselves bound the offset from both sides, and agree.
            let traffic = clock.traffic.expect("traffic both ways");
            assert!(traffic.least_ns.unwrap() < traffic.most_ns.unwrap(), "{clock:?}");
            assert_eq!((clock.by.as_str(), traffic.beyond_ns), ("exchanges", 0.0), "{clock:?}");
            // One clock under two names: only the calibrations differ, each by some ppm at most.
            assert!(clock.drift_ppm.abs() <= clock.drift_bound_ppm + 5.0, "{clock:?}");
        }
        let warned = run.warnings.iter().any(|warning| warning.kind == "below_clock_bound");
        match run.figures.first() {
            Some(figure) => assert!(figure.clock_bound_ns.is_some() && !warned),
            None => assert!(warned, "neither a figure nor a reason"),
        }
    }
    assert!(ended.stdout.contains("clocks: oneway tcp block 64 B: no one-way time"), "{ended:?}");
    // No message arrives before it was sent, within what the clocks are known by.
    let file = scratch.join("run/samples.parquet");
    let samples = SampleReader::open(&file).unwrap();
    for round in samples {
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
    let warned = run.warnings.iter().any(|warning| warning.kind == "below_clock_bound");
    assert!(
        told == ["one_way", "response", "service", "lateness"] || warned,
        "{told:?}: {ended:?}"
    );
    // How late a message was sent is known by the sender's clock alone.
    let is_between = |metric: Metric| metric != Metric::Lateness;
    let bounded = |figure: &Figure| figure.clock_bound_ns.is_some() == is_between(figure.metric);
    assert!(run.figures.iter().all(bounded), "{ended:?}");
}

#[test]
fn the_clocks_of_two_hosts_are_compared_over_a_time() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let ended = wiregauge(&scratch, &command(&host, "clocks --to far --time 2s --out run"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    host.await_no_agents();
    assert!(ended.stdout.contains("offset us") && ended.stdout.lines().count() >= 12, "{ended:?}");
    assert!(ended.stdout.contains("clock: on far: CLOCK_REALTIME is "), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let [history] = record.clocks.as_slice() else { panic!("{:?}", record.clocks) };
    let other = &record.hosts[history.host as usize];
    assert_eq!((other.name.as_str(), other.environment.host.as_str()), ("far", "wg-h2"));
    // Nothing was known by the first tenth where the first exchange took longer.
    let (first, last) = (&history.known[0], history.known.last().unwrap());
    assert!((9..=10).contains(&history.known.len()), "{history:?}");
    assert!(last.clock.exchanges > first.clock.exchanges && last.after_s > 1.5, "{history:?}");
    // One clock under two names: whatever was known earlier must agree with what is known last.
    for known in &history.known {
        let apart = (known.clock.offset_ns - last.clock.offset_ns).abs();
        let drifted = 5e3 * last.after_s;
        assert!(apart <= known.clock.bound_ns + last.clock.bound_ns + drifted, "{history:?}");
    }
    assert!(last.clock.drift_bound_ppm < first.clock.drift_bound_ppm, "{history:?}");
    assert!(history.points.len() == 201 && history.later.after_s > 100.0, "{history:?}");
    // Each exchange takes one datagram there and two back.
    let cost = other.clock_cost.unwrap();
    assert!(cost.datagrams >= 3 * cost.exchanges && cost.bytes == 49 * cost.datagrams, "{cost:?}");
    assert!(cost.client_cpu_ns > 0.0 && cost.server_cpu_ns.unwrap() > 0.0, "{cost:?}");
    // The page and the tables are made again from the record.
    let retold = wiregauge(&scratch, &["report", "run"]);
    assert_eq!(retold.code, Some(0), "{retold:?}");
    assert!(ended.stdout.starts_with(&retold.stdout.lines().nth(1).unwrap()[..20]), "{retold:?}");
    let page = fs::read_to_string(scratch.join("run/report.html")).unwrap();
    assert!(page.contains("<h2 id=\"h-clocks\">Clocks</h2>"));
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
fn a_foreign_peer_on_the_wire_is_dropped_and_counted() {
    let scratch = Scratch::new();
    let Some(mut host) = FarHost::beside(&scratch) else { return };
    // What the far side says is held back until the peer has knocked, since the client learns so
    // of the port; for no longer than 3 s, since all but one message say something else. Each
    // session waits for a knock of its own: the first to listen is the pre-flight.
    let (bytes, has_knocked) = (scratch.join("bytes"), scratch.join("knocked"));
    let slow = format!(
        "rm -f {knocked}; {} \"$@\" | while dd bs=1M count=1 of={bytes} status=none; \
         [ -s {bytes} ]; do \
         for i in $(seq 30); do [ -e {knocked} ] && break; sleep 0.1; done; cat {bytes}; done",
        host.ssh,
        bytes = bytes.display(),
        knocked = has_knocked.display()
    );
    host.ssh = script(&scratch, "slow-ssh", &slow);
    // Knocks at whatever listens on the far side, as often as it can.
    let over = AtomicBool::new(false);
    let knocked = std::thread::scope(|scope| {
        scope.spawn(|| {
            host.enter();
            // Also where the run fails before it says that it is over.
            let deadline = Instant::now() + LIMIT;
            while !over.load(Ordering::Relaxed) && Instant::now() < deadline {
                for port in host.listening() {
                    let peer = std::net::TcpStream::connect((host.address.as_str(), port));
                    let _ = peer.map(|_| fs::write(&has_knocked, ""));
                }
            }
        });
        let line = "latency --transport tcp --wait block --count 100 --rounds 2";
        let (record, _) = measured(&scratch, &host, line);
        over.store(true, Ordering::Relaxed);
        record.runs[0].counts
    });
    assert_eq!((knocked.sent, knocked.received), (220, 220));
    assert!(knocked.rejected_peers > 0, "{knocked:?}");
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
        let granted = &run.rounds[0].server.effective_settings;
        assert!(granted["address"].starts_with("fe80::"), "{granted:?}");
        assert_eq!(granted["interface"], host.own_interface);
        // Two ends on one host: no wire.
        assert!(
            run.warnings.iter().any(|warning| warning.kind == "not_on_the_wire"),
            "{}",
            run.label
        );
    }
}

#[test]
fn a_clock_that_nobody_keeps_right_is_not_taken_for_one_time() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    if wiregauge::host::Discipline::read().synchronized == Some(true) {
        // This machine's is kept right: then it is taken, and what it states stands in the record.
        let line = "oneway --clock ptp --transport udp --wait block --count 100 --rounds 1";
        let (record, _) = measured(&scratch, &host, line);
        let clock = record.runs[0].rounds[0].clock.clone().unwrap();
        assert_eq!((clock.by.as_str(), clock.exchanged.unwrap().beyond_ns), ("ptp", 0.0));
        return;
    }
    for command in ["oneway --clock ptp", "clocks --clock ptp --time 1s"] {
        let said = refused(&scratch, &host, &format!("{command} --to far"), 2);
        assert!(
            said.contains("far: --clock ptp needs a clock that PTP or NTP keeps right"),
            "{said}"
        );
    }
    let alone = wiregauge(&scratch, &["latency", "--clock", "ptp", "--count", "100"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.stderr.contains("CLOCK_REALTIME is not synchronized here"), "{alone:?}");
}

/// Returns the report of `hosts` on the far host, as JSON, and the exit code.
fn path_to(scratch: &Scratch, host: &FarHost) -> (serde_json::Value, Option<i32>) {
    let ended = wiregauge(scratch, &command(host, "hosts --to far --json"));
    let all: serde_json::Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    (all[0].clone(), ended.code)
}

#[test]
fn a_path_that_is_blocked_is_told_before_a_run_by_address_port_and_direction() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let (open, code) = path_to(&scratch, &host);
    assert_eq!((code, &open["fault"]), (Some(0), &serde_json::Value::Null), "{open}");
    let path = &open["path"];
    assert_eq!((&path["to_server_bytes"], &path["to_client_bytes"]), (&1500.into(), &1500.into()));
    assert_eq!(path["server_interface"].as_str(), Some(host.interface.as_str()));
    for (protocol, wrong) in [
        ("tcp", format!("this host ({}) gets no answer from TCP port ", host.own)),
        ("udp", format!("no datagram of far ({}) reaches UDP port ", host.address)),
    ] {
        host.blackhole(protocol);
        let (blocked, code) = path_to(&scratch, &host);
        let said = blocked["fault"].as_str().unwrap_or_default();
        assert!(code == Some(3) && said.starts_with(&wrong), "{protocol}: {code:?} {blocked}");
        // The other transport is measured, and this one has a fault.
        let line = "latency --transport tcp,udp --wait block --count 100 --rounds 2 --to far \
                    --out run";
        let ended = wiregauge(&scratch, &command(&host, line));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        let record = read_record(&scratch.join("run")).unwrap();
        let [one] = &record.faults[..] else { panic!("{:?}", record.faults) };
        assert!(one.contains(&wrong) && one.starts_with(&format!("latency {protocol}")), "{one}");
        assert!(record.runs.iter().any(|run| run.complete), "{:?}", record.faults);
        assert_eq!(record.paths.len(), 1);
        fs::remove_dir_all(scratch.join("run")).unwrap();
        let line = format!("latency --transport {protocol} --to far --count 100");
        let said = refused(&scratch, &host, &line, 4);
        assert!(said.contains(&wrong), "{said}");
        host.end_blackhole();
    }
}

#[test]
fn the_data_path_takes_the_interfaces_that_were_named() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let file = scratch.join("hosts");
    let own = &host.own_interface;
    let there = &host.interface;
    let both = format!("{own},{there}");
    for (text, more) in [
        (format!("far interface={there}\n"), None),
        (format!("here interface={own}\nfar interface={there}\n"), None),
        ("far\n".to_string(), Some(both.as_str())),
    ] {
        fs::write(&file, &text).unwrap();
        let line = format!("hosts --hosts-file {} --json", file.display());
        let mut words = command(&host, &line);
        words.extend(more.into_iter().flat_map(|names| ["--interface", names]));
        let ended = wiregauge(&scratch, &words);
        assert_eq!(ended.code, Some(0), "{text}: {ended:?}");
        let all: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let path = &all[0]["path"];
        let found = (path["client_interface"].as_str(), path["server_interface"].as_str());
        assert_eq!(found, (Some(own.as_str()), Some(there.as_str())), "{text}: {path}");
        assert!(path["tcp_back"].is_null() && path["udp"].is_null(), "{path}");
    }
    fs::write(&file, "far interface=no-such\n").unwrap();
    let line = format!("hosts --hosts-file {}", file.display());
    let ended = wiregauge(&scratch, &command(&host, &line));
    assert!(ended.code == Some(4) && ended.stdout.contains("no-such"), "{ended:?}");
    host.await_no_agents();
}

#[test]
fn link_local_addresses_of_two_hosts_reach_each_other() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let line = format!(
        "latency --transport tcp,udp --family ipv6 --wait block --count 100 --rounds 1 \
         --interface {},{}",
        host.own_interface, host.interface
    );
    let (record, _) = measured(&scratch, &host, &line);
    assert_eq!(record.runs.len(), 2);
    let [path] = &record.paths[..] else { panic!("{:?}", record.paths) };
    assert!(path.client_address.starts_with("fe80::"), "{path:?}");
    assert_eq!((&path.tcp, &path.udp), (&None, &None));
    // Acknowledged from either end, not only received at the other.
    assert_eq!((path.to_server_bytes, path.to_client_bytes), (Some(1500), Some(1500)));
}

#[test]
fn a_client_whose_firewall_lets_no_connection_in_is_measured() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    host.blackhole("udp");
    // Nothing listens here for connections, so that none of the server's is awaited.
    let line = "latency --transport tcp --wait block --count 100 --rounds 1";
    let (record, _) = measured(&scratch, &host, line);
    host.end_blackhole();
    let [path] = &record.paths[..] else { panic!("{:?}", record.paths) };
    assert_eq!((&path.tcp, &path.tcp_back), (&None, &None));
    assert!(path.udp.is_some() && record.runs[0].complete, "{path:?}");
}

#[test]
fn a_path_that_cuts_large_packets_is_named_and_what_it_drops_is_no_figure() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    host.set_own_mtu(9000);
    let (found, code) = path_to(&scratch, &host);
    let sentence = "packets of 9000 B (wire0 on this host) do not reach far; 1500 B do";
    let warnings = found["warnings"].as_array().unwrap();
    let is_said = warnings.iter().any(|one| one["sentence"] == sentence);
    assert!(code == Some(0) && is_said, "{code:?} {found}");
    let line = "oneway --transport udp --size 8000,64 --wait block --rate 1k --count 100 \
                --rounds 1 --to far --out run";
    let ended = wiregauge(&scratch, &command(&host, line));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.warnings.iter().any(|one| one.sentence == sentence), "{:?}", record.warnings);
    let received: Vec<u64> = record.runs.iter().map(|run| run.counts.received).collect();
    assert!(received.contains(&0) && received.iter().any(|count| *count > 0), "{received:?}");
    let [fault] = &record.faults[..] else { panic!("{:?}", record.faults) };
    assert!(fault.contains("8000 B"), "{fault}");
}
