//! `agent`: run the agent daemon, or offer a pairing. `pair`: pair with a daemon.

use super::console::{complain, print};
use super::process::program;
use super::{CommandError, Exit};
use crate::cli::values;
use crate::options::Given;
use crate::pattern::registry;
use crate::plan::UsageError;
use crate::plan::host_spec::{self, AGENT_PORT};
use crate::remote::daemon::caps::{Caps, Reach};
use crate::remote::daemon::identity::{self, Identity, peers};
use crate::remote::daemon::pairing::{self, CONTROLLERS, Secret};
use crate::remote::daemon::{self, Daemon, Trust};
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Environment variable with the secret for `pair`, which else asks for it.
const SECRET_VARIABLE: &str = "WIREGAUGE_PAIRING_SECRET";
/// Longest input that is read as a secret.
const LONGEST_SECRET: u64 = 256;

fn folder(named: Option<&str>) -> Result<PathBuf, CommandError> {
    named.map(PathBuf::from).map_or_else(identity::folder, Ok).map_err(CommandError::Unable)
}

/// Runs the daemon until it is stopped, or offers a pairing.
pub fn agent(given: &Given) -> Result<Exit, CommandError> {
    let folder = folder(given.text("identity"))?;
    let identity = Identity::of_host(&folder).map_err(CommandError::Unable)?;
    if given.flag("pair") {
        let secret = pairing::offer(&folder).map_err(CommandError::Unable)?;
        complain(&format!(
            "run `wiregauge pair HOST` at the controller within {} min and enter this secret:",
            pairing::VALID.as_mins()
        ));
        return print(format!("{secret}\n"));
    }
    let paired = peers(&folder.join(CONTROLLERS)).map_err(CommandError::Unable)?.len();
    let trust = Trust::Folder(folder.clone());
    let mut daemon = Daemon::new(program()?, registry::find, identity, trust, false);
    (daemon.allow, daemon.caps) = (given.list("allow"), caps(given));
    let listen = given.read("listen", values::listening);
    let listener = daemon::listen(listen.unwrap_or(([127, 0, 0, 1], AGENT_PORT).into()))?;
    let at = listener.local_addr()?;
    let identity = named_identity(given);
    let reach = match at.ip().is_loopback() {
        true => ", reachable from this host only (see --listen; rounds need --peers)",
        false => "",
    };
    complain(&format!("listening at {at}{reach}"));
    complain(&format!("limits: {}", daemon.caps));
    complain(&format!(
        "paired with {paired} controller{} in {}; `wiregauge agent --pair{identity}` adds one",
        if paired == 1 { "" } else { "s" },
        folder.join(CONTROLLERS).display()
    ));
    daemon::serve(&Arc::new(daemon), &listener)
}

/// The option that names the directory of an identity, where it was given: without it a command
/// would be another agent's.
fn named_identity(given: &Given) -> String {
    let named = given.text("identity").map(|path| host_spec::typed_path(Path::new(path)));
    named.map(|path| format!(" --identity {path}")).unwrap_or_default()
}

/// What controllers may do.
fn caps(given: &Given) -> Caps {
    let all = Caps::default();
    Caps {
        longest_run: given.get("longest-run").unwrap_or(all.longest_run),
        highest_rate: given.get("highest-rate"),
        most_memory: given.get("most-memory").unwrap_or(all.most_memory),
        ports: given.read("ports", values::ports),
        transports: match given.is_given("transports") {
            true => given.choices("transports"),
            false => all.transports,
        },
        total_memory: given.get("total-memory").unwrap_or(all.total_memory),
        peers: reach(given, "peers"),
        idle: all.idle,
        bind: reach(given, "bind"),
        kernel_stamps: given.flag("kernel-stamps"),
    }
}

/// The networks of an option.
fn reach(given: &Given, name: &str) -> Reach {
    match given.is_given(name) {
        true => Reach::Networks(given.list(name)),
        false => Reach::Connection,
    }
}

/// Pairs with a daemon.
pub fn pair(host: &str, port: u16) -> Result<Exit, CommandError> {
    let secret = secret()?.parse::<Secret>();
    let secret = secret.map_err(|sentence| CommandError::Refused(UsageError(sentence)))?;
    pairing::pair(&folder(None)?, host, port, secret)?;
    let to = host_spec::typed(&format!("{}{}", host_spec::AGENT, host_spec::joined(host, port)));
    complain(&format!("paired: measure with --to {to}"));
    Ok(Exit::RIGHT)
}

/// The secret. Never an argument, which every user of this host can read.
fn secret() -> Result<String, CommandError> {
    if let Ok(secret) = std::env::var(SECRET_VARIABLE) {
        return Ok(secret);
    }
    let input = io::stdin();
    if input.is_terminal() {
        complain(&"secret that `wiregauge agent --pair` printed at the agent's host:");
    }
    let mut line = String::new();
    input.lock().take(LONGEST_SECRET).read_line(&mut line)?;
    Ok(line)
}
