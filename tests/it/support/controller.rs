//! A real run of the program, watched from outside: its agents, how far it is, how it ends.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wiregauge::record::schema::Record;
use wiregauge::record::{SampleReader, read_record};
use wiregauge::sample::{Flags, Sample};
use wiregauge_test_support::bounded::{Bound, LIMIT, LOOK, SOON, until, until_some};

/// One test at a time: two runs at once whose ends spin on the same CPUs take a scheduler's slice
/// for a message.
static TURN: Mutex<()> = Mutex::new(());

/// A directory under `target/` that goes away with its owner, the turn to run something, the bound
/// of its time, and the words before the program that put it into another place.
pub struct Scratch(
    pub PathBuf,
    Mutex<Vec<String>>,
    #[allow(dead_code, reason = "held until it is dropped")] Bound,
    #[allow(dead_code, reason = "held until it is dropped")] MutexGuard<'static, ()>,
);

impl Scratch {
    /// A fresh one.
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // A test that failed has had its turn.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("faults-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path, Mutex::default(), Bound::new(), turn)
    }

    /// Has what is run from now on run behind these words.
    pub fn run_behind(&self, words: &[&str]) {
        *self.1.lock().unwrap() = words.iter().map(|word| word.to_string()).collect();
    }

    /// The program, wherever it is to run.
    fn program(&self) -> Command {
        let words = self.1.lock().unwrap();
        let mut all = words.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_wiregauge")]);
        let mut command = Command::new(all.next().unwrap());
        command.args(all);
        command
    }

    /// A path in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process: its number and when it was started, which no other ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    started: u64,
    /// Its number.
    pub pid: i32,
}

impl Process {
    /// Reads `/proc/PID/stat`: the process and its parent. `None`: gone, or a zombie.
    fn read(pid: i32) -> Option<(Process, i32)> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let (state, parent, started) = (after[0], after[1].parse().ok()?, after[19].parse().ok()?);
        (state != "Z").then_some((Process { started, pid }, parent))
    }

    fn lives(&self) -> bool {
        Process::read(self.pid).is_some_and(|(process, _)| process == *self)
    }

    /// Stops it, and waits until all of its threads stand still: only then is it stopped for the
    /// kernel, which the leader's own state does not say.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        until("it stands still", LIMIT, || {
            let mut threads = fs::read_dir(format!("/proc/{}/task", self.pid)).unwrap();
            threads.all(|thread| {
                let text = fs::read_to_string(thread.unwrap().path().join("stat"));
                text.is_ok_and(|text| text.rsplit_once(')').unwrap().1.starts_with(" T"))
            })
        });
    }

    /// Sends it a signal, if it is still the one.
    pub fn signal(&self, signal: Signal) {
        assert!(self.lives(), "{self:?} ended by itself");
        kill_process(Pid::from_raw(self.pid).unwrap(), signal).unwrap();
    }
}

/// A running program.
pub struct Controller {
    child: Child,
    out: PathBuf,
    agents: RefCell<Vec<Process>>,
    dir: PathBuf,
    told: Instant,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None`: by a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said beside.
    pub stderr: String,
    /// From the last signal (or the start) to the end.
    pub took: Duration,
    /// Agents that were seen and were still there long after.
    pub survivors: Vec<i32>,
}

impl Controller {
    /// Starts the program in a directory, in a process group of its own.
    pub fn start(scratch: &Scratch, arguments: &[&str]) -> Controller {
        let mut program = scratch.program();
        program.args(arguments);
        Controller::of(scratch, program)
    }

    /// Starts any command so.
    pub fn of(scratch: &Scratch, command: Command) -> Controller {
        Controller::with_input(scratch, command, Stdio::null())
    }

    /// Starts any command so, with this input.
    pub fn with_input(scratch: &Scratch, mut command: Command, input: Stdio) -> Controller {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let out = std::env::temp_dir().join(format!("wg-{}-{number}", std::process::id()));
        // Files, since a process that stays behind would hold a pipe open.
        let child = command
            .stdin(input)
            .stdout(File::create(out.with_extension("out")).unwrap())
            .stderr(File::create(out.with_extension("err")).unwrap())
            .current_dir(&scratch.0)
            .process_group(0)
            .spawn()
            .unwrap();
        let dir = scratch.0.clone();
        Controller { child, out, agents: Default::default(), dir, told: Instant::now() }
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).unwrap()
    }

    /// Its agents, the server first.
    pub fn agents(&self) -> Vec<Process> {
        let mut agents: Vec<Process> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(Process::read)
            .filter(|(_, parent)| *parent == self.child.id() as i32)
            .map(|(process, _)| process)
            .collect();
        // Of two that were started in one tick the later has the next number, which begins again
        // behind the greatest.
        let limit = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
        let limit: i32 = limit.trim().parse().unwrap();
        let own = self.child.id() as i32;
        agents.sort_by_key(|agent| (agent.started, (agent.pid - own).rem_euclid(limit)));
        self.agents.borrow_mut().extend(&agents);
        agents
    }

    /// Waits until so many messages of a round have passed, as its sample memory tells.
    pub fn await_messages(&self, messages: u64) {
        self.wait("messages", || {
            let fds = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
            let memory = fds.filter_map(|fd| Some(fd.ok()?.path())).filter(|fd| {
                let link = fs::read_link(fd).unwrap_or_default();
                link.to_string_lossy().contains("wiregauge-samples")
            });
            let progress = memory.filter_map(|fd| {
                let mut word = [0; 8];
                File::open(fd).ok()?.read_exact(&mut word).ok()?;
                Some(u64::from_le_bytes(word))
            });
            (progress.max()? >= messages).then_some(())
        });
        assert!(self.agents().len() >= 2, "{}", self.said());
    }

    /// Waits until the run has made its hidden directory.
    pub fn await_hidden_directory(&self) {
        self.wait("the hidden directory", || hidden(&self.dir).map(drop));
    }

    /// Waits until the samples of a first round are in the file.
    pub fn await_round(&self) {
        self.wait("samples in the file", || {
            let file = self.dir.join(hidden(&self.dir)?).join("samples.parquet");
            (file.metadata().ok()?.len() > 1000).then_some(())
        });
    }

    fn wait(&self, what: &str, seen: impl Fn() -> Option<()>) {
        until_some(what, LIMIT, || {
            let over = Process::read(self.child.id() as i32).is_none();
            let seen = seen();
            assert!(!over || seen.is_some(), "no {what}: {}", self.said());
            seen
        });
    }

    fn said(&self) -> String {
        ["out", "err"]
            .map(|end| fs::read_to_string(self.out.with_extension(end)).unwrap_or_default())
            .concat()
    }

    /// Signals the controller alone.
    pub fn signal(&self, signal: Signal) {
        self.agents();
        kill_process(self.pid(), signal).unwrap();
    }

    /// Signals its process group.
    pub fn signal_group(&self, signal: Signal) {
        self.agents();
        kill_process_group(self.pid(), signal).unwrap();
    }

    /// Waits for its end, and whether its agents end too.
    pub fn end(mut self) -> Ended {
        self.told = Instant::now();
        let deadline = self.told + LIMIT;
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if Instant::now() < deadline => std::thread::sleep(LOOK),
                None => panic!("no end within {LIMIT:?}: {}", self.said()),
            }
        };
        let took = self.told.elapsed();
        let deadline = Instant::now() + SOON;
        let agents = self.agents.borrow().clone();
        while agents.iter().any(Process::lives) && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        let survivors = agents.iter().filter(|agent| agent.lives()).map(|a| a.pid).collect();
        let read = |end| fs::read(self.out.with_extension(end)).unwrap();
        let text = |end| String::from_utf8_lossy(&read(end)).into_owned();
        Ended { code, stdout: text("out"), stderr: text("err"), took, survivors }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for agent in self.agents.borrow().iter().filter(|agent| agent.lives()) {
            let _ = kill_process(Pid::from_raw(agent.pid).unwrap(), Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        for end in ["out", "err"] {
            let _ = fs::remove_file(self.out.with_extension(end));
        }
    }
}

impl Ended {
    /// The hidden directory that a killed run left.
    pub fn hidden(&self, scratch: &Scratch) -> String {
        hidden(&scratch.0).expect("a killed run leaves its hidden directory")
    }
}

fn hidden(dir: &Path) -> Option<String> {
    let names = fs::read_dir(dir).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
    names.into_iter().find(|name| name.contains(".partial-"))
}

/// A copy of the program that every user may run: the folder of the build may be closed to them.
pub struct PublicCopy(pub PathBuf);

impl PublicCopy {
    pub fn new() -> PublicCopy {
        let path = std::env::temp_dir().join(format!("wiregauge-for-all-{}", std::process::id()));
        fs::copy(env!("CARGO_BIN_EXE_wiregauge"), &path).unwrap();
        PublicCopy(path)
    }
}

impl Drop for PublicCopy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the program to its end.
pub fn wiregauge(scratch: &Scratch, arguments: &[&str]) -> Ended {
    Controller::start(scratch, arguments).end()
}

/// Copies a run directory as that of a run which was started before.
pub fn copy_as_earlier(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let path = to.join("record.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["started"] = "2026-01-01T00:00:00Z".into();
    fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
}

/// The words of a line.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Runs a command to its end; what it kept.
pub fn measured(command: &str, line: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    let ended = wiregauge(&scratch, &words(&format!("{command} --out run {line}")));
    assert_eq!(ended.code, Some(0), "{command} {line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    (scratch, record)
}

/// The samples of a run that was kept; rounds stand in the order in which they were executed.
pub fn samples(scratch: &Scratch, run: u32) -> Vec<Sample> {
    let rounds = SampleReader::open(&scratch.join("run/samples.parquet")).unwrap();
    let own = rounds.map(|round| round.unwrap()).filter(|round| round.run == run);
    own.flat_map(|round| round.samples).collect()
}

/// Runs a command whose server stands still and is then killed; what it kept, and how many requests
/// were lost.
pub fn server_dies(line: &str) -> (Scratch, Record, usize) {
    let scratch = Scratch::new();
    let controller = Controller::start(&scratch, &words(&format!("{line} --out run")));
    controller.await_messages(500);
    let server = controller.agents()[0];
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::KILL);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.faults[0].contains("was killed by signal 9"), "{:?}", record.faults);
    let is_lost =
        |one: &&Sample| [Flags::LOST, Flags::UNFINISHED].iter().any(|flag| one.flags.has(*flag));
    let lost = samples(&scratch, 0).iter().filter(is_lost).count();
    (scratch, record, lost)
}

/// Runs a command whose client is killed; what it kept.
pub fn client_dies(line: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    let controller = Controller::start(&scratch, &words(&format!("{line} --out run")));
    controller.await_messages(500);
    controller.agents()[1].signal(Signal::KILL);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.survivors.is_empty(), "the server went on for nobody: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let fault = &record.faults[0];
    assert!(!record.complete && fault.contains("the client's process"), "{fault}");
    assert!(fault.contains("signal 9"), "{fault}");
    (scratch, record)
}
