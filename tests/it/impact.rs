//! `impact` as a user meets it: a victim alone and beside congestors.
//!
//! No figure of time decides here: who ran beside whom, and what is said of it do.

use crate::support::controller::{Scratch, wiregauge, words};
use wiregauge::record::read_record;
use wiregauge::record::schema::{Record, Run};

fn measured(line: &str) -> (Scratch, Record, String) {
    let scratch = Scratch::new();
    let ended = wiregauge(&scratch, &words(&format!("{line} --out run")));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    (scratch, record, ended.stdout)
}

fn series<'a>(record: &'a Record, name: &str) -> &'a Run {
    let cases = record.plan.study.as_ref().unwrap().cases(name);
    &record.runs[cases[0] as usize]
}

#[test]
fn a_victim_is_measured_alone_and_beside_each_congestor_in_turns() {
    let (scratch, record, said) = measured(
        "impact --under incast,all-to-all latency --transport tcp --time 300ms --rounds 2",
    );
    assert_eq!((record.runs.len(), record.impacts.len()), (5, 2));
    let mut order: Vec<(u32, usize)> = Vec::new();
    for (number, group) in [&[0u32][..], &[1, 2], &[3, 4]].iter().enumerate() {
        let first = &record.runs[group[0] as usize];
        order.extend(first.rounds.iter().map(|round| (round.position, number)));
    }
    order.sort_unstable();
    let order: Vec<usize> = order.iter().map(|(_, group)| *group).collect();
    let (first, mut second) = (&order[..3], order[3..].to_vec());
    second.reverse();
    assert_eq!(first, second, "the second round has the order of the first in reverse");
    for (impact, name) in record.impacts.iter().zip(["incast", "all-to-all"]) {
        assert_eq!(impact.congestor, name);
        let (under, alone) = (series(&record, &format!("under {name}")), series(&record, "alone"));
        assert_eq!((impact.alone, impact.under), (alone.index, under.index));
        assert!(
            under.rounds.iter().all(|round| round.congested.is_some() && round.start.is_some())
        );
        assert!(alone.rounds.iter().all(|round| round.congested.is_none()));
        let median = impact.factors.iter().find(|factor| factor.of == "p50").unwrap();
        // A busy machine may leave too few round trips for a median.
        let p50 = |run: &Run| Some(run.figures[0].summary.quantile(0.5)?.value?.0);
        let both = p50(under).zip(p50(alone));
        assert_eq!(median.factor.is_some(), both.is_some(), "{median:?}");
        if let Some((under, alone)) = both {
            assert!((median.factor.unwrap().0 / (under / alone) - 1.0).abs() < 1e-9);
            assert!(said.contains(&format!("Under {name}, half_rtt is ")), "{said}");
            assert!(said.contains(" times that alone at p50"), "{said}");
        }
        let congestor = &record.runs[impact.beside[0] as usize];
        assert_eq!(congestor.case.pattern, "exchange");
        assert!(congestor.counts.received > 0);
    }
    let page = std::fs::read_to_string(scratch.join("run/report.html")).unwrap();
    assert!(page.contains("Congestion impact") && page.contains("under congestion over"));
}

#[test]
fn words_of_congestors_are_those_of_exchange() {
    let scratch = Scratch::new();
    let own = "--nodes 3 --transport unix";
    let victim = words("latency --transport shm --time 50ms --rounds 1 --out run");
    let before = ["impact", "--under", "broadcast", "--congestor", own];
    let ended = wiregauge(&scratch, &[&before[..], &victim].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let congestor = series(&record, "congestor broadcast");
    assert_eq!(congestor.case.topology.ranks.len(), 3);
    assert_eq!(congestor.case.transport.name(), "unix");
}

#[test]
fn what_is_no_victim_and_no_congestor_is_refused() {
    let scratch = Scratch::new();
    let refused = |arguments: &[&str]| {
        let ended = wiregauge(&scratch, &[&["impact"], arguments].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        ended.stderr
    };
    for (arguments, says) in [
        (&["latency", "--count", "100"][..], "use --time instead of --count"),
        (&["latency", "--transport", "tcp,udp"], "impact takes one victim"),
        (&["latency", "--transport", "synthetic"], "impact needs real time"),
        (&["latency", "--to", "node1"], "typed before its command"),
        (&["--hosts", "a,b,c", "latency"], "3 are too few: name 4 or more"),
        (&["--hosts", "a,b,c,d", "exchange"], "use a command that measures a pair"),
        (&["--hosts", "a,b,c,d", "latency", "--transport", "unix"], "unix"),
        (&["--to", "a", "latency"], "--to names no congestors"),
        (&["list"], "impact takes a command that measures"),
        (&["--under", "storm", "latency"], "all-to-all, incast, broadcast"),
        (&["--congestor", "--nodes 1", "latency"], "--congestor: --nodes: '1' is out of range"),
        (&["--congestor", "--time 1s", "latency"], "--time is not for congestors"),
        (&["--congestor", "--size 1KiB,2KiB", "latency"], "is 2 cases: use one"),
        (&["--congestor", "--json", "latency"], "output, limits and tables are those of"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

const STUDY: &str = r#"
title = "What does a latency suffer from three that send to one?"

[all]
rounds = 2
time = "100ms"
transport = "unix"

[[latency]]
series = "quiet"

[[latency]]
series = "loaded"
together = "incast"
after = "50ms"

[[bandwidth]]
series = "writers"
together = "incast"
places = 4
topology = "many-to-one"
time = "400ms"

[[impact]]
alone = "quiet"
under = "loaded"
congestor = "writers"
"#;

#[test]
fn entries_of_a_study_run_at_the_same_time_from_one_instant_on() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("parts.toml"), STUDY).unwrap();
    let ended = wiregauge(&scratch, &words("run parts.toml --out run --columns all"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert_eq!(record.plan.concurrent, [[1, 2, 3, 4]]);
    let labels: Vec<&str> = record.runs.iter().map(|run| run.label.as_str()).collect();
    for (label, end) in labels[2..].iter().zip(["1 to 0", "2 to 0", "3 to 0"]) {
        assert!(label.starts_with("writers: bandwidth") && label.ends_with(end), "{label}");
    }
    for run in &record.runs[1..] {
        for round in &run.rounds {
            let start = round.start.as_ref().unwrap();
            assert!(start.client.is_some() && start.server.is_some() && round.overlap.is_some());
        }
    }
    assert!(record.runs[0].rounds.iter().all(|round| round.start.is_none()));
    let before: Vec<u32> = record.runs.iter().map(|run| run.case.part.cpus_before).collect();
    assert_eq!(before, [0, 0, 1, 2, 3]);
    let [impact] = record.impacts.as_slice() else { panic!("{:?}", record.impacts) };
    assert_eq!((impact.alone, impact.under, &impact.beside[..]), (0, 1, &[2, 3, 4][..]));
    assert!(record.runs[1].rounds.iter().all(|round| round.congested.is_some()));
    // The sum of a series, and each part with its start.
    assert!(ended.stdout.lines().any(|line| line.starts_with("writers") && line.contains("  3  ")));
    let loaded = ended.stdout.lines().find(|line| line.starts_with("loaded: latency")).unwrap();
    assert!(loaded.contains("  50  "), "{loaded}");
}

#[test]
fn what_cannot_run_at_the_same_time_is_refused_at_its_place() {
    let scratch = Scratch::new();
    let refused = |entries: &str| {
        let text = format!("title = \"t\"\n{entries}");
        std::fs::write(scratch.join("s.toml"), text).unwrap();
        let ended = wiregauge(&scratch, &words("run s.toml"));
        assert_eq!(ended.code, Some(2), "{entries}: {ended:?}");
        ended.stderr
    };
    let one = "[[latency]]\nseries = \"a\"\n";
    let both = "[[latency]]\nseries = \"b\"\ntogether = \"t\"\n";
    for (entries, says) in [
        (format!("{one}topology = \"incast\"\n"), "use many-to-one, one-to-many, all-to-all"),
        (format!("{one}topology = \"bisection\"\n"), "needs 'together'"),
        (format!("{one}after = \"1s\"\n"), "needs 'together'"),
        (format!("{one}together = \"t\"\nafter = \"2m\"\n"), "s.toml:5:9"),
        (format!("{one}together = \"t\"\ntopology = \"bisection\"\n"), "needs 'places'"),
        (format!("{one}together = \"t\"\nplaces = 1\n"), "use 2 to 64 processes"),
        (format!("{one}together = \"t\"\nplaces = [\"x\", \"y\"]\n"), "'x' is not among"),
        (
            format!("{one}together = \"t\"\ntopology = \"bisection\"\nplaces = 3\n"),
            "an even number of places, not 3",
        ),
        (format!("{one}together = \"t\"\nsize = \"8,16\"\n{both}"), "2 cases and another 1"),
        (format!("{one}together = \"t\"\ntransport = \"null\"\n{both}"), "beside a simulation"),
        (format!("{one}[[impact]]\nalone = \"a\"\nunder = \"z\"\n"), "unknown series 'z'"),
        (format!("{one}[[impact]]\nalone = \"a\"\nunder = \"a\"\n"), "nothing runs beside 'a'"),
    ] {
        let said = refused(&entries);
        assert!(said.contains(says), "{entries}: {said}");
    }
}
