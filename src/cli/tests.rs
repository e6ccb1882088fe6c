//! What the command line promises.

mod addresses;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod printed;

use super::*;
use crate::pattern::bandwidth::{self, Direction};
use crate::pattern::{latency, oneway};
use crate::plan::{Schedule, Wait};
use crate::transport::TransportKind;
use crate::units::{Bytes, MessageRate};
use proptest::prelude::*;

fn asked(line: &str) -> Result<Command, UsageError> {
    let words = std::iter::once("wiregauge").chain(line.split_whitespace());
    parse(&words.map(OsString::from).collect::<Vec<_>>())
}

fn request(line: &str) -> Request {
    match asked(line) {
        Ok(Command::Measure { request, .. }) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    match asked(line) {
        Err(UsageError(sentence)) => sentence,
        other => panic!("{line}: {other:?}"),
    }
}

/// A byte that no text has is shown as another, which names another file.
#[test]
fn names_that_are_text_are_refused_where_they_are_not() {
    use std::os::unix::ffi::OsStringExt;
    for line in ["run", "compare before", "help"] {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec());
        let typed = [b"wiregauge".to_vec()].into_iter().chain(words).chain([b"tcp\xff".to_vec()]);
        let found = parse(&typed.map(OsString::from_vec).collect::<Vec<_>>());
        let Err(UsageError(sentence)) = found else { panic!("{line}") };
        assert_eq!(sentence, "an argument is not UTF-8: use plain text", "{line}");
    }
}

#[test]
fn no_command_is_the_survey() {
    for line in ["", "survey"] {
        let found = asked(line).unwrap();
        assert!(
            matches!(&found, Command::Survey { cpus, seed: 1, options }
                if cpus.is_empty() && options.clock.is_none()),
            "{line}"
        );
    }
    let Ok(Command::Survey { options, .. }) = asked("--json --out nowhere") else { panic!() };
    assert!(options.json && options.directory == Some("nowhere".into()));
}

#[test]
fn lists_and_sweeps_become_values_each_once() {
    let found = request("latency --transport shm,tcp,shm --wait block,busy --size 64,8..32*2");
    assert_eq!(found.transports, [TransportKind::Shm, TransportKind::Tcp]);
    assert_eq!(found.waits, [Wait::Block, Wait::Busy]);
    assert_eq!(found.sizes, [8, 16, 32, 64].map(Bytes));
}

#[test]
fn what_is_not_asked_for_is_the_pattern_s_default() {
    for (line, usual) in [
        ("latency", latency::request(Default::default())),
        ("oneway", oneway::request(oneway::Spec::default())),
        ("bandwidth", bandwidth::request(bandwidth::Spec::default())),
    ] {
        assert_eq!(format!("{:?}", request(line)), format!("{usual:?}"));
    }
}

#[test]
fn each_option_reaches_the_request() {
    let found = request(
        "bandwidth --transport tcp --size 1MiB --count 10k --time 2s --rounds 7 --until 2.5% \
         --warmup 5 --burst 4 --window 8 --direction bi --check --threshold 1ms --timeout 3s \
         --loss-after 4ms --nodelay off --busy-poll 50us --send-buffer 1MiB --receive-buffer 64kB \
         --congestion reno --mss 1448 --dscp 46 --seed 18446744073709551615 --clock monotonic_raw",
    );
    assert_eq!(found.count, Some(10_000));
    assert_eq!(found.time, Some(Span(2_000_000_000)));
    assert_eq!((found.rounds, found.until, found.warmup), (Some(7), Some(0.025), Some(5)));
    let asked = bandwidth::Spec { burst: 4, window: 8, direction: Direction::Bi };
    assert_eq!(format!("{:?}", found.asked), format!("{asked:?}"));
    assert!(found.check);
    assert_eq!(found.threshold, Span(1_000_000));
    assert_eq!((found.timeout, found.loss_after), (Span(3_000_000_000), Span(4_000_000)));
    let settings = &found.settings;
    assert_eq!((settings.switch("nodelay"), settings.busy_poll_us()), (Some(false), Some(50)));
    assert_eq!(settings.size("send-buffer"), Some(Bytes(1 << 20)));
    assert_eq!(settings.size("receive-buffer"), Some(Bytes(64_000)));
    assert_eq!((settings.text("congestion"), settings.count("dscp")), (Some("reno"), Some(46)));
    assert_eq!((settings.size("mss"), found.seed), (Some(Bytes(1448)), u64::MAX));
}

#[test]
fn a_rate_makes_a_schedule() {
    let rate = MessageRate(1e4);
    let schedule = |line: &str| request(line).schedule;
    assert_eq!(schedule("oneway"), Schedule::ClosedLoop);
    assert_eq!(schedule("oneway --rate 10k"), Schedule::Periodic { rate });
    assert_eq!(schedule("oneway --rate 10k --arrivals poisson"), Schedule::Poisson { rate });
    assert!(refusal("oneway --arrivals poisson").contains("--arrivals needs --rate"));
}

#[test]
fn a_window_takes_bursts_of_any_length_and_nothing_else_that_sets_send_times() {
    let asked = |line: &str| format!("{:?}", request(line).asked);
    let spec = |burst, outstanding, pause| {
        format!("{:?}", oneway::Spec { burst, outstanding, pause: Span(pause) })
    };
    assert_eq!(asked("oneway --outstanding 8"), spec(None, Some(8), 0));
    let long = "oneway --outstanding 8000 --burst 8000 --pause 1s";
    assert_eq!(asked(long), spec(Some(8000), Some(8000), 1_000_000_000));
    assert_eq!(asked("oneway --burst 16"), spec(Some(16), None, 0));
    for (line, says) in [
        ("oneway --burst 1025", "needs --outstanding N: without it"),
        ("oneway --outstanding 8 --rate 1k", "do not work with --outstanding"),
        ("oneway --outstanding 8 --pause 1us", "use --burst as well"),
        ("oneway --outstanding 0", "use 1 to 65536"),
        ("oneway --transport verbs --outstanding 1 --stamp-send", "--stamp-send sends one"),
        (
            "oneway --transport verbs --outstanding 8 --operation write --service uc",
            "use send, send",
        ),
    ] {
        assert!(refusal(line).contains(says), "{line}: {}", refusal(line));
    }
}

#[test]
fn an_option_of_another_command_is_refused_with_that_command() {
    assert!(refusal("latency --rate 1k").contains(
        "'--rate', which is an option of oneway, stream, load, exchange, run (`wiregauge help"
    ));
    assert!(refusal("latency --window 3").contains("which is an option of bandwidth, load"));
}

#[test]
fn every_refusal_is_one_short_line_that_says_what_is_allowed() {
    let lines = [
        "wrong",
        "--wrong",
        "latency --wrong",
        "latency wrong",
        "latency --size",
        "latency --size 1e",
        "latency --size 8..9",
        "latency --transport x",
        "latency --wait x",
        "latency --count x",
        "latency --count 0",
        "latency --until 5",
        "latency --cpus 1",
        "latency --cpus 0,99999",
        "latency --time 5",
        "latency --size 8 --size 9",
        "--json latency",
        "export",
        "report",
        "report /nonexistent",
        "compare a",
        "compare a b --fail-if x",
        "completions x",
        "latency --json=3",
        "latency --nodelay maybe",
        "latency --transport udp --nodelay on",
        "latency --transport udp --size 1MiB",
        "latency --dscp 64",
        "latency --busy-poll 1ns",
        "latency --synthetic x",
        "noise --cpus x",
        "noise --time 0",
        "export /tmp --format xml",
        "latency --clock sundial",
        "latency --out /tmp",
        "latency --congestion a/b",
    ];
    for line in lines {
        let sentence = refusal(line);
        assert!(sentence.len() < 300, "{line}: {sentence}");
        let says =
            ["allowed", "write", "use ", "lists all", "supports", "needs", "has 1 to", "may use"];
        assert!(says.iter().any(|word| sentence.contains(word)), "{line}: {sentence}");
        assert!(!sentence.contains('\n') && !sentence.contains("--help'"), "{line}: {sentence}");
    }
}

#[test]
fn a_wrong_word_is_answered_with_the_one_that_was_meant() {
    let mut wrong = Vec::new();
    for (line, meant) in [
        ("lat", "'latency'"),
        ("latncy", "'latency'"),
        ("bw", "'bandwidth'"),
        ("comp", "'compare'"),
        ("lst", "'list'"),
        ("Stream", "'stream'"),
        ("ping-pong", "'latency --transport udp'"),
        ("ib_send_lat", "'latency --transport verbs'"),
        ("ib_send_lta", "'latency --transport verbs'"),
        ("tcp_lat", "'latency --transport tcp --wait block'"),
        ("tcp_bw", "'bandwidth --transport tcp --wait block'"),
        ("TCP_RR", "'latency --transport tcp --size 1'"),
        ("TCP_STREAM", "'bandwidth --transport tcp'"),
        ("osu_latency", "'latency --transport mpi'"),
        ("under-load", "'load --transport udp --rate 10k'"),
        ("server", "'agent'"),
        ("tcp", "'latency --transport tcp'"),
        ("-s", "'agent'"),
        ("-c node07", "'latency --to'"),
        ("latency --iterations 5", "'--count'"),
        ("latency --iteration 5", "'--count'"),
        ("latency --iters 5", "'--count'"),
        ("latency -n 5", "'--count'"),
        ("latency -s 64", "'--size'"),
        ("latency -t 10", "'--time' (iperf3's -t) or "),
        ("latency --duration 10", "'--time'"),
        ("latency -D 10", "'--time'"),
        ("latency -c node07", "'--to' (iperf3's -c) or "),
        ("latency -d mlx5_0", "'--device'"),
        ("latency --ib_dev mlx5_0", "'--device'"),
        ("bandwidth -P 4", "'--threads' (iperf3's -P) or "),
        ("bandwidth -l 128K", "'--size' (iperf3's -l) or "),
        ("bandwidth -w 1M", "'--send-buffer'"),
        ("bandwidth -b", "'--burst' (sockperf's -b) or "),
        ("bandwidth -b 100M", "'oneway --rate', messages (oneway)"),
        ("bandwidth -i 1", "'--report-every' (iperf3's -i) or "),
        ("bandwidth --bidir", "'--direction bi'"),
        ("bandwidth -u", "'--transport udp'"),
        ("latency --mps 1000", "'oneway --rate'"),
        ("latency --siez 5", "'--size'"),
        ("latency --inl 5", "'--inline'"),
        ("latency node07", "'--to node07'"),
        ("latency 64K", "'--size 64K'"),
        ("latency udp", "'--transport udp'"),
        ("latency --transport rdma", "'verbs'"),
        ("latency --transport tpc", "'tcp'"),
        ("latency --wait polling", "'busy'"),
    ] {
        let sentence = refusal(line);
        let is_right = sentence.contains(&format!("did you mean {meant}"));
        if !is_right || sentence.matches("did you mean").count() != 1 {
            wrong.push(format!("{line}: {sentence}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (line, says) in [
        ("wrong", "there is no command 'wrong' (`wiregauge --help` lists all)"),
        ("latency --wrong", "latency has no option '--wrong' (`wiregauge help latency` lists all)"),
        ("latency --port 5201", "(iperf3's --port: wiregauge chooses free ports itself)"),
        ("latency -p 5", "'-p': wiregauge chooses free ports itself (`wiregauge help latency"),
        ("compare a b -p", "compare has no option '-p' (`wiregauge help compare` lists all)"),
        ("osu_allreduce", "did you mean 'collective --collective allreduce'?"),
    ] {
        assert!(refusal(line).contains(says), "{line}: {}", refusal(line));
    }
}

/// Words in capitals stand for values.
#[test]
fn each_word_of_the_peers_leads_to_what_exists() {
    let whole = definition::definition(true);
    let commands: Vec<&clap::Command> = whole.get_subcommands().collect();
    let mut broken = Vec::new();
    for (peer, there, word) in peers::words() {
        let place = format!("{}: {there}", peer.name);
        let fits = |command: &&clap::Command, here: &str| {
            let option = suggest::first(here);
            suggest::options(command).any(|known| known == option)
        };
        match word.here {
            peers::Here::Nothing => assert!(!word.note.is_empty(), "{place}"),
            peers::Here::Command("--version") => {}
            peers::Here::Command(here) => {
                let known = commands.iter().find(|one| one.get_name() == suggest::first(here));
                let known = known.unwrap_or_else(|| panic!("{place}: there is no {here}"));
                for option in
                    here.split(' ').filter(|word| word.starts_with("--") && word.len() > 2)
                {
                    assert!(fits(known, option), "{place}: {here}");
                }
                let is_whole = here.split(' ').all(|word| word.chars().any(|c| c.is_lowercase()));
                if is_whole && !here.contains("HOST") {
                    broken.extend(asked(here).err().map(|why| format!("{place}: {here}: {why}")));
                }
            }
            peers::Here::Option(here) => {
                let known = commands.iter().find(|command| fits(command, here));
                let known = known.unwrap_or_else(|| panic!("{place}: there is no {here}"));
                let value = here.split_once(' ').map(|(_, value)| value);
                if value.is_none_or(|value| !value.chars().any(|c| c.is_uppercase())) {
                    let setting =
                        if word.note.contains("verbs") { "--transport verbs" } else { "" };
                    let line = format!("{} {here} {setting}", known.get_name());
                    broken.extend(asked(&line).err().map(|why| format!("{place}: {line}: {why}")));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn help_says_what_it_can_be_about() {
    let meant = |line: &str| {
        let sentence = refusal(line);
        let begin = sentence.find("did you mean ").map(|at| at + "did you mean ".len());
        begin.and_then(|at| sentence[at..].split('?').next().map(str::to_owned))
    };
    for (line, instead) in [
        ("help bw", "'help bandwidth'"),
        ("help latncy", "'help latency'"),
        ("help iperf", "'help iperf3'"),
        ("help ib_send_lat", "'help perftest'"),
        ("help osu_allreduce", "'help OSU'"),
        ("perftest", "'help perftest'"),
        ("qperf", "'help qperf'"),
        ("Sockperf", "'help sockperf'"),
        ("netperf", "'help netperf'"),
        ("OSU", "'help OSU'"),
        ("hyperfine", "'help hyperfine'"),
        ("man latncy", "'man latency'"),
    ] {
        assert_eq!(meant(line).as_deref(), Some(instead), "{line}: {}", refusal(line));
    }
    for (line, says) in [
        ("help latency tcp", "takes one name: use `wiregauge help tcp`"),
        ("help tcp extra", "takes one name: use `wiregauge help tcp`"),
        ("help latency extra", "no help on 'latency extra' (`wiregauge"),
    ] {
        assert!(refusal(line).contains(says), "{line}: {}", refusal(line));
    }
}

/// What has a counterpart is answered with it.
#[test]
fn a_word_without_a_counterpart_names_no_option_that_exists() {
    let whole = definition::definition(true);
    let commands: Vec<&clap::Command> = whole.get_subcommands().collect();
    let exists = |word: &&str| {
        word.starts_with("--")
            && commands.iter().any(|one| suggest::options(one).any(|known| known == **word))
    };
    // Options of that name mean something else: an RDMA device's port, a stream's file.
    let others = ["--port", "--format", "--file"];
    for (peer, there, word) in peers::words() {
        let has_none = matches!(word.here, peers::Here::Nothing | peers::Here::Option("--json"));
        let named = word.note.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let mut named = named.chain((word.here == peers::Here::Nothing).then_some(there));
        let found = named.find(|word| exists(word) && !others.contains(word));
        assert!(!has_none || found.is_none(), "{}: {there}: {found:?}", peer.name);
    }
}

#[test]
fn what_completion_offers_is_taken() {
    let whole = definition::definition(false);
    for (command, names) in
        [("man", refuse::page_names(&whole)), ("help", refuse::help_names(&whole))]
    {
        assert!(names.len() > 20, "{names:?}");
        for name in names {
            let found = asked(&format!("{command} {name}"));
            assert!(matches!(found, Ok(Command::Text(_))), "{command} {name}: {found:?}");
        }
    }
}

#[test]
fn no_peer_has_a_word_twice() {
    for peer in peers::PEERS {
        let all: Vec<&str> = peer.words.iter().flat_map(|word| word.there).copied().collect();
        for (number, word) in all.iter().enumerate() {
            assert!(!all[..number].contains(word), "{}: {word}", peer.name);
        }
    }
}

#[test]
fn help_version_completions_and_manual_are_texts() {
    let text = |line: &str| match asked(line) {
        Ok(Command::Text(text)) => String::from_utf8(text).unwrap(),
        other => panic!("{line}: {other:?}"),
    };
    assert!(text("--version").starts_with("wiregauge "));
    assert_eq!(text("latency --help"), text("help latency"));
    assert!(text("latency --help").contains("--loss-after"));
    assert_eq!(text("latency --size 8 -h"), text("latency -h"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&format!("completions {shell}")).contains("WIREGAUGE_COMPLETE"));
    }
    let manual = text("man");
    assert!(manual.contains(".TH WIREGAUGE 1") && manual.contains("wiregauge\\-latency"));
    assert!(text("man latency").contains("perturb") && text("man transports").contains("mss"));
    assert!(text("man testbed net").contains(".TH WIREGAUGE-TESTBED-NET 1"));
    assert!(!text("--help").contains("run-role") && !manual.contains("run\\-role"));
    assert!(refusal("man nothing-of-it").contains("no man page on 'nothing-of-it': use survey"));
}

/// Every page is for all who type `man`, so none may have what its formatter warns of.
#[test]
fn man_pages_are_formatted_without_a_warning() {
    let Ok(Command::Files { files, .. }) = asked("man --dir pages") else { panic!() };
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["man1/wiregauge.1", "man1/wiregauge-latency.1", "man7/wiregauge-transports.7"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for (name, text) in &files {
        let page = String::from_utf8_lossy(text);
        assert!(page.contains(".SH NAME\n") && page.contains(".SH \"SEE ALSO\"\n"), "{name}");
        for formatter in ["groff -ww -man -Tutf8 -z", "mandoc -Tlint -Wwarning"] {
            if let Some(said) = piped(formatter, text) {
                assert!(said.is_empty(), "{name}: {formatter}: {said}");
            }
        }
    }
}

/// What a program says of a text, if it is installed.
fn piped(command: &str, text: &[u8]) -> Option<String> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let words: Vec<&str> = command.split(' ').collect();
    let mut program = Command::new(words[0]);
    program.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().ok()?;
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn short_help_fits_a_terminal() {
    let screen = |line: &str| match asked(line) {
        Ok(Command::Text(text)) => String::from_utf8(text).unwrap(),
        other => panic!("{line}: {other:?}"),
    };
    let whole = definition::definition(false);
    let mut names = vec![String::new()];
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        names.push(command.get_name().to_owned());
        let below = command.get_subcommands();
        names.extend(below.map(|below| format!("{} {}", command.get_name(), below.get_name())));
    }
    let mut wrong = Vec::new();
    for name in names {
        let text = screen(&format!("{name} -h"));
        // The program has more commands than a small terminal lines; each has one.
        let most = if name.is_empty() { 37 } else { screen::LINES };
        if text.lines().count() > most {
            wrong.push(format!("{name}: {} lines", text.lines().count()));
        }
        wrong.extend(text.lines().filter(|line| line.ends_with('\\')).map(str::to_owned));
        let wide = text.lines().filter(|line| line.chars().count() > screen::WIDTH);
        wrong.extend(wide.map(|line| format!("{name}: {line}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        let line = format!(" {} ", command.get_name());
        assert!(screen("-h").contains(&line), "{line}");
    }
    assert!(screen("latency -h").contains("--to <HOST>"), "{}", screen("latency -h"));
}

#[test]
fn the_definition_is_sound() {
    for with_settings in [true, false] {
        definition::definition(with_settings).debug_assert();
    }
}

proptest! {
    #[test]
    fn nothing_that_is_typed_panics_or_breaks_the_line(
        command in prop::sample::select(vec!["latency", "oneway", "bandwidth", "noise", "export"]),
        words in prop::collection::vec(
            prop_oneof![
                "\\PC{0,12}".prop_map(String::from),
                "[\\x00-\\x7f]{0,12}".prop_map(String::from),
                prop::sample::select(vec![
                    "--size", "--cpus", "--time", "--rate", "--until", "--transport", "--seed",
                    "--synthetic", "--count", "--pause", "64KiB", "8..64*2", "5%", "1s", "-1",
                ]).prop_map(String::from),
            ],
            0..6,
        ),
    ) {
        let typed = ["wiregauge", command].map(String::from).into_iter().chain(words);
        if let Err(UsageError(sentence)) = parse(&typed.map(OsString::from).collect::<Vec<_>>()) {
            prop_assert!(!sentence.contains(char::is_control), "{:?}", sentence);
        }
    }
}

#[test]
fn the_time_of_a_plan_is_known_before_it_runs() {
    for (line, seconds) in [
        ("bandwidth --transport shm,unix --time 2s --rounds 5", 20.0..23.0),
        ("oneway --transport shm --rate 1k --count 9000 --warmup 1000 --rounds 2", 20.0..21.0),
        ("latency --transport shm --wait block --count 99k --warmup 1k --rounds 2", 10.0..15.0),
        // The first of the two ends a round.
        ("bandwidth --transport shm --time 1s --count 16M --rounds 1", 1.0..1.5),
        ("collective --size 8 --count 100 --rounds 2", 2.0..5.0),
    ] {
        let takes = request(line).plan().unwrap().duration().unwrap().as_secs_f64();
        assert!(seconds.contains(&takes), "{line}: {takes} s");
    }
    assert_eq!(request("latency --forever").plan().unwrap().duration(), None);
}
