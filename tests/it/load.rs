//! `load` as a user meets it: open and closed loops with real processes, and what is kept when the
//! server dies or cannot keep up.
//!
//! No figure of time decides here: counts, stamps and what is said of them do.

use crate::support::controller::{Controller, Scratch, samples, wiregauge, words};
use rustix::process::Signal;
use wiregauge::pattern::load;
use wiregauge::record::read_record;
use wiregauge::record::schema::{Metric, RateMetric, Record, Run};
use wiregauge::sample::{Flags, Sample};

fn measured(line: &str) -> (Scratch, Record) {
    crate::support::controller::measured("load", line)
}

fn spec(run: &Run) -> load::Spec {
    run.case.spec("load").unwrap()
}

#[test]
fn an_open_loop_keeps_both_times_of_every_request() {
    for transport in ["tcp", "shm"] {
        let line = format!("--transport {transport} --rate 5k --time 200ms --rounds 2 --check");
        let (scratch, record) = measured(&line);
        let run = &record.runs[0];
        let count = run.summary(Metric::Response).unwrap().count;
        assert!((1500..2200).contains(&count), "{count}");
        assert_eq!((run.counts.lost, run.counts.corrupt, run.counts.unsent), (0, 0, 0));
        for metric in [Metric::Service, Metric::Lateness] {
            assert_eq!(run.summary(metric).unwrap().count, count);
        }
        for sample in samples(&scratch, 0) {
            assert!(sample.intended_ns <= sample.submit_ns, "{sample:?}");
            assert!(sample.submit_ns < sample.receive_ns, "{sample:?}");
        }
        let cpu = run.rates.iter().find(|figure| figure.metric == RateMetric::CpuServer);
        assert_eq!(cpu.unwrap().unit, "ns/msg");
    }
}

#[test]
fn a_closed_loop_has_as_many_requests_on_the_way_as_clients_and_no_response() {
    let (scratch, record) =
        measured("--transport tcp --clients 1,4 --count 3000 --rounds 1 --wait block --check");
    let expected = [(1, "of 1 client"), (4, "of 4 clients")];
    for (run, (clients, load)) in record.runs.iter().zip(expected) {
        assert_eq!(spec(run).clients, clients);
        assert!(run.label.ends_with(load), "{}", run.label);
        assert!(run.summary(Metric::Response).is_none());
        assert!(run.summary(Metric::Rtt).unwrap().count >= 3000);
        assert_eq!((run.counts.lost, run.counts.corrupt), (0, 0));
    }
    let all = samples(&scratch, 1);
    assert!(all.iter().all(|sample| sample.intended_ns.is_nan()));
    // Of one client, each request is sent after the answer to the one before.
    assert!(samples(&scratch, 0).windows(2).all(|pair| pair[0].receive_ns <= pair[1].submit_ns));
}

#[test]
fn small_pools_are_measured_and_lose_nothing() {
    for transport in ["tcp", "shm"] {
        let (_, record) = measured(&format!(
            "--transport {transport} --clients 20 --count 5000 --rounds 1 --tx-buffers 2 \
             --rx-buffers 3 --check"
        ));
        let run = &record.runs[0];
        assert_eq!((run.counts.lost, run.counts.corrupt), (0, 0));
        let value = |metric| {
            let found = run.rates.iter().find(|figure| figure.metric == metric);
            found.unwrap_or_else(|| panic!("{metric:?}")).rate.value
        };
        let each = value(RateMetric::CompletionsPerPoll);
        assert!((1.0..=2.0).contains(&each), "no more than there are buffers: {each}");
        assert!(value(RateMetric::BufferTime) > 0.0);
        assert!(value(RateMetric::FullPolls) >= 0.5, "two buffers: a poll for every other read");
        let requests = value(RateMetric::RequestsPerPoll);
        assert!((1.0..=3.0).contains(&requests), "no more than there is room for: {requests}");
        let [polls, empty, full] = [
            RateMetric::BufferPollTime,
            RateMetric::BufferEmptyPollTime,
            RateMetric::BufferFullPollTime,
        ]
        .map(value);
        assert!((polls - empty - full).abs() < 1e-6, "{polls} {empty} {full}");
        assert!(polls > 0.0 && polls <= value(RateMetric::BufferTime), "{polls}");
    }
}

/// The probe beside each point, by the number of the point.
fn probes(record: &Record) -> Vec<(usize, &Run)> {
    let probes = record.runs.iter().filter(|run| spec(run).probe);
    let beside = |probe: &Run| {
        let mut groups = record.plan.concurrent.iter();
        let group = groups.find(|group| group.contains(&probe.index))?;
        let mut points = group.iter().map(|number| *number as usize);
        points.find(|number| !spec(&record.runs[*number]).probe)
    };
    probes.filter_map(|run| Some((beside(run)?, run))).collect()
}

#[test]
fn a_probe_runs_beside_each_point_and_alone() {
    let scratch = Scratch::new();
    let line = "load --transport tcp --wait block --rate 2k,10k --object-size 1KiB --probe 200 \
                --time 500ms --rounds 2 --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert_eq!(record.runs.len(), 5);
    let beside = probes(&record);
    assert_eq!(beside.iter().map(|(point, _)| *point).collect::<Vec<_>>(), [0, 1]);
    for (point, probe) in beside {
        assert!(probe.label.ends_with(&record.runs[point].label), "{}", probe.label);
        let count = probe.summary(Metric::Response).unwrap().count;
        assert!((100..300).contains(&count), "{count} of some 200 in two rounds");
        assert_eq!((probe.case.size.0, probe.counts.lost), (116, 0));
        for (one, other) in probe.rounds.iter().zip(&record.runs[point].rounds) {
            // Both were told one instant, and were under way at the same time.
            assert!(
                one.start.is_some()
                    && one.start.map(|s| s.spread_ns) == other.start.map(|s| s.spread_ns)
            );
            assert!(one.started_ns < other.started_ns + other.length_ns);
            assert!(other.started_ns < one.started_ns + one.length_ns);
        }
    }
    assert!(record.runs[2].label.ends_with("at 200/s, alone"), "{}", record.runs[2].label);
    assert!(record.runs[2].rounds.iter().all(|round| round.start.is_none()));
    let table = ended.stdout.split("probe: response of small requests").nth(1).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("tcp block"));
    assert_eq!(rows.count(), 3, "{}", ended.stdout);
    let page = std::fs::read_to_string(scratch.join("run/report.html")).unwrap();
    assert!(
        page.contains("probe tcp block 116 B at 200/s, beside load tcp block 1040 B at 10000/s")
    );
}

#[test]
fn a_search_adds_a_probe_beside_each_point_that_it_adds() {
    let (_scratch, record) =
        measured("--transport tcp --wait block --time 20ms --rounds 1 --probe 1k");
    let (of, points): (Vec<_>, Vec<_>) = record.runs.iter().partition(|run| spec(run).probe);
    assert_eq!(of.len(), points.len() + 1, "one is alone");
    let beside: Vec<usize> = probes(&record).iter().map(|(point, _)| *point).collect();
    assert!(points.iter().all(|run| beside.contains(&(run.index as usize))), "{beside:?}");
}

#[test]
fn requests_of_a_server_that_is_killed_are_lost_and_kept() {
    let line = "load --transport tcp --rate 2k --time 30s --rounds 1";
    let (_, _, lost) = crate::support::controller::server_dies(line);
    assert!(lost >= 100, "2000 a second came while it stood still: {lost}");
}

#[test]
fn what_a_saturated_server_has_not_taken_is_not_dropped() {
    // No server here reads 50 million objects per second.
    let (scratch, record) = measured("--transport tcp --rate 50M --time 2ms --warmup 0 --rounds 1");
    let run = &record.runs[0];
    let samples = samples(&scratch, 0);
    let intended = samples.iter().filter(|sample| !sample.intended_ns.is_nan()).count();
    assert!((90_000..110_000).contains(&intended), "{intended}");
    // What was never sent was not lost, and its response is infinite.
    let of = |flag| samples.iter().filter(|sample| sample.flags.has(flag)).count() as u64;
    assert_eq!((of(Flags::LOST), run.counts.lost), (0, 0));
    assert_eq!(of(Flags::UNSENT), run.counts.unsent);
    assert_eq!(of(Flags::UNFINISHED), run.counts.unfinished);
    let infinite = run.summary(Metric::Response).unwrap().lost;
    assert_eq!(infinite, run.counts.unsent + run.counts.unfinished);
    assert!(run.counts.held_up > 0 || run.counts.missed_steps > 0, "{:?}", run.counts);
    assert!(!run.warnings.is_empty());
}

#[test]
fn a_limit_that_few_answers_neither_show_to_be_kept_nor_exceeded_is_inconclusive() {
    let scratch = Scratch::new();
    // Some fifty answers have no p99.
    let line = "load --transport tcp --wait block --rate 500 --time 100ms --rounds 1 \
                --slo p99<1s --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let sentence = "p99 < 1 s is neither shown to be met nor to be exceeded at the measured rates";
    assert!(ended.stdout.contains(sentence), "{}", ended.stdout);
}

#[test]
fn a_search_adds_points_and_judges_its_bound() {
    let scratch = Scratch::new();
    let line = "load --transport shm --wait block --time 50ms --rounds 1 --slo p50<1ns --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(1), "no server answers in 1 ns: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert_eq!(spec(&record.runs[0]).clients, 64);
    assert!(record.runs.len() >= 10, "{}", record.runs.len());
    assert_eq!(record.plan.cases.len(), record.runs.len());
    assert!(ended.stdout.contains("is not met at any measured rate"), "{}", ended.stdout);
}

#[test]
fn a_client_that_is_killed_frees_the_server_and_leaves_its_samples() {
    let line = "load --transport tcp --wait block --rate 2k --time 30s --rounds 1";
    let (scratch, record) = crate::support::controller::client_dies(line);
    let run = &record.runs[0];
    assert!(run.warnings.iter().any(|warning| warning.kind == "incomplete"));
    let answered = samples(&scratch, 0).iter().filter(|s| !s.receive_ns.is_nan()).count();
    assert!(answered >= 400, "{answered}");
}

/// A trace file of the phases: so many requests, so many microseconds apart, after a pause.
fn trace(scratch: &Scratch, phases: &[(u64, u64, u64)]) {
    let (mut now, mut text) = (0, String::new());
    for (pause_us, count, apart_us) in phases {
        now += pause_us;
        for _ in 0..*count {
            text.push_str(&format!("{now}us\n"));
            now += apart_us;
        }
    }
    std::fs::write(scratch.join("trace"), text).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_server_that_was_overloaded_answers_as_before_when_it_is_over() {
    let scratch = Scratch::new();
    // 30 000 requests within 30 ms are more than any server here answers in that time.
    trace(&scratch, &[(0, 300, 2000), (0, 30_000, 1), (3_000_000, 300, 2000)]);
    let line = "load --transport tcp --wait block --trace trace --count 50000 --warmup 0 \
                --rounds 1 --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert_eq!((record.runs[0].counts.lost, record.runs[0].counts.sent), (0, 30_600));
    let responses: Vec<f64> =
        samples(&scratch, 0).iter().map(|s| s.receive_ns - s.intended_ns).collect();
    let [before, during, after] =
        [&responses[..300], &responses[300..30_300], &responses[30_300..]];
    let [before, during, after] = [before, during, after].map(|part| median(part.to_vec()));
    // The queue of the overload is no part of what comes after it.
    assert!(after < during / 2.0 && before < during / 2.0, "{before}, {during}, {after}");
}

#[test]
fn a_stall_of_the_server_is_in_the_response_of_all_that_were_due_meanwhile() {
    const STALL: std::time::Duration = std::time::Duration::from_millis(200);
    const RATE: f64 = 2000.0;
    let scratch = Scratch::new();
    let line =
        "load --transport tcp --wait block --rate 2k --time 3s --warmup 0 --rounds 1 --out run";
    let controller = Controller::start(&scratch, &words(line));
    controller.await_messages(1000);
    let server = controller.agents()[0];
    server.signal(Signal::STOP);
    std::thread::sleep(STALL);
    server.signal(Signal::CONT);
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let all = samples(&scratch, 0);
    // When nothing came back for longest.
    let mut received: Vec<f64> = all.iter().map(|s| s.receive_ns).collect();
    received.sort_by(f64::total_cmp);
    let gaps = received.windows(2).map(|pair| (pair[1] - pair[0], pair[0], pair[1]));
    let (gap, from, to) = gaps.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert!(gap >= 0.9 * STALL.as_nanos() as f64, "nothing stood still: {gap} ns");
    // The generator went on: a Poisson process scatters by the root of its number.
    let due: Vec<&Sample> =
        all.iter().filter(|s| s.intended_ns > from && s.intended_ns < to).collect();
    let expected = RATE * gap / 1e9;
    let off = (due.len() as f64 - expected).abs();
    assert!(off < 5.0 * expected.sqrt(), "{} were due, {expected} expected", due.len());
    // Each of them waited for the rest of the stall at least.
    assert!(due.iter().all(|s| s.receive_ns >= to), "{from} to {to}");
    // Of uniform times within the stall a share is beyond p99: the rest of it is shorter.
    let run = &record.runs[0];
    let p99 = run.quantile(Metric::Response, 0.99).unwrap().0;
    let analytic = gap * (1.0 - 0.01 * all.len() as f64 / expected);
    assert!(analytic > 0.0 && p99 >= 0.8 * analytic, "p99 {p99} ns, analytic {analytic} ns");
}

#[test]
fn a_generator_that_cannot_keep_its_rate_says_that_it_was_the_limit() {
    let kinds = |line: &str| -> Vec<String> {
        let (_scratch, record) = measured(line);
        record.runs[0].warnings.iter().map(|warning| warning.kind.clone()).collect()
    };
    let fast = kinds("--transport null --rate 1000M --time 2ms --rounds 1");
    assert!(fast.iter().any(|kind| kind == "generator_bound"), "{fast:?}");
    // In simulated time, which no other work takes from it.
    let slow = kinds("--transport synthetic --rate 10k --time 100ms --rounds 1");
    assert!(slow.iter().all(|kind| kind != "generator_bound"), "{slow:?}");
}
