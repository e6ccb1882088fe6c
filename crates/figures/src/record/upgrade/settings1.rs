//! Settings of version 1, a structure with a field each, become a map of options as they are typed.

use serde_json::{Map, Value};
use wiregauge_transport::Settings;

/// The map of options.
pub fn upgrade(old: Value) -> Value {
    let mut options = Map::new();
    if let Value::Object(fields) = old {
        fields.into_iter().for_each(|(name, value)| set(&mut options, &name, value));
    }
    options.into()
}

/// The option of a field.
fn option_of(field: &str) -> String {
    match field {
        "busy_poll_us" => "busy-poll".into(),
        "signal" => "signal-every".into(),
        "posting" => "post".into(),
        "polling" => "poll".into(),
        "shared_receives" => "shared-receive-queue".into(),
        _ => field.replace('_', "-"),
    }
}

/// Sets what a field says.
fn set(options: &mut Map<String, Value>, name: &str, value: Value) {
    let part = |key: &str| match &value[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let option = option_of(name);
    let text = match (&value, name) {
        (Value::Object(_), "interface") => format!("{},{}", part("client"), part("server")),
        (Value::Object(_), "inline") => part("up_to"),
        (Value::Object(_), "signal") => part("every"),
        (Value::Object(_), "synthetic") => behaviour(&value),
        (Value::Object(_), "node") => {
            options.insert("node-in".into(), part("input").into());
            options.insert("node-out".into(), part("output").into());
            return;
        }
        (Value::Object(fields), _) => {
            fields.iter().for_each(|(name, value)| set(options, name, value.clone()));
            return;
        }
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), "busy_poll_us") => format!("{number}us"),
        (Value::Number(number), _) => number.to_string(),
        (Value::Bool(true), _) => "on".into(),
        (Value::Bool(false), _) => {
            let definition = Settings::default().definition(&option);
            if !definition.is_some_and(|definition| definition.takes_value()) {
                return;
            }
            "off".into()
        }
        (Value::Null | Value::Array(_), _) => return,
    };
    // What no option can say is left out, and the rest of the record is read.
    if Settings::default().set(&option, text.as_str()).is_ok() {
        options.insert(option, text.into());
    }
}

/// How the synthetic transport behaved, in the words of its option.
fn behaviour(old: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    // As many digits as a person types.
    let percent = |value: &Value| format!("{}%", (number(value) * 1e11).round() / 1e9);
    let delays = old["delay"].as_object().into_iter().flatten();
    let mut words: Vec<String> = delays
        .map(|(name, delay)| {
            let fields: &[&str] = match name.as_str() {
                "constant" => &["ns"],
                "normal" => &["mean_ns", "sd_ns"],
                "exponential" => &["least_ns", "mean_ns"],
                _ => &["low_ns", "high_ns"],
            };
            let times = fields.iter().map(|field| format!("{}ns", number(&delay[field])));
            format!("{name}({})", times.collect::<Vec<_>>().join(","))
        })
        .collect();
    for stall in old["stalls"].as_array().into_iter().flatten() {
        words.push(format!("stall({}ns@{})", number(&stall[1]), stall[0]));
    }
    if let slow @ Value::Object(_) = &old["slow"] {
        let (share, delay_ns) = (percent(&slow["share"]), number(&slow["delay_ns"]));
        words.push(format!("slow({share},{delay_ns}ns,{})", slow["before"]));
    }
    let (reorder, late_ns) = (percent(&old["reorder"]), number(&old["reorder_ns"]));
    let share = old["forward_share"].as_f64().unwrap_or(0.5);
    let there = (share * 1e6).round();
    let is_set = |name: &str| number(&old[name]) != 0.0;
    let others = [
        (is_set("loss"), format!("loss({})", percent(&old["loss"]))),
        (is_set("duplicate"), format!("duplicate({})", percent(&old["duplicate"]))),
        (is_set("reorder"), format!("reorder({reorder},{late_ns}ns)")),
        (share != 0.5, format!("split({there}:{})", 1e6 - there)),
        (is_set("offset_ns"), format!("offset({}ns)", number(&old["offset_ns"]))),
        (is_set("drift_ppm"), format!("drift({}ppm)", number(&old["drift_ppm"]))),
    ];
    words.extend(others.into_iter().filter_map(|(is_set, word)| is_set.then_some(word)));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::Bytes;
    use wiregauge_transport::synthetic::Synthetic;

    #[test]
    fn settings_of_earlier_records_are_read() {
        let earlier = r#"{"nodelay": false, "busy_poll_us": 50, "send_buffer": 65536,
            "receive_buffer": null, "zerocopy": false, "congestion": "bbr", "mss": 1448,
            "dscp": 46, "interface": {"client": "ib0", "server": "ib1"}, "synthetic": null,
            "node": {"input": "127.0.0.1:12000", "output": "127.0.0.1:12001", "kind": "float"},
            "operation": "write_imm", "verbs": {"device": "mlx5_0", "service": "uc",
            "inline": {"up_to": 128}, "signal": "auto", "posting": "extended", "port": null,
            "shared_receives": true, "huge_pages": false, "send_wait": "block"}}"#;
        let settings = upgrade(serde_json::from_str(earlier).unwrap());
        let settings: Settings = serde_json::from_value(settings).unwrap();
        assert_eq!((settings.switch("nodelay"), settings.busy_poll_us()), (Some(false), Some(50)));
        assert_eq!((settings.size("mss"), settings.count("dscp")), (Some(Bytes(1448)), Some(46)));
        assert_eq!(settings.interfaces().unwrap().to_string(), "ib0,ib1");
        assert_eq!(settings.text("inline"), Some("128"));
        assert_eq!(settings.text("post"), Some("extended"));
        assert!(settings.flag("shared-receive-queue") && !settings.flag("zerocopy"));
        assert!(!settings.is_given("port") && !settings.is_given("receive-buffer"));
        assert_eq!(settings.iter().count(), 17);
    }

    #[test]
    fn the_behaviour_of_a_simulation_is_kept() {
        let none = serde_json::json!({
            "delay": { "normal": { "mean_ns": 1000.0, "sd_ns": 100.0 } }, "stalls": [],
            "slow": null, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_ns": 0.0,
            "forward_share": 0.5, "offset_ns": 0.0, "drift_ppm": 0.0,
        });
        let some = serde_json::json!({
            "delay": { "uniform": { "low_ns": 1000.0, "high_ns": 2000.0 } },
            "stalls": [[500, 5e6], [7, 1e6]],
            "slow": { "share": 0.001, "delay_ns": 1e6, "before": 1000 },
            "loss": 0.01, "duplicate": 0.07, "reorder": 0.02, "reorder_ns": 5000.0,
            "forward_share": 0.75, "offset_ns": 1e9, "drift_ppm": -20.0,
        });
        let typed = "uniform(1us,2us) stall(5ms@500) stall(1ms@7) slow(0.1%,1ms,1000) loss(1%) \
                     duplicate(7%) reorder(2%,5us) split(3:1) offset(1s) drift(-20ppm)";
        for (old, typed) in [(none, "normal(1us,100ns)"), (some, typed)] {
            let settings = upgrade(serde_json::json!({ "synthetic": old }));
            let settings: Settings = serde_json::from_value(settings).unwrap();
            let spec: Synthetic = typed.parse().unwrap();
            assert_eq!(settings.get::<Synthetic>("synthetic"), Some(spec), "{typed}");
        }
    }
}
