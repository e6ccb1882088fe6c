//! Files of the wrong kind, and disks without room.

use super::{Fault, Makes, short_run};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Instant;
use wiregauge_test_support::bounded::{self, LIMIT, SOON};

/// Commands that read the file `F`; those that measure would be short.
const READ: [&str; 13] = [
    "oneway --trace F --count 5 --rounds 1 --out run",
    "rpc --workload F --rps 1k --count 5 --rounds 1 --out run",
    "latency --hosts-file F --count 5 --rounds 1 --out run",
    "exchange --schedule F --slot 1ms --time 10ms --rounds 1 --out run",
    "exchange --routes F --slot 1ms --time 10ms --rounds 1 --out run",
    "run F --quick --out run",
    "report F",
    "export F --format csv",
    "compare F F",
    "history F",
    "recover F",
    "explain packets F",
    "agent --pair --identity F",
];
/// Commands that write the file `F`.
const WRITTEN: [&str; 4] = [
    "latency --transport synthetic --count 5 --rounds 1 --out F",
    "latency --transport synthetic --count 5 --rounds 1 --out run --markdown F",
    "latency --transport synthetic --count 5 --rounds 1 --out run --junit F \
     --fail-if half_rtt.p50>1s",
    "latency --transport synthetic --count 5 --rounds 1 --out F/run",
];
/// Length of a sparse file in bytes.
const SPARSE_BYTES: u64 = 8 << 30;

/// Makes a file of a wrong kind, and returns its name.
fn wrong_kind(fault: &mut Fault) -> String {
    let file = fault.scratch.join("f");
    match fault.below(12) {
        0 => fs::create_dir(&file).unwrap(),
        1 => assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()),
        2 => return "/dev/zero".into(),
        3 => return "/dev/full".into(),
        4 => return "/dev/null".into(),
        5 => fs::write(&file, "").unwrap(),
        6 => File::create(&file).unwrap().set_len(SPARSE_BYTES).unwrap(),
        7 => symlink("f", &file).unwrap(),
        8 => symlink("nowhere/at/all", &file).unwrap(),
        9 => drop(UnixListener::bind(&file).unwrap()),
        10 => return "x".repeat(5000),
        _ => {
            let noise = fault.noise(1 << 16);
            fs::write(&file, noise).unwrap();
        }
    }
    "f".into()
}

pub fn inputs() -> Makes {
    Box::new(|fault| {
        let file = wrong_kind(fault);
        let is_written = fault.below(4) == 0;
        let line = if is_written { *fault.pick(&WRITTEN) } else { *fault.pick(&READ) };
        let words: Vec<String> = line
            .split(' ')
            .map(|word| match word.strip_prefix('F') {
                Some(rest) => format!("{file}{rest}"),
                None => word.to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let begin = Instant::now();
        let output = fault.run(&words);
        // What is written nowhere, as to /dev/null, may be all right, and so few messages are
        // inconclusive.
        fault.ended(&output, &[0, 2, 3, 4, 5], &[]);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        let inputs = ["f", ".f.partial-"];
        fault.left(&inputs);
    })
}

/// Runs the program on a disk of some size, and copies what it leaves. Arguments: the disk's folder
/// and size, a folder for what is left, the program and its words.
const ON_DISK: &str = r#"
mount -t tmpfs -o size="$2" tmpfs "$1" && cd "$1" || exit 99
left=$3
shift 3
"$@"
code=$?
cp -a . "$left" || exit 98
exit $code
"#;

pub fn disks() -> Makes {
    Box::new(|fault| {
        let line = short_run(fault);
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = if fault.below(2) == 0 {
            let bytes = fault.log_uniform(1024.0, 4e6);
            fault.behind(&["prlimit", &format!("--fsize={bytes}")], &words)
        } else {
            let bytes = fault.log_uniform(16e3, 4e6).to_string();
            let disk = fault.scratch.join("disk");
            fs::create_dir(&disk).unwrap();
            let paths = [disk, fault.scratch.0.clone()];
            let paths = paths.map(|path| path.to_str().unwrap().to_owned());
            let root = rustix::process::geteuid().is_root();
            let unshare = if root { ["unshare", "-m"] } else { ["unshare", "-rm"] };
            let before = [&unshare[..], &["sh", "-c", ON_DISK, "sh", &paths[0], &bytes, &paths[1]]];
            fault.behind(&before.concat(), &words)
        };
        let output = bounded::start(&mut command).end(LIMIT);
        fault.ended(&output, &[0, 2, 3, 4], &[]);
        fault.left(&["disk"]);
    })
}
