//! The other host: its agent is started by the system's ssh, whose standard input and output are
//! the control channel. Nothing listens there for control, and the far side takes no options.
//! Where an agent stands, a process of this program takes ssh's place
//! ([`crate::remote::daemon::dial`]).
//!
//! The user's configuration, jump hosts and keys are ssh's own business. It is only told not to ask
//! (`BatchMode`) and to make no terminal, so that what fails, fails in a sentence.

use crate::agent::serve::PLAY;
use crate::control::fault::Fault;
use crate::control::frame::FrameError;
use crate::control::protocol::*;
use crate::control::secret;
use crate::host;
use crate::plan::Far;
use crate::plan::far::{JobKey, quoted};
use crate::remote::daemon::dial::{DIAL, KEY_VARIABLE};
use crate::remote::process::{Agent, Place, Tail};
use crate::transport::{Role, Site, TransportKind};
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long ssh may take until the agent greets: a name is looked up, keys are tried, jump hosts
/// are passed.
pub const GREETING: Duration = Duration::from_secs(30);
/// How long a copy of this program may take.
const COPY: Duration = Duration::from_secs(300);
/// How long its removal may take.
const REMOVAL: Duration = Duration::from_secs(10);
/// Between two looks at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);
/// Most that is read of what a command there prints: the path of a folder.
const LONGEST_PATH: u64 = 4096;
/// Exit codes of ssh itself, and of a shell that finds no command or cannot execute it.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;
const NOT_EXECUTED: i32 = 126;
/// The exit code of the way to an agent that does not let this host in.
const DIAL_REFUSED: i32 = 2;

/// How agents are started on another host.
#[derive(Clone, Debug)]
pub struct Session {
    host: String,
    way: Way,
}

/// How its control channel gets there.
#[derive(Clone, Debug)]
enum Way {
    /// By ssh with its own arguments; the agent's command is for the shell there.
    Ssh { ssh: Vec<String>, agent: String },
    /// By this program, to the agent that stands at this host and port.
    Standing { program: PathBuf, at: String, key: Option<JobKey> },
}

impl Session {
    fn new(far: &Far, program: &Path) -> Session {
        let way = match far.agent.clone() {
            Some(at) => Way::Standing { program: program.into(), at, key: far.key },
            None => {
                let binary = far.binary.as_deref().map_or("wiregauge".into(), quoted);
                Way::Ssh { ssh: far.ssh.clone(), agent: format!("{binary} {PLAY}") }
            }
        };
        Session { host: far.host.clone(), way }
    }

    /// The host as it was named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// An agent there.
    pub(crate) fn agent(&self) -> Command {
        match &self.way {
            Way::Ssh { ssh, agent } => self.run(ssh, agent),
            Way::Standing { program, at, key } => {
                let mut dial = Command::new(program);
                dial.args([DIAL, at]).env_remove(KEY_VARIABLE);
                if let Some(JobKey(key)) = key {
                    dial.env(KEY_VARIABLE, secret::to_hex(key));
                }
                dial
            }
        }
    }

    /// A command there. A host's name never begins with a dash: it was refused when it was typed.
    fn run(&self, ssh: &[String], command: &str) -> Command {
        let (program, arguments) = ssh.split_first().map_or(("ssh", &[][..]), |(p, a)| (p, a));
        let mut ssh = Command::new(program);
        ssh.args(arguments).args(["-T", "-o", "BatchMode=yes", &self.host, command]);
        ssh
    }

    /// What carries the control channel, for sentences.
    pub(crate) fn carrier(&self) -> &'static str {
        match self.way {
            Way::Ssh { .. } => "ssh",
            Way::Standing { .. } => "the connection",
        }
    }

    /// Runs a command there to its end; what it printed, or why it failed.
    fn output(
        &self,
        command: &str,
        input: Stdio,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, Fault> {
        let what = |error: std::io::Error| Fault::new(format!("ssh to {}: {error}", self.host));
        let Way::Ssh { ssh, .. } = &self.way else {
            return Err(Fault::new("an agent that stands runs no other commands"));
        };
        let mut child = self
            .run(ssh, command)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(what)?;
        let errors = child.stderr.take().map(Tail::of);
        let deadline = Instant::now() + limit;
        let status = loop {
            match child.try_wait().map_err(what)? {
                Some(status) => break status,
                None if interrupted.load(Ordering::Relaxed) || Instant::now() > deadline => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match interrupted.load(Ordering::Relaxed) {
                        true => Fault::interrupted(),
                        false => self.late(limit),
                    });
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let line = errors.and_then(|errors| errors.last_line());
        if !status.success() {
            return Err(self.failed(Some(status), line));
        }
        let mut said = String::new();
        if let Some(output) = child.stdout.take() {
            output.take(LONGEST_PATH).read_to_string(&mut said).map_err(what)?;
        }
        Ok(said)
    }

    fn late(&self, limit: Duration) -> Fault {
        let seconds = limit.as_secs();
        let carrier = self.carrier();
        Fault::new(format!("{} did not answer over {carrier} within {seconds} s", self.host))
    }

    /// Why a command there did not do its work.
    fn failed(&self, status: Option<ExitStatus>, line: Option<String>) -> Fault {
        let host = &self.host;
        if let Way::Standing { .. } = self.way {
            // Its own process has the sentence.
            let nothing = || format!("the agent that stands on {host} closed the connection");
            let wrong_use = status.and_then(|status| status.code()) == Some(DIAL_REFUSED);
            return Fault { wrong_use, ..Fault::new(line.unwrap_or_else(nothing)) };
        }
        let said = line.map(|line| format!(" ({line})")).unwrap_or_default();
        Fault::new(match status.and_then(|status| status.code()) {
            Some(SSH_FAILED) => format!("ssh to {host} failed{said}"),
            Some(NOT_FOUND) => format!(
                "there is no wiregauge on {host} where its shell looks{said}; name its file with \
                 --remote-binary, or have it copied with --push"
            ),
            Some(NOT_EXECUTED) => format!(
                "wiregauge on {host} cannot be executed{said}; name another file with \
                 --remote-binary"
            ),
            Some(code) => format!("the command on {host} ended with code {code}{said}"),
            None => format!("ssh to {host} was ended{said}"),
        })
    }
}

/// Another host that was reached and looked at.
pub struct There {
    /// How agents are started there.
    pub session: Session,
    /// What it is.
    pub seen: Seen,
    /// Where this host's end is to be reached, where no interface was named.
    pub own: Option<IpAddr>,
    pushed: Option<Pushed>,
}

impl There {
    /// Reaches a host and looks at it. `program` is copied there where that was asked for.
    pub fn reach(
        far: &Far,
        look: Look,
        program: &Path,
        interrupted: &AtomicBool,
    ) -> Result<There, Fault> {
        let mut session = Session::new(far, program);
        let pushed = match far.push {
            true => Some(Pushed::put(&session, program, interrupted)?),
            false => None,
        };
        if let (Some(pushed), Way::Ssh { agent, .. }) = (&pushed, &mut session.way) {
            *agent = format!("{} {PLAY}", quoted(&pushed.file()));
        }
        let named = look.interface.is_some();
        let has_site = |one: &TransportKind| one.descriptor().options.contains(&"interface");
        let needs_site = look.transports.iter().any(has_site);
        let seen = look_at(&session, look, interrupted)?;
        let own = match seen.address {
            _ if named => None,
            Some(address) => Some(host::address_towards(address).map_err(|error| {
                Fault::new(format!(
                    "this host has no route to {address}, where {} was reached ({error}); name a \
                     network interface of each with --interface",
                    session.host
                ))
            })?),
            None if needs_site && !named => {
                return Err(Fault {
                    wrong_use: true,
                    ..Fault::new(format!(
                        "{} reached {} by no address that both hosts can use; name a network \
                         interface of each with --interface",
                        session.carrier(),
                        session.host
                    ))
                });
            }
            None => None,
        };
        Ok(There { session, seen, own, pushed })
    }

    /// Where an end is to be reached that is there (the server's) or here, where no interface was
    /// named.
    pub fn site(&self, role: Role) -> Option<Site> {
        match role {
            Role::Server => Some(Site::Session),
            Role::Client => self.own.map(Site::Address),
        }
    }

    /// Takes back what was copied; why that failed.
    pub fn leave(mut self) -> Result<(), String> {
        self.pushed.take().map_or(Ok(()), |mut pushed| pushed.remove())
    }
}

/// Asks an agent there what there is.
fn look_at(session: &Session, look: Look, interrupted: &AtomicBool) -> Result<Seen, Fault> {
    let (mouth, ears) = mpsc::channel();
    let started = Agent::start(Place::There(session), Role::Server, VERSION, mouth);
    let mut agent = started.map_err(Fault::new)?;
    let mut look = Some(look);
    let deadline = Instant::now() + GREETING;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Fault::interrupted());
        }
        let said = match ears.recv_timeout(LOOK) {
            Ok(heard) => heard.said,
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => continue,
            Err(_) => return Err(session.late(GREETING)),
        };
        match said {
            Ok(FromAgent::Welcome { tool, .. }) if tool != env!("CARGO_PKG_VERSION") => {
                return Err(another_version(session, &format!("is version {tool}")));
            }
            Ok(FromAgent::Welcome { .. }) if look.is_some() => {
                look.take().into_iter().for_each(|look| agent.say(&ToAgent::Look(look)));
            }
            Ok(FromAgent::Seen(seen)) if look.is_none() => {
                let _ = agent.close();
                return Ok(*seen);
            }
            Ok(FromAgent::Refused { wrong_use, sentence }) => {
                let sentence = format!("{}: {sentence}", session.host);
                return Err(Fault { sentence, wrong_use, interrupted: false });
            }
            Ok(_) => return Err(another_version(session, "answers as no agent of this one does")),
            Err(error) => return Err(unanswered(session, agent, &error)),
        }
    }
}

fn another_version(session: &Session, how: &str) -> Fault {
    let sentence = format!(
        "wiregauge on {} {how}, and this one is version {} with version {VERSION} of the control \
         protocol; install the same on both, or have it copied with --push",
        session.host,
        env!("CARGO_PKG_VERSION")
    );
    Fault { wrong_use: true, ..Fault::new(sentence) }
}

/// Why no agent spoke.
fn unanswered(session: &Session, mut agent: Agent, error: &FrameError) -> Fault {
    match error {
        // A letter is far too long a length.
        FrameError::TooLong(_) => Fault::new(format!(
            "{host} prints text where an agent should speak: its shell's start-up files must print \
             nothing where there is no terminal (`ssh {host} true` shows it)",
            host = session.host
        )),
        FrameError::Foreign(_) => another_version(session, "speaks another protocol"),
        FrameError::Closed | FrameError::Channel(_) => {
            let status = agent.close();
            session.failed(status, agent.last_line())
        }
    }
}

/// This program in a fresh private folder there. Goes when it is dropped.
struct Pushed {
    session: Session,
    folder: Option<String>,
}

impl Pushed {
    fn put(session: &Session, program: &Path, interrupted: &AtomicBool) -> Result<Pushed, Fault> {
        let opened = File::open(program).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| {
            Fault::new(format!("reading this program's file {}: {error}", program.display()))
        })?;
        // mktemp(1) makes the folder for this user alone. One that came in part is taken back.
        let script = format!(
            "d=$(mktemp -d) || exit 1; cat >\"$d/wiregauge\" && chmod 700 \"$d/wiregauge\" && \
             [ $(wc -c <\"$d/wiregauge\") -eq {bytes} ] && echo \"$d\" && exit; rm -rf \"$d\"; \
             exit 1"
        );
        let command = format!("sh -c {}", quoted(&script));
        let folder = session.output(&command, Stdio::from(file), COPY, interrupted)?;
        match plain_folder(&folder) {
            Some(folder) => Ok(Pushed { session: session.clone(), folder: Some(folder.into()) }),
            None => Err(Fault::new(format!(
                "copying to {}: mktemp there made no folder with a plain name",
                session.host
            ))),
        }
    }

    fn file(&self) -> String {
        format!("{}/wiregauge", self.folder.as_deref().unwrap_or_default())
    }

    fn remove(&mut self) -> Result<(), String> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let script = format!("rm -f {folder}/wiregauge && rmdir {folder}");
        // Also after a Ctrl-C.
        let done = self.session.output(&script, Stdio::null(), REMOVAL, &AtomicBool::new(false));
        done.map(drop)
            .map_err(|fault| format!("{folder} stays on {}: {}", self.session.host, fault.sentence))
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// A path that is one and that no shell reads otherwise.
fn plain_folder(said: &str) -> Option<&str> {
    let folder = said.trim_end();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    let is_plain = folder.len() > 1 && folder.starts_with('/') && folder.bytes().all(plain);
    is_plain.then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(binary: Option<&str>) -> Far {
        let ssh = ["ssh", "-F", "a b"].map(String::from).to_vec();
        let binary = binary.map(String::from);
        Far { host: "node07".into(), ssh, binary, ..Far::default() }
    }

    #[test]
    fn ssh_is_told_its_own_arguments_not_to_ask_and_the_agent() {
        let command = Session::new(&far(Some("/opt/it's")), Path::new("")).agent();
        let arguments: Vec<&str> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(command.get_program(), "ssh");
        let asked =
            ["-F", "a b", "-T", "-o", "BatchMode=yes", "node07", r"'/opt/it'\''s' play-role"];
        assert_eq!(arguments, asked);
        let plain = Session::new(&far(None), Path::new("")).agent();
        assert_eq!(plain.get_args().last().unwrap(), "wiregauge play-role");
    }

    #[test]
    fn only_a_plain_folder_is_used_and_removed() {
        assert_eq!(plain_folder("/tmp/tmp.Xy_1-z\n"), Some("/tmp/tmp.Xy_1-z"));
        for said in ["", "/", "tmp", "/tmp/a b", "/tmp/$(x)", "/tmp/a\n/tmp/b", "Welcome!\n/tmp/x"]
        {
            assert_eq!(plain_folder(said), None, "{said}");
        }
    }
}
