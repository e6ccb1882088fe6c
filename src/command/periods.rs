//! `--report-every`: a line on stdout for each second of a running round, or whatever time was
//! asked for. The columns never change, so that awk and gnuplot read them through a pipe: lines
//! that begin with `#` are not data, and `-` is what is not known.

use crate::plan::written::{escaped_json, one_line};
use crate::plan::{Case, Rounds};
use crate::report::number::{self, MEGABYTES, THOUSANDS, US};
use crate::run::{Period, SoFar, Watcher};
use crate::stats::{Metric, Value};
use serde::Serialize;
use std::io::Write;

/// Widths of the columns, wide enough for what is measured today.
const WIDTHS: [usize; 6] = [9, 12, 12, 11, 11, 8];

/// Value of `schema` in the JSON object of a period.
const SCHEMA: &str = "wiregauge.period";

/// Prints lines.
#[derive(Default)]
pub struct Periods {
    /// Prints each line as a JSON object, and no head.
    is_json: bool,
    round: u32,
    label: String,
    /// Whether the head of this round has been printed.
    has_head: bool,
    /// Whether the reader has had enough (`| head`). The run goes on, and its record is kept.
    is_closed: bool,
}

/// A line as a JSON object. What is not known is `null`, what is infinite `"inf"`.
#[derive(Serialize)]
struct PeriodLine<'a> {
    schema: &'static str,
    label: &'a str,
    round: u32,
    at_s: f64,
    length_s: f64,
    messages: u64,
    messages_per_s: Value,
    bytes_per_s: Option<f64>,
    metric: Option<Metric>,
    p50_ns: Option<Value>,
    p99_ns: Option<Value>,
    lost: u64,
}

impl Periods {
    /// Prints lines of text, or a JSON object on each.
    pub fn new(is_json: bool) -> Periods {
        Periods { is_json, ..Periods::default() }
    }

    /// The JSON object of a period.
    fn object(&self, case: &Case, period: &Period) -> String {
        let rate = period.messages as f64 / period.length_s;
        let line = PeriodLine {
            schema: SCHEMA,
            label: &self.label,
            round: self.round,
            at_s: period.at_s,
            length_s: period.length_s,
            messages: period.messages,
            messages_per_s: Value(rate),
            bytes_per_s: bytes_per_s(case, rate),
            metric: period.metric,
            p50_ns: period.p50_ns.map(Value),
            p99_ns: period.p99_ns.map(Value),
            lost: period.lost,
        };
        escaped_json(serde_json::to_string(&line).unwrap_or_default())
    }
    fn print(&mut self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let written = || writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        self.is_closed = self.is_closed || { written }().is_err();
    }
}

/// One line of columns.
fn columns(cells: [String; 6]) -> String {
    let padded = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}"));
    padded.collect::<Vec<_>>().join(" ")
}

/// The names of the columns, behind a `#`.
fn head(period: &Period) -> String {
    let metric = period.metric.map_or("time", |metric| metric.name());
    let names = ["s", "k_msg/s", "MB/s", "p50_us", "p99_us", "lost"];
    let line = columns(names.map(String::from));
    format!("#{}  # p50 and p99 of {metric}", &line[1..])
}

/// The bandwidth at a rate of messages; of messages of many lengths the rate says nothing
/// of the bytes.
fn bytes_per_s(case: &Case, rate: f64) -> Option<f64> {
    (!case.profile().has_many_lengths).then_some(rate * case.size.0 as f64)
}

/// The figures of a period.
fn line(case: &Case, period: &Period) -> String {
    let rate = period.messages as f64 / period.length_s;
    let bytes = bytes_per_s(case, rate);
    let known = |value: Option<f64>, scale: f64| {
        value.map_or_else(|| "-".into(), |value| number::fixed(value * scale, 3))
    };
    columns([
        format!("{:.3}", period.at_s),
        known(Some(rate), THOUSANDS),
        known(bytes, MEGABYTES),
        known(period.p50_ns, US),
        known(period.p99_ns, US),
        period.lost.to_string(),
    ])
}

impl Watcher for Periods {
    fn cpus(&mut self, choice: &str) {
        // Where even stderr cannot be written, the record has them.
        let _ = writeln!(std::io::stderr(), "wiregauge: {choice}");
    }

    fn round(&mut self, round: u32, _: Rounds, _: usize) {
        self.round = round;
    }

    fn case(&mut self, _: usize, label: &str, _: Option<SoFar>) {
        self.label = one_line(label);
        self.has_head = false;
    }

    fn period(&mut self, _: usize, case: &Case, period: &Period) {
        if self.is_closed {
            return;
        }
        if self.is_json {
            let object = self.object(case, period);
            return self.print(&object);
        }
        if !std::mem::replace(&mut self.has_head, true) {
            let title = format!("# {}, round {}", self.label, self.round + 1);
            self.print(&title);
            self.print(&head(period));
        }
        self.print(&line(case, period));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::latency;
    use crate::stats::Metric;

    #[test]
    fn every_line_has_the_same_columns() {
        let case = latency::request(Default::default()).plan().unwrap().cases.remove(0);
        let metric = Some(Metric::HalfRtt);
        let known = Period {
            at_s: 3.0004,
            length_s: 1.0,
            messages: 250_000,
            lost: 2,
            metric,
            p50_ns: Some(1830.0),
            p99_ns: Some(4126.2),
        };
        let text = line(&case, &known);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["3.000", "250.000", "16.000", "1.830", "4.126", "2"]);
        let unknown = Period { p50_ns: Some(f64::INFINITY), p99_ns: None, ..known.clone() };
        let text = line(&case, &unknown);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["3.000", "250.000", "16.000", "inf", "-", "2"]);
        let head = head(&known);
        assert!(head.starts_with('#') && head.ends_with("# p50 and p99 of half_rtt"), "{head}");
        // Each name ends where its figures do.
        assert_eq!(head.find("k_msg/s").map(|at| at + 7), Some(WIDTHS[0] + 1 + WIDTHS[1]));
    }
}
