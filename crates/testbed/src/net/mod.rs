//! Several hosts of one network, made of this machine: network namespaces joined by veth pairs.
//!
//! Takes a [`NetworkRequest`]: how many hosts, how they are joined, and a command. Makes the
//! namespaces, gives each host a name, an address and an sshd, runs the command in the first, and
//! removes everything again. `docs/testbed-net.md` explains what the command finds.
//!
//! Nothing is made in this machine's own network: the links are between the namespaces, and go with
//! them. Their names contain the number of the process that owns them; what a killed owner has left
//! is removed by the next start.
//!
//! Must never: touch an interface, a namespace or a process that it has not made.

mod hosts;
mod login;
mod wiring;

use super::Ended;
use super::tools::{Needed, lacking, require, signals, wait_until};
use hosts::Hosts;
use std::ffi::OsString;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wiregauge_base::options::named_enum;
use wiregauge_base::units::{BitRate, Span};
use wiregauge_host::child;
use wiregauge_host::pid_namespace::PidNamespace;

/// Most hosts: the links of 200 are made in some 20 s, and each has an sshd of 7 MB.
pub const MOST_HOSTS: i64 = 200;

named_enum! {
    /// How the hosts are joined.
    pub enum Topology {
        /// Each to a switch.
        Star = "star",
        /// Two by a wire.
        Pair = "pair",
        /// Each to the next, the last to the first; hosts between two pass their packets on.
        Ring = "ring",
    }
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct NetworkRequest {
    /// How many hosts.
    pub hosts: usize,
    /// How they are joined.
    pub topology: Topology,
    /// What each link carries, each way; `None`: what the machine can.
    pub rate: Option<BitRate>,
    /// What a packet takes on a host's way out.
    pub delay: Option<Span>,
    /// The command of the first host, and its arguments.
    pub command: Vec<OsString>,
}

/// What is called, in the order of Debian's packages.
const NEEDED: &[Needed] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("unshare", "util-linux"),
    ("sshd", "openssh-server"),
    ("ssh-keygen", "openssh-client"),
    ("ssh", "openssh-client"),
];
/// Between two looks at whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long the command may take to end by itself after a Ctrl-C, which its group has had too ...
const GRACE: Duration = Duration::from_secs(3);
/// ... and after SIGTERM, before it is killed.
const LAST_GRACE: Duration = Duration::from_secs(3);

/// Makes the hosts, runs the command in the first, removes the hosts. `tell` is given what a
/// person should know: what a dead owner had left.
///
/// Errors: whatever keeps the hosts from being made or the command from being started.
pub fn run(wanted: &NetworkRequest, tell: &dyn Fn(&str)) -> io::Result<Ended> {
    if !rustix::process::geteuid().is_root() {
        let sentence = "testbed net needs root to create network namespaces: run it with sudo";
        return Err(io::Error::other(sentence));
    }
    require(&lacking(NEEDED))?;
    hosts::sweep(tell);
    let signal = signals()?;
    // What the command and the hosts start ends with this process, also where that is killed.
    let namespace = PidNamespace::enter().map_err(|error| {
        io::Error::other(format!("testbed net needs a PID namespace of its own: {error}"))
    })?;
    let mut hosts = Hosts::make(wanted, &signal)?;
    let ended = match signal.load(Ordering::Relaxed) {
        0 => watch(hosts.start(&wanted.command)?, &signal),
        number => Ok(Ended::Signalled(number as u8)),
    };
    hosts.remove()?;
    drop(hosts);
    drop(namespace);
    ended
}

/// Waits for the command, or for a signal and then for the command.
fn watch(mut child: Child, signal: &AtomicUsize) -> io::Result<Ended> {
    let number = loop {
        if let Some(status) = over(&mut child) {
            return Ok(Ended::Exited(code(status)));
        }
        match signal.load(Ordering::Relaxed) {
            0 => std::thread::sleep(LOOK),
            number => break number,
        }
    };
    // A terminal sends SIGINT to the whole group; the others are for this process alone.
    let had_its_own = number == signal_hook::consts::SIGINT as usize;
    let deadline = Instant::now() + GRACE;
    if !had_its_own || wait_until(deadline, || over(&mut child)).is_none() {
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = child::wait(&mut child, LAST_GRACE, || false);
    }
    Ok(Ended::Signalled(number as u8))
}

fn over(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}

/// As a shell gives it: 128 and its number where a signal ended it.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
