//! `testbed`: a command in a machine with an RDMA device.

use super::{CommandError, Exit, complain};
use crate::testbed::{self, Ended, Wanted};

/// What `timeout` of coreutils gives for a command that took too long.
const TIMED_OUT: u8 = 124;
/// What a shell adds to a signal's number.
const SIGNALLED: u8 = 128;

/// Runs it. The exit code is the command's own.
pub fn testbed(wanted: &Wanted) -> Result<Exit, CommandError> {
    let ended = testbed::run(wanted, &|sentence| complain(&sentence));
    match ended.map_err(|error| CommandError::Unable(error.to_string()))? {
        Ended::Exited(code) => Ok(Exit::Other(code)),
        Ended::TimedOut => {
            complain(&format!(
                "the command took longer than --timeout {} and was ended with its machine",
                wanted.timeout
            ));
            Ok(Exit::Other(TIMED_OUT))
        }
        Ended::Signalled(number) => {
            complain(&"the machine was ended by a signal");
            Ok(Exit::Other(SIGNALLED.saturating_add(number)))
        }
        Ended::Unread => Ok(Exit::Incomplete),
    }
}
