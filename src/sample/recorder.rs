//! The recorder: what a measured loop calls for every message. Plain stores into memory that was
//! there before; the clock readings are the loop's own.

use super::Flags;
use super::arena::{Arena, Progress, Row};
use super::histogram::{LiveHistogram, SparseHistogram};
use crate::clock::Ticks;

/// Keeps the samples of one role in one round.
///
/// A message's row is that of its sequence number. Where the run is longer than the memory, later
/// messages go into a histogram: their count, extremes and quantiles (within its stated error)
/// stay.
pub struct Recorder<'a> {
    rows: &'a mut [Row],
    progress: &'a Progress,
    used: u64,
    warmup: u64,
    arrived: u64,
    highest: u64,
    /// Latencies, in ticks, of messages beyond the rows: as in [`Beyond`].
    beyond: Option<[LiveHistogram; 3]>,
    /// Message counts.
    pub seen: MessageCounts,
    /// What the pools of a server cost.
    pub pool: PoolUse,
}

/// What the server's pools cost, in ticks and counts. A poll that brings completions is a full one,
/// whatever arrives with them; every other is an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PoolUse {
    /// Requests answered.
    pub reads: u64,
    /// From the wish for a transmit buffer until one was there.
    pub buffer_ticks: i64,
    /// Reads that found none.
    pub buffer_waits: u64,
    /// Polls without a completion ...
    pub empty_polls: u64,
    /// ... and their time.
    pub empty_ticks: i64,
    /// Polls with completions ...
    pub full_polls: u64,
    /// ... and their time.
    pub full_ticks: i64,
    /// Completions of replies.
    pub completions: u64,
    /// Polls that brought requests.
    pub request_polls: u64,
    /// Of `buffer_ticks`: in polls without a completion ...
    pub buffer_empty_ticks: i64,
    /// ... and in polls with some.
    pub buffer_full_ticks: i64,
}

/// Latencies in ticks of messages for which there was no row.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Beyond {
    /// From the submit.
    pub service: Option<SparseHistogram>,
    /// From the intended time, where a schedule had one.
    pub response: Option<SparseHistogram>,
    /// From the intended time to the submit.
    pub lateness: Option<SparseHistogram>,
}

/// Messages by what became of them, as one role sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MessageCounts {
    /// Posted by this role.
    pub sent: u64,
    /// Received by this role, duplicates left out.
    pub received: u64,
    /// Received once more.
    pub duplicates: u64,
    /// Received after a message that was sent later.
    pub reordered: u64,
    /// Received with another payload than was sent.
    pub corrupt: u64,
    /// Received after it had been given up.
    pub late: u64,
    /// Received with a sequence number that was never sent.
    pub foreign: u64,
    /// Steps of the schedule that had passed when the generator came to them.
    pub missed_steps: u64,
    /// Sequence numbers that were passed over when a later one arrived.
    pub gaps: u64,
    /// Messages that were due and waited: they had no buffer, or too many were on the way.
    pub held_up: u64,
    /// Messages that were intended and not sent.
    pub unsent: u64,
}

impl<'a> Recorder<'a> {
    /// A recorder into this memory. The first `warmup` messages are marked as such.
    pub fn new(arena: &'a mut Arena, warmup: u64) -> Recorder<'a> {
        let (rows, progress) = arena.writer();
        // The unit is a tick; what a tick is the controller knows.
        let live = LiveHistogram::new(1.0).ok();
        Recorder {
            rows,
            progress,
            used: 0,
            warmup,
            arrived: 0,
            highest: 0,
            beyond: live.map(|live| [live.clone(), live.clone(), live]),
            pool: PoolUse::default(),
            seen: MessageCounts::default(),
        }
    }

    /// Messages for which there are rows.
    #[inline(always)]
    pub fn capacity(&self) -> u64 {
        self.rows.len() as u64
    }

    /// A message was sent and answered: the row of a round trip, in one go.
    #[inline(always)]
    pub fn round_trip(&mut self, sequence: u64, submit: Ticks, receive: Ticks, flags: Flags) {
        let warm = sequence < self.warmup;
        let flags = if warm { flags.with(Flags::WARMUP) } else { flags };
        self.arrived += 1;
        match self.rows.get_mut(sequence as usize) {
            Some(row) => {
                row.submit = submit;
                row.receive = receive;
                row.flags = flags;
                row.order = self.arrived as u32;
                self.use_row(sequence);
            }
            None if warm => {}
            None => self.record_beyond([Ticks(0), submit, receive]),
        }
    }

    /// An answer came that the loop no longer awaits: late, or a duplicate.
    #[inline]
    pub fn straggler(&mut self, sequence: u64, receive: Ticks) {
        if sequence >= self.seen.sent {
            self.seen.foreign += 1;
            return;
        }
        let Some(row) = self.rows.get_mut(sequence as usize) else {
            self.seen.duplicates += 1;
            return;
        };
        if row.receive.0 == 0 {
            row.receive = receive;
            row.flags = row.flags.without(Flags::LOST).with(Flags::LATE);
            self.seen.late += 1;
            self.seen.received += 1;
        } else {
            row.flags = row.flags.with(Flags::DUPLICATE);
            self.seen.duplicates += 1;
        }
    }

    /// A message was sent one way.
    #[inline(always)]
    pub fn sent(&mut self, sequence: u64, intended: Ticks, submit: Ticks, complete: Ticks) {
        let warm = sequence < self.warmup;
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.intended = intended;
            row.submit = submit;
            if complete.0 != 0 {
                row.complete = complete;
            }
            row.flags = if warm { Flags::WARMUP } else { Flags::default() };
            self.use_row(sequence);
        }
    }

    /// A step of a schedule has passed, and no message was sent for it.
    #[cold]
    pub fn missed(&mut self, sequence: u64, intended: Ticks) {
        let warm = sequence < self.warmup;
        self.seen.missed_steps += 1;
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.intended = intended;
            row.flags = if warm { Flags::MISSED.with(Flags::WARMUP) } else { Flags::MISSED };
            self.use_row(sequence);
        }
    }

    /// The post of a message has completed.
    #[inline]
    pub fn completed(&mut self, sequence: u64, complete: Ticks) {
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.complete = complete;
        }
    }

    /// The last time that stood in a message that has arrived, by the sender's clock.
    #[inline]
    pub fn stood(&mut self, sequence: u64, send: Ticks) {
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.submit = send;
        }
    }

    /// A message has arrived one way.
    #[inline(always)]
    pub fn arrived(&mut self, sequence: u64, receive: Ticks, corrupt: bool) {
        let Some(row) = usize::try_from(sequence).ok().and_then(|row| self.rows.get_mut(row))
        else {
            // The sender never sends more messages than there are rows.
            self.seen.foreign += 1;
            return;
        };
        let reordered = sequence + 1 < self.highest;
        self.seen.gaps += sequence.saturating_sub(self.highest);
        self.highest = self.highest.max(sequence + 1);
        if corrupt {
            self.seen.corrupt += 1;
        }
        if row.receive.0 != 0 {
            row.flags = row.flags.with(Flags::DUPLICATE);
            self.seen.duplicates += 1;
            return;
        }
        self.arrived += 1;
        row.receive = receive;
        row.order = self.arrived as u32;
        if reordered {
            row.flags = row.flags.with(Flags::REORDERED);
            self.seen.reordered += 1;
        }
        if corrupt {
            row.flags = row.flags.with(Flags::CORRUPT);
        }
        self.seen.received += 1;
        self.use_row(sequence);
    }

    /// Row `index` of a bandwidth run: `stride` messages have been posted or have arrived.
    #[inline(always)]
    pub fn mark(&mut self, index: u64, submit: Ticks, receive: Ticks, flags: Flags) {
        if let Some(row) = self.rows.get_mut(index as usize) {
            row.submit = submit;
            row.receive = receive;
            row.flags = flags;
            self.use_row(index);
        }
    }

    fn record_beyond(&mut self, [intended, submit, receive]: [Ticks; 3]) {
        let Some([service, response, lateness]) = &mut self.beyond else { return };
        service.record((receive - submit).0);
        if intended.0 != 0 {
            response.record((receive - intended).0);
            lateness.record((submit - intended).0);
        }
    }

    /// A request was answered. The stamps are the intended time (0 without a schedule), the submit
    /// and the receive.
    #[inline(always)]
    pub fn answered(&mut self, sequence: u64, stamps: [Ticks; 3], flags: Flags) {
        self.arrived += 1;
        self.seen.received += 1;
        if sequence + 1 < self.highest {
            self.seen.reordered += 1;
        }
        self.highest = self.highest.max(sequence + 1);
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.receive = stamps[2];
            row.flags = row.flags.with(flags);
            row.order = self.arrived as u32;
        } else if sequence >= self.warmup {
            self.record_beyond(stamps);
        }
    }

    /// A message that was sent, or (with a submit of 0) not even that, was not answered in time. It
    /// was intended at 0 where there is no schedule.
    #[cold]
    pub fn unanswered(&mut self, sequence: u64, intended: Ticks, submit: Ticks) {
        let warm = sequence < self.warmup;
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.intended = intended;
            row.submit = submit;
            let flags = if submit.0 == 0 { Flags::UNSENT } else { Flags::LOST };
            row.flags = if warm { flags.with(Flags::WARMUP) } else { flags };
            self.use_row(sequence);
        } else if let Some([service, response, _]) = self.beyond.as_mut().filter(|_| !warm) {
            service.record_lost(u64::from(submit.0 != 0));
            response.record_lost(u64::from(intended.0 != 0));
        }
    }

    /// The messages beyond the rows, where there were any.
    pub fn into_beyond(self) -> Beyond {
        let sparse = |live: LiveHistogram| (live.count() > 0).then(|| live.to_sparse());
        let Some(live) = self.beyond else { return Beyond::default() };
        let [service, response, lateness] = live.map(sparse);
        Beyond { service, response, lateness }
    }

    /// So many messages have been handled (for the display and to notice a stall).
    #[inline(always)]
    pub fn handled(&self, messages: u64) {
        self.progress.handled(messages);
    }

    #[inline(always)]
    fn use_row(&mut self, row: u64) {
        if row >= self.used {
            self.used = row + 1;
            self.progress.used(self.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::Totals;
    use super::*;

    /// What the calls leave in memory for so many rows, with what was seen and kept beyond.
    fn recorded(
        rows: usize,
        warmup: u64,
        calls: impl FnOnce(&mut Recorder<'_>),
    ) -> (Vec<Row>, MessageCounts, Beyond) {
        let mut arena = Arena::create(rows).unwrap();
        let mut recorder = Recorder::new(&mut arena, warmup);
        assert_eq!(recorder.capacity(), rows as u64);
        calls(&mut recorder);
        let (seen, beyond) = (recorder.seen, recorder.into_beyond());
        (arena.rows().to_vec(), seen, beyond)
    }

    fn row(stamps: [u64; 4], flags: Flags, order: u32) -> Row {
        let [intended, submit, receive, complete] = stamps.map(Ticks);
        Row { intended, submit, receive, complete, flags, order }
    }

    /// Finite samples with their extremes, and lost ones.
    fn of(beyond: &Option<SparseHistogram>) -> Option<(u64, i64, i64, u64)> {
        let Totals { finite, min, max, lost, .. } = beyond.as_ref()?.totals;
        Some((finite, min, max, lost))
    }

    const NONE: Flags = Flags(0);

    #[test]
    fn what_was_sent_one_way_has_its_row() {
        let (rows, seen, _) = recorded(4, 2, |recorder| {
            recorder.sent(0, Ticks(10), Ticks(11), Ticks(12));
            recorder.missed(1, Ticks(20));
            recorder.sent(2, Ticks(30), Ticks(31), Ticks(0));
            recorder.completed(2, Ticks(35));
            recorder.stood(2, Ticks(33));
            recorder.missed(3, Ticks(40));
            recorder.sent(4, Ticks(50), Ticks(51), Ticks(0));
        });
        let truth = [
            row([10, 11, 0, 12], Flags::WARMUP, 0),
            row([20, 0, 0, 0], Flags::MISSED.with(Flags::WARMUP), 0),
            row([30, 33, 0, 35], NONE, 0),
            row([40, 0, 0, 0], Flags::MISSED, 0),
        ];
        assert_eq!(rows, truth);
        assert_eq!(seen, MessageCounts { missed_steps: 2, ..MessageCounts::default() });
    }

    #[test]
    fn what_arrived_one_way_is_counted_by_what_became_of_it() {
        let (rows, seen, _) = recorded(5, 0, |recorder| {
            // Number 0 is passed over and comes behind 1, and once more; 2 comes behind 3.
            for (number, at) in [(1, 100), (0, 101), (0, 102), (3, 103), (2, 104), (4, 105)] {
                recorder.arrived(number, Ticks(at), number == 3);
            }
            recorder.arrived(9, Ticks(106), false);
        });
        let again = Flags::REORDERED.with(Flags::DUPLICATE);
        let truth = [
            row([0, 0, 101, 0], again, 2),
            row([0, 0, 100, 0], NONE, 1),
            row([0, 0, 104, 0], Flags::REORDERED, 4),
            row([0, 0, 103, 0], Flags::CORRUPT, 3),
            row([0, 0, 105, 0], NONE, 5),
        ];
        assert_eq!(rows, truth);
        let truth = MessageCounts {
            received: 5,
            duplicates: 1,
            reordered: 2,
            corrupt: 1,
            foreign: 1,
            gaps: 2,
            ..MessageCounts::default()
        };
        assert_eq!(seen, truth);
    }

    #[test]
    fn round_trips_without_a_row_are_counted_beyond_but_for_the_warm_up() {
        let calls = |recorder: &mut Recorder<'_>| {
            recorder.round_trip(0, Ticks(5), Ticks(9), NONE);
            recorder.round_trip(1, Ticks(15), Ticks(20), Flags::CORRUPT);
            recorder.round_trip(2, Ticks(30), Ticks(41), NONE);
        };
        let (rows, _, beyond) = recorded(2, 1, calls);
        let truth = [row([0, 5, 9, 0], Flags::WARMUP, 1), row([0, 15, 20, 0], Flags::CORRUPT, 2)];
        assert_eq!(rows, truth);
        assert_eq!(of(&beyond.service), Some((1, 11, 11, 0)));
        assert_eq!((of(&beyond.response), of(&beyond.lateness)), (None, None));
        assert_eq!(of(&recorded(2, 3, calls).2.service), None);
    }

    #[test]
    fn an_answer_that_is_not_awaited_is_late_a_duplicate_or_foreign() {
        let (rows, seen, _) = recorded(2, 0, |recorder| {
            recorder.seen.sent = 3;
            recorder.unanswered(0, Ticks(0), Ticks(5));
            recorder.unanswered(1, Ticks(0), Ticks(6));
            recorder.straggler(1, Ticks(9));
            recorder.straggler(1, Ticks(10));
            recorder.straggler(2, Ticks(11));
            recorder.straggler(3, Ticks(12));
        });
        let late = Flags::LATE.with(Flags::DUPLICATE);
        assert_eq!(rows, [row([0, 5, 0, 0], Flags::LOST, 0), row([0, 6, 9, 0], late, 0)]);
        let truth = MessageCounts {
            sent: 3,
            received: 1,
            late: 1,
            duplicates: 2,
            foreign: 1,
            ..MessageCounts::default()
        };
        assert_eq!(seen, truth);
    }

    #[test]
    fn requests_of_a_schedule_keep_three_times_beyond_their_rows() {
        let (rows, seen, beyond) = recorded(2, 1, |recorder| {
            recorder.sent(0, Ticks(1), Ticks(2), Ticks(0));
            recorder.sent(1, Ticks(3), Ticks(4), Ticks(0));
            recorder.answered(1, [Ticks(3), Ticks(4), Ticks(8)], Flags::CORRUPT);
            recorder.answered(0, [Ticks(1), Ticks(2), Ticks(9)], NONE);
            recorder.answered(3, [Ticks(10), Ticks(12), Ticks(20)], NONE);
            // Without a schedule there is no intended time.
            recorder.answered(2, [Ticks(0), Ticks(30), Ticks(37)], NONE);
        });
        let truth = [row([1, 2, 9, 0], Flags::WARMUP, 2), row([3, 4, 8, 0], Flags::CORRUPT, 1)];
        assert_eq!(rows, truth);
        assert_eq!(seen, MessageCounts { received: 4, reordered: 2, ..MessageCounts::default() });
        assert_eq!(of(&beyond.service), Some((2, 7, 8, 0)));
        assert_eq!(of(&beyond.response), Some((1, 10, 10, 0)));
        assert_eq!(of(&beyond.lateness), Some((1, 2, 2, 0)));
        let warm = recorded(1, 3, |recorder| {
            recorder.answered(2, [Ticks(1), Ticks(2), Ticks(3)], NONE);
            recorder.unanswered(2, Ticks(1), Ticks(2));
        });
        assert!(warm.2.service.is_none() && warm.2.response.is_none());
    }

    #[test]
    fn a_request_without_an_answer_is_lost_or_was_never_sent() {
        let (rows, _, beyond) = recorded(2, 1, |recorder| {
            recorder.unanswered(0, Ticks(10), Ticks(0));
            recorder.unanswered(1, Ticks(20), Ticks(21));
            recorder.unanswered(2, Ticks(30), Ticks(0));
            recorder.unanswered(3, Ticks(0), Ticks(41));
            recorder.unanswered(4, Ticks(50), Ticks(51));
        });
        let unsent = Flags::UNSENT.with(Flags::WARMUP);
        assert_eq!(rows, [row([10, 0, 0, 0], unsent, 0), row([20, 21, 0, 0], Flags::LOST, 0)]);
        let lost = |of: Option<(u64, i64, i64, u64)>| of.map(|(finite, _, _, lost)| (finite, lost));
        assert_eq!(lost(of(&beyond.service)), Some((0, 2)));
        assert_eq!(lost(of(&beyond.response)), Some((0, 2)));
    }

    #[test]
    fn the_controller_sees_how_many_messages_were_handled() {
        let mut arena = Arena::create(1).unwrap();
        Recorder::new(&mut arena, 0).handled(5);
        assert_eq!(arena.progress(), 5);
    }

    #[test]
    fn a_mark_of_a_bandwidth_run_is_a_row() {
        let (rows, _, _) =
            recorded(3, 0, |recorder| recorder.mark(1, Ticks(7), Ticks(8), Flags::REVERSE));
        assert_eq!(rows, [row([0; 4], NONE, 0), row([0, 7, 8, 0], Flags::REVERSE, 0)]);
    }
}
