//! Another host before anything is measured there: reached, probed, and left as it was.

use crate::control::fault::Fault;
use crate::control::frame::FrameError;
use crate::control::protocol::*;
use crate::host;
use crate::plan::HostSpec;
use crate::plan::host_spec::quoted;
use crate::remote::process::{Agent, AgentPlace};
use crate::remote::ssh::{GREETING, LOOK, Session};
use crate::transport::{Role, Site, TransportKind};
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a copy of this program may take.
const COPY: Duration = Duration::from_secs(300);
/// How long its removal may take.
const REMOVAL: Duration = Duration::from_secs(10);
/// Another host that was reached and looked at.
pub struct RemoteHost {
    /// How agents are started there.
    pub session: Session,
    /// What it is.
    pub probe: HostProbe,
    /// Where this host's end is to be reached, where no interface was named.
    pub own: Option<IpAddr>,
    pushed: Option<Pushed>,
}

impl RemoteHost {
    /// Reaches a host and looks at it. `program` is copied there where that was asked for.
    pub fn reach(
        spec: &HostSpec,
        request: HostProbeRequest,
        program: &Path,
        interrupted: &AtomicBool,
    ) -> Result<RemoteHost, Fault> {
        let mut session = Session::new(spec, program);
        let pushed = match spec.push {
            true => Some(Pushed::put(&session, program, interrupted)?),
            false => None,
        };
        if let Some(pushed) = &pushed {
            session.start_from(&pushed.file());
        }
        let named = request.interface.is_some();
        let has_site = |one: &TransportKind| one.has_setting("interface");
        let needs_site = request.transports.iter().any(has_site);
        let probe = probe(&session, request, interrupted)?;
        let own = match probe.address {
            _ if named => None,
            Some(address) => Some(host::address_towards(address).map_err(|error| {
                Fault::new(format!(
                    "this host has no route to {address}, where {} was reached ({error}); name a \
                     network interface of each with --interface",
                    session.host()
                ))
            })?),
            None if needs_site && !named => {
                return Err(Fault::Refused(format!(
                    "{} reached {} by no address that both hosts can use; name a network \
                     interface of each with --interface",
                    session.carrier(),
                    session.host()
                )));
            }
            None => None,
        };
        Ok(RemoteHost { session, probe, own, pushed })
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
fn probe(
    session: &Session,
    request: HostProbeRequest,
    interrupted: &AtomicBool,
) -> Result<HostProbe, Fault> {
    let (tx, rx) = mpsc::channel();
    let started = Agent::start(AgentPlace::Remote(session), Role::Server, VERSION, tx);
    let mut agent = started.map_err(Fault::new)?;
    let mut request = Some(request);
    let deadline = Instant::now() + GREETING;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted);
        }
        let said = match rx.recv_timeout(LOOK) {
            Ok(heard) => heard.said,
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => continue,
            Err(_) => return Err(session.late(GREETING)),
        };
        match said {
            Ok(FromAgent::Welcome { tool, .. }) if tool != env!("CARGO_PKG_VERSION") => {
                return Err(another_version(session, &format!("is version {tool}")));
            }
            Ok(FromAgent::Welcome { .. }) if request.is_some() => {
                request.take().into_iter().for_each(|request| agent.say(&ToAgent::Probe(request)));
            }
            Ok(FromAgent::Probed(probe)) if request.is_none() => {
                let _ = agent.close();
                return Ok(*probe);
            }
            Ok(FromAgent::Refused { wrong_use, sentence }) => {
                let sentence = format!("{}: {sentence}", session.host());
                return Err(Fault::of_agent(wrong_use, sentence));
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
        session.host(),
        env!("CARGO_PKG_VERSION")
    );
    Fault::Refused(sentence)
}

/// Why no agent spoke.
fn unanswered(session: &Session, mut agent: Agent, error: &FrameError) -> Fault {
    match error {
        // A letter is far too long a length.
        FrameError::TooLong(_) => Fault::new(format!(
            "{host} prints text where an agent should speak: its shell's start-up files must print \
             nothing where there is no terminal (`ssh {host} true` shows it)",
            host = session.host()
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
        // Also after a Ctrl-C.
        let done = self.session.output(&script, Stdio::null(), REMOVAL, &AtomicBool::new(false));
        done.map(drop)
            .map_err(|fault| format!("{folder} stays on {}: {fault}", self.session.host()))
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

    #[test]
    fn only_a_plain_folder_is_used_and_removed() {
        assert_eq!(plain_folder("/tmp/tmp.Xy_1-z\n"), Some("/tmp/tmp.Xy_1-z"));
        for said in ["", "/", "tmp", "/tmp/a b", "/tmp/$(x)", "/tmp/a\n/tmp/b", "Welcome!\n/tmp/x"]
        {
            assert_eq!(plain_folder(said), None, "{said}");
        }
    }
}
