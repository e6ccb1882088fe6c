//! What job launchers say: lists of nodes, opened MUNGE credentials, answers of PMI, what rank 0
//! published, the environment, what they print, and `scontrol`. The first byte chooses; each is a
//! value or one sentence.

use std::io::{self, BufReader, Read, Write};
use wiregauge::remote::job::rank::{RankOptions, find};
use wiregauge::remote::job::{munge, nodelist, parse_node, parse_published, pmi};
use wiregauge::remote::stderr;

/// A process manager that has its answers ready.
struct Scripted<'a>(&'a [u8]);

impl Read for Scripted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Scripted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn one_line(wrong: &str) {
    assert!(!wrong.is_empty() && !wrong.contains(char::is_control), "{wrong:?}");
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match choice % 7 {
        0 => {
            if let Some(name) = nodelist::first(&text) {
                assert!(!name.is_empty() && !name.contains([',', '[', ']', ' ']), "{name}");
            }
        }
        1 => {
            if let Err(wrong) = munge::read(&text, 1000) {
                one_line(&wrong);
            }
        }
        2 => {
            for own in [None, Some("ab12")] {
                if let Err(wrong) = pmi::share_with(&mut BufReader::new(Scripted(bytes)), own) {
                    one_line(&wrong);
                }
            }
        }
        3 => drop(parse_published(&text)),
        5 => {
            for line in [stderr::last_line(bytes), stderr::telling_line(bytes)] {
                line.iter().for_each(|line| one_line(line));
            }
        }
        6 => {
            let names = parse_node(&text);
            assert!(names.iter().all(|name| !name.contains(char::is_whitespace)), "{names:?}");
        }
        _ => {
            let value = |name: &str| {
                let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_string());
                text.lines().find_map(of)
            };
            match find(&RankOptions::default(), &value) {
                Ok(Some(rank)) => assert!(rank.rank < rank.ranks, "{rank:?}"),
                Ok(None) => {}
                Err(wrong) => one_line(&wrong),
            }
        }
    }
}
