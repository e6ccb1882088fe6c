//! Sample memory of an agent whose controller is on another host: made here, watched while the
//! loops run, and sent when they are over.

use super::channel;
use crate::control::frame::{self, FrameError};
use crate::control::patience::patience;
use crate::control::protocol::{Assignment, FromAgent};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_clock::exchange::Local;
use wiregauge_plan::Case;
use wiregauge_sample::arena::{Arena, Row};

/// Time to set up a round and report it: several times what the controller waits for each step.
const SET_UP: Duration = Duration::from_secs(60);
/// Interval between two checks of the loops' progress.
const CHECK: Duration = Duration::from_secs(1);
/// Interval between two progress reports: rare enough not to disturb the loop.
pub const REPORT: Duration = Duration::from_secs(5);
/// Rows per frame: at most 58 B each as varints, which fits `frame::LONGEST`.
pub const ROWS: usize = 16_384;

/// The files of the threads' sample memory: the controller's, or new ones where it is on another
/// host. Each thread opens its own and touches every page on its CPU. The loops are watched until
/// they are over.
pub(crate) fn memory(
    case: &Case,
    assignment: &Assignment,
    is_over: &Arc<AtomicBool>,
) -> io::Result<Vec<PathBuf>> {
    let Some(rows) = assignment.remote_rows else {
        return Ok(assignment.slots.iter().map(|slot| slot.arena.clone()).collect());
    };
    let rows = usize::try_from(rows).map_err(io::Error::other)?;
    let made = assignment.slots.iter().map(|_| Arena::create(rows));
    let made: Vec<Arena> = made.collect::<io::Result<_>>()?;
    let paths = made.iter().map(Arena::path).collect();
    let limit = 2 * patience(case) + SET_UP;
    let elsewhere = assignment.cpu_beside();
    let is_over = Arc::clone(is_over);
    threads::spawn("watch the loops", move || watch(&made, limit, elsewhere, &is_over))?;
    Ok(paths)
}

/// Reports the loops' progress, and ends this process after `limit` without any. A silent
/// control connection may be dead without notice, and a polling loop would spin for ever; the
/// controller has given up long before.
fn watch(memory: &[Arena], limit: Duration, cpu: Option<u32>, is_over: &AtomicBool) {
    // Where that fails it wakes once a second beside the loop.
    let _ = cpu.map(wiregauge_host::pin_to);
    let (mut handled, mut moved) = (0, Instant::now());
    let (mut reported, mut report) = (0, Instant::now());
    while moved.elapsed() < limit {
        // Before a report, which the controller would not expect after the round.
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let now = memory.iter().map(Arena::progress).sum();
        if now != handled {
            (handled, moved) = (now, Instant::now());
        }
        if now != reported && report.elapsed() >= REPORT {
            // The thread that reads the control channel notices a controller that is gone.
            let report_to = |mut to| frame::write(&mut to, &FromAgent::Progress(now));
            let _ = channel::output().map(report_to);
            (reported, report) = (now, Instant::now());
        }
        std::thread::sleep(CHECK);
    }
    std::process::exit(3);
}

/// Sends a thread's samples, with the stamps of this host's clock.
pub(crate) fn send_rows(
    thread: u32,
    rows: &[Row],
    clock: &Local,
    output: &mut impl io::Write,
) -> Result<(), FrameError> {
    let stamped = |row: &Row| Row {
        intended: clock.stamp(row.intended),
        submit: clock.stamp(row.submit),
        receive: clock.stamp(row.receive),
        complete: clock.stamp(row.complete),
        ..*row
    };
    rows.chunks(ROWS).try_for_each(|rows| {
        let rows = rows.iter().map(stamped).collect();
        frame::write(output, &FromAgent::Rows { thread, rows })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::{Source, Ticks, Timebase};
    use wiregauge_sample::Flags;

    #[test]
    fn the_largest_rows_fit_a_frame_and_come_back() {
        let most = Ticks(u64::MAX);
        let row = Row {
            intended: most,
            submit: most,
            receive: most,
            complete: most,
            flags: Flags(u32::MAX),
            order: u32::MAX,
        };
        let mut arena = Arena::create(ROWS + 1).unwrap();
        assert!(arena.extend(&vec![row; ROWS]) && arena.extend(&[Row::default()]));
        assert!(!arena.extend(&[row]), "there is no room");
        let mut channel = Vec::new();
        let time = Timebase::nanoseconds(Ticks(0));
        let clock = Local { source: Source::MonotonicRaw, time, injected_error: None };
        send_rows(u32::MAX, arena.rows(), &clock, &mut channel).unwrap();
        let mut channel = channel.as_slice();
        let mut back = Vec::new();
        for _ in 0..2 {
            let Ok(FromAgent::Rows { rows, .. }) = frame::read(&mut channel) else { panic!() };
            back.extend(rows);
        }
        assert_eq!(back, arena.rows());
    }
}
