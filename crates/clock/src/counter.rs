//! What ticks are read from: the processor's counter, the kernel's raw clock, or a virtual one.

use super::{Clock, TickSpan, Ticks};
use rustix::time::ClockId;
use std::sync::atomic::{AtomicU64, Ordering};

/// The processor's own counter: TSC on x86-64, the generic timer (`cntvct_el0`) on AArch64.
///
/// **Fence policy**: `lfence; rdtsc`. LFENCE starts when all instructions before it have
/// completed and lets none after it begin until then (Intel SDM vol. 2, LFENCE; on AMD it is
/// dispatch-serialising, which Linux switches on where the processor does not promise it). So the
/// load that saw a message, and the instructions of a post, are done before the counter is read.
///
/// Nothing stands after the reading, because nothing need: what begins a message is a store (to
/// memory or to a doorbell), a store becomes visible only after it has retired, and retirement is
/// in program order, so it comes after the reading. A later *load* may run ahead of the reading,
/// and no stamp minds: the load that ends a message cannot see it before that store is visible.
/// Stores *before* the reading have retired but may still wait in the store buffer: a stamp after
/// a post says when the CPU had done with it, not when the device saw it.
///
/// On AArch64 `isb` takes the place of `lfence`: it waits for the instructions before it to
/// complete their context effects, not for loads; a `dsb ld` before it waits for those.
///
/// Use it only where [`Source::choose`] allows it: elsewhere its rate changes or CPUs differ.
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

impl Clock for Tsc {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn now(self) -> Ticks {
        let (low, high): (u32, u32);
        // SAFETY: LFENCE and RDTSC (Intel SDM vol. 2) write EAX and EDX only and touch neither
        // flags nor stack. Without `nomem` the compiler moves no memory access across the block.
        unsafe {
            core::arch::asm!(
                "lfence",
                "rdtsc",
                out("eax") low,
                out("edx") high,
                options(nostack, preserves_flags)
            );
        }
        Ticks(u64::from(high) << 32 | u64::from(low))
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn now(self) -> Ticks {
        let ticks: u64;
        // SAFETY: Linux lets user space read cntvct_el0 (CNTKCTL_EL1.EL0VCTEN); the barriers and
        // the read write only the named register. Without `nomem` no memory access moves across.
        unsafe {
            core::arch::asm!(
                "dsb ld",
                "isb",
                "mrs {ticks}, cntvct_el0",
                ticks = out(reg) ticks,
                options(nostack, preserves_flags)
            );
        }
        Ticks(ticks)
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline(always)]
    fn now(self) -> Ticks {
        KernelClock::MONOTONIC_RAW.now()
    }
}

/// `clock_gettime(2)` of one of the kernel's clocks: ticks are nanoseconds.
///
/// The kernel's vDSO orders its own reading of the counter; where the clock source has no vDSO
/// mode, the reading is a system call.
#[derive(Clone, Copy, Debug)]
pub struct KernelClock(ClockId);

impl KernelClock {
    /// CLOCK_MONOTONIC_RAW, since boot: no time daemon slews it.
    pub const MONOTONIC_RAW: KernelClock = KernelClock(ClockId::MonotonicRaw);
    /// CLOCK_MONOTONIC, since boot: its rate is what a time daemon makes of it.
    pub const MONOTONIC: KernelClock = KernelClock(ClockId::Monotonic);
    /// CLOCK_REALTIME, since 1970: what PTP and NTP keep right, and may set.
    pub const REALTIME: KernelClock = KernelClock(ClockId::Realtime);
}

impl Clock for KernelClock {
    #[inline(always)]
    fn now(self) -> Ticks {
        let now = rustix::time::clock_gettime(self.0);
        Ticks(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }
}

/// Time that somebody else moves: nanoseconds in a word, for simulated transports and tests.
#[derive(Clone, Copy, Debug)]
pub struct Virtual<'a>(pub &'a AtomicU64);

impl Virtual<'_> {
    /// Sets the time, in nanoseconds.
    pub fn set(self, ns: u64) {
        self.0.store(ns, Ordering::Relaxed);
    }

    /// Moves the time on by `ns` nanoseconds.
    pub fn advance(self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for Virtual<'_> {
    #[inline(always)]
    fn now(self) -> Ticks {
        Ticks(self.0.load(Ordering::Relaxed))
    }

    /// Nobody else moves the time while a loop waits for it.
    #[inline(always)]
    fn idle_until(self, at: Ticks) -> Ticks {
        self.0.fetch_max(at.0, Ordering::Relaxed);
        self.now()
    }
}

/// Any of the clocks, told apart at each reading (a branch that is always predicted): for loops
/// that are not compiled once for each clock.
#[derive(Clone, Copy, Debug)]
pub enum AnyClock {
    /// The processor's counter.
    Tsc,
    /// One of the kernel's clocks.
    Kernel(KernelClock),
    /// The clock of a simulation.
    Virtual(Virtual<'static>),
}

impl Clock for AnyClock {
    #[inline(always)]
    fn now(self) -> Ticks {
        match self {
            AnyClock::Tsc => Tsc.now(),
            AnyClock::Kernel(clock) => clock.now(),
            AnyClock::Virtual(clock) => clock.now(),
        }
    }

    #[inline(always)]
    fn idle_until(self, at: Ticks) -> Ticks {
        match self {
            AnyClock::Tsc => Tsc.idle_until(at),
            AnyClock::Kernel(clock) => clock.idle_until(at),
            AnyClock::Virtual(clock) => clock.idle_until(at),
        }
    }
}

/// The kernel's clock sources that are the processor's counter, or made from it.
pub const MADE_FROM_TSC: [&str; 5] =
    ["tsc", "kvm-clock", "xen", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

wiregauge_base::options::named_enum! {
    /// Which real clock a run uses; the preferred one first.
    pub enum Source {
        /// [`Tsc`].
        Tsc = "tsc",
        /// [`KernelClock::MONOTONIC_RAW`].
        MonotonicRaw = "monotonic_raw",
        /// [`KernelClock::REALTIME`], where the kernel says that PTP or NTP keeps it right: two
        /// hosts' readings are then of one time.
        Ptp = "ptp",
    }
}

impl Source {
    /// What orders a reading against the code around it, in words for the record.
    pub fn fences(self) -> &'static str {
        match (self, cfg!(target_arch = "x86_64"), cfg!(target_arch = "aarch64")) {
            (Source::Tsc, true, _) => {
                "lfence before rdtsc: earlier instructions are done; nothing after it: later \
                 stores become visible only when the reading has retired"
            }
            (Source::Tsc, _, true) => {
                "dsb ld and isb before cntvct_el0: earlier loads are done; nothing after it"
            }
            _ => "those of the kernel's clock_gettime",
        }
    }

    /// One reading, for control code.
    pub fn read(self) -> Ticks {
        self.clock().now()
    }

    /// The clock.
    pub fn clock(self) -> AnyClock {
        match self {
            Source::Tsc => AnyClock::Tsc,
            Source::MonotonicRaw => AnyClock::Kernel(KernelClock::MONOTONIC_RAW),
            Source::Ptp => AnyClock::Kernel(KernelClock::REALTIME),
        }
    }

    /// The best source that can be trusted on this machine, and why it was taken.
    pub fn choose() -> (Source, String) {
        const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
        let read = |name: &str| std::fs::read_to_string(format!("{FOLDER}/{name}")).ok();
        let current = read("current_clocksource");
        let available = read("available_clocksource").unwrap_or_default();
        Source::decide(promise(), current.as_deref().map(str::trim), available.trim())
    }

    /// The choice, from what the processor promises and what the kernel thinks of its counter.
    ///
    /// The processor must promise a constant rate (an emulated one, e.g. QEMU without KVM, does
    /// not). The kernel may contradict: at boot and by its watchdog it compares the counters of
    /// all CPUs, and a TSC found unstable or unsynchronised leaves the list of available sources.
    /// The paravirtual sources (`kvm-clock`, `xen`, Hyper-V's page) are themselves made from the
    /// TSC, so they contradict nothing. A source that an administrator preferred (`hpet`) while
    /// `tsc` stayed available does not either.
    fn decide(promise: Promise, current: Option<&str>, available: &str) -> (Source, String) {
        let what = match promise {
            Ok(what) => what,
            Err(why) => return (Source::MonotonicRaw, why.to_string()),
        };
        let Some(current) = current else {
            return (Source::Tsc, format!("{what}; the kernel's clock source is not readable"));
        };
        if MADE_FROM_TSC.contains(&current) {
            return (Source::Tsc, format!("{what}; the kernel's clock source is {current}"));
        }
        if available.split_whitespace().any(|s| s == "tsc") {
            let text = format!("{what}; the kernel uses {current} but keeps tsc available");
            return (Source::Tsc, text);
        }
        let text = format!(
            "the processor promises an {what}, but the kernel distrusts it: its clock source is \
             {current} and tsc is not among the available ones"
        );
        (Source::MonotonicRaw, text)
    }
}

/// What the processor promises of its counter, or why it promises nothing.
type Promise = Result<&'static str, &'static str>;

#[cfg(target_arch = "x86_64")]
fn promise() -> Promise {
    use core::arch::x86_64::__cpuid;
    use rustix::process::{TimeStampCounterReadability, time_stamp_counter_readability};
    const INVARIANT_TSC: u32 = 1 << 8;
    // CPUID needs no feature on x86-64, and a leaf is asked for only where leaf 0x80000000
    // says that it exists (Intel SDM vol. 2, CPUID).
    let invariant =
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT_TSC != 0;
    let forbidden =
        matches!(time_stamp_counter_readability(), Ok(TimeStampCounterReadability::RaiseSIGSEGV));
    match (invariant, forbidden) {
        (_, true) => Err("reading the TSC is forbidden to this process (PR_SET_TSC)"),
        (true, false) => Ok("invariant TSC (CPUID 0x80000007 EDX bit 8)"),
        (false, false) => {
            Err("the processor does not promise an invariant TSC (CPUID 0x80000007 EDX bit 8 is \
             clear, as on emulated machines), so the kernel's clock is read")
        }
    }
}

#[cfg(target_arch = "aarch64")]
fn promise() -> Promise {
    Ok("generic timer of the Arm architecture (cntvct_el0)")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn promise() -> Promise {
    Err("no counter of this architecture is supported, so the kernel's clock is read")
}

/// The middle of two readings, and half of the distance between them.
pub(super) fn middle(before: Ticks, after: Ticks) -> (Ticks, TickSpan) {
    let width = (after - before).0.max(0);
    (before + TickSpan(width / 2), TickSpan(width - width / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::options::Named;

    const INVARIANT: Promise = Ok("invariant TSC");

    fn decide(promise: Promise, current: Option<&str>, available: &str) -> Source {
        Source::decide(promise, current, available).0
    }

    #[test]
    fn without_the_promise_of_an_invariant_tsc_the_kernel_is_asked() {
        let none = Err("no promise");
        assert_eq!(decide(none, Some("tsc"), "tsc hpet"), Source::MonotonicRaw);
        assert_eq!(Source::decide(none, None, "").1, "no promise");
    }

    #[test]
    fn a_promise_that_the_kernel_does_not_contradict_is_taken() {
        for current in ["tsc", "kvm-clock", "xen", "hyperv_clocksource_tsc_page"] {
            assert_eq!(decide(INVARIANT, Some(current), current), Source::Tsc);
        }
        assert_eq!(decide(INVARIANT, Some("hpet"), "tsc hpet acpi_pm"), Source::Tsc);
        assert_eq!(decide(INVARIANT, None, ""), Source::Tsc);
        assert_eq!(decide(Ok("generic timer"), Some("arch_sys_counter"), ""), Source::Tsc);
    }

    #[test]
    fn a_tsc_that_the_kernel_took_off_its_list_is_not_taken() {
        let (source, reason) = Source::decide(INVARIANT, Some("hpet"), "hpet acpi_pm");
        assert_eq!(source, Source::MonotonicRaw);
        assert!(reason.contains("hpet") && reason.contains("distrusts"), "{reason}");
    }

    #[test]
    fn names_lead_back_to_their_source() {
        for source in Source::ALL.iter().copied() {
            assert_eq!(Source::from_name(source.name()), Some(source));
        }
        assert_eq!(Source::from_name("rdtsc"), None);
    }

    #[test]
    fn the_chosen_source_never_runs_backwards_on_one_thread() {
        let (source, reason) = Source::choose();
        assert!(!reason.is_empty());
        let mut last = source.read();
        for _ in 0..1000 {
            let now = source.read();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn virtual_time_moves_only_when_it_is_moved() {
        let word = AtomicU64::new(5);
        let clock = Virtual(&word);
        assert_eq!(clock.now(), Ticks(5));
        assert_eq!(clock.now(), Ticks(5));
        clock.advance(1_000);
        assert_eq!(clock.now(), Ticks(1_005));
        clock.set(7);
        assert_eq!(clock.now(), Ticks(7));
    }

    #[test]
    fn the_middle_of_two_readings_is_within_its_half_width_of_both() {
        let (at, half) = middle(Ticks(100), Ticks(107));
        assert_eq!((at, half), (Ticks(103), TickSpan(4)));
        assert_eq!(middle(Ticks(9), Ticks(8)), (Ticks(9), TickSpan(0)));
    }
}
