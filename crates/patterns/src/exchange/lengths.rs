//! The length of each message: fixed, or drawn around a mean. Both ends and the controller know it
//! from the message's number alone.

/// Bytes at the front of a message: its number, and two times of the sender.
pub const HEADER: usize = 24;

/// The lengths of the messages from one node to another.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    mean: u64,
    /// How far a length is from the mean at most.
    reach: u64,
    seed: u64,
}

impl Lengths {
    /// Of messages from a node to another around a mean, up to this share of it less or more.
    pub fn new(mean: u64, spread: f64, seed: u64, [from, to]: [u32; 2]) -> Lengths {
        let most = mean.saturating_sub(HEADER as u64);
        let reach = ((mean as f64 * spread) as u64).min(most);
        let seed = mix(seed ^ mix(u64::from(from) << 32 | u64::from(to)));
        Lengths { mean, reach, seed }
    }

    /// The longest of such messages.
    pub fn longest(mean: u64, spread: f64) -> u64 {
        let own = Lengths::new(mean, spread, 0, [0, 0]);
        own.mean + own.reach
    }

    /// The length of the message of a number.
    #[inline(always)]
    pub fn of(&self, number: u64) -> usize {
        if self.reach == 0 { self.mean as usize } else { self.drawn(number) }
    }

    #[inline]
    fn drawn(&self, number: u64) -> usize {
        // The high half of a product: uniform but for 2^-32 of the range.
        let unit = mix(self.seed ^ number) >> 32;
        let step = (unit * (2 * self.reach + 1)) >> 32;
        (self.mean - self.reach + step) as usize
    }
}

/// A cheap bijection in which every bit depends on every other (splitmix64's finaliser).
#[inline(always)]
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_spread_evenly_around_their_mean() {
        let lengths = Lengths::new(1000, 0.5, 3, [1, 2]);
        let all: Vec<usize> = (0..100_000).map(|number| lengths.of(number)).collect();
        let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        assert_eq!((*least, *most, Lengths::longest(1000, 0.5)), (500, 1500, 1500));
        let mean = all.iter().sum::<usize>() as f64 / all.len() as f64;
        // The standard error is 289/sqrt(100 000), below 1.
        assert!((mean - 1000.0).abs() < 5.0, "{mean}");
        let other = Lengths::new(1000, 0.5, 3, [2, 1]);
        assert!((0..100).any(|number| other.of(number) != lengths.of(number)));
    }

    #[test]
    fn a_message_has_room_for_its_header() {
        assert_eq!(Lengths::new(1000, 0.0, 3, [1, 2]).of(7), 1000);
        let short = Lengths::new(30, 0.5, 3, [1, 2]);
        assert!((0..10_000).all(|number| (HEADER..=36).contains(&short.of(number))));
    }
}
