//! A run of an exchange as its record has it, and the sentences on it.

use super::super::spec::Spec;
use super::super::summary::{Between, Connection, Details, Node};
use crate::prelude::*;
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::model::{HeatCell, HeatMap, Show};
use wiregauge_figures::view::number::{PERCENT, short};
use wiregauge_stats::{Interval, Value as Number};

/// As records name the pattern.
pub const NAME: &str = "exchange";
/// Below this share of the others' median a node stands out.
const STANDS_OUT: f64 = 0.9;

/// A run with what its pattern keeps.
pub struct Seen<'a> {
    pub run: &'a Run,
    pub spec: Spec,
    pub details: Details,
    /// The place of its nodes and connections: the page alone for a congestor, whose rate is not
    /// the question.
    pub show: Show,
    names: Vec<String>,
}

/// A node with its name.
pub struct NodeRow<'a> {
    pub name: String,
    pub node: &'a Node,
}

/// A connection.
pub struct ConnectionRow<'a>(pub &'a Connection);

impl OfRun for NodeRow<'_> {}
impl OfRun for ConnectionRow<'_> {}
impl OfRun for &Seen<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

/// Returns a figure and its interval.
pub fn figure(between: &Between) -> (f64, Option<Interval>) {
    (between.value, between.bounds())
}

/// The median of numbers; `None` of none.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (below, above) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some((numbers.get(below)? + numbers.get(above)?) / 2.0)
}

/// Of these rates the least, if it stands out: its share of the others' median, and a sentence.
fn worst_of(does: &str, all: Vec<(String, Between)>) -> Option<(f64, String)> {
    let by_rate = |a: &(usize, Between), b: &(usize, Between)| a.1.value.total_cmp(&b.1.value);
    let numbered = || all.iter().map(|(_, rate)| *rate).enumerate();
    let (least, rate) = numbered().min_by(by_rate)?;
    let others = numbered().filter(|(number, _)| *number != least).map(|(_, rate)| rate.value);
    let others = median(others.collect()).filter(|median| *median > 0.0)?;
    // Of one round nothing is known of another.
    let [_, most] = rate.interval?;
    (all.len() > 2 && most / others < STANDS_OUT).then(|| {
        let percent = |rate: f64| short(rate / others * PERCENT);
        let (name, percent, at_most) = (&all[least].0, percent(rate.value), percent(most));
        let sentence =
            format!("{name} {does} at {percent} % of the others' median (at most {at_most} %).");
        (rate.value / others, sentence)
    })
}

impl<'a> Seen<'a> {
    pub fn of(record: &Record, run: &'a Run) -> Option<Seen<'a>> {
        let spec = run.case.spec::<Spec>(NAME)?;
        let details = Details::deserialize(run.details.as_ref()?).ok()?;
        let ranks = &run.case.topology.ranks;
        let hosts: Vec<Option<u32>> = ranks.iter().map(|rank| rank.host).collect();
        let are_apart = each_once(&hosts).len() == ranks.len();
        let name = |(number, host): (usize, &Option<u32>)| match are_apart {
            true => record.plan.host(*host).to_string(),
            false => format!("node{number}"),
        };
        let names = hosts.iter().enumerate().map(name).collect();
        let show = if record.plan.impacts.is_empty() { Show::Everywhere } else { Show::Page };
        Some(Seen { run, spec, details, show, names })
    }

    pub fn name(&self, rank: u32) -> String {
        self.names.get(rank as usize).cloned().unwrap_or_else(|| format!("node{rank}"))
    }

    /// Whether anything was measured while all nodes sent.
    pub fn has_rate(&self) -> bool {
        self.run.rate(RateMetric::Bandwidth).is_some_and(|rate| rate.value.is_finite())
    }

    pub fn nodes(&self) -> Vec<NodeRow<'_>> {
        let nodes = (0..).zip(&self.details.nodes);
        nodes.map(|(rank, node)| NodeRow { name: self.name(rank), node }).collect()
    }

    pub fn queues(&self) -> String {
        let spread = match self.spec.spread > 0.0 {
            true => format!(" ±{} %", self.spec.spread * PERCENT),
            false => String::new(),
        };
        format!("{}/{}{spread}", self.spec.queue, self.spec.receive_queue)
    }

    /// Bytes per second that the links allow: those of the senders or of the receivers, whichever
    /// are fewer.
    fn bound_of_links(&self) -> Option<(f64, u32)> {
        let links = self.spec.links(self.details.nodes.len() as u32);
        Some((self.spec.link? as f64 / 8.0 * f64::from(links), links))
    }

    /// The sum as a share of what the links allow.
    pub fn share(&self) -> Option<(f64, Option<Interval>)> {
        let (bound, _) = self.bound_of_links()?;
        let rate = self.run.rate(RateMetric::Bandwidth)?;
        let scaled = |bound_of: Number| Number(bound_of.0 / bound);
        let interval =
            rate.interval.map(|both| Interval { low: scaled(both.low), high: scaled(both.high) });
        (rate.value.is_finite() && bound > 0.0).then_some((rate.value / bound, interval))
    }

    /// What bounds the sum, in a sentence.
    pub fn bound(&self) -> Option<String> {
        let (share, _) = self.share()?;
        let (_, links) = self.bound_of_links()?;
        let nodes = &self.details.nodes;
        let senders = nodes.iter().filter(|node| node.is_sender).count();
        let receivers = nodes.iter().filter(|node| node.is_receiver).count();
        let percent = short(share * PERCENT);
        let label = &self.run.label;
        Some(match (links, senders > receivers, receivers > senders) {
            (1, true, _) => format!(
                "{label}: limited by one link, into {}, of which {percent} % is used.",
                self.one(|node| node.is_receiver)
            ),
            (1, _, true) => format!(
                "{label}: limited by one link, out of {}, of which {percent} % is used.",
                self.one(|node| node.is_sender)
            ),
            (1, ..) => format!("{label}: one link at a time, of which {percent} % is used."),
            (links, ..) => {
                format!("{label}: payload is {percent} % of the rate of {links} links.")
            }
        })
    }

    /// The name of the only node of a kind.
    fn one(&self, is: impl Fn(&Node) -> bool) -> String {
        let rank = self.details.nodes.iter().position(is).unwrap_or_default();
        self.name(rank as u32)
    }

    /// The node that receives or sends least, if it stands out: its interval lies below the share
    /// of the others' median. What is further below decides: a node that sends slowly makes all
    /// others receive a little less. Where no node does, a connection may.
    pub fn worst(&self) -> Option<String> {
        let of_nodes = |does: &str, of: fn(&Node) -> Option<Between>| {
            let nodes = (0..).zip(&self.details.nodes);
            let rates = nodes.filter_map(|(rank, node)| Some((self.name(rank), of(node)?)));
            worst_of(does, rates.collect())
        };
        let receives = of_nodes("receives", |node| node.is_receiver.then_some(node.receives));
        let sends = of_nodes("sends", |node| node.is_sender.then_some(node.sends));
        let both = receives.into_iter().chain(sends);
        let name = |one: &Connection| format!("{} to {}", self.name(one.from), self.name(one.to));
        let connections = self.details.connections.iter().map(|one| (name(one), one.rate));
        let node = both.min_by(|a, b| a.0.total_cmp(&b.0));
        let (_, worst) = node.or_else(|| worst_of("carries", connections.collect()))?;
        Some(format!("{}: {worst}", self.run.label))
    }

    /// The rates of all connections.
    pub fn matrix(&self) -> Option<HeatMap> {
        let unit = byte_rate::or(ByteRateUnit::Megabytes);
        let cell = |one: &Connection| {
            let at = (one.from as usize, one.to as usize);
            let (value, interval) = figure(&one.rate);
            (at, HeatCell { value: Number(value), interval, run: self.run.index })
        };
        let map = HeatMap {
            title: format!("Rate of each connection, {}", self.run.label),
            unit: unit.name().into(),
            scale: unit.factor(),
            more_is_better: true,
            axes: "sender in the row, receiver in the column".into(),
            names: self.names.clone(),
            cells: self.details.connections.iter().map(cell).collect(),
            show: self.show,
        };
        (!map.cells.is_empty()).then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_out_lies_below_the_others_with_its_whole_interval() {
        let rate = |value: f64, reach: f64| Between {
            value,
            interval: Some([value - reach, value + reach]),
        };
        let all = |least: Between| {
            let of = |(name, rate): (&str, Between)| (name.to_owned(), rate);
            let all =
                [("a to b", rate(98.0, 1.0)), ("b to a", least), ("a to c", rate(102.0, 1.0))];
            worst_of("carries", all.map(of).to_vec())
        };
        let (share, said) = all(rate(50.0, 10.0)).unwrap();
        assert_eq!(share, 0.5);
        assert_eq!(said, "b to a carries at 50.00 % of the others' median (at most 60.00 %).");
        assert_eq!(all(rate(85.0, 10.0)), None, "it may be at 95 %");
        assert_eq!(all(Between { interval: None, ..rate(50.0, 0.0) }), None, "of one round");
    }
}
