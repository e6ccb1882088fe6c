//! The host on which the server's end runs, where that is another one than this, and how it is
//! reached. Pure.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Another host, as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name, as ssh is told it, or where its agent stands.
    pub host: String,
    /// Host and port of the agent that stands there; `None`: it is reached by ssh.
    #[serde(default)]
    pub agent: Option<String>,
    /// ssh with its own arguments.
    pub ssh: Vec<String>,
    /// Where wiregauge is there; `None`: where its shell finds it.
    pub binary: Option<String>,
    /// Whether this program is copied there, and removed afterwards.
    pub push: bool,
    /// Settings of transports that this host has of its own, by the names of their options, such as
    /// the name of its RDMA device. The cases that use them have them in the record.
    #[serde(skip)]
    pub own: BTreeMap<String, String>,
    /// What its agent and this program share where a launcher has started both. It is in no record.
    #[serde(skip)]
    pub key: Option<JobKey>,
}

/// What the processes of one job share, and nobody else knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobKey(pub [u8; 32]);

impl std::fmt::Debug for JobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobKey")
    }
}

impl HostSpec {
    /// Whether it is a rank of the job that this program is one of, which may not have come yet.
    pub fn is_rank(&self) -> bool {
        self.key.is_some() || self.host.starts_with(RANK)
    }
}

/// What the name of a job's rank begins with.
pub const RANK: &str = "rank:";
/// What a host's name begins with where an agent stands there.
pub const AGENT: &str = "agent:";
/// The port of an agent where none is named.
pub const AGENT_PORT: u16 = 7425;

/// The host and the port of an address, such as `node07`, `node07:7425`, `[fe80::7%eth0]:7425`.
pub fn address(text: &str, port_else: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            // Of an IPv6 address it cannot be told where a port would begin.
            Some((_, port)) if port.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None => port_else,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:%".contains(c);
    let is_plain = !host.is_empty() && !host.starts_with('-') && host.chars().all(plain);
    is_plain.then(|| (host.to_string(), port))
}

/// A host and a port as [`address`] reads them: an IPv6 address in brackets.
pub fn joined(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// A word as it is typed in a command that a sentence prints: in quotes where a shell would make
/// something else of it, such as of blanks and brackets.
pub fn typed(word: &str) -> String {
    // A zero ends an argument, so that no word of a command has one.
    shlex::try_quote(&word.replace('\0', "")).map_or_else(|_| word.to_owned(), Into::into)
}

/// A path as it is typed in a command: one that begins with a dash would be an option.
pub fn typed_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let dot = if text.starts_with('-') { "./" } else { "" };
    typed(&format!("{dot}{text}"))
}

/// The words of a command, as a shell parts them: by quotes and backslashes, up to a `#` that
/// begins a word. `None`: no word, a quote without its other, or a backslash at the end.
pub fn words(text: &str) -> Option<Vec<String>> {
    shlex::split(text).filter(|words| !words.is_empty())
}

/// A path as one word of the far side's shell, whatever signs it has. `~/` at its beginning stays
/// the home directory.
pub fn quoted(path: &str) -> String {
    let (home, rest) = match path.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None => ("", path),
    };
    format!("{home}'{}'", rest.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_is_parted_at_blanks_outside_of_quotes() {
        let parted = |text| words(text).map(|words| words.join("|"));
        assert_eq!(parted("ssh"), Some("ssh".into()));
        assert_eq!(parted(" ssh  -F '/a b/c' "), Some("ssh|-F|/a b/c".into()));
        assert_eq!(
            parted("ssh -o \"ProxyCommand=a 'b'\""),
            Some("ssh|-o|ProxyCommand=a 'b'".into())
        );
        assert_eq!(parted("ssh ''"), Some("ssh|".into()));
        assert_eq!(parted(r"ssh -o a\ b -p a#b # why"), Some("ssh|-o|a b|-p|a#b".into()));
        assert_eq!((parted(""), parted("  "), parted("ssh 'a")), (None, None, None));
        assert_eq!((parted("# why"), parted("ssh \\")), (None, None));
    }

    #[test]
    fn an_agent_is_at_a_host_and_a_port() {
        let at = |text| address(text, AGENT_PORT).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(at("node07"), Some("node07 7425".into()));
        assert_eq!(at("node07:80"), Some("node07 80".into()));
        assert_eq!(at("2001:db8::7"), Some("2001:db8::7 7425".into()));
        assert_eq!(at("[2001:db8::7]"), Some("2001:db8::7 7425".into()));
        assert_eq!(at("[fe80::7%eth0]:80"), Some("fe80::7%eth0 80".into()));
        for wrong in ["", ":80", "a:", "a:0", "a:65536", "-a", "[::1", "[::1]80", "a b", "a/b"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_address_that_is_printed_is_read_back() {
        for text in ["node07:80", "10.1.0.7:80", "[2001:db8::7]:80", "[fe80::7%eth0]:80"] {
            let (host, port) = address(text, AGENT_PORT).unwrap();
            assert_eq!(joined(&host, port), text);
            assert_eq!(
                words(&typed(text)),
                Some(vec![text.to_owned()]),
                "what a shell makes of it"
            );
        }
        assert_eq!(typed("agent:[::1]:80"), "'agent:[::1]:80'");
        assert_eq!(typed("agent:node07:80"), "agent:node07:80");
    }

    #[test]
    fn a_path_that_is_typed_is_one_word_and_no_option() {
        for (path, text) in [
            ("result", "result"),
            ("/runs/a b", "'/runs/a b'"),
            ("it's", "\"it's\""),
            ("-x", "./-x"),
            ("--json out", "'./--json out'"),
            ("$(x)[1]*", "'$(x)[1]*'"),
        ] {
            assert_eq!(typed_path(Path::new(path)), text);
            let read = words(text).unwrap();
            assert!(read == [path] || read == [format!("./{path}")], "{read:?}");
        }
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(quoted("/opt/a b/$(x)"), "'/opt/a b/$(x)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("~/bin/w g"), "~/'bin/w g'");
    }

    proptest! {
        #[test]
        fn a_word_that_is_typed_is_read_back(word in "\\PC{1,12}") {
            prop_assert_eq!(words(&typed(&word)), Some(vec![word]));
        }

        #[test]
        fn words_that_are_quoted_are_read_back(
            list in prop::collection::vec("[a-z \"]{0,8}", 1..5),
        ) {
            let typed: Vec<String> = list.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(words(&typed.join(" ")), Some(list));
        }
    }
}
