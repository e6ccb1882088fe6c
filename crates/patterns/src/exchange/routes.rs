//! Slots in which no two transfers share a link: the network from a file, the routes through it,
//! and a schedule that is rearranged and compressed. Pure.
//!
//! Two forms are read. One link a line, between names of nodes and switches:
//!
//! ```text
//! node0 - leaf1
//! leaf1 - spine   # several links between two switches are several lines
//! ```
//!
//! or what `ibnetdiscover` prints, where a node is the first word of its adapter's description.

use super::slots::Transfer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wiregauge_plan::written::{Misplaced, Written};

/// Longest file that is read: a fabric of some thousand ports.
pub const LONGEST_FILE: u64 = 4 << 20;
/// Most nodes and switches of a file.
const MOST_PLACES: usize = 10_000;

/// A network: places (nodes and switches) and the links between them.
#[derive(Clone, Debug, Default)]
pub struct Network {
    names: BTreeMap<String, usize>,
    /// The neighbours of each place, and how many links lead to each.
    links: Vec<BTreeMap<usize, u32>>,
}

/// A link in one direction.
type Way = (usize, usize);

impl Network {
    /// Reads a text of either form.
    ///
    /// # Errors
    /// A sentence with line and column.
    pub fn parse(file: &str, text: &str) -> Result<Network, Misplaced> {
        let written = Written { file: file.into(), text: text.into() };
        let is_fabric = text.lines().any(|line| is_head(line).is_some());
        let network =
            if is_fabric { of_fabric(&written, text)? } else { of_links(&written, text)? };
        match network.links.iter().any(|links| !links.is_empty()) {
            true => Ok(network),
            false => Err(written.wrong(&(0..0), "no link: write lines such as 'node0 - switch1'")),
        }
    }

    /// The place of a name; a new name gets the next one.
    fn place(&mut self, name: &str) -> Option<usize> {
        let next = self.links.len();
        let place = *self.names.entry(name.to_string()).or_insert(next);
        if place == next {
            self.links.push(BTreeMap::new());
        }
        (self.links.len() <= MOST_PLACES).then_some(place)
    }

    /// Adds a link from one place to another.
    fn add(&mut self, (from, to): Way) {
        if let Some(links) = self.links.get_mut(from) {
            *links.entry(to).or_default() += 1;
        }
    }

    /// Steps from every place to this one; `None`: there is no way.
    fn distances(&self, to: usize) -> Vec<Option<u32>> {
        let mut steps = vec![None; self.links.len()];
        let mut next = VecDeque::from([(to, 0)]);
        while let Some((place, far)) = next.pop_front() {
            let Some(own @ None) = steps.get_mut(place) else { continue };
            *own = Some(far);
            let neighbours = self.links.get(place).into_iter().flatten();
            next.extend(neighbours.map(|(neighbour, _)| (*neighbour, far + 1)));
        }
        steps
    }

    /// The links on the way from a node to another: a shortest way, by the destination, as the
    /// forwarding tables of InfiniBand have it. Of several next steps the destination's number
    /// chooses.
    fn way(&self, from: usize, to: usize, distances: &[Option<u32>]) -> Option<Vec<Way>> {
        let (mut at, mut way) = (from, Vec::new());
        while at != to {
            let left = (*distances.get(at)?)?;
            let is_nearer = |next: &&usize| distances.get(**next) == Some(&Some(left - 1));
            let nearer: Vec<&usize> = self.links.get(at)?.keys().filter(is_nearer).collect();
            let next = **nearer.get(to % nearer.len().max(1))?;
            way.push((at, next));
            at = next;
        }
        Some(way)
    }

    /// The same transfers in as few slots as going through them once finds, none of which has a
    /// link with more transfers than links, or a node that sends or receives twice.
    ///
    /// # Errors
    /// A node that the network lacks, or two that nothing connects.
    pub fn arrange(
        &self,
        transfers: impl Iterator<Item = Transfer>,
        nodes: &[String],
    ) -> Result<Vec<Transfer>, String> {
        let place = |name: &String| {
            let known = self.names.get(name).copied();
            known.ok_or_else(|| format!("the file has no node '{name}'"))
        };
        let places: Vec<usize> = nodes.iter().map(place).collect::<Result<_, _>>()?;
        let distances: Vec<_> = places.iter().map(|to| self.distances(*to)).collect();
        let mut slots: Vec<Slot> = Vec::new();
        let mut arranged = Vec::new();
        for (_, from, to) in transfers {
            let ends = places.get(from as usize).zip(places.get(to as usize));
            let far = distances.get(to as usize);
            let way = ends.zip(far).and_then(|((from, to), far)| self.way(*from, *to, far));
            let apart = || {
                let name = |rank: u32| nodes.get(rank as usize).map_or("", String::as_str);
                format!("the file has no way from {} to {}", name(from), name(to))
            };
            let way = way.ok_or_else(apart)?;
            let free = slots.iter().position(|slot| slot.has_room(self, from, to, &way));
            let slot = free.unwrap_or(slots.len());
            if free.is_none() {
                slots.push(Slot::default());
            }
            slots[slot].take(from, to, &way);
            arranged.push((slot as u32, from, to));
        }
        arranged.sort_unstable();
        Ok(arranged)
    }
}

/// What is in use in a slot.
#[derive(Default)]
struct Slot {
    senders: BTreeSet<u32>,
    receivers: BTreeSet<u32>,
    links: BTreeMap<Way, u32>,
}

impl Slot {
    fn has_room(&self, network: &Network, from: u32, to: u32, way: &[Way]) -> bool {
        let links = |way: &Way| network.links.get(way.0).and_then(|links| links.get(&way.1));
        let is_free =
            |way: &Way| self.links.get(way).copied().unwrap_or(0) < *links(way).unwrap_or(&0);
        !self.senders.contains(&from) && !self.receivers.contains(&to) && way.iter().all(is_free)
    }

    fn take(&mut self, from: u32, to: u32, way: &[Way]) {
        self.senders.insert(from);
        self.receivers.insert(to);
        way.iter().for_each(|link| *self.links.entry(*link).or_default() += 1);
    }
}

/// A refusal that points at a part of the text.
fn wrong(written: &Written, text: &str, part: &str, sentence: &str) -> Misplaced {
    let at = part.as_ptr() as usize - text.as_ptr() as usize;
    written.wrong(&(at..at + part.len()), sentence)
}

/// What is said of too large a file.
const TOO_MANY: &str = "the file has more than 10000 nodes and switches";

/// A link a line.
fn of_links(written: &Written, text: &str) -> Result<Network, Misplaced> {
    let mut network = Network::default();
    for line in text.lines() {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        let [from, "-", to] = words.as_slice() else {
            let sentence = "a line has one link: 'node0 - switch1'";
            return Err(wrong(written, text, first, sentence));
        };
        if from == to {
            return Err(wrong(written, text, to, "a link has two ends"));
        }
        let ends = network.place(from).zip(network.place(to));
        let (from, to) = ends.ok_or_else(|| wrong(written, text, from, TOO_MANY))?;
        network.add((from, to));
        network.add((to, from));
    }
    Ok(network)
}

/// The kind of a line of `ibnetdiscover` that begins a switch or an adapter.
fn is_head(line: &str) -> Option<&str> {
    let kind = line.split_whitespace().next()?;
    (["Switch", "Ca", "Rt"].contains(&kind) && line.contains('"')).then_some(kind)
}

/// The quoted text at the front of what follows, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// What `ibnetdiscover` prints: each link stands at both of its ends.
fn of_fabric(written: &Written, text: &str) -> Result<Network, Misplaced> {
    // Adapters are known by the names of their nodes.
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines().filter(|line| is_head(line) == Some("Ca")) {
        let found = quoted(line).and_then(|(id, rest)| Some((id, quoted(rest)?.0)));
        if let Some((id, description)) = found {
            let node = description.split_whitespace().next().unwrap_or(id);
            names.insert(id, node.to_string());
        }
    }
    let mut network = Network::default();
    let mut at = None;
    for line in text.lines() {
        let is_port = line.starts_with('[');
        if !is_port && is_head(line).is_none() {
            continue;
        }
        let sentence = "a port has a quoted peer, and a switch or adapter a quoted identifier";
        let (id, _) = quoted(line).ok_or_else(|| wrong(written, text, line, sentence))?;
        let name = names.get(id).map_or(id, String::as_str).to_string();
        let place = network.place(&name).ok_or_else(|| wrong(written, text, line, TOO_MANY))?;
        match (is_port, at) {
            (false, _) => at = Some(place),
            (true, Some(own)) => network.add((own, place)),
            (true, None) => {
                let sentence = "a port before the first switch or adapter";
                return Err(wrong(written, text, line, sentence));
            }
        }
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::super::slots::{Rule, Slots};
    use super::*;
    use proptest::prelude::*;

    fn names(count: u32) -> Vec<String> {
        (0..count).map(|node| format!("node{node}")).collect()
    }

    /// So many nodes on each of so many leaves, with this many links from each leaf to the spine.
    fn tree(leaves: u32, nodes: u32, up: u32) -> Network {
        let mut text = String::new();
        for leaf in 0..leaves {
            for node in 0..nodes {
                text += &format!("node{} - leaf{leaf}\n", leaf * nodes + node);
            }
            text += &format!("leaf{leaf} - spine\n").repeat(up as usize);
        }
        Network::parse("f", &text).unwrap()
    }

    fn arranged(network: &Network, nodes: u32) -> Vec<Transfer> {
        let slots = Slots::new(Rule::RoundRobin, nodes, 0, 1, &[]);
        network.arrange(slots.transfers(), &names(nodes)).unwrap()
    }

    fn slots(transfers: &[Transfer]) -> u32 {
        transfers.iter().map(|one| one.0 + 1).max().unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_two_transfers_of_a_slot_share_a_link(
            leaves in 1u32..5, own in 1u32..5, up in 1u32..3
        ) {
            let (network, nodes) = (tree(leaves, own, up), leaves * own);
            prop_assume!(nodes > 1);
            let transfers = arranged(&network, nodes);
            prop_assert_eq!(transfers.len() as u32, nodes * (nodes - 1), "each pair once");
            let mut used: BTreeMap<(u32, Way), u32> = BTreeMap::new();
            let mut busy = BTreeSet::new();
            for &(slot, from, to) in &transfers {
                prop_assert!(busy.insert((slot, from, 0)) && busy.insert((slot, to, 1)));
                let place = |rank: u32| network.names[&format!("node{rank}")];
                let far = network.distances(place(to));
                for way in network.way(place(from), place(to), &far).unwrap() {
                    *used.entry((slot, way)).or_default() += 1;
                }
            }
            for ((_, (from, to)), count) in used {
                prop_assert!(count <= network.links[from][&to]);
            }
        }
    }

    #[test]
    fn a_network_without_bottlenecks_needs_no_more_slots_and_a_narrow_one_does() {
        assert_eq!(slots(&arranged(&tree(1, 4, 1), 4)), 3);
        // Of 4 nodes on each of 2 leaves 16 transfers go up each of the 2 leaves' single links.
        assert!(slots(&arranged(&tree(2, 4, 1), 8)) >= 16);
        assert!(slots(&arranged(&tree(2, 4, 4), 8)) < 16);
    }

    #[test]
    fn what_ibnetdiscover_prints_is_read() {
        let text = "# Topology file\nvendid=0x2c9\n\
            Switch\t36 \"S-01\"\t\t# \"sw one\" enhanced port 0 lid 3 lmc 0\n\
            [1]\t\"H-0a\"[1](2c903000a) \t\t# \"alpha HCA-1\" lid 5 4xQDR\n\
            [2]\t\"H-0b\"[1](2c903000b) \t\t# \"beta HCA-1\" lid 6 4xQDR\n\n\
            Ca\t1 \"H-0a\"\t\t# \"alpha HCA-1\"\n\
            [1](2c903000a) \t\"S-01\"[1]\t\t# lid 5 lmc 0 \"sw one\" lid 3 4xQDR\n\n\
            Ca\t1 \"H-0b\"\t\t# \"beta HCA-1\"\n\
            [1](2c903000b) \t\"S-01\"[2]\t\t# lid 6 lmc 0 \"sw one\" lid 3 4xQDR\n";
        let network = Network::parse("f", text).unwrap();
        let nodes = ["alpha".to_string(), "beta".to_string()];
        let both = [(0, 0, 1), (0, 1, 0)];
        assert_eq!(network.arrange(both.into_iter(), &nodes), Ok(both.to_vec()));
        let unknown = network.arrange(both.into_iter(), &names(2)).unwrap_err();
        assert!(unknown.contains("no node 'node0'"), "{unknown}");
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let refused = |text: &str| Network::parse("f", text).unwrap_err().to_string();
        assert!(refused("a - b\na b\n").starts_with("f:2:1: a line has one link"));
        assert!(refused("a - a\n").starts_with("f:1:5: a link has two ends"));
        assert!(refused("# none\n").contains("no link"));
        assert!(refused("[1] \"x\"[1]\nCa 1 \"y\" # \"y\"\n").starts_with("f:1:1: a port before"));
        let apart = Network::parse("f", "node0 - a\nnode1 - b\n").unwrap();
        let found = apart.arrange([(0, 0, 1)].into_iter(), &names(2)).unwrap_err();
        assert_eq!(found, "the file has no way from node0 to node1");
    }
}
