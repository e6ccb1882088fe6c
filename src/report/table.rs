//! Tables for the terminal: right-aligned, so that decimal points stand under each other; units in
//! the heads; no frames, so that awk reads them.

use crate::host::Noise;
use crate::plan::{Direction, Pattern};
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::stats::{Interval, Quantile, Rate, Summary, Value};
use comfy_table::{CellAlignment, Table, presets};

/// The quantiles that tables show.
const SHOWN: [f64; 3] = [0.5, 0.99, 0.999];
/// What stands where there are too few samples for a quantile.
pub const TOO_SMALL: &str = "n too small";

/// A table from its head and rows; all columns but the first `words` are right-aligned.
pub fn table(head: &[&str], rows: Vec<Vec<String>>, words: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head.to_vec()).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= words {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}

/// Nanoseconds as microseconds with three decimals.
pub fn us(ns: f64) -> String {
    match ns {
        ns if ns.is_nan() => "-".into(),
        ns if ns == f64::INFINITY => "inf".into(),
        ns if ns == f64::NEG_INFINITY => "-inf".into(),
        ns => format!("{:.3}", ns / 1e3),
    }
}

fn span(interval: Option<Interval>, show: impl Fn(f64) -> String) -> String {
    match interval {
        None => "[-]".into(),
        Some(Interval { low, high }) => format!("[{}, {}]", show(low.0.max(0.0)), show(high.0)),
    }
}

fn quantile(summary: &Summary, p: f64) -> String {
    let found: Option<&Quantile> = summary.quantiles.iter().find(|q| q.p == p);
    match found.and_then(|q| q.value.map(|value| (q, value))) {
        None => TOO_SMALL.into(),
        Some((q, Value(ns))) => format!("{} {}", us(ns), span(q.interval, us)),
    }
}

fn quantiles(summary: Option<&Summary>) -> Vec<String> {
    match summary {
        None => vec!["-".into(); SHOWN.len() + 1],
        Some(summary) => {
            let mut cells: Vec<String> = SHOWN.iter().map(|p| quantile(summary, *p)).collect();
            cells.push(us(summary.max.0));
            cells
        }
    }
}

fn rate(run: Option<&Run>, metric: RateMetric, scale: f64, decimals: usize) -> String {
    let found = run.and_then(|run| run.rates.iter().find(|figure| figure.metric == metric));
    match found.map(|figure| &figure.rate) {
        None => "-".into(),
        Some(Rate { value, .. }) if value.is_nan() => "-".into(),
        Some(Rate { value, interval, .. }) => {
            let show = |rate: f64| format!("{:.decimals$}", rate / scale);
            format!("{} {}", show(*value), span(*interval, show))
        }
    }
}

/// The runs of a record: the survey's fold, or a table for each kind of figure.
pub fn runs(record: &Record) -> String {
    match record.plan.name.as_str() {
        "survey" => survey(record),
        _ => latencies(record) + &bandwidths(record),
    }
}

/// One row for a transport and wait mode: its three runs side by side.
fn survey(record: &Record) -> String {
    let mut keys: Vec<(String, String)> = Vec::new();
    for run in &record.runs {
        let key = (run.case.transport.to_string(), run.case.wait.name().to_string());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut rows = Vec::new();
    for (transport, wait) in keys {
        let of = |pattern: Pattern, small: bool| {
            record.runs.iter().find(|run| {
                let case = &run.case;
                let size = small == (case.size == crate::plan::survey::SMALL);
                case.pattern == pattern
                    && (size || pattern == Pattern::Latency)
                    && case.transport.name() == transport
                    && case.wait.name() == wait
            })
        };
        let large = of(Pattern::Bandwidth, false);
        let mut row = vec![transport.clone(), wait.clone()];
        row.extend(quantiles(of(Pattern::Latency, true).and_then(|r| r.summary(Metric::HalfRtt))));
        row.push(rate(of(Pattern::Bandwidth, true), RateMetric::MessageRate, 1e3, 1));
        let note = match large {
            Some(run) if run.case.size != crate::plan::survey::LARGE => {
                format!(" ({} B)", run.case.size.0)
            }
            _ => String::new(),
        };
        row.push(rate(large, RateMetric::Bandwidth, 1e6, 1) + &note);
        rows.push(row);
    }
    let head = [
        "transport",
        "wait",
        "half_rtt p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "rate 64 B, k msg/s",
        "bandwidth 64 KiB, MB/s",
    ];
    table(&head, rows, 2)
}

fn latencies(record: &Record) -> String {
    let mut rows = Vec::new();
    for run in &record.runs {
        for figure in &run.figures {
            let case = &run.case;
            let mut row = vec![
                case.transport.to_string(),
                case.wait.name().to_string(),
                figure.metric.name().to_string(),
                case.size.0.to_string(),
            ];
            row.extend(quantiles(Some(&figure.summary)));
            row.push(figure.summary.count.to_string());
            row.push(figure.summary.lost.to_string());
            row.push(format!(
                "{:.4}",
                100.0 * figure.summary.above_threshold as f64 / figure.summary.count.max(1) as f64
            ));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let above = format!("% > {}", record.plan.threshold);
    let head = [
        "transport",
        "wait",
        "metric",
        "size B",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "n",
        "lost",
        above.as_str(),
    ];
    table(&head, rows, 3)
}

fn bandwidths(record: &Record) -> String {
    let mut rows = Vec::new();
    for run in record.runs.iter().filter(|run| !run.rates.is_empty()) {
        let case = &run.case;
        let ways = if case.direction == Direction::Bi { "both" } else { "one" };
        let gigabits = run
            .rates
            .iter()
            .find(|figure| figure.metric == RateMetric::Bandwidth)
            .map_or("-".into(), |figure| format!("{:.3}", figure.rate.value * 8.0 / 1e9));
        rows.push(vec![
            case.transport.to_string(),
            case.wait.name().to_string(),
            ways.to_string(),
            case.size.0.to_string(),
            rate(Some(run), RateMetric::OfferedRate, 1e3, 3),
            rate(Some(run), RateMetric::AchievedRate, 1e3, 3),
            rate(Some(run), RateMetric::MessageRate, 1e3, 3),
            rate(Some(run), RateMetric::Bandwidth, 1e6, 1),
            gigabits,
            run.counts.lost.to_string(),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "transport",
        "wait",
        "ways",
        "size B",
        "offered k msg/s",
        "achieved k msg/s",
        "delivered k msg/s",
        "bandwidth MB/s",
        "Gb/s",
        "lost",
    ];
    table(&head, rows, 3)
}

/// What stands below the runs: the instrument's own error, the noise, what was not measured, doubts.
pub fn notes(record: &Record) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    let clock = &record.clock;
    line(format!(
        "instrument: +-{} us a latency (null transport p50 {} us, p99 {} us, n = {}); recording \
         {:.1} ns a sample; clock {}: reading {:.1} ns, resolution {:.1} ns, residual {:.0} ppb",
        us(record.instrument.error_ns),
        us(record.instrument.floor_p50_ns),
        us(record.instrument.floor_p99_ns),
        record.instrument.count,
        record.instrument.recording_ns,
        clock.source,
        clock.reading_cost_ns,
        clock.resolution_ns,
        clock.residual_ppb,
    ));
    for noise in &record.noise {
        line(noise_line(noise));
    }
    line(
        "intervals: 95 %, in brackets; wider of chance within rounds and spread between them"
            .into(),
    );
    for missing in &record.unavailable {
        line(format!("not measured: {}: {}", missing.transport, missing.reason));
    }
    for fault in &record.faults {
        line(format!("fault: {fault}"));
    }
    for doubt in &record.doubts {
        line(format!("doubt: {}", doubt.text));
    }
    // One line for a kind of doubt, with the runs that share it.
    let mut kinds: Vec<(&str, Vec<&str>, &str)> = Vec::new();
    for run in &record.runs {
        for doubt in &run.doubts {
            match kinds.iter_mut().find(|(kind, ..)| *kind == doubt.kind) {
                Some((_, labels, _)) => labels.push(&run.label),
                None => kinds.push((&doubt.kind, vec![&run.label], &doubt.text)),
            }
        }
    }
    for (_, mut labels, sentence) in kinds {
        labels.dedup();
        let others = match labels.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more, in the report)"),
        };
        line(format!("doubt: {}{others}: {sentence}", labels[0]));
    }
    text
}

fn noise_line(noise: &Noise) -> String {
    format!(
        "noise floor: CPU {}: {} gaps above {:.0} ns in {:.1} ms, {:.3} % of the time, longest {} us",
        noise.cpu,
        noise.gaps,
        noise.gap_threshold_ns,
        noise.observed_ns / 1e6,
        100.0 * noise.lost_ns / noise.observed_ns.max(1.0),
        us(noise.longest_ns)
    )
}

/// Noise of some CPUs, with a histogram of each.
pub fn noise(all: &[Noise]) -> String {
    let mut text = String::new();
    for noise in all {
        text.push_str(&noise_line(noise));
        text.push('\n');
        let most = noise.histogram.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
        let rows = noise.histogram.iter().map(|(from, count)| {
            // Logarithmic, so that one long gap among a million short ones is seen.
            let bar = (40.0 * ((*count as f64).ln_1p() / most.ln_1p())).ceil() as usize;
            vec![us(*from), us(from * 2.0), count.to_string(), "#".repeat(bar)]
        });
        let head = ["from us", "to us", "gaps", "(logarithmic)"];
        let rows: Vec<Vec<String>> = rows.collect();
        if !rows.is_empty() {
            let mut drawn = Table::new();
            drawn.load_style(presets::NOTHING).set_header(head.to_vec()).add_rows(rows);
            for (index, column) in drawn.column_iter_mut().enumerate() {
                if index < 3 {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
            text.push_str(&drawn.to_string());
            text.push('\n');
        }
    }
    text
}
