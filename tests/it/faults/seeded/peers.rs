//! Peers that say what they like: agents, controllers, and strangers at every port.

use super::{Fault, Makes};
use crate::hostile::hostile_agent::{After, Attack, HostileAgent, STEPS, Step};
use crate::support::controller::Scratch;
use crate::support::daemon::{Daemon, controller_folder, driven};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wiregauge::control::frame;
use wiregauge::remote::daemon::dial;
use wiregauge_test_support::bounded::{self, LIMIT};

/// A round over TCP that the hostile agent is the server of.
const LINE: &str = "latency --transport tcp --wait block --count 100 --warmup 5 --rounds 1 \
                    --timeout 1s --out run";
/// An honest round after a hostile one.
const HONEST: &str = "latency --transport tcp --wait block --count 20 --rounds 1 --out honest";
/// Hostile sessions before each honest round.
const HONEST_EVERY: u64 = 4;
/// Time for which a peer stays that says nothing.
const SILENCE: Duration = Duration::from_millis(300);
/// Noise of a stranger.
const MAX_NOISE: usize = 4096;
/// Interval between two searches for ports.
const PORTS_INTERVAL: Duration = Duration::from_millis(3);
/// Connections of strangers to a run.
const MAX_CONNECTIONS: usize = 400;

/// Frames in the place of an honest one, as they go over the channel.
fn garbled(fault: &mut Fault, body: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    let mut body = body.to_vec();
    match fault.below(6) {
        0 => {
            for _ in 0..=fault.below(3) {
                let at = fault.below(body.len());
                let bit = fault.below(8);
                if let Some(byte) = body.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }
        1 => body.truncate(fault.below(body.len())),
        2 => body = fault.noise(MAX_NOISE),
        3 => return fault.noise(MAX_NOISE),
        4 => {
            let _ = frame::write_body(&mut framed, &body);
        }
        _ => {
            let length = fault.log_uniform(1.0, 4e9) as u32;
            framed.extend(length.to_le_bytes());
            framed.extend(&body);
            return framed;
        }
    }
    let _ = frame::write_body(&mut framed, &body);
    framed
}

pub fn agents() -> Makes {
    let scratch = Scratch::new();
    let agent = HostileAgent::start(&scratch);
    Box::new(move |fault| {
        let steps: Vec<Step> = STEPS.into_iter().filter(|step| *step != Step::Running).collect();
        let step = *fault.pick(&steps);
        let after = *fault.pick(&[After::Drop, After::Send, After::Close]);
        fault.did(format!("instead of {step:?}, then {after:?}: {LINE}"));
        let seed = fault.below(usize::MAX >> 1) as u64;
        let attack = Attack::new("garbled", step, move |body, out| {
            let mut own = Fault::new("garbled", seed);
            let _ = out.write_all(&garbled(&mut own, body));
            after
        });
        let watched = agent.meets(&scratch, Some(attack), LINE);
        let said = String::from_utf8_lossy(&watched.said);
        assert!(matches!(watched.code, Some(0 | 2 | 3 | 4)), "{:?}: {said}", watched.code);
        assert!(!said.contains("panicked"), "{said}");
        assert!(watched.kept.is_ok(), "{:?}: {said}", watched.kept);
    })
}

/// The sessions that the fuzz target of paired controllers starts from.
fn sessions() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/agent_inspector");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Says something on a connection, reads for a moment, and goes.
fn talk(mut stream: TcpStream, says: &[u8], is_silent: bool) {
    let _ = stream.write_all(says);
    if is_silent {
        let _ = stream.set_read_timeout(Some(SILENCE));
        let _ = stream.read(&mut [0; 64]);
    }
}

/// A stranger at the port of a daemon: noise, or the beginning of a handshake and noise.
fn noise_at(fault: &mut Fault, at: SocketAddr) {
    /// The head of TLS's first record, which says how long it is.
    const HANDSHAKE: [u8; 5] = [22, 3, 1, 2, 0];
    let mut says = if fault.below(2) == 0 { HANDSHAKE.to_vec() } else { Vec::new() };
    says.extend(fault.noise(MAX_NOISE));
    fault.did(format!("{} B of noise to {at}", says.len()));
    if let Ok(stream) = TcpStream::connect(at) {
        talk(stream, &says, fault.below(2) == 0);
    }
}

/// A paired controller that sends a session with some frames changed.
fn changed_session(fault: &mut Fault, scratch: &Scratch, at: SocketAddr, session: &[u8]) {
    let opened = dial::open(&controller_folder(scratch), &at.ip().to_string(), at.port());
    let (mut reader, mut writer) = opened.map_err(|wrong| wrong.to_string()).unwrap();
    reader.deadline = Some(Instant::now() + SILENCE);
    let mut rest = session;
    let mut frames = 0;
    while let Ok(body) = frame::read_body(&mut rest) {
        frames += 1;
        // The greeting is mostly right, so that what follows is heard.
        let is_changed = fault.below(4) == 0 && (frames > 1 || fault.below(8) == 0);
        let mut honest = Vec::new();
        let _ = frame::write_body(&mut honest, &body);
        let bytes = if is_changed { garbled(fault, &body) } else { honest };
        if writer.write_all(&bytes).is_err() {
            break;
        }
    }
    fault.did(format!("{frames} frames of a session"));
    if fault.below(2) == 0 {
        let _ = reader.read_to_end(&mut Vec::new());
    }
}

pub fn controllers() -> Makes {
    let scratch = Scratch::new();
    let daemon = Daemon::start(&scratch, "--transports tcp,udp");
    daemon.pair(&scratch);
    let sessions = sessions();
    let mut number = 0;
    Box::new(move |fault| {
        if fault.below(3) == 0 {
            noise_at(fault, daemon.at);
        } else {
            let session = fault.pick(&sessions).clone();
            changed_session(fault, &scratch, daemon.at, &session);
        }
        daemon.await_no_processes();
        assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
        number += 1;
        if number % HONEST_EVERY == 0 {
            let ended = driven(&scratch, &daemon.host(), HONEST);
            assert_eq!(ended.code, Some(0), "after hostile ones: {ended:?}\n{}", daemon.log());
            let _ = fs::remove_dir_all(scratch.join("honest"));
        }
    })
}

/// The ports at which the processes of a fault listen or receive: of TCP, and of UDP.
fn ports(fault: &Fault) -> [BTreeSet<SocketAddr>; 2] {
    let mut inodes = BTreeSet::new();
    for pid in fault.processes() {
        // A measuring thread has descriptors of its own.
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let fds = fs::read_dir(task.path().join("fd")).into_iter().flatten().flatten();
            let links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
            inodes.extend(links.filter_map(|link| {
                let text = link.to_string_lossy().into_owned();
                Some(text.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
            }));
        }
    }
    ["tcp", "udp"].map(|file| {
        let text = fs::read_to_string(format!("/proc/net/{file}")).unwrap_or_default();
        let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines
            .filter(|words| words.get(9).is_some_and(|inode| inodes.contains(*inode)))
            // Of TCP those that listen.
            .filter(|words| file == "udp" || words[3] == "0A")
            .filter_map(|words| {
                let (ip, port) = words[1].split_once(':')?;
                let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
                Some((ip, u16::from_str_radix(port, 16).ok()?).into())
            })
            .collect()
    })
}

pub fn strangers() -> Makes {
    Box::new(|fault| {
        let transport = *fault.pick(&["tcp", "udp"]);
        let line = format!(
            "latency --transport {transport} --wait block --count 300 --pause 1ms --warmup 5 \
             --rounds 2 --loss-after 200ms --out run"
        );
        let mut command = fault.program(&line.split(' ').collect::<Vec<_>>());
        let running = bounded::start(&mut command);
        let is_over = AtomicBool::new(false);
        let noise: Vec<Vec<u8>> = (0..16).map(|_| fault.noise(MAX_NOISE)).collect();
        let is_silent = fault.below(2) == 0;
        let shared = &*fault;
        let output = thread::scope(|scope| {
            let stranger = scope.spawn(|| {
                let mut held = Vec::new();
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let [streams, datagrams] = ports(shared);
                    for at in &streams {
                        if held.len() >= MAX_CONNECTIONS {
                            break;
                        }
                        let Ok(mut stream) = TcpStream::connect(at) else { continue };
                        let says = &noise[held.len() % noise.len()];
                        let _ = stream.write_all(if is_silent { &[] } else { says });
                        held.push(stream);
                    }
                    for at in &datagrams {
                        let _ = socket.send_to(&noise[held.len() % noise.len()], at);
                    }
                    thread::sleep(PORTS_INTERVAL);
                }
                held.len()
            });
            let output = running.end(LIMIT);
            is_over.store(true, Ordering::Relaxed);
            (output, stranger.join().unwrap())
        });
        let (output, connections) = output;
        fault.did(format!("{connections} connections of strangers, silent: {is_silent}"));
        fault.ended(&output, &[0], &[]);
        assert!(fault.left(&[]), "no record");
    })
}
