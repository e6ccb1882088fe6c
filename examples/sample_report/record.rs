//! A made-up record around the cases.

use crate::ROUNDS;
use std::collections::BTreeMap;
use wiregauge::host::Environment;
use wiregauge::loops::Ended;
use wiregauge::pattern::registry;
use wiregauge::plan::{Case, CpuPair, Rounds, Wait};
use wiregauge::record::schema::*;
use wiregauge::units::Span;
use wiregauge::warning::Warning;

fn run(index: usize, case: Case) -> Run {
    let word = |v: serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    let transport = word(serde_json::to_value(case.transport).unwrap());
    let wait = word(serde_json::to_value(case.wait).unwrap());
    let analysis = registry::analysis(case.pattern.name()).unwrap();
    let (cpus, governor) = ("CPU 2".to_owned(), "powersave".to_owned());
    let governor = Warning::Governor { cpus, governor };
    let warnings = (case.wait == Wait::Block).then(|| RecordedWarning::from(&governor));
    Run {
        index: index as u32,
        label: format!("{transport} {wait} {} B {}", case.size.0, case.pattern.name()),
        headline: analysis.measured(&case)[0].to_owned(),
        complete: true,
        stopped: "the intervals of p50 and p99 are within 2 %".to_owned(),
        rounds: (0..ROUNDS)
            .map(|i| Round {
                index: i,
                ended: RoundEnd::Loop(Ended::Time),
                stride: 1,
                ..Round::default()
            })
            .collect(),
        figures: Vec::new(),
        rates: Vec::new(),
        details: None,
        counts: Counts::default(),
        client_hosts: Vec::new(),
        stalls: Vec::new(),
        included: BTreeMap::from([("payload checked".to_owned(), "no".to_owned())]),
        warnings: warnings.into_iter().collect(),
        case: CaseRecord::from(&case),
    }
}

#[allow(clippy::needless_update)] // The example need not know what else an environment holds.
fn environment() -> Environment {
    Environment { host: "example (made-up data)".to_owned(), ..Environment::default() }
}

pub fn record(name: &str, cases: Vec<Case>) -> Record {
    Record {
        hosts: Vec::new(),
        paths: Vec::new(),
        pairs: None,
        impacts: Vec::new(),
        clocks: Vec::new(),
        together: None,
        explanation: None,
        tails: Vec::new(),
        samples: None,
        sha256: String::new(),
        schema: SCHEMA.to_owned(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        program_sha256: String::new(),
        command: vec!["wiregauge".to_owned(), name.to_owned(), "--time".into(), "200ms".into()],
        started: "2026-01-02T03:04:05Z".to_owned(),
        finished: "2026-01-02T03:05:11Z".to_owned(),
        complete: true,
        faults: Vec::new(),
        plan: Box::new(PlanRecord {
            name: name.to_owned(),
            cases: cases.iter().map(CaseRecord::from).collect(),
            rounds: Rounds { least: 5, most: 15, until: Some(0.02) },
            hosts: Vec::new(),
            pairs: None,
            rails: None,
            concurrent: Vec::new(),
            impacts: Vec::new(),
            cpus: vec![CpuPair { client: 2, server: 3 }],
            injected_clock_error: None,
            seed: 11,
            threshold: Span(100_000),
            time_limit: None,
            study: None,
        }),
        environment: Box::new(environment()),
        clock: ClockReport {
            source: "tsc".to_owned(),
            reason: "the TSC is invariant and synchronised".to_owned(),
            frequency_hz: 2.4e9,
            baseline_ns: 2e9,
            residual_ppb: 40.0,
            reading_cost_ns: 9.6,
            resolution_ns: 0.42,
            fences: "lfence before and after rdtsc".to_owned(),
        },
        instrument: Instrument {
            passes: 1500,
            overhead_p50_ns: 19.6,
            overhead_p99_ns: 20.4,
            count: 1_000_000,
            error_ns: 21.3,
            recording_ns: 1.2,
        },
        noise: [2, 3].map(noise).to_vec(),
        runs: cases.into_iter().enumerate().map(|(i, c)| run(i, c)).collect(),
        unavailable: vec![Unavailable {
            transport: "verbs".to_owned(),
            reason: "libibverbs.so.1 is not installed (package libibverbs1)".to_owned(),
        }],
        warnings: vec![(&Warning::NotIsolated { cpus: "CPUs 2-3".to_owned() }).into()],
    }
}

fn noise(cpu: u32) -> Noise {
    let counts = [4120, 910, 233, 61, 12, 3, 0, 1];
    let counts = counts.map(|n: u64| n * u64::from(cpu));
    Noise {
        cpu,
        observed_ns: 5e9,
        gap_threshold_ns: 500.0,
        gaps: counts.iter().sum(),
        lost_ns: 7.3e6,
        longest_ns: 81_300.0,
        histogram: counts
            .iter()
            .enumerate()
            .map(|(i, n)| (512.0 * f64::from(1 << i), *n))
            .collect(),
    }
}

/// Text that must stay text, wherever a record has text.
pub fn make_hostile(record: &mut Record) {
    let evil = "</script><img src=x onerror=\"document.title='broken'\"><!-- ' \" & \u{202e}";
    record.complete = false;
    record.faults = vec![format!("Round 3 of run 2 stalled for 5 s. {evil}")];
    record.environment.host = evil.to_owned();
    record.command.push(evil.to_owned());
    record.started = evil.to_owned();
    record.tool = evil.to_owned();
    record.clock.source = evil.to_owned();
    record.unavailable.push(Unavailable { transport: evil.into(), reason: evil.into() });
    let warning = RecordedWarning {
        kind: evil.into(),
        severity: Severity::Severe,
        subject: Some(Subject::Host(evil.into())),
        sentence: evil.into(),
        magnitude: None,
        advice: evil.into(),
    };
    record.warnings.push(warning.clone());
    for run in &mut record.runs {
        run.label = format!("{} {evil}", run.label);
        run.stopped = evil.to_owned();
        run.complete = run.index != 1;
        run.included.insert(evil.to_owned(), evil.to_owned());
        run.warnings.push(warning.clone());
    }
}
