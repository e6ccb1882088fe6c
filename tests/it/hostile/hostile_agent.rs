//! A hostile agent: a daemon in this process that the controller is paired with. It relays a real
//! agent, and attacks at one step of a session.

use crate::support::controller::Scratch;
use crate::support::daemon::{controller_folder, program, status};
use crate::support::program::PROGRAM;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use wiregauge::agent::serve::RUN_ROLE;
use wiregauge::control::frame;
use wiregauge::control::protocol::{FromAgent, ToAgent};
use wiregauge::host::{CONNECTION, connection};
use wiregauge::record::read_record;
use wiregauge::remote::daemon::identity::{Identity, agent_file, certificate};
use wiregauge::remote::daemon::tls::{self, Writer};
use wiregauge_test_support::bounded::{LIMIT, LOOK};

/// Where in a session an agent turns hostile: instead of this message, or while the round runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Welcome,
    Probed,
    PathOpened,
    PathTried,
    Opened,
    Connected,
    Running,
    Rows,
    Ended,
}

pub const STEPS: [Step; 9] = [
    Step::Welcome,
    Step::Probed,
    Step::PathOpened,
    Step::PathTried,
    Step::Opened,
    Step::Connected,
    Step::Running,
    Step::Rows,
    Step::Ended,
];

impl Step {
    fn of(message: &FromAgent) -> Option<Step> {
        Some(match message {
            FromAgent::Welcome { .. } => Step::Welcome,
            FromAgent::Probed(_) => Step::Probed,
            FromAgent::PathOpened(_) => Step::PathOpened,
            FromAgent::PathTried(_) => Step::PathTried,
            FromAgent::Opened(_) => Step::Opened,
            FromAgent::Connected(_) => Step::Connected,
            FromAgent::Rows { .. } => Step::Rows,
            FromAgent::Ended { .. } => Step::Ended,
            _ => return None,
        })
    }
}

/// What becomes of the honest frame, and of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It is sent, and the session goes on.
    Send,
    /// It is not sent, and the session goes on.
    Drop,
    /// The connection is closed.
    Close,
    /// Nothing more is sent, and the connection stays.
    Hold,
}

/// One way of misbehaving.
#[derive(Clone)]
pub struct Attack {
    pub name: String,
    pub step: Step,
    /// Is given the honest message's body (none while a round runs) and the way to the controller.
    #[allow(clippy::type_complexity)]
    pub act: Arc<dyn Fn(&[u8], &mut Writer) -> After + Send + Sync>,
}

impl Attack {
    pub fn new(
        name: impl Into<String>,
        step: Step,
        act: impl Fn(&[u8], &mut Writer) -> After + Send + Sync + 'static,
    ) -> Attack {
        Attack { name: name.into(), step, act: Arc::new(act) }
    }
}

/// The daemon.
pub struct HostileAgent {
    pub at: SocketAddr,
    attack: Arc<Mutex<Option<Attack>>>,
}

impl HostileAgent {
    /// Listens, and is one that this test's controller has been paired with.
    pub fn start(scratch: &Scratch) -> HostileAgent {
        let folder = controller_folder(scratch);
        let controller = Identity::of_host(&folder).unwrap();
        let own = Identity::fresh().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let file = agent_file(&folder, &at.ip().to_string(), at.port());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &own.pem).unwrap();
        let trusted = certificate(&controller.pem).unwrap();
        let config = tls::listening(&own, &[trusted], tls::FRAMES).unwrap();
        let attack = Arc::new(Mutex::new(None::<Attack>));
        let shared = Arc::clone(&attack);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, attack) = (Arc::clone(&config), shared.lock().unwrap().clone());
                thread::spawn(move || {
                    let ends = [socket.peer_addr().unwrap(), socket.local_addr().unwrap()];
                    let deadline = Instant::now() + LIMIT;
                    if let Ok((reader, writer)) = tls::accept(socket, deadline, |_| Ok(config)) {
                        session(reader, writer, ends, attack);
                    }
                });
            }
        });
        HostileAgent { at, attack }
    }

    /// Runs the program against it to its end.
    pub fn meets(&self, scratch: &Scratch, attack: Option<Attack>, line: &str) -> Watched {
        *self.attack.lock().unwrap() = attack;
        let host = format!("agent:{}", self.at);
        // Others may run beside it.
        let own = |name: &str| format!("{name}-{}", self.at.port());
        let line = line.replace("--out run", &format!("--out {}", own("run")));
        let words: Vec<&str> = line.split(' ').chain(["--to", &host]).collect();
        let mut command = program(scratch, &words);
        let watched = watch(command.current_dir(&scratch.0), &scratch.join(&own("said")));
        let dir = scratch.join(&own("run"));
        let kept = dir.exists().then(|| read_record(&dir).map(drop).map_err(|e| e.to_string()));
        let _ = fs::remove_dir_all(dir);
        Watched { kept: kept.transpose(), ..watched }
    }
}

fn session(
    mut reader: tls::Reader,
    writer: Writer,
    [peer, own]: [SocketAddr; 2],
    attack: Option<Attack>,
) {
    let mut child = Command::new(PROGRAM)
        .arg(RUN_ROLE)
        .env(CONNECTION, connection(peer, own))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let writer = Arc::new(Mutex::new(writer));
    let theirs = Arc::clone(&writer);
    let running = attack.clone().filter(|attack| attack.step == Step::Running);
    let pid = child.id();
    let down = thread::spawn(move || {
        while let Ok(body) = frame::read_body(&mut reader) {
            let is_start = matches!(postcard::from_bytes(&body), Ok(ToAgent::Start(_)));
            if frame::write_body(&mut input, &body).is_err() {
                break;
            }
            let Some(attack) = running.clone().filter(|_| is_start) else { continue };
            let theirs = Arc::clone(&theirs);
            thread::spawn(move || {
                let after = (attack.act)(&pid.to_le_bytes(), &mut theirs.lock().unwrap());
                if after == After::Close {
                    theirs.lock().unwrap().close();
                }
            });
        }
    });
    let mut output = BufReader::new(output);
    while let Ok(body) = frame::read_body(&mut output) {
        let step = postcard::from_bytes(&body).ok().and_then(|said| Step::of(&said));
        let mut writer = writer.lock().unwrap();
        let after = match &attack {
            Some(attack) if Some(attack.step) == step => (attack.act)(&body, &mut writer),
            _ => After::Send,
        };
        match after {
            After::Send if frame::write_body(&mut *writer, &body).is_err() => break,
            After::Send | After::Drop => {}
            After::Close => break,
            After::Hold => {
                drop(writer);
                // Until the controller has had enough.
                let _ = down.join();
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
        }
    }
    writer.lock().unwrap().close();
    let _ = child.kill();
    let _ = child.wait();
}

/// How a program ended that was watched.
#[derive(Debug)]
pub struct Watched {
    /// `None`: by a signal.
    pub code: Option<i32>,
    pub said: Vec<u8>,
    /// The most memory that it has had.
    pub peak_kib: u64,
    pub took: Duration,
    /// Whether it has kept a record, or why no reader takes it.
    pub kept: Result<Option<()>, String>,
}

fn watch(command: &mut Command, path: &Path) -> Watched {
    let file = File::create(path).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let (mut child, begin) = (command.spawn().unwrap(), Instant::now());
    let mut peak_kib = 0;
    let code = loop {
        peak_kib = peak_kib.max(status(child.id(), "VmHWM:").unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("no end within {LIMIT:?}: {}", fs::read_to_string(path).unwrap());
        }
        thread::sleep(LOOK);
    };
    let mut said = Vec::new();
    File::open(path).unwrap().read_to_end(&mut said).unwrap();
    Watched { code, said, peak_kib, took: begin.elapsed(), kept: Ok(None) }
}
