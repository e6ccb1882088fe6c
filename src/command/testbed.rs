//! `testbed`: a command in a machine with an RDMA device, or in a network of hosts.

use super::console::complain;
use super::{CommandError, Exit};
use crate::testbed::{self, Ended, MachineRequest, net};
use std::io;

/// What `timeout` of coreutils gives for a command that took too long.
const TIMED_OUT: u8 = 124;
/// What a shell adds to a signal's number.
const SIGNALLED: u8 = 128;

/// Runs it. The exit code is the command's own.
pub fn machines(request: &MachineRequest) -> Result<Exit, CommandError> {
    let ended = testbed::run(request, &|sentence| complain(&sentence)).map_err(unable)?;
    if ended == Ended::TimedOut {
        complain(&format!(
            "the command took longer than --timeout {} and was ended with its machine",
            request.timeout
        ));
    }
    Ok(exit(ended, "the machine was ended by a signal"))
}

/// The same in a network of hosts.
pub fn network(request: &net::NetworkRequest) -> Result<Exit, CommandError> {
    let ended = net::run(request, &|sentence| complain(&sentence)).map_err(unable)?;
    Ok(exit(ended, "the command and its network were ended by a signal"))
}

fn unable(error: io::Error) -> CommandError {
    CommandError::Unable(error.to_string())
}

fn exit(ended: Ended, signalled: &str) -> Exit {
    match ended {
        Ended::Exited(code) => Exit(code),
        Ended::TimedOut => Exit(TIMED_OUT),
        Ended::Signalled(number) => {
            complain(&signalled);
            Exit(SIGNALLED.saturating_add(number))
        }
        Ended::Unread => Exit::INCOMPLETE,
    }
}
