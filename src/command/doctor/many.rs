//! Several hosts: a table of all, the worst first, and what differs between them.

use super::examine::{OfHost, Row, Wanted, examine, findings, host_name, only};
use crate::cli::Display;
use crate::command::console::{layout, print_json, print_report};
use crate::command::hosts::{ProbeRequest, probe_each};
use crate::command::{CommandError, Exit};
use crate::host::doctor::{Checkup, Difference, Finding, differences};
use crate::options::Given;
use crate::plan::HostSpec;
use crate::plan::pairs::HERE;
use crate::report::table::{Cell, Grid, Layout, Text, Tone};
use crate::transport::Role;
use crate::warning::Severity;
use serde::Serialize;
use std::cmp::Reverse;

/// A host that was asked, with what was found or why it was not reached.
struct Asked {
    host: String,
    found: Result<Checkup, String>,
}

/// All that is printed as JSON.
#[derive(Serialize)]
struct All<'a> {
    hosts: Vec<OfHost<'a>>,
    not_reached: Vec<(&'a str, &'a str)>,
    differences: &'a [Difference],
}

/// Examines hosts, `None` being this one, all at the same time.
pub fn doctor(
    hosts: &[Option<HostSpec>],
    wanted: &Wanted,
    given: &Given,
) -> Result<Exit, CommandError> {
    let mut all = examined(hosts, wanted, given)?;
    all.sort_by_key(|asked| Reverse(badness(asked)));
    let reached =
        || all.iter().filter_map(|one| Some((one.host.as_str(), one.found.as_ref().ok()?)));
    let facts: Vec<_> = reached().map(|(host, checkup)| (host, &checkup.facts)).collect();
    let differ = differences(&facts);
    if given.flag("json") {
        let hosts = reached().map(|(host, checkup)| OfHost { host: host.to_owned(), checkup });
        let not_reached =
            all.iter().filter_map(|one| Some((&*one.host, &**one.found.as_ref().err()?)));
        let not_reached = not_reached.collect();
        print_json(&All { hosts: hosts.collect(), not_reached, differences: &differ })?;
    } else {
        let display = Display::of(given);
        let text = text(&all, &differ, &layout(&display));
        print_report(&text, display.color)?;
    }
    let wrong = reached().any(|(_, checkup)| checkup.wrong() > 0);
    Ok(match (reached().count(), wrong) {
        (0, _) => Exit::NOTHING,
        (some, _) if some < all.len() => Exit::INCOMPLETE,
        (_, true) => Exit::EXCEEDED,
        (_, false) => Exit::RIGHT,
    })
}

fn examined(
    hosts: &[Option<HostSpec>],
    wanted: &Wanted,
    given: &Given,
) -> Result<Vec<Asked>, CommandError> {
    let own = wanted.request.as_ref().map_or(&[][..], |request| &request.cpus);
    let probe = ProbeRequest {
        cpus: own.to_vec(),
        threads: 1,
        checkup: Some(wanted.uses.clone()),
        ..ProbeRequest::default()
    };
    let others: Vec<(HostSpec, Role)> =
        hosts.iter().flatten().map(|spec| (spec.clone(), Role::Server)).collect();
    let found = probe_each(&others, &probe)?;
    let mut all: Vec<Asked> = others
        .iter()
        .zip(found)
        .map(|((spec, _), found)| Asked {
            host: spec.host.clone(),
            found: found.map(|probe| only(probe.checkup.unwrap_or_default(), given)),
        })
        .collect();
    if hosts.contains(&None) {
        let name = format!("{HERE} ({})", host_name());
        all.push(Asked { host: name, found: Ok(examine(wanted, given)) });
    }
    Ok(all)
}

fn number(checkup: &Checkup, severity: Severity) -> usize {
    checkup.findings.iter().filter(|finding| finding.severity == severity).count()
}

/// The larger, the worse: a host that was not reached is the worst.
fn badness(asked: &Asked) -> (bool, usize, usize, usize) {
    match &asked.found {
        Err(_) => (true, 0, 0, 0),
        Ok(checkup) => {
            let of = |severity| number(checkup, severity);
            (false, of(Severity::Severe), of(Severity::Warning), of(Severity::Note))
        }
    }
}

/// Returns each finding once, with the hosts on which it is, the worst first; without `with_notes`
/// those that are wrong alone.
fn of_all_hosts(all: &[Asked], with_notes: bool) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for one in all {
        let found = one.found.iter().flat_map(|checkup| &checkup.findings);
        for finding in found.filter(|finding| with_notes || finding.is_wrong()) {
            match rows.iter_mut().find(|row| row.finding == finding) {
                Some(row) => row.hosts += &format!(", {}", one.host),
                None => rows.push(Row { hosts: one.host.clone(), finding }),
            }
        }
    }
    rows.sort_by_key(|row| Reverse(row.finding.severity));
    rows
}

fn text(all: &[Asked], differ: &[Difference], layout: &Layout) -> Text {
    let mut grid = Grid::new(["host", "reached", "severe", "warnings", "notes", "worst"]);
    for one in all {
        let count = |severity| match &one.found {
            Ok(checkup) => Cell::Count(number(checkup, severity) as u64),
            Err(_) => Cell::None,
        };
        let worst = one.found.as_ref().ok().and_then(|checkup| checkup.findings.first());
        grid.row([
            one.host.as_str().into(),
            if one.found.is_ok() { "yes" } else { "no" }.into(),
            count(Severity::Severe),
            count(Severity::Warning),
            count(Severity::Note),
            Cell::from(worst.map(|finding: &Finding| finding.check.as_str())),
        ]);
    }
    let (mut text, _) = grid.text(layout);
    for one in all {
        if let Err(fault) = &one.found {
            let line = format!("fault: {}: {fault}", one.host);
            text.append(layout.sentence(&line, Tone::Bad));
        }
    }
    text.append(findings(of_all_hosts(all, layout.verbose), layout));
    if !differ.is_empty() {
        text.end_line();
    }
    for one in differ {
        let value = |(value, hosts): &(String, Vec<String>)| {
            let value = if value.is_empty() { "none" } else { value };
            format!("'{value}' on {}", hosts.join(", "))
        };
        let values: Vec<String> = one.values.iter().map(value).collect();
        let sentence = format!("differs: {}: {}", one.name, values.join("; "));
        text.append(layout.sentence(&sentence, Tone::Head));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_host_comes_first_and_each_difference_has_a_line() {
        let finding = |severity| Finding {
            check: "governor".into(),
            severity,
            subject: String::new(),
            sentence: "the governor is powersave".into(),
            cost: "c".into(),
            source: String::new(),
            command: None,
            undo: None,
            advice: String::new(),
        };
        let host = |name: &str, found: Vec<Severity>| Asked {
            host: name.into(),
            found: Ok(Checkup {
                findings: found.into_iter().map(finding).collect(),
                facts: [("kernel".to_owned(), name.to_owned())].into(),
            }),
        };
        let mut all = vec![
            host("good", vec![Severity::Note, Severity::Note]),
            host("bad", vec![Severity::Warning]),
            Asked { host: "gone".into(), found: Err("no route".into()) },
        ];
        all.sort_by_key(|asked| Reverse(badness(asked)));
        let names: Vec<&str> = all.iter().map(|asked| asked.host.as_str()).collect();
        assert_eq!(names, ["gone", "bad", "good"]);
        let facts: Vec<_> = all
            .iter()
            .filter_map(|one| Some((one.host.as_str(), &one.found.as_ref().ok()?.facts)))
            .collect();
        let text = text(&all, &differences(&facts), &Layout::default()).to_string();
        assert!(text.contains("fault: gone: no route"), "{text}");
        let row = text.lines().find(|line| line.contains("the governor is powersave"));
        assert!(
            row.is_some_and(|row| row.starts_with("bad ") && row.contains("warning")),
            "{text}"
        );
        assert!(text.contains("differs: kernel: 'bad' on bad; 'good' on good"), "{text}");
    }
}
