//! What a round has done in the last second, or whatever period was asked for, while it runs. The
//! controller reads it in the memory that the agents write anyway: rows, and what stands before
//! them. Nothing is asked of a measured loop.

use super::running_rank::RunningRank;
use std::time::{Duration, Instant};
use wiregauge_clock::{TickSpan, Timebase};
use wiregauge_sample::Flags;
use wiregauge_sample::arena::{Arena, BINS, Row, bin_middle};
use wiregauge_stats::Metric;
use wiregauge_stats::quantile::{least_samples, rank};
use wiregauge_transport::Role;

/// Rows that the quantiles of a period are made of, evenly spread: enough for a p99, and read in a
/// millisecond.
const ROWS_LOOKED_AT: usize = 1 << 14;

/// What came in one period of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// From the start of the round to the end of the period, in s.
    pub at_s: f64,
    /// How long it was, in s.
    pub length_s: f64,
    /// Messages handled in it.
    pub messages: u64,
    /// Messages that were given up in it.
    pub lost: u64,
    /// The metric of the quantiles; `None`: no end on this host times messages.
    pub metric: Option<Metric>,
    /// Its median in ns, infinite where half of the messages were lost; `None`: fewer than
    /// [`least_samples`] messages were timed or lost.
    pub p50_ns: Option<f64>,
    /// Its p99 in ns, infinite and absent as the median is.
    pub p99_ns: Option<f64>,
}

/// What is seen of a running round.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Messages handled so far.
    pub messages: u64,
    /// The period that has just ended, where periods were asked for.
    pub period: Option<Period>,
}

/// The periods of a round.
pub(super) struct Periods {
    every: Duration,
    began: Instant,
    last: Instant,
    due: Instant,
    handled: u64,
    lost: u64,
    metric: Option<Metric>,
    /// Of each of the client's threads: the rows that were seen, and the messages beyond them.
    threads: Vec<(usize, Vec<u32>)>,
}

impl Periods {
    /// Periods of a round that begins now, whose figures are of these metrics.
    pub fn new(every: Duration, metrics: &[Metric]) -> Periods {
        let began = Instant::now();
        // The others are of two ends, or of what no answer came to.
        let is_timed =
            |one: &&Metric| matches!(one, Metric::HalfRtt | Metric::Rtt | Metric::Response);
        Periods {
            every,
            began,
            last: began,
            due: began + every,
            handled: 0,
            lost: 0,
            metric: metrics.first().filter(is_timed).copied(),
            threads: Vec::new(),
        }
    }

    /// How long until the next is due.
    pub fn left(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// The period that has ended, if one has.
    pub fn ended(
        &mut self,
        handled: u64,
        ranks: &[RunningRank<'_>],
        time: &Timebase,
    ) -> Option<Period> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        // One that was missed altogether is in the length of the next.
        while self.due <= now {
            self.due += self.every;
        }
        let clients = || {
            let local =
                ranks.iter().filter(|one| one.role.side() == Role::Client && one.host.is_none());
            local.flat_map(|one| &one.threads).map(|thread| &thread.arena)
        };
        let all_lost = clients().map(Arena::lost).sum::<u64>();
        let lost = all_lost.saturating_sub(self.lost);
        let metric = self.metric.filter(|_| clients().next().is_some());
        let mut times = metric.map_or_else(Vec::new, |metric| self.times(clients(), metric, time));
        // Leaving them out would make a period with losses look faster than one without.
        times.push((f64::INFINITY, lost as f64));
        let [p50_ns, p99_ns] = [0.5, 0.99].map(|p| metric.and_then(|_| at(&mut times, p)));
        let period = Period {
            at_s: (now - self.began).as_secs_f64(),
            length_s: (now - self.last).as_secs_f64(),
            messages: handled.saturating_sub(self.handled),
            lost,
            metric,
            p50_ns,
            p99_ns,
        };
        (self.last, self.handled, self.lost) = (now, handled, all_lost);
        Some(period)
    }

    /// Times in ns with how many messages each stands for, of what came since the last look.
    fn times<'a>(
        &mut self,
        arenas: impl Iterator<Item = &'a Arena>,
        metric: Metric,
        time: &Timebase,
    ) -> Vec<(f64, f64)> {
        let ns = |ticks: f64| {
            let ns = ticks * time.span(TickSpan(1 << 20)) / f64::from(1 << 20);
            if metric == Metric::HalfRtt { ns / 2.0 } else { ns }
        };
        let mut times = Vec::new();
        for (number, arena) in arenas.enumerate() {
            if self.threads.len() <= number {
                self.threads.push((0, vec![0; BINS]));
            }
            let (seen, beyond) = &mut self.threads[number];
            let (rows, used) = arena.look(*seen, ROWS_LOOKED_AT);
            let each = (used - *seen) as f64 / rows.len().max(1) as f64;
            *seen = used;
            times.extend(rows.iter().filter_map(ticks).map(|ticks| (ns(ticks), each)));
            for (bin, count) in arena.beyond().enumerate() {
                let more = count.wrapping_sub(beyond[bin]);
                beyond[bin] = count;
                if more > 0 {
                    times.push((ns(bin_middle(bin)), f64::from(more)));
                }
            }
        }
        times
    }
}

/// The ticks of a row from its intended time, or its submit where it has none; `None`: no answer
/// has come, or it belongs to the warm-up.
fn ticks(row: &Row) -> Option<f64> {
    let from = if row.intended.0 != 0 { row.intended } else { row.submit };
    let is_whole = from.0 != 0 && row.receive.0 != 0 && !row.flags.has(Flags::WARMUP);
    is_whole.then(|| (row.receive - from).0 as f64)
}

/// A quantile of weighted times; `None`: they stand for too few messages.
fn at(times: &mut [(f64, f64)], p: f64) -> Option<f64> {
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = times.iter().map(|(_, weight)| weight).sum::<f64>().round() as u64;
    if all < least_samples(p) {
        return None;
    }
    let rank = rank(p, all) as f64;
    let mut counted = 0.0;
    let reached = |&&(_, weight): &&(f64, f64)| {
        counted += weight;
        counted >= rank - 0.5
    };
    times.iter().find(reached).or(times.last()).map(|(ns, _)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::Ticks;
    use wiregauge_sample::recorder::Recorder;

    fn periods() -> Periods {
        Periods::new(Duration::from_secs(1), &[Metric::HalfRtt, Metric::Rtt])
    }

    #[test]
    fn quantiles_of_a_period_are_those_of_its_messages_with_rows_and_without() {
        let mut arena = Arena::create(100).unwrap();
        let other = Arena::open(&arena.path()).unwrap();
        let mut periods = periods();
        let time = Timebase::nanoseconds(Ticks(0));
        let mut recorder = Recorder::new(&mut arena, 0);
        let mut send = |from: u64, to: u64, took: u64| {
            for sequence in from..to {
                let submit = 1000 + sequence * 10_000;
                let flags = Flags::default();
                recorder.round_trip(sequence, Ticks(submit), Ticks(submit + took), flags);
            }
        };
        let mut look = || {
            let mut times = periods.times(std::iter::once(&other), Metric::HalfRtt, &time);
            [0.5, 0.99].map(|p| at(&mut times, p))
        };
        send(0, 60, 2000);
        assert_eq!(look(), [Some(1000.0), None], "60 messages resolve no p99");
        assert_eq!(look(), [None, None], "nothing new");
        // 40 have a row, and 960 do not.
        send(60, 100, 4000);
        send(100, 1050, 4000);
        send(1050, 1060, 400_000);
        let [p50, p99] = look().map(Option::unwrap);
        assert!((p50 / 2000.0 - 1.0).abs() < 0.02, "{p50}");
        assert!((p99 / 2000.0 - 1.0).abs() < 0.02, "{p99}");
        send(1060, 1160, 400_000);
        let p50 = look()[0].unwrap();
        assert!((p50 / 200_000.0 - 1.0).abs() < 0.02, "{p50}");
    }

    #[test]
    fn a_quantile_is_shown_from_ten_messages_beyond_it_and_lost_ones_are_infinite() {
        let quantiles = |timed: f64, lost: f64| {
            let mut times = vec![(f64::INFINITY, lost), (1000.0, timed)];
            [0.5, 0.99].map(|p| at(&mut times, p))
        };
        let infinite = Some(f64::INFINITY);
        assert_eq!(quantiles(19.0, 0.0), [None, None]);
        assert_eq!(quantiles(20.0, 0.0), [Some(1000.0), None]);
        assert_eq!(quantiles(999.0, 0.0), [Some(1000.0), None]);
        assert_eq!(quantiles(1000.0, 0.0), [Some(1000.0), Some(1000.0)]);
        assert_eq!(quantiles(990.0, 10.0), [Some(1000.0), Some(1000.0)]);
        assert_eq!(quantiles(989.0, 11.0), [Some(1000.0), infinite]);
        assert_eq!(quantiles(0.0, 30.0), [infinite, None]);
    }

    #[test]
    fn a_period_has_what_came_since_the_last_one() {
        let mut periods = periods();
        let time = Timebase::nanoseconds(Ticks(0));
        assert_eq!(periods.ended(5, &[], &time), None, "not due");
        let turn = |periods: &mut Periods| periods.due = Instant::now();
        turn(&mut periods);
        let first = periods.ended(1000, &[], &time).unwrap();
        turn(&mut periods);
        let second = periods.ended(1500, &[], &time).unwrap();
        assert_eq!((first.messages, second.messages, second.metric), (1000, 500, None));
        assert!(second.at_s >= first.at_s && second.length_s <= second.at_s);
    }

    #[test]
    fn lost_messages_are_counted_while_the_loop_runs() {
        let mut arena = Arena::create(1).unwrap();
        let other = Arena::open(&arena.path()).unwrap();
        let mut recorder = Recorder::new(&mut arena, 0);
        (0..3).for_each(|sequence| recorder.unanswered(sequence, Ticks(0), Ticks(5)));
        assert_eq!(other.lost(), 3);
    }
}
