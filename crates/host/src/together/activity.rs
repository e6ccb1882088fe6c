//! What the kernel did on each CPU, from the lines of its trace.

use std::collections::BTreeMap;

wiregauge_base::options::named_enum! {
    /// What took a CPU.
    #[derive(PartialOrd, Ord)]
    pub enum Kind {
        /// Another task.
        Task = "task",
        /// A handler of a device's interrupt, or of one of the CPU's own.
        Interrupt = "interrupt",
        /// What an interrupt left for later.
        SoftInterrupt = "softirq",
        /// The kernel recorded nothing: the hypervisor or the firmware.
        Outside = "outside the kernel",
        /// There was no trace to ask.
        Unknown = "not traced",
    }
}

/// Something that ran on a CPU instead of the loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    pub kind: Kind,
    pub name: String,
    /// Ticks of the trace's clock.
    pub from: u64,
    pub until: u64,
}

/// A CPU that was idle while the loop was ready to run. [`super::evidence::Evidence::idle_since`]
/// says why, where that is known.
pub const IDLE: &str = "idle while the loop was ready to run";
/// The most activities of a CPU in a window.
const MOST: usize = 200_000;
/// The longest name.
const LONGEST_NAME: usize = 64;

/// What ran on one CPU, from the lines of its trace in the order of time. `own` are the threads
/// that watch. A handler whose begin or end was lost counts for nothing.
pub fn read(lines: &str, own: &[u32]) -> Vec<Activity> {
    let mut all = Vec::new();
    let mut open: BTreeMap<String, (Kind, String, u64)> = BTreeMap::new();
    let mut running: Option<(String, u64)> = None;
    for (at, event, rest) in lines.lines().filter_map(parts) {
        if all.len() >= MOST {
            break;
        }
        if event == "sched_switch" {
            if let Some((name, from)) = running.take() {
                all.push(Activity { kind: Kind::Task, name, from, until: at });
            }
            running = next_task(rest, own).map(|name| (name, at));
        } else if let Some(key) = event.strip_suffix("_entry") {
            let (kind, name, key) = handler(key, rest);
            open.insert(key, (kind, name, at));
        } else if let Some(key) = event.strip_suffix("_exit") {
            let (_, _, key) = handler(key, rest);
            if let Some((kind, name, from)) = open.remove(&key) {
                all.push(Activity { kind, name, from, until: at });
            }
        }
    }
    all.sort_by_key(|activity| activity.from);
    all
}

/// Time, event and what follows of a line `comm-pid [001] ..s1. 123: softirq_entry: vec=3 ...`.
fn parts(line: &str) -> Option<(u64, &str, &str)> {
    // A name may hold anything, but hardly this.
    let (_, rest) = line.split_once("] ")?;
    let (stamped, rest) = rest.split_once(": ")?;
    let at = stamped.rsplit(' ').next()?.parse().ok()?;
    let (event, rest) = rest.split_once(": ").unwrap_or((rest.trim_end_matches(':'), ""));
    Some((at, event, rest))
}

/// The task that is switched to, unless it is one of those that watch.
fn next_task(rest: &str, own: &[u32]) -> Option<String> {
    let (name, after) = rest
        .rsplit_once(" next_comm=")
        .or_else(|| rest.split_once("next_comm="))?
        .1
        .rsplit_once(" next_pid=")?;
    let pid: u32 = after.split_whitespace().next()?.parse().ok()?;
    if own.contains(&pid) {
        return None;
    }
    Some(match pid {
        // The loop is ready to run, and nothing else is.
        0 => IDLE.to_owned(),
        // Its number is left out of a kernel thread's name, so that those of all CPUs are alike.
        _ => short(name),
    })
}

fn short(name: &str) -> String {
    let is_shown = |c: &char| !c.is_control();
    name.trim().chars().filter(is_shown).take(LONGEST_NAME).collect()
}

/// The kind and the name of a handler, and what its end has in common with its begin.
fn handler(event: &str, rest: &str) -> (Kind, String, String) {
    match event {
        "irq_handler" => {
            let number = word(rest, "irq=");
            let name = rest.split_once("name=").map_or(number, |(_, name)| name);
            (Kind::Interrupt, short(name), format!("irq {number}"))
        }
        "softirq" => {
            let name = rest.split_once("[action=").map_or(rest, |(_, name)| name);
            let name = name.trim_end_matches(']');
            (Kind::SoftInterrupt, short(name), format!("softirq {name}"))
        }
        vector => (Kind::Interrupt, short(&vector.replace('_', " ")), vector.to_owned()),
    }
}

fn word<'a>(rest: &'a str, key: &str) -> &'a str {
    let after = rest.split_once(key).map_or("", |(_, after)| after);
    after.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
       wiregauge-100     [001] d.h1. 1000: local_timer_entry: vector=236
       wiregauge-100     [001] d.h1. 1500: local_timer_exit: vector=236
       wiregauge-100     [001] ..s1. 1600: softirq_entry: vec=1 [action=TIMER]
       wiregauge-100     [001] d.h1. 1650: irq_handler_entry: irq=41 name=virtio3-rx
       wiregauge-100     [001] d.h1. 1700: irq_handler_exit: irq=41 ret=handled
       wiregauge-100     [001] ..s1. 1900: softirq_exit: vec=1 [action=TIMER]
       wiregauge-100     [001] d..2. 2000: sched_switch: prev_comm=wiregauge prev_pid=100 \
prev_prio=120 prev_state=R ==> next_comm=my busy task next_pid=7 next_prio=120
     my busy task-7      [001] d..2. 9000: sched_switch: prev_comm=my busy task prev_pid=7 \
prev_prio=120 prev_state=S ==> next_comm=wiregauge next_pid=100 next_prio=120
CPU:1 [LOST 12 EVENTS]
       wiregauge-100     [001] ..s1. 9500: softirq_exit: vec=3 [action=NET_RX]
";

    #[test]
    fn tasks_interrupts_and_softirqs_are_named_with_their_times() {
        let found = read(TRACE, &[100]);
        let shown: Vec<(Kind, &str, u64, u64)> =
            found.iter().map(|one| (one.kind, one.name.as_str(), one.from, one.until)).collect();
        let expected = [
            (Kind::Interrupt, "local timer", 1000, 1500),
            (Kind::SoftInterrupt, "TIMER", 1600, 1900),
            (Kind::Interrupt, "virtio3-rx", 1650, 1700),
            (Kind::Task, "my busy task", 2000, 9000),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn lines_of_anything_are_no_panic() {
        for text in ["] : ", "a] 1: b: c", "] 5: sched_switch: next_comm=", "] 5: x_entry:", "]"] {
            read(text, &[]);
        }
    }
}
