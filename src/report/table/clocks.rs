//! The clocks of two hosts over a time: a line for each part of it.

use super::number::{US, short, span};
use super::{Cell, Grid};
use crate::record::schema::{ClockCost, ClockHistory, OtherHost, Record};

/// What was known by then of each other host's clock.
pub fn tables(record: &Record) -> Option<String> {
    let all: Vec<String> = record.clocks.iter().map(|history| table(record, history)).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The name of the other host.
fn name<'a>(record: &'a Record, history: &ClockHistory) -> &'a str {
    record.hosts.get(history.host as usize).map_or("", |host| &host.name)
}

fn table(record: &Record, history: &ClockHistory) -> String {
    let is_true = record.plan.untrue_clock.is_some();
    let mut heads = vec![
        "after s",
        "offset us",
        "± us",
        "drift ppm",
        "± ppm",
        "exchanges",
        "shortest us",
        "steps",
    ];
    heads.extend(is_true.then_some("true us"));
    let mut grid = Grid::new(heads);
    for known in &history.known {
        let clock = &known.clock;
        let mut row = vec![
            Cell::Number(short(known.after_s)),
            // Whole: an offset of days keeps its nanoseconds.
            Cell::Number(format!("{:.3}", clock.offset_ns * US)),
            Cell::Number(short(clock.bound_ns * US)),
            Cell::Number(format!("{:.4}", clock.drift_ppm)),
            Cell::Number(short(clock.drift_bound_ppm)),
            Cell::count(clock.exchanges),
            Cell::Number(short(clock.shortest_round_trip_ns * US)),
            Cell::count(clock.steps),
        ];
        if is_true {
            let truth = known.true_offset_ns.unwrap_or(f64::NAN);
            row.push(Cell::Number(format!("{:.3}", truth * US)));
        }
        grid.row(row);
    }
    format!(
        "{grid}offset: the clock of {} less this one's, each since its own epoch; drift: what it \
         gains; the truth lies within ±\n",
        name(record, history)
    )
}

/// What is to be said of the clocks that were compared, and what that has cost.
pub fn notes(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    if !record.clocks.is_empty() {
        lines.push(format!("clock: this host's {}", record.environment.discipline));
    }
    let hosts = record.hosts.iter();
    if !record.clocks.is_empty() {
        let kept = |host: &OtherHost| format!("{}: {}", host.name, host.environment.discipline);
        lines.extend(hosts.clone().map(|host| format!("clock: on {}", kept(host))));
    }
    lines.extend(record.clocks.iter().map(|history| {
        format!(
            "clocks: 100 s after the last exchange with {} the offset would be known within {}",
            name(record, history),
            span(history.later.bound_ns)
        )
    }));
    lines.extend(hosts.filter_map(|host| {
        Some(format!("cost: clock of {}: {}", host.name, cost(host.clock_cost.as_ref()?)))
    }));
    lines
}

fn cost(cost: &ClockCost) -> String {
    let share = |cpu_ns: f64| short(100.0 * cpu_ns / cost.length_ns.max(1.0));
    let there = match cost.server_cpu_ns {
        Some(cpu_ns) => format!("{} % there", share(cpu_ns)),
        None => "not known there".into(),
    };
    format!(
        "{} exchanges of times in {} sent {} datagrams of {} B in all and took {} % of a CPU here, \
         {there}",
        cost.exchanges,
        span(cost.length_ns),
        cost.datagrams,
        cost.bytes,
        share(cost.client_cpu_ns)
    )
}
