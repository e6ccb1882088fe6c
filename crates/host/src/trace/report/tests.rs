//! Reports of a host's kernel, honest ones and others.

use super::*;
use wiregauge_clock::{TickSpan, Ticks};

fn stamp(time_ns: u64) -> Stamp {
    Stamp {
        time_ns,
        tid: MOST_THREADS - 1,
        flow: MOST_THREADS - 1,
        number: u32::MAX,
        length: u32::MAX,
        cpu: MOST_CPUS as u16 - 1,
        kind: Kind::Switch,
        in_kernel_thread: true,
    }
}

fn report(change: impl FnOnce(&mut TraceReport)) -> Result<(), &'static str> {
    let anchor = |ticks, raw_ns| Anchor { ticks: Ticks(ticks), raw_ns, half_width: TickSpan(9) };
    let mut report = TraceReport {
        kinds: Kind::ALL.to_vec(),
        missing: vec!["tcp_probe".into()],
        anchors: [anchor(1, 100), anchor(2, 200)],
        stamps: 2,
        full_ns: None,
        names: vec![(7, "ksoftirqd/0".into())],
        interrupts: vec![(9, "IRQ 9 (eth0)".into())],
    };
    change(&mut report);
    report.check(&[stamp(100), stamp(200)])
}

#[test]
fn what_a_kernel_can_have_stamped_passes_and_nothing_beyond() {
    assert_eq!(report(|_| ()), Ok(()));
    assert_eq!(report(|one| one.stamps = 3), Err("sent another number of stamps"));
    let outside = Err("stamped before or after the round");
    assert_eq!(report(|one| one.anchors[0].raw_ns = 101), outside);
    assert_eq!(report(|one| one.anchors[1].raw_ns = 199), outside);
    let backwards = Err("read clocks that run backwards");
    assert_eq!(report(|one| one.anchors[1].raw_ns = 100), backwards);
    assert_eq!(report(|one| one.anchors[1].ticks = Ticks(0)), backwards);
    assert_eq!(report(|one| one.anchors[0].half_width = TickSpan(-1)), backwards);
    let names = Err("sent more names than a host has");
    assert_eq!(report(|one| one.names = vec![(1, "x".into()); MOST_NAMES + 1]), names);
    assert_eq!(report(|one| one.interrupts[0].1 = "x".repeat(LONGEST_NAME + 1)), names);
    assert_eq!(report(|one| one.missing = vec![String::new(); 99]), names);
    let long = |one: &mut TraceReport| {
        one.names = vec![(1, "x".repeat(LONGEST_NAME + 1)); 2 * MOST_NAMES];
        *one = one.clone().bounded();
    };
    assert_eq!(report(long), Ok(()));
}

#[test]
fn stamps_out_of_order_are_no_round_s() {
    let anchor = |ticks, raw_ns| Anchor { ticks: Ticks(ticks), raw_ns, half_width: TickSpan(0) };
    let report = TraceReport {
        kinds: Vec::new(),
        missing: Vec::new(),
        anchors: [anchor(1, 1), anchor(2, 9)],
        stamps: 2,
        full_ns: None,
        names: Vec::new(),
        interrupts: Vec::new(),
    };
    assert_eq!(report.check(&[stamp(5), stamp(5)]), Ok(()));
    let wrong = "sent stamps out of the order of time";
    assert_eq!(report.check(&[stamp(5), stamp(4)]), Err(wrong));
}

#[test]
fn a_stamp_names_a_thread_and_a_cpu_that_linux_can_have_and_is_the_kernel_s() {
    assert!(is_possible(&stamp(1)));
    assert!(!is_possible(&Stamp { tid: MOST_THREADS, ..stamp(1) }));
    assert!(!is_possible(&Stamp { flow: MOST_THREADS, ..stamp(1) }));
    assert!(is_possible(&Stamp { flow: u32::MAX, kind: Kind::Queue, ..stamp(1) }));
    assert!(!is_possible(&Stamp { cpu: MOST_CPUS as u16, ..stamp(1) }));
    assert!(!is_possible(&Stamp { kind: Kind::Post, ..stamp(1) }));
}
