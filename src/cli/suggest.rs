//! What was most likely meant: by meaning first, which is the table of the peers' words, then by
//! spelling.

use super::peers::{self, Here, Peer, Word, page};
use crate::transport::TransportKind;
use crate::units::Bytes;

/// An answer to a wrong word, for after "there is no such thing".
pub enum Answer {
    /// What to type instead.
    Type(String),
    /// Why there is nothing to type.
    Missing(&'static str),
}

impl Answer {
    /// As the end of a sentence.
    pub fn sentence(answer: Option<Answer>) -> String {
        match answer {
            Some(Answer::Type(instead)) => format!(": did you mean {instead}?"),
            Some(Answer::Missing(why)) => format!(": {why}"),
            None => String::new(),
        }
    }
}

/// The command that was meant.
pub fn command(names: &[&str], typed: &str) -> Option<Answer> {
    let is_command = |word: &Word| matches!(word.here, Here::Command(_) | Here::Nothing);
    if typed.starts_with('-') {
        return None;
    }
    if let Some((_, word)) = peers::meanings(typed, is_command).next() {
        return Some(answer(word));
    }
    if let Some(peer) = page::find(typed) {
        return Some(Answer::Type(format!("'help {}'", peer.name)));
    }
    if TransportKind::ALL.iter().any(|one| one.name().eq_ignore_ascii_case(typed)) {
        let transport = typed.to_ascii_lowercase();
        return Some(Answer::Type(format!("'latency --transport {transport}'")));
    }
    let theirs = peers::words().filter(|(.., word)| is_command(word));
    let theirs = theirs.map(|(_, there, _)| there).filter(|there| !there.starts_with('-'));
    let own = names.iter().copied();
    let near = begun(typed, own.clone()).or_else(|| nearest(typed, own.chain(theirs)))?;
    if names.contains(&near) {
        return Some(Answer::Type(format!("'{near}'")));
    }
    peers::meanings(near, is_command).next().map(|(_, word)| answer(word))
}

/// What help was wanted of: a peer by one of its words, then a name by its spelling.
pub fn help(names: &[&str], typed: &str) -> Option<Answer> {
    let is_command = |word: &Word| matches!(word.here, Here::Command(_) | Here::Nothing);
    let meant = peers::meanings(typed, is_command).next().map(|(peer, word)| match word.here {
        Here::Command(here) if peer.about.is_empty() => first(here),
        _ => peer.name,
    });
    let near = meant.or_else(|| near(typed, names))?;
    Some(Answer::Type(format!("'help {near}'")))
}

/// The name that was meant, by its spelling.
pub fn near<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    let names = || names.iter().copied();
    begun(typed, names()).or_else(|| nearest(typed, names()))
}

/// Returns the program whose option of this name has another meaning, which wiregauge lacks, and
/// why it is lacking.
pub fn missing_meaning(option: &str) -> Option<(&'static str, &'static str)> {
    let mut found = peers::meanings(option, |word| matches!(word.here, Here::Nothing));
    let found = found.find(|(peer, _)| !peer.about.is_empty());
    found.map(|(peer, word)| (peer.name, word.note))
}

/// Returns whether the value of an option can be that of a word: `100M` is a rate, and no number of
/// messages of a burst.
fn takes(word: &Word, value: &str) -> bool {
    let is_bit_rate = value.len() > 1 && value.ends_with(['K', 'M', 'G', 'k', 'm', 'g']);
    match word.here {
        Here::Option(here) if is_bit_rate => here.contains("RATE"),
        _ => true,
    }
}

/// The option that was meant for a command, or for another one. `value` follows it.
pub fn option(
    command: &clap::Command,
    whole: &clap::Command,
    typed: &str,
    value: &str,
) -> Option<Answer> {
    let is_root = command.get_name() == whole.get_name();
    let measures = is_root || has(command, "--transport");
    let fits = |word: &Word| match word.here {
        Here::Option(here) => is_root || has(command, here),
        Here::Command(_) => is_root,
        Here::Nothing => measures,
    };
    let elsewhere = |word: &Word| measures && matches!(word.here, Here::Option(_));
    let answer = |word: &Word| match word.here {
        Here::Option(here) if !has(command, here) => {
            let other = whole.get_subcommands().find(|other| has(other, here));
            let name = other.map_or("", clap::Command::get_name);
            Answer::Type(format!("'{name} {}'", without_value(here)))
        }
        _ => answer(word),
    };
    let meant: Vec<(&Peer, &Word)> =
        peers::meanings(typed, fits).chain(peers::meanings(typed, elsewhere)).collect();
    // The value leaves one of several meanings: it is said with how it differs.
    if meant.len() > 1
        && let Some((_, word)) = meant.iter().find(|(_, word)| takes(word, value))
        && meant.iter().any(|(_, word)| !takes(word, value))
        && let Answer::Type(instead) = answer(word)
    {
        return Some(Answer::Type(format!("{instead}, {}", word.note.replace('`', ""))));
    }
    if let Some(found) = of_several(&meant, typed, answer) {
        return Some(found);
    }
    let own: Vec<String> = options(command).collect();
    let own = || own.iter().map(String::as_str);
    let theirs = peers::words().filter(|(_, there, word)| there.starts_with("--") && fits(word));
    let theirs = theirs.map(|(_, there, _)| there);
    let near = begun(typed, own()).or_else(|| nearest(typed, own().chain(theirs)))?;
    if own().any(|name| name == near) {
        return Some(Answer::Type(format!("'{near}'")));
    }
    peers::meanings(near, fits).next().map(|(_, word)| answer(word))
}

/// Meanings of a short option that are told, those that are likeliest.
const MAX_MEANINGS: usize = 3;

/// Returns what a word of several programs was meant for, each meaning with its program; what is
/// missing here only where it has no other one.
fn of_several(
    meant: &[(&Peer, &Word)],
    typed: &str,
    answer: impl Fn(&Word) -> Answer,
) -> Option<Answer> {
    let mut known: Vec<(String, &str)> = Vec::new();
    let mut missing = None;
    for (peer, word) in meant {
        match answer(word) {
            Answer::Type(instead) if known.iter().any(|(other, _)| *other == instead) => {}
            // Without a page of its own it is no program.
            Answer::Type(instead) if peer.about.is_empty() => known.push((instead, "")),
            Answer::Type(instead) => known.push((instead, peer.name)),
            Answer::Missing(why) => missing = missing.or(Some(Answer::Missing(why))),
        }
    }
    known.truncate(MAX_MEANINGS);
    match known.as_slice() {
        [] => missing,
        [(instead, _)] => Some(Answer::Type(instead.clone())),
        several => {
            let each = several.iter().map(|(instead, peer)| match *peer {
                "" => instead.clone(),
                peer => format!("{instead} ({peer}'s {typed})"),
            });
            Some(Answer::Type(each.collect::<Vec<_>>().join(" or ")))
        }
    }
}

/// The option that a word without dashes was meant for: a host, a transport, a size.
pub fn operand(command: &clap::Command, typed: &str) -> Option<Answer> {
    let is_transport = TransportKind::ALL.iter().any(|one| one.name().eq_ignore_ascii_case(typed));
    let option = match typed {
        _ if is_transport && has(command, "--transport") => "--transport",
        _ if typed.parse::<Bytes>().is_ok() && has(command, "--size") => "--size",
        _ if has(command, "--to") => "--to",
        _ => return None,
    };
    Some(Answer::Type(format!("'{option} {typed}'")))
}

/// The value of an option that was meant, of those that it takes.
pub fn value<'a>(option: &str, allowed: &[&'a str], typed: &str) -> Option<&'a str> {
    let of_option = |here: &'static str| here.split_once(' ').filter(|(name, _)| *name == option);
    let is_value =
        |word: &Word| matches!(word.here, Here::Option(here) if of_option(here).is_some());
    let meant = peers::meanings(typed, is_value).find_map(|(_, word)| match word.here {
        Here::Option(here) => of_option(here).map(|(_, value)| value),
        _ => None,
    });
    let meant = meant.and_then(|value| allowed.iter().copied().find(|one| *one == value));
    let allowed = || allowed.iter().copied();
    meant.or_else(|| begun(typed, allowed())).or_else(|| nearest(typed, allowed()))
}

fn answer(word: &Word) -> Answer {
    match word.here {
        Here::Command(here) => Answer::Type(format!("'{here}'")),
        Here::Option(here) => Answer::Type(format!("'{}'", without_value(here))),
        Here::Nothing => Answer::Missing(word.note),
    }
}

/// `--count` of `--count N`; `--direction bi` as it is.
fn without_value(here: &str) -> &str {
    let is_placeholder = |value: &str| !value.chars().any(|c| c.is_ascii_lowercase());
    match here.split_once(' ') {
        Some((name, value)) if is_placeholder(value) => name,
        _ => here,
    }
}

/// Whether a command has an option, which may be written with a value.
fn has(command: &clap::Command, here: &str) -> bool {
    options(command).any(|option| option == first(here))
}

/// The first word: the option's name, or the command's.
pub fn first(here: &str) -> &str {
    here.split(' ').next().unwrap_or(here)
}

/// All options of a command that its help lists, as typed.
pub fn options(command: &clap::Command) -> impl Iterator<Item = String> + '_ {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    shown.filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
}

/// What is typed, as it is compared with names.
fn plain(typed: &str) -> String {
    typed.to_ascii_lowercase().replace('_', "-")
}

/// The shortest name that begins with what was typed.
fn begun<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = plain(typed);
    let is_long_enough = typed.trim_start_matches('-').len() >= 2;
    let begun = names.filter(|name| is_long_enough && name.starts_with(&typed));
    begun.min_by_key(|name| name.len())
}

/// The name that the fewest wrong, missing, surplus or exchanged letters lead to, at most one in
/// three; of several the first.
fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = plain(typed);
    let most = typed.trim_start_matches('-').chars().count() / 3;
    let names = names.map(|name| (strsim::damerau_levenshtein(&typed, &plain(name)), name));
    let near = names.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}
