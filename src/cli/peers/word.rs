//! What a word of another program is.

/// Another program.
pub struct Peer {
    pub name: &'static str,
    /// What its users should know before they compare a figure, for the page.
    pub about: &'static str,
    pub words: &'static [Word],
}

/// A word of another program.
pub struct Word {
    /// The ways to type it there.
    pub there: &'static [&'static str],
    pub here: Here,
    /// How what is here differs; of what is missing here, why.
    pub note: &'static str,
}

/// What a word is here. Words in capitals stand for values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// A command, such as `latency --transport verbs`.
    Command(&'static str),
    /// An option with or without a value, such as `--direction bi`.
    Option(&'static str),
    Nothing,
}

/// Why an option for a port is nothing here.
pub const PORTS: &str = "wiregauge chooses free ports itself";

pub const fn command(
    there: &'static [&'static str],
    here: &'static str,
    note: &'static str,
) -> Word {
    Word { there, here: Here::Command(here), note }
}

pub const fn option(
    there: &'static [&'static str],
    here: &'static str,
    note: &'static str,
) -> Word {
    Word { there, here: Here::Option(here), note }
}

pub const fn nothing(there: &'static [&'static str], note: &'static str) -> Word {
    Word { there, here: Here::Nothing, note }
}
