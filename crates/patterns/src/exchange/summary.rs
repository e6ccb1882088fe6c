//! What a run of an exchange shows beside its rates: each connection and node, how fair the shares
//! are, and how they change over time. The record has it as the run's `details`.

use crate::prelude::*;
use std::collections::BTreeMap;
use wiregauge_stats::rate::rate;
use wiregauge_stats::{Interval, Value as Number};

/// Connections of which the record has the rate of each: those of 64 nodes.
pub const MOST_CONNECTIONS: usize = 64 * 63;
/// Connections of which the record has the rate of each over time; of more, that of each node.
const MOST_LINES: usize = 30;
/// Nodes of which it has that.
const MOST_NODES: usize = 64;
/// Parts of a round's time for which it has rates.
pub const BINS: usize = 50;

/// A rate, or another number of each round, with its interval between rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Over all rounds.
    pub value: f64,
    /// The bounds of the 95 % interval; none for fewer than 2 rounds.
    pub interval: Option<[f64; 2]>,
}

impl Between {
    /// Of work and time of each round.
    pub fn of(rounds: &[Delivered]) -> Between {
        let found = rate(rounds);
        let value = if found.value.is_finite() { found.value } else { 0.0 };
        Between { value, interval: found.interval.map(|both| [both.low.0, both.high.0]) }
    }

    /// The same where no value is above this one.
    fn up_to(self, most: f64) -> Between {
        Between { interval: self.interval.map(|both| both.map(|bound| bound.min(most))), ..self }
    }

    /// Returns the 95 % interval.
    pub fn bounds(&self) -> Option<Interval> {
        self.interval.map(|[low, high]| Interval { low: Number(low), high: Number(high) })
    }

    /// Of a number of each round.
    pub fn of_numbers(rounds: impl Iterator<Item = f64>) -> Between {
        let one = |work| Delivered { work, seconds: 1.0 };
        Between::of(&rounds.map(one).collect::<Vec<_>>())
    }
}

/// A connection: bytes per second from a node to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Rank of the sender.
    pub from: u32,
    /// Rank of the receiver.
    pub to: u32,
    /// Payload bytes per second.
    pub rate: Between,
}

/// A node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Payload bytes per second that arrived from it at all others.
    pub sends: Between,
    /// Payload bytes per second that arrived at it.
    pub receives: Between,
    /// CPU time of its thread as a share of the round's.
    pub cpu: f64,
    /// Whether it is to send, and to receive.
    pub is_sender: bool,
    /// Whether it is to receive.
    pub is_receiver: bool,
}

/// Rates over the time of the first round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Seconds of a part.
    pub seconds: f64,
    /// The connections, or, with a sender of `None`, the receiving nodes.
    pub lines: Vec<(Option<u32>, u32)>,
    /// Payload bytes per second of each line in each part.
    pub rates: Vec<Vec<f64>>,
}

/// What the record has of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// Each connection; none of too many.
    pub connections: Vec<Connection>,
    /// Each node, by rank.
    pub nodes: Vec<Node>,
    /// Jain's index of the shares of all connections: 1 where all have the same.
    pub fairness: Between,
    /// Messages of which there is a sample, and which were sent when their slot was over, of all
    /// rounds; of none without slots.
    #[serde(default)]
    pub after_slot: Option<u64>,
    /// Sends that waited for room, of all rounds.
    pub held_up: u64,
    /// Sends that were left out, of all rounds.
    pub skipped: u64,
    /// Sends of slots that had not begun at the end, of all rounds.
    pub unsent: u64,
    /// Rates over time.
    pub over_time: OverTime,
}

/// One round.
#[derive(Debug, Default)]
pub struct Round {
    /// Seconds of the window.
    pub seconds: f64,
    /// Payload bytes of each connection that arrived within it.
    pub bytes: BTreeMap<(u32, u32), f64>,
    /// CPU shares of the nodes.
    pub cpu: Vec<f64>,
}

/// What is gathered of the rounds.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Of the first.
    pub over_time: OverTime,
    /// Messages that were sent when their slot was over; of none without slots.
    pub after_slot: Option<u64>,
}

/// The time of a round in which all nodes exchange: in ns of the common time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The warm-up is over, and the last node has begun.
    pub begin_ns: f64,
    /// The nodes send no more.
    pub end_ns: f64,
}

impl Window {
    /// The window of a round that was to begin at `agreed_ns`, of which the last node began at
    /// `began_ns`.
    pub fn new(agreed_ns: f64, began_ns: f64, warmup: Span, time: Span) -> Window {
        let warm = agreed_ns + warmup.0 as f64;
        Window { begin_ns: warm.max(began_ns), end_ns: warm + time.0 as f64 }
    }

    /// What is left of it in a round that broke off: until the first connection fell silent. The
    /// others may go on for as long as is waited for the node that is gone.
    pub fn until_silence(self, samples: &[Sample]) -> Window {
        let mut last: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.receive_ns.is_finite()) {
            let of = last.entry((sender(sample), sample.thread)).or_insert(sample.receive_ns);
            *of = of.max(sample.receive_ns);
        }
        let end_ns = last.into_values().reduce(f64::min).unwrap_or(self.begin_ns);
        Window { end_ns: end_ns.min(self.end_ns), ..self }
    }

    /// Its length; 0 where the last node began when the others had ended.
    pub fn seconds(&self) -> f64 {
        ((self.end_ns - self.begin_ns) / 1e9).max(0.0)
    }

    /// Whether an instant is in it.
    pub fn holds(&self, ns: f64) -> bool {
        ns > self.begin_ns && ns <= self.end_ns
    }

    /// The number of its part.
    fn part(&self, ns: f64) -> usize {
        let share = (ns - self.begin_ns) / (self.end_ns - self.begin_ns);
        ((share * BINS as f64) as usize).min(BINS - 1)
    }
}

/// The sender of a sample, and its number among those of its connection.
pub fn number(from: u32, count: u64) -> u64 {
    u64::from(from) << 32 | (count & u64::from(u32::MAX))
}

/// The sender of a sample.
pub fn sender(sample: &Sample) -> u32 {
    (sample.sequence >> 32) as u32
}

impl Gathered {
    /// Takes a round: its samples, each of which stands for so many messages.
    pub fn take(&mut self, samples: &[Sample], window: Window, stride: f64, cpu: Vec<f64>) {
        let mut round = Round { seconds: window.seconds(), cpu, ..Round::default() };
        let inside = || samples.iter().filter(|sample| window.holds(sample.receive_ns));
        for sample in inside() {
            let bytes = f64::from(sample.size) * stride;
            *round.bytes.entry((sender(sample), sample.thread)).or_default() += bytes;
        }
        if self.rounds.is_empty() {
            self.over_time = over_time(&round, window, inside(), stride);
        }
        self.rounds.push(round);
    }

    /// Counts those of a schedule that were sent when their slot was over.
    pub fn count_late(&mut self, samples: &[Sample], slot: Span) {
        let over = |one: &&Sample| one.submit_ns >= one.intended_ns + slot.0 as f64;
        let late = samples.iter().filter(over).count() as u64;
        self.after_slot = Some(self.after_slot.unwrap_or(0) + late);
    }

    /// What was delivered in each round, counted by `of`.
    pub fn delivered(&self, of: impl Fn(&Round) -> f64) -> Vec<Delivered> {
        let one = |round: &Round| Delivered { work: of(round), seconds: round.seconds };
        self.rounds.iter().map(one).collect()
    }

    /// What the record has of a run whose connections are these.
    pub fn details(&self, nodes: u32, pairs: &[(u32, u32)], counts: &Counts) -> Details {
        let of = |pair: (u32, u32)| move |round: &Round| *round.bytes.get(&pair).unwrap_or(&0.0);
        let shown = if pairs.len() <= MOST_CONNECTIONS { pairs } else { &[] };
        let connection = |pair: &(u32, u32)| Connection {
            from: pair.0,
            to: pair.1,
            rate: Between::of(&self.delivered(of(*pair))),
        };
        let sums: Vec<[Vec<f64>; 2]> = self.rounds.iter().map(|one| one.sums(nodes)).collect();
        let node = |rank: u32| {
            let between = |way: usize| {
                let one = |(round, sums): (&Round, &[Vec<f64>; 2])| Delivered {
                    work: sums[way].get(rank as usize).copied().unwrap_or(0.0),
                    seconds: round.seconds,
                };
                Between::of(&self.rounds.iter().zip(&sums).map(one).collect::<Vec<_>>())
            };
            let cpu = self.rounds.iter().filter_map(|round| round.cpu.get(rank as usize));
            let rounds = self.rounds.len().max(1) as f64;
            Node {
                sends: between(0),
                receives: between(1),
                cpu: cpu.sum::<f64>() / rounds,
                is_sender: pairs.iter().any(|pair| pair.0 == rank),
                is_receiver: pairs.iter().any(|pair| pair.1 == rank),
            }
        };
        let fairness = |round: &Round| jain(pairs.iter().map(|pair| of(*pair)(round)));
        Details {
            connections: shown.iter().map(connection).collect(),
            nodes: (0..nodes).map(node).collect(),
            fairness: Between::of_numbers(self.rounds.iter().filter_map(fairness)).up_to(1.0),
            after_slot: self.after_slot,
            held_up: counts.held_up,
            skipped: counts.missed_steps,
            unsent: counts.unsent,
            over_time: self.over_time.clone(),
        }
    }
}

impl Round {
    /// Bytes that each node sent, and that each received.
    fn sums(&self, nodes: u32) -> [Vec<f64>; 2] {
        let mut sums = [vec![0.0; nodes as usize], vec![0.0; nodes as usize]];
        for (&(from, to), bytes) in &self.bytes {
            for (way, node) in [from, to].into_iter().enumerate() {
                if let Some(sum) = sums[way].get_mut(node as usize) {
                    *sum += bytes;
                }
            }
        }
        sums
    }
}

/// Jain's fairness index of shares: (sum x)^2 / (n sum x^2), from 1/n to 1 (Jain, Chiu and Hawe,
/// DEC-TR-301, 1984). `None`: nothing arrived.
pub fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        shares.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// The rates of the parts of a round.
fn over_time<'a>(
    round: &Round,
    window: Window,
    samples: impl Iterator<Item = &'a Sample>,
    stride: f64,
) -> OverTime {
    let mut lines: Vec<(Option<u32>, u32)> =
        round.bytes.keys().map(|&(from, to)| (Some(from), to)).collect();
    if lines.len() > MOST_LINES {
        lines = each_once(round.bytes.keys().map(|&(_, to)| (None, to)));
        lines.sort_unstable();
        lines.truncate(MOST_NODES);
    }
    let seconds = round.seconds / BINS as f64;
    let place = BTreeMap::from_iter(lines.iter().copied().zip(0_usize..));
    let mut rates = vec![vec![0.0; BINS]; lines.len()];
    for sample in samples {
        let (from, to) = (sender(sample), sample.thread);
        let line = place.get(&(Some(from), to)).or_else(|| place.get(&(None, to)));
        if let Some(line) = line.and_then(|line| rates.get_mut(*line)) {
            line[window.part(sample.receive_ns)] += f64::from(sample.size) * stride / seconds;
        }
    }
    OverTime { seconds, lines, rates }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of 1000 B from a node to another, one a millisecond from a time on.
    fn arrivals(from: u32, to: u32, begin_ms: u32, count: u32) -> impl Iterator<Item = Sample> {
        (0..count).map(move |k| {
            let at = f64::from(begin_ms + k) * 1e6;
            let stamps = [f64::NAN, at - 5e5, f64::NAN, at, f64::NAN];
            let sequence = number(from, k.into());
            Sample::new(sequence, 1000, stamps, Flags::default()).of_thread(to)
        })
    }

    #[test]
    fn rates_are_what_arrived_in_the_time_in_which_all_exchange() {
        let window = Window::new(0.0, 2e6, Span(10_000_000), Span(100_000_000));
        assert_eq!((window.begin_ns, window.seconds()), (10e6, 0.1));
        // One all the time, one for half of it, and a third node to which nothing comes.
        let samples: Vec<Sample> = arrivals(0, 1, 0, 500).chain(arrivals(1, 0, 61, 50)).collect();
        let mut gathered = Gathered::default();
        gathered.take(&samples, window, 1.0, vec![0.5, 0.25, 0.0]);
        gathered.take(&samples, window, 1.0, vec![0.5, 0.75, 0.0]);
        let pairs = [(0, 1), (1, 0), (0, 2)];
        let found = gathered.details(3, &pairs, &Counts::default());
        let rates: Vec<f64> = found.connections.iter().map(|one| one.rate.value).collect();
        assert_eq!(rates, [1e6, 0.5e6, 0.0]);
        assert_eq!(found.connections[0].rate.interval, Some([1e6, 1e6]), "two equal rounds");
        let node = |rank: usize| (found.nodes[rank].sends.value, found.nodes[rank].receives.value);
        assert_eq!([node(0), node(1), node(2)], [(1e6, 0.5e6), (0.5e6, 1e6), (0.0, 0.0)]);
        assert_eq!((found.nodes[1].cpu, found.nodes[2].is_receiver), (0.5, true));
        // (100 + 50)^2 / (3 (100^2 + 50^2)).
        assert!((found.fairness.value - 0.6).abs() < 1e-12, "{:?}", found.fairness);
        let total = Between::of(&gathered.delivered(|round| round.bytes.values().sum()));
        assert_eq!(total.value, 1.5e6);
        let over_time = &found.over_time;
        assert_eq!(over_time.lines, [(Some(0), 1), (Some(1), 0)]);
        assert_eq!(over_time.rates[1][..25], [0.0; 25]);
        // Two messages a part, or one more or less at its edges.
        let late = &over_time.rates[1][25..];
        assert!(late.iter().all(|rate| (0.4e6..1.6e6).contains(rate)), "{late:?}");
        let bytes = late.iter().sum::<f64>() * over_time.seconds;
        assert!((bytes - 50_000.0).abs() < 1.0, "{bytes}");
    }

    #[test]
    fn a_send_is_late_when_its_slot_is_over() {
        let slot = Span(1000);
        let sent = |after_ns: f64| {
            let stamps = [5e6, 5e6 + after_ns, f64::NAN, 6e6, f64::NAN];
            Sample::new(number(0, 0), 1000, stamps, Flags::default())
        };
        let mut gathered = Gathered::default();
        gathered.count_late(&[sent(0.0), sent(999.0), sent(1000.0)], slot);
        gathered.count_late(&[sent(1e6), sent(f64::NAN)], slot);
        assert_eq!(gathered.details(2, &[(0, 1)], &Counts::default()).after_slot, Some(2));
    }

    #[test]
    fn a_round_that_broke_off_counts_until_its_first_connection_fell_silent() {
        let window = Window::new(0.0, 2e6, Span(10_000_000), Span(100_000_000));
        let samples: Vec<Sample> = arrivals(0, 1, 0, 500).chain(arrivals(1, 0, 0, 41)).collect();
        let left = window.until_silence(&samples);
        let mut gathered = Gathered::default();
        gathered.take(&samples, left, 1.0, vec![]);
        let found = gathered.details(2, &[(0, 1), (1, 0)], &Counts::default());
        let rates: Vec<f64> = found.connections.iter().map(|one| one.rate.value).collect();
        assert!((left.seconds() - 0.03).abs() < 0.002, "{left:?}");
        assert!(rates.iter().all(|rate| (0.9e6..1.1e6).contains(rate)), "{rates:?}");
        // It was over before the warm-up was, or nothing arrived at all: no rate, and none of 0.
        for few in [&samples[..5], &[]] {
            let left = window.until_silence(few);
            gathered = Gathered::default();
            gathered.take(few, left, 1.0, vec![]);
            let total = gathered.delivered(|round| round.bytes.values().sum());
            assert!(left.seconds() == 0.0 && rate(&total).value.is_nan(), "{left:?}");
        }
    }

    #[test]
    fn a_node_that_begins_after_the_others_have_ended_leaves_no_time() {
        let window = Window::new(0.0, 5e9, Span(0), Span(1_000_000_000));
        assert_eq!(window.seconds(), 0.0);
    }

    #[test]
    fn jain_s_index_is_1_for_equal_shares_and_1_of_n_for_one_alone() {
        assert_eq!(jain([3.0; 7].into_iter()), Some(1.0));
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        assert_eq!(jain([0.0; 3].into_iter()), None);
    }
}
