//! Frames of the control channel from anywhere: a message or an error, in bounded memory, and a
//! message that was read is written and read again as it was.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wiregauge::control::frame::{LONGEST, read, write};
use wiregauge::control::protocol::{FromAgent, ToAgent};

fn there_and_back<T: Serialize + DeserializeOwned>(data: &[u8]) {
    let Ok(message) = read::<T>(&mut &*data) else { return };
    let mut once = Vec::new();
    // Another way of writing the same number may be shorter than ours, so ours may be too long.
    if write(&mut once, &message).is_err() {
        return;
    }
    assert!(once.len() <= 4 + LONGEST);
    let again: T = read(&mut once.as_slice()).expect("what was written can be read");
    let mut twice = Vec::new();
    write(&mut twice, &again).expect("what was read can be written");
    assert_eq!(once, twice);
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    there_and_back::<ToAgent>(data);
    there_and_back::<FromAgent>(data);
}
