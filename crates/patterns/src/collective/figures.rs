//! What a round of collective operations shows: each from the first entry to the last exit.

use super::execution::warmup;
use super::spec::{Collective, Spec, Sync};
use super::summary::{Details, Gathered};
use crate::prelude::*;
use wiregauge_analysis::pattern::Completion;
use wiregauge_analysis::result::RoundResult;
use wiregauge_base::warning::Warning;
use wiregauge_sample::join::{End, pool};

impl PatternAnalysis for Collective {
    /// The samples of one rank: when it was to enter, its entry and its exit.
    fn samples(
        &self,
        case: &Case,
        thread: usize,
        [rows, _]: [&[Row]; 2],
        times: Times<'_>,
    ) -> Vec<Sample> {
        let (spec, own) = (case.spec::<Spec>(), times.node(thread));
        // From the first entry to the last exit there is no time then.
        let is_timed = spec.sync == Sync::Barrier || times.are_common();
        let rows = if is_timed { rows } else { &[] };
        let numbered = rows.iter().enumerate();
        numbered.map(|(number, row)| of_rank(spec, case.size, number as u64, row, own)).collect()
    }

    /// One sample for each operation. After a barrier ranks have no common time: each has its own.
    fn join(&self, case: &Case, each: Vec<RoundSamples>) -> RoundSamples {
        match case.spec::<Spec>().sync {
            Sync::Window => of_ranks(&each),
            Sync::Barrier => pool(each),
        }
    }

    fn metrics(&self, case: &Case) -> Vec<Metric> {
        match case.spec::<Spec>().sync {
            Sync::Window => vec![Metric::Collective],
            Sync::Barrier => vec![Metric::AfterBarrier],
        }
    }

    /// Operations, not what each rank has seen of them. Wrong results are those of ranks.
    fn complete_counts(&self, case: &Case, _: &RoundResult, all: &mut Counts) {
        let ranks = case.topology.ranks.len().max(1) as u64;
        let Counts { sent, received, warmup, unfinished, .. } = all;
        for count in [&mut *sent, &mut *received, &mut *warmup] {
            *count /= ranks;
        }
        *unfinished = sent.saturating_sub(*received);
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(Gathered::default())
    }

    fn complete(&self, _: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
        let own = runs.get(number);
        let gathered = own.and_then(|run| Some((run, run.collected::<Gathered>()?)));
        let Some((run, all)) = gathered else { return Completion::default() };
        let found = all.details(run.case.topology.ranks.len());
        let warnings = late_entries(&found, run.case.spec::<Spec>()).into_iter().collect();
        Completion { details: serde_json::to_value(found).ok(), warnings, ..Completion::default() }
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        let spec = case.spec::<Spec>();
        let time = match spec.sync {
            Sync::Window => "from the first entry to the last exit, on common time",
            Sync::Barrier => "of each rank by its own clock, from the exit of a barrier",
        };
        let late = format!("operations that a rank entered more than {} late", spec.max_late);
        let warm = match case.bound.time {
            Some(_) => format!("the first {} of a round", warmup(case)),
            None => format!("the first {} operations of a round", case.warmup),
        };
        let all = [
            ("time", time.to_string()),
            ("left out", format!("{warm}; {late}")),
            ("checked", "every result of every rank, outside of the times".to_string()),
        ];
        all.map(|(name, what)| (name.to_string(), what)).into()
    }
}

/// Below this share of operations that a rank entered late the times are those of the others.
const FEW: f64 = 0.1;

/// Whether so many operations were entered late that the others may not stand for all.
fn late_entries(found: &Details, spec: &Spec) -> Option<Warning> {
    let (late, of) = (found.late, found.operations);
    let allowed_ns = spec.max_late.0 as f64;
    (late as f64 > FEW * of as f64).then_some(Warning::LateEntries { late, of, allowed_ns })
}

/// The sample of one operation at one rank.
fn of_rank(spec: &Spec, size: Bytes, number: u64, row: &Row, own: End<'_>) -> Sample {
    let [intended, submit, receive, complete] =
        [row.intended, row.submit, row.receive, row.complete].map(|ticks| own.stamp(ticks));
    let size = size.0.min(u64::from(u32::MAX)) as u32;
    let is_late = submit - intended > spec.max_late.0 as f64;
    let flags = if is_late { row.flags.with(Flags::UNALIGNED) } else { row.flags };
    Sample::new(number, size, [intended, submit, f64::NAN, receive, complete], flags)
}

/// The operations of a round, from what each of its ranks has of them: from the first entry (the
/// submit) to the last exit (the receive), with the last entry as the send and the rank that left
/// last as the thread. An operation that a rank has not left is not among them. Its computing is
/// the longest of all ranks. What is flagged at one rank is flagged.
pub fn of_ranks(each: &[RoundSamples]) -> RoundSamples {
    let Some(first) = each.first() else { return RoundSamples::default() };
    let joined = |number: usize| {
        let all: Option<Vec<&Sample>> = each.iter().map(|one| one.samples.get(number)).collect();
        let all = all?;
        let most = |of: fn(&Sample) -> f64| all.iter().map(|one| of(one)).fold(f64::NAN, f64::max);
        let least = |of: fn(&Sample) -> f64| all.iter().map(|one| of(one)).fold(f64::NAN, f64::min);
        let is_whole = all.iter().all(|one| !one.submit_ns.is_nan() && !one.receive_ns.is_nan());
        let last = (0..).zip(&all).max_by(|a, b| a.1.receive_ns.total_cmp(&b.1.receive_ns));
        let (submit_ns, flags) =
            (least(|one| one.submit_ns), all.iter().fold(Flags::default(), |a, b| a.with(b.flags)));
        let one = Sample {
            thread: last.map_or(0, |(rank, _)| rank),
            intended_ns: least(|one| one.intended_ns),
            submit_ns,
            send_ns: most(|one| one.submit_ns),
            receive_ns: most(|one| one.receive_ns),
            complete_ns: submit_ns + most(|one| one.complete_ns - one.submit_ns),
            flags,
            ..**all.first()?
        };
        is_whole.then_some(one)
    };
    let samples = (0..first.samples.len()).filter_map(joined).collect();
    RoundSamples { run: first.run, round: first.round, samples }
}

impl Collector for Gathered {
    fn add_round(&mut self, seen: &RoundSeen<'_>) {
        Gathered::take(self, &seen.samples.samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::Timebase;
    use wiregauge_stats::metric::durations;

    /// What a rank has of operations that it entered and left at these instants; it was to enter
    /// them at 1000.
    fn rank(rows: &[(u64, u64, u64)]) -> RoundSamples {
        let time = Timebase::nanoseconds(Ticks(0));
        let spec = Spec { max_late: Span(50), ..Spec::default() };
        let row = |&(entry, exit, complete): &(u64, u64, u64)| Row {
            intended: Ticks(1000),
            submit: Ticks(entry),
            receive: Ticks(exit),
            complete: Ticks(complete),
            ..Row::default()
        };
        let one = |(number, of)| {
            of_rank(&spec, Bytes(8), number, &row(of), End { time: &time, offset: None })
        };
        RoundSamples { run: 1, round: 2, samples: (0..).zip(rows).map(one).collect() }
    }

    #[test]
    fn an_operation_is_from_the_first_entry_to_the_last_exit_of_all_ranks() {
        let ranks = [
            rank(&[(1010, 1500, 1110), (1010, 1400, 0)]),
            rank(&[(1005, 1450, 1205), (1005, 1600, 0)]),
            rank(&[(1030, 1490, 1130), (1020, 1500, 0)]),
        ];
        let found = of_ranks(&ranks);
        assert_eq!((found.run, found.round, found.samples.len()), (1, 2, 2));
        let stamps = found.samples[0].stamps();
        assert_eq!(stamps, [1000.0, 1005.0, 1030.0, 1500.0, 1205.0]);
        let last: Vec<u32> = found.samples.iter().map(|one| one.thread).collect();
        assert_eq!(last, [0, 1], "who left last");
        assert_eq!(durations(&found, Metric::Collective), [495.0, 595.0]);
        assert!(found.samples[1].complete_ns.is_nan(), "nothing was computed");
    }

    #[test]
    fn one_late_rank_flags_the_operation_and_keeps_it_out_of_the_times() {
        let ranks =
            [rank(&[(1010, 1500, 0), (1010, 1400, 0)]), rank(&[(1051, 1450, 0), (1050, 1600, 0)])];
        let found = of_ranks(&ranks);
        let late: Vec<bool> =
            found.samples.iter().map(|one| one.flags.has(Flags::UNALIGNED)).collect();
        assert_eq!(late, [true, false], "51 ns and 50 ns, of which 50 are allowed");
        assert_eq!(durations(&found, Metric::Collective), [590.0]);
    }

    #[test]
    fn late_entries_are_warned_of_where_they_are_more_than_a_few() {
        let of = |late| {
            let found = Details { operations: 1000, late, ..Details::default() };
            late_entries(&found, &Spec::default())
        };
        let (late, of_all, allowed_ns) = (101, 1000, 1000.0);
        assert_eq!(of(101), Some(Warning::LateEntries { late, of: of_all, allowed_ns }));
        assert_eq!(of(100), None);
    }

    #[test]
    fn an_operation_that_a_rank_has_not_left_is_none() {
        let ranks =
            [rank(&[(1010, 1500, 0), (1010, 1400, 0)]), rank(&[(1005, 1450, 0), (1005, 0, 0)])];
        assert_eq!(of_ranks(&ranks).samples.len(), 1);
        assert_eq!(of_ranks(&[rank(&[(1010, 1500, 0)]), rank(&[])]).samples.len(), 0);
        assert_eq!(of_ranks(&[]).samples.len(), 0);
    }
}
