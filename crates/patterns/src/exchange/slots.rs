//! Which node sends to which in each slot of common time, by a rule that every node computes for
//! itself. Pure.
//!
//! Memory is O(nodes) and an answer O(1), so that 10 000 nodes have their schedule at once. The
//! rules are those of the event builders at GSI (DABC's `IbTest*`), with two more.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use wiregauge_base::options::named_enum;

named_enum! {
    /// How the receivers of slots follow from their numbers.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Rule {
        /// In slot k node s sends to s + k + 1: every pair once in nodes - 1 slots.
        #[default]
        RoundRobin = "round-robin",
        /// Node 0 sends to one node after the other.
        OneToAll = "one-to-all",
        /// One node after the other sends to node 0.
        AllToOne = "all-to-one",
        /// Each node sends to the next one, in every slot.
        Fixed = "fixed",
        /// Each node sends to the one half of all nodes further, in every slot.
        Shift = "shift",
        /// Nodes of an even number send to the next one, in every slot.
        EvenOdd = "even-odd",
        /// As `round-robin` in a random order of nodes and distances.
        Permutations = "permutations",
        /// So many nodes send to node 0 at the same time, in every slot.
        Incast = "incast",
        /// As a file lists them.
        File = "file",
    }
}

/// One transfer that a file lists: slot, sender, receiver.
pub type Transfer = (u32, u32, u32);

/// The transfers of a schedule.
#[derive(Clone, Debug)]
pub struct Slots {
    rule: Rule,
    nodes: u32,
    /// Senders of an incast.
    degree: u32,
    /// Of permutations: the node at each place, the place of each node, and the distance of each
    /// slot.
    order: Vec<u32>,
    place: Vec<u32>,
    distances: Vec<u32>,
    /// Of a file: slots of a cycle, and the receiver of each sender of a slot.
    listed: u32,
    table: BTreeMap<(u32, u32), u32>,
}

impl Slots {
    /// The transfers of a rule among so many nodes (at least 2). `seed` draws permutations,
    /// `degree` is the number of an incast's senders, `table` what a file lists.
    pub fn new(rule: Rule, nodes: u32, seed: u64, degree: u32, table: &[Transfer]) -> Slots {
        let nodes = nodes.max(2);
        // A rule that was rearranged is listed as well.
        let rule = if table.is_empty() { rule } else { Rule::File };
        let is_random = rule == Rule::Permutations;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<u32> = if is_random { (0..nodes).collect() } else { Vec::new() };
        let mut distances: Vec<u32> = if is_random { (1..nodes).collect() } else { Vec::new() };
        order.shuffle(&mut random);
        distances.shuffle(&mut random);
        let mut place = vec![0; order.len()];
        for (at, node) in (0..).zip(&order) {
            if let Some(own) = place.get_mut(*node as usize) {
                *own = at;
            }
        }
        let listed = table.iter().map(|(slot, ..)| slot.saturating_add(1)).max().unwrap_or(1);
        let table = BTreeMap::from_iter(table.iter().map(|&(slot, from, to)| ((slot, from), to)));
        let degree = degree.clamp(1, nodes - 1);
        Slots { rule, nodes, degree, order, place, distances, listed, table }
    }

    /// Slots after which the transfers repeat.
    pub fn cycle(&self) -> u32 {
        match self.rule {
            Rule::RoundRobin | Rule::OneToAll | Rule::AllToOne | Rule::Permutations => {
                self.nodes - 1
            }
            Rule::Fixed | Rule::Shift | Rule::EvenOdd | Rule::Incast => 1,
            Rule::File => self.listed,
        }
    }

    /// The node to which this one sends in a slot.
    pub fn to(&self, node: u32, slot: u64) -> Option<u32> {
        let nodes = self.nodes;
        let slot = (slot % u64::from(self.cycle())) as u32;
        let further = |by: u32| Some(around(node, by, nodes));
        match self.rule {
            Rule::RoundRobin => further(slot + 1),
            Rule::Fixed => further(1),
            Rule::Shift => further(nodes / 2),
            Rule::OneToAll => (node == 0).then_some(slot + 1),
            Rule::AllToOne => (node == slot + 1).then_some(0),
            Rule::EvenOdd => (node.is_multiple_of(2) && node + 1 < nodes).then_some(node + 1),
            Rule::Incast => (1..=self.degree).contains(&node).then_some(0),
            Rule::Permutations => {
                let at = around(*self.place.get(node as usize)?, self.distance(slot), nodes);
                self.order.get(at as usize).copied()
            }
            Rule::File => self.table.get(&(slot, node)).copied(),
        }
    }

    /// The node from which this one receives in a slot; of an incast the first. Of a file it is
    /// looked up among all its transfers.
    pub fn from(&self, node: u32, slot: u64) -> Option<u32> {
        let nodes = self.nodes;
        let slot = (slot % u64::from(self.cycle())) as u32;
        let back = |by: u32| Some(around(node, nodes - by % nodes, nodes));
        match self.rule {
            Rule::RoundRobin => back(slot + 1),
            Rule::Fixed => back(1),
            Rule::Shift => back(nodes / 2),
            Rule::OneToAll => (node == slot + 1).then_some(0),
            Rule::AllToOne => (node == 0).then_some(slot + 1),
            Rule::EvenOdd => (!node.is_multiple_of(2)).then(|| node - 1),
            Rule::Incast => (node == 0).then_some(1),
            Rule::Permutations => {
                let by = nodes - self.distance(slot);
                let at = around(*self.place.get(node as usize)?, by, nodes);
                self.order.get(at as usize).copied()
            }
            Rule::File => {
                let own = self.table.range((slot, 0)..=(slot, u32::MAX));
                own.filter(|(_, to)| **to == node).map(|((_, from), _)| *from).next()
            }
        }
    }

    fn distance(&self, slot: u32) -> u32 {
        self.distances.get(slot as usize).copied().unwrap_or(1)
    }

    /// All transfers of a cycle: O(nodes x slots), for those who draw or rearrange them.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        (0..self.cycle()).flat_map(move |slot| {
            let to = move |node| Some((slot, node, self.to(node, slot.into())?));
            (0..self.nodes).filter_map(to)
        })
    }

    /// Whether a node ever sends to another.
    pub fn sends(&self, node: u32, other: u32) -> bool {
        match self.rule {
            Rule::RoundRobin | Rule::Permutations => node != other,
            Rule::OneToAll => node == 0 && other != 0,
            Rule::AllToOne => node != 0 && other == 0,
            Rule::File => self.table.iter().any(|((_, from), to)| (*from, *to) == (node, other)),
            Rule::Fixed | Rule::Shift | Rule::EvenOdd | Rule::Incast => {
                self.to(node, 0) == Some(other)
            }
        }
    }
}

/// The node so many places further, around a circle.
fn around(node: u32, by: u32, nodes: u32) -> u32 {
    ((u64::from(node) + u64::from(by)) % u64::from(nodes)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    fn slots(rule: Rule, nodes: u32) -> Slots {
        Slots::new(rule, nodes, 7, 3, &[])
    }

    /// Rules of which each slot is a matching: nobody sends or receives twice.
    fn matchings() -> impl Iterator<Item = Rule> {
        let all = Rule::ALL.iter().copied();
        all.filter(|rule| !matches!(rule, Rule::Incast | Rule::File))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_slot_is_a_matching_and_both_ends_agree(nodes in 2u32..=1000, at: u64) {
            for rule in matchings() {
                let slots = slots(rule, nodes);
                let mut receives = vec![false; nodes as usize];
                for node in 0..nodes {
                    let Some(to) = slots.to(node, at) else { continue };
                    prop_assert!(to != node && to < nodes, "{rule:?}");
                    prop_assert!(!std::mem::replace(&mut receives[to as usize], true), "{rule:?}");
                    prop_assert_eq!(slots.from(to, at), Some(node), "{:?}", rule);
                    prop_assert!(slots.sends(node, to), "{rule:?}");
                }
                let others = (0..nodes).filter(|node| !receives[*node as usize]);
                for node in others {
                    prop_assert_eq!(slots.from(node, at), None, "{:?} node {}", rule, node);
                }
            }
        }

        #[test]
        fn a_cycle_serves_every_pair_the_right_number_of_times(nodes in 2u32..=60) {
            for rule in matchings() {
                let slots = slots(rule, nodes);
                let mut served = BTreeMap::<(u32, u32), u32>::new();
                for (_, from, to) in slots.transfers() {
                    *served.entry((from, to)).or_default() += 1;
                }
                prop_assert!(served.values().all(|times| *times == 1), "{rule:?}");
                let pairs = match rule {
                    Rule::RoundRobin | Rule::Permutations => nodes * (nodes - 1),
                    Rule::OneToAll | Rule::AllToOne => nodes - 1,
                    Rule::EvenOdd => nodes / 2,
                    _ => nodes,
                };
                prop_assert_eq!(served.len() as u32, pairs, "{:?}", rule);
                let sends = |a: u32| (0..nodes).filter(|b| slots.sends(a, *b)).count();
                prop_assert_eq!((0..nodes).map(sends).sum::<usize>() as u32, pairs, "{:?}", rule);
            }
        }
    }

    #[test]
    fn a_thousand_nodes_serve_every_pair_of_a_rule_once_a_cycle() {
        for rule in matchings() {
            for nodes in [999u32, 1000] {
                let slots = slots(rule, nodes);
                let mut served = vec![0u8; (nodes * nodes) as usize];
                for (_, from, to) in slots.transfers() {
                    served[(from * nodes + to) as usize] += 1;
                }
                let is_right = |(pair, times): (u32, &u8)| {
                    *times == u8::from(slots.sends(pair / nodes, pair % nodes))
                };
                assert!((0..).zip(&served).all(is_right), "{rule:?} {nodes}");
            }
        }
    }

    #[test]
    fn four_nodes_send_as_the_source_lists_them() {
        let of = |rule| slots(rule, 4).transfers().collect::<Vec<_>>();
        let turn = [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 0), (1, 0, 2), (1, 1, 3)];
        assert_eq!(of(Rule::RoundRobin)[..6], turn);
        assert_eq!(of(Rule::OneToAll), [(0, 0, 1), (1, 0, 2), (2, 0, 3)]);
        assert_eq!(of(Rule::AllToOne), [(0, 1, 0), (1, 2, 0), (2, 3, 0)]);
        assert_eq!(of(Rule::Shift), [(0, 0, 2), (0, 1, 3), (0, 2, 0), (0, 3, 1)]);
        assert_eq!(of(Rule::EvenOdd), [(0, 0, 1), (0, 2, 3)]);
        assert_eq!(of(Rule::Incast), [(0, 1, 0), (0, 2, 0), (0, 3, 0)]);
        let file = Slots::new(Rule::File, 4, 0, 1, &[(0, 3, 1), (2, 0, 2)]);
        assert_eq!((file.cycle(), file.to(3, 3), file.from(2, 5)), (3, Some(1), Some(0)));
        assert_eq!((file.to(3, 1), file.to(0, 1)), (None, None));
    }

    #[test]
    fn permutations_differ_by_their_seed_alone() {
        let of = |seed| Slots::new(Rule::Permutations, 20, seed, 1, &[]).transfers().collect();
        let [one, same, other]: [Vec<Transfer>; 3] = [1, 1, 2].map(of);
        assert!(one == same && one != other);
    }

    #[test]
    fn ten_thousand_nodes_have_their_slots_at_once() {
        let begin = Instant::now();
        for rule in matchings() {
            let slots = slots(rule, 10_000);
            let memory = slots.order.len() + slots.place.len() + slots.distances.len();
            assert!(memory <= 30_000, "{rule:?}: a few words a node");
            let sent = (0..u64::from(slots.cycle())).filter_map(|k| slots.to(9_999, k)).count();
            assert!(sent <= 9_999);
        }
        // Many times what it takes: this fails where a rule grows with the square.
        assert!(begin.elapsed().as_secs() < 2 * 10, "{:?}", begin.elapsed());
    }
}
