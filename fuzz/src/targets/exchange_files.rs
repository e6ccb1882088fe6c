//! The files of `exchange`, schedules and routes: transfers of the nodes that there are, in slots
//! where no node sends or receives twice, or one sentence with its place. The first byte chooses
//! the number of nodes, and which file it is.

use crate::valid_text;
use std::collections::BTreeSet;
use wiregauge::pattern::exchange::file;
use wiregauge::pattern::exchange::routes::Network;
use wiregauge::pattern::exchange::{Rule, Slots, Transfer};
use wiregauge::plan::written::Misplaced;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let text = valid_text(bytes);
    let nodes = 2 + u32::from(choice >> 1) % 8;
    if choice & 1 == 0 {
        match file::parse("slots", text, nodes) {
            Ok(transfers) => check(&transfers, nodes),
            Err(wrong) => one_sentence(&wrong),
        }
        return;
    }
    let network = match Network::parse("routes", text) {
        Ok(network) => network,
        Err(wrong) => return one_sentence(&wrong),
    };
    let names: Vec<String> = (0..nodes).map(|node| format!("node{node}")).collect();
    let slots = Slots::new(Rule::RoundRobin, nodes, 0, 1, &[]);
    match network.arrange(slots.transfers(), &names) {
        Ok(transfers) => check(&transfers, nodes),
        Err(sentence) => assert!(!sentence.is_empty() && !sentence.contains('\n')),
    }
}

fn check(transfers: &[Transfer], nodes: u32) {
    assert!(!transfers.is_empty() && transfers.len() <= file::MOST_TRANSFERS);
    let mut busy = BTreeSet::new();
    for (slot, from, to) in transfers {
        assert!(*from < nodes && *to < nodes && from != to, "{from} -> {to}");
        let is_new = busy.insert((slot, "sends", from)) && busy.insert((slot, "receives", to));
        assert!(is_new, "slot {slot}: {from} -> {to}");
    }
}

fn one_sentence(wrong: &Misplaced) {
    assert!(!wrong.sentence.is_empty() && !wrong.sentence.contains('\n'), "{wrong:?}");
    assert_eq!(wrong.marked().lines().count(), 3, "{wrong:?}");
}
