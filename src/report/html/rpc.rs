//! Requests of `rpc` by their lengths, as tables; `web/rpc.js` draws them.

use super::number::{self, US};
use super::{escape, tables};
use crate::plan::Rpc;
use crate::plan::rpc::Slowdown;
use crate::record::lengths::{Lengths, OfSize};
use crate::record::schema::{Record, Run};
use crate::report::table::rpc::told;

/// The section; empty where there are no such runs.
pub fn section(record: &Record) -> String {
    let runs = record.runs.iter();
    let of: Vec<(&Run, &Rpc, &Lengths)> =
        runs.filter_map(|run| Some((run, run.case.rpc.as_ref()?, run.lengths.as_ref()?))).collect();
    if of.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section id=\"rpc\" aria-labelledby=\"h-rpc\">\n<h2 id=\"h-rpc\">By message size</h2>\n",
    );
    for (run, rpc, lengths) in of {
        out.push_str(&run_of(run, rpc, lengths));
    }
    out.push_str("</section>\n");
    out
}

fn run_of(run: &Run, rpc: &Rpc, lengths: &Lengths) -> String {
    let label = escape(&run.label);
    let mut out = format!("<details><summary>{label}</summary>\n");
    out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(&rpc.workload.what)));
    if let Some(mean) = lengths.slowdowns.iter().find(|one| one.by == rpc.slowdown)
        && !rpc.unloaded
    {
        out.push_str(&format!(
            "<p>Mean slowdown: {}{}, of each answered request {}.</p>\n",
            number::short(mean.mean.value),
            number::interval(mean.mean.interval, 1.0),
            told(rpc.slowdown)
        ));
    }
    out.push_str(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table>\n\
         <thead><tr>"
    ));
    let metric = tables::metric_name(lengths.metric);
    let heads = ["size B", "share %", "n", "lost"].map(String::from);
    let times = ["p50", "p99", "p99.9"].map(|p| format!("{metric} {p} us"));
    let rest = ["unloaded us", "slowdown p50", "slowdown p99", "slowdown p99.9"].map(String::from);
    for head in heads.into_iter().chain(times).chain(rest) {
        out.push_str(&format!("<th scope=\"col\" class=\"n\">{}</th>", escape(&head)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    lengths.sizes.iter().for_each(|of| out.push_str(&row(rpc, of)));
    out.push_str("</tbody>\n</table>\n</div>\n</details>\n");
    out
}

fn row(rpc: &Rpc, of: &OfSize) -> String {
    let base_ns = of.unloaded.by(rpc.slowdown).filter(|_| !rpc.unloaded);
    let quantile = |p: f64| {
        let found = of.summary.quantiles.iter().find(|quantile| quantile.p == p);
        found.and_then(|quantile| Some((quantile.value?.0, quantile.interval)))
    };
    let time = |p: f64| match quantile(p) {
        Some((ns, interval)) => {
            format!("{}{}", number::short(ns * US), number::interval(interval, US))
        }
        None => "<span class=\"small\">n too small</span>".to_owned(),
    };
    let none = || "<span class=\"none\">–</span>".to_owned();
    let slowdown = |p: f64| match of.slowdown(rpc.slowdown, p).filter(|_| base_ns.is_some()) {
        Some((ratio, interval)) => {
            format!("{}{}", number::short(ratio), number::interval(interval, 1.0))
        }
        None => none(),
    };
    let own = of.unloaded.p50_interval.filter(|_| rpc.slowdown == Slowdown::UnloadedP50);
    let cells = [
        number::count(of.size.into()),
        format!("{:.2}", 100.0 * of.share),
        number::count(of.summary.count),
        number::count(of.summary.lost),
        time(0.5),
        time(0.99),
        time(0.999),
        base_ns.map_or_else(none, |ns| {
            format!("{}{}", number::short(ns * US), number::interval(own, US))
        }),
        slowdown(0.5),
        slowdown(0.99),
        slowdown(0.999),
    ];
    let cells = cells.map(|cell| format!("<td class=\"n\">{cell}</td>"));
    format!("<tr>{}</tr>\n", cells.concat())
}
