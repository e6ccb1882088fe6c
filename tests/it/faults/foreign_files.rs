//! Files that a user names and that are not what they should be: each is refused at once, by name,
//! and shown so that a terminal obeys nothing that stands in it.

use super::*;

/// What the program says of a command that it refuses.
fn refusal(scratch: &Scratch, arguments: &[&str]) -> String {
    let ended = wiregauge(scratch, arguments);
    assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
    assert!(ended.took < SOON, "{arguments:?}: {ended:?}");
    ended.stderr
}

#[test]
fn a_hang_up_that_is_ignored_is_ignored() {
    let scratch = Scratch::new();
    scratch.run_behind(&["nohup"]);
    let controller = under_way(&scratch, "tcp", "block", &[]);
    controller.signal(Signal::HUP);
    controller.await_messages(8000);
    controller.signal(Signal::INT);
    assert!(kept(&scratch, &controller.end()).contains("interrupted by the user"));
}

#[test]
fn what_is_no_plain_file_is_refused_and_not_waited_for() {
    let scratch = Scratch::new();
    let fifo = scratch.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let run = scratch.join("run");
    fs::create_dir(&run).unwrap();
    std::os::unix::fs::symlink(&fifo, run.join("record.json")).unwrap();
    for arguments in [
        &["rpc", "--workload", "fifo", "--rps", "1k"][..],
        &["oneway", "--trace", "fifo"],
        &["run", "fifo"],
        &["latency", "--hosts-file", "fifo"],
        &["report", "run"],
        &["export", "run", "--format", "csv"],
        &["compare", "run", "run"],
        &["testbed", "rdma", "--kernel", "fifo", "--", "true"],
    ] {
        let said = refusal(&scratch, arguments);
        assert!(said.contains("it is a FIFO and not a plain file"), "{arguments:?}: {said}");
    }
    let trace = wiregauge(&scratch, &["explain", "packets", "fifo"]);
    assert!(trace.code == Some(4) && trace.stderr.contains("it is a FIFO"), "{trace:?}");
    for device in ["/dev/zero", "/dev/tty", "."] {
        let said = refusal(&scratch, &["rpc", "--workload", device, "--rps", "1k"]);
        assert!(said.contains("not a plain file"), "{said}");
    }
}

#[test]
fn an_output_that_nobody_reads_holds_no_run() {
    let scratch = Scratch::new();
    assert!(Command::new("mkfifo").arg(scratch.join("fifo")).status().unwrap().success());
    for (number, option) in ["--junit", "--markdown"].into_iter().enumerate() {
        let run = format!("run-{number}");
        let line = "latency --transport synthetic --count 5 --rounds 1 --fail-if half_rtt.p50>1s";
        let ended =
            wiregauge(&scratch, &[&words(line)[..], &[option, "fifo", "--out", &run]].concat());
        assert_eq!(ended.code, Some(3), "{option}: {ended:?}");
        assert!(ended.stderr.contains("writing fifo: it is a FIFO that nobody reads"), "{ended:?}");
        assert!(scratch.join(&run).join("record.json").exists(), "{option}: {ended:?}");
    }
}

#[test]
fn a_trace_of_equal_times_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    fs::write(scratch.join("t"), "5us\n5us\n5us\n").unwrap();
    let said = refusal(&scratch, &["oneway", "--trace", "t", "--out", "run"]);
    assert!(said.contains("t:1:1: all times are equal"), "{said}");
    assert!(!scratch.join("run").exists());
}

#[test]
fn a_long_word_is_not_shown_whole() {
    let scratch = Scratch::new();
    let long = "x".repeat(1 << 20);
    fs::write(scratch.join("t"), format!("0ns\n{long}\n")).unwrap();
    fs::write(scratch.join("w"), format!("{long} 1\n")).unwrap();
    fs::write(scratch.join("s.toml"), format!("title = 1\n{} = 2\n", &long[..1 << 19])).unwrap();
    for arguments in [
        &["oneway", "--trace", "t"][..],
        &["rpc", "--workload", "w", "--rps", "1k"],
        &["run", "s.toml"],
    ] {
        let said = refusal(&scratch, arguments);
        assert!(said.len() < 6000, "{arguments:?}: {} B", said.len());
    }
}

#[test]
fn a_terminal_obeys_nothing_of_a_foreign_file() {
    let (scratch, _) =
        crate::support::controller::measured("latency", "--wait block --count 500 --rounds 1");
    let path = scratch.join("run").join("record.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let obeyed = "\u{1b}]0;owned\u{7}\u{9b}2J\u{7f}\u{202e}";
    record["faults"] = vec![obeyed].into();
    record["started"] = obeyed.into();
    record["runs"][0]["label"] = obeyed.into();
    record["environment"]["host"] = obeyed.into();
    fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    copy_as_earlier(&scratch.join("run"), &scratch.join("other"));
    fs::write(scratch.join("t"), format!("0ns\n{obeyed}\n")).unwrap();
    let all = [
        wiregauge(&scratch, &["report", "run"]),
        wiregauge(&scratch, &["compare", "run", "other"]),
        wiregauge(&scratch, &["compare", "run", "other", "--json"]),
        wiregauge(&scratch, &["oneway", "--trace", "t"]),
        wiregauge(&scratch, &["run", obeyed]),
        wiregauge(&scratch, &["report", obeyed]),
    ];
    for said in all {
        let text = format!("{}{}", said.stdout, said.stderr);
        assert!(text.contains("owned"), "{said:?}");
        let is_obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(is_obeyed), "{said:?}");
    }
}
