//! For how much of a stage the thread that works in it had a CPU.

use super::path::Half;
use super::split::{Split, StageDef};
use super::stamps::Stamps;
use std::collections::BTreeMap;
use wiregauge_host::trace::Kind;

/// When threads of ours had no CPU, by their number: intervals in the order of time.
#[derive(Clone, Debug, Default)]
pub struct OffCpu(BTreeMap<u32, Vec<(f64, f64)>>);

impl OffCpu {
    /// Reads it from the switches of a round.
    pub fn new(stamps: &Stamps<'_>) -> OffCpu {
        let mut left: BTreeMap<u32, f64> = BTreeMap::new();
        let mut each: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        let switches = stamps.all.iter().zip(&stamps.times_ns);
        for (stamp, time) in switches.filter(|(stamp, _)| stamp.kind == Kind::Switch) {
            if stamp.length & 2 != 0
                && let Some(from) = left.remove(&stamp.flow)
            {
                each.entry(stamp.flow).or_default().push((from, *time));
            }
            if stamp.length & 1 != 0 {
                left.insert(stamp.tid, *time);
            }
        }
        OffCpu(each)
    }

    /// For how long a thread had no CPU within an interval.
    fn within(&self, thread: u32, from_ns: f64, to_ns: f64) -> f64 {
        let Some(own) = self.0.get(&thread) else { return 0.0 };
        let first = own.partition_point(|(_, end)| *end <= from_ns);
        let overlaps = own[first..].iter().take_while(|(begin, _)| *begin < to_ns);
        overlaps.map(|(begin, end)| end.min(to_ns) - begin.max(from_ns)).sum()
    }

    /// The CPU time of each stage of a message; `None` for stages of which it is not told.
    pub fn of_stages(&self, defs: &[StageDef], message: &Split) -> Vec<Option<f64>> {
        let mut from = message.start_ns;
        let has = |kind| defs.iter().any(|def| def.kind == Some(kind));
        let is_bypassed = has(Kind::Posted);
        let stage = |(def, ns): (&StageDef, &f64)| {
            let to = from + ns;
            let on = match works(def, message.threads) {
                Works::Nobody => None,
                Works::Kernel if is_bypassed => None,
                // A SoftIRQ that has begun runs to its end.
                Works::Kernel => Some(*ns),
                // Over an adapter it waits for the interrupt of another CPU.
                Works::Thread(_) if def.kind == Some(Kind::Receive) && has(Kind::Gro) => None,
                Works::Thread(thread) => Some((ns - self.within(thread, from, to)).max(0.0)),
            };
            from = to;
            on
        };
        defs.iter().zip(&message.stages_ns).map(stage).collect()
    }
}

/// Who works in a stage.
enum Works {
    Thread(u32),
    /// A SoftIRQ of any CPU.
    Kernel,
    /// An adapter, a queue, or a thread that works on other messages.
    Nobody,
}

fn works(def: &StageDef, [client, server]: [u32; 2]) -> Works {
    let (sender, receiver) = if def.leg == 0 { (client, server) } else { (server, client) };
    match (def.kind, def.half) {
        _ if def.of_others => Works::Nobody,
        (Some(Kind::Xmit | Kind::Gro | Kind::Taken), _) | (None, Half::Send) => Works::Nobody,
        (Some(Kind::TcpProbe | Kind::Ready | Kind::Waking), Half::Receive) => Works::Kernel,
        // Over loopback and veth the thread that sends does this in its call.
        (Some(Kind::Receive), _) | (_, Half::Send) => Works::Thread(sender),
        (_, Half::Receive) => Works::Thread(receiver),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn def(kind: Option<Kind>, half: Half) -> StageDef {
        StageDef { leg: 0, name: String::new(), half, kind, of_others: false, is_wire: false }
    }

    #[test]
    fn a_thread_that_is_away_takes_no_cpu_time_and_a_queue_never_does() {
        let stages = [
            (Some(Kind::Send), Half::Send, 200.0),
            (Some(Kind::Xmit), Half::Send, 30.0),
            (Some(Kind::Receive), Half::Receive, 70.0),
            (Some(Kind::Ready), Half::Receive, 100.0),
            (Some(Kind::Switch), Half::Receive, 600.0),
            (Some(Kind::Copied), Half::Receive, 500.0),
        ];
        let defs: Vec<StageDef> = stages.iter().map(|(kind, half, _)| def(*kind, *half)).collect();
        let stages_ns: Vec<f64> = stages.iter().map(|(.., ns)| *ns).collect();
        let message = Split {
            sample: 0,
            start_ns: 1000.0,
            total_ns: 1500.0,
            cpus: vec![0; stages_ns.len()],
            stages_ns,
            threads: [1, 2],
            stamps: 0..0,
            ahead: Vec::new(),
            batches: Vec::new(),
            merged: Vec::new(),
        };
        // The client is away for 50 ns of its call; the server sleeps until 2000 and is away from
        // 2100 to 2400.
        let away = [(1, vec![(1100.0, 1150.0)]), (2, vec![(0.0, 2000.0), (2100.0, 2400.0)])];
        let found = OffCpu(away.into_iter().collect()).of_stages(&defs, &message);
        let on = [Some(150.0), None, Some(70.0), Some(100.0), Some(0.0), Some(200.0)];
        assert_eq!(found, on);
        let adapter = [&defs[..1], &[def(Some(Kind::Gro), Half::Receive)], &defs[2..]].concat();
        assert_eq!(OffCpu::default().of_stages(&adapter, &message)[2], None);
    }
}
