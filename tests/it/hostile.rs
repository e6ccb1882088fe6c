//! Hostile and broken peers, in both directions: an agent against the controller, and a paired
//! controller against the agent daemon. docs/reliability.md has the counts that these tests print.

pub mod hostile_agent;
mod hostile_controller;

use crate::support::controller::Scratch;
use hostile_agent::{After, Attack, HostileAgent, STEPS, Step, Watched};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wiregauge::clock::Ticks;
use wiregauge::control::frame::{self, LONGEST};
use wiregauge::control::protocol::{FromAgent, HostProbe, Outcome};
use wiregauge::remote::daemon::tls::Writer;
use wiregauge::sample::Flags;
use wiregauge::sample::arena::Row;
use wiregauge::sample::recorder::MessageCounts;
use wiregauge::transport::Blob;
use wiregauge::transport::preflight::{PeerReport, PreflightAddresses};

/// A short round over TCP, whose server is the hostile one.
const LINE: &str = "latency --transport tcp --wait block --count 200 --warmup 5 --rounds 1 \
                    --timeout 1s --out run";
/// What a controller may take, whatever comes: it has some 20 MiB without.
const MOST_KIB: u64 = 256 << 10;
/// Bits that are flipped in each kind of message.
const FLIPS: usize = 4;
/// Agents that are hostile at the same time, each to a controller of its own.
const AT_ONCE: usize = 4;
/// How long a flood lasts, where nobody ends it.
const FLOOD: Duration = Duration::from_secs(20);

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// What every controller must do, whatever its agent did: end by itself, with an exit code of its
/// own, in little memory, and print nothing that a terminal obeys.
#[track_caller]
fn endured(name: &str, watched: &Watched) {
    let said = String::from_utf8_lossy(&watched.said);
    assert!(matches!(watched.code, Some(0 | 2 | 3 | 4)), "{name}: {:?} {said}", watched.code);
    assert!(!said.contains("panicked"), "{name}: {said}");
    assert!(watched.peak_kib < MOST_KIB, "{name}: {} KiB", watched.peak_kib);
    let obeyed = |c: char| c.is_control() && c != '\n';
    assert!(!said.contains(obeyed), "{name}: {said:?}");
    assert!(said.len() < 100_000, "{name}: {} B", said.len());
    // Whatever is kept, every reader takes it; and a run that is not mentioned left no record.
    assert!(watched.kept.is_ok(), "{name}: {:?} {said}", watched.kept);
    let has_record = watched.kept == Ok(Some(()));
    let is_told = said.lines().any(|line| line.starts_with("kept in "));
    assert_eq!(has_record, is_told, "{name}: {:?} {said}", watched.code);
}

fn encoded(message: &FromAgent) -> Vec<u8> {
    postcard::to_stdvec(message).unwrap()
}

/// What a terminal obeys: clears the screen, sets its title, moves, rings, turns the text around.
const OBEYED: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\r\u{202e}";

/// The wrong ways to send the message that is due, whichever it is.
fn malformed(step: Step, random: &mut Random) -> Vec<Attack> {
    let noise: Vec<u8> = (0..600).map(|_| random.next(256) as u8).collect();
    let (framed, raw) = (noise.clone(), noise);
    let mut all = vec![
        Attack::new("closes", step, |_, _| After::Close),
        Attack::new("a frame of noise", step, move |_, out| {
            let _ = frame::write_body(out, &framed);
            After::Drop
        }),
        Attack::new("noise without a frame", step, move |_, out| {
            let _ = out.write_all(&raw);
            After::Hold
        }),
        Attack::new("a frame that claims 4 GiB", step, |_, out| {
            let _ = out.write_all(&[0xff; 4]);
            After::Hold
        }),
        Attack::new("a frame of one byte too many", step, |_, out| {
            let _ = out.write_all(&(LONGEST as u32 + 1).to_le_bytes());
            After::Hold
        }),
        Attack::new("an empty frame", step, |_, out| {
            let _ = frame::write_body(out, &[]);
            After::Drop
        }),
        Attack::new("the end in the middle of a frame", step, |body, out| {
            let _ = out.write_all(&(body.len() as u32).to_le_bytes());
            let _ = out.write_all(&body[..body.len() / 2]);
            After::Close
        }),
        Attack::new("half of a message", step, |body, out| {
            let _ = frame::write_body(out, &body[..body.len() / 2]);
            After::Drop
        }),
        Attack::new("a message twice", step, |body, out| {
            let _ = frame::write_body(out, body);
            After::Send
        }),
    ];
    for _ in 0..FLIPS {
        let at = random.next(usize::MAX >> 33);
        all.push(Attack::new("a flipped bit", step, move |body, out| {
            let mut body = body.to_vec();
            let bit = at % (8 * body.len());
            body[bit / 8] ^= 1 << (bit % 8);
            let _ = frame::write_body(out, &body);
            After::Drop
        }));
    }
    all
}

/// A message in the place of the one that is due.
fn instead(name: &str, step: Step, message: FromAgent) -> Attack {
    let body = encoded(&message);
    Attack::new(name, step, move |_, out| {
        let _ = frame::write_body(out, &body);
        After::Drop
    })
}

/// Well-formed messages that are not due, and one that is long and full of what terminals obey.
fn out_of_order(step: Step) -> Vec<Attack> {
    let sentence = OBEYED.repeat(20_000);
    let refused = FromAgent::Refused { wrong_use: false, sentence };
    let welcome = FromAgent::Welcome { pid: 1, tool: OBEYED.into(), program: None };
    let address = "192.0.2.1:9".parse().unwrap();
    vec![
        instead("a long refusal", step, refused),
        instead("a greeting of another version", step, welcome),
        instead("addresses of nobody", step, FromAgent::Opened(vec![Vec::new(); 100_000])),
        instead("settings of nobody", step, FromAgent::Connected(vec![Vec::new(); 100_000])),
        instead("progress", step, FromAgent::Progress(u64::MAX)),
        instead("an address of a clock", step, FromAgent::ClockAddress(address)),
        instead("samples", step, FromAgent::Rows { thread: 0, rows: vec![Row::default(); 9] }),
    ]
}

/// The message that is due with something false in it.
fn changed(
    name: &str,
    step: Step,
    change: impl Fn(&mut FromAgent) + Send + Sync + 'static,
) -> Attack {
    Attack::new(name, step, move |body, out| {
        let mut message = postcard::from_bytes(body).unwrap();
        change(&mut message);
        let _ = frame::write_body(out, &encoded(&message));
        After::Drop
    })
}

fn probe(name: &str, change: impl Fn(&mut HostProbe) + Send + Sync + 'static) -> Attack {
    changed(name, Step::Probed, move |said| {
        if let FromAgent::Probed(probe) = said {
            change(probe);
        }
    })
}

fn path(name: &str, change: impl Fn(&mut PreflightAddresses) + Send + Sync + 'static) -> Attack {
    changed(name, Step::PathOpened, move |said| {
        if let FromAgent::PathOpened(addresses) = said {
            change(addresses);
        }
    })
}

fn path_report(name: &str, change: impl Fn(&mut PeerReport) + Send + Sync + 'static) -> Attack {
    changed(name, Step::PathTried, move |said| {
        if let FromAgent::PathTried(reports) = said {
            reports.iter_mut().for_each(&change);
        }
    })
}

fn outcome(name: &str, change: impl Fn(&mut Outcome) + Send + Sync + 'static) -> Attack {
    changed(name, Step::Ended, move |said| {
        if let FromAgent::Ended { outcome, .. } = said {
            change(outcome);
        }
    })
}

fn rows(name: &str, change: impl Fn(&mut Vec<Row>) + Send + Sync + 'static) -> Attack {
    changed(name, Step::Rows, move |said| {
        if let FromAgent::Rows { rows, .. } = said {
            change(rows);
        }
    })
}

fn counts(of: u64) -> MessageCounts {
    MessageCounts {
        sent: of,
        received: of,
        duplicates: of,
        reordered: of,
        corrupt: of,
        late: of,
        foreign: of,
        missed_steps: of,
        gaps: of,
        held_up: of,
        unsent: of,
    }
}

/// Lies about the host, the ends, counts, times and sizes.
fn lies() -> Vec<Attack> {
    let most = Ticks(u64::MAX);
    vec![
        probe("a clock that does not advance", |probe| probe.local.time.ns_per_tick = 0.0),
        probe("a clock of no number", |probe| probe.local.time.ns_per_tick = f64::NAN),
        probe("a clock that runs back", |probe| probe.local.time.ns_per_tick = -1.0),
        probe("an epoch at the end of time", move |probe| probe.local.time.epoch = most),
        probe("a hundred thousand CPUs", |probe| probe.cpus = (0..100_000).collect()),
        probe("a CPU that nobody has", |probe| probe.cpus = vec![u32::MAX; 2]),
        probe("no CPU", |probe| probe.cpus.clear()),
        probe("an address of everybody", |probe| {
            probe.address = Some(IpAddr::V4(Ipv4Addr::BROADCAST));
        }),
        probe("a host that a terminal obeys", |probe| {
            probe.environment.kernel = Some(OBEYED.into())
        }),
        changed("an address that is text", Step::Opened, |said| {
            *said = FromAgent::Opened(vec![vec![Blob(OBEYED.into())]]);
        }),
        changed("an address of a megabyte", Step::Opened, |said| {
            *said = FromAgent::Opened(vec![vec![Blob(vec![7; 1_000_000])]]);
        }),
        changed("settings that a terminal obeys", Step::Connected, |said| {
            *said = FromAgent::Connected(vec![vec![(OBEYED.into(), OBEYED.into()); 1000]]);
        }),
        changed("the end of another thread", Step::Ended, |said| {
            if let FromAgent::Ended { thread, .. } = said {
                *thread = u32::MAX;
            }
        }),
        outcome("counts of everything", |outcome| outcome.counts = counts(u64::MAX)),
        outcome("counts of nothing", |outcome| outcome.counts = counts(0)),
        outcome("rejected peers without number", |outcome| outcome.rejected_peers = u64::MAX),
        outcome("an end before the beginning", move |outcome| outcome.span = (most, Ticks(0))),
        outcome("an overhead that is long", |outcome| outcome.overhead = vec![u32::MAX; 100_000]),
        outcome("a cost of no number", |outcome| outcome.recording_ticks = f64::NAN),
        outcome("a fault that a terminal obeys", |outcome| outcome.pinned = Err(OBEYED.into())),
        rows("times at the end of time", move |rows| {
            rows.iter_mut().for_each(|row| (row.receive, row.submit) = (most, Ticks(1)));
        }),
        rows("times that run back", |rows| rows.reverse()),
        rows("the same sample again", |rows| {
            let first = rows[0];
            rows.fill(first);
        }),
        rows("flags and orders of everything", |rows| {
            rows.iter_mut().for_each(|row| (row.flags, row.order) = (Flags(u32::MAX), u32::MAX));
        }),
        rows("a sample too many", |rows| rows.push(Row::default())),
        rows("samples beyond all number", |rows| rows.resize(100_000, Row::default())),
        rows("no samples", Vec::clear),
    ]
}

/// Lies about an end of the pre-flight, and how it has reached the other.
fn lies_about_paths() -> Vec<Attack> {
    vec![
        path("a path without a port", |path| path.tcp = None),
        path("a path at an address of nobody", |path| path.tcp = "192.0.2.1:9".parse().ok()),
        path("a path of no MTU", |path| path.mtu_bytes = Some(0)),
        path("a path of any MTU", |path| path.mtu_bytes = Some(u32::MAX)),
        path("an interface that a terminal obeys", |path| path.interface = Some(OBEYED.into())),
        path("an interface of a megabyte", |path| path.interface = Some("x".repeat(1_000_000))),
        path_report("a path of another end", |report| report.number = u32::MAX),
        path_report("packets of all sizes", |report| report.received = (0..9000).collect()),
        path_report("a packet beyond all sizes", |report| report.received = [u32::MAX].into()),
        path_report("acknowledgements of nothing", |report| {
            report.acknowledged = [9001].into();
        }),
        path_report("a refusal that a terminal obeys", |report| {
            (report.refused, report.tcp) = (Some(OBEYED.into()), None);
        }),
        path_report("a failure that a terminal obeys", |report| {
            report.unsent = Some(OBEYED.into());
            report.acknowledged.clear();
        }),
        changed("no path at all", Step::PathTried, |said| *said = FromAgent::PathTried(vec![])),
    ]
}

/// Sends frames until the controller has had enough.
fn flood(out: &mut Writer, mut next: impl FnMut(u64) -> FromAgent) {
    let begin = Instant::now();
    let mut number = 0;
    let mut many = Vec::new();
    while begin.elapsed() < FLOOD {
        many.clear();
        for _ in 0..256 {
            number += 1;
            frame::write(&mut many, &next(number)).unwrap();
        }
        if out.write_all(&many).is_err() {
            return;
        }
    }
}

#[test]
fn a_flood_ends_the_round_with_its_name_and_takes_no_memory() {
    let scratch = Scratch::new();
    let agent = HostileAgent::start(&scratch);
    let row = |count: usize| FromAgent::Rows { thread: 0, rows: vec![Row::default(); count] };
    type Make = Box<dyn Fn(u64) -> FromAgent + Send + Sync>;
    let floods: [(&str, Make, &str); 8] = [
        ("progress that grows", Box::new(FromAgent::Progress), "progress reports"),
        ("progress that swings", Box::new(|n| FromAgent::Progress(n % 2)), "progress reports"),
        ("frames without samples", Box::new(move |_| row(0)), "unrequested samples"),
        ("single samples", Box::new(move |_| row(1)), "more samples than the 0 of its round"),
        (
            "samples of no thread",
            Box::new(|_| FromAgent::Rows { thread: 9, rows: vec![] }),
            "samples",
        ),
        ("stamps", Box::new(|_| FromAgent::Stamps(vec![])), "unrequested stamps"),
        ("a trace", Box::new(|_| FromAgent::Traced(Err("no".into()))), "unrequested trace"),
        ("a greeting", Box::new(|_| FromAgent::Opened(vec![])), "unexpected message"),
    ];
    for (name, make, says) in floods {
        let attack = Attack::new(name, Step::Running, move |_, out| {
            flood(out, &make);
            After::Send
        });
        let line = LINE.replace("--count 200", "--count 200000 --pause 1ms");
        let ended = agent.meets(&scratch, Some(attack), &line);
        endured(name, &ended);
        let said = String::from_utf8_lossy(&ended.said);
        assert!(
            matches!(ended.code, Some(3 | 4)) && said.contains(says),
            "{name}: {:?} {said}",
            ended.code
        );
        assert!(said.contains("its round was stopped"), "{name}: {said}");
        println!("{name}: {} KiB, {:.1} s", ended.peak_kib, ended.took.as_secs_f64());
    }
}

#[test]
fn no_agent_brings_a_controller_down_or_holds_it() {
    const MEASURED: &str = "bandwidth --transport tcp --wait block --count 300 --warmup 5 \
                            --size 1KiB --rounds 1 --timeout 1s --out run";
    let scratch = Scratch::new();
    let agent = HostileAgent::start(&scratch);
    // That the rest is hostile is all that differs.
    let honest = agent.meets(&scratch, None, MEASURED);
    endured("an honest agent", &honest);
    assert_eq!(honest.code, Some(0), "{}", String::from_utf8_lossy(&honest.said));
    let mut random = Random(1);
    let mut attacks = lies();
    attacks.extend(lies_about_paths());
    for step in STEPS.into_iter().filter(|step| *step != Step::Running) {
        attacks.extend(malformed(step, &mut random));
        attacks.extend(out_of_order(step));
    }
    for step in [Step::Opened, Step::Ended] {
        attacks.push(Attack::new("stops responding", step, |_, _| After::Hold));
    }
    let (count, begin) = (attacks.len(), Instant::now());
    // Most of the time is that of waiting.
    let agents: Vec<HostileAgent> = (0..AT_ONCE).map(|_| HostileAgent::start(&scratch)).collect();
    let (attacks, seen) = (Mutex::new(attacks.into_iter()), Mutex::new(Vec::new()));
    let meet_all = |agent: &HostileAgent| {
        let next = || attacks.lock().unwrap().next();
        while let Some(attack) = next() {
            let name = format!("{} at {:?}", attack.name, attack.step);
            let ended = agent.meets(&scratch, Some(attack), MEASURED);
            endured(&name, &ended);
            seen.lock().unwrap().push((ended.code.unwrap(), ended.peak_kib));
        }
    };
    std::thread::scope(|scope| {
        for agent in &agents {
            scope.spawn(|| meet_all(agent));
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), count);
    let mut ends = BTreeMap::<i32, usize>::new();
    seen.iter().for_each(|(code, _)| *ends.entry(*code).or_default() += 1);
    let peak = seen.iter().map(|(_, peak)| *peak).max().unwrap();
    println!(
        "{count} hostile agents in {:.0} s: exit codes {ends:?}, the most memory {peak} KiB",
        begin.elapsed().as_secs_f64()
    );
}

#[test]
fn reports_that_say_nothing_new_do_not_keep_a_round_alive() {
    let scratch = Scratch::new();
    let agent = HostileAgent::start(&scratch);
    let attack = Attack::new("a slow drip", Step::Running, |pid, out| {
        let pid = i32::from_le_bytes(pid.try_into().unwrap());
        let process = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        for number in 0.. {
            if frame::write(out, &FromAgent::Progress(5 + number % 2)).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        After::Close
    });
    let line = LINE.replace("--count 200", "--count 200000 --pause 1ms");
    let ended = agent.meets(&scratch, Some(attack), &line);
    endured("a slow drip", &ended);
    let said = String::from_utf8_lossy(&ended.said);
    assert!(said.contains("handled no message for"), "{said}");
}
