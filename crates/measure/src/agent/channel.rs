//! The control channel of an agent process: its standard input and output, or, where a launcher
//! has started it and has those itself, a socket of this host that the controller listens on.
//!
//! What a foreign library prints to standard output goes to standard error: it is no frame.

use crate::control::call_back::{self, CallBack};
use crate::control::frame::{self, FrameError};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

/// The two directions. Each frame is one write, so that several threads may send.
struct Channel {
    input: File,
    output: File,
}

static CHANNEL: OnceLock<Channel> = OnceLock::new();

/// Opens the channel; nothing is read from or written to standard input and output afterwards.
///
/// # Errors
/// The controller that started the launcher cannot be reached.
pub(crate) fn open() -> io::Result<()> {
    let channel = match call_back::asked() {
        None => Channel {
            input: io::stdin().as_fd().try_clone_to_owned()?.into(),
            output: io::stdout().as_fd().try_clone_to_owned()?.into(),
        },
        Some(asked) => {
            let CallBack { socket, greeting } = call_back::reach(&asked)?;
            let mut output = File::from(OwnedFd::from(socket));
            frame::write(&mut output, &greeting).map_err(io::Error::other)?;
            Channel { input: output.try_clone()?, output }
        }
    };
    wiregauge_host::stdout_to_stderr()?;
    let _ = CHANNEL.set(channel);
    Ok(())
}

/// What the controller sends.
pub(crate) fn input() -> Result<&'static File, FrameError> {
    CHANNEL.get().map(|channel| &channel.input).ok_or_else(closed)
}

/// What it is sent.
pub(crate) fn output() -> Result<&'static File, FrameError> {
    CHANNEL.get().map(|channel| &channel.output).ok_or_else(closed)
}

fn closed() -> FrameError {
    FrameError::Channel(io::ErrorKind::NotConnected.into())
}
