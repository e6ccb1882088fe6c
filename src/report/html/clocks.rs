//! What was known of other hosts' clocks, as a table; `web/clocks.js` draws them.

use super::escape;
use super::number::US;
use crate::record::schema::{ClockHistory, OtherHost, Record};

/// A section where clocks were compared, nothing otherwise.
pub fn section(record: &Record) -> String {
    if record.clocks.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section id=\"clocks\" aria-labelledby=\"h-clocks\">\n<h2 id=\"h-clocks\">Clocks</h2>\n",
    );
    out.push_str(&format!(
        "<p>This host: {}.</p>\n",
        escape(&record.environment.discipline.to_string())
    ));
    for history in &record.clocks {
        if let Some(host) = record.hosts.get(history.host as usize) {
            out.push_str(&table(host, history));
        }
    }
    out.push_str("</section>\n");
    out
}

fn table(other: &OtherHost, history: &ClockHistory) -> String {
    let host = escape(&other.name);
    let mut out = format!(
        "<p>{host}: {}.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"The clock of {host}\">\n<table class=\"figures\">\n\
         <caption><span>The clock of {host} less this host's, each since its own epoch: what was \
         known by then; the truth lies within ±</span></caption>\n<thead><tr>",
        escape(&other.environment.discipline.to_string())
    );
    for head in ["after s", "offset us", "± us", "drift ppm", "± ppm", "exchanges", "steps"] {
        out.push_str(&format!("<th scope=\"col\" class=\"n\">{head}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for known in &history.known {
        let clock = &known.clock;
        let cells = [
            format!("{:.3}", known.after_s),
            format!("{:.3}", clock.offset_ns * US),
            format!("{:.3}", clock.bound_ns * US),
            format!("{:.4}", clock.drift_ppm),
            format!("{:.4}", clock.drift_bound_ppm),
            clock.exchanges.to_string(),
            clock.steps.to_string(),
        ];
        let cells = cells.map(|cell| format!("<td class=\"n\">{cell}</td>"));
        out.push_str(&format!("<tr>{}</tr>\n", cells.concat()));
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}
