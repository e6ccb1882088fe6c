//! `run`: a study, run and interleaved like the cases of every other command.

mod fitting;
mod machine;
mod parts;
mod prepared;
mod replaced;

use super::console::{complain, print_report, whole_layout};
use super::hosts::{self, ProbeRequest, with_hosts};
use super::measure::{execute_prepared, nothing_works};
use super::{CommandError, Exit};
use crate::cli::{Color, StudyOptions, entry, near};
use crate::host::{self, Family};
use crate::options::{UsageError, each_once, refuse};
use crate::pattern::registry;
use crate::plan::reference::{self, Lack, Machine};
use crate::plan::request::{MOST_THREADS, check_cpus};
use crate::plan::study::file::{self, GraphAsked, ReferenceAsked, StudyFile};
use crate::plan::study::{self, Graph, Study};
use crate::plan::written::{LONGEST, Misplaced};
use crate::plan::{Case, Place, Plan, Request};
use crate::record::schema::Unavailable;
use crate::remote::host::RemoteHost;
use crate::report::model::{OfRun, Rank, Table, prose, text};
use crate::report::table;
use crate::shipped::STUDIES;
use crate::transport::{Interfaces, TransportKind, congestion_available};
use crate::units::Span;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs a study, or lists those that are shipped.
pub fn run(asked: &StudyOptions) -> Result<Exit, CommandError> {
    let Some(name) = &asked.study else { return list() };
    let (file, text) = find(name)?;
    let mut parsed = file::parse(&registry::names(), &file, &text).map_err(Box::new)?;
    let replaced = replaced::replace(&mut parsed, asked)?;
    let place = &parts::place(&parsed, &asked.place)?;
    let nodes = replaced::other_nodes(&parsed, &asked.only, place);
    let nodes = nodes.map(|nodes| format!("not as the study is written: {nodes}"));
    let replaced: Vec<String> = replaced.into_iter().chain(nodes).collect();
    let requests = parts::requests(&parsed, requests(&parsed, asked.timeout)?, place)?;
    let requests = only(requests, &asked.only)?;
    let (requests, elsewhere) = reaching(requests);
    if requests.is_empty() {
        return Ok(nothing_works(&elsewhere));
    }
    fitting::check(&parsed, &requests)?;
    let commands = prepared::commands(&parsed, &requests, asked)?;
    let over_loopback = asked.interface.is_none() && !place.is_remote();
    let graphs_with = |hosts: &[RemoteHost]| {
        let machine = machine::of(asked.interface.as_ref(), hosts);
        let mut graphs = graphs(&parsed, &requests, place, &machine, over_loopback)?;
        let said = parsed.without_interface.as_ref().filter(|_| over_loopback);
        let said: Vec<&String> = said.into_iter().chain(&replaced).collect();
        graphs
            .iter_mut()
            .for_each(|graph| graph.notes.extend(said.iter().map(|one| (*one).clone())));
        Ok::<_, CommandError>(graphs)
    };
    if let Some(said) = parsed.without_interface.as_ref().filter(|_| over_loopback) {
        complain(said);
    }
    replaced.iter().for_each(|said| complain(said));
    let mut study = Study {
        name: Path::new(name).with_extension("").to_string_lossy().into_owned(),
        title: parsed.title.clone(),
        source: parsed.source.clone(),
        quick: asked.quick,
        series: Vec::new(),
        graphs: graphs_with(&[])?,
    };
    // All of it must make sense, also what does not work here.
    let mut whole = study::plan(study.clone(), &requests)?;
    study::impacts(&parsed.impacts, &whole)?;
    let has_parts = requests.iter().any(|(_, request)| request.group.is_some());
    check_cpus(&asked.cpus, &whole.cases)?;
    address_ends(&mut whole, asked)?;
    let reached = parts::reached(place, &whole, has_parts);
    with_hosts(&reached, &probe(asked, &requests, &whole), |hosts| {
        study.graphs = graphs_with(hosts)?;
        let (works, missing) = available(requests.clone(), hosts);
        let unavailable = each_once(elsewhere.into_iter().chain(missing));
        // Without one of its parts a group is not what was asked for.
        if works.is_empty() || (has_parts && works.len() < requests.len()) {
            return Ok(nothing_works(&unavailable));
        }
        // A graph of nothing but what does not work here would be empty.
        let shown = |name: &String| works.iter().any(|(series, _)| series == name);
        study.graphs.retain(|graph| graph.series.iter().any(shown));
        let mut plan = study::plan(study, &works)?;
        plan.impacts = study::impacts(&parsed.impacts, &plan)?;
        (plan.cpus, plan.seed) = (asked.cpus.clone(), asked.seed);
        plan.cases.iter_mut().for_each(|case| case.seed = asked.seed);
        address_ends(&mut plan, asked)?;
        let sides = commands.sides(&plan);
        let restore = commands.restore();
        execute_prepared(&plan, unavailable, hosts, &asked.options, sides, restore)
    })
}

/// What is to be known of other hosts.
fn probe(asked: &StudyOptions, requests: &[(String, Request)], whole: &Plan) -> ProbeRequest {
    let all = requests.iter().flat_map(|(_, request)| request.transports.iter().copied());
    let all: BTreeSet<TransportKind> = all.collect();
    ProbeRequest {
        transports: all.into_iter().collect(),
        interfaces: asked.interface.clone(),
        cpus: asked.cpus.clone(),
        threads: whole.cpus_at_once().min(MOST_THREADS),
        clock: asked.options.clock,
        checkup: None,
    }
}

/// Has all cases whose transports know what that is use an interface and a version of IP.
fn address_ends(plan: &mut Plan, asked: &StudyOptions) -> Result<(), CommandError> {
    let interface = asked.interface.as_ref().map(Interfaces::to_string);
    let family = asked.family.map(|family: Family| family.name().to_owned());
    for (name, value) in [("interface", interface), ("family", family)] {
        let Some(value) = value else { continue };
        let knows = |case: &&mut Case| case.transport.has_setting(name);
        let mut own = plan.cases.iter_mut().filter(knows).peekable();
        let no_effect = format!("--{name} has no effect: this study does not use tcp, udp or homa");
        ensure!(own.peek().is_some(), UsageError(no_effect));
        own.try_for_each(|case| case.settings.set(name, value.clone()))?;
    }
    Ok(())
}

/// A study that is shipped, and its question.
struct Shipped(&'static str, String);

impl OfRun for Shipped {}

fn list() -> Result<Exit, CommandError> {
    let mut all = Vec::new();
    for &(name, text) in STUDIES.iter() {
        let parsed = file::parse(&registry::names(), name, text).map_err(Box::new)?;
        all.push(Shipped(name, parsed.title));
    }
    let fields = [
        text("study", |one: &Shipped| one.0),
        prose("what it asks", |one: &Shipped| one.1.clone()).rank(Rank::Main),
    ];
    let table = Table::of(all, fields).unwrap_or_default();
    print_report(&table::table(&table, &whole_layout()), Color::Auto)
}

/// The file and the text of a study: a shipped one, or a file.
fn find(name: &str) -> Result<(String, String), CommandError> {
    if let Some((name, text)) = STUDIES.iter().find(|(shipped, _)| *shipped == name) {
        return Ok((format!("studies/{name}.toml"), (*text).to_owned()));
    }
    let names: Vec<&str> = STUDIES.iter().map(|(name, _)| *name).collect();
    let others = match near(name, &names) {
        Some(near) => {
            format!("did you mean '{near}'? (`wiregauge run` lists those that are shipped)")
        }
        None => "use a file, or one of those that `wiregauge run` lists".to_owned(),
    };
    let text = read("study", Path::new(name), &others).map_err(UsageError)?;
    Ok((name.to_owned(), text))
}

/// A file's text, or a sentence.
fn read(what: &str, path: &Path, advice: &str) -> Result<String, String> {
    let shown = path.display();
    host::read_text(path, LONGEST as u64)
        .map_err(|error| format!("cannot read the {what} '{shown}' ({error}): {advice}"))
}

/// Returns what each entry asks for, with its series; a `timeout` that was typed holds for all.
fn requests(
    parsed: &StudyFile,
    timeout: Option<Span>,
) -> Result<Vec<(String, Request)>, CommandError> {
    let request = |entry: &file::Entry| {
        let request = entry::request(&parsed.written, entry).map_err(Box::new)?;
        let timeout = timeout.unwrap_or(request.timeout);
        Ok((entry.series.clone(), Request { timeout, ..request }))
    };
    parsed.entries.iter().map(request).collect()
}

/// Only those of the series that were asked for.
fn only(
    requests: Vec<(String, Request)>,
    asked: &[String],
) -> Result<Vec<(String, Request)>, CommandError> {
    let known = |name: &String| requests.iter().any(|(series, _)| series == name);
    if let Some(name) = asked.iter().find(|name| !known(name)) {
        let names = each_once(requests.iter().map(|(series, _)| series.as_str())).join(", ");
        return refuse(format!("--only: unknown series '{name}': use {names}"));
    }
    let wanted = |series: &String| asked.is_empty() || asked.contains(series);
    Ok(requests.into_iter().filter(|(series, _)| wanted(series)).collect())
}

/// The requests without the transports that do not reach another host where one is asked for.
fn reaching(requests: Vec<(String, Request)>) -> (Vec<(String, Request)>, Vec<Unavailable>) {
    let mut missing = Vec::new();
    let mut kept = Vec::new();
    for (series, request) in requests {
        let is_remote = request.place.is_remote();
        let reaches = |one: &TransportKind| !is_remote || one.descriptor().between_hosts;
        let (here, gone): (Vec<_>, Vec<_>) = request.transports.iter().copied().partition(reaches);
        missing.extend(gone.into_iter().map(|transport: TransportKind| Unavailable {
            transport: transport.name().into(),
            reason: "it connects processes of one host only".into(),
        }));
        if !here.is_empty() {
            kept.push((series, Request { transports: here, ..request }));
        }
    }
    (kept, each_once(missing))
}

/// Leaves out the transports that do not work here, or there.
fn available(
    requests: Vec<(String, Request)>,
    hosts: &[RemoteHost],
) -> (Vec<(String, Request)>, Vec<Unavailable>) {
    let mut missing: Vec<Unavailable> = Vec::new();
    let mut works = Vec::new();
    for (series, mut request) in requests {
        let (here, gone) =
            hosts::sort_out(&request.transports, &request.settings, &request.place, hosts);
        missing.extend(gone);
        request.transports = here;
        let lacking = lacking_congestion(&request);
        if let Some((transport, reason)) = lacking {
            missing.push(Unavailable { transport: transport.name().into(), reason });
        } else if !request.transports.is_empty() {
            works.push((series, request));
        }
    }
    (works, each_once(missing))
}

/// A congestion control that this kernel does not have, and whose cases then cannot run.
fn lacking_congestion(request: &Request) -> Option<(TransportKind, String)> {
    let plan = request.clone().plan().ok()?;
    plan.cases.iter().find_map(|case| {
        let name = case.settings.text("congestion")?;
        Some((case.transport, congestion_available(name).err()?))
    })
}

/// The graphs with what is drawn beside them.
fn graphs(
    parsed: &StudyFile,
    requests: &[(String, Request)],
    place: &Place,
    machine: &Machine,
    over_loopback: bool,
) -> Result<Vec<Graph>, CommandError> {
    let runs = |name: &String| requests.iter().any(|(series, _)| series == name);
    let links = host::rdma_links(&host::Tree::default());
    let without = |series: &[String], needs_hardware: bool| {
        let hardware = || machine::no_hardware(series, requests, &links, over_loopback);
        let lacks_hardware = || needs_hardware.then(hardware).flatten();
        replaced::other_nodes(parsed, series, place).or_else(lacks_hardware)
    };
    let mut graphs = Vec::new();
    for asked in &parsed.graphs {
        let mut graph = asked.graph.clone();
        graph.over.retain(|pair| pair.iter().all(runs));
        let is_ratio = !asked.graph.over.is_empty();
        let is_over = |name: &String| graph.over.iter().any(|[own, _]| own == name);
        graph.series.retain(|name| runs(name) && (!is_ratio || is_over(name)));
        if graph.series.is_empty() {
            continue;
        }
        beside(parsed, asked, &mut graph, machine, without)?;
        graphs.push(graph);
    }
    Ok(graphs)
}

fn beside(
    parsed: &StudyFile,
    asked: &GraphAsked,
    graph: &mut Graph,
    machine: &Machine,
    without: impl Fn(&[String], bool) -> Option<String>,
) -> Result<(), CommandError> {
    for reference in &asked.references {
        let misplaced = |(sentence, place): Lack| Box::new(parsed.written.wrong(&place, sentence));
        let publication = publication(parsed, reference)?;
        let figures = publication.figures(reference, &graph.what(), machine).map_err(misplaced)?;
        // Beside a series that is left out there is nothing to compare.
        if reference.beside.as_ref().is_some_and(|(name, _)| !graph.series.contains(name)) {
            continue;
        }
        let compared = match &reference.beside {
            Some((name, _)) => std::slice::from_ref(name),
            None => &graph.series,
        };
        let why = without(compared, publication.needs_hardware);
        let undrawn = |why| format!("figures of {} are not drawn: {why}", publication.name);
        match why.map_or(figures, |why| Err(undrawn(why))) {
            Ok(figures) => graph.references.push(figures),
            Err(why) if graph.notes.contains(&why) => {}
            Err(why) => graph.notes.push(why),
        }
    }
    Ok(())
}

/// A shipped publication, or one whose file is in the study's folder.
fn publication(
    parsed: &StudyFile,
    asked: &ReferenceAsked,
) -> Result<reference::Publication, Box<Misplaced>> {
    let (name, place) = (asked.file.0.as_str(), &asked.file.1);
    if let Some((name, text)) = reference::shipped().find(|(shipped, _)| *shipped == name) {
        return Ok(reference::parse(&format!("references/{name}.toml"), text)?);
    }
    let wrong = |sentence: String| Box::new(parsed.written.wrong(place, sentence));
    let shipped = Vec::from_iter(reference::shipped().map(|(name, _)| name)).join(", ");
    if !name.ends_with(".toml") {
        return Err(wrong(format!(
            "unknown reference '{name}': use {shipped}, or the path of a .toml file"
        )));
    }
    let folder = Path::new(&parsed.written.file).parent().unwrap_or(Path::new(""));
    let path = folder.join(name);
    let text =
        read("reference", &path, &format!("use a file, or one of {shipped}")).map_err(wrong)?;
    Ok(reference::parse(&path.display().to_string(), &text)?)
}

#[cfg(test)]
mod sources;
#[cfg(test)]
mod tests;
