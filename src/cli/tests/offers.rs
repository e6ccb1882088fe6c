//! Offers of commands: transports, hosts, and the options of `run`.

use super::*;
use crate::cli::commands;
use crate::pattern::registry;

/// Options of all measuring commands that `run` lacks: a study says them itself, or has no room for
/// them.
const OF_STUDIES: [&str; 14] = [
    "threads",
    "perturb",
    "check",
    "count",
    "time",
    "forever",
    "rounds",
    "until",
    "warmup",
    "loss-after",
    "threshold",
    "rails",
    "report-every",
    "causes",
];

#[test]
fn a_study_is_run_with_all_options_that_it_does_not_hold_itself() {
    let of_run: Vec<&str> = commands::OTHERS
        .iter()
        .find(|one| one.name == "run")
        .unwrap()
        .given()
        .definitions()
        .iter()
        .map(|option| option.name)
        .collect();
    for option in COMMON_OPTIONS.iter().copied().flatten() {
        let is_missing = !of_run.contains(&option.name);
        assert_eq!(is_missing, OF_STUDIES.contains(&option.name), "--{}", option.name);
    }
    // What a study is told to leave to the command line can be typed there.
    for word in crate::plan::study::file::TYPED {
        assert!(of_run.contains(&word), "run has no --{word}");
    }
    let Ok(Command::Run(asked)) = asked("run sockets/overview --timeout 30s") else { panic!() };
    assert_eq!(asked.timeout, Some(Span(30_000_000_000)));
}

/// Help, and what a command takes, name the same transports.
#[test]
fn each_command_offers_the_transports_that_carry_its_pattern_and_no_other() {
    for pattern in registry::all() {
        let name = pattern.name();
        let Ok(Command::Text(help)) = asked(&format!("{name} --help")) else { panic!() };
        let help = String::from_utf8(help).unwrap();
        let option = help.split("--transport <").nth(1).unwrap();
        let option = option.split("\n      --").next().unwrap();
        let listed = option.split("[possible values: ").nth(1).unwrap();
        let listed = listed.split(']').next().unwrap().replace('\n', " ");
        let listed: Vec<&str> = listed.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let default = option.split("[default: ").nth(1).unwrap().split(']').next().unwrap();
        assert!(listed.contains(&default), "{name}: {default} of {listed:?}");
        let last = help.split("where NAME is ").nth(1).unwrap().replace('\n', " ");
        let last: Vec<&str> = last
            .trim_end()
            .trim_end_matches('.')
            .split([',', ' '])
            .filter(|w| !w.is_empty())
            .collect();
        assert_eq!(last, listed, "{name}");
        for transport in TransportKind::ALL {
            // Options that a transport needs.
            let more = match transport.name() {
                "villas" => " --node-out 127.0.0.1:12000 --node-in 127.0.0.1:12001",
                _ => "",
            };
            let is_listed = listed.contains(&transport.name());
            let line = format!("{name} --transport {transport}{more}");
            // The usual size of some patterns is above what a datagram carries.
            let smaller = format!("{line} --size 1KiB");
            match asked(&line).or_else(|error| asked(&smaller).map_err(|_| error)) {
                Err(UsageError(sentence)) if is_listed => {
                    panic!("{name} lists {transport}: {sentence}")
                }
                Err(UsageError(sentence)) => {
                    let use_these = format!("does not support {name}: use {}", listed.join(", "));
                    assert!(sentence.contains(&use_these), "{sentence}");
                }
                Ok(_) => assert!(is_listed, "{name} takes {transport} and does not list it"),
            }
        }
    }
}

fn hosts(line: &str) -> Vec<String> {
    let nodes = request(line).place.nodes.into_iter();
    nodes.map(|node| node.map_or("here".into(), |one| one.host)).collect()
}

#[test]
fn hosts_with_numbers_in_brackets_are_all_of_them() {
    let line = "latency --all-pairs --hosts";
    assert_eq!(hosts(&format!("{line} n[08-10,20],here")), ["n08", "n09", "n10", "n20", "here"]);
    assert_eq!(hosts(&format!("{line} a[1-2].r[1-2]")), ["a1.r1", "a1.r2", "a2.r1", "a2.r2"]);
    assert_eq!(hosts(&format!("{line} a,b --hosts c[1,3]")), ["a", "b", "c1", "c3"]);
    assert_eq!(
        hosts(&format!("{line} agent:[fe80::1],agent:[::1]:80,agent:n[1-2]:80")),
        ["[fe80::1]", "[::1]:80", "n1:80", "n2:80"]
    );
    assert_eq!(hosts("latency --to n[7]"), ["here", "n7"]);
    for (line, why) in [
        ("latency --to n[1-2]", "--to: 'n[1-2]' stands for 2 hosts: name one, or use --hosts"),
        ("latency --hosts n[1-", "--hosts: invalid hosts 'n[1-': a bracket is not closed; use"),
        ("latency --hosts a,n[2-1]", "--hosts: invalid hosts 'n[2-1]': the range 2-1 goes down"),
        ("latency --hosts n[1-20000]", "--hosts: 'n[1-20000]' stands for 20000 hosts; at most"),
        ("latency --hosts n[1-6000],m[1-6000]", "--hosts names 12000 hosts; at most 10000"),
        ("load --client-hosts n[x]", "--client-hosts: invalid hosts 'n[x]': 'x' is no number"),
        ("latency --hosts=-n[1-2]", "invalid host '-n1'"),
    ] {
        assert!(refusal(line).contains(why), "{line}: {}", refusal(line));
    }
}

#[test]
fn a_datagram_over_ipv6_may_be_longer_by_what_ipv4_needs_for_its_header() {
    for (line, largest) in [
        ("latency --transport udp", 65_507),
        ("bandwidth --transport udp --family ipv4", 65_507),
        ("latency --transport udp --family ipv6", 65_527),
        ("exchange --transport udp --family ipv6", 65_527),
    ] {
        assert!(asked(&format!("{line} --size {largest}")).is_ok(), "{line}");
        let refused = refusal(&format!("{line} --size {}", largest + 1));
        assert!(refused.contains(&format!("{largest} B")), "{line}: {refused}");
    }
    assert!(asked("rpc --transport udp --family ipv6 --workload 65527B").is_ok());
    assert!(refusal("rpc --transport udp --family ipv6 --workload 65528B").contains("65527B"));
}

#[test]
fn packets_are_explained_by_help_of_their_own() {
    for line in ["explain packets --help", "explain packets one.trace -h"] {
        let Ok(Command::Text(text)) = asked(line) else { panic!("{line}: no help") };
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("How long packets of the kernel's Homa live"), "{line}: {text}");
    }
    assert!(matches!(asked("explain packets a b --json"), Ok(Command::Explain(_))));
}
