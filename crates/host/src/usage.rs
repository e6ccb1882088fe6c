//! What a process or a thread used between two moments.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What was used so far; the difference of two says what was used between them (getrusage).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUse {
    /// User CPU time in nanoseconds. The kernel may count in ticks of 1 to 10 ms.
    pub user_ns: f64,
    /// System CPU time in nanoseconds, as coarse.
    pub system_ns: f64,
    /// CPU time of both kinds in nanoseconds, exact: by the clock of the thread.
    pub cpu_ns: f64,
    /// For how long it was ready to run and another thread had its CPU, in nanoseconds; `None`: the
    /// kernel does not count that.
    pub waited_ns: Option<f64>,
    /// Context switches that were asked for (a blocking call).
    pub voluntary_switches: u64,
    /// Context switches that were suffered (preemption).
    pub involuntary_switches: u64,
    /// Page faults, those served from memory and those from a device.
    pub page_faults: u64,
}

impl ResourceUse {
    /// Of the calling thread, so far.
    pub fn of_thread() -> ResourceUse {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return ResourceUse::default() };
        let ns = |time: TimeVal| time.num_microseconds() as f64 * 1e3;
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        ResourceUse {
            user_ns: ns(usage.user_time()),
            system_ns: ns(usage.system_time()),
            cpu_ns: cpu.tv_sec as f64 * 1e9 + cpu.tv_nsec as f64,
            waited_ns: waited_ns(),
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            page_faults: count(usage.minor_page_faults()) + count(usage.major_page_faults()),
        }
    }

    /// What two have used together.
    #[must_use]
    pub fn and(&self, other: &ResourceUse) -> ResourceUse {
        let waited_ns = match (self.waited_ns, other.waited_ns) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        ResourceUse { waited_ns, ..self.combine(other, 1.0, u64::saturating_add) }
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &ResourceUse) -> ResourceUse {
        let waited = self.waited_ns.zip(earlier.waited_ns);
        let waited_ns = waited.map(|(now, earlier)| (now - earlier).max(0.0));
        ResourceUse { waited_ns, ..self.combine(earlier, -1.0, u64::saturating_sub) }
    }

    fn combine(&self, b: &ResourceUse, sign: f64, count: fn(u64, u64) -> u64) -> ResourceUse {
        let (a, ns) = (self, |a: f64, b: f64| (a + sign * b).max(0.0));
        ResourceUse {
            user_ns: ns(a.user_ns, b.user_ns),
            system_ns: ns(a.system_ns, b.system_ns),
            cpu_ns: ns(a.cpu_ns, b.cpu_ns),
            waited_ns: None,
            voluntary_switches: count(a.voluntary_switches, b.voluntary_switches),
            involuntary_switches: count(a.involuntary_switches, b.involuntary_switches),
            page_faults: count(a.page_faults, b.page_faults),
        }
    }
}

/// Returns how many page faults of the calling thread were served from a device so far.
pub fn major_faults() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.ok().and_then(|usage| u64::try_from(usage.major_page_faults()).ok()).unwrap_or(0)
}

/// Readings of the clocks that are further apart are taken again ...
const MAX_APART: Duration = Duration::from_millis(1);
/// ... but no more often than this: a machine on which each pair is interrupted shows what it can.
const MAX_READINGS: u32 = 5;

/// Returns the time since the machine was started without that in which it slept, and that, which
/// is known to `MAX_APART`.
pub fn now_and_asleep() -> (Duration, Duration) {
    let mut now = time_by(ClockId::Monotonic);
    let mut with_sleep = time_by(ClockId::Boottime);
    for _ in 1..MAX_READINGS {
        let before = std::mem::replace(&mut now, time_by(ClockId::Monotonic));
        if now.saturating_sub(before) <= MAX_APART {
            return (now, with_sleep.saturating_sub(before));
        }
        with_sleep = time_by(ClockId::Boottime);
    }
    (now, with_sleep.saturating_sub(now))
}

/// Reads a clock.
fn time_by(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

/// The second number of /proc/thread-self/schedstat (Documentation/scheduler/sched-stats.rst): time
/// spent waiting to run on a CPU.
fn waited_ns() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_cpu_is_counted_where_the_kernel_counts_it() {
        let of = |waited_ns| ResourceUse { waited_ns, ..ResourceUse::default() };
        let (none, some) = (of(None), of(Some(5.0)));
        assert_eq!((none.and(&some).waited_ns, some.and(&some).waited_ns), (Some(5.0), Some(10.0)));
        assert_eq!(none.and(&none).waited_ns, None);
        assert_eq!(
            (some.since(&of(Some(2.0))).waited_ns, some.since(&none).waited_ns),
            (Some(3.0), None)
        );
        let is_counted = std::path::Path::new("/proc/thread-self/schedstat").exists();
        assert_eq!(ResourceUse::of_thread().waited_ns.is_some(), is_counted);
    }

    #[test]
    fn fresh_pages_are_counted_as_faults_and_the_difference_holds_only_them() {
        let before = ResourceUse::of_thread();
        let mut region = vec![0u8; 64 * rustix::param::page_size()];
        super::super::touch(&mut region);
        let used = ResourceUse::of_thread().since(&before);
        assert!(ResourceUse::of_thread().page_faults >= used.page_faults);
        let none = ResourceUse { waited_ns: None, ..before.since(&before) };
        assert_eq!(none, ResourceUse::default());
    }

    #[test]
    fn a_difference_is_never_negative() {
        let more = ResourceUse { user_ns: 5.0, page_faults: 3, ..ResourceUse::default() };
        assert_eq!(ResourceUse::default().since(&more), ResourceUse::default());
    }
}
