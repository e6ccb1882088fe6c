//! A record with every field set, and awkward samples.

use super::{clocks, rpc, stream, study};
use std::collections::BTreeMap;
use wiregauge::loops::Ended;
use wiregauge::pattern::{bandwidth, latency, load, registry};
use wiregauge::plan::*;
use wiregauge::plan::{pairs::AtOnce, topology::Wiring};
use wiregauge::record::schema::*;
use wiregauge::sample::{Flags, RoundSamples, Sample};
use wiregauge::stats::metric::durations;
use wiregauge::stats::{Interval, Quantile, Rate, RoundSummary, Summary, Value, summarize};
use wiregauge::transport::TransportKind;
use wiregauge::units::{Bytes, InjectedClockError, MessageRate, Span, Step};
use wiregauge::warning::Warning;

/// A record in which every optional field is there, so that every key appears.
pub fn full_record() -> Record {
    Record {
        schema: SCHEMA.to_string(),
        sha256: String::new(),
        version: VERSION,
        tool: "0.1.0".to_string(),
        program_sha256: String::new(),
        command: vec!["wiregauge".into(), "latency".into(), "a \"quoted\" \u{1F4E1}\n".into()],
        started: "2026-11-21T05:52:43Z".to_string(),
        finished: "2026-11-21T05:52:58Z".to_string(),
        complete: false,
        faults: vec!["round 4 of run 0 was interrupted".to_string()],
        plan: Box::new(full_plan()),
        environment: Default::default(),
        clock: clock(),
        instrument: Instrument {
            passes: 50,
            overhead_p50_ns: 21.5,
            overhead_p99_ns: 24.0,
            count: 100_000,
            error_ns: 24.8,
            recording_ns: 1.25,
        },
        noise: vec![Noise {
            cpu: 2,
            observed_ns: 2e9,
            gap_threshold_ns: 100.0,
            gaps: 17,
            lost_ns: 41_000.0,
            longest_ns: 9_001.5,
            histogram: vec![(128.0, 15), (8192.0, 2)],
        }],
        runs: vec![full_run()],
        unavailable: vec![Unavailable {
            transport: "verbs".to_string(),
            reason: "libibverbs.so.1 was not found".to_string(),
        }],
        warnings: vec![warning()],
        paths: Vec::new(),
        pairs: Some(PairFigures {
            slow: vec![SlowPair { run: 0, metric: "half_rtt".into(), value: 9.5, median: 4.5 }],
            bisections: vec![Bisection {
                runs: vec![0],
                pairs: 1,
                bandwidth: Rate {
                    value: 1e9,
                    interval: Some(interval()),
                    basis: wiregauge::stats::Basis::Pooled,
                    rounds: vec![1e9],
                },
                matchings: vec![Value(1e9)],
                overlap: Some(0.9),
            }],
        }),
        impacts: vec![study::impact()],
        hosts: vec![OtherHost {
            name: "node07".to_string(),
            address: Some("10.1.0.7".to_string()),
            environment: Default::default(),
            clock: clock(),
            noise: Vec::new(),
            clock_cost: Some(clock_cost()),
        }],
        clocks: vec![clocks::history()],
        together: Some(Box::new(clocks::together())),
        explanation: None,
        tails: Vec::new(),
        samples: Some(SamplesFile { bytes: 12_345_678, sha256: "0f".repeat(32) }),
    }
}

/// A record whose rounds are those of the samples.
pub fn record_of(rounds: &[RoundSamples]) -> Record {
    let mut runs: BTreeMap<u32, Run> = BTreeMap::new();
    for RoundSamples { run, round, samples } in rounds {
        let full = Run { stalls: Vec::new(), ..full_run() };
        let empty = Run { index: *run, rounds: Vec::new(), figures: Vec::new(), ..full };
        let run = runs.entry(*run).or_insert(empty);
        let counts = Counts::default();
        run.rounds.push(Round {
            index: *round,
            samples: samples.len() as u64,
            counts,
            ..full_round()
        });
        run.counts = counts;
    }
    let full = full_record();
    // What names runs needs them.
    let pairs = full.pairs.filter(|_| runs.contains_key(&0));
    let impacts = if runs.contains_key(&0) { full.impacts } else { Vec::new() };
    let (runs, head) = (runs.into_values().collect(), full_record());
    Record { runs, pairs, impacts, ..head }
}

/// The figure that these rounds have of a metric.
pub fn figure_of(rounds: &[RoundSamples], metric: Metric) -> Figure {
    let series: Vec<Vec<f64>> = rounds.iter().map(|round| durations(round, metric)).collect();
    let summary = summarize(&series, 50_000.0);
    Figure { metric, unit: "ns".into(), summary, clock_bound_ns: None }
}

fn clock_cost() -> ClockCost {
    ClockCost {
        length_ns: 2e9,
        exchanges: 100,
        datagrams: 300,
        bytes: 14_700,
        client_cpu_ns: 4e6,
        server_cpu_ns: Some(5e6),
    }
}

fn clock() -> ClockReport {
    ClockReport {
        source: "tsc".to_string(),
        reason: "the TSC is invariant".to_string(),
        frequency_hz: 2_499_999_871.337,
        baseline_ns: 1e9,
        residual_ppb: 12.5,
        reading_cost_ns: 0.1 + 0.2,
        resolution_ns: 0.4,
        fences: "lfence before and after".to_string(),
    }
}

fn warning() -> RecordedWarning {
    (&Warning::Unpinned { role: "client" }).into()
}

fn step() -> Step {
    Step { by_ns: -4e4, at_ns: 2e9 }
}

fn full_plan() -> PlanRecord {
    let latency = full_case(Schedule::Poisson { rate: MessageRate(1e4) });
    PlanRecord::from(&Plan {
        name: "latency".to_string(),
        cases: vec![
            full_bandwidth(&latency),
            full_load(&latency),
            full_rpc(&latency),
            full_stream(&latency),
            latency,
        ],
        rounds: Rounds { least: 5, most: 20, until: Some(0.02) },
        cpus: vec![CpuPair { client: 2, server: 3 }],
        hosts: vec![HostSpec {
            host: "node07".to_string(),
            agent: Some("[node07]:7425".to_string()),
            ssh: vec!["ssh".to_string()],
            binary: Some("/opt/wiregauge".to_string()),
            ..HostSpec::default()
        }],
        pairs: Some(Pairs::All { at_once: AtOnce::Matching }),
        rails: Some(study::rails()),
        concurrent: vec![vec![0]],
        impacts: vec![study::impact_of_plan()],
        injected_clock_error: Some(InjectedClockError {
            offset_ns: 1e9,
            drift_ppm: 20.0,
            scale_ppm: 0.0,
            step: Some(step()),
        }),
        seed: 7,
        threshold: Span(50_000),
        time_limit: Some(Span(50_000_000_000)),
        study: Some(study::full()),
    })
}

/// Another pattern in place of a case's own.
fn asking(case: &Case, pattern: &str, spec: impl Specification) -> Case {
    Case { pattern: registry::find(pattern).unwrap(), ..case.with_spec(spec) }
}

fn full_bandwidth(case: &Case) -> Case {
    let direction = bandwidth::Direction::Bi;
    asking(case, "bandwidth", bandwidth::Spec { burst: 1, window: 16, direction })
}

fn full_load(case: &Case) -> Case {
    let spec = load::Spec {
        clients: 4,
        buffers: Some(load::Buffers { transmit: 8, receive: 24 }),
        window: 16,
        probe_rate: Some(MessageRate(500.0)),
        slo: "p99<50us".parse().ok(),
        search: Some(load::Search { arrivals: Schedule::ClosedLoop }),
        ..load::Spec::default()
    };
    asking(case, "load", spec)
}

fn full_rpc(case: &Case) -> Case {
    let topology =
        Topology::client_server(2, 2, Wiring::Mesh { each: 3 }).on(case.topology.hosts());
    Case { topology, ..asking(case, "rpc", rpc::full()) }
}

fn full_stream(case: &Case) -> Case {
    asking(case, "stream", stream::full())
}

fn full_case(schedule: Schedule) -> Case {
    Case {
        pattern: registry::find("latency").unwrap(),
        spec: Spec::new(latency::Spec { pause: Span(10_000), burst: 1 }),
        transport: TransportKind::Tcp,
        wait: Wait::Busy,
        topology: Topology::pair(2).on(HostPair { client: None, server: Some(0) }),
        part: Part { after: Span(1000), cpus_before: 1, pair: Some([1, 0]) },
        size: Bytes(64),
        bound: Bound { count: Some(1000), time: Some(Span(2_000_000_000)) },
        warmup: 100,
        exact_warmup: true,
        schedule,
        trace: Some(Trace { file: "t".into(), times_ns: vec![0, 1000], sizes: vec![Bytes(64); 2] }),
        timer: TimerKind::IoUring,
        check: true,
        loss_after: Span(1_000_000_000),
        timeout: Span(10_000_000_000),
        settings: Settings::of_values([
            ("nodelay", "on"),
            ("busy-poll", "50us"),
            ("send-buffer", "64KiB"),
            ("zerocopy", "on"),
            ("congestion", "cubic"),
            ("mss", "1448"),
            ("interface", "ib0,ib1"),
            ("node-in", "127.0.0.1:12000"),
            ("node-out", "127.0.0.1:12001"),
            ("operation", "write_imm"),
            ("device", "mlx5_0"),
            ("signal-every", "64"),
            ("stamp-complete", "device"),
        ])
        .unwrap(),
        seed: u64::MAX,
    }
}

fn full_run() -> Run {
    Run {
        index: 0,
        label: "tcp 64 B".to_string(),
        case: CaseRecord::from(&full_rpc(&full_case(Schedule::ClosedLoop))),
        headline: "rtt".to_string(),
        complete: true,
        stopped: "p50 and p99 are within 2 %".to_string(),
        rounds: vec![full_round()],
        figures: vec![Figure {
            metric: Metric::Rtt,
            unit: "ns".to_string(),
            summary: full_summary(),
            clock_bound_ns: Some(812.5),
        }],
        rates: vec![RateFigure {
            metric: RateMetric::AchievedRate,
            unit: "msg/s".to_string(),
            rate: Rate {
                value: 9_999.7,
                interval: Some(interval()),
                basis: wiregauge::stats::Basis::Pooled,
                rounds: vec![9_999.7],
            },
        }],
        details: serde_json::to_value(rpc::lengths(&full_summary())).ok(),
        counts: counts(),
        stalls: vec![Stall {
            round: 0,
            thread: 0,
            at_ns: 8e8,
            length_ns: 7.1e6,
            client_waited_ns: Some(1e4),
            server_waited_ns: Some(7.3e6),
            cause: StallCause::ServerWaited,
        }],
        client_hosts: vec![rpc::client_host(full_summary())],
        included: BTreeMap::from([("inline".to_string(), "no".to_string())]),
        warnings: vec![warning()],
    }
}

fn counts() -> Counts {
    Counts {
        sent: 1100,
        received: 1099,
        warmup: 100,
        lost: 1,
        duplicates: 2,
        reordered: 3,
        corrupt: 4,
        rejected_peers: 5,
        missed_steps: 6,
        gaps: 7,
        held_up: 8,
        unsent: 9,
        unfinished: 11,
        lost_before_first: 1,
    }
}

fn full_round() -> Round {
    let usage = Usage {
        user_ns: 1e6,
        system_ns: 2e6,
        cpu_ns: 2.9e6,
        voluntary_switches: 1,
        involuntary_switches: 2,
        waited_ns: Some(4e6),
        page_faults: 3,
        pinned: true,
        locked: false,
        own_descriptors: false,
        effective_settings: BTreeMap::from([("SO_SNDBUF".to_string(), "131072".to_string())]),
        final_counters: BTreeMap::from([(
            "counter.port_xmit_packets".to_string(),
            "2000".to_string(),
        )]),
    };
    Round {
        overlap: Some(0.97),
        congested: Some(0.98),
        suspended_ns: 1.5e9,
        index: 0,
        position: 3,
        started_ns: 1234.5625,
        length_ns: 2e9,
        ended: RoundEnd::Fault("stalled".into()),
        cpus: Some(CpuPair { client: 2, server: 3 }),
        samples: 1100,
        samples_in_histogram_only: 0,
        stride: 1,
        counts: counts(),
        client: usage.clone(),
        server: usage.clone(),
        threads: vec![Thread {
            cpus: Some(CpuPair { client: 2, server: 3 }),
            started_ns: 1234.5625,
            length_ns: 2e9,
            ended: RoundEnd::Loop(Ended::Failed(104)),
            counts: counts(),
            client: usage.clone(),
            server: usage,
        }],
        clock: Some(clocks::offset()),
        start: Some(clocks::start()),
    }
}

fn interval() -> Interval {
    Interval { low: Value(1.5), high: Value(f64::INFINITY) }
}

fn full_summary() -> Summary {
    Summary {
        count: 1000,
        lost: 1,
        min: Value(9.0625),
        max: Value(f64::INFINITY),
        max_finite: Value(5e6),
        mean: 10.1,
        mean_interval: Some(interval()),
        sd: 0.30000000000000004,
        quantiles: vec![Quantile {
            p: 0.99,
            value: Some(Value(12.0)),
            interval: Some(interval()),
            within: Some(Interval { low: Value(f64::NEG_INFINITY), high: Value(13.0) }),
            basis: wiregauge::stats::Basis::Median,
            effective_n: 812.7,
        }],
        threshold: 50_000.0,
        above_threshold: 2,
        rounds: vec![RoundSummary {
            count: 1000,
            quantiles: vec![Some(Value(12.0)), None],
            min: Value(9.0625),
            max: Value(f64::INFINITY),
            mean: 12.5,
        }],
        known_error: wiregauge::stats::KnownError { clock_ns: 12.5, instrument_ns: 29.6 },
        sd_between: Some(0.5),
        iqr_within: 0.75,
    }
}

/// Rounds with everything that is awkward: stamps that are missing, negative, infinite, tiny and
/// huge, all flags, the largest numbers that the columns hold, and a round without samples.
pub fn awkward_rounds() -> Vec<RoundSamples> {
    let sample = |sequence, stamps: [f64; 5], flags| Sample {
        thread: if sequence == 2 { 63 } else { 0 },
        sequence,
        size: if sequence > 1000 { i32::MAX as u32 } else { 64 },
        intended_ns: stamps[0],
        submit_ns: stamps[1],
        send_ns: stamps[4],
        receive_ns: stamps[2],
        complete_ns: stamps[3],
        flags,
    };
    let none = f64::NAN;
    let all = Flags(127);
    vec![
        RoundSamples {
            run: 1,
            round: 0,
            samples: vec![
                sample(0, [none, 0.0625, 1.125, none, 0.5], Flags::WARMUP),
                sample(1, [none, 2.5, none, none, none], Flags::LOST),
                sample(2, [-0.0625, 0.1 + 0.2, 5e-324, 1e300, 0.1], all),
                sample(4, [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, -0.0], Flags(0)),
                sample(3, [none; 5], Flags::REORDERED.with(Flags::DUPLICATE)),
            ],
        },
        RoundSamples { run: 0, round: 0, samples: vec![] },
        RoundSamples {
            run: i32::MAX as u32,
            round: i32::MAX as u32,
            samples: vec![sample(i64::MAX as u64, [1.0, 2.0, 3.0, 4.0, 5.0], Flags(u32::MAX))],
        },
        realistic_round(0, 1, 5000),
    ]
}

/// A round like one of a ping-pong: a stamp about every 12 us, on the grid, no intended time.
pub fn realistic_round(run: u32, round: u32, count: u64) -> RoundSamples {
    let grid = wiregauge::sample::grid;
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ u64::from(round);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut now = 1e9;
    let samples = (0..count).map(|sequence| {
        let submit = now;
        let post = 900.0 - 80.0 * random().ln();
        let trip = 11_000.0 - 700.0 * random().ln();
        now += trip + 60.0 + 5.0 * random();
        Sample {
            thread: 0,
            sequence,
            size: 64,
            intended_ns: f64::NAN,
            submit_ns: grid(submit),
            send_ns: f64::NAN,
            receive_ns: grid(submit + trip),
            complete_ns: grid(submit + post),
            flags: if sequence < 100 { Flags::WARMUP } else { Flags(0) },
        }
    });
    RoundSamples { run, round, samples: samples.collect() }
}

/// All that a round holds, with NaN equal to NaN and every other stamp compared bit by bit.
pub fn bits(rounds: &[RoundSamples]) -> Vec<[u64; 11]> {
    let bit = |v: f64| if v.is_nan() { u64::MAX } else { v.to_bits() };
    let rows = rounds.iter().flat_map(|r| r.samples.iter().map(move |s| (r, s)));
    rows.map(|(r, s)| {
        [
            r.run.into(),
            r.round.into(),
            s.thread.into(),
            s.sequence,
            s.size.into(),
            bit(s.intended_ns),
            bit(s.submit_ns),
            bit(s.send_ns),
            bit(s.receive_ns),
            bit(s.complete_ns),
            s.flags.0.into(),
        ]
    })
    .collect()
}
