//! From the start of the machine to its end: its lines, its output, its limits of time.

use super::MachineRequest;
use super::kit::Kit;
use super::machine::{Machine, MachineSpec, Ports};
use super::tools::{private_folder, signals};
use fs_err as fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;

/// How long a machine may take until its RDMA device is there. It takes some 10 s on an idle
/// host; one that is busy needs several times that, and took 184 s where compilers had most of it.
const BOOT_LIMIT: Duration = Duration::from_secs(300);

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
    let (temporary, out) = match &wanted.out {
        Some(named) => {
            fs::create_dir_all(named)?;
            (None, fs::canonicalize(named)?)
        }
        None => {
            let folder = private_folder("out")?;
            let path = folder.path().to_path_buf();
            (Some(folder), path)
        }
    };
    let (sender, news) = channel();
    let (mut machines, mut readers) = (Vec::new(), Vec::new());
    // A pair of sockets that nobody else can reach.
    let wire = UnixStream::pair().map(<[UnixStream; 2]>::from)?;
    for (index, end) in wire.into_iter().take(wanted.machines).enumerate() {
        let wire = (wanted.machines > 1).then_some(&end);
        let spec = MachineSpec { number: index + 1, wanted, out: &out, wire };
        let (machine, ports) = Machine::start(kit, &spec)?;
        machines.push(machine);
        readers.extend(listen(index, ports, &sender)?);
    }
    let mut watch = Watch { machines: &machines, news, tell, ready: 0, began: None };
    let ended = watch.until_the_end(&signal, wanted.timeout.duration());
    if !matches!(ended, Ok(Ended::Exited(0))) {
        for (machine, words) in
            machines.iter().filter_map(|one| one.kernel_words().map(|w| (one, w)))
        {
            tell(&format!("the kernel of machine {} said: {words}", machine.number));
        }
    }
    drop(machines);
    // The ports are closed now: what the machines wrote before their end is passed on whole.
    readers.into_iter().for_each(|reader| drop(reader.join()));
    // Nobody named a place for the files that are there.
    if let Some(folder) = temporary
        && out.read_dir().is_ok_and(|mut entries| entries.next().is_some())
    {
        tell(&format!("the files of /out are in {}", folder.keep().display()));
    }
    ended
}

/// The machines while they run.
struct Watch<'a> {
    machines: &'a [Machine],
    news: Receiver<Heard>,
    tell: &'a dyn Fn(&str),
    ready: usize,
    /// When the last command began.
    began: Option<Instant>,
}

impl Watch<'_> {
    /// Waits for the end, whichever comes first.
    fn until_the_end(&mut self, signal: &AtomicUsize, timeout: Duration) -> io::Result<Ended> {
        let booted = Instant::now();
        loop {
            let number = signal.load(Ordering::Relaxed);
            if number != 0 {
                return Ok(Ended::Signalled(number as u8));
            }
            if let Ok((index, news)) = self.news.recv_timeout(LOOK)
                && let Some(ended) = self.take(index, news)?
            {
                return Ok(ended);
            }
            self.free_locked_processors();
            match self.began {
                Some(began) if began.elapsed() > timeout => return Ok(Ended::TimedOut),
                None if booted.elapsed() > BOOT_LIMIT => {
                    let what = format!("was not ready within {} s", BOOT_LIMIT.as_secs());
                    return Err(self.machines[0].fault(&what));
                }
                _ => {}
            }
        }
    }

    /// Frees processors that the emulator holds, see `debugger.rs`.
    fn free_locked_processors(&self) {
        for machine in self.machines {
            let number = machine.number;
            match machine.free_locked_processor() {
                Ok(false) => {}
                Ok(true) => {
                    (self.tell)(&format!(
                        "freed a processor of machine {number} that was locked up"
                    ));
                }
                Err(error) => {
                    (self.tell)(&format!(
                        "a processor of machine {number} is locked up; freeing it: {error}"
                    ));
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
                    self.machines[self.ready - 1].begin();
                }
            }
            News::Running => match index.checked_sub(1) {
                Some(next) => self.machines[next].begin(),
                None => self.began = Some(Instant::now()),
            },
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
}

/// A thread for each port.
fn listen(
    index: usize,
    [control, out, err]: Ports,
    sender: &Sender<Heard>,
) -> io::Result<Vec<JoinHandle<()>>> {
    const READ: &str = "read what a machine says";
    let [rx, from_out, from_err] = [(); 3].map(|()| sender.clone());
    let hearing = threads::spawn(READ, move || hear(control, index, &rx))?;
    let passing = if index == 0 {
        [
            threads::spawn(READ, move || pass(out, io::stdout(), &from_out))?,
            threads::spawn(READ, move || pass(err, io::stderr(), &from_err))?,
        ]
    } else {
        [
            threads::spawn(READ, move || pass_lines(out))?,
            threads::spawn(READ, move || pass_lines(err))?,
        ]
    };
    Ok([hearing].into_iter().chain(passing).collect())
}

fn hear(control: UnixStream, index: usize, sender: &Sender<Heard>) {
    let mut control = BufReader::new(control);
    let mut line = String::new();
    while let Ok(1..) = control.by_ref().take(LINE).read_line(&mut line) {
        let news = understood(line.trim_end());
        if news.is_some_and(|news| sender.send((index, news)).is_err()) {
            return;
        }
        line.clear();
    }
    let _ = sender.send((index, News::Gone));
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
fn pass(mut from: UnixStream, mut to: impl Write, sender: &Sender<Heard>) {
    let mut piece = vec![0; PIECE];
    let mut wanted = true;
    while let Ok(size @ 1..) = from.read(&mut piece) {
        if wanted && to.write_all(&piece[..size]).and_then(|()| to.flush()).is_err() {
            wanted = false;
            let _ = sender.send((0, News::Unread));
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
        let _ = io::stderr().write_all(&[b"peer: ", text, b"\n"].concat());
        line.clear();
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
}
