//! How long each request of `rpc` is, which connection it goes over, and what a message begins
//! with: its first word has the low half of the request's number and the length of its reply. Who
//! knows the case knows the rest.

use super::spec::{Reply, SHORTEST, Spec};
use crate::load::numbered;
use crate::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The lengths of a thread's requests and the connections that they go over: drawn from their
/// numbers, so that whoever knows the case knows them.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Upper ends of the lengths' shares of 2^64, with the lengths.
    steps: Box<[(u64, u32)]>,
    /// The length of each request, where a trace says it.
    traced: Box<[u32]>,
    reply: Reply,
    /// The order of the lengths where each has a time of its own.
    turns: Option<Turns>,
    connections: u64,
    seed: u64,
}

impl Draws {
    /// Those of a thread of a case.
    pub fn of(case: &Case, thread: u32) -> Draws {
        let rpc = case.spec::<Spec>();
        let share = |cumulative: f64| match cumulative >= 1.0 {
            true => u64::MAX,
            false => (cumulative * 2f64.powi(64)) as u64,
        };
        let steps = rpc.workload.steps.iter();
        let longest = rpc.workload.longest();
        let traced = case.trace.iter().flat_map(|trace| &trace.sizes);
        let traced = traced.map(|size| (*size).clamp(SHORTEST, longest).0 as u32);
        Draws {
            traced: traced.collect(),
            steps: steps.map(|(size, cumulative)| (share(*cumulative), size.0 as u32)).collect(),
            reply: rpc.reply,
            turns: rpc.unloaded.then(|| Turns::of(case, rpc.workload.steps.len())),
            connections: u64::from(case.topology.endpoints_of_role(Role::Client)),
            seed: numbered(!case.seed, u64::from(thread)),
        }
    }

    /// The length of a request.
    #[inline(always)]
    pub fn length(&self, sequence: u64) -> u32 {
        if let Some(length) = self.traced.get(sequence as usize) {
            return *length;
        }
        let at = match &self.turns {
            Some(turns) => turns.at(sequence),
            None => {
                let drawn = numbered(self.seed, sequence);
                self.steps.partition_point(|(share, _)| *share < drawn)
            }
        };
        self.steps.get(at).or(self.steps.last()).map_or(SHORTEST.0 as u32, |step| step.1)
    }

    /// The length of the reply to a request of a length.
    #[inline(always)]
    pub fn reply(&self, length: u32) -> u32 {
        self.reply.to(length)
    }

    /// The connection that a request goes over: all alike.
    #[inline(always)]
    pub fn connection(&self, sequence: u64) -> usize {
        if self.connections == 1 {
            return 0;
        }
        let drawn = numbered(!self.seed, sequence);
        // The high half of a product: uniform without a division.
        ((u128::from(drawn) * u128::from(self.connections)) >> 64) as usize
    }
}

/// All requests of a length one after another, the lengths in an order that is drawn anew in each
/// round. In a cycle a short request follows the longest, whose traces in the caches it pays for.
#[derive(Clone, Debug)]
struct Turns {
    /// Of the warm-up: it has each length once.
    before: u64,
    each: u64,
    order: Box<[usize]>,
}

impl Turns {
    fn of(case: &Case, lengths: usize) -> Turns {
        let mut order: Box<[usize]> = (0..lengths).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(case.seed));
        let all = case.bound.count.unwrap_or_default();
        Turns { before: case.warmup, each: (all / lengths.max(1) as u64).max(1), order }
    }

    #[inline(always)]
    fn at(&self, sequence: u64) -> usize {
        let turn = match sequence.checked_sub(self.before) {
            Some(sequence) => sequence / self.each,
            None => sequence,
        };
        let turn = turn.checked_rem(self.order.len() as u64).unwrap_or_default();
        self.order.get(turn as usize).copied().unwrap_or_default()
    }
}

/// The first word of a request and of its reply.
#[inline(always)]
pub(super) fn head(sequence: u64, reply: u32) -> u64 {
    u64::from(sequence as u32) | u64::from(reply) << 32
}

/// The first word of a message.
#[inline(always)]
pub(super) fn head_of(message: &[u8]) -> u64 {
    message.first_chunk().map_or(u64::MAX, |word| u64::from_le_bytes(*word))
}

/// The number of a request of which the low half came back: none is on the way for longer.
#[inline(always)]
fn number(sent: u64, low: u32) -> u64 {
    sent.wrapping_sub(u64::from((sent as u32).wrapping_sub(low)))
}

/// What a reply is held against: apart from the connections, which a look borrows.
#[inline(always)]
pub(super) fn awaited(draws: &Draws, sent: u64, low: u32) -> (u64, u32) {
    let sequence = number(sent, low);
    (sequence, draws.reply(draws.length(sequence)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_measure::loops::payload;

    #[test]
    fn a_number_is_known_by_its_low_half() {
        for sequence in [0, 1, u64::from(u32::MAX) - 1, 1 << 32, (1 << 32) + 5, 7 << 40] {
            for later in [1, 2, 1000, 1 << 16] {
                assert_eq!(number(sequence + later, head(sequence, 9) as u32), sequence);
            }
        }
    }

    #[test]
    fn a_message_says_how_long_its_reply_is() {
        let mut message = [0; 20];
        payload::write(&mut message, head(u64::MAX - 3, 77), true);
        assert_eq!(head_of(&message) >> 32, 77);
        assert!(payload::verify(&message, head_of(&message)));
        message[19] ^= 1;
        assert!(!payload::verify(&message, head_of(&message)));
    }
}
