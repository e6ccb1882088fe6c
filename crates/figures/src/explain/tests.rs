//! Messages whose stamps are made up: stages and causes with known answers.

mod causes;

use super::apart::Kernels;
use super::causes::{Evidence, cause};
use super::disturbance::{Disturbances, Held};
use super::path::{Way, begin, steps};
use super::split::{RoundSplit, Split, split_rounds};
use super::stamps::{Owners, Stamps};
use super::{Cause, Explainer, KernelClock, Named, RoundTrace, Tracing};
use std::collections::BTreeMap;
use wiregauge_clock::{Anchor, TickSpan, Ticks, Timebase};
use wiregauge_host::trace::{Kind, Stamp, Trace};
use wiregauge_plan::Followed;
use wiregauge_sample::{Flags, RoundSamples, Sample};
use wiregauge_transport::KernelPath;

const CLIENT: u32 = 100;
const SERVER: u32 = 200;
const OTHER: u32 = 300;
const THERE: u32 = 5000 << 16 | 6000;
const BACK: u32 = 6000 << 16 | 5000;

/// The nanoseconds of one clock are those of the other, from 0 on.
pub(super) fn clock() -> KernelClock {
    let anchor = |at| Anchor { ticks: Ticks(at), raw_ns: at, half_width: TickSpan(15) };
    KernelClock::new(anchor(0), anchor(1 << 40), &Timebase::nanoseconds(Ticks(0)))
}

fn stamp(time_ns: u64, kind: Kind, tid: u32, flow: u32) -> Stamp {
    let cpu = u16::from(tid == SERVER);
    let length = 64;
    Stamp { time_ns, tid, flow, number: 0, length, cpu, kind, in_kernel_thread: false }
}

/// One leg of a message that polls: each step after so many ns.
fn leg(at: u64, sender: u32, receiver: u32, flow: u32, steps_ns: [u64; 8]) -> Vec<Stamp> {
    let kinds = [
        Kind::Send,
        Kind::Queue,
        Kind::Xmit,
        Kind::NetifRx,
        Kind::Receive,
        Kind::TcpProbe,
        Kind::Ready,
        Kind::Copied,
    ];
    let mut at = at;
    let one = |(kind, ns): (Kind, u64)| {
        at += ns;
        stamp(at, kind, if kind == Kind::Copied { receiver } else { sender }, flow)
    };
    kinds.into_iter().zip(steps_ns).map(one).collect()
}

const USUAL: [u64; 8] = [100, 200, 30, 40, 50, 60, 70, 300];

/// A round trip that begins at an instant: its sample and its stamps.
fn message(sequence: u64, at: u64, there: [u64; 8], back: [u64; 8]) -> (Sample, Vec<Stamp>) {
    let mut stamps = leg(at, CLIENT, SERVER, THERE, there);
    let turn = at + there.iter().sum::<u64>();
    stamps.extend(leg(turn, SERVER, CLIENT, BACK, back));
    let end = (turn + back.iter().sum::<u64>() + 80) as f64;
    let none = f64::NAN;
    (Sample::new(sequence, 64, [none, at as f64, none, end, none], Flags::default()), stamps)
}

/// A round of usual messages, 10 us apart, but for some.
fn round(
    messages: u64,
    special: impl Fn(u64) -> Option<([u64; 8], [u64; 8])>,
    more: Vec<Stamp>,
) -> (Vec<Sample>, Trace) {
    let (mut samples, mut stamps, mut at) = (Vec::new(), more, 1_000);
    for number in 0..messages {
        let (there, back) = special(number).unwrap_or((USUAL, USUAL));
        let (sample, own) = message(number, at, there, back);
        at = sample.receive_ns as u64 + 10_000;
        samples.push(sample);
        stamps.extend(own);
    }
    stamps.sort_by_key(|stamp| stamp.time_ns);
    let names = [(OTHER, "hog"), (17, "ksoftirqd/1")];
    let names = names.into_iter().map(|(tid, name)| (tid, name.to_owned())).collect();
    let interrupts = [(33, "IRQ 33 (eth0)".to_owned())].into_iter().collect();
    (samples, Trace { stamps, full_ns: None, names, interrupts })
}

fn splits(samples: &[Sample], stamps: &Stamps<'_>) -> RoundSplit {
    split_by(samples, stamps, &way(Followed::Alone))
}

/// With the first step that these stamps have.
pub(super) fn split_by(samples: &[Sample], stamps: &Stamps<'_>, way: &Way) -> RoundSplit {
    let has = |kind| stamps.all.iter().any(|stamp| stamp.kind == kind);
    split_rounds(&[(samples, stamps)], way, begin(way.steps, has).unwrap()).remove(0)
}

fn way(followed: Followed) -> Way {
    way_over(KernelPath::Segments, followed)
}

/// The way of messages over a path, with all of its steps.
pub(super) fn way_over(path: KernelPath, followed: Followed) -> Way {
    Way {
        path,
        steps: steps(path),
        followed,
        framing: 0,
        is_scheduled: false,
        kernels: Kernels::One,
    }
}

fn split_of(samples: &[Sample], trace: &Trace) -> RoundSplit {
    splits(samples, &Stamps::new(trace, &clock()))
}

fn is_ready(stamp: &Stamp) -> bool {
    stamp.kind == Kind::Ready && stamp.flow == THERE
}

/// A thread leaves its CPU in a state for another.
fn leaves(at: u64, tid: u32, state: u32, next: u32) -> Stamp {
    Stamp { number: state, length: 1, ..stamp(at, Kind::Switch, tid, next) }
}

fn comes(at: u64, before: u32, tid: u32) -> Stamp {
    Stamp { length: 2, cpu: 1, ..stamp(at, Kind::Switch, before, tid) }
}

#[test]
fn stages_are_the_times_between_stamps_and_add_up_to_the_measured_time() {
    let (samples, trace) = round(10, |_| None, Vec::new());
    let found = split_of(&samples, &trace);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (10, 0, 0));
    let names: Vec<&str> = found.stages.iter().map(|stage| stage.name.as_str()).collect();
    let leg = [
        "TCP and IP send",
        "device queue (qdisc)",
        "driver",
        "SoftIRQ and NAPI",
        "IP receive",
        "TCP receive",
        "poll and copy",
    ];
    let first = ["application call, system call"];
    let second = ["return, application call, system call"];
    let last = ["return, to the application"];
    let expected = [&first[..], &leg, &second, &leg, &last].concat();
    assert_eq!(names, expected);
    let one = &found.messages[3];
    let usual = USUAL.map(|ns| ns as f64);
    assert_eq!(one.stages_ns, [&usual[..], &usual, &[80.0]].concat());
    assert_eq!(one.stages_ns.iter().sum::<f64>(), one.total_ns);
    assert_eq!(one.threads, [CLIENT, SERVER]);
}

#[test]
fn stamps_of_sockets_split_a_message_and_only_its_looks_cost() {
    let sockets = |at: u64, flow, cpu| {
        let kinds = [Kind::TxQueue, Kind::TxDriver, Kind::RxHost, Kind::Arrived];
        let times = kinds.into_iter().zip([at + 800, at + 900, at + 1_200, at + 3_200]);
        times.map(move |(kind, at)| Stamp { cpu, ..stamp(at, kind, CLIENT, flow) })
    };
    let (mut samples, mut stamps) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let at = 1_000 + number * 10_000;
        stamps.extend(sockets(at, THERE, 1).chain(sockets(at + 3_200, BACK, 0)));
        let (none, end) = (f64::NAN, (at + 6_500) as f64);
        samples.push(Sample::new(number, 64, [none, at as f64, none, end, none], Flags::default()));
    }
    let trace = Trace { stamps, ..Trace::default() };
    let (mut explainer, way) = (Explainer::default(), way(Followed::Alone).by_sockets());
    let untraced: Vec<Sample> = samples
        .iter()
        .map(|sample| Sample { receive_ns: sample.receive_ns - 1_000.0, ..*sample })
        .collect();
    explainer.add_untraced(&RoundSamples { run: 0, round: 0, samples: untraced }, &way);
    let (clock, owners) = (clock(), Owners::default());
    let samples = RoundSamples { run: 1, round: 0, samples };
    explainer.add(RoundTrace { samples, trace, clock, owners, bound_ns: 0.0 });
    let kinds = [Kind::TxQueue, Kind::TxDriver, Kind::RxHost, Kind::Arrived];
    let trace_points = kinds.map(|kind| (kind, kind.name()));
    let tracing =
        Tracing { way, trace_points: &trace_points, missing: &[], sees_all: false, refused: None };
    let found = explainer.explain(&tracing).unwrap();
    let best: Vec<f64> = found.stages.iter().map(|stage| stage.best_ns).collect();
    let leg = [800.0, 100.0, 300.0, 1_500.0];
    assert_eq!(best, [&leg[..], &leg, &[100.0, 1_000.0]].concat());
    assert_eq!((found.messages, found.incomplete), (100, 0));
    assert!(found.stages.iter().all(|stage| stage.on_cpu_ns.is_none()));
}

#[test]
fn messages_without_a_stamp_or_with_stamps_out_of_order_are_left_out_and_counted() {
    let (samples, mut trace) = round(10, |_| None, Vec::new());
    let of_message = |number: usize, kind: Kind| {
        let from = samples[number].submit_ns as u64;
        trace.stamps.iter().position(|one| one.time_ns >= from && one.kind == kind).unwrap()
    };
    let (lacks, early) = (of_message(2, Kind::Receive), of_message(5, Kind::Receive));
    // It shows a time before the stamp before it.
    let sent = trace.stamps[of_message(5, Kind::Send)].time_ns;
    trace.stamps[early].time_ns = sent - 1;
    trace.stamps.remove(lacks);
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    let found = split_of(&samples, &trace);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (8, 1, 1));
    // The memory was full after the seventh.
    let end = samples[6].receive_ns as u64 + 1;
    trace.stamps.retain(|stamp| stamp.time_ns < end);
    trace.full_ns = Some(end);
    assert_eq!(split_of(&samples, &trace).beyond, 3);
}

#[test]
fn a_trace_point_that_a_kernel_lacks_is_merged_into_the_next() {
    let (samples, mut trace) = round(10, |_| None, Vec::new());
    trace.stamps.retain(|stamp| stamp.kind != Kind::TcpProbe);
    let found = split_of(&samples, &trace);
    assert_eq!(found.messages.len(), 10);
    let merged = found.stages.iter().position(|one| one.name == "IP receive, TCP receive");
    assert_eq!(found.messages[0].stages_ns[merged.unwrap()], 130.0);
}

#[test]
fn a_kernel_without_the_first_trace_point_and_the_last_shows_the_stages_between() {
    let (samples, mut trace) = round(10, |_| None, Vec::new());
    trace.stamps.retain(|stamp| !matches!(stamp.kind, Kind::Send | Kind::Ready));
    let found = split_of(&samples, &trace);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (10, 0, 0));
    let first = &found.stages[0];
    assert_eq!(first.name, "application call, system call, TCP and IP send");
    assert_eq!(found.messages[0].stages_ns[0], 300.0);
    assert!(found.stages.iter().any(|one| one.name == "TCP receive, poll and copy"));
}

#[test]
fn a_thread_that_slept_has_a_stage_for_its_wake_up() {
    let slept = |_| Some(([100, 200, 30, 40, 50, 60, 70, 9_000], USUAL));
    let (samples, mut trace) = round(200, slept, Vec::new());
    let ready: Vec<u64> = trace.stamps.iter().filter(|s| is_ready(s)).map(|s| s.time_ns).collect();
    for at in ready {
        trace.stamps.push(stamp(at + 20, Kind::Waking, CLIENT, SERVER));
        let takes = Stamp { length: 2, ..stamp(at + 8_000, Kind::Switch, 0, SERVER) };
        trace.stamps.push(Stamp { cpu: 1, ..takes });
    }
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    let found = split_of(&samples, &trace);
    let of = |name: &str| {
        let at = found.stages.iter().position(|one| one.name == name).unwrap();
        found.messages[0].stages_ns[at]
    };
    assert_eq!(
        [of("wake-up call"), of("wake-up"), of("running and copy")],
        [20.0, 7_980.0, 1_000.0]
    );
}

#[test]
fn rounds_have_the_same_stages_though_messages_of_one_of_them_pass_fewer() {
    let slept = |_| Some(([100, 200, 30, 40, 50, 60, 70, 9_000], USUAL));
    let (mut samples, mut traces) = (Vec::new(), Vec::new());
    for (own, mut trace) in [round(100, slept, Vec::new()), round(100, |_| None, Vec::new())] {
        let ready = trace.stamps.iter().filter(|one| is_ready(one)).map(|one| one.time_ns);
        for at in ready.collect::<Vec<u64>>().into_iter().filter(|_| samples.is_empty()) {
            trace.stamps.push(stamp(at + 20, Kind::Waking, CLIENT, SERVER));
            trace.stamps.push(stamp(at + 8_000, Kind::Switch, 0, SERVER));
        }
        trace.stamps.sort_by_key(|stamp| stamp.time_ns);
        samples.push(own);
        traces.push(trace);
    }
    let clock = clock();
    let stamps: Vec<Stamps<'_>> = traces.iter().map(|one| Stamps::new(one, &clock)).collect();
    let rounds: Vec<(&[Sample], &Stamps<'_>)> =
        samples.iter().map(Vec::as_slice).zip(&stamps).collect();
    let way = way(Followed::Alone);
    let found = split_rounds(&rounds, &way, begin(way.steps, |kind| kind == Kind::Send).unwrap());
    assert_eq!(found[0].stages, found[1].stages);
    assert_eq!([found[0].messages.len(), found[1].messages.len()], [100, 100]);
    let wake_up = found[1].stages.iter().position(|one| one.name == "wake-up").unwrap();
    assert_eq!(
        [0, 1].map(|round: usize| found[round].messages[5].stages_ns[wake_up]),
        [7_980.0, 0.0]
    );
}

#[test]
fn an_interval_that_began_long_before_is_found() {
    let long = vec![leaves(10, SERVER, 0, OTHER), comes(500_000, OTHER, SERVER)];
    let (_, trace) = round(5, |_| None, long);
    let clock = clock();
    let stamps = Stamps::new(&trace, &clock);
    let found = Disturbances::new(&trace, &stamps);
    let within = found.within(Held::Thread(SERVER), 400_000.0, 400_100.0);
    assert_eq!(within.len(), 1);
    assert_eq!(within[0].1, 100.0);
    assert!(found.within(Held::Thread(CLIENT), 0.0, 1e9).is_empty());
}

#[test]
fn what_the_probes_add_is_a_stage_of_its_own_and_the_sum_stays() {
    let mut explainer = Explainer::default();
    let (samples, trace) = round(2_000, |_| None, Vec::new());
    let traced = RoundSamples { run: 1, round: 0, samples: samples.clone() };
    let total = samples[0].receive_ns - samples[0].submit_ns;
    // Without tracing each message took 160 ns less: 10 for each of 16 stamps.
    let without = samples.iter().map(|sample| {
        let mut sample = *sample;
        sample.receive_ns -= 160.0;
        sample
    });
    let without = RoundSamples { run: 0, round: 0, samples: without.collect() };
    explainer.add_untraced(&without, &way(Followed::Alone));
    explainer.add(RoundTrace {
        samples: traced,
        trace,
        clock: clock(),
        owners: Owners::default(),
        bound_ns: 0.0,
    });
    let found = explainer.explain(&Tracing {
        way: way(Followed::Alone),
        trace_points: &[(Kind::Send, "send"), (Kind::Copied, "sock_recv_length")],
        refused: None,
        missing: &["tcp_probe".to_owned()],
        sees_all: true,
    });
    let found = found.unwrap();
    let copies = found.stages.iter().filter(|stage| stage.ends_at == "sock_recv_length").count();
    assert_eq!(copies, 2);
    assert_eq!((found.messages, found.probe_ns, found.missing.len()), (2_000, 10.0, 1));
    let last = found.stages.last().unwrap();
    assert_eq!((last.name.as_str(), last.quantiles_ns[3]), ("probes", 160.0));
    let sum: f64 = found.stages.iter().map(|stage| stage.quantiles_ns[3]).sum();
    assert_eq!(sum, total);
    assert!(found.sum_error < 1e-12 && found.factor > 1.0);
}

/// The samples of a round whose messages each took longer, or shorter, by this.
fn shifted(samples: &[Sample], by_ns: f64) -> Vec<Sample> {
    let mut all = samples.to_vec();
    all.iter_mut().for_each(|sample| sample.receive_ns += by_ns);
    all
}

#[test]
fn a_stage_and_what_tracing_costs_have_intervals_over_rounds() {
    let mut explainer = Explainer::default();
    let (samples, _) = round(200, |_| None, Vec::new());
    let total = samples[0].receive_ns - samples[0].submit_ns;
    for (number, later_ns) in [0.0, 30.0, 60.0].into_iter().enumerate() {
        let (_, trace) = round(200, |_| None, Vec::new());
        // The last stage, which the program's stamp ends, differs from round to round.
        let samples = shifted(&samples, later_ns);
        explainer.add(RoundTrace {
            samples: RoundSamples { run: 1, round: number as u32, samples: samples.clone() },
            trace,
            clock: clock(),
            owners: Owners::default(),
            bound_ns: 0.0,
        });
        let without = RoundSamples { run: 0, round: 0, samples: shifted(&samples, -160.0) };
        explainer.add_untraced(&without, &way(Followed::Alone));
    }
    let found = explainer.explain(&Tracing {
        way: way(Followed::Alone),
        trace_points: &[(Kind::Send, "send"), (Kind::Copied, "sock_recv_length")],
        refused: None,
        missing: &[],
        sees_all: true,
    });
    let found = found.unwrap();
    // Geometric means of three medians; t(4) = 2.776 of what both kinds of rounds scatter by.
    let [with, without] = [0.0, -160.0].map(|add| {
        let logs = [0.0, 30.0, 60.0].map(|later: f64| (total + add + later).ln());
        (logs.iter().sum::<f64>() / 3.0).exp()
    });
    assert!((found.factor / (with / without) - 1.0).abs() < 1e-12, "{}", found.factor);
    let factor = found.factor_interval.unwrap();
    let half = 2.776 * 30.0 * (2.0_f64 / 3.0).sqrt() / total;
    assert!((found.factor - factor.low.0 - half).abs() < 0.2 * half, "{factor:?} {half}");
    let probe = found.probe_interval.unwrap();
    assert!(probe.low.0 < 10.0 && 10.0 < probe.high.0, "{probe:?}");
    let whole = found.total.median_interval.unwrap();
    let p50 = found.total.quantiles_ns[3];
    assert!((p50 / with - 1.0).abs() < 1e-12 && whole.low.0 < p50 && p50 < whole.high.0);
    let steady = &found.stages[0];
    let median = steady.median_interval.unwrap();
    let best = steady.best_interval.unwrap();
    assert!(median.high.0 - median.low.0 < 1e-9 && best.high.0 - best.low.0 < 1e-9, "{steady:?}");
}

/// The messages of two threads of each end, those of the second a little later.
fn of_two_threads() -> (Vec<Sample>, Trace) {
    let (mut samples, mut trace) = round(20, |_| None, Vec::new());
    let second = samples.clone().into_iter().map(|sample| {
        let [_, submit, _, receive, _] = sample.stamps().map(|ns| ns + 15.0);
        let none = f64::NAN;
        let stamps = [none, submit, none, receive, none];
        Sample::new(sample.sequence, 64, stamps, Flags::default()).of_thread(1)
    });
    samples.extend(second.collect::<Vec<_>>());
    samples.sort_by(|a, b| a.submit_ns.total_cmp(&b.submit_ns));
    // TCP numbers the bytes.
    let mut passed = BTreeMap::new();
    for stamp in &mut trace.stamps {
        let number: &mut u32 = passed.entry((stamp.kind as u8, stamp.flow)).or_default();
        let is_end = matches!(stamp.kind, Kind::Ready | Kind::Copied);
        stamp.number = *number + if is_end { 64 } else { 0 };
        *number += 64;
    }
    let second = trace.stamps.clone().into_iter().map(|stamp| Stamp {
        time_ns: stamp.time_ns + 15,
        tid: stamp.tid + 1,
        // The server's port is the same.
        flow: if stamp.flow == THERE { THERE + (1 << 16) } else { BACK + 1 },
        ..stamp
    });
    trace.stamps.extend(second.collect::<Vec<_>>());
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    (samples, trace)
}

#[test]
fn messages_of_threads_that_work_at_the_same_time_have_the_stamps_of_their_own() {
    let (samples, trace) = of_two_threads();
    let threads = [vec![CLIENT, CLIENT + 1], vec![SERVER, SERVER + 1]];
    let owners = Owners { threads, ..Owners::default() };
    let usual = USUAL.map(|ns| ns as f64);
    let expected = [&usual[..], &usual, &[80.0]].concat();
    for followed in [Followed::Alone, Followed::RoundTrips { reply: None }] {
        let stamps = Stamps { owners: owners.clone(), ..Stamps::new(&trace, &clock()) };
        let found = split_by(&samples, &stamps, &way(followed));
        assert_eq!((found.messages.len(), found.incomplete), (40, 0), "{followed:?}");
        for message in &found.messages {
            assert_eq!(message.stages_ns, expected, "{followed:?}");
            let thread = samples[message.sample].thread;
            assert_eq!(message.threads, [CLIENT + thread, SERVER + thread]);
        }
    }
    // The same as two connections of one thread.
    let one = |sample: &Sample| Sample { sequence: 2 * sample.sequence, thread: 0, ..*sample };
    let both: Vec<Sample> = samples
        .iter()
        .map(|sample| Sample {
            sequence: one(sample).sequence + u64::from(sample.thread),
            ..one(sample)
        })
        .collect();
    let by_one = |stamp: &Stamp| Stamp { tid: stamp.tid & !1, ..*stamp };
    let of_one = Trace { stamps: trace.stamps.iter().map(by_one).collect(), ..trace.clone() };
    let threads = [vec![CLIENT], vec![SERVER]];
    let of_samples = samples.iter().map(|sample| sample.thread).collect();
    let owners = Owners { threads, each: 2, of_samples };
    let stamps = Stamps { owners, ..Stamps::new(&of_one, &clock()) };
    let found = split_by(&both, &stamps, &way(Followed::RoundTrips { reply: None }));
    assert_eq!((found.messages.len(), found.incomplete), (40, 0));
    for (name, ns) in [("TCP and IP send", 200.0), ("TCP receive", 70.0), ("poll and copy", 300.0)]
    {
        let named = found.stages.iter().enumerate().filter(|(_, stage)| stage.name == name);
        let numbers: Vec<usize> = named.map(|(number, _)| number).collect();
        assert_eq!(numbers.len(), 2, "{name}");
        let has = |one: &Split| numbers.iter().all(|number| one.stages_ns[*number] == ns);
        assert!(found.messages.iter().all(has), "{name}");
    }
    // Told apart by nothing, a message of the second thread has stamps of the first.
    let found = split_of(&samples, &trace);
    assert!(found.messages.iter().any(|message| message.stages_ns != expected));
}

#[test]
fn a_server_of_one_thread_has_the_messages_of_all_clients() {
    let owners = Owners { threads: [vec![7, 8], vec![9]], each: 2, of_samples: vec![0, 1] };
    assert_eq!([0, 1, 2].map(|thread| owners.of(thread)), [Some([7, 9]), Some([8, 9]), None]);
    assert_eq!(owners.connections().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!([0, 1, 2].map(|sample| owners.connection(sample)), [0, 1, 0]);
    let single = Owners::default();
    assert_eq!((single.of(0), single.connections().count()), (None, 1));
}

#[test]
fn a_client_has_the_server_of_its_number_or_the_only_one() {
    let of = |servers: &[u32]| Owners {
        threads: [vec![10, 11], servers.to_vec()],
        each: 2,
        ..Owners::default()
    };
    assert_eq!(of(&[20, 21]).of(1), Some([11, 21]));
    assert_eq!(of(&[20]).of(1), Some([11, 20]));
    assert_eq!((of(&[20]).of(2), of(&[]).of(0)), (None, None));
    let connections: Vec<_> = of(&[20]).connections().collect();
    assert_eq!(connections, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}
