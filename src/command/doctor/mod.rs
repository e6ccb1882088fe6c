//! `doctor`: what is wrong with this host or others, what it costs, and what changes it.

mod examine;
mod fix;
mod gain;
mod many;

use super::console::{layout, print_json, print_report};
use super::{CommandError, Exit};
use crate::cli::Display;
use crate::host::doctor::Checkup;
use crate::options::{Given, UsageError};
use crate::plan::HostSpec;
use examine::{OfHost, examine, host_name, shown, wanted};

/// Examines this host, or several.
pub fn doctor(hosts: Vec<Option<HostSpec>>, given: &Given) -> Result<Exit, CommandError> {
    let wanted = wanted(given)?;
    let named = match (&hosts[..], &wanted.request) {
        ([], Some(request)) if request.place.is_remote() => {
            refuse_changes(given)?;
            request.place.all_nodes().cloned().collect()
        }
        _ => hosts,
    };
    if named.iter().any(Option::is_some) {
        return many::doctor(&named, &wanted, given);
    }
    let checkup = examine(&wanted, given);
    let display = Display::of(given);
    if given.flag("json") {
        print_json(&OfHost { host: host_name(), checkup: &checkup })?;
        return Ok(exit(&checkup));
    }
    print_report(&shown(&checkup, &layout(&display)), display.color)?;
    if given.flag("measure") {
        gain::measure(&checkup, &wanted)?;
    }
    if given.flag("fix") {
        fix::fix(&checkup.findings, given)?;
        return Ok(exit(&examine(&wanted, given)));
    }
    Ok(exit(&checkup))
}

fn refuse_changes(given: &Given) -> Result<(), UsageError> {
    let changes = ["fix", "measure"].into_iter().find(|name| given.flag(name));
    crate::options::refuse_found(changes, |name| {
        format!("--{name} changes this host alone, and --for names another: run it there")
    })
}

fn exit(checkup: &Checkup) -> Exit {
    if checkup.wrong() > 0 { Exit::EXCEEDED } else { Exit::RIGHT }
}
