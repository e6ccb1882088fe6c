//! How to cite a record.

use wiregauge_figures::record::schema::Record;

/// The tool, its version, the measurement, its date and machine, and what identifies the record.
pub fn citation(record: &Record) -> String {
    let environment = &record.environment;
    let model = environment.processor.model.as_deref().unwrap_or("unknown CPU");
    let study = record.plan.study.as_ref();
    let what = study.map_or(record.plan.name.clone(), |study| format!("study {}", study.name));
    let hosts: String = record.hosts.iter().map(|host| format!(", {}", host.name)).collect();
    let date = record.started.split('T').next().unwrap_or_default();
    let record_is = match record.sha256.is_empty() {
        true => String::new(),
        false => format!(", SHA-256 of record.json {}", record.sha256),
    };
    let (tool, host) = (&record.tool, &environment.host);
    format!("wiregauge {tool}, {what}, {date}, on {host} ({model}){hosts}{record_is}")
}
