//! What bounds every figure: the instrument's own error, and what was not measured.

use super::escape;
use crate::record::schema::{Record, Run};
use crate::report::number;

/// How often the runs were repeated, and what is true of all their figures.
pub fn conditions(record: &Record) -> String {
    let rounds = || record.runs.iter().map(|run| run.rounds.len());
    let rounds = match (rounds().min().unwrap_or(0), rounds().max().unwrap_or(0)) {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    format!(
        "<p class=\"note\">{rounds} rounds by fresh processes. Below each figure its 95 % \
         interval. Every latency has an instrument error of {} beside it; max is the true maximum, \
         a lost message is ∞. Rates are of the payload that arrived.</p>\n",
        number::span(record.instrument.error_ns)
    )
}

/// The transports that could not be measured.
pub fn unavailable(record: &Record) -> String {
    if record.unavailable.is_empty() {
        return String::new();
    }
    let items: String = record
        .unavailable
        .iter()
        .map(|u| format!("<li><b>{}</b>: {}</li>", escape(&u.transport), escape(&u.reason)))
        .collect();
    format!("<h3>Not measured</h3>\n<ul>{items}</ul>\n")
}

/// The instrument's own error, its clocks, and the noise of the CPUs.
pub fn instrument(record: &Record) -> String {
    let (i, c) = (&record.instrument, &record.clock);
    let mut out = String::from("<h3 id=\"h-instrument\">The instrument itself</h3>\n<dl>");
    let mut item = |name: &str, value: String, note: String| {
        out.push_str(&format!("<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>"));
    };
    item("Error of a latency", number::span(i.error_ns), "beside every latency above".into());
    item(
        "Null transport, per round trip",
        format!("{} p50, {} p99", number::span(i.overhead_p50_ns), number::span(i.overhead_p99_ns)),
        format!("same loop, {} messages", number::count(i.count)),
    );
    item("Recording a sample", number::span(i.recording_ns), "beyond its clock readings".into());
    item(
        "Clock",
        escape(&c.source),
        format!(
            "reading {}, resolution {}, scale within {} ppb over {}",
            number::span(c.reading_cost_ns),
            number::span(c.resolution_ns),
            number::short(c.residual_ppb),
            number::span(c.baseline_ns)
        ),
    );
    for there in &record.hosts {
        let kernel = there.environment.kernel.as_deref().unwrap_or("unknown kernel");
        let note = format!("{}, clock {}", escape(kernel), escape(&there.clock.source));
        item("Other host", escape(&there.name), note);
    }
    let clocks = record.runs.iter().filter_map(Run::widest_clock);
    if let Some(clock) = clocks.max_by(|a, b| a.bound_ns.total_cmp(&b.bound_ns)) {
        item(
            "Clocks of two hosts",
            format!("± {}", number::span(clock.bound_ns)),
            format!(
                "at most, of every one-way time; {} exchanges, drift {} ± {} ppm",
                number::count(clock.exchanges),
                number::short(clock.drift_ppm),
                number::short(clock.drift_bound_ppm)
            ),
        );
    }
    for n in &record.noise {
        item(
            &format!("Noise of CPU {}", n.cpu),
            format!("longest gap {}", number::span(n.longest_ns)),
            format!(
                "{} gaps above {} in {}: {} % of the time",
                number::count(n.gaps),
                number::span(n.gap_threshold_ns),
                number::span(n.observed_ns),
                number::short(100.0 * n.lost_ns / n.observed_ns)
            ),
        );
    }
    out.push_str("</dl>\n");
    out
}
