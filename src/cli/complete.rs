//! Completion: what can follow on a command line. The shell's script, which `completions` prints,
//! calls the program at each Tab with [`VARIABLE`] set.

use super::refuse;
use crate::host;
use crate::options::split_outside_brackets;
use crate::plan::pairs::HERE;
use crate::remote::job::nodelist;
use crate::shipped::STUDIES;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Names the shell that asks.
const VARIABLE: &str = "WIREGAUGE_COMPLETE";
/// Most bytes that are read of a file of hosts.
const LONGEST_FILE: u64 = 1 << 20;

/// The shells, and where a package puts the script of each.
pub const SHELLS: [(&str, &str); 5] = [
    ("bash", "bash-completion/completions/wiregauge"),
    ("elvish", "elvish/lib/wiregauge.elv"),
    ("fish", "fish/vendor_completions.d/wiregauge.fish"),
    ("powershell", "powershell/wiregauge.ps1"),
    (ZSH, "zsh/site-functions/_wiregauge"),
];

const ZSH: &str = "zsh";
/// At the first Tab, zsh's compinit runs the script itself as the function `_wiregauge`: without
/// this, that call would define the completion and offer nothing.
const ZSH_FIRST: &str = r#"
if [[ $funcstack[1] == _wiregauge ]]; then
    _clap_dynamic_completer_wiregauge "$@"
fi
"#;

/// A shell's script.
pub fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(known) = Shells::builtins().completer(shell) {
        known.write_registration(VARIABLE, "wiregauge", "wiregauge", "wiregauge", &mut text)?;
    }
    if shell == ZSH {
        text.extend_from_slice(ZSH_FIRST.as_bytes());
    }
    Ok(text)
}

/// Answers a shell and ends the program, if it is a shell that asks.
pub fn answer(definition: impl Fn() -> clap::Command) {
    CompleteEnv::with_factory(|| completed(definition())).var(VARIABLE).bin("wiregauge").complete();
}

/// The definition whose arguments know what completes them.
fn completed(definition: clap::Command) -> clap::Command {
    let (pages, names) = (refuse::page_names(&definition), refuse::help_names(&definition));
    let named = |mut argument: clap::Arg| {
        for (operand, names) in [("PAGE", &pages), ("NAME", &names)] {
            let names = names.clone();
            let found = move |typed: &OsStr| among(names.clone(), typed);
            if argument.get_id() == operand {
                argument = argument.add(ArgValueCompleter::new(found));
            }
        }
        argument
    };
    with_places(definition).mut_subcommands(|command| command.mut_args(&named))
}

/// The same for hosts, devices and directories.
fn with_places(definition: clap::Command) -> clap::Command {
    definition.mut_args(of_argument).mut_subcommands(with_places)
}

fn of_argument(argument: clap::Arg) -> clap::Arg {
    let found: fn(&OsStr) -> Vec<CompletionCandidate> = match argument.get_id().as_str() {
        "to" | "leader" | "HOST[:PORT]" => |typed| among(hosts(), typed),
        "hosts" | "client-hosts" => |typed| after_the_last_comma(hosts(), typed),
        "interface" => |typed| among(names_in("/sys/class/net"), typed),
        "device" => |typed| among(names_in("/sys/class/infiniband"), typed),
        "STUDY" => |typed| {
            let shipped = STUDIES.iter().map(|(name, _)| (*name).to_owned());
            let files = PathCompleter::file().complete(typed);
            among(shipped, typed).into_iter().chain(files).collect()
        },
        "A" | "B" | "DIR" => |typed| {
            let runs = names_in(RUNS).map(|name| format!("{RUNS}/{name}"));
            among(runs, typed).into_iter().chain(PathCompleter::dir().complete(typed)).collect()
        },
        _ => return argument,
    };
    argument.add(ArgValueCompleter::new(found))
}

/// Those that begin with what was typed, each once.
fn among(names: impl IntoIterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let begun = names.into_iter().filter(|name| name.starts_with(&*typed));
    begun.collect::<BTreeSet<_>>().into_iter().map(CompletionCandidate::new).collect()
}

/// Completes the last host of a list, of which the parser knows no commas: some stand in brackets.
fn after_the_last_comma(names: Vec<String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let last = split_outside_brackets(&typed).last().map_or(0, |last| last.len());
    let before = &typed[..typed.len() - last];
    among(names.into_iter().map(|name| format!("{before}{name}")), OsStr::new(&*typed))
}

/// Where runs are kept unless `--out` says otherwise.
const RUNS: &str = "wiregauge-runs";

/// What a folder has, but for hidden files.
fn names_in(folder: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.'))
}

/// The hosts of the file that the same line names, and those that ssh knows.
fn hosts() -> Vec<String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let read = |path: &Path| host::read_text(path, LONGEST_FILE).unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let named = hosts_file(&words).map(|path| of_file(&read(&path))).unwrap_or_default();
    let configured = of_config(&read(&home.join(".ssh/config")));
    let known = of_known_hosts(&read(&home.join(".ssh/known_hosts")));
    named.into_iter().chain(configured).chain(known).chain([HERE.to_owned()]).collect()
}

/// The file of hosts on a line. Bash gives `--hosts-file=FILE` as three words.
fn hosts_file(words: &[OsString]) -> Option<PathBuf> {
    let option = words.iter().position(|word| word == "--hosts-file");
    let value = option.and_then(|at| words[at + 1..].iter().find(|word| *word != "="));
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--hosts-file="));
    value.map(PathBuf::from).or_else(|| joined.map(PathBuf::from))
}

/// The first word of each line, `#` begins a comment.
fn of_file(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.flat_map(|name| nodelist::expand(name).unwrap_or_default()).collect()
}

/// The names of `Host` lines, but for patterns.
fn of_config(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|key| key.eq_ignore_ascii_case("host")).map(|_| words)
    });
    lines.flatten().filter(|name| !name.contains(['*', '?', '!'])).map(str::to_owned).collect()
}

/// The names of known hosts, but for hashes and ports.
fn of_known_hosts(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let plain = |name: &&str| !name.is_empty() && !name.starts_with(['#', '@', '|', '[']);
    names.flat_map(|names| names.split(',')).filter(plain).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_where_people_keep_them() {
        assert_eq!(of_file("# rack\nnode1\n node2 # slow\n\n"), ["node1", "node2"]);
        assert_eq!(of_file("n[1-2] device=a\nb[\n"), ["n1", "n2"]);
        let config = "Host node3 node4\n  HostName 10.0.0.3\nhost *.lab !x\nMatch all\n";
        assert_eq!(of_config(config), ["node3", "node4"]);
        let known = "node5,10.0.0.5 ssh-ed25519 A\n|1|hash ssh-rsa B\n[node6]:22 x y\n";
        assert_eq!(of_known_hosts(known), ["node5", "10.0.0.5"]);
    }

    #[test]
    fn the_file_of_hosts_is_found_on_the_line() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            hosts_file(&words).map(|path| path.display().to_string())
        };
        assert_eq!(found("wiregauge hosts --hosts-file rack7 --to n").as_deref(), Some("rack7"));
        assert_eq!(found("wiregauge --hosts-file = rack7 --to n").as_deref(), Some("rack7"));
        assert_eq!(found("wiregauge --hosts-file=rack7 --to n").as_deref(), Some("rack7"));
        assert_eq!(found("wiregauge --to n"), None);
        assert_eq!(found("wiregauge --to n --hosts-file"), None);
    }
}
