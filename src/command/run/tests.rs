//! The studies that are shipped make sense, and so do the refusals of others.

use super::*;
use crate::host::RdmaLink;
use crate::shipped;
use crate::units::Span;

fn parsed(name: &str, text: &str) -> StudyFile {
    file::parse(&registry::names(), name, text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// A machine with an InfiniBand link of this rate, and IPoIB in this mode.
fn machine(link_rate: &str, ipoib_mode: &str) -> Machine {
    Machine { link_rate: Ok(link_rate.into()), ipoib_mode: Ok(ipoib_mode.into()) }
}

#[test]
fn every_shipped_study_can_be_run() {
    for &(name, text) in STUDIES.iter() {
        let parsed = parsed(name, text);
        let requests = requests(&parsed, None).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        fitting::check(&parsed, &requests).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let graphs =
            graphs(&parsed, &requests, &Place::default(), &machine("FDR", "datagram"), false)
                .unwrap();
        assert_eq!(graphs.len(), parsed.graphs.len(), "{name}");
    }
}

#[test]
fn every_reference_of_a_shipped_study_is_there() {
    let none = Machine { link_rate: Err("no link".into()), ipoib_mode: Err("no IPoIB".into()) };
    let machines = [machine("FDR", "datagram"), machine("EDR", "connected"), none];
    let mut drawn = 0;
    for &(name, text) in STUDIES.iter() {
        let parsed = parsed(name, text);
        let each = |graph| machines.iter().map(move |machine| (graph, machine));
        for (asked, machine) in parsed.graphs.iter().flat_map(each) {
            let mut graph = asked.graph.clone();
            let done = beside(&parsed, asked, &mut graph, machine, |_, _| None);
            done.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            drawn += graph.references.len();
            let all = graph.references.len() + graph.notes.len();
            assert!(all > 0 || asked.references.is_empty(), "{name}");
        }
    }
    assert!(drawn > 60, "{drawn}");
}

#[test]
fn every_file_of_a_study_and_a_reference_is_shipped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root.join("studies")).unwrap() {
        let folder = folder.unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let (path, folder) = (entry.unwrap().path(), folder.file_name());
            let name = path.file_stem().unwrap().to_str().unwrap();
            found.push(format!("{}/{name}", folder.to_str().unwrap()));
        }
    }
    found.sort();
    assert_eq!(found, Vec::from_iter(STUDIES.iter().map(|(name, _)| *name)));
    // The workloads are no publication's figures.
    let is_figures = |name: &std::ffi::OsStr| name != "workloads.toml";
    let references = std::fs::read_dir(root.join("references")).unwrap();
    let figures = references.filter(|entry| is_figures(&entry.as_ref().unwrap().file_name()));
    assert_eq!(figures.count(), reference::shipped().count());
}

#[test]
fn the_quantiles_of_a_graph_are_those_of_a_summary() {
    assert_eq!(file::QUANTILES, crate::stats::QUANTILES);
}

/// What is wrong with the graph of a study of these entries.
fn unfit(entries: &str, graph: &str) -> String {
    let graph = format!("[[graph]]\ntitle = \"g\"\n{graph}");
    let parsed = parsed("s.toml", &format!("title = \"t\"\n{entries}{graph}"));
    let requests = requests(&parsed, None).unwrap();
    fitting::check(&parsed, &requests).unwrap_err().to_string()
}

#[test]
fn a_graph_of_what_is_not_measured_is_refused() {
    let bandwidth = "[[bandwidth]]\nseries = \"s\"\n";
    let load = "[[load]]\nseries = \"s\"\nclients = 4\n";
    let stream = "[[stream]]\nseries = \"s\"\nrate = [100, 200]\n";
    for (entries, graph, says) in [
        (
            bandwidth,
            "kind = \"bars\"\nmetric = \"half_rtt\"\n",
            "s.toml:7:10: 's' does not measure 'half_rtt': use bandwidth, message_rate",
        ),
        (
            load,
            "kind = \"bars\"\nmetric = \"buffer_time\"\n",
            "s.toml:8:10: 's' does not measure 'buffer_time': use rtt, message_rate, \
             cpu_client, cpu_server",
        ),
        (
            load,
            "kind = \"against-rate\"\nmetric = \"rtt\"\n",
            "s.toml:8:10: against-rate needs a rate, which 's' does not have; it is for load, \
             oneway and stream with rate",
        ),
        (
            load,
            "kind = \"cdf\"\nmetric = \"message_rate\"\n",
            "s.toml:8:10: cdf shows the distribution of a latency, and 'message_rate' is not a \
             latency",
        ),
        (
            stream,
            "kind = \"against-clients\"\nmetric = \"missed\"\n",
            "s.toml:8:10: against-clients needs a number of clients, which 's' does not have; it \
             is for load with clients",
        ),
        (
            stream,
            "kind = \"against-rate\"\nmetric = \"missed\"\nalso = [\"one_way\"]\n",
            "s.toml:8:10: 'one_way' is in us and 'missed' in %: the metrics of a graph must \
             have the same unit",
        ),
        (
            bandwidth,
            "kind = \"surface\"\nmetric = \"bandwidth\"\n",
            "s.toml:7:10: surface needs a rate, which 's' does not have; it is for load, oneway \
             and stream with rate",
        ),
    ] {
        assert_eq!(unfit(entries, graph), says);
    }
}

#[test]
fn cases_of_a_series_stay_together_and_are_told_apart_by_it() {
    let text = "title = \"t\"\n[all]\nrounds = 7\n[[latency]]\nseries = \"a\"\nsize = [8, 16]\n\
                [[bandwidth]]\nseries = \"b\"\n[[latency]]\nseries = \"a\"\nsize = 32\n";
    let parsed = parsed("s.toml", text);
    let study = Study::default();
    let requests = requests(&parsed, None).unwrap();
    let plan = study::plan(study.clone(), &requests).unwrap();
    assert_eq!((plan.cases.len(), plan.rounds.most), (4, 7));
    assert_eq!(plan.study.as_ref().unwrap().cases("a"), [0, 1, 3]);
    assert_eq!(plan.label(3), "a: latency tcp busy 32 B");
    let quick = study::plan(Study { quick: true, ..study.clone() }, &requests).unwrap();
    assert_eq!((quick.rounds.most, quick.cases[0].bound.count), (3, Some(1000)));
    assert_eq!(quick.cases[2].bound.time, plan.cases[2].bound.time.map(|time| Span(time.0 / 10)));
    let many = requests.iter().cycle().take(4000).cloned().collect::<Vec<_>>();
    let sentence = study::plan(study, &many).unwrap_err().to_string();
    assert!(sentence.contains("at most 8000 are allowed: write fewer sizes"), "{sentence}");
    let wrong = only(requests, &["c".to_owned()]).unwrap_err().to_string();
    assert_eq!(wrong, "--only: unknown series 'c': use a, b");
}

#[test]
fn a_quick_run_is_a_tenth_and_leaves_what_its_graphs_need() {
    let text = "title = \"t\"\n[all]\nrounds = 5\n\
                [[stream]]\nseries = \"a\"\nrate = [100, 100000]\ntime = \"500ms\"\n\
                [[latency]]\nseries = \"b\"\ncount = 5000\n\
                [[latency]]\nseries = \"b\"\ntime = \"500ms\"\n\
                [[bandwidth]]\nseries = \"c\"\ntime = \"500ms\"\n\
                [[graph]]\ntitle = \"g\"\nkind = \"bars\"\nmetric = \"one_way\"\n\
                series = [\"a\"]\n\
                [[graph]]\ntitle = \"g\"\nkind = \"bars\"\nmetric = \"half_rtt\"\n\
                series = [\"b\"]\nquantile = 0.99\n";
    let parsed = parsed("s.toml", text);
    let requests = requests(&parsed, None).unwrap();
    let graphs =
        graphs(&parsed, &requests, &Place::default(), &machine("FDR", "datagram"), true).unwrap();
    let study = Study { quick: true, graphs, ..Study::default() };
    let quick = study::plan(study, &requests).unwrap();
    let bounds: Vec<_> = quick.cases.iter().map(|case| case.bound).collect();
    // The median needs 20 samples: 8 of each of 3 rounds, which take 80 ms at 100 Hz.
    assert_eq!(bounds[0].time, Some(Span(80_000_000)));
    assert_eq!(bounds[1].time, Some(Span(50_000_000)));
    assert_eq!(bounds[2].count, Some(500));
    // What a time brings without a rate is not known: enough where a tail is shown.
    assert_eq!(bounds[3].time, Some(Span(100_000_000)));
    assert_eq!(bounds[4].time, Some(Span(50_000_000)));
}

#[test]
fn figures_of_hardware_are_not_drawn_beside_loopback_or_an_emulated_device() {
    let text = "title = \"t\"\n[[latency]]\nseries = \"tcp\"\ntransport = \"tcp\"\n\
                [[oneway]]\nseries = \"verbs\"\ntransport = \"verbs\"\n\
                [[oneway]]\nseries = \"shm\"\ntransport = \"shm\"\n";
    let requests = requests(&parsed("s.toml", text), None).unwrap();
    let link = |emulated| RdmaLink { name: "rxe0/1".into(), generation: None, emulated };
    let why = |series: &str, links: &[RdmaLink], over_loopback| {
        machine::no_hardware(&[series.to_owned()], &requests, links, over_loopback)
    };
    assert!(why("tcp", &[], true).unwrap().contains("loopback"));
    assert_eq!(why("tcp", &[], false), None);
    assert!(why("verbs", &[link(true)], true).unwrap().contains("rxe0/1 is emulated"));
    assert_eq!(why("verbs", &[link(true), link(false)], true), None);
    // Memory is the same hardware here and there.
    assert_eq!(why("shm", &[link(true)], true), None);
}

#[test]
fn figures_of_so_many_nodes_are_not_drawn_beside_others() {
    let name = "mpi/presta-collectives";
    let text = shipped::text(&STUDIES, name);
    let parsed = parsed(name, text);
    let requests = requests(&parsed, None).unwrap();
    let drawn = |nodes: usize| {
        let place = Place { nodes: vec![None; nodes], ..Place::default() };
        let graphs = graphs(&parsed, &requests, &place, &machine("FDR", "datagram"), false);
        let [first, ..] = &graphs.unwrap()[..] else { panic!() };
        (first.references.len(), first.notes.join("; "))
    };
    assert_eq!(drawn(4), (1, String::new()));
    let (references, notes) = drawn(2);
    assert_eq!(references, 0);
    assert!(notes.ends_with("are not drawn: 2 nodes run instead of 4"), "{notes}");
}

#[test]
fn the_mode_that_is_found_chooses_the_ipoib_figures() {
    let text = shipped::text(&STUDIES, "gamess/ipoib-latency");
    let parsed = parsed("gamess/ipoib-latency", text);
    let drawn = |machine: &Machine| {
        let mut graph = parsed.graphs[0].graph.clone();
        beside(&parsed, &parsed.graphs[0], &mut graph, machine, |_, _| None).unwrap();
        let names: Vec<String> = graph.references.iter().map(|one| one.name.clone()).collect();
        (names.join("; "), graph.notes.join("; "))
    };
    let (names, notes) = drawn(&machine("FDR", "datagram"));
    assert_eq!(names, "Gamess 2016, Table 6 UDP Hpcbench; Gamess 2016, Table 6 UDP Qperf");
    assert!(
        notes.ends_with("Table 8 is not drawn: it is of connected mode, and this is datagram mode")
    );
    let (names, _) = drawn(&machine("FDR", "connected"));
    assert!(names.contains("Table 8") && !names.contains("Table 6"), "{names}");
    let none =
        Machine { ipoib_mode: Err("eth0 is not an IPoIB interface".into()), ..machine("FDR", "") };
    let (names, notes) = drawn(&none);
    assert!(names.is_empty() && notes.contains("eth0 is not an IPoIB interface"), "{notes}");
}

#[test]
fn the_ends_must_be_in_one_ipoib_mode() {
    let end = |name: &str, mode: Option<&str>| host::Interface {
        name: name.into(),
        ipoib_mode: mode.map(String::from),
        ..host::Interface::default()
    };
    let datagram = end("ib0", Some("datagram"));
    let mode = machine::ipoib_mode;
    assert_eq!(mode(&[datagram.clone(), datagram.clone()]), Ok("datagram".into()));
    let differ = mode(&[datagram.clone(), end("ib1", Some("connected"))]).unwrap_err();
    assert_eq!(differ, "ib0 is in datagram mode and ib1 in connected mode");
    assert!(mode(&[datagram, end("eth0", None)]).unwrap_err().starts_with("eth0 is not"));
    assert!(mode(&[]).is_err());
}

#[test]
fn the_link_that_is_found_chooses_the_column() {
    let link = |name: &str, generation: Option<&str>, emulated| RdmaLink {
        name: name.into(),
        generation: generation.map(String::from),
        emulated,
    };
    let hard = |generation| link("mlx5_0/1", generation, false);
    assert_eq!(machine::link_rate(&[]), Err("this machine has no RDMA link".into()));
    assert!(
        machine::link_rate(&[link("rxe0/1", Some("SDR"), true)]).unwrap_err().contains("emulated")
    );
    assert_eq!(
        machine::link_rate(&[hard(Some("EDR")), link("rxe0/1", None, true)]),
        Ok("EDR".into())
    );
    assert!(
        machine::link_rate(&[hard(Some("EDR")), hard(Some("HDR"))]).unwrap_err().contains("differ")
    );
    assert!(machine::link_rate(&[hard(None)]).unwrap_err().contains("not that of a 4X"));
}

#[test]
fn series_that_reach_the_other_host_are_run_without_those_that_do_not() {
    let text = "title = \"t\"\n[[latency]]\nseries = \"memory\"\ntransport = \"shm\"\n\
                [[latency]]\nseries = \"network\"\ntransport = \"tcp\"\n";
    let parsed = parsed("apart", text);
    let mut requests = requests(&parsed, None).unwrap();
    let names =
        |all: &[(String, Request)]| Vec::from_iter(all.iter().map(|(name, _)| name.clone()));
    let (here, missing) = reaching(requests.clone());
    assert_eq!((names(&here).len(), missing.len()), (2, 0));
    for (_, request) in &mut requests {
        request.place =
            Place::to(crate::plan::HostSpec { host: "node07".into(), ..Default::default() });
    }
    let (kept, missing) = reaching(requests);
    assert_eq!(names(&kept), ["network"]);
    assert_eq!(Vec::from_iter(missing.iter().map(|one| one.transport.as_str())), ["shm"]);
}
