//! Those who were never paired, while an agent measures.

use super::{LONG, record};
use crate::support::controller::Scratch;
use crate::support::daemon::{Daemon, controlling, program};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use wiregauge_test_support::bounded::{LIMIT, output, until};

/// Connections of each kind.
const BOGUS: u64 = 1000;
const SLOW: u64 = 200;
/// What an agent may take for all of them: it has some 15 MiB without any.
const MOST_KIB: u64 = 128 << 10;

/// Rejected peers that the log counts.
fn counted(log: &str) -> u64 {
    let of = |line: &str| match line.split_once(" more rejected") {
        Some((before, _)) => before.rsplit(' ').next()?.parse().ok(),
        None => line.contains(" rejected: ").then_some(1),
    };
    log.lines().filter_map(of).sum()
}

/// The beginning of a message that never ends, a random one, and one that claims to be long.
fn nonsense(number: u64) -> Vec<u8> {
    let mut random = number;
    let mut byte = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 56) as u8
    };
    match number % 4 {
        0 => Vec::new(),
        1 => (0..4096).map(|_| byte()).collect(),
        // A record of TLS whose length is more than one may have.
        2 => [&[0x16, 3, 1, 0xff, 0xff][..], &[0; 60_000]].concat(),
        // A handshake that claims 16 MiB.
        _ => [&[0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &[0; 16_380]].concat(),
    }
}

#[test]
fn rejected_peers_do_not_get_in_and_do_not_end_a_round() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    agent.pair(&scratch);
    let controller = controlling(&scratch, &agent.host(), LONG);
    controller.await_messages(300);
    let at = agent.at;
    let slow: Vec<TcpStream> = (0..SLOW)
        .map(|_| {
            let mut socket = TcpStream::connect(at).unwrap();
            let _ = socket.write_all(&[0x16, 3, 1]);
            socket
        })
        .collect();
    for number in 0..BOGUS {
        let mut socket = TcpStream::connect(at).unwrap();
        let _ = socket.write_all(&nonsense(number));
    }
    // A paired controller still gets in, however many are there.
    let mut look = program(&scratch, &["clocks", "--time", "100ms", "--to", &agent.host()]);
    let output = output(look.current_dir(scratch.join("")));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(agent.processes().len(), 1, "no rejected peer has a process");
    controller.signal_group(Signal::INT);
    let ended = controller.end();
    drop(slow);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let found = record(&scratch);
    assert!(found.faults[0].contains("interrupted by the user"), "{:?}", found.faults);
    let run = &found.runs[0];
    assert!(
        run.counts.rejected_peers >= BOGUS,
        "the run's own count: {}",
        run.counts.rejected_peers
    );
    assert!(run.counts.received > 300 && run.counts.corrupt == 0);
    until("all are in the log", LIMIT, || {
        // Of those that filled the queue of the kernel some never came.
        counted(&agent.log()) >= BOGUS
    });
    assert!(agent.peak_kib() < MOST_KIB, "{} KiB", agent.peak_kib());
    agent.await_no_processes();
}

/// Carries connections on and keeps what the dialling side has sent.
fn recorder(towards: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&kept);
    thread::spawn(move || {
        for mut near in listener.incoming().flatten() {
            let Ok(mut far) = TcpStream::connect(towards) else { return };
            let (mut back_from, mut back_to) =
                (far.try_clone().unwrap(), near.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut all = Vec::new();
                let mut some = [0; 4096];
                while let Ok(got @ 1..) = near.read(&mut some) {
                    all.extend_from_slice(&some[..got]);
                    if far.write_all(&some[..got]).is_err() {
                        break;
                    }
                }
                let _ = far.shutdown(std::net::Shutdown::Write);
                shared.lock().unwrap().push(all);
            });
        }
    });
    (at, kept)
}

#[test]
fn a_session_that_is_played_again_is_not_one() {
    let scratch = Scratch::new();
    let agent = Daemon::start(&scratch, "");
    let (at, kept) = recorder(agent.at);
    // Its name is of no account: what counts is who proves to be there.
    let secret = agent.offer();
    let (code, said) = super::pair(&scratch, at, &secret);
    assert_eq!(code, Some(0), "{said}");
    let line = "latency --wait block --count 100 --rounds 1 --out run";
    let ended = super::driven(&scratch, &format!("agent:{at}"), line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    until("three were recorded", LIMIT, || kept.lock().unwrap().len() >= 3);
    let before = agent.log();
    for recorded in kept.lock().unwrap().iter() {
        assert!(recorded.len() > 500, "a whole session: {} B", recorded.len());
        let mut again = TcpStream::connect(agent.at).unwrap();
        again.set_read_timeout(Some(LIMIT)).unwrap();
        again.write_all(recorded).unwrap();
        let mut answer = Vec::new();
        let _ = again.read_to_end(&mut answer);
        assert!(agent.processes().is_empty(), "nobody is served");
    }
    until("all are turned away", LIMIT, || {
        counted(&agent.log()) >= counted(&before) + kept.lock().unwrap().len() as u64
    });
    let controllers = std::fs::read_dir(agent.folder.join("controllers")).unwrap();
    assert_eq!(controllers.count(), 1);
}
