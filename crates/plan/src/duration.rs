//! Estimates the time of a plan, as far as it is known before anything runs.

use super::{Case, Plan, Wait};
use std::time::Duration;

/// Time to start the processes of a round on this host and to open its ends, in seconds.
const START_S: f64 = 0.1;
/// Time to start a round where another host takes part.
const REMOTE_START_S: f64 = 0.4;
/// Time to start the ranks of a launcher (MPI).
const LAUNCH_S: f64 = 1.5;
/// Time of a message and its answer where both ends poll, in seconds.
const POLLED_TRIP_S: f64 = 10e-6;
/// Time of a message and its answer where an end sleeps.
const WOKEN_TRIP_S: f64 = 60e-6;
/// Time of a message of a stream, in seconds.
const STREAMED_S: f64 = 1e-6;
/// Payload that a transport carries in a second, in bytes.
const BYTES_PER_S: f64 = 2e9;

impl Plan {
    /// Estimates for how long the rounds run: what the cases' times and rates say, and for a number
    /// of messages of a closed loop what a usual machine takes, which may be wrong by a factor of
    /// three. `None`: a round ends when a user ends it.
    pub fn duration(&self) -> Option<Duration> {
        let is_launched =
            self.cases.iter().any(|case| case.transport.descriptor().launcher.is_some());
        let start_s = if is_launched {
            LAUNCH_S
        } else if self.hosts.is_empty() {
            START_S
        } else {
            REMOTE_START_S
        };
        let mut pass_s = 0.0;
        for group in self.groups() {
            // A case without an end of its own stops with the others.
            let rounds = group.iter().filter_map(|number| self.cases.get(*number)?.round_s());
            pass_s += start_s + rounds.reduce(f64::max)?;
        }
        let all = Duration::try_from_secs_f64(pass_s * f64::from(self.rounds.most)).ok()?;
        let limit = self.time_limit.map(|limit| Duration::from_nanos(limit.0));
        Some(limit.map_or(all, |limit| all.min(limit)))
    }
}

impl Case {
    /// Estimates the length of a round in seconds. `None`: the case does not end it.
    fn round_s(&self) -> Option<f64> {
        if self.is_endless() {
            return None;
        }
        let time_s = self.bound.time.map(|time| time.0 as f64 * 1e-9);
        let count_s = self.bound.count.map(|count| {
            let messages = count.saturating_add(self.warmup);
            messages as f64 * self.message_s()
        });
        match (time_s, count_s) {
            (Some(time), Some(count)) => Some(time.min(count)),
            (time, count) => time.or(count),
        }
    }

    /// Estimates the time of a message in seconds.
    fn message_s(&self) -> f64 {
        if let Some(rate) = self.schedule.rate() {
            return 1.0 / rate.0.max(f64::MIN_POSITIVE);
        }
        let profile = self.profile();
        let is_stream = profile.queue_depth > 1;
        let trip_s = match self.wait {
            _ if is_stream => STREAMED_S,
            Wait::Busy => POLLED_TRIP_S,
            _ => WOKEN_TRIP_S,
        };
        let pause_s = profile.pause.0 as f64 * 1e-9 / f64::from(profile.burst.max(1));
        // Of many lengths the size is the longest, and few are as long.
        let bytes = if profile.has_many_lengths { 0 } else { self.size.0 };
        trip_s + pause_s + bytes as f64 / BYTES_PER_S
    }
}
