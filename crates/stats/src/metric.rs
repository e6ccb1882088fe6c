//! What was measured: from the stamps of a round to durations per metric.

use wiregauge_base::options::Named;
use wiregauge_sample::{Flags, RoundSamples, Sample};

wiregauge_base::options::named_enum! {
    /// The names of metrics.
    #[derive(PartialOrd, Ord)]
    pub enum Metric {
        /// From submit to the receipt of the reply.
        Rtt = "rtt",
        /// Half of `rtt`. Never called one-way.
        HalfRtt = "half_rtt",
        /// From the submit at one end to the receipt at the other.
        OneWay = "one_way",
        /// From the intended time to the receipt.
        Response = "response",
        /// From the actual submit to the receipt, where a schedule set the intended time.
        Service = "service",
        /// From the last time that stood in the message when the adapter took it to the sight of
        /// it.
        Transfer = "transfer",
        /// From the intended time to the actual submit: what the generator, or the lack of a
        /// buffer, adds to a response.
        Lateness = "lateness",
        /// Of a stream: how much the one-way times of two samples differ that arrived and follow
        /// each other.
        Jitter = "jitter",
        /// Of `rpc`: what the shortest tenth of all requests takes.
        Short = "short",
        /// Of an operation of all ranks: from the first entry to the last exit, on common time.
        Collective = "collective",
        /// Of such an operation at one rank by its own clock, from the exit of a barrier on: what
        /// other benchmarks print.
        AfterBarrier = "after_barrier",
        /// From submit until the post has returned.
        Post = "post",
        /// From submit until the completion was seen.
        Complete = "complete",
    }
}

wiregauge_base::options::named_enum! {
    /// The names of rates.
    #[derive(PartialOrd, Ord)]
    pub enum RateMetric {
        /// Payload bytes that arrived per second, by the receiver's clock.
        Bandwidth = "bandwidth",
        /// Payload bytes per second that arrived at the server, where both ends send.
        BandwidthThere = "bandwidth_there",
        /// Payload bytes per second that arrived at the client, where both ends send.
        BandwidthBack = "bandwidth_back",
        /// Messages that arrived per second, by the receiver's clock.
        MessageRate = "message_rate",
        /// Messages that the schedule intended per second.
        OfferedRate = "offered_rate",
        /// Messages that were posted per second.
        AchievedRate = "achieved_rate",
        /// CPU time of the client's thread for a message.
        CpuClient = "cpu_client",
        /// CPU time of the server's thread for a message.
        CpuServer = "cpu_server",
        /// Completions that a poll of the server brought which brought any.
        CompletionsPerPoll = "completions_per_poll",
        /// Time of the server for a read: from the wish for a transmit buffer until it was there.
        BufferTime = "buffer_time",
        /// Time of the server for a read in polls that brought no completion.
        EmptyPollTime = "empty_poll_time",
        /// Time of the server for a read in polls that brought completions.
        FullPollTime = "full_poll_time",
        /// Polls of the server for a read that brought no completion.
        EmptyPolls = "empty_polls",
        /// Polls of the server for a read that brought completions.
        FullPolls = "full_polls",
        /// Requests that a poll of the server brought which brought any.
        RequestsPerPoll = "requests_per_poll",
        /// Of `buffer_time` what went into polls.
        BufferPollTime = "buffer_poll_time",
        /// Of `buffer_time` what went into polls that brought no completion.
        BufferEmptyPollTime = "buffer_empty_poll_time",
        /// Of `buffer_time` what went into polls that brought completions.
        BufferFullPollTime = "buffer_full_poll_time",
        /// Of a stream: bytes per second at its rate, less the steps that were missed.
        Ceiling = "ceiling",
        /// Of a stream: the share of its steps for which nothing was sent.
        Missed = "missed",
        /// Of `exchange`: the bandwidth over the number of links that are in use at the same time.
        LinkBandwidth = "link_bandwidth",
        /// Of `rpc`: the mean of a request's time over an unloaded one's of its length.
        Slowdown = "slowdown",
    }
}

impl Metric {
    /// Whether it begins at one end and ends at the other.
    pub fn is_between_ends(self) -> bool {
        matches!(
            self,
            Metric::OneWay
                | Metric::Response
                | Metric::Service
                | Metric::Transfer
                | Metric::Collective
        )
    }

    /// The metric of a name.
    pub fn from_name(name: &str) -> Option<Metric> {
        Named::from_name(name)
    }

    /// The duration of one sample in ns: +infinity where the message was lost, `None` where this
    /// metric has no sample (a stamp that was never to be taken).
    pub fn of_sample(self, s: &Sample) -> Option<f64> {
        let is_other = self == Metric::Collective
            && (s.flags.has(Flags::UNALIGNED) || s.flags.has(Flags::OVERLAPPED));
        if s.flags.has(Flags::MISSED) || is_other {
            return None;
        }
        let (start, end) = match self {
            Metric::Rtt | Metric::HalfRtt | Metric::OneWay | Metric::Jitter | Metric::Service => {
                (s.submit_ns, s.receive_ns)
            }
            Metric::Collective | Metric::AfterBarrier => (s.submit_ns, s.receive_ns),
            Metric::Response => (s.intended_ns, s.receive_ns),
            Metric::Lateness => (s.intended_ns, s.submit_ns),
            Metric::Transfer => (s.send_ns, s.receive_ns),
            Metric::Post | Metric::Complete => (s.submit_ns, s.complete_ns),
            // Which are the shortest only all of them tell.
            Metric::Short => return None,
        };
        if start.is_nan() {
            return None;
        }
        if matches!(self, Metric::Post | Metric::Complete | Metric::Lateness) {
            // Not every post is signalled; one that has no completion was not lost by that, nor was
            // one that was sent late.
            return (!end.is_nan()).then_some(end - start);
        }
        if end.is_nan() || s.flags.has(Flags::LOST) {
            return Some(f64::INFINITY);
        }
        Some(if self == Metric::HalfRtt { (end - start) / 2.0 } else { end - start })
    }
}

/// What the figures of a rate are in, in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// Bytes per second.
    BytesPerSecond,
    /// Messages per second.
    MessagesPerSecond,
    /// Nanoseconds for a message or a read.
    Nanoseconds,
    /// A number for a poll.
    PerPoll,
    /// A number for a read.
    PerRead,
    /// A share of 1.
    Share,
    /// A ratio.
    Ratio,
}

impl RateMetric {
    /// What its figures are in.
    pub fn unit(self) -> RateUnit {
        use RateMetric::*;
        match self {
            Bandwidth | BandwidthThere | BandwidthBack | LinkBandwidth | Ceiling => {
                RateUnit::BytesPerSecond
            }
            MessageRate | OfferedRate | AchievedRate => RateUnit::MessagesPerSecond,
            CpuClient | CpuServer => RateUnit::Nanoseconds,
            BufferTime | EmptyPollTime | FullPollTime => RateUnit::Nanoseconds,
            BufferPollTime | BufferEmptyPollTime | BufferFullPollTime => RateUnit::Nanoseconds,
            CompletionsPerPoll | RequestsPerPoll => RateUnit::PerPoll,
            EmptyPolls | FullPolls => RateUnit::PerRead,
            Missed => RateUnit::Share,
            Slowdown => RateUnit::Ratio,
        }
    }

    /// Those of the server's pools of `load`.
    pub fn of_pools() -> impl Iterator<Item = RateMetric> {
        let pools = RateMetric::CompletionsPerPoll..=RateMetric::BufferFullPollTime;
        RateMetric::ALL.iter().copied().filter(move |metric| pools.contains(metric))
    }

    /// The rate of a name.
    pub fn from_name(name: &str) -> Option<RateMetric> {
        Named::from_name(name)
    }
}

/// Durations of one metric in ns, in the order of sending, without the warm-up (which stays in the
/// samples and is counted there). A lost message is +infinity; a late, reordered, repeated or
/// corrupt one keeps its latency. `collective` leaves out operations that a rank entered late, and
/// those that were to overlap with computing. The metric leaves out samples without the stamp where
/// it starts (`post` and `complete` also those without the one where they end), and missed steps.
/// `jitter` has one duration less than samples have arrived.
pub fn durations(round: &RoundSamples, metric: Metric) -> Vec<f64> {
    let kept = round.samples.iter().filter(|s| !s.flags.has(Flags::WARMUP));
    let all: Vec<f64> = kept.filter_map(|s| metric.of_sample(s)).collect();
    if metric != Metric::Jitter {
        return all;
    }
    let arrived: Vec<f64> = all.into_iter().filter(|ns| ns.is_finite()).collect();
    arrived.windows(2).map(|two| (two[1] - two[0]).abs()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(samples: &[(f64, f64, f64, f64, Flags)]) -> RoundSamples {
        let sample = |(i, s): (usize, &(f64, f64, f64, f64, Flags))| Sample {
            thread: 0,
            sequence: i as u64,
            size: 8,
            intended_ns: s.0,
            submit_ns: s.1,
            send_ns: s.1 + 0.5,
            receive_ns: s.2,
            complete_ns: s.3,
            flags: s.4,
        };
        RoundSamples {
            samples: samples.iter().enumerate().map(sample).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn a_metric_lies_between_the_ends_or_at_one_of_them() {
        let between = Metric::ALL.iter().filter(|metric| metric.is_between_ends());
        let names: Vec<&str> = between.map(|metric| metric.name()).collect();
        assert_eq!(names, ["one_way", "response", "service", "transfer", "collective"]);
    }

    #[test]
    fn each_metric_has_its_two_stamps() {
        let r = round(&[(10.0, 12.0, 20.0, 13.0, Flags::default())]);
        let single = Metric::ALL.iter().copied();
        let single = single.filter(|m| !matches!(m, Metric::Jitter | Metric::Short));
        let got: Vec<f64> = single.map(|m| durations(&r, m)[0]).collect();
        assert_eq!(got, [8.0, 4.0, 8.0, 10.0, 8.0, 7.5, 2.0, 8.0, 8.0, 1.0, 1.0]);
    }

    #[test]
    fn warm_up_is_left_out_and_the_lost_are_infinite() {
        let none = f64::NAN;
        let r = round(&[
            (0.0, 0.0, 99.0, 1.0, Flags::WARMUP),
            (0.0, 0.0, none, 1.0, Flags::default()),
            (0.0, 0.0, 7.0, none, Flags::LOST),
            (0.0, 0.0, none, none, Flags::LOST.with(Flags::WARMUP)),
            (none, 1.0, 3.0, 2.0, Flags::default()),
        ]);
        assert_eq!(durations(&r, Metric::Rtt), [f64::INFINITY, f64::INFINITY, 2.0]);
        assert_eq!(durations(&r, Metric::Response), [f64::INFINITY, f64::INFINITY]);
        assert_eq!(durations(&r, Metric::Complete), [1.0, 1.0]);
    }

    #[test]
    fn jitter_is_of_samples_that_arrived_and_a_missed_step_is_none() {
        let none = f64::NAN;
        let r = round(&[
            (0.0, 0.0, 5.0, 1.0, Flags::default()),
            (1.0, none, none, none, Flags::MISSED),
            (2.0, 2.0, none, 3.0, Flags::LOST),
            (3.0, 3.0, 5.0, 4.0, Flags::default()),
            (4.0, 5.0, 13.0, 6.0, Flags::default()),
        ]);
        assert_eq!(durations(&r, Metric::Jitter), [3.0, 6.0]);
        assert_eq!(durations(&r, Metric::OneWay), [5.0, f64::INFINITY, 2.0, 8.0]);
        assert_eq!(durations(&r, Metric::Response), [5.0, f64::INFINITY, 2.0, 9.0]);
        assert_eq!(durations(&r, Metric::Lateness), [0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn reordered_late_and_corrupt_messages_keep_their_latency() {
        let flags = [Flags::REORDERED, Flags::LATE, Flags::CORRUPT, Flags::DUPLICATE];
        let r = round(&flags.map(|f| (0.0, 0.0, 5.0, 1.0, f)));
        assert_eq!(durations(&r, Metric::OneWay), [5.0; 4]);
    }

    #[test]
    fn an_operation_that_a_rank_entered_late_or_that_overlaps_is_left_out_of_its_time_alone() {
        let of = |flags| (0.0, 1.0, 9.0, f64::NAN, flags);
        let r = round(&[of(Flags::default()), of(Flags::UNALIGNED), of(Flags::OVERLAPPED)]);
        assert_eq!(durations(&r, Metric::Collective), [8.0]);
        assert_eq!(durations(&r, Metric::Lateness), [1.0; 3]);
    }

    #[test]
    fn names_are_those_of_the_record() {
        for &m in Metric::ALL {
            assert_eq!(serde_json::to_value(m).unwrap(), m.name());
            assert_eq!(Metric::from_name(m.name()), Some(m));
        }
        for &m in RateMetric::ALL {
            assert_eq!(serde_json::to_value(m).unwrap(), m.name());
            assert_eq!(RateMetric::from_name(m.name()), Some(m));
        }
    }
}
