//! What goes wrong in a round, in sentences.

use crate::control::frame::FrameError;
use crate::loops::Ended;
use crate::transport::Role;

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// In a sentence.
    pub sentence: String,
    /// Whether the user asked for something that cannot be (and nothing failed).
    pub wrong_use: bool,
    /// Whether the user interrupted.
    pub interrupted: bool,
}

impl Fault {
    /// Something failed.
    pub fn new(sentence: impl Into<String>) -> Fault {
        Fault { sentence: sentence.into(), wrong_use: false, interrupted: false }
    }

    /// The user wants the program to end.
    pub fn interrupted() -> Fault {
        Fault { interrupted: true, ..Fault::new("interrupted by the user") }
    }
}

/// How a role ended that was to go on.
pub(crate) fn unplanned(ended: Ended) -> String {
    match ended {
        Ended::Closed => "saw its connection closed by the other end in mid-round".into(),
        Ended::Failed(errno) => {
            format!("lost its connection: {}", std::io::Error::from_raw_os_error(errno))
        }
        Ended::WarmingUp => {
            "was still warming up when the other end's time was over; write a longer --time or a \
             smaller --warmup"
                .into()
        }
        Ended::Stopped | Ended::Count | Ended::Time => "stopped before its round was over".into(),
    }
}

/// The process of a role is gone.
pub(crate) fn gone(role: Role, error: &FrameError) -> Fault {
    Fault::new(format!("the {}'s process is gone: {error}", role.name()))
}
