//! What a process or a thread used between two moments.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What was used so far; the difference of two says what was used between them (getrusage).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUse {
    /// User CPU time in nanoseconds. The kernel may count in ticks of 1 to 10 ms.
    pub user_ns: f64,
    /// System CPU time in nanoseconds, as coarse.
    pub system_ns: f64,
    /// CPU time of both kinds in nanoseconds, exact: by the clock of the thread.
    pub cpu_ns: f64,
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
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            page_faults: count(usage.minor_page_faults()) + count(usage.major_page_faults()),
        }
    }

    /// What two have used together.
    #[must_use]
    pub fn and(&self, other: &ResourceUse) -> ResourceUse {
        self.combine(other, 1.0, u64::saturating_add)
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &ResourceUse) -> ResourceUse {
        self.combine(earlier, -1.0, u64::saturating_sub)
    }

    fn combine(&self, b: &ResourceUse, sign: f64, count: fn(u64, u64) -> u64) -> ResourceUse {
        let (a, ns) = (self, |a: f64, b: f64| (a + sign * b).max(0.0));
        ResourceUse {
            user_ns: ns(a.user_ns, b.user_ns),
            system_ns: ns(a.system_ns, b.system_ns),
            cpu_ns: ns(a.cpu_ns, b.cpu_ns),
            voluntary_switches: count(a.voluntary_switches, b.voluntary_switches),
            involuntary_switches: count(a.involuntary_switches, b.involuntary_switches),
            page_faults: count(a.page_faults, b.page_faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_pages_are_counted_as_faults_and_the_difference_holds_only_them() {
        let before = ResourceUse::of_thread();
        let mut region = vec![0u8; 64 * rustix::param::page_size()];
        super::super::touch(&mut region);
        let used = ResourceUse::of_thread().since(&before);
        assert!(ResourceUse::of_thread().page_faults >= used.page_faults);
        assert_eq!(before.since(&before), ResourceUse::default());
    }

    #[test]
    fn a_difference_is_never_negative() {
        let more = ResourceUse { user_ns: 5.0, page_faults: 3, ..ResourceUse::default() };
        assert_eq!(ResourceUse::default().since(&more), ResourceUse::default());
    }
}
