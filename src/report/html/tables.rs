//! The other parts of the page that are text: title, warnings, environment, plan, data.

use super::escape;
use crate::record::schema::{Record, RecordedWarning};
use crate::report::curves::{BINS_PER_DECADE, EXACT_HEAD, EXACT_TAIL, Reduced};
use crate::report::number::{count, span};
use crate::report::warnings::{self, Entry, Group};
use serde_json::Value;

/// The title of the page.
pub fn title(record: &Record) -> String {
    let mark = if record.complete { "" } else { " (incomplete)" };
    let study = record.plan.study.as_ref();
    let study = study.map(|study| format!(" {}", study.name)).unwrap_or_default();
    format!("wiregauge {}{study} on {}{mark}", record.plan.name, record.environment.host)
}

/// What, where, when; whether it is whole; the two buttons of the whole page.
pub fn header(record: &Record, reduced: &Reduced) -> String {
    let state = if record.complete {
        "<span class=\"good\">complete</span>".to_owned()
    } else {
        "<strong class=\"bad\">INCOMPLETE</strong>".to_owned()
    };
    let faults: String = record
        .faults
        .iter()
        .chain(&reduced.faults)
        .map(|f| format!("<li>{}</li>", escape(f)))
        .collect();
    let faults = if faults.is_empty() {
        String::new()
    } else {
        format!("<ul id=\"faults\" class=\"bad-box\" aria-label=\"Faults\">{faults}</ul>\n")
    };
    format!(
        "<header>\n<div><h1><span>wiregauge</span> {} <span>on</span> {}</h1>\n\
         <p>{state} · <time datetime=\"{started}\">{started}</time> to \
         <time datetime=\"{finished}\">{finished}</time> · {} runs · wiregauge {}</p></div>\n\
         <div class=\"buttons\"><button type=\"button\" id=\"download-record\">record.json</button>\
         <button type=\"button\" id=\"theme\">Theme: auto</button></div>\n</header>\n{faults}",
        escape(&record.plan.name),
        escape(&record.environment.host),
        record.runs.len(),
        escape(&record.tool),
        started = escape(&record.started),
        finished = escape(&record.finished),
    )
}

/// All that weakens the figures, the worst first.
pub fn warnings(record: &Record, disagreements: &[RecordedWarning]) -> String {
    let mut out = String::from(
        "<section id=\"warnings\" aria-labelledby=\"h-warnings\">\n\
         <h2 id=\"h-warnings\">Warnings</h2>\n",
    );
    let groups = warnings::of_record(record, disagreements);
    match groups.is_empty() {
        true => out.push_str("<p>None: no check of wiregauge found a weakness.</p>\n"),
        false => {
            let items: String = groups.iter().map(|group| warning_group(record, group)).collect();
            out.push_str(&format!("<ul>{items}</ul>\n"));
        }
    }
    out.push_str("</section>\n");
    out
}

/// A sentence with the runs or hosts that share it.
fn entry(entry: &Entry<'_>, all: usize) -> String {
    let labels = match entry.labels.len() {
        0 => String::new(),
        1 => entry.labels.join(", "),
        _ if entry.is_of_hosts() => entry.labels.join(", "),
        some if some == all => "all runs".to_owned(),
        some => format!("{some} of {all} runs: {}", entry.labels.join(", ")),
    };
    match labels.as_str() {
        "" => escape(&entry.warning.sentence),
        labels => format!("{}<small>{}</small>", escape(&entry.warning.sentence), escape(labels)),
    }
}

/// Warnings of one kind: the first at once, the others unfold.
fn warning_group(record: &Record, group: &Group<'_>) -> String {
    let (all, first) = (record.runs.len(), group.first());
    let entries: Vec<String> = group.entries().iter().map(|one| entry(one, all)).collect();
    let others = match (entries.as_slice(), group.labels().len()) {
        ([_], _) => String::new(),
        (several, labels) => {
            let items: String = several.iter().map(|one| format!("<li>{one}</li>")).collect();
            let affected = match labels {
                0 => String::new(),
                _ if group.entries()[0].is_of_hosts() => String::new(),
                some => format!("<small>affects {some} of {all} runs</small>"),
            };
            format!("{affected}<details><summary>show all</summary><ul>{items}</ul></details>")
        }
    };
    let advice = match first.advice.as_str() {
        "" => String::new(),
        advice => format!("<small class=\"advice\">{}</small>", escape(advice)),
    };
    format!(
        "<li class=\"{severity}\"><strong>{severity}</strong>: {} <code>{}</code>{advice}{others}\
         </li>",
        entries[0],
        escape(&first.kind),
        severity = first.severity,
    )
}

/// Everything in the environment, whatever it holds.
pub fn environment(record: &Record) -> String {
    let mut out = String::from(
        "<section id=\"environment\" aria-labelledby=\"h-environment\">\n\
         <h2 id=\"h-environment\">Environment</h2>\n",
    );
    let value = serde_json::to_value(&record.environment).unwrap_or(Value::Null);
    let mut rows = Vec::new();
    flatten("", &value, &mut rows);
    rows.push(("clock fences".to_owned(), record.clock.fences.clone()));
    rows.push(("clock source".to_owned(), record.clock.reason.clone()));
    rows.push(("clock frequency".to_owned(), format!("{} Hz", record.clock.frequency_hz)));
    let (first, rest) = rows.split_at(rows.len().min(ENVIRONMENT_ROWS));
    out.push_str(&key_values(first));
    if !rest.is_empty() {
        out.push_str(&format!("<details><summary>{} more</summary>\n", rest.len()));
        out.push_str(&key_values(rest));
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
    out
}

/// So many lines of the environment are shown at once; the others unfold.
const ENVIRONMENT_ROWS: usize = 48;

fn key_values(rows: &[(String, String)]) -> String {
    let mut out = String::from("<table class=\"kv\"><tbody>\n");
    for (k, v) in rows {
        out.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            escape(k),
            escape(v)
        ));
    }
    out.push_str("</tbody></table>\n");
    out
}

/// Leaves of a JSON value with their path in words; a list of plain values is one leaf.
fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let below = |name: &str| {
        let name = name.replace('_', " ");
        if path.is_empty() { name } else { format!("{path} › {name}") }
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&below(k), v, out)),
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            for (i, v) in list.iter().enumerate() {
                flatten(&below(&i.to_string()), v, out);
            }
        }
        Value::Array(list) => {
            let text = list.iter().map(leaf).collect::<Vec<_>>().join(", ");
            out.push((path.to_owned(), if text.is_empty() { "none".to_owned() } else { text }));
        }
        leaf_value => out.push((path.to_owned(), leaf(leaf_value))),
    }
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

/// The command and what it was understood to ask for.
pub fn plan(record: &Record) -> String {
    let plan = serde_json::to_string_pretty(&record.plan).unwrap_or_default();
    format!(
        "<section id=\"plan\" aria-labelledby=\"h-plan\">\n<h2 id=\"h-plan\">Plan</h2>\n\
         <pre id=\"command\" tabindex=\"0\">{}</pre>\n<p>{} to {} rounds of each of {} cases, in \
         an order shuffled with seed {}. Slow is above {}.</p>\n\
         <details><summary>The whole plan as executed</summary>\n<pre tabindex=\"0\">{}</pre>\
         </details>\n</section>\n",
        escape(&record.command.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")),
        record.plan.rounds.least,
        record.plan.rounds.most,
        record.plan.cases.len(),
        record.plan.seed,
        span(record.plan.threshold.0 as f64),
        escape(&plan)
    )
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Where the data is, and what the curves leave out.
pub fn data(record: &Record, reduced: &Reduced) -> String {
    let points: usize = reduced.curves.iter().map(|c| c.ranks.len()).sum();
    let samples: u64 = reduced.curves.iter().map(|c| c.count).sum();
    let unstamped = if reduced.unstamped == 0 {
        String::new()
    } else {
        format!(" {} samples lacked a stamp and are left out.", count(reduced.unstamped))
    };
    format!(
        "<section id=\"data\" aria-labelledby=\"h-data\">\n<h2 id=\"h-data\">Data</h2>\n\
         <p>Tables and plots are made from this record (schema {} {}) and its samples alone; \
         <code>samples.parquet</code> beside it holds every sample. The curves of this page are \
         {} exact order statistics out of {} samples: all of the {} largest and {} smallest of \
         each run, between them ranks spaced so that a share read between two points is within \
         {:.0} % of itself. Each point is a sample, none is interpolated. A row of the density \
         covers {:.1} % of latency. {} samples of warm-up are left out, as in the \
         figures.{unstamped}</p>\n\
         </section>\n",
        escape(&record.schema),
        record.version,
        count(points as u64),
        count(samples),
        EXACT_TAIL,
        EXACT_HEAD,
        100.0 * (reduced.tail_step - 1.0),
        100.0 * (10_f64.powf(1.0 / f64::from(BINS_PER_DECADE)) - 1.0),
        count(reduced.warmup),
    )
}
