//! `agent`: stand and serve drivers, or offer a pairing. `pair`: pair with one.

use super::console::{complain, print};
use super::process::program;
use super::{CommandError, Exit};
use crate::cli::Standing;
use crate::control::fault::Fault;
use crate::plan::Refusal;
use crate::remote::daemon::identity::{self, Identity, peers};
use crate::remote::daemon::pairing::{self, DRIVERS, Secret};
use crate::remote::daemon::{self, Keeper, Trust};
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Where `pair` looks for the secret before it asks for it.
const SECRET_VARIABLE: &str = "WIREGAUGE_PAIRING_SECRET";
/// Most that is read as a secret.
const LONGEST_SECRET: u64 = 256;

fn failed(fault: Fault) -> CommandError {
    match fault.wrong_use {
        true => CommandError::Refused(Refusal(fault.sentence)),
        false => CommandError::Unable(fault.sentence),
    }
}

fn folder(named: Option<PathBuf>) -> Result<PathBuf, CommandError> {
    named.map_or_else(identity::folder, Ok).map_err(CommandError::Unable)
}

/// Stands until it is ended, or offers a pairing.
pub fn agent(asked: Standing) -> Result<Exit, CommandError> {
    let folder = folder(asked.folder)?;
    let identity = Identity::of_host(&folder).map_err(CommandError::Unable)?;
    if asked.pair {
        let secret = pairing::offer(&folder).map_err(CommandError::Unable)?;
        complain(&format!(
            "within {} min, run `wiregauge pair HOST` at the driver and give it this secret:",
            pairing::VALID.as_mins()
        ));
        return print(format!("{secret}\n").as_bytes());
    }
    let drivers = peers(&folder.join(DRIVERS)).map_err(CommandError::Unable)?.len();
    let mut keeper = Keeper::new(program()?, identity, Trust::Folder(folder.clone()), false);
    (keeper.allow, keeper.caps) = (asked.allow, asked.caps);
    let listener = daemon::listen(asked.listen).map_err(failed)?;
    let at = listener.local_addr()?;
    let reach = match at.ip().is_loopback() {
        true => "; only this host can reach it (--listen ADDRESS lets others)",
        false => "",
    };
    complain(&format!("the agent stands at {at}{reach}"));
    complain(&format!("it allows {}", keeper.caps));
    complain(&format!(
        "it is paired with {drivers} driver{} ({}); `wiregauge agent --pair` lets in one more",
        if drivers == 1 { "" } else { "s" },
        folder.join(DRIVERS).display()
    ));
    daemon::serve(&Arc::new(keeper), &listener)
}

/// Pairs.
pub fn pair(host: &str, port: u16) -> Result<Exit, CommandError> {
    let secret = secret()?.parse::<Secret>();
    let secret = secret.map_err(|sentence| CommandError::Refused(Refusal(sentence)))?;
    pairing::pair(&folder(None)?, host, port, secret).map_err(failed)?;
    complain(&format!("paired; measure with --to agent:{host}:{port}"));
    Ok(Exit::Right)
}

/// The secret, never from the arguments, which every user of this host can read.
fn secret() -> Result<String, CommandError> {
    if let Ok(secret) = std::env::var(SECRET_VARIABLE) {
        return Ok(secret);
    }
    let input = io::stdin();
    if input.is_terminal() {
        complain(&"the secret that `wiregauge agent --pair` has printed at the agent's host:");
    }
    let mut line = String::new();
    input.lock().take(LONGEST_SECRET).read_line(&mut line)?;
    Ok(line)
}
