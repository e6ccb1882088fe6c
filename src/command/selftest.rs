//! x
use super::{CommandError, Exit};
/// x
pub fn selftest(_json: bool) -> Result<Exit, CommandError> {
    Ok(Exit::Right)
}
