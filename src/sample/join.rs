//! From the rows of both roles to the samples of a round: stamps joined by sequence number and
//! converted to nanoseconds. The one place where ticks become time.

use super::arena::Row;
use super::{Flags, RoundSamples, Sample};
use crate::clock::offset::Model;
use crate::clock::{Ticks, Timebase};
use crate::plan::{Direction, Pattern};

/// What the join needs to know of the round.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The pattern.
    pub pattern: Pattern,
    /// One way or both.
    pub direction: Direction,
    /// Whether the server took no part: then what arrived is what completed at the client.
    pub one_sided: bool,
    /// Payload bytes.
    pub size: u32,
    /// Messages for one sample.
    pub stride: u64,
}

/// Joins what two ends of one host saw. Stamps are on the grid of `samples.parquet`, so that memory
/// and file agree.
pub fn join(shape: Shape, client: &[Row], server: &[Row], time: &Timebase) -> RoundSamples {
    let own = End { time, offset: None };
    join_of(shape, client, server, Times { client: own, server: own, apart: false })
}

/// The time of each end.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// Of the client's clock.
    pub client: End<'a>,
    /// Of the server's.
    pub server: End<'a>,
    /// Whether they are clocks of two hosts. A sample has stamps of both only where the offsets
    /// are known.
    pub apart: bool,
}

/// The time of one end.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its clock's scale.
    pub time: &'a Timebase,
    /// Its clock against the driver's, where they are two and were compared.
    pub offset: Option<&'a Model>,
}

/// The same of two ends wherever they are.
pub fn join_of(shape: Shape, client: &[Row], server: &[Row], times: Times<'_>) -> RoundSamples {
    let time = times.client;
    let samples = match shape.pattern {
        Pattern::Latency | Pattern::Load => client
            .iter()
            .enumerate()
            .map(|(sequence, row)| {
                sample(shape, sequence as u64, row, [Ticks(0), row.receive], row.flags, time)
            })
            .collect(),
        Pattern::Oneway => one_way(shape, client, server, times),
        Pattern::Bandwidth => flows(shape, client, server, times),
    };
    RoundSamples { run: 0, round: 0, samples }
}

/// The samples of several threads, in the order of the threads, as those of one round: each has its
/// thread's number, and they stand in the order of time, so that what is slow at one time stands
/// together. Time is the stamp of the post, or of the arrival where there is none.
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
    /// A stamp in the run's common time, which is the driver's where the clocks were compared.
    fn stamp(&self, ticks: Ticks) -> f64 {
        if ticks.0 == 0 {
            return f64::NAN;
        }
        let local = self.time.local(ticks);
        super::grid(match self.offset {
            Some(offset) => offset.here(local).0.0,
            None => self.time.global(local).0,
        })
    }
}

/// A sample of a row; of its last two stamps who joins decides.
fn sample(
    shape: Shape,
    sequence: u64,
    row: &Row,
    [send, receive]: [Ticks; 2],
    flags: Flags,
    time: End<'_>,
) -> Sample {
    let stamps = [row.intended, row.submit, send, receive, row.complete];
    Sample::new(sequence, shape.size, stamps.map(|ticks| time.stamp(ticks)), flags)
}

fn one_way(shape: Shape, client: &[Row], server: &[Row], times: Times<'_>) -> Vec<Sample> {
    let sent = client.iter().enumerate();
    let joined = sent.map(|(sequence, row)| {
        let there = server.get(sequence).copied().unwrap_or_default();
        // Whether the answer was lost says nothing of the way there.
        let kept = Flags(row.flags.0 & Flags::WARMUP.with(Flags::MISSED).0);
        let arrived = Flags(there.flags.0 & !Flags::WARMUP.0);
        let is_lost = there.receive.0 == 0 && !kept.has(Flags::MISSED);
        let lost = if is_lost { Flags::LOST } else { Flags::default() };
        let flags = kept.with(arrived).with(lost);
        // Of a message that has arrived, the server's row has the time that stood in it.
        let stamps = [there.submit, Ticks(0)];
        let mut joined = sample(shape, sequence as u64, row, stamps, flags, times.client);
        joined.receive_ns = times.server.stamp(there.receive);
        joined
    });
    joined.collect()
}

fn flows(shape: Shape, client: &[Row], server: &[Row], times: Times<'_>) -> Vec<Sample> {
    let last_of = |row: usize| (row as u64 + 1) * shape.stride - 1;
    let marks = |rows: &[Row], sent: &[Row], flag: Flags, time: End<'_>| -> Vec<Sample> {
        let received = rows.iter().enumerate();
        received
            .map(|(number, row)| {
                let submit = sent.get(number).map_or(Ticks(0), |row| row.submit);
                let both = Row { submit, ..*row };
                let flags = row.flags.with(flag);
                sample(shape, last_of(number), &both, [Ticks(0), row.receive], flags, time)
            })
            .collect()
    };
    match shape.direction {
        Direction::Uni if shape.one_sided => marks(client, client, Flags::default(), times.client),
        Direction::Uni if times.apart => marks(server, &[], Flags::default(), times.server),
        Direction::Uni => marks(server, client, Flags::default(), times.server),
        Direction::Bi => {
            let mut all = marks(server, &[], Flags::default(), times.server);
            all.extend(marks(client, &[], Flags::REVERSE, times.client));
            all
        }
    }
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
    fn one_thread_keeps_its_order_of_sending() {
        let pooled = pool(vec![round(&[(3.0, 4.0), (1.0, 2.0)])]);
        let order: Vec<u64> = pooled.samples.iter().map(|s| s.sequence).collect();
        assert_eq!((order, pooled.run), (vec![0, 1], 3));
    }
}
