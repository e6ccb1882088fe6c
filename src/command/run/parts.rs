//! Entries of a study that run at the same time: their hosts, and their requests.

use crate::cli::values;
use crate::command::{CommandError, hosts};
use crate::options::UsageError;
use crate::plan::pairs::HERE;
use crate::plan::study::file::StudyFile;
use crate::plan::study::parts;
use crate::plan::{HostSpec, Place, Plan, Request};
use crate::transport::Role;

/// The hosts of a run: those that were typed, else those of the study.
pub(super) fn place(parsed: &StudyFile, typed: &Place) -> Result<Place, CommandError> {
    if typed.all_nodes().next().is_some() || parsed.hosts.is_empty() {
        return Ok(typed.clone());
    }
    let mut nodes = Vec::new();
    for (name, place) in &parsed.hosts {
        let wrong = |why: String| Box::new(parsed.written.wrong(place, why));
        let host = values::one_host(name).map_err(wrong)?;
        let is_here = host.host == HERE && host.agent.is_none();
        let ssh = vec!["ssh".to_owned()];
        nodes.push((!is_here).then_some(HostSpec { ssh, ..host }));
    }
    Ok(Place { nodes, ..typed.clone() })
}

/// The requests of entries, those of a topology one for each of its pairs.
pub(super) fn requests(
    parsed: &StudyFile,
    requests: Vec<(String, Request)>,
    place: &Place,
) -> Result<Vec<(String, Request)>, CommandError> {
    let mut all = Vec::new();
    for (entry, (series, request)) in parsed.entries.iter().zip(requests) {
        let wrong =
            |UsageError(sentence)| Box::new(parsed.written.wrong(&entry.part.position, sentence));
        let own = parts::requests(&entry.part, request, place).map_err(wrong)?;
        all.extend(own.into_iter().map(|request| (series.clone(), request)));
    }
    Ok(all)
}

/// The hosts that are reached: those of the place, or of the parts of a plan.
pub(super) fn reached(place: &Place, plan: &Plan, has_parts: bool) -> Vec<(HostSpec, Role)> {
    match has_parts {
        false => hosts::others(place),
        true => plan.hosts.iter().map(|spec| (spec.clone(), Role::Client)).collect(),
    }
}
