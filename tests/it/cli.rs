//! The command line as its users meet it: each file of `tests/cli` is a transcript, and a document.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test --test it cli::` writes them again.

#[test]
fn transcripts_hold() {
    // Of each command: far above what one takes on a busy machine.
    let limit = std::time::Duration::from_secs(120);
    trycmd::TestCases::new().env("COLUMNS", "100").timeout(limit).case("tests/cli/*.md");
}

/// Shells, and a script that prints the completions of its last argument.
const SHELLS: [(&str, &str); 3] = [
    (
        "bash",
        r#"source <(wiregauge completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_wiregauge wiregauge "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#,
    ),
    ("fish", "wiregauge completions fish | source; complete -C (string join -- ' ' $argv)"),
    (
        // Calls the script as compinit does at the first Tab, and prints instead of showing a menu.
        "zsh",
        r#"wiregauge completions zsh >_wiregauge
        fpath=($PWD $fpath)
        autoload -Uz _wiregauge
        compdef() { }
        _describe() { print -rl -- ${(P)@[-1]} }
        words=("$@") CURRENT=$#
        _wiregauge"#,
    ),
];

/// The completions of the last of these words.
fn offered(shell: &(&str, &str), words: &[&str], home: &std::path::Path) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_wiregauge")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let (name, script) = shell;
    let mut command = std::process::Command::new(name);
    command.args(["-c", script]).args((*name != "fish").then_some(name)).arg("wiregauge");
    command.args(words).current_dir(home).env("PATH", path).env("HOME", home);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{name} {words:?}: {said}");
    // A description may follow the word.
    let word = |line: &str| line.split(['\t', ':']).next().unwrap().trim().to_owned();
    String::from_utf8(output.stdout).unwrap().lines().map(word).collect()
}

fn is_installed(program: &str) -> bool {
    let ended = std::process::Command::new(program).args(["-c", "true"]).output();
    ended.is_ok_and(|output| output.status.success())
}

#[test]
fn shells_complete_commands_options_lists_hosts_studies_and_runs() {
    for shell in &SHELLS {
        match is_installed(shell.0) {
            true => completes(shell),
            false => eprintln!("skipped: {} is not installed", shell.0),
        }
    }
}

fn completes(shell: &(&str, &str)) {
    let home = tempfile::tempdir().unwrap();
    let run = "wiregauge-runs/20261121T055243Z-latency";
    std::fs::create_dir_all(home.path().join(run)).unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join("rack7"), "node1\nnode2 # slow\n").unwrap();
    std::fs::write(home.path().join(".ssh/config"), "Host nod* lab9\n").unwrap();
    for (line, expected) in [
        ("lat", "latency"),
        ("latency --transpo", "--transport"),
        ("latency --transport tcp,sh", "tcp,shm"),
        ("latency --wait b", "busy block"),
        ("latency --to la", "lab9"),
        ("hosts --hosts-file rack7 --to node", "node1 node2"),
        ("latency --hosts node1,la", "node1,lab9"),
        ("latency --hosts-file ra", "rack7"),
        ("run potter/in", "potter/inline"),
        ("report wiregauge-runs/2026", run),
        ("help perf", "perftest"),
        ("completions z", "zsh"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let offered: Vec<String> = offered(shell, &words, home.path())
            .iter()
            .map(|one| one.trim_end_matches('/').into())
            .collect();
        let expected: Vec<&str> = expected.split(' ').collect();
        for word in &expected {
            assert!(offered.iter().any(|one| one == word), "{} {line}: {offered:?}", shell.0);
        }
        assert!(offered.len() <= expected.len() + 1, "{} {line}: {offered:?}", shell.0);
    }
    let settings = offered(shell, &["latency", "--in"], home.path());
    assert!(settings.contains(&"--inline".to_owned()), "{settings:?}");
}
