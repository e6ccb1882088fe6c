//! A remote host: reached and probed before anything is measured, and left as it was.

use crate::process::{Agent, AgentMessage};
use crate::program::{AgentProgram, identity};
use crate::ssh::{CHECK, GREETING, Session};
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::frame::FrameError;
use wiregauge_measure::control::program::ProgramIdentity;
use wiregauge_measure::control::protocol::*;
use wiregauge_plan::HostSpec;
use wiregauge_plan::host_spec::quoted;
use wiregauge_transport::{Role, Site, TransportKind};

/// Time limit of copying this program.
const COPY: Duration = Duration::from_secs(300);
/// Time limit of its removal.
const REMOVAL: Duration = Duration::from_secs(10);
/// Another host that was reached and probed.
pub struct RemoteHost {
    /// How agents are started there.
    pub session: Session,
    /// Its properties.
    pub probe: HostProbe,
    /// This host's address towards it, if no interface was named.
    pub own: Option<IpAddr>,
    pushed: Option<Pushed>,
}

impl RemoteHost {
    /// Returns whether its kernel is this host's: it is a network namespace or a container here.
    pub fn shares_kernel(&self) -> bool {
        let own = wiregauge_host::boot();
        own.is_some() && self.probe.boot == own
    }

    /// Reaches a host and probes it. Copies `program` there if requested.
    pub fn reach(
        spec: &HostSpec,
        request: HostProbeRequest,
        program: &AgentProgram,
        interrupted: &AtomicBool,
    ) -> Result<RemoteHost, Fault> {
        let mut session = Session::new(Some(spec.clone()), program);
        let mut pushed = None;
        if spec.push {
            let put = Pushed::put(&session, program, interrupted)?;
            session.start_from(put.file());
            pushed = Some(put);
        }
        let named = request.interface.is_some();
        let has_site = |one: &TransportKind| one.has_setting("interface");
        let needs_site = request.transports.iter().any(has_site);
        let (mut agent, _, probe) =
            ask(&session, ToAgent::Probe(request), interrupted, |said| match said {
                FromAgent::Probed(probe) => Some(*probe),
                _ => None,
            })?;
        let _ = agent.close();
        let own = match probe.address {
            _ if named => None,
            Some(address) => Some(wiregauge_host::address_towards(address).map_err(|error| {
                Fault::new(format!(
                    "no route to {address}, the address of {} ({error}): name a network interface \
                     of each host with --interface",
                    session.host()
                ))
            })?),
            None if needs_site => {
                return Err(Fault::Refused(format!(
                    "{} to {} gives no address that both hosts can use for data: name a network \
                     interface of each with --interface",
                    session.carrier(),
                    session.host()
                )));
            }
            None => None,
        };
        Ok(RemoteHost { session, probe, own, pushed })
    }

    /// The address of the remote end (the server's) or of this host's end, if no interface was
    /// named.
    pub fn site(&self, role: Role) -> Option<Site> {
        match role {
            Role::Server => Some(Site::Session),
            Role::Client | Role::Node => self.own.map(Site::Address),
        }
    }

    /// Removes the copied program.
    pub fn leave(mut self) -> Result<(), String> {
        self.pushed.take().map_or(Ok(()), |mut pushed| pushed.remove())
    }
}

/// An agent that has answered a request, its further messages, and the answer.
pub(super) type Answered<T> = (Agent, Receiver<AgentMessage>, T);

/// Starts an agent and sends it one request, to which `answer` picks the answer.
pub(super) fn ask<T>(
    session: &Session,
    request: ToAgent,
    interrupted: &AtomicBool,
    answer: impl Fn(FromAgent) -> Option<T>,
) -> Result<Answered<T>, Fault> {
    let (tx, rx) = mpsc::sync_channel(1);
    let mut agent = Agent::start(session, 0, Role::Server, tx)?;
    let mut request = Some(request);
    let deadline = Instant::now() + GREETING;
    loop {
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        let said = match rx.recv_timeout(CHECK) {
            Ok(heard) => heard.message,
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => continue,
            Err(_) => return Err(session.late(GREETING)),
        };
        match (said, request.take()) {
            (Ok(FromAgent::Welcome { tool, .. }), _) if tool != env!("CARGO_PKG_VERSION") => {
                return Err(another_version(session, &format!("is version {tool}")));
            }
            (Ok(FromAgent::Welcome { program, .. }), Some(request)) => {
                check_program(session, program.as_ref())?;
                agent.send(&request);
            }
            (Ok(FromAgent::Refused { wrong_use, sentence }), _) => {
                return Err(Fault::of_agent(wrong_use, format!("{}: {sentence}", session.host())));
            }
            (Ok(said), request) => match answer(said).filter(|_| request.is_none()) {
                Some(answer) => return Ok((agent, rx, answer)),
                None => return Err(another_version(session, "sent an unexpected message")),
            },
            (Err(error), _) => return Err(unanswered(session, agent, &error)),
        }
    }
}

/// Refuses another program on another host; nothing is said of one that was not asked.
///
/// # Errors
/// A sentence with both hashes.
pub fn check_program(session: &Session, told: Option<&ProgramIdentity>) -> Result<(), Fault> {
    let Some(told) = told else { return Ok(()) };
    let own = identity()?;
    ensure!(
        own.fits(told),
        Fault::Refused(format!(
            "wiregauge on {} is another build than this one (SHA-256 {} and {}): install the same \
             on both, or copy it with --push",
            session.host(),
            told.short(),
            own.short()
        ))
    );
    Ok(())
}

fn another_version(session: &Session, how: &str) -> Fault {
    let sentence = format!(
        "wiregauge on {} {how}, and this one is version {} with version {VERSION} of the control \
         protocol: install the same on both, or copy it with --push",
        session.host(),
        env!("CARGO_PKG_VERSION")
    );
    Fault::Refused(sentence)
}

/// Why there was no valid answer.
fn unanswered(session: &Session, mut agent: Agent, error: &FrameError) -> Fault {
    match error {
        // Text, read as a length, is far too long.
        FrameError::TooLong(_) => Fault::new(format!(
            "the shell start-up files on {host} print text: they must print nothing without a \
             terminal (test with `ssh {host} true`)",
            host = session.host()
        )),
        FrameError::Foreign(_) => another_version(session, "speaks another protocol"),
        FrameError::Closed | FrameError::Channel(_) => {
            let status = agent.close();
            session.failed(status, agent.last_line())
        }
    }
}

/// A copy of this program in a new private folder of the host. Dropping it removes it.
struct Pushed {
    session: Session,
    folder: Option<String>,
}

impl Pushed {
    fn put(
        session: &Session,
        program: &AgentProgram,
        interrupted: &AtomicBool,
    ) -> Result<Pushed, Fault> {
        let opened = wiregauge_host::open_file(program.file());
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| {
            Fault::new(format!(
                "reading {}, the file of this program: {error}",
                program.path().display()
            ))
        })?;
        // mktemp(1) makes a private folder. A partial copy is removed.
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
                "copying to {}: mktemp returned no plain path",
                session.host()
            ))),
        }
    }

    fn file(&self) -> String {
        format!("{}/wiregauge", self.folder.as_deref().unwrap_or_default())
    }

    fn remove(&mut self) -> Result<(), String> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let script = format!("rm -f {folder}/wiregauge && rmdir {folder}");
        // Also after an interrupt.
        let done = self.session.output(&script, Stdio::null(), REMOVAL, &AtomicBool::new(false));
        done.map(drop).map_err(|fault| {
            format!("{folder} was not removed on {}: {fault}", self.session.host())
        })
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// An absolute path without characters that a shell interprets.
fn plain_folder(output: &str) -> Option<&str> {
    let folder = output.trim_end();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    let is_plain = folder.len() > 1 && folder.starts_with('/') && folder.bytes().all(plain);
    is_plain.then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_folder_is_used_and_removed() {
        assert_eq!(plain_folder("/tmp/tmp.Xy_1-z\n"), Some("/tmp/tmp.Xy_1-z"));
        for said in ["", "/", "tmp", "/tmp/a b", "/tmp/$(x)", "/tmp/a\n/tmp/b", "Welcome!\n/tmp/x"]
        {
            assert_eq!(plain_folder(said), None, "{said}");
        }
    }
}
