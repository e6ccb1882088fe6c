//! From the rows of both roles to the samples of a round: stamps joined by sequence number and
//! converted to nanoseconds. The one place where ticks become time.

use super::arena::Row;
use super::{Flags, RoundSamples, Sample};
use wiregauge_base::units::Bytes;
use wiregauge_clock::offset::Model;
use wiregauge_clock::{LocalNs, Ticks, Timebase};

/// The time of each end.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// Of the client's clock.
    pub client: End<'a>,
    /// Of the server's.
    pub server: End<'a>,
    /// Of the clock of each thread of the client, or of each node, where they are on several hosts;
    /// else empty, and all have the client's.
    pub nodes: &'a [End<'a>],
    /// Whether they are clocks of two hosts.
    pub apart: bool,
    /// Whether the clocks of two hosts were compared.
    pub compared: bool,
}

/// The time of one end.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its clock's scale.
    pub time: &'a Timebase,
    /// Its clock against the controller's, where they are two and were compared.
    pub offset: Option<&'a Model>,
}

impl<'a> Times<'a> {
    /// Of two ends on one host.
    pub fn of_one_host(time: &'a Timebase) -> Times<'a> {
        let own = End { time, offset: None };
        Times { client: own, server: own, nodes: &[], apart: false, compared: false }
    }

    /// Whether a sample may have stamps of both ends: they are of one time.
    pub fn are_common(&self) -> bool {
        !self.apart || self.compared
    }

    /// That of a node, by its rank.
    pub fn node(&self, rank: usize) -> End<'a> {
        self.nodes.get(rank).copied().unwrap_or(self.client)
    }
}

/// The samples of messages that come back to the client.
pub fn round_trips(size: Bytes, client: &[Row], times: Times<'_>) -> Vec<Sample> {
    let rows = client.iter().enumerate();
    rows.map(|(sequence, row)| {
        let stamps = [Ticks(0), row.receive];
        sample(size, sequence as u64, row, stamps, row.flags, times.client)
    })
    .collect()
}

/// The samples of several threads, in the order of the threads, as those of one round: each has its
/// thread's number, and they stand in the order of time, so that what is slow at one time stands
/// together. Time is the stamp of the post, or of the arrival if it was not stamped.
pub fn pool(each: Vec<RoundSamples>) -> RoundSamples {
    let is_one = each.len() == 1;
    let mut pooled = RoundSamples::default();
    for (thread, round) in each.into_iter().enumerate() {
        let samples = round.samples.into_iter().map(|sample| sample.of_thread(thread as u32));
        pooled.samples.extend(samples);
        pooled = RoundSamples { samples: pooled.samples, ..round };
    }
    if !is_one {
        let time = |s: &Sample| if s.submit_ns.is_nan() { s.receive_ns } else { s.submit_ns };
        // Stable: equal stamps keep the order of the threads and of sending.
        pooled.samples.sort_by(|a, b| time(a).total_cmp(&time(b)));
    }
    pooled
}

impl End<'_> {
    /// A stamp in the run's common time, which is the controller's where the clocks were compared.
    pub fn stamp(&self, ticks: Ticks) -> f64 {
        if ticks.0 == 0 {
            return f64::NAN;
        }
        super::grid(self.instant(ticks).0)
    }

    /// An instant in the run's common time.
    pub fn instant(&self, ticks: Ticks) -> LocalNs {
        let local = self.time.local(ticks);
        self.offset.map_or(local, |offset| offset.here(local).0)
    }
}

/// A sample of a row; of its last two stamps who joins decides.
pub fn sample(
    size: Bytes,
    sequence: u64,
    row: &Row,
    [send, receive]: [Ticks; 2],
    flags: Flags,
    time: End<'_>,
) -> Sample {
    let size = size.0.min(u64::from(u32::MAX)) as u32;
    let stamps = [row.intended, row.submit, send, receive, row.complete];
    Sample::new(sequence, size, stamps.map(|ticks| time.stamp(ticks)), flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(stamps: &[(f64, f64)]) -> RoundSamples {
        let sample = |(sequence, (submit, receive)): (usize, &(f64, f64))| {
            let none = f64::NAN;
            let stamps = [none, *submit, none, *receive, none];
            Sample::new(sequence as u64, 8, stamps, Flags::default())
        };
        let samples = stamps.iter().enumerate().map(sample).collect();
        RoundSamples { run: 3, round: 2, samples }
    }

    #[test]
    fn samples_of_threads_stand_in_the_order_of_time_and_keep_their_thread() {
        let none = f64::NAN;
        let pooled = pool(vec![
            round(&[(1.0, 2.0), (5.0, none), (none, 7.0)]),
            round(&[(0.5, 9.0), (5.0, 6.0), (none, none)]),
        ]);
        assert_eq!((pooled.run, pooled.round, pooled.samples[0].size), (3, 2, 8));
        let order: Vec<(u32, u64)> =
            pooled.samples.iter().map(|s| (s.thread, s.sequence)).collect();
        assert_eq!(order, [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn a_stamp_is_the_time_since_the_epoch_by_the_scale() {
        let time = Timebase { epoch: Ticks(1000), ns_per_tick: 0.5 };
        let end = End { time: &time, offset: None };
        assert_eq!(end.stamp(Ticks(1007)), 3.5);
        assert!(end.stamp(Ticks(0)).is_nan());
    }

    #[test]
    fn one_thread_keeps_its_order_of_sending() {
        let pooled = pool(vec![round(&[(3.0, 4.0), (1.0, 2.0)])]);
        let order: Vec<u64> = pooled.samples.iter().map(|s| s.sequence).collect();
        assert_eq!((order, pooled.run), (vec![0, 1], 3));
    }
}
