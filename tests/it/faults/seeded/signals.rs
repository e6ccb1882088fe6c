//! Signals at any instant, to the controller and to its agents.

use super::{Fault, Makes, instant, short_run};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;
use wiregauge_test_support::bounded::{self, LIMIT, Running};

/// Signals by which a user or a system ends a run.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::QUIT, Signal::HUP];
/// Longest time in microseconds for which a process stands still that goes on.
const MAX_STOP: usize = 300_000;

fn started(fault: &mut Fault) -> Running {
    let line = short_run(fault);
    let words: Vec<&str> = line.split(' ').collect();
    // A process that is killed by SEGV or QUIT leaves no image of its memory.
    bounded::start(&mut fault.behind(&["prlimit", "--core=0"], &words))
}

fn send(fault: &mut Fault, pid: u32, signal: Signal) {
    fault.did(format!("{signal:?} to {pid}"));
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

fn pause(fault: &mut Fault, most: usize) {
    sleep(Duration::from_micros(fault.below(most) as u64));
}

/// The agents that run now, as processes of this fault.
fn agents(fault: &Fault, controller: u32) -> Vec<i32> {
    fault.processes().into_iter().filter(|pid| *pid != controller as i32).collect()
}

pub fn of_controller() -> Makes {
    Box::new(|fault| {
        let signal = *fault.pick(&ENDING);
        let running = started(fault);
        sleep(instant(fault));
        let group = Pid::from_raw(running.id() as i32).unwrap();
        if fault.below(2) == 0 {
            send(fault, running.id(), signal);
        } else {
            fault.did(format!("{signal:?} to the group of {group:?}"));
            let _ = kill_process_group(group, signal);
        }
        if fault.below(4) == 0 {
            pause(fault, 50_000);
            send(fault, running.id(), signal);
        }
        let output = running.end(LIMIT);
        // Before it has said what a signal is to do, and after it was told twice, it ends by it.
        fault.ended(&output, &[0, 3, 4], &[signal.as_raw()]);
        let is_kept = fault.left(&[]);
        assert!(is_kept || output.status.code() != Some(0), "complete without a record");
    })
}

pub fn deaths() -> Makes {
    Box::new(|fault| {
        let signal = *fault.pick(&[Signal::KILL, Signal::KILL, Signal::SEGV, Signal::STOP]);
        let running = started(fault);
        sleep(instant(fault));
        send(fault, running.id(), signal);
        match signal {
            // The first is taken for a stack overflow, and the second ends it.
            Signal::SEGV => send(fault, running.id(), signal),
            Signal::STOP => {
                pause(fault, MAX_STOP);
                send(fault, running.id(), Signal::CONT);
            }
            _ => {}
        }
        let output = running.end(LIMIT);
        let killed = [Signal::KILL, Signal::SEGV].map(Signal::as_raw);
        fault.ended(&output, &[0, 3], &killed);
        fault.left(&[]);
    })
}

pub fn of_agents() -> Makes {
    Box::new(|fault| {
        let all = [ENDING.as_slice(), &[Signal::KILL, Signal::SEGV, Signal::STOP]].concat();
        let signal = *fault.pick(&all);
        let running = started(fault);
        sleep(instant(fault));
        let found = agents(fault, running.id());
        if !found.is_empty() {
            let agent = *fault.pick(&found) as u32;
            send(fault, agent, signal);
            if signal == Signal::SEGV {
                send(fault, agent, signal);
            }
            // One that does not go on is a stall.
            if signal == Signal::STOP && fault.below(3) > 0 {
                pause(fault, MAX_STOP);
                send(fault, agent, Signal::CONT);
            }
        }
        let output: Output = running.end(LIMIT);
        fault.ended(&output, &[0, 3, 4], &[]);
        fault.left(&[]);
    })
}
