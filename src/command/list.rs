//! `list`: what there is, and why what is missing is missing.

use super::{CommandError, Exit, print, print_json};
use crate::plan::Pattern;
use crate::report::table;
use crate::transport::TransportKind;
use crate::units::Bytes;
use serde::Serialize;

/// One transport as it is listed.
#[derive(Serialize)]
struct Listed {
    transport: &'static str,
    available: bool,
    reason: Option<String>,
    patterns: Vec<&'static str>,
    largest_bytes: u64,
    loses: bool,
    ordered: bool,
    options: &'static [&'static str],
    about: &'static str,
}

fn listed(kind: TransportKind) -> Listed {
    let descriptor = kind.descriptor();
    let available = kind.available();
    let carried = Pattern::ALL.iter().filter(|pattern| pattern.is_carried_by(kind));
    Listed {
        transport: kind.name(),
        available: available.is_ok(),
        reason: available.err(),
        patterns: carried.map(|pattern| pattern.name()).collect(),
        largest_bytes: descriptor.largest,
        loses: descriptor.loses,
        ordered: descriptor.ordered,
        options: descriptor.options,
        about: descriptor.about,
    }
}

/// Lists.
pub fn list(json: bool) -> Result<Exit, CommandError> {
    let all: Vec<Listed> = TransportKind::ALL.iter().map(|kind| listed(*kind)).collect();
    if json {
        return print_json(&all);
    }
    let rows = all.iter().map(|one| {
        let options: Vec<String> = one.options.iter().map(|name| format!("--{name}")).collect();
        vec![
            one.transport.to_string(),
            one.reason.clone().unwrap_or_else(|| "yes".into()),
            one.patterns.join(" "),
            Bytes(one.largest_bytes).to_string(),
            if one.loses { "may lose" } else { "reliable" }.to_string(),
            if one.ordered { "in order" } else { "may reorder" }.to_string(),
            one.about.to_string(),
            options.join(" "),
        ]
    });
    let head = [
        "transport",
        "available",
        "patterns",
        "largest",
        "delivery",
        "order",
        "what it is",
        "options",
    ];
    print(table::table(&head, rows.collect(), 8).as_bytes())
}
