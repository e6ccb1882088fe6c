//! From the start of the machine to its end: its lines, its output, its limits of time.

use super::kit::Kit;
use super::machine::{Machine, Ports, Private, Shape};
use super::tools::Tools;
use super::{TestbedError, Wanted, file};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a machine may take until its RDMA device is there. It takes some 10 s on an idle
/// host; one that is busy needs several times that.
const BOOT_LIMIT: Duration = Duration::from_secs(180);

/// Between two looks at the signals.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of output passed on at once.
const PIECE: usize = 64 << 10;

/// Longest line of the control port.
const LINE: u64 = 4096;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended with this code (128 and a signal's number where a signal ended it).
    Exited(u8),
    /// It took longer than it may.
    TimedOut,
    /// This process was told to end, by the signal of that number.
    Signalled(u8),
    /// Nobody reads the output any more.
    Unread,
}

/// What comes from the machine.
enum News {
    Ready,
    Failed(String),
    Exit(u8),
    Gone,
    Unread,
}

/// Runs the command in a machine.
pub fn run(
    wanted: &Wanted,
    tools: &Tools,
    kit: &Kit,
    tell: &dyn Fn(&str),
) -> Result<Ended, TestbedError> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .map_err(file("watching signals of", Path::new("/proc/self")))?;
    }
    let out = Out::new(wanted.out.as_deref())?;
    let settings = vec![
        ("WIREGAUGE_TESTBED_NUMBER", "1".into()),
        ("WIREGAUGE_TESTBED_ADDRESS", "10.77.0.1".into()),
        ("WIREGAUGE_TESTBED_ADDRESS6", "fd77::1".into()),
    ];
    let shape = Shape {
        number: 1,
        memory: wanted.memory,
        out: &out.path,
        settings,
        command: &wanted.command,
    };
    let (machine, ports) = Machine::start(tools, kit, &shape)?;
    let (sender, news) = channel();
    let readers = listen(ports, sender);
    let ended = wait(&machine, &news, &signal, Duration::from_nanos(wanted.timeout.0));
    drop(machine);
    // The ports are closed now: what the machine wrote before its end is passed on whole.
    readers.into_iter().for_each(|reader| drop(reader.join()));
    out.tell(tell);
    ended
}

/// Waits for the end, whichever comes first.
fn wait(
    machine: &Machine,
    news: &Receiver<News>,
    signal: &AtomicUsize,
    timeout: Duration,
) -> Result<Ended, TestbedError> {
    let mut deadline = Instant::now() + BOOT_LIMIT;
    let mut ready = false;
    loop {
        let number = signal.load(Ordering::Relaxed);
        if number != 0 {
            return Ok(Ended::Signalled(number as u8));
        }
        match news.recv_timeout(LOOK) {
            Ok(News::Ready) => {
                ready = true;
                deadline = Instant::now() + timeout;
            }
            Ok(News::Exit(code)) => return Ok(Ended::Exited(code)),
            Ok(News::Failed(why)) => return Err(machine.fault(&format!("could not: {why}"))),
            Ok(News::Unread) => return Ok(Ended::Unread),
            Ok(News::Gone) | Err(RecvTimeoutError::Disconnected) => {
                return Err(machine.fault("ended before its command did"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        match (Instant::now() > deadline, ready) {
            (false, _) => {}
            (true, true) => return Ok(Ended::TimedOut),
            (true, false) => {
                let limit = BOOT_LIMIT.as_secs();
                return Err(machine.fault(&format!("was not ready within {limit} s")));
            }
        }
    }
}

/// A thread for each port.
fn listen(ports: Ports, sender: Sender<News>) -> Vec<JoinHandle<()>> {
    let Ports { control, out, err } = ports;
    let from_out = sender.clone();
    let from_err = sender.clone();
    vec![
        std::thread::spawn(move || hear(control, &sender)),
        std::thread::spawn(move || pass(out, std::io::stdout(), &from_out)),
        std::thread::spawn(move || pass(err, std::io::stderr(), &from_err)),
    ]
}

fn hear(control: UnixStream, sender: &Sender<News>) {
    let mut control = BufReader::new(control);
    loop {
        let mut line = String::new();
        let read = control.by_ref().take(LINE).read_line(&mut line);
        let news = match read {
            Ok(1..) => understood(line.trim_end()),
            _ => Some(News::Gone),
        };
        let over = matches!(news, Some(News::Gone));
        let told = news.is_none_or(|news| sender.send(news).is_ok());
        if over || !told {
            return;
        }
    }
}

/// A line of the guest's script.
fn understood(line: &str) -> Option<News> {
    match line.split_once(' ') {
        None if line == "ready" => Some(News::Ready),
        Some(("failed", why)) => Some(News::Failed(why.to_owned())),
        Some(("exit", code)) => code.parse().ok().map(News::Exit),
        _ => None,
    }
}

/// Passes output on, unchanged and at once. After the reader is gone it is thrown away: the guest
/// must not stand still until the machine is ended.
fn pass(mut from: UnixStream, mut to: impl Write, sender: &Sender<News>) {
    let mut piece = vec![0; PIECE];
    let mut wanted = true;
    while let Ok(size @ 1..) = from.read(&mut piece) {
        if wanted && to.write_all(&piece[..size]).and_then(|()| to.flush()).is_err() {
            wanted = false;
            let _ = sender.send(News::Unread);
        }
    }
}

/// The host's folder behind `/out`.
struct Out {
    path: PathBuf,
    temporary: bool,
}

impl Out {
    fn new(named: Option<&Path>) -> Result<Out, TestbedError> {
        let Some(path) = named else {
            let private = Private::new()?;
            let path = private.0.clone();
            // It stays where something is in it; see `tell`.
            std::mem::forget(private);
            return Ok(Out { path, temporary: true });
        };
        std::fs::create_dir_all(path).map_err(file("making", path))?;
        let path = path.canonicalize().map_err(file("finding", path))?;
        Ok(Out { path, temporary: false })
    }

    /// Says where files are that nobody named a place for.
    fn tell(self, tell: &dyn Fn(&str)) {
        // An empty folder can be removed, another cannot.
        if self.temporary && std::fs::remove_dir(&self.path).is_err() {
            tell(&format!("the files of /out are in {}", self.path.display()));
        }
    }
}
