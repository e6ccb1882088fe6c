//! The recorder: what a measured loop calls for every message. Plain stores into memory that was
//! there before; the clock readings are the loop's own.

use super::Flags;
use super::arena::{Arena, Progress, Row};
use super::histogram::{LiveHistogram, SparseHistogram};
use wiregauge_clock::{TickSpan, Ticks};

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

impl PoolUse {
    /// Counts a poll, told apart by what it found.
    #[inline(always)]
    pub fn polled(&mut self, completed: u32, took: TickSpan) {
        if completed > 0 {
            self.full_polls += 1;
            self.full_ticks += took.0;
            self.completions += u64::from(completed);
        } else {
            self.empty_polls += 1;
            self.empty_ticks += took.0;
        }
    }
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
            // Copies are written as a whole, so that no first sample in a bin is a page fault.
            beyond: live.map(|live| std::array::from_fn(|_| live.clone())),
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

    /// The same of messages that are numbered in their order, which also counts as handled.
    #[inline(always)]
    pub fn next_round_trip(&mut self, sequence: u64, submit: Ticks, receive: Ticks) {
        let (warm, progress) = (sequence < self.warmup, self.progress);
        self.arrived += 1;
        if let Some(row) = self.rows.get_mut(sequence as usize) {
            row.submit = submit;
            row.receive = receive;
            row.flags = if warm { Flags::WARMUP } else { Flags::default() };
            row.order = self.arrived as u32;
            // It is the last row in use, so there is nothing to compare.
            progress.used(sequence + 1);
        } else if !warm {
            self.record_beyond([Ticks(0), submit, receive]);
        }
        progress.handled(sequence + 1);
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

    /// Row `index` of a node: a message of the node `from` has arrived, or the last of so many. The
    /// stamps are the intended time (0 without a schedule) and the submit, by the sender's clock,
    /// and the receive.
    #[inline(always)]
    pub fn delivered(&mut self, index: u64, stamps: [Ticks; 3], from: u32, flags: Flags) {
        if let Some(row) = self.rows.get_mut(index as usize) {
            [row.intended, row.submit, row.receive] = stamps;
            row.flags = flags;
            row.order = from.saturating_add(1);
            self.use_row(index);
        }
    }

    /// Out of line: inside a loop it would take the registers of the usual case.
    #[inline(never)]
    fn record_beyond(&mut self, [intended, submit, receive]: [Ticks; 3]) {
        let Some([service, response, lateness]) = &mut self.beyond else { return };
        service.record((receive - submit).0);
        let from = if intended.0 != 0 { intended } else { submit };
        self.progress.beyond((receive - from).0);
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
        self.progress.lose();
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
mod tests;
