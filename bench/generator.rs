//! What the open-loop generator takes for a message, with and without the reading of the clock, and
//! how late each timer is. `cargo bench --bench generator` prints one JSON object; it judges
//! nothing, since machines differ.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;
use wiregauge::agent::rehearse;
use wiregauge::clock::{Calibration, Clock, Source, Timebase, Tsc, anchors, measure_reading};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::schedule::{self, Arrivals, Generator, Pace};
use wiregauge::pattern::oneway;
use wiregauge::plan::{Case, Schedule, TimerKind};
use wiregauge::units::{MessageRate, Span};

/// Messages of a batch, about 1 ms: an interruption spoils one batch and no more.
const BATCH: u32 = 20_000;
const BATCHES: u32 = 500;
/// Waits of each timer, one every 100 us.
const WAITS: usize = 20_000;

fn case(schedule: Schedule, timer: TimerKind) -> Case {
    let case = oneway::request(oneway::Spec::default()).plan().unwrap().cases.remove(0);
    Case { schedule, timer, ..case }
}

fn schedules() -> [(&'static str, Schedule); 3] {
    let rate = MessageRate(1e6);
    [
        ("periodic", Schedule::Periodic { rate }),
        ("poisson", Schedule::Poisson { rate }),
        ("on-off", Schedule::OnOff { rate, on: Span(1_000_000), off: Span(1_000_000) }),
    ]
}

/// How late a timer comes back, in ns: p50 and p99.
fn lateness(kind: TimerKind, time: &Timebase) -> [f64; 2] {
    let rate = MessageRate(1e4);
    let case = case(Schedule::Periodic { rate }, kind);
    let mut generator = Generator::of(&case, time).unwrap().unwrap();
    let gate = Gate::default();
    let slice = time.ticks_for(1e6);
    generator.begin(Tsc.now() + slice);
    let mut late: Vec<f64> = (0..WAITS)
        .map(|_| {
            let at = generator.upcoming().unwrap();
            let now = generator.wait(Tsc, &gate, slice).unwrap();
            generator.step(now);
            time.span(now - at)
        })
        .collect();
    late.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|p| late[(p * WAITS as f64) as usize])
}

/// The least of the batches, which no other program has disturbed, and their median.
fn least_and_median(costs: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut costs: Vec<f64> = costs.collect();
    costs.sort_by(f64::total_cmp);
    [costs[0], costs[costs.len() / 2]]
}

fn main() {
    let anchors = anchors(Source::Tsc, std::time::Duration::from_millis(100), 11);
    let ns_per_tick = Calibration::of(Source::Tsc, &anchors).unwrap().ns_per_tick;
    let time = Timebase { epoch: Tsc.now(), ns_per_tick };
    let reading = measure_reading(Tsc, &time);
    let mut draw_ns = BTreeMap::new();
    let mut message_ns = BTreeMap::new();
    for (name, schedule) in schedules() {
        let mut arrivals = Arrivals::of(&case(schedule, TimerKind::Busy), 0.4).unwrap();
        let draws = (0..BATCHES).map(|_| {
            let begin = Instant::now();
            for _ in 0..BATCH {
                black_box(arrivals.next());
            }
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        });
        draw_ns.insert(name, least_and_median(draws));
        let case = case(schedule, TimerKind::Busy);
        let messages = (0..BATCHES)
            .map(|_| rehearse::generator(Tsc, &case, &time, BATCH).unwrap() * time.ns_per_tick);
        message_ns.insert(name, least_and_median(messages));
    }
    let late_ns: BTreeMap<&str, [f64; 2]> = TimerKind::ALL
        .iter()
        .filter(|kind| schedule::available(**kind).is_ok())
        .map(|kind| (kind.name(), lateness(*kind, &time)))
        .collect();
    let report = serde_json::json!({
        "clock_reading_ns": reading.cost_ns,
        "draw_ns": draw_ns,
        "message_ns": message_ns,
        "late_ns_p50_p99": late_ns,
    });
    println!("{report}");
}
