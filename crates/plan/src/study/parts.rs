//! Entries of a study that run at the same time: between which hosts or processes, and from when
//! on. Pure.

use crate::pairs::HERE;
use crate::written::{Field, Fields, Misplaced, Place as Position, Read, Text};
use crate::{HostSpec, Pairs, Part, Place, Request};
use std::str::FromStr;
use toml::de::DeValue;
use wiregauge_base::options::{UsageError, refuse};
use wiregauge_base::units::Span;

/// Longest name of a series or a group, in characters: it stands in tables and legends.
pub(super) const LONGEST_NAME: usize = 40;
/// Most processes of this host that an entry may list.
const MOST_PROCESSES: u32 = 64;
/// Latest start after the common instant.
const LATEST: Span = Span(60_000_000_000);

wiregauge_base::options::named_enum! {
    /// Which of several hosts send to which.
    pub enum Shape {
        /// All others to the first.
        ManyToOne = "many-to-one",
        /// The first to all others.
        OneToMany = "one-to-many",
        /// Each to every other.
        AllToAll = "all-to-all",
        /// Each of the first half to one of the second.
        Bisection = "bisection",
    }
}

impl Shape {
    /// Client and server of each pair of so many.
    pub fn pairs(self, count: u32) -> Vec<[u32; 2]> {
        match self {
            Shape::ManyToOne => (1..count).map(|one| [one, 0]).collect(),
            Shape::OneToMany => (1..count).map(|one| [0, one]).collect(),
            Shape::AllToAll => {
                let to = |from| (0..count).filter(move |to| *to != from).map(move |to| [from, to]);
                (0..count).flat_map(to).collect()
            }
            Shape::Bisection => (0..count / 2).map(|one| [one, one + count / 2]).collect(),
        }
    }
}

/// Where the ends of an entry are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// On these hosts, by name; `here` is this one.
    Hosts(Vec<Text>),
    /// Each a process of this host.
    Processes(u32),
}

/// What an entry has of those that run at the same time, as it is written.
#[derive(Clone, Debug, Default)]
pub struct PartAsked {
    /// The entries of this name run at the same time.
    pub together: Option<String>,
    /// From the common instant to its start.
    pub after: Span,
    /// Which of its hosts send to which.
    pub topology: Option<Shape>,
    /// Where its ends are.
    pub places: Option<Places>,
    /// Where that is written.
    pub position: Position,
}

/// A comparison of a series with the same beside others, as it is written.
#[derive(Clone, Debug)]
pub struct ImpactAsked {
    /// What runs beside it, in a word.
    pub congestor: String,
    /// The series alone.
    pub alone: Text,
    /// The series beside others.
    pub under: Text,
}

/// Reads what an entry has of a part.
pub(super) fn part(table: &mut Fields<'_>) -> Result<PartAsked, Misplaced> {
    let written = table.written;
    let together: Option<Text> = table.get("together")?;
    let named_at = together.as_ref().map(|(_, place)| place.clone());
    let together = together.map(|text| written.short(text, LONGEST_NAME)).transpose()?;
    let after: Option<Text> = table.get("after")?;
    let span = |(text, place): Text| {
        let span = Span::from_str(&text).ok().filter(|span| *span <= LATEST);
        let sentence = format!("after: '{text}' is out of range: use a time up to {LATEST}");
        span.ok_or_else(|| written.wrong(&place, sentence))
    };
    let after = after.map(span).transpose()?.unwrap_or_default();
    let topology: Option<Text> = table.get("topology")?;
    let topology = topology.map(|word| written.one_of("topology", word)).transpose()?;
    let places = table.take("places").map(|field| Ok((field.span(), places(table, field)?)));
    let (placed_at, places) = places.transpose()?.unzip();
    let position = placed_at.or(named_at).unwrap_or_else(|| table.place.clone());
    let found = PartAsked { together, after, topology, places, position: position.clone() };
    let needs = match (&found.together, &found.places) {
        (None, _) if found.topology.is_some() || found.after != Span(0) => Some(
            "a part needs 'together': entries that run at the same time have one name, \
             together = \"NAME\"",
        ),
        (_, None) if found.topology.is_some() => Some(
            "topology needs 'places': hosts, places = [\"node1\", \"node2\"], or the number of \
             processes of this host",
        ),
        _ => None,
    };
    needs.map_or(Ok(found), |needs| Err(written.wrong(&position, needs)))
}

fn places<'a>(table: &Fields<'a>, field: Field<'a>) -> Result<Places, Misplaced> {
    let (written, place) = (table.written, field.span());
    match field.get_ref() {
        DeValue::Integer(number) => {
            let count = number.as_str().parse().ok();
            let count = count.filter(|count| (2..=MOST_PROCESSES).contains(count));
            let sentence = format!("places: use 2 to {MOST_PROCESSES} processes");
            count.map(Places::Processes).ok_or_else(|| written.wrong(&place, sentence))
        }
        _ => {
            let hosts = Vec::<Text>::read(written, "places", field)?;
            let few = "places needs two hosts or more: [\"node1\", \"node2\"]";
            ensure!(hosts.len() >= 2, written.wrong(&place, few));
            Ok(Places::Hosts(hosts))
        }
    }
}

/// Reads the comparison of a series with the same beside others.
pub(super) fn impact(mut table: Fields<'_>, names: &[String]) -> Result<ImpactAsked, Misplaced> {
    let written = table.written;
    let (alone, under): (Text, Text) = (table.get("alone")?, table.get("under")?);
    for (name, place) in [&alone, &under] {
        let sentence = format!("unknown series '{name}': use {}", names.join(", "));
        ensure!(names.contains(name), written.wrong(place, sentence));
    }
    let name: Option<Text> = table.get("congestor")?;
    let named = name.map(|text| written.short(text, LONGEST_NAME)).transpose()?;
    table.done()?;
    Ok(ImpactAsked { congestor: named.unwrap_or_else(|| under.0.clone()), alone, under })
}

/// The requests of an entry, one for each pair of its topology; one where it has none.
///
/// # Errors
/// A host that the run does not have, or a topology that its pattern does not have.
pub fn requests(
    asked: &PartAsked,
    request: Request,
    run: &Place,
) -> Result<Vec<Request>, UsageError> {
    let part = |pair| Part { after: asked.after, pair, ..Part::default() };
    let group = asked.together.clone();
    let has_nodes = request.asked.has_nodes();
    let nodes = match &asked.places {
        None => {
            // Hosts that are named are its nodes, and so are the ranks of a job, of which other
            // entries measure all pairs.
            let is_of_nodes = has_nodes && run.is_remote();
            let which = if is_of_nodes { Pairs::Ranks } else { run.which };
            let place = Place { which, ..run.clone() };
            return Ok(vec![Request { group, part: part(None), place, ..request }]);
        }
        Some(Places::Processes(count)) => vec![None; *count as usize],
        Some(Places::Hosts(names)) => names
            .iter()
            .map(|(name, _)| host(name, run))
            .collect::<Result<Vec<Option<HostSpec>>, _>>()?,
    };
    let own = Place { own_here: run.own_here.clone(), ..Place::default() };
    let are_here = nodes.iter().all(Option::is_none);
    if has_nodes {
        ensure!(
            asked.topology.is_none() && !are_here,
            "topology and a number of places are for pairs: {} has --schedule and --nodes",
            request.pattern.name()
        );
        let place = Place { nodes, which: Pairs::Ranks, ..own };
        return Ok(vec![Request { group, part: part(None), place, ..request }]);
    }
    let count = nodes.len() as u32;
    let pairs = match asked.topology {
        Some(Shape::Bisection) if count % 2 == 1 => {
            return refuse(format!("bisection needs an even number of places, not {count}"));
        }
        Some(shape) => shape.pairs(count),
        None if count == 2 => vec![[0, 1]],
        None => {
            return refuse(format!("{count} places need a topology: use {}", names_of_shapes()));
        }
    };
    let one = |pair: [u32; 2]| {
        let ends = pair.map(|end| nodes[end as usize].clone());
        // Both on this host: the usual place.
        let nodes = if ends.iter().all(Option::is_none) { Vec::new() } else { ends.into() };
        let place = Place { nodes, ..own.clone() };
        Request { group: group.clone(), part: part(Some(pair)), place, ..request.clone() }
    };
    Ok(pairs.into_iter().map(one).collect())
}

fn names_of_shapes() -> String {
    wiregauge_base::options::names(Shape::ALL)
}

/// A host of the run by its name.
fn host(name: &str, run: &Place) -> Result<Option<HostSpec>, UsageError> {
    if name == HERE {
        return Ok(None);
    }
    let found = run.all_nodes().flatten().find(|spec| spec.host == name);
    match found {
        Some(spec) => Ok(Some(spec.clone())),
        None => refuse(format!(
            "places: '{name}' is not among the hosts of the run: write it below hosts, or name it \
             with --hosts"
        )),
    }
}
