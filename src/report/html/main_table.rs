//! The table that an engineer looks for first, and the instrument's own error beside it.

use super::number::{self, GB, MB, MILLION, US};
use super::tables::{metric_name, transport_name, wait_name};
use super::{escape, headline};
use crate::plan::{Pattern, Wait};
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::stats::Rate;
use crate::transport::TransportKind;
use std::collections::{BTreeMap, BTreeSet};

/// The quantiles that have a column.
const SHOWN: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];

/// The results with what bounds them: one table of a survey's transports, else one of latencies
/// and one of rates.
pub fn section(record: &Record) -> String {
    let mut out = String::from(
        "<section id=\"results\" aria-labelledby=\"h-results\">\n\
         <h2 id=\"h-results\">Results</h2>\n",
    );
    let tables = tables(record);
    for (i, rows) in tables.iter().enumerate() {
        let id = if i == 0 { "main-table" } else { "rate-table" };
        out.push_str(&table(id, &caption(record, rows), rows));
    }
    out.push_str("<p class=\"downloads\"><button type=\"button\" data-csv=\"results\">");
    out.push_str("results.csv</button></p>\n");
    out.push_str(&unavailable(record));
    out.push_str(&instrument(record));
    out.push_str("</section>\n");
    out
}

fn table(id: &str, caption: &str, rows: &[Row]) -> String {
    let columns = Columns::of(rows);
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"c-{id}\">\n\
         <table class=\"figures\" id=\"{id}\">\n\
         <caption id=\"c-{id}\"><span>{caption}</span></caption>\n{}<tbody>\n",
        head(rows, &columns)
    );
    rows.iter().for_each(|row| out.push_str(&row.html(&columns)));
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

/// What the rows of a table have in common.
struct Columns {
    distributions: bool,
    rates: bool,
    /// The metric and size of all distributions, where they are the same.
    common: Option<(Metric, u64)>,
    /// Characters of the longest fraction in each column.
    fractions: BTreeMap<&'static str, usize>,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        let mut fractions = BTreeMap::new();
        for (name, shown) in rows.iter().flat_map(Row::shown) {
            let width = fractions.entry(name).or_insert(0);
            *width = number::fraction(shown).max(*width);
        }
        let of_row = |r: &Row| r.distribution().map(|(run, m)| (m, run.case.size.0));
        let kinds: BTreeSet<(Metric, u64)> = rows.iter().filter_map(of_row).collect();
        let common = kinds.first().copied().filter(|_| kinds.len() == 1);
        Columns { distributions: !kinds.is_empty(), rates: has_rates(rows), common, fractions }
    }

    fn aligned(&self, name: &str, exact: f64, scale: f64) -> String {
        number::aligned(exact, scale, self.fractions.get(name).copied().unwrap_or(0))
    }
}

/// A row: one run, or the runs of a survey that belong to one transport and wait.
struct Row<'a> {
    latency: Option<&'a Run>,
    rate: Option<&'a Run>,
    bandwidth: Option<&'a Run>,
    /// Of a study the series, of pairs of hosts their names, of a curve the rate or the clients.
    series: Option<String>,
}

impl<'a> Row<'a> {
    fn of(record: &'a Record, run: &'a Run) -> Self {
        let rates = (run.case.pattern == Pattern::Bandwidth).then_some(run);
        let study = record.plan.study.as_ref();
        let series = study.and_then(|study| study.series_of(run.index));
        let pair = || record.plan.pairs.map(|_| record.plan.ends_of(&run.case));
        Row {
            latency: rates.is_none().then_some(run),
            rate: rates,
            bandwidth: rates,
            series: match (series.map(|series| series.name.clone()), run.case.pace()) {
                (Some(series), Some(pace)) => Some(format!("{series}: {pace}")),
                (series, pace) => series.or_else(pair).or(pace),
            },
        }
    }

    fn distribution(&self) -> Option<(&'a Run, Metric)> {
        let run = self.latency?;
        Some((run, headline(run)?))
    }

    fn any(&self) -> Option<&'a Run> {
        self.latency.or(self.rate).or(self.bandwidth)
    }

    /// The figures of the row as they are shown, by column.
    fn shown(&self) -> Vec<(&'static str, f64)> {
        let mut out = Vec::new();
        if let Some(summary) = self.distribution().and_then(|(run, m)| run.summary(m)) {
            out.push(("max", summary.max.0 * US));
            for (p, name) in SHOWN {
                let found = summary.quantiles.iter().find(|q| q.p == p).and_then(|q| q.value);
                out.extend(found.map(|v| (name, v.0 * US)));
            }
        }
        let value = |run: Option<&Run>, metric| rate_of(run?, metric).map(|r| r.value);
        if let Some(v) = value(self.rate, RateMetric::MessageRate) {
            out.push(("rate", v * MILLION));
        }
        if let Some(v) = value(self.bandwidth, RateMetric::Bandwidth) {
            out.extend([("MB/s", v * MB), ("Gb/s", v * GB)]);
        }
        out
    }

    fn html(&self, columns: &Columns) -> String {
        let Some(run) = self.any() else { return String::new() };
        let mut runs = [self.latency, self.rate, self.bandwidth].into_iter().flatten();
        let broken = runs.any(|r| !r.complete);
        let mark = if broken { " <span class=\"bad\">incomplete</span>" } else { "" };
        let series = self.series.as_ref().map(|name| format!("<small>{}</small>", escape(name)));
        let threads = match run.case.threads {
            1 => String::new(),
            several => format!("<small>{several} threads</small>"),
        };
        let mut out = format!(
            "<tr data-run=\"{}\"><th scope=\"row\">{}{}{threads}{mark}</th><td>{}</td>",
            run.index,
            escape(&transport_name(run.case.transport)),
            series.unwrap_or_default(),
            wait_name(run.case.wait)
        );
        if columns.distributions {
            out.push_str(&self.latency_cells(columns));
        } else {
            out.push_str(&format!("<td class=\"n\">{}</td>", number::bytes(run.case.size.0)));
        }
        if columns.rates {
            out.push_str(&rate_cells(columns, self.rate, &[("rate", MILLION)]));
            out.push_str(&rate_cells(columns, self.bandwidth, &[("MB/s", MB), ("Gb/s", GB)]));
        }
        out.push_str("</tr>\n");
        out
    }

    fn latency_cells(&self, columns: &Columns) -> String {
        let found = self.distribution().and_then(|(run, m)| Some((run, m, run.summary(m)?)));
        let own = if columns.common.is_none() { 2 } else { 0 };
        let Some((run, metric, summary)) = found else {
            return "<td class=\"n none\">–</td>".repeat(SHOWN.len() + 3 + own);
        };
        let mut out = String::new();
        if columns.common.is_none() {
            out.push_str(&format!(
                "<td>{}</td><td class=\"n\">{}</td>",
                metric_name(metric),
                number::bytes(run.case.size.0)
            ));
        }
        out.push_str(&format!(
            "<td class=\"n\" data-k=\"n\"><data value=\"{}\">{}</data></td>",
            summary.count,
            number::count(summary.count)
        ));
        for (p, name) in SHOWN {
            let quantile = summary.quantiles.iter().find(|q| q.p == p);
            let cell = match quantile.map(|q| (q.value, q.interval)) {
                Some((Some(v), i)) => {
                    format!("{}{}", columns.aligned(name, v.0, US), number::interval(i, US))
                }
                Some((None, _)) => "<span class=\"small\">n too small</span>".to_owned(),
                None => "<span class=\"small\">not computed</span>".to_owned(),
            };
            out.push_str(&format!("<td class=\"n\" data-k=\"{name}\">{cell}</td>"));
        }
        let finite = if summary.max.0.is_finite() {
            String::new()
        } else {
            let finite = number::short(summary.max_finite.0 * US);
            format!("<span class=\"ci\">{finite} of those that came</span>")
        };
        out.push_str(&format!(
            "<td class=\"n\" data-k=\"max\">{}{finite}</td>\
             <td class=\"n{}\" data-k=\"lost\"><data value=\"{}\">{}</data></td>",
            columns.aligned("max", summary.max.0, US),
            if summary.lost > 0 { " bad" } else { "" },
            summary.lost,
            number::count(summary.lost)
        ));
        out
    }
}

fn has_rates(rows: &[Row]) -> bool {
    rows.iter().any(|r| r.rate.is_some() || r.bandwidth.is_some())
}

fn rate_of(run: &Run, metric: RateMetric) -> Option<&Rate> {
    run.rates.iter().find(|f| f.metric == metric).map(|f| &f.rate)
}

fn rate_cells(columns: &Columns, run: Option<&Run>, shown: &[(&str, f64)]) -> String {
    let mut out = String::new();
    for (name, scale) in shown {
        let metric = if *name == "rate" { RateMetric::MessageRate } else { RateMetric::Bandwidth };
        match run.and_then(|run| rate_of(run, metric)) {
            None => out.push_str("<td class=\"n none\">–</td>"),
            Some(rate) => out.push_str(&format!(
                "<td class=\"n\" data-k=\"{name}\" title=\"{} rounds\">{}{}</td>",
                rate.rounds.len(),
                columns.aligned(name, rate.value, *scale),
                number::interval(rate.interval, *scale)
            )),
        }
    }
    out
}

/// The rows of each table: one table where the record is a survey, else latencies and rates.
fn tables(record: &Record) -> Vec<Vec<Row<'_>>> {
    if record.plan.name == "survey"
        && let Some(folded) = fold(record)
    {
        return vec![folded];
    }
    let (rates, latencies): (Vec<&Run>, Vec<&Run>) =
        record.runs.iter().partition(|r| r.case.pattern == Pattern::Bandwidth);
    let tables = [latencies, rates].into_iter().filter(|runs| !runs.is_empty());
    tables.map(|runs| runs.into_iter().map(|run| Row::of(record, run)).collect()).collect()
}

/// One row for each transport and wait; `None` where that would hide a run.
fn fold(record: &Record) -> Option<Vec<Row<'_>>> {
    let mut order: Vec<(TransportKind, Wait)> = Vec::new();
    let mut groups: BTreeMap<(TransportKind, Wait), Vec<&Run>> = BTreeMap::new();
    for run in &record.runs {
        let key = (run.case.transport, run.case.wait);
        if !groups.contains_key(&key) {
            order.push(key);
        }
        groups.entry(key).or_default().push(run);
    }
    order.iter().map(|key| fold_group(groups.get(key)?)).collect()
}

fn fold_group<'a>(runs: &[&'a Run]) -> Option<Row<'a>> {
    let (rates, latencies): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|r| r.case.pattern == Pattern::Bandwidth);
    if latencies.len() > 1 || rates.len() > 2 {
        return None;
    }
    Some(Row {
        latency: latencies.first().copied(),
        rate: rates.iter().min_by_key(|r| r.case.size).copied(),
        bandwidth: rates.iter().max_by_key(|r| r.case.size).copied(),
        series: None,
    })
}

fn caption(record: &Record, rows: &[Row]) -> String {
    let runs = rows.iter().flat_map(|r| [r.latency, r.rate, r.bandwidth]).flatten();
    let rounds = runs.map(|r| r.rounds.len());
    let (least, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
    let rounds = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let mut out =
        format!("{rounds} rounds by fresh processes. Below each figure its interval of 95 %.");
    if rows.iter().any(|r| r.distribution().is_some()) {
        out.push_str(&format!(
            " Every latency has an instrument error of {} beside it; max is the true maximum, a \
             lost message is ∞.",
            number::span(record.instrument.error_ns)
        ));
    }
    if has_rates(rows) {
        out.push_str(" Rates are of the payload that arrived.");
    }
    out
}

/// The size of the runs of one column, where they have the same.
fn common_size<'a>(runs: impl Iterator<Item = Option<&'a Run>>) -> String {
    let mut sizes: Vec<u64> = runs.flatten().map(|r| r.case.size.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    match sizes.as_slice() {
        [one] => format!(", {}", number::bytes(*one)),
        _ => String::new(),
    }
}

fn head(rows: &[Row], columns: &Columns) -> String {
    let mut out = String::from("<thead>");
    let mut cells = String::from("<th scope=\"col\">Transport</th><th scope=\"col\">Wait</th>");
    let mut column = |name: &str, unit: &str| {
        let unit = if unit.is_empty() { "" } else { &format!("<small>{unit}</small>") };
        cells.push_str(&format!("<th scope=\"col\" class=\"n\">{name}{unit}</th>"));
    };
    if let Some((metric, size)) = columns.common {
        let after = if columns.rates { "<td colspan=\"3\"></td>" } else { "" };
        out.push_str(&format!(
            "<tr class=\"group\"><td colspan=\"2\"></td><th scope=\"colgroup\" colspan=\"{}\">\
             {}, {}</th>{after}</tr>",
            SHOWN.len() + 3,
            metric_name(metric),
            number::bytes(size)
        ));
    } else if columns.distributions {
        column("Metric", "");
    }
    if columns.common.is_none() {
        column("Size", "");
    }
    if columns.distributions {
        column("n", "");
        SHOWN.iter().for_each(|(_, name)| column(name, "us"));
        column("max", "us");
        column("lost", "");
    }
    if columns.rates {
        let rate = common_size(rows.iter().map(|r| r.rate));
        let bandwidth = common_size(rows.iter().map(|r| r.bandwidth));
        column(&format!("Rate{rate}"), "10<sup>6</sup> msg/s");
        column(&format!("Bandwidth{bandwidth}"), "MB/s");
        column("same", "Gb/s");
    }
    out.push_str(&format!("<tr>{cells}</tr></thead>\n"));
    out
}

fn unavailable(record: &Record) -> String {
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

fn instrument(record: &Record) -> String {
    let (i, c) = (&record.instrument, &record.clock);
    let mut out = String::from("<h3 id=\"h-instrument\">The instrument itself</h3>\n<dl>");
    let mut item = |name: &str, value: String, note: String| {
        out.push_str(&format!("<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>"));
    };
    item("Error of a latency", number::span(i.error_ns), "beside every latency above".into());
    item(
        "Null transport, per round trip",
        format!("{} p50, {} p99", number::span(i.floor_p50_ns), number::span(i.floor_p99_ns)),
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
        let kernel = there.environment.kernel.as_deref().unwrap_or("kernel not known");
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
