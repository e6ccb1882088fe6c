//! Cases of version 1: one flat structure for all patterns becomes what all cases have and the
//! specification of a pattern.

use serde_json::{Map, Value, json};

/// Turns the plan and the runs of a record.
pub fn upgrade(record: &mut Value) {
    let plan_is_study = record["plan"]["study"].is_object();
    let search = record["plan"]["search"].clone();
    if let Some(plan) = record.get_mut("plan").and_then(Value::as_object_mut) {
        plan.remove("search");
        rename(plan, "at_once", "concurrent");
        let cases = plan.get_mut("cases").and_then(Value::as_array_mut);
        cases.into_iter().flatten().for_each(|one| case(one, "", &search));
    }
    for run in list(record, "runs") {
        let label = run["label"].as_str().unwrap_or_default().to_string();
        // Of a study the series stood before the label.
        let own = label.split_once(": ").filter(|_| plan_is_study).map_or(&*label, |(_, own)| own);
        if let Some(measured) = run.get_mut("case") {
            case(measured, own, &search);
        }
        let headline = headline(run);
        let Some(run) = run.as_object_mut() else { continue };
        run.insert("headline".into(), headline);
        rename(run, "lengths", "details");
    }
}

/// The values of a list; none where there is no such list.
pub fn list<'a>(of: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    of.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.into(), value);
    }
}

/// The metric or rate that answered the question.
fn headline(run: &Value) -> Value {
    let first = |list: &str| run[list][0]["metric"].clone();
    if run["case"]["pattern"] == "bandwidth" { first("rates") } else { first("figures") }
}

fn case(case: &mut Value, label: &str, search: &Value) {
    let Some(old) = case.as_object_mut() else { return };
    let has = |field: &str| old.get(field).is_some_and(Value::is_object);
    let name = match old.get("pattern").and_then(Value::as_str) {
        Some("oneway") if has("stream") => "stream".to_string(),
        Some("load") if has("rpc") => "rpc".to_string(),
        Some(name) => name.to_string(),
        None => return,
    };
    let mut take = |field: &str| old.remove(field).unwrap_or(Value::Null);
    let [pause, burst, window] = ["pause", "burst", "window"].map(&mut take);
    let [direction, load, stream, rpc] = ["direction", "load", "stream", "rpc"].map(&mut take);
    let (threads, hosts) = (take("threads"), take("ends"));
    let threads = if threads.is_null() { json!(1) } else { threads };
    let spec = match name.as_str() {
        "bandwidth" => json!({ "burst": burst, "window": window, "direction": direction }),
        "load" => load_spec(&load, window, search),
        "rpc" => rpc_spec(&rpc, &load, window),
        "stream" => stream,
        _ => json!({ "pause": pause, "burst": burst }),
    };
    let (servers, wiring) = match rpc.is_object() {
        true => (rpc["server_ports"].clone(), json!({ "mesh": { "each": rpc["connections"] } })),
        false => (threads.clone(), json!("parallel")),
    };
    let rank = |role: &str, threads: Value| {
        let host = &hosts[role];
        json!({ "role": role, "host": host, "threads": threads })
    };
    let topology = json!({
        "ranks": [rank("client", threads), rank("server", servers)],
        "connections": { "pairs": [[0, 1]] },
        "wiring": wiring,
    });
    let mut axes = json!({ "size": old.get("size") });
    for (axis, value) in [("values", &spec["values"]), ("clients", &spec["clients"])] {
        if value.as_u64().is_some_and(|value| value > 0) {
            axes[axis] = value.clone();
        }
    }
    if let Some(rate) = old.get("schedule").and_then(rate) {
        axes["rate"] = rate.into();
    }
    let is_preparation =
        spec["unloaded"] == true || spec["loads"].as_array().is_some_and(|loads| !loads.is_empty());
    old.insert("pattern".into(), name.into());
    old.insert("spec".into(), spec);
    old.insert("topology".into(), topology);
    old.insert("axes".into(), axes);
    old.insert("label".into(), label.into());
    old.insert("is_preparation".into(), is_preparation.into());
    old.entry("timer").or_insert(json!("busy"));
    let settings = super::settings1::upgrade(old.remove("options").unwrap_or_default());
    old.insert("settings".into(), settings);
}

/// Messages per second of a schedule; `None`: it is a closed loop.
fn rate(schedule: &Value) -> Option<f64> {
    schedule.as_object()?.values().next()?["rate"].as_f64()
}

fn load_spec(load: &Value, window: Value, search: &Value) -> Value {
    let adds = search["adds"] == true;
    json!({
        "clients": load["clients"],
        "objects": load["objects"],
        "object_size": load["object_size"],
        "buffers": load["buffers"],
        "window": window,
        "probe": load["probe"] == true,
        "probe_rate": search["probe"],
        "slo": search["slo"],
        "search": adds.then(|| json!({ "arrivals": search["arrivals"] })),
    })
}

fn rpc_spec(rpc: &Value, load: &Value, window: Value) -> Value {
    let number = |name: &str| rpc[name].as_u64().unwrap_or(0);
    json!({
        "workload": rpc["workload"],
        "reply": rpc["reply"],
        "clients": load["clients"],
        "window": window,
        "receivers": number("receivers"),
        "beside": number("beside"),
        "unloaded": rpc["unloaded"],
        "slowdown": rpc["slowdown"],
        "link": rpc["link"],
        "loads": if rpc["loads"].is_null() { json!([]) } else { rpc["loads"].clone() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_pattern_of_its_own_and_a_mesh_is_a_topology() {
        let old = |more: Value| {
            let mut case =
                json!({ "pattern": "load", "size": 8, "threads": 2, "ends": { "server": 0 } });
            case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut record = json!({ "plan": { "cases": [case], "at_once": [[0]] }, "runs": [] });
            upgrade(&mut record);
            assert_eq!(record["plan"]["concurrent"], json!([[0]]));
            record["plan"]["cases"][0].clone()
        };
        let rpc = old(json!({ "rpc": { "server_ports": 3, "connections": 4 } }));
        assert_eq!((&rpc["pattern"], &rpc["spec"]["loads"]), (&json!("rpc"), &json!([])));
        assert_eq!(rpc["topology"]["wiring"]["mesh"]["each"], 4);
        let ranks = rpc["topology"]["ranks"].as_array().unwrap();
        assert_eq!((&ranks[0]["threads"], &ranks[1]["threads"]), (&json!(2), &json!(3)));
        assert_eq!((&ranks[0]["host"], &ranks[1]["host"]), (&Value::Null, &json!(0)));
        let stream = old(json!({ "pattern": "oneway", "stream": { "values": 8 } }));
        assert_eq!((&stream["pattern"], &stream["spec"]["values"]), (&json!("stream"), &json!(8)));
        assert_eq!(stream["axes"]["values"], 8);
    }

    #[test]
    fn what_is_no_case_breaks_nothing() {
        for strange in [json!(null), json!({ "pattern": 3 }), json!({ "pattern": "load" })] {
            let mut record =
                json!({ "plan": { "cases": [strange] }, "runs": [{ "case": strange }] });
            upgrade(&mut record);
        }
    }
}
