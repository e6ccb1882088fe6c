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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_a_topology_are_those_of_its_name() {
        assert_eq!(Shape::ManyToOne.pairs(4), [[1, 0], [2, 0], [3, 0]]);
        assert_eq!(Shape::OneToMany.pairs(3), [[0, 1], [0, 2]]);
        assert_eq!(Shape::AllToAll.pairs(3), [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]);
        assert_eq!(Shape::Bisection.pairs(4), [[0, 2], [1, 3]]);
    }

    fn asked(topology: Option<Shape>, places: Places) -> PartAsked {
        PartAsked {
            together: Some("t".into()),
            after: Span(5),
            topology,
            places: Some(places),
            position: 0..0,
        }
    }

    fn hosts(names: &[&str]) -> Places {
        Places::Hosts(names.iter().map(|name| ((*name).to_owned(), 0..0)).collect())
    }

    fn run(names: &[&str]) -> Place {
        let spec = |name: &&str| HostSpec { host: (*name).to_owned(), ..HostSpec::default() };
        Place { nodes: names.iter().map(|name| Some(spec(name))).collect(), ..Place::default() }
    }

    #[test]
    fn a_request_becomes_one_for_each_pair_with_its_hosts_and_its_start() {
        let request = wiregauge_patterns::latency::request(Default::default());
        let asked = asked(Some(Shape::ManyToOne), hosts(&["here", "b", "a"]));
        let found = requests(&asked, request, &run(&["a", "b"])).unwrap();
        let names = |one: &Request| {
            let name = |spec: &Option<HostSpec>| spec.as_ref().map(|spec| spec.host.clone());
            one.place.nodes.iter().map(name).collect::<Vec<_>>()
        };
        let ends: Vec<_> = found.iter().map(names).collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(ends, [vec![named("b"), None], vec![named("a"), None]]);
        assert_eq!(found[1].part, Part { after: Span(5), pair: Some([2, 0]), cpus_before: 0 });
        assert_eq!(found[0].group.as_deref(), Some("t"));
    }

    #[test]
    fn all_hosts_of_a_run_are_the_nodes_of_an_entry_whose_pattern_has_nodes() {
        let asked = PartAsked::default();
        for which in [Pairs::First, Pairs::All { at_once: Default::default() }] {
            let place = Place { which, ..run(&["a", "b", "c", "d"]) };
            let exchange = wiregauge_patterns::exchange::request(Default::default());
            let found = requests(&asked, exchange, &place).unwrap();
            assert_eq!((found.len(), found[0].place.which), (1, Pairs::Ranks));
            let latency = wiregauge_patterns::latency::request(Default::default());
            let found = requests(&asked, latency, &place).unwrap();
            assert_eq!(found[0].place.which, which, "pairs stay pairs");
        }
    }

    #[test]
    fn what_no_topology_can_be_made_of_is_refused() {
        let latency = || wiregauge_patterns::latency::request(Default::default());
        let said = |topology, places, request| {
            let asked = asked(topology, places);
            requests(&asked, request, &run(&["a", "b", "c"])).unwrap_err().to_string()
        };
        let bisection = Some(Shape::Bisection);
        assert!(said(bisection, hosts(&["a", "b", "c"]), latency()).contains("an even number"));
        let found = said(None, Places::Processes(3), latency());
        assert!(found.contains("use many-to-one, one-to-many, all-to-all, bisection"), "{found}");
        assert!(said(None, hosts(&["a", "z"]), latency()).contains("'z' is not among"));
        let exchange = wiregauge_patterns::exchange::request(Default::default());
        assert!(said(bisection, hosts(&["a", "b"]), exchange).contains("has --schedule"));
    }
}
