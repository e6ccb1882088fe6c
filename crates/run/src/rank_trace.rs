//! The stamps that a rank's agent sends of its host's kernel. It may be broken or hostile: it sends
//! what it was asked for, once, before its end, in full frames but for the last.

use wiregauge_analysis::result::HostTrace;
use wiregauge_host::trace::Stamp;
use wiregauge_host::trace::report::{
    MOST_STAMPS, STAMPS_PER_FRAME, TraceReport, TraceRequest, is_possible,
};

/// What has come.
#[derive(Default)]
pub(super) struct TraceSoFar {
    /// What was asked for.
    pub request: Option<TraceRequest>,
    stamps: Vec<Stamp>,
    /// What is whole.
    pub done: Option<HostTrace>,
}

impl TraceSoFar {
    fn is_due(&self) -> bool {
        self.request.is_some() && self.done.is_none()
    }

    /// Takes the next stamps.
    pub fn stamps(&mut self, stamps: &[Stamp]) -> Result<(), &'static str> {
        let is_whole = self.stamps.len().is_multiple_of(STAMPS_PER_FRAME);
        let is_full_or_last = (1..=STAMPS_PER_FRAME).contains(&stamps.len()) && is_whole;
        let asked = self.request.as_ref().map_or(&[][..], |request| &request.kinds);
        let is_asked = |stamp: &Stamp| asked.contains(&stamp.kind);
        if !self.is_due() || !is_full_or_last || !stamps.iter().all(is_asked) {
            return Err("sent unrequested stamps");
        }
        if self.stamps.len() + stamps.len() > MOST_STAMPS {
            return Err("sent more stamps than a host keeps");
        }
        if !stamps.iter().all(is_possible) {
            return Err("sent stamps that no kernel writes");
        }
        self.stamps.extend_from_slice(stamps);
        Ok(())
    }

    /// Takes what is said of them at the end.
    pub fn report(&mut self, report: Result<Box<TraceReport>, String>) -> Result<(), &'static str> {
        if !self.is_due() {
            return Err("sent an unrequested trace");
        }
        let stamps = std::mem::take(&mut self.stamps);
        self.done = Some(match report {
            Ok(report) => {
                report.check(&stamps)?;
                let asked = self.request.as_ref().map_or(&[][..], |request| &request.kinds);
                if !report.kinds.iter().all(|kind| asked.contains(kind)) {
                    return Err("named trace points that it was not asked for");
                }
                Ok((*report, stamps))
            }
            Err(why) => Err(why),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::{Anchor, TickSpan, Ticks};
    use wiregauge_host::trace::{CopiedAt, Kind};

    fn asked() -> TraceSoFar {
        let request = TraceRequest { kinds: vec![Kind::Queue], copied: CopiedAt::Stream };
        TraceSoFar { request: Some(request), ..TraceSoFar::default() }
    }

    fn stamps(count: usize) -> Vec<Stamp> {
        let one = Stamp {
            time_ns: 5,
            tid: 1,
            flow: 2,
            number: 3,
            length: 4,
            cpu: 0,
            kind: Kind::Queue,
            in_kernel_thread: false,
        };
        vec![one; count]
    }

    fn report(stamps: u64) -> Result<Box<TraceReport>, String> {
        let anchor = |at| Anchor { ticks: Ticks(at), raw_ns: at, half_width: TickSpan(0) };
        Ok(Box::new(TraceReport {
            kinds: vec![Kind::Queue],
            missing: Vec::new(),
            anchors: [anchor(1), anchor(9)],
            stamps,
            full_ns: None,
            names: Vec::new(),
            interrupts: Vec::new(),
        }))
    }

    #[test]
    fn stamps_come_in_full_frames_and_are_whole_with_their_report() {
        let mut trace = asked();
        assert_eq!(trace.stamps(&stamps(STAMPS_PER_FRAME)), Ok(()));
        assert_eq!(trace.stamps(&stamps(2)), Ok(()));
        assert_eq!(trace.report(report(STAMPS_PER_FRAME as u64 + 2)), Ok(()));
        assert_eq!(trace.done.unwrap().unwrap().1.len(), STAMPS_PER_FRAME + 2);
    }

    #[test]
    fn an_agent_sends_no_more_than_it_was_asked_for() {
        let unrequested = Err("sent unrequested stamps");
        let none = || TraceSoFar::default();
        assert_eq!(none().stamps(&stamps(1)), unrequested);
        assert_eq!(none().report(report(0)), Err("sent an unrequested trace"));
        let mut trace = asked();
        assert_eq!(trace.stamps(&[]), unrequested);
        assert_eq!(trace.stamps(&stamps(STAMPS_PER_FRAME + 1)), unrequested);
        assert_eq!(trace.stamps(&stamps(1)), Ok(()));
        assert_eq!(trace.stamps(&stamps(1)), unrequested, "after one that was not full");
        assert_eq!(trace.report(report(2)), Err("sent another number of stamps"));
        let mut trace = asked();
        let of_another = Stamp { kind: Kind::Switch, ..stamps(1)[0] };
        assert_eq!(trace.stamps(&[of_another]), unrequested);
        let impossible = Stamp { tid: u32::MAX, ..stamps(1)[0] };
        assert_eq!(trace.stamps(&[impossible]), Err("sent stamps that no kernel writes"));
        let more = report(0).map(|one| Box::new(TraceReport { kinds: vec![Kind::Switch], ..*one }));
        let unnamed = Err("named trace points that it was not asked for");
        assert_eq!(asked().report(more), unnamed);
        assert_eq!(trace.report(Err("the kernel allows no tracing".into())), Ok(()));
        assert_eq!(trace.report(report(0)), Err("sent an unrequested trace"));
        assert_eq!(trace.stamps(&stamps(1)), unrequested, "after the report");
        let mut trace = asked();
        let most = (0..MOST_STAMPS / STAMPS_PER_FRAME)
            .all(|_| trace.stamps(&stamps(STAMPS_PER_FRAME)) == Ok(()));
        assert!(most);
        let more = trace.stamps(&stamps(STAMPS_PER_FRAME));
        assert_eq!(more, Err("sent more stamps than a host keeps"));
    }
}
