//! The terminal's tables: what they promise to a reader and to awk.

mod terminal;

use wiregauge::host::Noise;
use wiregauge::pattern::{bandwidth, latency, load, oneway, registry, survey};
use wiregauge::plan::{Case, CpuPair, Plan, Request, Rounds, Schedule, Wait};
use wiregauge::record::schema::{
    CaseRecord, ClockReport, Counts, Figure, Instrument, Metric, PlanRecord, RateFigure,
    RateMetric, Record, RecordedWarning, Run, SCHEMA, Unavailable, VERSION,
};
use wiregauge::report::table::{self, Layout};
use wiregauge::report::view;
use wiregauge::stats::{Interval, Rate, Value, summarize};
use wiregauge::transport::TransportKind;
use wiregauge::units::{Bytes, MessageRate};
use wiregauge::warning::Warning;

/// The run of a case, without any figure.
fn run((index, case): (usize, &Case)) -> Run {
    Run {
        index: index as u32,
        label: case.label(),
        case: CaseRecord::from(case),
        headline: headline(case).into(),
        complete: true,
        stopped: "5 of 5 rounds were measured".into(),
        rounds: Vec::new(),
        figures: Vec::new(),
        rates: Vec::new(),
        details: None,
        counts: Counts::default(),
        stalls: Vec::new(),
        client_hosts: Vec::new(),
        included: Default::default(),
        warnings: Vec::new(),
    }
}

/// A record of a plan, the runs without any figure.
fn record(plan: Plan) -> Record {
    Record {
        schema: SCHEMA.into(),
        sha256: String::new(),
        version: VERSION,
        tool: "0.1.0".into(),
        program_sha256: String::new(),
        command: vec!["wiregauge".into()],
        started: "2026-11-21T05:52:43Z".into(),
        finished: "2026-11-21T05:52:58Z".into(),
        complete: true,
        faults: Vec::new(),
        environment: Default::default(),
        clock: ClockReport {
            source: "tsc".into(),
            reason: "the TSC is invariant".into(),
            frequency_hz: 2.5e9,
            baseline_ns: 1e9,
            residual_ppb: 12.5,
            reading_cost_ns: 8.1,
            resolution_ns: 0.4,
            fences: String::new(),
        },
        instrument: Instrument {
            passes: 50,
            overhead_p50_ns: 20.0,
            overhead_p99_ns: 24.5,
            count: 10_000,
            error_ns: 25.3,
            recording_ns: 1.25,
        },
        noise: vec![Noise {
            cpu: 2,
            observed_ns: 1e9,
            gap_threshold_ns: 200.0,
            gaps: 17,
            lost_ns: 5e5,
            longest_ns: 36_060.0,
            histogram: vec![(256.0, 15), (512.0, 0), (32_768.0, 2)],
        }],
        runs: plan.cases.iter().enumerate().map(run).collect(),
        unavailable: vec![Unavailable {
            transport: "shm".into(),
            reason: "/dev/shm cannot be written".into(),
        }],
        warnings: Vec::new(),
        plan: Box::new(PlanRecord::from(&plan)),
        hosts: Vec::new(),
        pairs: None,
        paths: Vec::new(),
        impacts: Vec::new(),
        together: None,
        clocks: Vec::new(),
        explanation: None,
        tails: Vec::new(),
        samples: None,
    }
}

/// What answers the question of a case.
fn headline(case: &Case) -> &'static str {
    let analysis = registry::analysis(case.pattern.name()).unwrap();
    match analysis.is_rate() {
        true => analysis.measured(case)[0],
        false => analysis.metrics(case)[0].name(),
    }
}

/// 5 rounds of values about `middle`, the last of them `greatest`.
fn figure(metric: Metric, middle: f64, each: usize, greatest: f64) -> Figure {
    let round = |round: usize| -> Vec<f64> {
        let value = |i: usize| middle + ((i * 7919 + round) % 101) as f64;
        let mut values: Vec<f64> = (0..each).map(value).collect();
        if round == 4 {
            values[each / 2] = greatest;
        }
        values
    };
    let rounds: Vec<Vec<f64>> = (0..5).map(round).collect();
    Figure {
        metric,
        unit: "ns".into(),
        summary: summarize(&rounds, 10_000.0),
        clock_bound_ns: None,
    }
}

fn rate(metric: RateMetric, value: f64) -> RateFigure {
    let interval = Interval { low: Value(value * 0.95), high: Value(value * 1.02) };
    let rate = Rate {
        value,
        interval: Some(interval),
        basis: wiregauge::stats::Basis::Pooled,
        rounds: vec![value; 5],
    };
    RateFigure { metric, unit: String::new(), rate }
}

/// The tables, as a program reads them.
fn shown(record: &Record) -> String {
    table::runs(record, &registry::views(), &Layout::default()).to_string()
}

/// All that stands below them.
fn told(record: &Record) -> String {
    let layout = Layout { verbose: true, ..Layout::default() };
    table::notes(record, &layout).to_string()
}

fn fields(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|field| !field.is_empty()).collect()
}

/// Lines of a table by their fields; the head is the first.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(fields).collect()
}

fn surveyed() -> Record {
    let mut found = record(survey::plan(&[TransportKind::Tcp, TransportKind::Udp], false, 1));
    for run in &mut found.runs {
        match run.case.pattern.as_str() {
            "bandwidth" => {
                run.rates.push(rate(RateMetric::Bandwidth, 1.25e9));
                run.rates.push(rate(RateMetric::MessageRate, 345_678.9));
            }
            _ => run.figures.push(figure(Metric::HalfRtt, 15_324.0, 20_000, 5e6)),
        }
    }
    found
}

#[test]
fn the_survey_is_one_table_with_a_line_for_each_transport_and_wait() {
    let text = shown(&surveyed());
    let rows = rows(&text);
    assert_eq!(
        rows[0],
        [
            "transport",
            "wait",
            "half_rtt p50 us",
            "±",
            "p99 us",
            "±",
            "p99.9 us",
            "±",
            "max us",
            "of rounds",
            "k msg/s 64 B",
            "±",
            "MB/s 64 KiB",
            "±",
            "Gb/s 64 KiB",
            "±",
            "n",
            "lost"
        ]
    );
    let names: Vec<&[&str]> = rows[1..5].iter().map(|row| &row[..2]).collect();
    assert_eq!(names, [["tcp", "busy"], ["tcp", "block"], ["udp", "busy"], ["udp", "block"]]);
    for row in &rows[1..5] {
        assert_eq!(row.len(), rows[0].len(), "{text}");
        let rest = ["5000", "15.42..5000", "345.7", "±18", "1250", "±63"];
        assert_eq!(row[8..14], rest, "{text}");
        assert_eq!(&row[14..], ["10.00", "±0.50", "100000", "0"], "{text}");
    }
    // UDP's largest message is smaller, and is not passed off as 64 KiB.
    assert_eq!(rows[5], ["size: bandwidth of udp busy is at 65507 B"]);
}

#[test]
fn a_survey_that_would_hide_a_run_is_told_run_by_run() {
    let mut found = surveyed();
    found.runs.push(found.runs[0].clone());
    assert_eq!(rows(&shown(&found)).iter().filter(|row| row.contains(&"busy")).count(), 7);
}

#[test]
fn too_few_samples_and_lost_messages_are_said_in_their_place() {
    let request = latency::request(Default::default());
    let request = Request { transports: vec![TransportKind::Udp], ..request };
    let mut found = record(request.plan().unwrap());
    found.runs[0].figures.push(figure(Metric::HalfRtt, 1000.0, 200, f64::INFINITY));
    found.runs[0].figures.push(figure(Metric::Rtt, 2000.0, 200, f64::INFINITY));
    // The others were in the warm-up, which is in no figure and not in n.
    found.runs[0].counts.lost = 221;
    let text = shown(&found);
    let rows = rows(&text);
    // A round trip is twice its half: one line tells both.
    assert_eq!(rows.len(), 2, "{text}");
    let at = |name: &str| rows[1][rows[0].iter().position(|head| *head == name).unwrap()];
    assert_eq!(at("p99.9 us"), "n too small");
    assert_eq!((at("max us"), at("lost"), at("n")), ("inf", "1", "1000"));
    assert_eq!(at("of rounds"), "1.100..inf");
    assert_eq!(at("% above 10 us"), "0.1000");
}

#[test]
fn each_load_has_a_curve_over_connections_of_its_own() {
    let asked = load::LoadRequest {
        clients: vec![1, 8],
        connections: vec![1, 2, 4],
        ..load::LoadRequest::default()
    };
    let mut found = record(load::request(asked).plan().unwrap());
    // Eight clients wait four times as long, whatever the number of connections.
    for run in &mut found.runs {
        let median = if run.label.contains("of 8 clients") { 4000.0 } else { 1000.0 };
        run.figures.push(figure(Metric::Rtt, median, 2000, 1e5));
    }
    let answer = view::answer(&found, &[]);
    let expected = ["of 1 client", "of 8 clients"].map(|load| {
        format!(
            "tcp busy {load}: no cliff is shown from 1 to 4 connections: at no step p50 grows by a \
             factor of 1.5 beyond the intervals."
        )
    });
    assert_eq!(answer, expected);
}

/// Returns the table of a ping-pong over more and more connections with these medians, and what it
/// answers.
fn over_connections(medians: &[f64]) -> (String, Vec<String>) {
    let connections: Vec<u32> = (0..medians.len()).map(|step| 1 << step).collect();
    let asked = latency::LatencyRequest { connections, ..Default::default() };
    let mut found = record(latency::request(asked).plan().unwrap());
    for (run, median) in found.runs.iter_mut().zip(medians) {
        run.figures.push(figure(Metric::HalfRtt, *median, 2000, 1e5));
    }
    (shown(&found), view::answer(&found, &[]))
}

#[test]
fn the_number_of_connections_at_which_latency_falls_off_is_named() {
    let (text, answer) = over_connections(&[1000.0, 1100.0, 3000.0, 3100.0]);
    let sentence = "tcp busy: cliff between 2 and 4 connections: p50 grows by a factor of 2.652 \
                    (at least 2.652), from 1.150 ±0.0000 us to 3.050 ±0.0000 us.";
    assert_eq!(answer, [sentence]);
    let rows = rows(&text);
    let column = rows[0].iter().position(|head| *head == "connections").unwrap();
    let shown: Vec<&str> = rows[1..5].iter().map(|row| row[column]).collect();
    assert_eq!(shown, ["1", "2", "4", "8"]);
    let (_, answer) = over_connections(&[1000.0, 1400.0, 1900.0, 2500.0]);
    let sentence = "tcp busy: no cliff is shown from 1 to 8 connections: at no step p50 grows by a \
                    factor of 1.5 beyond the intervals.";
    assert_eq!(answer, [sentence]);
}

#[test]
fn offered_achieved_and_delivered_rates_stand_side_by_side() {
    let schedule = Schedule::Poisson { rate: MessageRate(1e4) };
    let request = Request { schedule, ..oneway::request(oneway::Spec::default()) };
    let mut found = record(request.plan().unwrap());
    for metric in [Metric::OneWay, Metric::Response, Metric::Service] {
        found.runs[0].figures.push(figure(metric, 9000.0, 2000, 1e5));
    }
    found.runs[0].rates.push(rate(RateMetric::OfferedRate, 1e4));
    found.runs[0].rates.push(rate(RateMetric::AchievedRate, 9_990.0));
    found.runs[0].rates.push(rate(RateMetric::MessageRate, 9_000.0));
    let text = shown(&found);
    let metrics: Vec<&str> = rows(&text)[1..4].iter().map(|row| row[2]).collect();
    assert_eq!(metrics, ["one_way", "response", "service"]);
    let last = text.lines().last().unwrap();
    let rates = ["tcp", "busy", "64", "10.00", "9.990", "±0.50", "9.000", "±0.45"];
    assert_eq!(fields(last), rates);
}

#[test]
fn bandwidth_is_told_in_bytes_and_bits() {
    let direction = bandwidth::Direction::Bi;
    let request = Request {
        sizes: vec![Bytes(64), Bytes(65536)],
        waits: vec![Wait::Block],
        ..bandwidth::request(bandwidth::Spec { direction, ..bandwidth::Spec::default() })
    };
    let mut found = record(request.plan().unwrap());
    for run in &mut found.runs {
        run.rates.push(rate(RateMetric::Bandwidth, 1.25e9));
        run.rates.push(rate(RateMetric::MessageRate, 1000.0));
    }
    let text = shown(&found);
    assert_eq!(
        rows(&text)[1][..9],
        ["tcp", "block", "both", "64", "64", "1250", "±63", "10.00", "±0.50"]
    );
    let points: Vec<usize> = text.lines().skip(1).filter_map(|line| line.find('.')).collect();
    assert!(points.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
}

#[test]
fn below_the_table_stand_the_instrument_the_noise_and_the_warnings() {
    let mut found = surveyed();
    found.runs[1].counts = Counts { sent: 100, lost: 3, reordered: 2, ..Counts::default() };
    for (index, excess) in [(0, 0.1), (1, 0.1), (2, 0.63), (4, 0.2)] {
        let short = Warning::WarmupShort { metric: "rtt", excess, rounds: 3, window: 50 };
        let short = RecordedWarning::from(&short);
        let sentence = short.sentence.replace(" at the", "\nat the");
        found.runs[index].warnings.push(RecordedWarning { sentence, ..short });
    }
    let noisy = |cpu, share| Warning::NoisyCore { cpu, share, longest_ns: 1e6 };
    let own = [noisy(2, 0.03), noisy(3, 0.05)];
    found.warnings.extend(own.iter().map(RecordedWarning::from));
    found.warnings.push(RecordedWarning::on_host(&noisy(0, 0.04), "node07"));
    found.warnings.push(RecordedWarning::on_host(&noisy(9, 0.02), "node08"));
    let why = "interrupted by the user".to_owned();
    found.warnings.push((&Warning::Incomplete { done: 1, planned: 2, why }).into());
    found.complete = false;
    found.runs[3].complete = false;
    found.runs[3].stopped = "the server died".into();
    found.plan.cpus = vec![CpuPair { client: 2, server: 3 }];
    let text = told(&found);
    for line in [
        "instrument: adds 20 ns (p50) to 24.5 ns (p99) to a round trip (null transport, n 10000); \
         latencies below 25.3 ns (half_rtt: half of that) cannot be resolved; recording a sample \
         takes 1.25 ns",
        "noise: CPU 2: 17 gaps above 200 ns in 1 s, 0.0500 % of the time, the longest 36.06 us",
        "not measured: shm: /dev/shm cannot be written",
        "messages: bandwidth tcp busy 64 B: of 100 sent, 3 lost, 2 reordered",
        "incomplete: latency tcp block 64 B: the server died",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n\n{text}");
    }
    // The worst first, those of one kind together, with what to do below them.
    let warnings = "\
severe: 1 of 2 rounds were completed: interrupted by the user
  advice: let it come to its end, or ask for less: --rounds, --time, --count
warning: CPU 3 lost 5.0 % of its time to other work (longest gap 1.00 ms)
warning: on node07: CPU 0 lost 4.0 % of its time to other work (longest gap \
                    1.00 ms)
warning: CPU 2 lost 3.0 % of its time to other work (longest gap 1.00 ms)
warning: on node08: CPU 9 lost 2.0 % of its time to other work (longest gap \
                    1.00 ms)
  advice: stop other processes, or isolate the CPU (isolcpus=, nohz_full=)
warning: bandwidth tcp busy 64 KiB: warm-up too short: rtt is 63 % higher at the start of 3 \
                    rounds than later
warning: bandwidth tcp block 64 B: warm-up too short: rtt is 20 % higher at the start of 3 rounds \
                    than later
warning: latency tcp busy 64 B, bandwidth tcp busy 64 B: warm-up too short: rtt is 10 % higher at \
                    the start of 3 rounds than later
  advice: raise --warmup by 50 messages
";
    assert!(text.ends_with(warnings), "{text}");
    // Each kind's worst has its own label, and says of how many it is the worst.
    let short = table::notes(&found, &Layout::default()).to_string();
    for line in [
        "warning: CPU 3 lost 5.0 % of its time to other work (longest gap 1.00 ms) (worst of 4)",
        "warning: bandwidth tcp busy 64 KiB: warm-up too short: rtt is 63 % higher at the start \
         of 3 rounds than later (worst of 4)",
    ] {
        assert!(short.lines().any(|found| found == line), "{line}\n\n{short}");
    }
    assert!(!short.contains("CPU 2 lost") && !short.contains("10 % higher"), "{short}");
}

/// Of what was never posted the response is infinite, and no other metric has it.
#[test]
fn only_a_response_counts_what_was_never_posted() {
    let mut run = surveyed().runs.remove(0);
    run.counts.lost = 100;
    run.counts.unfinished = 50;
    run.counts.unsent = 500;
    for (metric, infinite) in [(Metric::Service, 100), (Metric::Response, 600)] {
        run.figures[0].metric = metric;
        run.figures[0].summary.lost = infinite;
        assert_eq!((run.lost_of(metric), run.unfinished_of(metric)), (100, 50), "{metric:?}");
    }
}

/// The answer and the warning below it name one CPU.
#[test]
fn the_answer_names_the_cpu_of_the_warning() {
    let mut found = surveyed();
    for (cpu, share) in [(0, 0.026), (1, 0.039), (2, 0.039)] {
        let noisy = Warning::NoisyCore { cpu, share, longest_ns: 1e6 };
        found.warnings.push((&noisy).into());
        // A round trip takes 31 us: a gap in each of so many of them.
        let gaps = (share * 1e9 / 30_800.0) as u64;
        let noise = Noise { cpu, observed_ns: 1e9, lost_ns: share * 1e9, gaps, ..Noise::default() };
        found.noise.push(noise);
    }
    let text = table::report(&found, &registry::views(), &Layout::default()).to_string();
    assert!(text.contains("takes 3.9 % of CPU 1: from p96 on"), "{text}");
    let warned = "CPU 1 lost 3.9 % of its time to other work";
    assert!(text.contains(warned) && text.contains("(worst of 3)"), "{text}");
}

#[test]
fn an_interrupted_run_says_so_before_its_answer_and_why_once() {
    let mut found = surveyed();
    (found.complete, found.faults) = (false, vec!["interrupted by the user".into()]);
    let why = found.faults[0].clone();
    for run in &mut found.runs {
        (run.complete, run.stopped) = (false, why.clone());
        let incomplete = Warning::Incomplete { done: 0, planned: 6, why: why.clone() };
        run.warnings.push((&incomplete).into());
    }
    let text = table::report(&found, &registry::views(), &Layout::default()).to_string();
    assert!(text.starts_with("INCOMPLETE: 0 of 12 runs came to an end\n"), "{text}");
    let said = "0 of 6 rounds were completed: interrupted by the user";
    assert!(text.contains(said) && text.matches("interrupted by the user").count() == 1, "{text}");
    // What no run says is said by itself.
    found.faults.push("the disk is full".into());
    assert!(told(&found).contains("fault: the disk is full"));
}

#[test]
fn what_is_infinite_is_explained_where_it_is_shown() {
    let said = |found: &Record| table::notes(found, &Layout::default()).to_string();
    let mut found = surveyed();
    assert!(!said(&found).contains("inf:"));
    let run = found.runs.iter_mut().find(|run| !run.figures.is_empty()).unwrap();
    run.figures[0].summary.max = Value(f64::INFINITY);
    assert!(
        said(&found).contains("inf: a message that was lost, unfinished or never sent"),
        "{}",
        said(&found)
    );
    assert!(told(&found).contains("inf: a message that was lost, unfinished or never sent"));
}

#[test]
fn what_the_instrument_adds_has_two_digits() {
    let mut found = surveyed();
    found.instrument.overhead_p50_ns = 20_034.0;
    let text = table::notes(&found, &Layout::default()).to_string();
    assert!(
        text.contains("instrument: adds 10 us to the 15 us of latency tcp busy 64 B"),
        "{text}"
    );
}

#[test]
fn rounds_that_ended_early_say_why() {
    let mut found = surveyed();
    assert!(!told(&found).contains("rounds were measured"));
    found.plan.rounds = Rounds { least: 5, most: 30, until: Some(0.05) };
    assert!(told(&found).contains("and 9 more: 5 of 5 rounds were measured"));
}

#[test]
fn noise_has_a_line_a_cpu_and_a_histogram_without_empty_bins() {
    let text = table::noise(&surveyed().noise, &Layout::default()).to_string();
    let rows = rows(&text);
    assert_eq!(rows[0], ["CPU", "gaps", "above us", "in s", "lost us", "lost %", "longest us"]);
    assert_eq!(rows[1], ["2", "17", "0.2000", "1.000", "500.0", "0.0500", "36.06"]);
    assert_eq!(rows[4][..4], ["2", "0.2560", "0.5120", "15"]);
    assert_eq!(rows[5][..4], ["2", "32.77", "65.54", "2"]);
    assert_eq!((rows[4][4].len(), rows.len()), (40, 6));
}

#[test]
fn no_line_depends_on_a_terminal() {
    let found = surveyed();
    let text =
        shown(&found) + &told(&found) + &table::noise(&found.noise, &Layout::default()).to_string();
    assert!(!text.contains('\x1b') && text.lines().all(|line| !line.ends_with(' ')));
}
