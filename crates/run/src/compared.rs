//! The clocks of other hosts compared with this one's over a time, and nothing else (`clocks`).

use super::{RunContext, RunError, clocks, summary};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wiregauge_base::units::Span;
use wiregauge_base::wall_clock::Started;
use wiregauge_base::warning::Warning;
use wiregauge_clock::exchange::Local;
use wiregauge_clock::offset::{Exchange, Model};
use wiregauge_clock::{LocalNs, Source};
use wiregauge_figures::record::schema::{
    ClockHistory, ClockKnown, ClockOffset, ClockPoint, Record, RecordedWarning,
};
use wiregauge_host::Environment;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Plan;
use wiregauge_remote::clocks::Comparison;
use wiregauge_remote::host::RemoteHost;
use wiregauge_transport::Interfaces;

/// Rows of what was known by then.
const ROWS: u32 = 10;
/// Points of what is known at the end of each time.
const POINTS: u32 = 200;
/// How far ahead it is told what will be known without another exchange.
const AHEAD_NS: f64 = 100e9;
/// Between two looks at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// Compares for a time, all hosts at once. The plan has no cases.
pub fn compare(
    plan: &Plan,
    context: &RunContext<'_>,
    mut hosts: Vec<&mut RemoteHost>,
    interface: Option<&Interfaces>,
    length: Span,
) -> Result<Record, RunError> {
    let started = Started::now();
    let time = clocks::calibrated(plan, context)?;
    let environment = Environment::read(&[]);
    for host in &hosts {
        clocks::stated(host, &time, &environment)?;
    }
    let local = time.local();
    let mut running = Vec::new();
    for host in &mut hosts {
        if time.source == Source::Ptp {
            // Both count from 1970: told from one zero, the offset is that of the clocks.
            host.probe.local.time.epoch = time.base.epoch;
        }
        let started =
            Comparison::start(host, interface, local, Vec::new(), plan.injected_clock_error);
        running.push(started?);
    }
    let begin = Instant::now();
    while begin.elapsed() < length.duration() && !context.interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    let (mut histories, mut recorded, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (host, comparison)) in hosts.iter().zip(running).enumerate() {
        // What was known by then stays.
        let (exchanges, cut) = comparison.exchanges();
        faults.extend(cut.map(|fault| fault.to_string()));
        let wrong = |error| Local { injected_error: Some(error), ..host.probe.local };
        let truth = Truth { own: local, other: plan.injected_clock_error.map(wrong) };
        let cost = clocks::cost(&exchanges, comparison.end());
        let Some(known) = history(&exchanges, &truth) else {
            let name = host.session.host();
            let sentence = format!("no clock exchange with {name} could be used");
            return Err(Fault::new(sentence).into());
        };
        histories.push(ClockHistory { host: number as u32, ..known });
        recorded.push(summary::other_host(host, Vec::new(), Some(cost)));
    }
    let base = summary::record(plan, context, &time, &environment, started);
    let interrupted = context.interrupted.load(Ordering::Relaxed);
    let stepped = histories.iter().zip(&recorded);
    let stepped = stepped.filter_map(|(history, host)| stepped_on(&host.name, history));
    Ok(Record {
        complete: !interrupted && faults.is_empty(),
        faults: interrupted
            .then(|| Fault::Interrupted.to_string())
            .into_iter()
            .chain(faults)
            .collect(),
        warnings: base.warnings.into_iter().chain(stepped).collect(),
        hosts: recorded,
        clocks: histories,
        ..base
    })
}

/// Warns of a clock that was set, or changed its rate.
fn stepped_on(host: &str, history: &ClockHistory) -> Option<RecordedWarning> {
    let times = history.known.last()?.clock.steps;
    (times > 0).then(|| RecordedWarning::on_host(&Warning::ClockStepped { times }, host))
}

/// What a clock that was made wrong really shows. Both hosts must read one counter for it: they
/// are two networks of one machine.
struct Truth {
    own: Local,
    /// The one that was made wrong.
    other: Option<Local>,
}

impl Truth {
    /// The true offset at a time of this host's clock; `None` where nobody knows it.
    fn offset_ns(&self, at: LocalNs) -> Option<f64> {
        let other = self.other.as_ref()?;
        // Not by whole ticks, which would round to some 0.4 ns.
        let ticks = (self.own.time.epoch - other.time.epoch).0 as f64;
        let after = at.0 / self.own.time.ns_per_tick + ticks;
        Some(other.shown(LocalNs(after * other.time.ns_per_tick)).0 - at.0)
    }

    /// The same of the drift, from two offsets a millisecond apart.
    fn drift_ppm(&self, at: LocalNs) -> Option<f64> {
        let [before, now] = [at.0 - 1e6, at.0].map(|at| self.offset_ns(LocalNs(at)));
        Some((now? - before?) / 1e6 * 1e6)
    }
}

/// What the exchanges tell; without the host and the cost.
fn history(exchanges: &[Exchange], truth: &Truth) -> Option<ClockHistory> {
    let (first, last) = (exchanges.first()?, exchanges.last()?);
    let begin = first.sent;
    let length_ns = last.heard - begin;
    let known = (1..=ROWS).filter_map(|number| {
        let after_ns = length_ns * f64::from(number) / f64::from(ROWS);
        let until = exchanges.partition_point(|exchange| exchange.heard - begin <= after_ns);
        let known = &exchanges[..until];
        let (at, model) = (known.last()?.heard, Model::fit(known)?);
        Some(ClockKnown {
            after_s: (at - begin) / 1e9,
            clock: ClockOffset::at(&model, known, at)?,
            true_offset_ns: truth.offset_ns(at),
            true_drift_ppm: truth.drift_ppm(at),
        })
    });
    let known: Vec<ClockKnown> = known.collect();
    let model = Model::fit(exchanges)?;
    let point = |after_ns: f64| {
        let at = LocalNs(begin.0 + after_ns);
        let (offset, drift) = (model.offset_at(at), model.drift_at(at)?);
        Some(ClockPoint {
            after_s: after_ns / 1e9,
            offset_ns: offset.ns,
            bound_ns: offset.bound_ns,
            drift_ppm: drift.ppm,
            drift_bound_ppm: drift.bound_ppm,
            true_offset_ns: truth.offset_ns(at),
        })
    };
    let part = |number: u32| length_ns * f64::from(number) / f64::from(POINTS);
    Some(ClockHistory {
        points: (0..=POINTS).filter_map(|number| point(part(number))).collect(),
        later: point(length_ns + AHEAD_NS)?,
        known,
        ..ClockHistory::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use wiregauge_base::units::InjectedClockError;
    use wiregauge_clock::{Ticks, Timebase};
    use wiregauge_remote::program::AgentProgram;

    /// Far above what a busy machine takes to calibrate a clock.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// An exchange each second, eleven of 2 us there and back, with a clock that is ahead by 5 us.
    fn exchanges() -> Vec<Exchange> {
        let exchange = |second: u32| {
            let sent = f64::from(second) * 1e9;
            let [reached, heard] = [1000.0, 2000.0].map(|after| LocalNs(sent + after));
            let other = LocalNs(reached.0 + 5000.0);
            Exchange { sent: LocalNs(sent), reached: other, answered: other, heard }
        };
        (1..=11).map(exchange).collect()
    }

    fn local(epoch: u64, injected_error: Option<InjectedClockError>) -> Local {
        let time = Timebase { epoch: Ticks(epoch), ns_per_tick: 0.5 };
        Local { source: Source::MonotonicRaw, time, injected_error }
    }

    #[test]
    fn a_clock_that_was_made_wrong_shows_so_much_more_than_its_epoch_says() {
        let error = InjectedClockError { offset_ns: 700.0, drift_ppm: 20.0, ..Default::default() };
        let truth = Truth { own: local(5000, None), other: Some(local(1000, Some(error))) };
        // It has counted 4000 ticks of 0.5 ns more, and 20 ppm of its 1.000002 s are 20000.04 ns.
        let offset = truth.offset_ns(LocalNs(1e9)).unwrap();
        assert!((offset - (2000.0 + 700.0 + 20_000.04)).abs() < 1e-3, "{offset}");
        assert!((truth.drift_ppm(LocalNs(1e9)).unwrap() - 20.0).abs() < 1e-3);
        let unknown = Truth { own: local(5000, None), other: None };
        assert_eq!(
            (unknown.offset_ns(LocalNs(1e9)), unknown.drift_ppm(LocalNs(1e9))),
            (None, None)
        );
    }

    #[test]
    fn a_clock_that_was_set_is_warned_of_with_its_host() {
        let stepped = |steps: &[u64]| {
            let row = |steps: &u64| {
                let clock = ClockOffset { steps: *steps, ..ClockOffset::default() };
                ClockKnown { clock, ..ClockKnown::default() }
            };
            let known = steps.iter().map(row).collect();
            stepped_on("node07", &ClockHistory { known, ..ClockHistory::default() })
        };
        let twice = RecordedWarning::on_host(&Warning::ClockStepped { times: 2 }, "node07");
        assert_eq!((stepped(&[0, 1, 2]), stepped(&[0, 0])), (Some(twice), None));
    }

    #[test]
    fn a_history_has_what_was_known_at_ten_times_and_what_is_known_of_each() {
        let error = InjectedClockError { offset_ns: 5000.0, ..Default::default() };
        let truth = Truth { own: local(0, None), other: Some(local(0, Some(error))) };
        let found = history(&exchanges(), &truth).unwrap();
        // The first has come back after 2 us, the last at the end.
        let known: Vec<_> =
            found.known.iter().map(|row| (row.after_s, row.clock.exchanges)).collect();
        let after = |second: u32| f64::from(second) + 2e-6;
        let mut expected: Vec<(f64, u64)> =
            (1..=9).map(|row| (after(row - 1), row.into())).collect();
        expected.push((after(10), 11));
        assert_eq!(known, expected);
        let last = found.known.last().unwrap();
        let off = (last.clock.offset_ns - 5000.0).abs();
        assert!(off <= last.clock.bound_ns && last.clock.bound_ns < 3000.0, "{last:?}");
        assert_eq!(last.true_offset_ns, Some(5000.0));
        assert_eq!(last.true_drift_ppm, Some(0.0));
        let [first, .., end] = found.points.as_slice() else { panic!() };
        assert_eq!((found.points.len(), first.after_s, end.after_s), (201, 0.0, after(10)));
        assert_eq!(found.later.after_s, after(110));
        assert!(
            found.later.bound_ns > end.bound_ns && (end.offset_ns - 5000.0).abs() <= end.bound_ns
        );
        assert_eq!(end.true_offset_ns, Some(5000.0));
        assert!(history(&[], &truth).is_none());
    }

    #[test]
    fn the_true_offsets_of_a_history_are_those_of_its_times() {
        let error = InjectedClockError { drift_ppm: 10.0, ..Default::default() };
        let truth = Truth { own: local(0, None), other: Some(local(0, Some(error))) };
        let found = history(&exchanges(), &truth).unwrap();
        let [first, .., last] = found.points.as_slice() else { panic!() };
        // 10 us after each second of the clock, which shows 1 s at the first point.
        let is_near = |found: Option<f64>, known: f64| (found.unwrap() - known).abs() < 1.0;
        assert!(is_near(first.true_offset_ns, 10e3), "{first:?}");
        assert!(is_near(last.true_offset_ns, 110e3), "{last:?}");
        assert!(is_near(found.later.true_offset_ns, 1110e3), "{:?}", found.later);
    }

    #[test]
    fn a_comparison_ends_with_its_time_or_where_it_is_interrupted() {
        let mut plan = wiregauge_patterns::latency::request(Default::default()).plan().unwrap();
        plan.cases.clear();
        let ended = |is_interrupted, length| {
            let interrupted = &AtomicBool::new(is_interrupted);
            let context = RunContext {
                program: AgentProgram::Other("".into()),
                command: Vec::new(),
                clock: None,
                interrupted,
                hosts: &[],
                unavailable: Vec::new(),
                report_every: None,
                patterns: wiregauge_patterns::registry::analysis,
                sides: Default::default(),
                observer: None,
            };
            let record = std::thread::scope(|scope| {
                let (ended, waited) = mpsc::channel::<()>();
                // One that does not end by itself ends by the other cause, and shows it.
                scope.spawn(move || {
                    if waited.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                        interrupted.fetch_not(Ordering::Relaxed);
                    }
                });
                let record = compare(&plan, &context, Vec::new(), None, length).unwrap();
                drop(ended);
                record
            });
            (record.complete, record.faults)
        };
        assert_eq!(ended(false, Span(0)), (true, Vec::new()));
        let long = Span(3_600_000_000_000);
        assert_eq!(ended(true, long), (false, vec![Fault::Interrupted.to_string()]));
    }
}
