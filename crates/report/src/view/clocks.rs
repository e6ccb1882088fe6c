//! Other hosts' clocks against this one's over a time: the offset with its bound, and the drift.

use crate::model::{
    Axis, Cell, Data, Note, Plot, Point, Section, Series, Show, Style, Table, Unit, extent, fields,
    number,
};
use crate::number::{US, short, span, time};
use wiregauge_figures::record::schema::{
    ClockCost, ClockHistory, ClockKnown, ClockPoint, OtherHost, Record,
};

/// What was known by then of each other host's clock; `None` where none was compared.
pub fn section(record: &Record) -> Option<Section> {
    if record.clocks.is_empty() {
        return None;
    }
    let mut section = Section::new("clocks", "Clocks");
    let page = |text: String| Note::new(text, Show::Page);
    section.notes.push(page(format!("This host: {}.", record.environment.discipline)));
    for history in &record.clocks {
        let host = record.hosts.get(history.host as usize);
        let kept = host.map(|host| format!("{}: {}.", host.name, host.environment.discipline));
        section.notes.extend(kept.map(page));
        section.tables.extend(table(record, history));
    }
    section.plots = vec![offset(record), drift(record)];
    section.data.push(data(record));
    section.filled()
}

/// Returns how well each other host's clock is known in the end.
pub fn answer(record: &Record) -> Vec<String> {
    let known = record.clocks.iter().filter_map(|history| {
        let last = &history.known.last()?.clock;
        let host = name(record, history);
        let drift = last.drift_ppm;
        let bound = short(last.drift_bound_ppm);
        Some(format!(
            "The clock of {host} gains {drift:.4} ±{bound} ppm; one-way times from and to it are \
             known within {}.",
            time(last.bound_ns)
        ))
    });
    known.collect()
}

/// The name of the other host.
fn name(record: &Record, history: &ClockHistory) -> String {
    let host = record.hosts.get(history.host as usize);
    host.map_or_else(|| format!("host {}", history.host), |host| host.name.clone())
}

fn table(record: &Record, history: &ClockHistory) -> Option<Table> {
    let mut fields = vec![
        number("after", "s", |row: &&ClockKnown| Cell::number(row.after_s)),
        // An offset of days keeps its nanoseconds.
        number("offset", "us", |row: &&ClockKnown| Cell::fixed(row.clock.offset_ns * US, 3)),
        number("±", "us", |row: &&ClockKnown| Cell::number(row.clock.bound_ns * US)).key("± us"),
        number("drift", "ppm", |row: &&ClockKnown| Cell::fixed(row.clock.drift_ppm, 4)),
        number("±", "ppm", |row: &&ClockKnown| Cell::number(row.clock.drift_bound_ppm))
            .key("± ppm"),
        number("exchanges", "", |row: &&ClockKnown| Cell::Count(row.clock.exchanges)),
        number("shortest", "us", |row: &&ClockKnown| {
            Cell::number(row.clock.shortest_round_trip_ns * US)
        }),
        number("steps", "", |row: &&ClockKnown| Cell::Count(row.clock.steps)),
    ];
    if record.plan.injected_clock_error.is_some() {
        fields.push(number("true", "us", |row: &&ClockKnown| {
            Cell::fixed(row.true_offset_ns.unwrap_or(f64::NAN) * US, 3)
        }));
    }
    let host = name(record, history);
    let note = format!(
        "offset: the clock of {host} minus this host's; each counts from an epoch of its own, so \
         that its changes say something, and its size nothing; drift: the rate at which it gains; \
         the true value lies within ±"
    );
    let table = Table::of(&history.known, fields)?;
    Some(table.caption(Note::new(format!("The clock of {host}"), Show::Page)).notes([note]))
}

fn plot(record: &Record, [id, title, note]: [&str; 3], y: Axis, series: Vec<Series>) -> Plot {
    let ends = record.clocks.iter().filter_map(|history| history.points.last());
    let last = ends.map(|point| point.after_s).fold(0.0, f64::max);
    let x = Axis::linear("after", Unit::Seconds, [0.0, (last * 1.02).max(1e-9)]);
    Plot { x, y, series, ..Plot::new(id, title, note, 320) }
}

/// A linear axis that holds all values, with some room.
fn around(label: &str, unit: Unit, values: impl Iterator<Item = f64>, least: f64) -> Axis {
    let (low, high) = extent(values).unwrap_or((0.0, 1.0));
    let room = 0.08 * (high - low).max(least);
    Axis::linear(label, unit, [low - room, high + room])
}

/// The offsets less the straight line through the first and the last.
fn above_line(points: &[ClockPoint]) -> Vec<f64> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let rate = (last.offset_ns - first.offset_ns) / (last.after_s - first.after_s).max(1e-9);
    let line = |after_s: f64| first.offset_ns + rate * (after_s - first.after_s);
    points.iter().map(|point| point.offset_ns - line(point.after_s)).collect()
}

fn offset(record: &Record) -> Plot {
    let mut series = Vec::new();
    for (at, history) in record.clocks.iter().enumerate() {
        let left = above_line(&history.points);
        for (word, sign) in [("", 0.0), (", at most", 1.0), (", at least", -1.0)] {
            let points = history.points.iter().zip(&left).map(|(point, left)| Point {
                x: point.after_s,
                y: left + sign * point.bound_ns,
                text: format!(
                    "after {} s: {} us ± {}, {} off the line",
                    short(point.after_s),
                    short(point.offset_ns * US),
                    time(point.bound_ns),
                    time(*left)
                ),
                ..Point::default()
            });
            series.push(Series {
                name: format!("{}{word}", name(record, history)),
                style: Style::Path,
                colour: Some(at),
                dash: usize::from(sign != 0.0),
                hidden: sign != 0.0,
                points: points.collect(),
                ..Series::default()
            });
        }
    }
    let values = series.iter().flat_map(|one| &one.points).map(|point| point.y);
    let y = around("offset minus its line", Unit::Time, values.chain([0.0]), 1.0);
    let note = "Minus the straight line from the first to the last point: what is left if each \
                clock runs at its own rate. The true value lies between the dashed lines.";
    plot(record, ["clock-offset", "Offset over time", note], y, series)
}

fn drift(record: &Record) -> Plot {
    let series = record.clocks.iter().enumerate().map(|(at, history)| {
        let point = |known: &ClockKnown| {
            let (ppm, bound) = (known.clock.drift_ppm, known.clock.drift_bound_ppm);
            Point {
                x: known.after_s,
                y: ppm,
                low: Some(ppm - bound),
                high: Some(ppm + bound),
                text: format!("after {} s: {ppm:.4} ppm ± {bound:.4}", short(known.after_s)),
                ..Point::default()
            }
        };
        let points = history.known.iter().map(point).collect();
        Series { name: name(record, history), colour: Some(at), points, ..Series::default() }
    });
    let series: Vec<Series> = series.collect();
    let points = series.iter().flat_map(|one| &one.points);
    let values = points.flat_map(|point| [point.low, point.high]).flatten();
    let y = around("drift", Unit::Ppm, values, 1e-3);
    let note = "The rate at which the other clock gains. Bars: its error bound.";
    plot(record, ["clock-drift", "Drift estimate at each time", note], y, series)
}

fn data(record: &Record) -> Data {
    let rows = record.clocks.iter().flat_map(|history| {
        let name = name(record, history);
        history.points.iter().map(move |point| {
            let (offset, drift) = (point.offset_ns, point.drift_ppm);
            fields![name, point.after_s, offset, point.bound_ns, drift, point.drift_bound_ppm]
        })
    });
    Data::new("host after_s offset_ns bound_ns drift_ppm drift_bound_ppm", rows)
}

/// How each clock is kept, and what their comparison cost, a sentence each.
pub fn notes(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let hosts = record.hosts.iter();
    if !record.clocks.is_empty() {
        lines.push(format!("clock: this host's {}", record.environment.discipline));
        let kept = |host: &OtherHost| format!("{}: {}", host.name, host.environment.discipline);
        lines.extend(hosts.clone().map(|host| format!("clock: on {}", kept(host))));
    }
    lines.extend(record.clocks.iter().map(|history| {
        format!(
            "clocks: 100 s after the last exchange with {}, the offset is still known within {}",
            name(record, history),
            span(history.later.bound_ns)
        )
    }));
    lines.extend(hosts.filter_map(|host| {
        // Of no time there is no share.
        let known = host.clock_cost.as_ref().filter(|known| known.length_ns > 0.0)?;
        Some(format!("cost: clock of {}: {}", host.name, cost(known)))
    }));
    lines
}

fn cost(cost: &ClockCost) -> String {
    let share = |cpu_ns: f64| short(100.0 * cpu_ns / cost.length_ns);
    let there = match cost.server_cpu_ns {
        Some(cpu_ns) => format!("{} % there", share(cpu_ns)),
        None => "unknown there".into(),
    };
    format!(
        "{} exchanges in {} sent {} datagrams ({} B in all) and took {} % of a CPU here, \
         {there}",
        cost.exchanges,
        span(cost.length_ns),
        cost.datagrams,
        cost.bytes,
        share(cost.client_cpu_ns)
    )
}
