//! Values of options that are too long, too large, no number or no text.

use super::{Fault, Makes};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};
use wiregauge::cli::COMMON_OPTIONS;
use wiregauge::options::OptionDef;
use wiregauge::pattern::registry;
use wiregauge::transport::definitions::DEFINITIONS;
use wiregauge_test_support::bounded::{self, LIMIT, LOOK};

/// Options that would reach other hosts or run another program.
const LEFT_OUT: [&str; 14] = [
    "to",
    "from",
    "hosts",
    "hosts-file",
    "ssh",
    "push",
    "remote-binary",
    "mpirun",
    "leader",
    "rank",
    "ranks",
    "node-in",
    "node-out",
    "live",
];
/// Values that are tried for each option.
const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "-inf",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "65536",
    "1..",
    "..",
    "1..1000000*1.0000001",
    "0..0+0",
    "1,",
    ",",
    "1,1,1,1",
    "100000000000000000000ns",
    "0.0000001ns",
    "1e30s",
    "1TiB",
    "16EiB",
    "1EiB",
    "8..1EiB*2",
    "yes",
    "on",
    "%",
    "200%",
    "1e400%",
    "\u{1b}[31m",
    "\n",
    "\u{202e}",
    "a\tb",
    "/dev/zero",
    "/",
    "..",
    "0-65535",
    "0-4294967295",
    "0-3/",
    "1/2/3",
    "a=b",
    "--",
    "-",
    "half_rtt.p50>",
    "p50>0",
    "half_rtt.p99>+1e308%",
    "constant(1e308s)",
    "loss(200%)",
    "on-off(1,1ns,1e9s)",
    "2,2,2",
    "1gbit",
    "1e308gbit",
    "0gbit",
];
/// A word that no one types.
const LONG: usize = 100_000;
/// Time within which a value that is taken has shown it.
const TAKEN: Duration = Duration::from_secs(2);

/// All options of a command that measures.
fn options_of(pattern: &str) -> Vec<&'static OptionDef> {
    let pattern = registry::all().iter().find(|one| one.name() == pattern).unwrap();
    let common = COMMON_OPTIONS.iter().copied().flatten();
    let all = common.chain(pattern.options()).chain(DEFINITIONS.iter().copied());
    all.filter(|option| !LEFT_OUT.contains(&option.name)).collect()
}

fn value(fault: &mut Fault) -> OsString {
    match fault.below(10) {
        0 => "9".repeat(LONG).into(),
        1 => "x,".repeat(LONG / 2).into(),
        2 => {
            // No word holds a zero byte.
            let noise = fault.noise(300).into_iter().filter(|byte| *byte != 0);
            OsString::from_vec(noise.collect())
        }
        _ => (*fault.pick(VALUES)).into(),
    }
}

pub fn options() -> Makes {
    Box::new(|fault| {
        let names: Vec<&str> =
            registry::names().into_iter().filter(|name| *name != "survey").collect();
        let pattern = *fault.pick(&names);
        let all = options_of(pattern);
        let transport = *fault.pick(&["synthetic", "unix", "tcp", "shm", "null"]);
        let mut command = fault.program(&[pattern, "--transport", transport, "--rounds", "1"]);
        for _ in 0..=fault.below(2) {
            let option = *fault.pick(&all);
            command.arg(format!("--{}", option.name));
            if option.takes_value() {
                command.arg(value(fault));
            }
        }
        fault.did(format!("{command:?}").chars().take(1000).collect::<String>());
        let mut running = bounded::start(&mut command);
        let pid = Pid::from_child(&running.child);
        // One that is taken may be measured for long.
        let deadline = Instant::now() + TAKEN;
        while running.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                fault.did("INT");
                let _ = kill_process(pid, Signal::INT);
                break;
            }
            std::thread::sleep(LOOK);
        }
        let output = running.end(LIMIT);
        fault.ended(&output, &[0, 1, 2, 3, 4, 5], &[Signal::INT.as_raw()]);
    })
}
