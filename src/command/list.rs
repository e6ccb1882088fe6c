//! `list`: what there is, and why what is missing is missing.

use super::console::show;
use super::{CommandError, Exit};
use crate::options::Given;
use crate::pattern::registry;
use crate::report::table::Grid;
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
    options: Vec<&'static str>,
    about: &'static str,
}

fn listed(kind: TransportKind) -> Listed {
    let descriptor = kind.descriptor();
    let available = kind.available();
    Listed {
        transport: kind.name(),
        available: available.is_ok(),
        reason: available.err(),
        patterns: registry::carried_by(descriptor),
        largest_bytes: descriptor.largest,
        loses: descriptor.loses,
        ordered: descriptor.ordered,
        options: descriptor.settings.iter().map(|option| option.name).collect(),
        about: descriptor.about,
    }
}

/// Lists.
pub fn list(given: &Given) -> Result<Exit, CommandError> {
    let all: Vec<Listed> = TransportKind::ALL.iter().map(|kind| listed(*kind)).collect();
    show(given.flag("json"), all.as_slice(), table)
}

fn table(all: &[Listed]) -> String {
    #[rustfmt::skip]
    let mut grid = Grid::new([
        "transport", "available", "patterns", "largest", "delivery", "order", "what it is",
        "options",
    ]);
    for one in all {
        let options: Vec<String> = one.options.iter().map(|name| format!("--{name}")).collect();
        grid.row([
            one.transport.into(),
            if one.available { "yes" } else { "no" }.into(),
            one.patterns.join(" ").into(),
            Bytes(one.largest_bytes).to_string().into(),
            if one.loses { "may lose" } else { "reliable" }.into(),
            if one.ordered { "in order" } else { "may reorder" }.into(),
            one.about.into(),
            options.join(" ").into(),
        ]);
    }
    let mut text = grid.to_string();
    for one in all {
        if let Some(reason) = &one.reason {
            text.push_str(&format!("not available: {}: {reason}\n", one.transport));
        }
    }
    text
}
