//! When a round without a schedule ends.

use super::Loop;
use wiregauge_clock::Ticks;

/// When the time of a round is up. It counts from the end of the warm-up, which its messages or its
/// time end, whichever comes first. Loops of a schedule and of requests count from their start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    begin: Option<Ticks>,
    /// Zero until the warm-up is over, so that the loop compares once.
    end: Ticks,
}

impl Deadline {
    /// Whether the time is up, `messages` after the begin. The first call begins the warm-up.
    #[inline(always)]
    pub fn is_past(&mut self, now: Ticks, messages: u64, plan: &Loop) -> bool {
        now >= self.end && (self.is_warm() || self.warm_up(now, messages, plan))
    }

    /// Out of line: inside a loop it would take the registers of the usual case.
    #[cold]
    #[inline(never)]
    fn warm_up(&mut self, now: Ticks, messages: u64, plan: &Loop) -> bool {
        let begin = *self.begin.get_or_insert(now);
        let is_late = plan.warmup_time.is_some_and(|most| now >= begin + most);
        if messages >= plan.warmup || is_late {
            // Without a time, only the messages end the round.
            self.end = plan.time.map_or(Ticks(u64::MAX), |time| now + time);
        }
        false
    }

    /// Whether the warm-up is over.
    #[inline(always)]
    pub fn is_warm(&self) -> bool {
        self.end.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::Span;
    use wiregauge_clock::TickSpan;
    use wiregauge_patterns::bandwidth;
    use wiregauge_plan::Request;

    #[test]
    fn the_warm_up_ends_by_its_messages_or_by_its_time() {
        let mut request = bandwidth::request(bandwidth::Spec::default());
        request.time = Some(Span(2_000_000_000));
        // A message takes so long, in ns; how many are sent, and when the loop ends.
        let run = |request: &Request, each: u64| {
            let case = request.clone().plan().unwrap().cases.remove(0);
            let plan = Loop::new(&case, |span| TickSpan(span.0 as i64));
            let mut deadline = Deadline::default();
            let mut sent = 1;
            while !deadline.is_past(Ticks(sent * each), sent, &plan) {
                sent += 1;
            }
            (sent, sent * each)
        };
        // 64 KiB over 30 Mb/s: 0.2 s of warm-up, and not 1000 messages or 17.5 s.
        let (sent, end) = run(&request, 17_500_000);
        assert!((2_200_000_000..2_260_000_000).contains(&end), "{end}");
        assert_eq!(sent, 128);
        // 1000 quick ones.
        let (sent, end) = run(&request, 1000);
        assert_eq!((sent, end), (2_001_000, 2_001_000_000));
        // As many as were asked for, however long they take.
        request.warmup = Some(1000);
        assert_eq!(run(&request, 17_500_000), (1115, 19_512_500_000));
    }
}
