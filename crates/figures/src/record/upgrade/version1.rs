//! From version 1: `doubts` of a kind and a text become `warnings`, what ended a round is no longer
//! a word or a sentence, and cases have the specification of their pattern.

use super::case1::list;
use serde_json::{Value, json};
use wiregauge_base::warning::{KINDS, Severity};

/// Kinds that have another name now.
const RENAMED: [(&str, &str); 12] = [
    ("began_late", "late_start"),
    ("clock_set", "clock_stepped"),
    ("clocks_unknown", "below_clock_bound"),
    ("correlated", "autocorrelated"),
    ("drifts", "not_stationary"),
    ("file_beside", "file_on_receiver_cpu"),
    ("file_short", "file_incomplete"),
    ("foreign", "unknown_sequence"),
    ("held_up", "generator_blocked"),
    ("load", "other_load"),
    ("threads_apart", "threads_not_concurrent"),
    ("untrue_clock", "injected_clock_error"),
];

pub fn upgrade(record: &mut Value) {
    super::case1::upgrade(record);
    let hosts = record["hosts"].as_array().into_iter().flatten();
    let hosts: Vec<String> =
        hosts.filter_map(|host| host["name"].as_str()).map(str::to_string).collect();
    warnings(record, &hosts);
    for run in list(record, "runs") {
        warnings(run, &[]);
        for round in list(run, "rounds") {
            ended(round);
            list(round, "threads").for_each(ended);
        }
    }
}

fn ended(round: &mut Value) {
    let Some(ended) = round.get_mut("ended") else { return };
    let Some(text) = ended.as_str() else { return };
    let errno = text.strip_prefix("failed(").and_then(|rest| rest.strip_suffix(')'));
    let errno = errno.and_then(|errno| errno.parse::<i32>().ok());
    *ended = match (text, errno) {
        ("count" | "time" | "stopped" | "closed" | "unknown", _) => return,
        ("warmingup", _) => "warming_up".into(),
        (_, Some(errno)) => json!({ "failed": errno }),
        (sentence, None) => json!({ "fault": sentence }),
    };
}

fn warnings(of: &mut Value, hosts: &[String]) {
    let Some(object) = of.as_object_mut() else { return };
    let Some(doubts) = object.remove("doubts") else { return };
    let Value::Array(doubts) = doubts else { return };
    let warnings: Vec<Value> = doubts.iter().map(|doubt| warning(doubt, hosts)).collect();
    object.insert("warnings".into(), warnings.into());
}

/// The text of one about another host began with its name.
fn warning(doubt: &Value, hosts: &[String]) -> Value {
    let kind = doubt["kind"].as_str().unwrap_or_default();
    let kind = RENAMED.iter().find(|(old, _)| *old == kind).map_or(kind, |(_, new)| new);
    let known = KINDS.iter().find(|(known, _)| *known == kind);
    let text = doubt["text"].as_str().unwrap_or_default();
    let on_host =
        |host: &'_ String| Some((host.clone(), text.strip_prefix(&format!("on {host}: "))?));
    let (subject, sentence) = match hosts.iter().find_map(on_host) {
        Some((host, sentence)) => (json!({ "host": host }), sentence),
        None => (Value::Null, text),
    };
    json!({
        "kind": kind,
        "severity": known.map_or(Severity::Warning, |(_, severity)| *severity),
        "subject": subject,
        "sentence": sentence,
        "advice": "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::schema::RoundEnd;
    use wiregauge_plan::Ended;

    #[test]
    fn doubts_become_warnings_of_the_record_of_runs_and_of_hosts() {
        let mut record = json!({
            "hosts": [{ "name": "node07" }],
            "doubts": [
                { "kind": "load", "text": "on node07: the load average is 2" },
                { "kind": "never_heard_of", "text": "on node08: strange" },
            ],
            "runs": [{ "doubts": [{ "kind": "correlated", "text": "in spells" }] }],
        });
        upgrade(&mut record);
        assert_eq!(
            record["warnings"][0],
            json!({
                "kind": "other_load",
                "severity": "warning",
                "subject": { "host": "node07" },
                "sentence": "the load average is 2",
                "advice": "",
            })
        );
        assert_eq!(record["warnings"][1]["kind"], "never_heard_of");
        assert_eq!(record["warnings"][1]["sentence"], "on node08: strange");
        assert_eq!(record["runs"][0]["warnings"][0]["severity"], "note");
        assert!(record.get("doubts").is_none());
    }

    #[test]
    fn what_ended_a_round_is_a_word_an_errno_or_a_fault() {
        let mut words = ["count", "warmingup", "failed(104)", "stalled: for 1 s"]
            .map(|ended| json!({ "ended": ended }));
        words.iter_mut().for_each(ended);
        let read = words.map(|word| serde_json::from_value::<RoundEnd>(word["ended"].clone()).ok());
        let [count, warming, failed] =
            [Ended::Count, Ended::WarmingUp, Ended::Failed(104)].map(RoundEnd::Loop);
        let known = [count, warming, failed, RoundEnd::Fault("stalled: for 1 s".into())];
        assert_eq!(read, known.map(Some));
    }

    #[test]
    fn every_new_name_is_a_kind() {
        for (_, new) in RENAMED {
            assert!(KINDS.iter().any(|(kind, _)| *kind == new), "{new}");
        }
    }

    #[test]
    fn what_is_no_record_breaks_nothing() {
        for strange in
            [json!(null), json!([1, 2]), json!({ "runs": [3], "doubts": "x", "hosts": {} })]
        {
            upgrade(&mut strange.clone());
        }
    }
}
