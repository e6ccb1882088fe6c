//! How long each request of `rpc` is, and which connection it goes over.

use super::spec::{Reply, SHORTEST, Spec};
use crate::plan::Case;

/// The lengths of a thread's requests and the connections that they go over: drawn from their
/// numbers, so that whoever knows the case knows them.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Upper ends of the lengths' shares of 2^64, with the lengths.
    steps: Box<[(u64, u32)]>,
    /// The length of each request, where a trace says it.
    traced: Box<[u32]>,
    reply: Reply,
    in_turn: bool,
    lanes: u64,
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
            in_turn: rpc.unloaded,
            lanes: u64::from(case.topology.endpoints_of(0)),
            seed: numbered(!case.seed, u64::from(thread)),
        }
    }

    /// The length of a request.
    #[inline(always)]
    pub fn length(&self, sequence: u64) -> u32 {
        if let Some(length) = self.traced.get(sequence as usize) {
            return *length;
        }
        let at = match self.in_turn {
            true => (sequence % self.steps.len() as u64) as usize,
            false => {
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
    pub fn lane(&self, sequence: u64) -> usize {
        if self.lanes == 1 {
            return 0;
        }
        let drawn = numbered(!self.seed, sequence);
        // The high half of a product: uniform without a division.
        ((u128::from(drawn) * u128::from(self.lanes)) >> 64) as usize
    }
}

/// A draw that depends on its seed and number alone: splitmix64 (G. Steele, D. Lea, C. Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014), whose increment is 2^64 over the golden
/// ratio.
#[inline(always)]
pub(super) fn numbered(seed: u64, number: u64) -> u64 {
    let x = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
