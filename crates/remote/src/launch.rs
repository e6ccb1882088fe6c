//! Agents that a launcher starts together, such as mpirun: the ranks of one launch. The launcher
//! keeps their standard input and output, so they call back over a socket of this host.

use crate::launch_memory::LaunchMemory;
use crate::locked;
use crate::program::AgentProgram;
use crate::ssh::GREETING;
use crate::stderr::Tail;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wiregauge_base::threads::explain_limit;
use wiregauge_host::OomWatch;
use wiregauge_host::child::{self, Exit, OwnedChild};
use wiregauge_measure::agent::serve::RUN_ROLE;
use wiregauge_measure::control::call_back::{self, CALL_BACK_VARIABLE, Greeting};
use wiregauge_measure::control::fault::{Death, Fault};
use wiregauge_measure::control::frame;
use wiregauge_measure::control::protocol::SECRET_VARIABLE;
use wiregauge_measure::control::secret;

/// Time limit of a greeting, from a process that has connected.
const PROOF: Duration = Duration::from_secs(5);
/// How long the other ranks may take once one has come: a launcher starts them together. Less than
/// a rank waits for its greeting, so that the sentence is this one's.
const TOGETHER: Duration = Duration::from_secs(8);
/// Timeout of the end of killed ranks.
const KILLED: Duration = Duration::from_secs(2);
/// Pause between two looks for a connection.
const PAUSE: Duration = Duration::from_millis(2);

/// What a launcher that started this process has set in its environment: one that is started here
/// would take itself for one of its ranks.
const OF_LAUNCHERS: [&str; 9] = [
    "OMPI_COMM_WORLD_",
    "OMPI_MCA_ess_",
    "OMPI_MCA_orte_",
    "OMPI_UNIVERSE_",
    "PMIX_",
    "PRTE_",
    "PMI_",
    "PMI2_",
    "HYDI_",
];

/// What lets Open MPI start as many ranks as are asked for, unbound, by root too: the ranks pin
/// themselves to the CPUs that were chosen, and a machine of one core with two threads has two.
const FOR_OPEN_MPI: [(&str, &str); 6] = [
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// A launch, the connection of each rank in their order, and the secret that all of them know.
pub type Launched = (Arc<Launch>, Vec<UnixStream>, [u8; 32]);

/// A launch: its ranks are agents. Dropping the last handle kills the launcher and what is left of
/// its ranks.
pub struct Launch {
    child: Mutex<OwnedChild>,
    /// Kept open: Hydra hands the end of its input on to ranks that may be gone.
    _input: Option<ChildStdin>,
    /// What the launcher and its ranks have printed.
    said: Tail,
    name: String,
    /// The program of its ranks.
    program: AgentProgram,
    /// The processes of its ranks.
    ranks: Vec<OwnedFd>,
    /// Whether its end was described.
    is_described: AtomicBool,
    /// Removed last, when its processes have ended.
    _memory: LaunchMemory,
}

impl Launch {
    /// Starts so many ranks by a launcher's words, and gives the connection of each, in their
    /// order, with the secret that all of them know.
    pub fn start(
        words: &[String],
        program: &AgentProgram,
        ranks: usize,
        interrupted: &AtomicBool,
    ) -> Result<Launched, Fault> {
        let (known, random) = (secret::fresh()?, secret::fresh::<16>()?);
        let name = format!("wiregauge-{}", secret::to_hex(random));
        let listener = UnixListener::bind_addr(&call_back::address(&name)?)?;
        listener.set_nonblocking(true)?;
        let mut command = command(words, program, ranks)?;
        command.env(CALL_BACK_VARIABLE, &name).env(SECRET_VARIABLE, secret::to_hex(known));
        let mut launch = Launch::start_launcher(command, words, program)?;
        let mut arrived: Vec<Option<UnixStream>> = (0..ranks).map(|_| None).collect();
        let mut deadline = Instant::now() + GREETING;
        while arrived.iter().any(Option::is_none) {
            ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
            match listener.accept() {
                Ok((socket, _)) => {
                    if let Ok((rank, socket)) = admit(socket, &known)
                        && let Some(place @ None) = arrived.get_mut(rank)
                    {
                        *place = Some(socket);
                        deadline = deadline.min(Instant::now() + TOGETHER);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let missing = missing(&arrived);
                    launch.check_is_starting(deadline, &missing, ranks)?;
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let sockets: Vec<UnixStream> = arrived.into_iter().flatten().collect();
        // A rank that is gone by now has no process to kill.
        let process = |socket| {
            let pid = socket_peercred(socket).ok()?.pid;
            pidfd_open(pid, PidfdFlags::empty()).ok()
        };
        launch.ranks = sockets.iter().filter_map(process).collect();
        Ok((Arc::new(launch), sockets, known))
    }

    fn start_launcher(
        mut command: Command,
        words: &[String],
        program: &AgentProgram,
    ) -> Result<Launch, Fault> {
        let name = words.first().cloned().unwrap_or_default();
        let _memory = LaunchMemory::new();
        _memory.set(&mut command);
        let (output, to) = io::pipe()?;
        command.stdin(Stdio::piped()).stdout(to.try_clone()?).stderr(to).process_group(0);
        let said = Tail::of(output)?;
        let spawned = command.spawn();
        // Else the pipe would stay open with the launcher gone.
        drop(command);
        let mut child = spawned.map_err(|error| {
            let error = explain_limit(&error);
            Fault::Refused(format!("starting {name}: {error} (choose a launcher with --mpirun)"))
        })?;
        let _input = child.stdin.take();
        let is_described = AtomicBool::new(false);
        let child = Mutex::new(OwnedChild(child));
        let program = program.clone();
        let ranks = Vec::new();
        Ok(Launch { child, _input, said, name, program, ranks, is_described, _memory })
    }

    /// Returns the program of its ranks.
    pub(super) fn program(&self) -> &AgentProgram {
        &self.program
    }

    /// An error where the launcher has ended, or takes too long, with these of all ranks missing.
    fn check_is_starting(
        &self,
        deadline: Instant,
        missing: &[usize],
        ranks: usize,
    ) -> Result<(), Fault> {
        let said = || self.said.telling_line().map(|line| format!(" ({line})"));
        let said = || said().unwrap_or_default();
        let (name, came) = (&self.name, ranks - missing.len());
        if let Some(status) = locked(&self.child).0.try_wait()? {
            let how = how(status).unwrap_or_else(|| "ended".into());
            let who = if came == 0 { "its ranks".into() } else { numbered(missing) };
            return Err(Fault::new(format!("{name} {how} before {who} had come{}", said())));
        }
        if Instant::now() < deadline {
            return Ok(());
        }
        let sentence = match came {
            0 => format!("{name} started no ranks within {} s{}", GREETING.as_secs(), said()),
            _ => format!(
                "{name} started {came} of {ranks} ranks: {} did not come within {} s{}",
                numbered(missing),
                TOGETHER.as_secs(),
                said()
            ),
        };
        Err(Fault::new(format!(
            "{sentence}; its command (--mpirun) must start {ranks} on this host with '-n {ranks}'"
        )))
    }

    /// Which of the named ranks has ended the others, in words: a launcher ends all of them when
    /// one is gone. Which connection was seen to end first says less than what the launcher said.
    pub fn first_gone(&self, names: &[String], seen: Option<String>) -> Option<String> {
        let named = culprit(&self.said.text(), names.len()).and_then(|rank| names.get(rank));
        named
            .map(|who| format!("{who} was gone first"))
            .or(seen.map(|who| format!("the connection of {who} was seen to end first")))
    }

    /// Kills its ranks that are left: one that is stuck in a call of its library does not see that
    /// its channel is closed, and a launcher that is killed leaves it.
    fn kill_ranks(&self) {
        for process in &self.ranks {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Waits for the launcher's exit for this time, then kills it; describes an exit that was not
    /// orderly, once. The channels of all ranks are closed by then. `memory` has watched a rank.
    pub fn end(&self, patience: Duration, memory: &OomWatch) -> Option<Death> {
        let exit = child::wait(&mut locked(&self.child).0, patience, || false);
        if self.is_described.swap(true, Ordering::Relaxed) {
            return None;
        }
        let Ok(Exit::Done(status)) = exit else {
            self.kill_ranks();
            return Some(Death::by_us(&self.name));
        };
        let line = self.said.telling_line().map(|line| format!(" ({line})")).unwrap_or_default();
        let memory = memory.explain().filter(|_| has_killed_rank(status, &self.said.text()));
        let why = memory.map(|told| format!(": {told}")).unwrap_or_default();
        Some(Death::of(format!("{} {}{line}{why}", self.name, how(status)?)))
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.kill_ranks();
        // They end before their memory is removed. A killed process that does not end is the
        // kernel's, and keeps its memory.
        let deadline = Instant::now() + KILLED;
        for process in &self.ranks {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], left.as_ref());
        }
    }
}

/// The ranks that have not come.
fn missing(arrived: &[Option<UnixStream>]) -> Vec<usize> {
    let places = arrived.iter().enumerate();
    places.filter(|(_, place)| place.is_none()).map(|(rank, _)| rank).collect()
}

/// Ranks in a sentence.
fn numbered(ranks: &[usize]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        [first, ..] => format!("rank {first} and {} others", ranks.len() - 1),
        [] => "no rank".into(),
    }
}

/// What launchers and libraries say before the number of a rank that has ended the others.
const BEFORE_A_RANK: [&str; 3] = ["invoked on rank ", "process rank ", "(rank "];

/// The rank of so many that has ended the others, by what was said. The process that MPICH's
/// launcher names is that of rank 0, whichever was killed.
fn culprit(said: &str, ranks: usize) -> Option<usize> {
    let after = |mark: &&str| {
        let (_, text) = said.split_once(*mark)?;
        text.split(|sign: char| !sign.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    BEFORE_A_RANK.iter().find_map(after).filter(|rank| *rank < ranks)
}

/// How a launcher failed. An agent that has reported why it refuses exits with 2 or 3.
fn how(status: ExitStatus) -> Option<String> {
    match (child::signal(status), status.code()) {
        (Some(signal), _) => Some(format!("was killed by {signal}")),
        (None, None | Some(0 | 2 | 3)) => None,
        (None, Some(code)) => Some(format!("ended with code {code}")),
    }
}

/// Returns true if a rank, or the launcher, was ended by SIGKILL, as the OOM killer does it.
/// Launchers exit as a shell would, or name the signal.
fn has_killed_rank(status: ExitStatus, said: &str) -> bool {
    const KILL: i32 = Signal::KILL.as_raw();
    status.signal() == Some(KILL)
        || status.code() == Some(128 + KILL)
        || said.contains(&format!("signal {KILL} "))
        || said.contains(&format!("signal {KILL})"))
}

/// The command with all of its words.
fn command(words: &[String], program: &AgentProgram, ranks: usize) -> Result<Command, Fault> {
    let (first, more) = words.split_first().ok_or("the launcher has no name")?;
    let mut command = Command::new(first);
    command.args(more).arg("-n").arg(ranks.to_string()).arg(program.path()).arg(RUN_ROLE);
    for (name, _) in std::env::vars_os() {
        let is_of_launcher =
            name.to_str().is_some_and(|name| OF_LAUNCHERS.iter().any(|of| name.starts_with(of)));
        if is_of_launcher {
            command.env_remove(name);
        }
    }
    for (name, value) in FOR_OPEN_MPI {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// Takes a connection of a rank: of this user, and with the secret.
fn admit(mut socket: UnixStream, known: &[u8; 32]) -> io::Result<(usize, UnixStream)> {
    socket.set_nonblocking(false)?;
    let peer = socket_peercred(&socket)?;
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    ensure!(peer.uid == rustix::process::getuid(), denied());
    socket.set_read_timeout(Some(PROOF))?;
    let greeting: Greeting = frame::read(&mut socket).map_err(io::Error::other)?;
    socket.set_read_timeout(None)?;
    let differences = greeting.secret.iter().zip(known).fold(0, |all, (a, b)| all | (a ^ b));
    ensure!(differences == 0, denied());
    Ok((greeting.rank as usize, socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_test_support::bounded::Bound;

    fn started(script: &str) -> Fault {
        let words = ["sh", "-c", script].map(String::from);
        let none = AgentProgram::Other("".into());
        Launch::start(&words, &none, 2, &AtomicBool::new(false)).err().unwrap()
    }

    #[test]
    fn only_sigkill_is_taken_for_the_oom_killer() {
        fn exit(code: i32) -> ExitStatus {
            ExitStatus::from_raw(code << 8)
        }
        assert!(has_killed_rank(ExitStatus::from_raw(Signal::KILL.as_raw()), ""));
        assert!(has_killed_rank(exit(137), ""));
        let open_mpi = "process rank 0 with PID 7 on node a exited on signal 9 (Killed).";
        let mpich = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)";
        for (said, is_kill) in [
            (open_mpi, true),
            (mpich, true),
            ("exited on signal 11 (Segmentation fault).", false),
            ("MPI_ABORT was invoked on rank 0", false),
        ] {
            assert_eq!(has_killed_rank(exit(1), said), is_kill, "{said}");
        }
        assert!(!has_killed_rank(ExitStatus::from_raw(Signal::TERM.as_raw()), ""));
    }

    #[test]
    fn a_launcher_that_ends_before_its_ranks_have_come_is_named_with_what_it_said() {
        let _bound = Bound::new();
        let fault = started("echo ------; echo no slots for you >&2; echo ------; exit 213");
        let said = "sh ended with code 213 before its ranks had come (no slots for you)";
        assert_eq!(fault.to_string(), said);
        assert!(started("exit 0").to_string().starts_with("sh ended before"));
    }

    #[test]
    fn the_rank_that_ended_the_others_is_found_in_a_launcher_s_words() {
        for (said, rank) in [
            ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith", Some(1)),
            ("mpirun noticed that process rank 0 with PID 0 on node vm exited on", Some(0)),
            ("Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort(", Some(1)),
            ("=   PID 71 RUNNING AT vm\n=   EXIT CODE: 9\n", None),
            ("process rank 5 is none of two", None),
            ("no slots", None),
        ] {
            assert_eq!(culprit(said, 2), rank, "{said}");
        }
    }

    #[test]
    fn a_launcher_that_is_not_there_is_refused() {
        let words = ["/no/mpirun".to_string()];
        let none = AgentProgram::Other("".into());
        let fault = Launch::start(&words, &none, 2, &AtomicBool::new(false));
        let fault = fault.err().unwrap();
        assert!(fault.is_refused() && fault.to_string().contains("--mpirun"), "{fault}");
    }

    #[test]
    fn only_who_knows_the_secret_is_a_rank() {
        let _bound = Bound::new();
        let come = |secret: [u8; 32]| {
            let (mut theirs, ours) = UnixStream::pair().unwrap();
            frame::write(&mut theirs, &Greeting { secret, rank: 1 }).unwrap();
            admit(ours, &[7; 32]).map(|(rank, _)| rank).ok()
        };
        assert_eq!(come([7; 32]), Some(1));
        assert_eq!(come([8; 32]), None);
        let (theirs, ours) = UnixStream::pair().unwrap();
        drop(theirs);
        assert!(admit(ours, &[7; 32]).is_err());
    }
}
