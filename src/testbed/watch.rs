//! From the start of the machine to its end: its lines, its output, its limits of time.

use super::MachineRequest;
use super::kit::Kit;
use super::machine::{Machine, MachineSpec, Ports};
use super::tools::{private_folder, signals};
use fs_err as fs;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
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

/// What is said of a machine that went by itself.
const GONE: &str = "ended before its command did";

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

/// What a machine says, or what happened at its ports.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Ready,
    Running,
    Failed(String),
    Exit(u8),
    Gone,
    Unread,
}

/// The index of a machine, and what it says.
type Heard = (usize, News);

/// Runs the command in a machine, or in the first of two.
pub fn run(wanted: &MachineRequest, kit: &Kit, tell: &dyn Fn(&str)) -> io::Result<Ended> {
    let signal = signals()?;
    let out = Out::new(wanted.out.as_deref())?;
    let (sender, news) = channel();
    let mut machines = Vec::new();
    let mut controls = Vec::new();
    let mut readers = Vec::new();
    for (index, (command, wire)) in commands(wanted).iter().zip(wires(wanted)?).enumerate() {
        let number = index + 1;
        let spec = MachineSpec {
            number,
            memory: wanted.memory,
            out: &out.path,
            settings: settings(number, wanted.machines),
            command,
            wire: wire.as_ref(),
        };
        let (machine, ports) = Machine::start(kit, &spec)?;
        controls.push(ports.control.try_clone()?);
        readers.extend(listen(index, ports, &sender));
        machines.push(machine);
    }
    let mut watch = Watch { machines: &machines, controls, news, tell, ready: 0, running: 0 };
    let ended = watch.until_the_end(&signal, wanted.timeout.duration());
    drop(machines);
    // The ports are closed now: what the machines wrote before their end is passed on whole.
    readers.into_iter().for_each(|reader| drop(reader.join()));
    out.tell(tell);
    ended
}

/// What each machine runs.
fn commands(wanted: &MachineRequest) -> Vec<Vec<OsString>> {
    let peer: Vec<OsString> = match &wanted.peer {
        Some(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
        None => vec!["sleep".into(), "infinity".into()],
    };
    [wanted.command.clone(), peer].into_iter().take(wanted.machines).collect()
}

/// The end of the wire of each machine: a pair of sockets that nobody else can reach.
fn wires(wanted: &MachineRequest) -> io::Result<[Option<UnixStream>; 2]> {
    if wanted.machines < 2 {
        return Ok([None, None]);
    }
    Ok(UnixStream::pair().map(|(first, second)| [Some(first), Some(second)])?)
}

/// Variables of a machine: its own addresses and those of the other.
fn settings(number: usize, machines: usize) -> Vec<(&'static str, OsString)> {
    let mut settings: Vec<(&str, OsString)> = vec![
        ("WIREGAUGE_TESTBED", "rdma".into()),
        ("WIREGAUGE_TESTBED_DEVICE", "rxe0".into()),
        ("WIREGAUGE_TESTBED_NUMBER", number.to_string().into()),
        ("WIREGAUGE_TESTBED_ADDRESS", format!("10.77.0.{number}").into()),
        ("WIREGAUGE_TESTBED_ADDRESS6", format!("fd77::{number}").into()),
    ];
    if machines == 2 {
        let other = 3 - number;
        settings.push(("WIREGAUGE_TESTBED_PEER", format!("10.77.0.{other}").into()));
        settings.push(("WIREGAUGE_TESTBED_PEER6", format!("fd77::{other}").into()));
    }
    settings
}

/// The machines while they run.
struct Watch<'a> {
    machines: &'a [Machine],
    controls: Vec<UnixStream>,
    news: Receiver<Heard>,
    tell: &'a dyn Fn(&str),
    ready: usize,
    running: usize,
}

impl Watch<'_> {
    /// Waits for the end, whichever comes first.
    fn until_the_end(&mut self, signal: &AtomicUsize, timeout: Duration) -> io::Result<Ended> {
        let mut deadline = Instant::now() + BOOT_LIMIT;
        let mut begun = false;
        loop {
            let number = signal.load(Ordering::Relaxed);
            if number != 0 {
                return Ok(Ended::Signalled(number as u8));
            }
            match self.news.recv_timeout(LOOK) {
                Ok((index, news)) => {
                    if let Some(ended) = self.take(index, news)? {
                        return Ok(ended);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.machines[0].fault(GONE));
                }
            }
            if !begun && self.running == self.machines.len() {
                begun = true;
                deadline = Instant::now() + timeout;
            }
            match (Instant::now() > deadline, begun) {
                (false, _) => {}
                (true, true) => return Ok(Ended::TimedOut),
                (true, false) => {
                    let what = format!("was not ready within {} s", BOOT_LIMIT.as_secs());
                    return Err(self.machines[0].fault(&what));
                }
            }
        }
    }

    /// Takes one piece of news; `Some` where it ends all.
    fn take(&mut self, index: usize, news: News) -> io::Result<Option<Ended>> {
        let machine = &self.machines[index];
        match news {
            News::Ready => {
                self.ready += 1;
                // The last machine begins first: it serves, and the first one asks.
                if self.ready == self.machines.len() {
                    self.begin(self.machines.len() - 1);
                }
            }
            News::Running => {
                self.running += 1;
                if let Some(next) = index.checked_sub(1) {
                    self.begin(next);
                }
            }
            News::Exit(code) if index == 0 => return Ok(Some(Ended::Exited(code))),
            News::Exit(0) => {}
            News::Exit(code) => {
                (self.tell)(&format!("the command of --peer ended with exit code {code}"));
            }
            News::Failed(why) => return Err(machine.fault(&format!("is not ready: {why}"))),
            News::Unread => return Ok(Some(Ended::Unread)),
            News::Gone => return Err(machine.fault(GONE)),
        }
        Ok(None)
    }

    /// Lets a machine begin. One that is gone is noticed by its port.
    fn begin(&mut self, index: usize) {
        let _ = self.controls[index].write_all(b"go\n");
    }
}

/// A thread for each port.
fn listen(index: usize, ports: Ports, sender: &Sender<Heard>) -> Vec<JoinHandle<()>> {
    let Ports { control, out, err } = ports;
    let [rx, from_out, from_err] = [(); 3].map(|()| sender.clone());
    let unread = move |sender: &Sender<Heard>| drop(sender.send((index, News::Unread)));
    let mut threads = vec![std::thread::spawn(move || hear(control, index, &rx))];
    match index {
        0 => threads.extend([
            std::thread::spawn(move || pass(out, std::io::stdout(), &|| unread(&from_out))),
            std::thread::spawn(move || pass(err, std::io::stderr(), &|| unread(&from_err))),
        ]),
        _ => threads.extend([out, err].map(|port| std::thread::spawn(move || pass_lines(port)))),
    }
    threads
}

fn hear(control: UnixStream, index: usize, sender: &Sender<Heard>) {
    let mut control = BufReader::new(control);
    loop {
        let mut line = String::new();
        let read = control.by_ref().take(LINE).read_line(&mut line);
        let news = match read {
            Ok(1..) => understood(line.trim_end()),
            _ => Some(News::Gone),
        };
        let over = matches!(news, Some(News::Gone));
        let heard = news.is_none_or(|news| sender.send((index, news)).is_ok());
        if over || !heard {
            return;
        }
    }
}

/// A line of the guest's script.
fn understood(line: &str) -> Option<News> {
    match line.split_once(' ') {
        None if line == "ready" => Some(News::Ready),
        None if line == "running" => Some(News::Running),
        Some(("failed", why)) => Some(News::Failed(why.to_owned())),
        Some(("exit", code)) => code.parse().ok().map(News::Exit),
        _ => None,
    }
}

/// Passes output on, unchanged and at once. After the reader is gone it is thrown away: the guest
/// must not stand still until the machine is ended.
fn pass(mut from: UnixStream, mut to: impl Write, unread: &dyn Fn()) {
    let mut piece = vec![0; PIECE];
    let mut wanted = true;
    while let Ok(size @ 1..) = from.read(&mut piece) {
        if wanted && to.write_all(&piece[..size]).and_then(|()| to.flush()).is_err() {
            wanted = false;
            unread();
        }
    }
}

/// Passes on what the second machine prints: whole lines on stderr, each with a mark. A line that
/// never ends is cut.
fn pass_lines(from: UnixStream) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(1..) = from.by_ref().take(PIECE as u64).read_until(b'\n', &mut line) {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let _ = std::io::stderr().write_all(&[b"peer: ", text, b"\n"].concat());
        line.clear();
    }
}

/// The host's folder behind `/out`.
struct Out {
    path: PathBuf,
    temporary: bool,
}

impl Out {
    fn new(named: Option<&Path>) -> io::Result<Out> {
        let Some(path) = named else {
            return Ok(Out { path: private_folder("out")?.keep(), temporary: true });
        };
        fs::create_dir_all(path)?;
        Ok(Out { path: fs::canonicalize(path)?, temporary: false })
    }

    /// Says where files are that nobody named a place for.
    fn tell(&self, tell: &dyn Fn(&str)) {
        let empty = self.path.read_dir().map_or(true, |mut entries| entries.next().is_none());
        if self.temporary && !empty {
            tell(&format!("the files of /out are in {}", self.path.display()));
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if self.temporary {
            // An empty folder is removed, another cannot be.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_guest_are_understood_and_others_pass() {
        assert_eq!(understood("ready"), Some(News::Ready));
        assert_eq!(understood("exit 137"), Some(News::Exit(137)));
        assert_eq!(understood("failed no device"), Some(News::Failed("no device".into())));
        for strange in ["", "exit", "exit 256", "exit -1", "readyy", "go"] {
            assert_eq!(understood(strange), None, "{strange}");
        }
    }

    #[test]
    fn a_machine_knows_itself_and_the_other() {
        let value = |settings: &[(&str, OsString)], name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        let [first, second] = [1, 2].map(|number| settings(number, 2));
        let address = "WIREGAUGE_TESTBED_ADDRESS";
        assert_eq!(value(&first, "WIREGAUGE_TESTBED_PEER"), value(&second, address));
        assert_eq!(value(&second, "WIREGAUGE_TESTBED_PEER6"), Some("fd77::1".into()));
        assert_eq!(value(&settings(1, 1), "WIREGAUGE_TESTBED_PEER"), None);
    }
}
