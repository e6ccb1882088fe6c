//! A peer's words as a text: for the terminal, and for `docs/from-other-tools.md` and
//! `docs/from-perftest.md`.

use super::{Here, PEERS, Peer};

/// The peer of this name.
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name.eq_ignore_ascii_case(name))
}

/// Columns of a word of the peer, and of a line.
const THERE: usize = 30;
const WIDTH: usize = 100;

/// A peer's words, for the terminal. Those that are wider than their column are on lines of their
/// own.
pub fn text(peer: &Peer) -> String {
    let mut text = wrapped(&without_markup(peer.about), "", WIDTH);
    text.push('\n');
    for word in peer.words {
        let there = word.there.join(", ");
        let (here, note) = match word.here {
            Here::Command(here) | Here::Option(here) => (here, without_markup(word.note)),
            Here::Nothing => ("-", without_markup(word.note)),
        };
        let here = wrapped(here, &" ".repeat(THERE + 3), WIDTH);
        if there.len() <= THERE {
            text.push_str(&format!("  {there:THERE$} {}", here.trim_start()));
        } else {
            text.push_str(&wrapped(&there, "  ", WIDTH));
            text.push_str(&here);
        }
        text.push_str(&wrapped(&note, &" ".repeat(THERE + 5), WIDTH));
    }
    text
}

/// Returns a text of the documents as plain text: no marks of code, and of a link to another
/// document its path.
fn without_markup(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(_, after)| after.split_once(')'));
        let Some((target, after)) = link else { break };
        plain.push_str(&format!("{before}docs/{target}"));
        rest = after;
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

/// A text in lines of at most this width, each after an indent; nothing for no text.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && indent.len() + line.len() + 1 + word.len() > width {
            lines.push_str(&format!("{indent}{line}\n"));
            line.clear();
        }
        let gap = if line.is_empty() { "" } else { " " };
        line.push_str(&format!("{gap}{word}"));
    }
    if line.is_empty() { lines } else { lines + &format!("{indent}{line}\n") }
}

#[cfg(test)]
mod tests {
    use super::super::Word;
    use super::*;
    use std::fmt::Write;

    const HEAD: &str = "\
# From other tools

What users of other programs type, and what it is here: the command, the option, and how the figures
differ. Made from the table in `src/cli/peers` (`UPDATE_DOCS=1 cargo test --lib peers` writes it
again), from which the program also answers: `wiregauge ib_send_lat` names the command, `wiregauge
latency -n 1000` the option, and `wiregauge help perftest` prints its part. perftest has a page of
its own: [from-perftest.md](from-perftest.md).

One command starts both ends here: `--to HOST` runs the server there by ssh, and no program has to
be started by hand. Every run has several rounds of fresh processes (`--rounds`), keeps every
sample, and gives each figure with its interval ([reading-a-report.md](reading-a-report.md)).
[COMPARE.md](../COMPARE.md) says how each program measures.

| value | here | there |
|---|---|---|
| `64K`, `1M`, `1G` | 2^10, 2^20, 2^30 bytes, as `64KiB`, `1MiB`, `1GiB` | the same in perftest, \
iperf3, qperf and netperf |
| `64k`, `1m` | refused: use `64K` (65536) or `64kB` (64000) | 65536 in iperf3, 64000 in qperf and \
netperf, 64 in perftest |
| `10k`, `1M`, `1e6` messages | 10000, 10^6, 10^6 | |
| `10s`, `10sec`, `5min`, `100us` | a time needs its unit | a bare number is seconds |
| `TCP`, `RC` | names in any case | |

";

    const PERFTEST_HEAD: &str = "\
# From perftest

Every option of perftest 6.29 and of 4.5 (Debian 12), what it is here and how far that was seen to
work; the last column says how the two differ, or why wiregauge lacks it. Made from the tables in
`src/cli/peers`, as [from-other-tools.md](from-other-tools.md) is.

| state | means |
|---|---|
| verified | run on Soft-RoCE (`tests/it/verbs.rs`, in the [testbed](testbed.md)), or over other \
transports where the option is not of RDMA |
| not on hardware | built against the interface, which Soft-RoCE lacks ([support.md](support.md)): \
seen there was the refusal, or the part that it has (`rc`, `uc`, `ud`; partition key 0) |
| not here | refused, with the reason of the last column |

What a device refuses ends the command before anything runs, with the option's name; what the device
gives back of its queue pairs is in the record ([rdma.md](rdma.md#options)). A minimum as pass or
fail is `--fail-if`, which also judges whether the run can tell ([compare.md](compare.md)).

";
    /// The peers of that page.
    const OF_PERFTEST: [&str; 2] = ["perftest", "doca-perftest"];

    /// What Soft-RoCE lacks, or has in part: its partition key 0, its services rc, uc and ud.
    const NOT_ON_HARDWARE: [&str; 8] = [
        "--rate-limit ",
        "--pkey-index ",
        "--service-level ",
        "--service ",
        "--on-demand ",
        "--memory ",
        "--relaxed-ordering",
        "--ece",
    ];

    /// How far a word's counterpart was seen to work.
    fn state(here: Here) -> &'static str {
        let lacks = |here: &str| NOT_ON_HARDWARE.iter().any(|start| here.starts_with(start));
        match here {
            Here::Nothing => "not here",
            Here::Option(here) if lacks(here) => "not on hardware",
            Here::Option(_) | Here::Command(_) => "verified",
        }
    }

    fn cell(text: &str) -> String {
        text.replace('|', "\\|")
    }

    fn table(title: &str, words: &[&Word], has_state: bool, text: &mut String) {
        if words.is_empty() {
            return;
        }
        let (head, line) = if has_state { (" state |", "---|") } else { ("", "") };
        writeln!(text, "| {title} | here |{head} difference |\n|---|---|{line}---|").unwrap();
        for word in words {
            let there: Vec<String> = word.there.iter().map(|there| format!("`{there}`")).collect();
            let here = match word.here {
                Here::Command(here) => format!("`wiregauge {here}`"),
                Here::Option(here) => format!("`{here}`"),
                Here::Nothing => String::new(),
            };
            let state = if has_state { format!(" {} |", state(word.here)) } else { String::new() };
            let (there, note) = (there.join(", "), cell(word.note));
            writeln!(text, "| {there} | {} |{state} {note} |", cell(&here)).unwrap();
        }
        text.push('\n');
    }

    fn page(head: &str, is_on_it: impl Fn(&Peer) -> bool) -> String {
        let mut text = head.to_owned();
        for peer in PEERS.iter().filter(|peer| is_on_it(peer)) {
            writeln!(text, "## {}\n", peer.name).unwrap();
            if !peer.about.is_empty() {
                writeln!(text, "{}", wrapped(peer.about, "", WIDTH)).unwrap();
            }
            let (options, commands): (Vec<&Word>, Vec<&Word>) =
                peer.words.iter().partition(|word| word.there[0].starts_with('-'));
            let has_state = OF_PERFTEST.contains(&peer.name);
            table("test", &commands, has_state, &mut text);
            table("option", &options, has_state, &mut text);
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    #[test]
    fn help_on_another_program_is_plain_text_of_100_columns() {
        for peer in PEERS {
            let text = text(peer);
            let wide = text.lines().find(|line| line.chars().count() > WIDTH);
            assert_eq!(wide, None, "{}", peer.name);
            assert!(!text.contains("](") && !text.contains('`'), "{}: {text}", peer.name);
        }
        assert!(text(find("osu").unwrap()).contains("docs/mpi.md"));
        assert_eq!(without_markup("a[0] of `b`"), "a[0] of b");
    }

    #[test]
    fn the_pages_of_other_tools_are_those_of_the_table() {
        let is_perftest = |peer: &Peer| OF_PERFTEST.contains(&peer.name);
        let pages = [
            ("from-other-tools.md", page(HEAD, |peer| !is_perftest(peer))),
            ("from-perftest.md", page(PERFTEST_HEAD, is_perftest)),
        ];
        for (name, page) in pages {
            let path = format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&path, &page).unwrap();
            }
            let written = std::fs::read_to_string(path).unwrap_or_default();
            assert!(written == page, "UPDATE_DOCS=1 cargo test --lib peers writes it again");
        }
    }
}
