//! What differs between two records beside their figures: hosts, kernels, options, power settings.
//!
//! Everything that the records hold of their conditions is compared, by its path in `record.json`,
//! so that a field that is added later is told without a line here. [`WEIGHTS`] says how much a
//! difference weakens the comparison, [`NOT_COMPARED`] what differs between any two runs.

use super::selection::Matches;
use super::{Pair, Side};
use crate::number::percent;
use serde::Serialize;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use wiregauge_base::options::each_once;
use wiregauge_figures::record::losses;
use wiregauge_figures::record::schema::{CaseRecord, Environment, Noise, Record, Run, Severity};
use wiregauge_plan::written::shortened;

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// How much it weakens the comparison.
    pub severity: Severity,
    /// Its name, with the host where it is another one.
    pub what: String,
    /// What A has.
    pub a: String,
    /// What B has.
    pub b: String,
}

/// Characters of what a record has of a condition that are printed.
const LONGEST_SHOWN: usize = 60;

impl Condition {
    /// What A and B have, as they are printed.
    pub fn shown(&self) -> [String; 2] {
        [&self.a, &self.b].map(|text| shortened(text, LONGEST_SHOWN))
    }
}

/// How much a difference of the environment weakens a comparison, by the beginning of its path: the
/// first that fits. What is not listed is a note.
const WEIGHTS: [(&str, Severity); 18] = [
    ("host", Severity::Severe),
    ("machine", Severity::Severe),
    ("hypervisor", Severity::Severe),
    ("processor.model", Severity::Severe),
    ("processor.logical", Severity::Severe),
    ("processor.physical", Severity::Severe),
    ("processor.sockets", Severity::Severe),
    ("processor", Severity::Warning),
    ("cpus", Severity::Warning),
    ("kernel", Severity::Warning),
    ("clock_source", Severity::Warning),
    ("memory.total_bytes", Severity::Note),
    ("container.cpu_quota", Severity::Warning),
    ("container.cpuset", Severity::Warning),
    ("memory.", Severity::Warning),
    ("sysctls", Severity::Warning),
    ("interfaces.", Severity::Warning),
    ("versions", Severity::Warning),
];

/// What differs between any two runs, and what other lines tell.
const NOT_COMPARED: [&str; 16] = [
    "load_average",
    "container.throttled.times",
    "container.throttled.ns",
    "container.memory.used_bytes",
    "container.memory.cache_bytes",
    "container.oom_kills",
    "container.tasks.used",
    "memory.available_bytes",
    "cpus.frequency_khz_now",
    "cpus.interrupts",
    "discipline.max_error_ns",
    "discipline.estimated_error_ns",
    "discipline.frequency_ppm",
    "discipline.pending_ns",
    "discipline.ptp_offset_ns",
    "versions.wiregauge",
];

/// Parts of a case that say nothing of their own: names, places on axes, and the seed.
const NOT_OF_A_CASE: [&str; 5] = ["label", "point", "axes", "is_preparation", "seed"];

/// Parts of a case that say how much is measured and not what, and the network that a simulation
/// has in the place of the one that is measured.
const NOT_OF_A_KEY: [&str; 5] =
    ["bound", "warmup", "exact_warmup", "timeout", "settings.synthetic"];

/// Returns what makes the cases of two runs different ones, in words: `transport tcp, not shm`.
/// Options that a side selects are left out. Returns `None` where nothing differs.
pub(super) fn of_cases(a: &Side, b: &Side, pair: &Pair<'_>) -> Option<String> {
    let mut all = Vec::new();
    differ(&mut all, "", key_fields(a, b, pair), |_| Severity::Severe);
    let hosts = [(a, pair.a), (b, pair.b)].map(|(side, run)| side.record.plan.hosts_of(&run.case));
    push(&mut all, Severity::Severe, "hosts", hosts);
    named(&all)
}

/// Options that are told where cases differ in more.
const MAX_NAMED: usize = 3;

fn named(differing: &[Condition]) -> Option<String> {
    let names = differing.iter().take(MAX_NAMED).map(|one| {
        let [a, b] = one.shown();
        format!("{} {b}, not {a}", one.what)
    });
    let more = differing.len().saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    let all: Vec<String> = names.chain(more).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns the options of both cases that name them. The numbers of hosts are those of a record.
fn key_fields(a: &Side, b: &Side, pair: &Pair<'_>) -> [Fields; 2] {
    own_fields(a, b, pair).map(|mut fields| {
        fields.retain(|path, _| {
            let is_amount = NOT_OF_A_KEY.iter().any(|part| {
                path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            !is_amount && path != "topology.ranks.host"
        });
        fields
    })
}

/// Returns the options of both cases, without what their sides select.
fn own_fields(a: &Side, b: &Side, pair: &Pair<'_>) -> [Fields; 2] {
    [pair.a, pair.b].map(|run| {
        let mut own = of_case(&run.case);
        own.retain(|path, _| {
            let key = path.trim_start_matches("spec.");
            !a.selection.names(key) && !b.selection.names(key)
        });
        own
    })
}

/// A CPU that lost this share of its time or more ...
const MUCH_LOST: f64 = 0.01;
/// ... and so many times what it lost in the other run measured something else.
const TIMES_LOST: f64 = 2.0;

/// What differs, the worst first. Of one record only the options can differ.
pub(super) fn differing(a: &Side, b: &Side, matches: &Matches<'_>, is_one: bool) -> Vec<Condition> {
    let mut all = Vec::new();
    let severity = if is_one { Severity::Note } else { Severity::Severe };
    for pair in &matches.pairs {
        differ(&mut all, "", own_fields(a, b, pair), |_| severity);
        let severity = severity.min(Severity::Warning);
        let methods = [pair.a, pair.b].map(|run| flat("method", &run.included));
        differ(&mut all, "", methods, |_| severity);
        differ(&mut all, "", [pair.a, pair.b].map(of_rounds), |_| severity);
        let [of_a, of_b] =
            [(pair.a, a), (pair.b, b)].map(|(run, side)| shares_lost(run, &side.record));
        packets_lost(&mut all, severity, [&of_a, &of_b]);
    }
    if !is_one {
        let labels = |runs: &Vec<&Run>| {
            runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>().join(", ")
        };
        let labels = matches.alone.each_ref().map(labels);
        push(&mut all, Severity::Severe, "runs without a counterpart", labels);
        of_records(&mut all, [&a.record, &b.record]);
    }
    let mut all = each_once(all);
    all.sort_by_key(|one| Reverse(one.severity));
    all
}

/// What differs between two records and one run of each, the worst first.
pub fn between(a: &Side, b: &Side, pair: &Pair<'_>) -> Vec<Condition> {
    differing(a, b, &Matches::one(pair), false)
}

/// What differs between two records as wholes.
fn of_records(all: &mut Vec<Condition>, records: [&Record; 2]) {
    let mut one = |severity, what: &str, text: fn(&Record) -> String| {
        push(all, severity, what, records.map(text));
    };
    one(Severity::Severe, "complete", |record| if record.complete { "yes" } else { "no" }.into());
    one(Severity::Severe, "remote hosts", |record| {
        record.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ")
    });
    one(Severity::Warning, "wiregauge", |record| record.tool.clone());
    one(Severity::Warning, "timestamp clock", |record| record.clock.source.clone());
    one(Severity::Note, "rounds", |record| record.plan.rounds.most.to_string());
    one(Severity::Note, "seed", |record| record.plan.seed.to_string());
    environment(all, "", records.map(|record| &*record.environment));
    noise(all, "", records.map(|record| record.noise.as_slice()));
    for (a, b) in records[0].hosts.iter().zip(&records[1].hosts).filter(|(a, b)| a.name == b.name) {
        let prefix = format!("{}: ", a.name);
        environment(all, &prefix, [&a.environment, &b.environment]);
        noise(all, &prefix, [&a.noise, &b.noise]);
    }
}

fn environment(all: &mut Vec<Condition>, prefix: &str, both: [&Environment; 2]) {
    let weight = |path: &str| {
        let found = WEIGHTS.iter().find(|(begin, _)| path.starts_with(begin));
        found.map_or(Severity::Note, |(_, severity)| *severity)
    };
    let fields = both.map(|environment| {
        let mut fields = flat("", environment);
        fields.retain(|path, _| !NOT_COMPARED.contains(&path.as_str()));
        fields
    });
    // A container has a network interface more than another one: only what both have is compared.
    let has = |fields: &Fields, path: &str| fields.contains_key(path);
    let [mut a, mut b] = fields.clone();
    let is_shared = |path: &String| {
        !path.starts_with("interfaces.") || fields.iter().all(|fields| has(fields, path))
    };
    a.retain(|path, _| is_shared(path));
    b.retain(|path, _| is_shared(path));
    differ(all, prefix, [a, b], weight);
}

/// The time that measuring CPUs lost to other work, where one run had far more of that.
fn noise(all: &mut Vec<Condition>, prefix: &str, both: [&[Noise]; 2]) {
    let share = |noise: &[Noise]| {
        let sum = |of: fn(&Noise) -> f64| noise.iter().map(of).sum::<f64>();
        sum(|one| one.lost_ns) / sum(|one| one.observed_ns)
    };
    let [a, b] = both.map(share);
    // Of nothing that was observed the share is no number, and neither comparison holds.
    if a.max(b) >= MUCH_LOST && a.max(b) >= TIMES_LOST * a.min(b) {
        let texts = [a, b].map(|share| format!("{} %", percent(share)));
        push(all, Severity::Warning, &format!("{prefix}CPU time lost to other work"), texts);
    }
}

/// Shares of a run's messages whose packets were lost or sent again, by the place.
fn shares_lost(run: &Run, record: &Record) -> BTreeMap<String, f64> {
    let sent = run.counts.sent.max(1) as f64;
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for place in losses::places(run, record.hosts.is_empty()) {
        let name = format!("packets lost at {} ({})", place.place, place.end);
        shares.insert(name, place.packets as f64 / sent);
    }
    for usage in run.rounds.iter().flat_map(|round| [&round.client, &round.server]) {
        let segments = usage.final_counters.get("tcp.retransmitted");
        let segments: f64 = segments.and_then(|count| count.parse().ok()).unwrap_or(0.0);
        *shares.entry("segments sent again".to_owned()).or_default() += segments / sent;
    }
    shares
}

/// Adds the places at which one run lost far more packets than the other.
fn packets_lost(all: &mut Vec<Condition>, severity: Severity, both: [&BTreeMap<String, f64>; 2]) {
    for place in each_once(both.iter().flat_map(|shares| shares.keys())) {
        let shares = both.map(|shares| shares.get(place).copied().unwrap_or(0.0));
        let [least, most] = [shares[0].min(shares[1]), shares[0].max(shares[1])];
        if most >= MUCH_LOST && most >= TIMES_LOST * least {
            push(all, severity, place, shares.map(|share| format!("{} %", percent(share))));
        }
    }
}

/// The options of a case.
fn of_case(case: &CaseRecord) -> Fields {
    let mut fields = flat("", case);
    fields.retain(|path, _| {
        !NOT_OF_A_CASE.contains(&path.split('.').next().unwrap_or_default())
            && path != "trace.times_ns"
            && path != "trace.sizes"
    });
    fields
}

/// On which CPUs the rounds of a run measured, and the settings that they got.
fn of_rounds(run: &Run) -> Fields {
    let mut fields = Fields::new();
    let mut add = |path: String, value: String| {
        let values = fields.entry(path).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    };
    for round in &run.rounds {
        if let Some(cpus) = round.cpus {
            add("CPUs".into(), format!("{}-{}", cpus.client, cpus.server));
        }
        for (role, usage) in [("client", &round.client), ("server", &round.server)] {
            for (name, value) in &usage.effective_settings {
                add(format!("{role}.{name}"), value.clone());
            }
        }
    }
    fields
}

/// Values by their paths; where several things are alike, such as CPUs, each value once.
type Fields = BTreeMap<String, Vec<String>>;

fn flat<T: Serialize>(path: &str, value: &T) -> Fields {
    let mut fields = Fields::new();
    // What a record was read from can be written again; else there is nothing to compare.
    flatten(&serde_json::to_value(value).unwrap_or_default(), path, &mut fields);
    fields
}

fn flatten(value: &Value, path: &str, fields: &mut Fields) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let mut put = |text: String| {
        let values = fields.entry(path.to_owned()).or_default();
        if !values.contains(&text) {
            values.push(text);
        }
    };
    match value {
        Value::Null => put(String::new()),
        Value::String(text) => put(text.clone()),
        Value::Bool(_) | Value::Number(_) => put(value.to_string()),
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| flatten(value, &below(name), fields));
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
            let text = |item: &Value| item.as_str().map_or(item.to_string(), str::to_owned);
            put(items.iter().map(text).collect::<Vec<_>>().join(" "));
        }
        // What has a name is compared with what has the same; of the others each value once.
        Value::Array(items) => items.iter().for_each(|item| match item.get("name") {
            Some(Value::String(name)) => flatten(item, &below(name), fields),
            _ => flatten(item, path, fields),
        }),
    }
}

fn differ(
    all: &mut Vec<Condition>,
    prefix: &str,
    [a, b]: [Fields; 2],
    weight: impl Fn(&str) -> Severity,
) {
    let paths = each_once(a.keys().chain(b.keys()));
    for path in paths {
        let text = |fields: &Fields| fields.get(path).map_or_else(String::new, |v| v.join(", "));
        push(all, weight(path), &format!("{prefix}{path}"), [text(&a), text(&b)]);
    }
}

/// Adds what differs.
fn push(all: &mut Vec<Condition>, severity: Severity, what: &str, [a, b]: [String; 2]) {
    if a != b {
        let shown = |text: String| if text.is_empty() { "-".into() } else { text };
        all.push(Condition { severity, what: what.into(), a: shown(a), b: shown(b) });
    }
}
