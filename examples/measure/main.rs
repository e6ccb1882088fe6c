//! Measures from a program of its own: round trips over several transports, and which is fastest.
//!
//! `cargo run --release --example measure`

use std::process::ExitCode;
use wiregauge::measure;
use wiregauge::stats::Metric;

/// The program.
pub fn main() -> ExitCode {
    // The two ends of a measurement are processes of this program.
    wiregauge::serve_as_agent();
    let words = "latency --transport shm,unix,tcp --wait block --count 2000 --rounds 6";
    let record = match measure(words.split(' ')) {
        Ok(record) => record,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for run in &record.runs {
        let p50 = run.summary(Metric::HalfRtt).and_then(|summary| summary.quantile(0.5));
        let shown = p50.and_then(|p50| Some((p50.value?.0, p50.interval?)));
        let Some((p50, interval)) = shown else { continue };
        let [p50, low, high] = [p50, interval.low.0, interval.high.0].map(|ns| ns / 1e3);
        println!("{}: p50 {p50:.2} us ({low:.2} to {high:.2})", run.case.transport);
    }
    for warning in record.runs.iter().flat_map(|run| &run.warnings) {
        println!("{}", warning.sentence);
    }
    ExitCode::SUCCESS
}
