//! The figures of a record as OpenMetrics text 1.0: gauges in base units, which Prometheus, its
//! push gateway and the node exporter's textfile collector take as well.

use super::selection::Selection;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::UNIX_EPOCH;
use wiregauge_figures::record::schema::{Figure, Noise, RateFigure, Record, Run, Severity};
use wiregauge_plan::Axis;
use wiregauge_stats::{Interval, RateMetric};

const NS: f64 = 1e9;

/// Writes the figures of the selected runs.
pub(super) fn write(
    record: &Record,
    selection: &Selection,
    sink: &mut dyn Write,
) -> io::Result<()> {
    let mut families = Families::default();
    families.of_record(record);
    for run in record.runs.iter().filter(|run| selection.has_run(run.index)) {
        families.of_run(run);
    }
    families.write(sink)
}

type Labels = Vec<(&'static str, String)>;

/// Returns true if a counter is a state or a time of one round, and no count that adds up.
fn is_state(name: &str) -> bool {
    const STATES: [&str; 6] = [
        "tcp.rtt_us",
        "tcp.rtt_variation_us",
        "tcp.min_rtt_us",
        "tcp.congestion_window_segments",
        "tcp.delivery_rate_bytes_per_second",
        "connect.connections",
    ];
    STATES.contains(&name) || (name.starts_with("connect.") && name.ends_with("_ns"))
}

/// A metric family: all its points stand together.
struct Family {
    name: String,
    unit: &'static str,
    help: String,
    points: Vec<(Labels, f64)>,
}

#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    /// Adds a point of `wiregauge_NAME` or, with a unit, of `wiregauge_NAME_UNIT`.
    fn add(&mut self, name: &str, unit: &'static str, help: &str, labels: &Labels, value: f64) {
        // No value, as of the instrument in simulated time.
        if value.is_nan() {
            return;
        }
        let parts = ["wiregauge", name, unit];
        let name = parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let (name, point) = (name.join("_"), (labels.clone(), value));
        match self.0.iter_mut().find(|family| family.name == name) {
            Some(family) => family.points.push(point),
            None => self.0.push(Family { name, unit, help: help.to_string(), points: vec![point] }),
        }
    }

    fn of_record(&mut self, record: &Record) {
        let environment = &record.environment;
        let texts = [
            ("tool", Some(&record.tool)),
            ("command", Some(&record.plan.name)),
            ("host", Some(&environment.host)),
            ("kernel", environment.kernel.as_ref()),
            ("processor", environment.processor.model.as_ref()),
            ("started", Some(&record.started)),
        ];
        let known = texts.into_iter().filter_map(|(name, text)| Some((name, text?.clone())));
        self.add("record_info", "", "What was run, and on what", &known.collect(), 1.0);
        let none = Labels::new();
        let complete = f64::from(u8::from(record.complete));
        self.add("record_complete", "", "1: all that was planned was measured", &none, complete);
        let finished = record.finished_at().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let finished = finished.map_or(f64::NAN, |since| since.as_secs_f64());
        let help = "When the run ended, Unix time";
        self.add("finished_timestamp", "seconds", help, &none, finished);
        let runs = record.runs.iter().flat_map(|run| &run.warnings);
        let warnings: Vec<Severity> =
            record.warnings.iter().chain(runs).map(|warning| warning.severity).collect();
        for severity in Severity::ALL {
            let count = warnings.iter().filter(|one| *one == severity).count();
            let labels = vec![("severity", severity.name().to_string())];
            let help = "Warnings of the record and its runs";
            self.add("warnings", "", help, &labels, count as f64);
        }
        let instrument = &record.instrument;
        let overheads = [("0.5", instrument.overhead_p50_ns), ("0.99", instrument.overhead_p99_ns)];
        for (p, ns) in overheads {
            let help = "What the instrument measures on a transport that does nothing";
            self.add(
                "instrument_overhead",
                "seconds",
                help,
                &vec![("quantile", p.into())],
                ns / NS,
            );
        }
        let help = "Error of every latency by the instrument: overhead and resolution";
        self.add("instrument_error", "seconds", help, &none, instrument.error_ns / NS);
        record.noise.iter().for_each(|noise| self.of_noise(noise));
    }

    fn of_noise(&mut self, noise: &Noise) {
        let labels = vec![("cpu", noise.cpu.to_string())];
        let lost = noise.lost_ns / noise.observed_ns;
        self.add("noise_lost", "ratio", "Share of a CPU's time lost in gaps", &labels, lost);
        let help = "Longest gap that a loop on the CPU saw";
        self.add("noise_longest_gap", "seconds", help, &labels, noise.longest_ns / NS);
    }

    fn of_run(&mut self, run: &Run) {
        let labels = labels(run);
        run.figures.iter().for_each(|figure| self.of_figure(figure, &labels));
        run.rates.iter().for_each(|rate| self.of_rate(rate, &labels));
        let counts = run.counts;
        let outcomes = [
            ("sent", counts.sent),
            ("received", counts.received),
            ("warmup", counts.warmup),
            ("lost", counts.lost),
            ("unfinished", counts.unfinished),
            ("unsent", counts.unsent),
            ("duplicates", counts.duplicates),
            ("reordered", counts.reordered),
            ("corrupt", counts.corrupt),
        ];
        for (outcome, count) in outcomes {
            let help = "Messages of all rounds by what became of them";
            self.add("messages", "", help, &with(&labels, "outcome", outcome), count as f64);
        }
        for end in ["client", "server"] {
            self.of_counters(run, end, &with(&labels, "end", end));
        }
    }

    /// Counters of an end: the sums over all rounds, and of times and states the largest.
    fn of_counters(&mut self, run: &Run, end: &str, labels: &Labels) {
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for round in &run.rounds {
            let usage = if end == "client" { &round.client } else { &round.server };
            for (name, count) in &usage.final_counters {
                let Ok(count) = count.parse::<f64>() else { continue };
                let total = totals.entry(name).or_default();
                *total = if is_state(name) { total.max(count) } else { *total + count };
            }
        }
        for (name, total) in totals {
            let help = "Counters of an end and of its host, from the connection to the end of the \
                        rounds";
            self.add("counter", "", help, &with(labels, "name", name), total);
        }
    }

    /// A distribution: quantiles, and the ends of their intervals as metrics of their own.
    fn of_figure(&mut self, figure: &Figure, labels: &Labels) {
        let (metric, summary) = (figure.metric.name(), &figure.summary);
        for quantile in &summary.quantiles {
            let Some(value) = quantile.value else { continue };
            let labels = with(labels, "quantile", &quantile.p.to_string());
            let help = format!(
                "{metric}: quantile of a typical round, or of all samples where a round has too few"
            );
            self.add(metric, "seconds", &help, &labels, value.0 / NS);
            self.ends(metric, "seconds", quantile.interval, &labels, NS);
        }
        let of_all = [
            ("min", "smallest sample", summary.min.0),
            ("max", "largest sample; infinite where a message never arrived", summary.max.0),
            ("mean", "mean of the finite samples of a typical round", summary.mean),
            ("sd", "standard deviation of the finite samples", summary.sd),
        ];
        for (name, words, ns) in of_all {
            let help = format!("{metric}: {words}");
            self.add(&format!("{metric}_{name}"), "seconds", &help, labels, ns / NS);
        }
        let counts = [
            ("samples", "samples, those that never arrived included", summary.count),
            ("lost_samples", "samples that never arrived, which count as infinite", summary.lost),
        ];
        for (name, words, count) in counts {
            let (name, help) = (format!("{metric}_{name}"), format!("{metric}: {words}"));
            self.add(&name, "", &help, labels, count as f64);
        }
        if let Some(ns) = figure.clock_bound_ns {
            let help = format!("{metric}: clock-error bound of every sample");
            self.add(&format!("{metric}_clock_bound"), "seconds", &help, labels, ns / NS);
        }
    }

    fn of_rate(&mut self, figure: &RateFigure, labels: &Labels) {
        let (unit, divisor) = match figure.unit.as_str() {
            "B/s" => ("bytes_per_second", 1.0),
            "msg/s" => ("messages_per_second", 1.0),
            "ns/msg" => ("seconds_per_message", NS),
            "ns/read" => ("seconds_per_read", NS),
            _ => ("ratio", 1.0),
        };
        let metric = RateMetric::name(figure.metric);
        let help = format!("{metric} of a typical round, recorded in {}", figure.unit);
        self.add(metric, unit, &help, labels, figure.rate.value / divisor);
        self.ends(metric, unit, figure.rate.interval, labels, divisor);
    }

    fn ends(
        &mut self,
        metric: &str,
        unit: &'static str,
        interval: Option<Interval>,
        labels: &Labels,
        divisor: f64,
    ) {
        let Some(Interval { low, high }) = interval else { return };
        for (name, words, end) in [("low", "lower", low), ("high", "upper", high)] {
            let help = format!("{metric}: {words} end of the 95 % confidence interval");
            self.add(&format!("{metric}_{name}"), unit, &help, labels, end.0 / divisor);
        }
    }

    fn write(&self, sink: &mut dyn Write) -> io::Result<()> {
        for Family { name, unit, help, points } in &self.0 {
            writeln!(sink, "# TYPE {name} gauge")?;
            if !unit.is_empty() {
                writeln!(sink, "# UNIT {name} {unit}")?;
            }
            writeln!(sink, "# HELP {name} {}", escaped(help))?;
            for (labels, value) in points {
                writeln!(sink, "{name}{} {}", braces(labels), number(*value))?;
            }
        }
        writeln!(sink, "# EOF")
    }
}

/// What distinguishes a run.
fn labels(run: &Run) -> Labels {
    let case = &run.case;
    let axis = |name, axis| Some((name, case.on_axis(axis)?.to_string()));
    let mut labels = vec![
        ("run", run.index.to_string()),
        ("case", run.label.clone()),
        ("pattern", case.pattern.clone()),
        ("transport", case.transport.name().to_string()),
        ("wait", case.wait.name().to_string()),
        ("size_bytes", case.size.0.to_string()),
    ];
    labels.extend(axis("offered_per_s", Axis::Rate));
    labels.extend(axis("clients", Axis::Clients));
    let has_several = case.topology.connections_each() > 1;
    labels.extend(axis("connections", Axis::Connections).filter(|_| has_several));
    labels
}

fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.push((name, value.to_string()));
    labels
}

fn braces(labels: &Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (at, (name, value)) in labels.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        // Writing to a text does not fail.
        let _ = write!(text, "{comma}{name}=\"{}\"", escaped(value));
    }
    text + "}"
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_string(),
        f64::NEG_INFINITY => "-Inf".to_string(),
        _ => format!("{value:?}"),
    }
}
