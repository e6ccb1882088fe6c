//! A script that shares no code with the program computes every figure again, from the samples and
//! METHOD.md alone: runs of each pattern.

use crate::support::controller::{Scratch, wiregauge};
use crate::support::python::{READERS, python};
use std::path::Path;
use std::process::Command;
use wiregauge_test_support::bounded;

/// Has the script compute what these commands measure, and compare at least so many numbers. A
/// semicolon is a space within an argument.
#[track_caller]
fn agree(scratch: &Scratch, commands: &[&str], least: u64) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let mut recompute = Command::new(python());
    recompute.arg(script);
    for (number, command) in commands.iter().enumerate() {
        let line = format!("{command} --out run{number}");
        let words: Vec<String> = line.split(' ').map(|word| word.replace(';', " ")).collect();
        let ended = wiregauge(scratch, &words.iter().map(String::as_str).collect::<Vec<_>>());
        // 1 and 5: no rate was shown to keep a limit, which is a result as well.
        assert!(matches!(ended.code, Some(0 | 1 | 5)), "{line}: {ended:?}");
        recompute.arg(scratch.join(&format!("run{number}")));
    }
    let output = bounded::output(&mut recompute);
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{why}\nTo install the readers: {READERS}");
    let compared: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(compared >= least, "{said}");
}

#[test]
fn round_trips() {
    // With losses; of two threads; of ten rounds, whose smallest and largest bound no interval.
    let commands = [
        "latency --transport synthetic --synthetic exponential(1us,500ns);loss(0.5%) --count 2000",
        "latency --transport tcp --threads 2 --count 1000 --rounds 3",
        "latency --transport shm --count 1000 --rounds 10",
    ];
    agree(&Scratch::new(), &commands, 600);
}

#[test]
fn one_way_and_streams() {
    let commands = [
        "oneway --transport synthetic --synthetic normal(1us,300ns);reorder(1%,50us) --rate 100k \
         --count 2000",
        "oneway --transport tcp --count 1000 --rounds 3",
        "stream --transport tcp --rate 100k --count 1000 --rounds 4",
    ];
    agree(&Scratch::new(), &commands, 900);
}

#[test]
fn bandwidth_and_load() {
    let commands = [
        "bandwidth --transport tcp --size 4KiB --count 5000 --direction bi",
        "bandwidth --transport shm --size 64B --count 50000 --rounds 4 --threads 2",
        "load --transport tcp --rate 2k,5k,20k,2M --count 500 --rounds 4 --slo p99<5ms",
        "load --transport shm --clients 3 --count 500 --rounds 4",
    ];
    agree(&Scratch::new(), &commands, 700);
}

#[test]
fn requests_of_many_lengths() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("lengths"), "32 0.05\n100 0.6\n1000 0.9\n5000 1\n").unwrap();
    let command = "rpc --workload lengths --rps 5k --transport tcp --count 1000 --rounds 3";
    agree(&scratch, &[command], 1000);
}
