//! What kept a CPU or a thread from its work: intervals between two stamps.

use super::apart::cpu_name;
use super::gaps::Ticks;
use super::stamps::Stamps;
use super::{Cause, Named};
use std::collections::BTreeMap;
use wiregauge_host::trace::{Kind, Stamp, Trace};

/// `__TASK_STOPPED` and `__TASK_TRACED` of <linux/sched.h>.
const STOPPED: u32 = 0x4 | 0x8;
/// `TASK_UNINTERRUPTIBLE`.
const UNINTERRUPTIBLE: u32 = 0x2;
/// Threads whose name says that they do the network's deferred work.
const KSOFTIRQD: &str = "ksoftirqd/";

/// Names of SoftIRQs, as /proc/softirqs has them.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Whose work did not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    Cpu(u16),
    Thread(u32),
}

/// One interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    pub from_ns: f64,
    pub to_ns: f64,
    pub cause: Named,
    /// How much of it was lost: all, but where the CPU was only slower.
    pub share: f64,
}

/// All of a round, by whom they held up.
#[derive(Clone, Debug, Default)]
pub struct Disturbances {
    each: BTreeMap<Held, Vec<Disturbance>>,
    /// The latest end of all up to each one.
    ends: BTreeMap<Held, Vec<f64>>,
    /// When the timers of CPUs ticked.
    pub ticks: Ticks,
}

impl Disturbances {
    /// Reads them from the stamps of a round.
    pub fn new(trace: &Trace, stamps: &Stamps<'_>) -> Disturbances {
        let mut reader = Reader { trace, found: Disturbances::default(), open: BTreeMap::new() };
        let mut threads = BTreeMap::new();
        for (stamp, time) in stamps.all.iter().zip(&stamps.times_ns) {
            reader.interrupt(stamp, *time);
            reader.thread(stamp, *time, &mut threads);
        }
        reader.frequencies(stamps);
        let mut found = Disturbances { ticks: Ticks::new(stamps), ..reader.found };
        for (held, own) in &mut found.each {
            own.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
            let mut last = f64::NEG_INFINITY;
            let ends = own.iter().map(|one| {
                last = last.max(one.to_ns);
                last
            });
            found.ends.insert(*held, ends.collect());
        }
        found
    }

    /// Those that overlap a time, each with how much of that was lost.
    pub fn within(&self, held: Held, from_ns: f64, to_ns: f64) -> Vec<(&Disturbance, f64)> {
        let (Some(own), Some(ends)) = (self.each.get(&held), self.ends.get(&held)) else {
            return Vec::new();
        };
        let end = own.partition_point(|one| one.from_ns < to_ns);
        let begin = ends[..end].partition_point(|latest| *latest <= from_ns);
        let overlap =
            |one: &Disturbance| (one.to_ns.min(to_ns) - one.from_ns.max(from_ns)) * one.share;
        let all = own[begin..end].iter().map(|one| (one, overlap(one)));
        all.filter(|(_, overlap)| *overlap > 0.0).collect()
    }
}

/// A thread that is not on a CPU.
#[derive(Clone, Copy)]
struct Away {
    since_ns: f64,
    state: u32,
    /// Who took the CPU.
    next: u32,
    /// Whether that is one of ours.
    next_is_ours: bool,
    woken_ns: Option<f64>,
}

struct Reader<'a> {
    trace: &'a Trace,
    found: Disturbances,
    /// Interrupts that have begun, by CPU and kind.
    open: BTreeMap<(u16, u8), (f64, u32)>,
}

impl Reader<'_> {
    fn add(&mut self, held: Held, from_ns: f64, to_ns: f64, cause: Named) {
        let own = self.found.each.entry(held).or_default();
        own.push(Disturbance { from_ns, to_ns, cause, share: 1.0 });
    }

    /// Times at which a CPU ran at less than the highest frequency that it had in the round. What
    /// it did in `t` at a frequency f takes `t f / highest` at that, so the rest was lost.
    fn frequencies(&mut self, stamps: &Stamps<'_>) {
        let mut changes: BTreeMap<u16, Vec<(f64, u32)>> = BTreeMap::new();
        for (stamp, time) in stamps.all.iter().zip(&stamps.times_ns) {
            if let (Kind::Frequency, Ok(cpu)) = (stamp.kind, u16::try_from(stamp.flow)) {
                changes.entry(cpu).or_default().push((*time, stamp.number));
            }
        }
        for (cpu, changes) in changes {
            let highest = changes.iter().map(|(_, khz)| *khz).max().unwrap_or(0);
            let ends = changes.iter().skip(1).map(|(time, _)| *time).chain([f64::INFINITY]);
            for ((from_ns, khz), to_ns) in changes.iter().copied().zip(ends) {
                if khz < highest {
                    let [now, most] = [khz, highest].map(|khz| khz / 1000);
                    let who = format!("CPU {} at {now} of {most} MHz", cpu_name(cpu.into()));
                    let cause = Named { cause: Cause::Frequency, who };
                    let share = 1.0 - f64::from(khz) / f64::from(highest);
                    let own = self.found.each.entry(Held::Cpu(cpu)).or_default();
                    own.push(Disturbance { from_ns, to_ns, cause, share });
                }
            }
        }
    }

    fn interrupt(&mut self, stamp: &Stamp, time: f64) {
        let (slot, is_entry) = match stamp.kind {
            Kind::IrqEntry => (0, true),
            Kind::IrqExit => (0, false),
            Kind::TimerEntry => (1, true),
            Kind::TimerExit => (1, false),
            Kind::SoftirqEntry => (2, true),
            Kind::SoftirqExit => (2, false),
            _ => return,
        };
        if is_entry {
            self.open.insert((stamp.cpu, slot), (time, stamp.number));
            return;
        }
        let Some((from, number)) = self.open.remove(&(stamp.cpu, slot)) else { return };
        let (cause, who) = match slot {
            0 => {
                let name = self.trace.interrupts.get(&number).cloned();
                (Cause::Interrupt, name.unwrap_or_else(|| format!("IRQ {number}")))
            }
            1 => (Cause::Timer, format!("on CPU {}", cpu_name(stamp.cpu.into()))),
            _ => {
                let name = SOFTIRQS.get(number as usize).copied().unwrap_or("unknown");
                (Cause::Softirq, format!("{name} on CPU {}", cpu_name(stamp.cpu.into())))
            }
        };
        self.add(Held::Cpu(stamp.cpu), from, time, Named { cause, who });
    }

    fn thread(&mut self, stamp: &Stamp, time: f64, threads: &mut BTreeMap<u32, Away>) {
        match stamp.kind {
            Kind::Waking => {
                if let Some(away) = threads.get_mut(&stamp.flow) {
                    away.woken_ns = Some(time);
                }
            }
            Kind::Switch => {
                if stamp.length & 2 != 0
                    && let Some(away) = threads.remove(&stamp.flow)
                {
                    self.came_back(stamp, time, away);
                }
                if stamp.length & 1 != 0 {
                    let away = Away {
                        since_ns: time,
                        state: stamp.number,
                        next: stamp.flow,
                        next_is_ours: stamp.length & 2 != 0,
                        woken_ns: None,
                    };
                    threads.insert(stamp.tid, away);
                }
            }
            _ => {}
        }
    }

    /// A thread takes a CPU again.
    fn came_back(&mut self, stamp: &Stamp, time: f64, away: Away) {
        let held = Held::Thread(stamp.flow);
        let named = |cause, who: &str| Named { cause, who: who.to_owned() };
        if away.state & STOPPED != 0 {
            let who = "by SIGSTOP or a debugger";
            return self.add(held, away.since_ns, time, named(Cause::Stopped, who));
        }
        if away.state == 0 {
            let cause = self.task(away.next, away.next_is_ours, stamp.cpu);
            return self.add(held, away.since_ns, time, cause);
        }
        let woken = away.woken_ns.unwrap_or(time);
        if away.state & UNINTERRUPTIBLE != 0 {
            let who = "for memory or a disk";
            self.add(held, away.since_ns, woken, named(Cause::Uninterruptible, who));
        }
        let cause = match stamp.tid {
            0 => Named { cause: Cause::Idle, who: format!("CPU {}", cpu_name(stamp.cpu.into())) },
            before => self.task(before, stamp.length & 1 != 0, stamp.cpu),
        };
        self.add(held, woken, time, cause);
    }

    fn task(&self, tid: u32, is_ours: bool, cpu: u16) -> Named {
        let name = self.trace.names.get(&tid);
        let cpu = cpu_name(cpu.into());
        match name {
            _ if is_ours => {
                Named { cause: Cause::Task, who: format!("the other end, on CPU {cpu}") }
            }
            Some(name) if name.starts_with(KSOFTIRQD) => {
                Named { cause: Cause::Deferred, who: name.clone() }
            }
            Some(name) => Named { cause: Cause::Task, who: format!("{name}, on CPU {cpu}") },
            None => Named { cause: Cause::Task, who: format!("thread {tid}, on CPU {cpu}") },
        }
    }
}
