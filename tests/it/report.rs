//! The HTML report of small records, known to the last sample.

use serde_json::{Value, json};
use wiregauge::pattern::registry;
use wiregauge::record::schema::{ClockOffset, Record, Round, RoundEnd};
use wiregauge::report::html;
use wiregauge::sample::{Flags, RoundSamples, Sample};
use wiregauge::transport::TransportKind;
use wiregauge::warning::Warning;

fn summary(count: u64, max: Value) -> Value {
    json!({
        "count": count, "lost": 0, "min": 100.0, "max": max, "max_finite": 100.0, "mean": 100.0,
        "sd": 0.0, "quantiles": [
            {"p": 0.5, "value": 100.0, "interval": {"low": 90.0, "high": "inf"}, "within": null,
             "between": null, "effective_n": 3.0},
            {"p": 0.99, "value": null, "interval": null, "within": null, "between": null,
             "effective_n": 3.0}],
        "threshold": 1e5, "above_threshold": 0, "rounds": [], "sd_between": null, "iqr_within": 0.0
    })
}

fn record(summary: Value) -> Record {
    let case = json!({
        "pattern": "latency", "spec": {"pause": 0, "burst": 1}, "label": "latency tcp busy 64 B",
        "point": null, "axes": {"size": 64.0}, "is_preparation": false, "transport": "tcp",
        "wait": "busy", "topology": wiregauge::plan::Topology::pair(1), "size": 64,
        "bound": {"count": 3, "time": null}, "warmup": 0, "schedule": "closed_loop",
        "trace": null, "timer": "busy", "check": false, "loss_after": 1000, "timeout": 1000,
        "settings": {}, "seed": 1
    });
    let round = serde_json::to_value(wiregauge::record::schema::Round::default()).unwrap();
    let run = json!({
        "index": 0, "label": "tcp busy", "case": case, "headline": "rtt", "complete": true,
        "stopped": "count", "rounds": [round], "rates": [],
        "figures": [{"metric": "rtt", "unit": "ns", "summary": summary}],
        "counts": wiregauge::record::schema::Counts::default(), "included": {},
        "warnings": []
    });
    #[allow(clippy::needless_update)] // The test need not know what else it holds.
    let environment = wiregauge::host::Environment { host: "h".into(), ..Default::default() };
    serde_json::from_value(json!({
        "schema": "wiregauge.record", "version": wiregauge::record::schema::VERSION,
        "tool": "0", "command": ["wiregauge", "a b"],
        "started": "", "finished": "", "complete": true, "faults": [],
        "plan": {"name": "latency", "cases": [case], "rounds": {"least": 1, "most": 1,
                 "until": null}, "cpus": null, "hosts": [], "pairs": null, "concurrent": [],
                 "injected_clock_error": null, "seed": 1, "threshold": 100_000, "study": null},
        "environment": environment,
        "clock": {"source": "tsc", "reason": "", "frequency_hz": 1e9, "baseline_ns": 1e9,
                  "residual_ppb": 1.0, "reading_cost_ns": 1.0, "resolution_ns": 1.0, "fences": ""},
        "instrument": {"overhead_p50_ns": 1.0, "overhead_p99_ns": 2.0, "count": 9, "error_ns": 3.0,
                       "recording_ns": 1.0},
        "noise": [], "runs": [run], "unavailable": [], "warnings": []
    }))
    .unwrap()
}

fn samples(round: u32, latencies: &[f64]) -> RoundSamples {
    let sample = |(i, v): (usize, &f64)| Sample {
        thread: 0,
        sequence: i as u64,
        size: 64,
        intended_ns: f64::NAN,
        submit_ns: i as f64 * 1000.0,
        send_ns: f64::NAN,
        receive_ns: i as f64 * 1000.0 + v,
        complete_ns: f64::NAN,
        flags: Flags::default(),
    };
    let samples = latencies.iter().enumerate().map(sample).collect();
    RoundSamples { run: 0, round, samples }
}

fn page(record: &Record, rounds: Vec<Result<RoundSamples, String>>) -> String {
    html::render(record, &registry::views(), rounds)
}

#[test]
fn figures_bounds_and_too_few_samples_are_shown_as_they_are() {
    let page = page(&record(summary(3, json!(100.0))), vec![Ok(samples(0, &[100.0; 3]))]);
    assert!(page.contains("<data value=\"100\">0<span class=\"f5\">.1000</span></data>"));
    assert!(page.contains("data-low=\"90\" data-high=\"inf\">unresolved</span>"));
    assert!(page.contains("data-k=\"p99\"><span class=\"small\">n too small</span>"));
    assert!(page.contains("data-k=\"p99.9\"><span class=\"small\">not computed</span>"));
    assert!(page.contains("wiregauge &#39;a b&#39;"), "the command can be pasted");
    assert!(page.contains("None: no check of wiregauge found a weakness."));
}

#[test]
fn samples_that_contradict_the_figures_are_warned_of() {
    let rounds = || vec![Ok(samples(0, &[100.0, 100.0, 5e6]))];
    let text = page(&record(summary(3, json!(100.0))), rounds());
    assert!(text.contains("the largest sample is 5000000 ns, the figures say 100 ns"));
    let text = page(&record(summary(4, json!(5e6))), rounds());
    assert!(text.contains("the figures cover 4 samples, the curves 3"));
}

#[test]
fn an_error_of_the_reader_is_a_fault_of_the_page() {
    let broken = vec![Ok(samples(0, &[100.0])), Err("samples.parquet: <truncated>".to_owned())];
    let text = page(&record(summary(1, json!(100.0))), broken);
    assert!(text.contains("only in part: samples.parquet: &lt;truncated&gt;"));
}

#[test]
fn rounds_that_the_record_lacks_are_said_and_left_out() {
    let twice = vec![Ok(samples(0, &[100.0])), Ok(samples(0, &[9e9])), Ok(samples(7, &[9e9]))];
    let text = page(&record(summary(1, json!(100.0))), twice);
    assert!(text.contains("Samples of run 0, round 0, which the record lacks"));
    assert!(text.contains("Samples of run 0, round 7, which the record lacks"));
    assert!(!text.contains("<strong>severe</strong>"));
    let mut foreign = samples(0, &[1.0]);
    foreign.run = 99;
    let text = page(&record(summary(1, json!(100.0))), vec![Ok(foreign)]);
    assert!(text.contains("Samples of run 99, which the record lacks"));
}

#[test]
fn numbers_that_are_none_break_nothing() {
    let mut record = record(summary(3, json!("inf")));
    record.instrument.count = 0;
    record.instrument.error_ns = f64::NAN;
    record.clock.residual_ppb = f64::INFINITY;
    let values = [f64::NAN, -5.0, f64::INFINITY];
    let mut unstamped = samples(0, &values);
    unstamped.samples[0].submit_ns = f64::NAN;
    let text = page(&record, vec![Ok(unstamped), Ok(samples(1, &[]))]);
    assert!(text.contains("1 samples lacked a stamp"));
    assert!(
        text.contains("The instrument's error is unknown, since the run did not come to its end;")
    );
    let simulated = TransportKind::SIMULATED;
    record.runs.iter_mut().for_each(|run| run.case.case.transport = simulated);
    let text = page(&record, Vec::new());
    assert!(text.contains("is not measured, since no round ran in real time;"));
    assert!(!text.contains("instrument error of ?") && !text.contains("<dd>?"));
}

#[test]
fn one_way_between_two_hosts_shows_what_their_clocks_may_be_wrong_by() {
    let mut record = record(summary(3, json!(100.0)));
    assert!(!page(&record, Vec::new()).contains("Clocks of two hosts"));
    let clock = |bound_ns: f64| ClockOffset {
        offset_ns: 1e9,
        bound_ns,
        drift_ppm: 12.5,
        drift_bound_ppm: 0.25,
        exchanges: 400,
        shortest_round_trip_ns: 600.0,
        steps: 0,
        by: "exchanges".into(),
        traffic: None,
        exchanged: None,
    };
    let first = record.runs[0].rounds[0].clone();
    record.runs[0].rounds =
        [812.0, 450.0].map(|bound| Round { clock: Some(clock(bound)), ..first.clone() }).to_vec();
    let text = page(&record, Vec::new());
    assert!(text.contains("Clocks of two hosts</dt><dd>± 812 ns"), "the widest is told");
    assert!(text.contains("400 exchanges, drift 12.5"), "{text}");
}

/// One is said of one; the warning of a kind that stands first is the worst.
#[test]
fn counts_are_words_and_the_worst_warning_stands_first() {
    let mut record = record(summary(3, json!(100.0)));
    record.started = "2026-11-23T05:42:37.282034287Z".into();
    let round = record.runs[0].rounds[0].clone();
    let fault = RoundEnd::Fault("interrupted by the user".into());
    record.runs[0].rounds.push(Round { ended: fault, ..round });
    for (metric, share) in [("message_rate", 0.29), ("bandwidth", 0.63)] {
        record.runs[0].warnings.push((&Warning::RateVaries { metric, share }).into());
    }
    let text = page(&record, Vec::new());
    for said in [
        " · 1 run · ",
        ">2026-11-23T05:42:37Z</time>",
        ">1 round by fresh processes.",
        "<p>1 round of one case, in an order",
        "<strong>warning</strong>: bandwidth is known only to ±63 %",
        "<small>worst of 2; affects 1 of 1 run</small>",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn a_record_without_runs_is_a_page() {
    let mut record = record(summary(1, json!(1.0)));
    record.runs.clear();
    record.complete = false;
    record.faults.push("nothing could run".to_owned());
    let text = page(&record, Vec::new());
    assert!(text.contains("INCOMPLETE") && text.contains("nothing could run"));
}
