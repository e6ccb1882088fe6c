//! Where the time of messages goes: stages by percentile, the best case of both ends next to each
//! other, and the causes of the slow ones.

use crate::model::{Cell, Column, Note, Row, Section, Show, Table};
use crate::number::{PERCENT, US, count, short, time};
use std::collections::BTreeMap;
use wiregauge_base::units::counted;
use wiregauge_figures::explain::apart::cpu_name;
use wiregauge_figures::explain::split::GENERATOR;
use wiregauge_figures::explain::{
    Apart, Cause, Explanation, QUANTILES, Slow, StageFigures, is_wire,
};
use wiregauge_figures::record::schema::Record;

/// Decimals of a time in us: the kernel stamps in ns.
const DECIMALS: usize = 3;
/// A share in per cent from which on the reader is told that the causes do not explain the tail.
const MOSTLY: f64 = 50.0;
/// Stages in which no CPU works for the message, as their names end.
const WAITS: [&str; 6] = [
    GENERATOR,
    "behind others in the server",
    "behind others in the socket buffer",
    "device queue (qdisc)",
    "adapter, wire and interrupt",
    "wake-up",
];
/// Causes that the sentence names.
const MOST_NAMED: usize = 3;

/// All of it; `None` where nothing was explained.
pub fn section(record: &Record) -> Option<Section> {
    let found = record.explanation.as_ref()?;
    let section = Section::new("explain", "Where the time goes");
    let notes = notes(found).into_iter().map(Note::from).collect();
    let causes = causes(&found.slow);
    let tables = [best_case(found), stages(found)].into_iter().chain(causes).collect();
    Some(Section { notes, tables, ..section })
}

/// The slow messages in a sentence or two.
pub fn answer(record: &Record) -> Vec<String> {
    record.explanation.as_deref().map(slow).unwrap_or_default()
}

/// Which stage makes slow messages slow, and why.
fn slow(found: &Explanation) -> Vec<String> {
    let excess = |stage: &StageFigures| stage.slow_ns - median(stage);
    let worst = found.stages.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)));
    let Some(worst) = worst.filter(|_| found.slow.count > 0) else { return Vec::new() };
    let mut all = vec![format!(
        "Slow messages (above p99, {}) are slow in '{}' ({}): {} of their {} in the mean; the \
         median has {} of {} there.",
        time(found.slow.above_ns),
        worst.name,
        way(worst),
        time(worst.slow_ns),
        time(found.total.slow_ns),
        time(median(worst)),
        time(median(&found.total)),
    )];
    let named = named(&found.slow);
    if !named.is_empty() {
        all.push(format!("Causes of slow messages: {named}."));
    }
    all
}

/// The most frequent causes, each with how many messages and who, and how many have none; empty
/// where none was slow.
pub(super) fn named(slow: &Slow) -> String {
    let (without, with): (Vec<_>, Vec<_>) =
        by_cause(slow).into_iter().partition(|one| one.cause == Cause::Unexplained);
    let named = with.into_iter().take(MOST_NAMED).chain(without).map(|one| {
        let who = one.who.first().map_or_else(String::new, |(who, _)| format!(", mostly {who}"));
        let who = if one.who.len() == 1 { who.replace(", mostly ", ", ") } else { who };
        format!("{} of {}: {}{who}", count(one.number), slow.count, one.cause.name())
    });
    named.collect::<Vec<_>>().join("; ")
}

/// The slow messages of a cause.
struct OfCause<'a> {
    cause: Cause,
    number: u64,
    /// Who or where, the most often first.
    who: Vec<(&'a str, u64)>,
}

/// The causes, the most frequent first and what is not explained last.
fn by_cause(slow: &Slow) -> Vec<OfCause<'_>> {
    let mut all: Vec<OfCause<'_>> = Vec::new();
    for (named, number) in &slow.causes {
        let who = (named.who.as_str(), *number);
        match all.iter_mut().find(|one| one.cause == named.cause) {
            Some(known) => {
                known.number += number;
                known.who.push(who);
            }
            None => all.push(OfCause { cause: named.cause, number: *number, who: vec![who] }),
        }
    }
    for one in &mut all {
        one.who.retain(|(who, _)| !who.is_empty());
    }
    all.sort_by_key(|one| (one.cause == Cause::Unexplained, std::cmp::Reverse(one.number)));
    all
}

fn median(stage: &StageFigures) -> f64 {
    let at = QUANTILES.iter().position(|p| *p == 0.5).unwrap_or(0);
    stage.quantiles_ns.get(at).copied().unwrap_or(f64::NAN)
}

fn way(stage: &StageFigures) -> &'static str {
    if stage.leg == 0 { "client to server" } else { "server to client" }
}

/// What the stages are worth.
fn notes(found: &Explanation) -> Vec<String> {
    let left_out = found.incomplete + found.disordered + found.beyond;
    if !found.not_traced.is_empty() {
        return by_sockets(found, left_out);
    }
    let of_all = left_out + found.messages;
    let mut all = vec![
        format!(
            "{} split; left out of {}: {} without a stamp, {} with stamps out of order, {} sent \
             when the memory for stamps was full",
            counted(found.messages as usize, "message"),
            count(of_all),
            count(found.incomplete),
            count(found.disordered),
            count(found.beyond)
        ),
        format!(
            "tracing costs: p50 {} with and {} without, rounds in turns: factor {}; {:.1} stamps \
             lie in a message; stage 'probes' is what they add",
            time(median(&found.total)),
            time(found.untraced_p50_ns),
            factor(found),
            found.stamps
        ),
        format!(
            "stages of a message add up to its measured time within {} %; the kernel's clock is \
             known to {:.0} ns",
            short(found.sum_error * PERCENT),
            found.anchor_ns
        ),
    ];
    all.extend(found.apart.iter().map(apart));
    all.extend(queues(found));
    all.extend(work(&found.stages));
    if !found.missing.is_empty() {
        let missing = found.missing.join(", ");
        all.push(format!("not stamped by this kernel, so that stages are merged: {missing}"));
    }
    all
}

/// Returns the factor by which tracing is slower, with its interval rounded outward.
fn factor(found: &Explanation) -> String {
    let interval = found.factor_interval.map_or_else(String::new, |both| {
        let [low, high] = [(both.low.0 * 100.0).floor(), (both.high.0 * 100.0).ceil()];
        format!(" ({:.2}..{:.2})", low / 100.0, high / 100.0)
    });
    format!("{:.2}{interval}", found.factor)
}

/// How well the wire is known where each end has a kernel of its own.
fn apart(found: &Apart) -> String {
    match &found.refused {
        Some(why) => {
            format!("the server's host stamps nothing, so its stages and the wire are one: {why}")
        }
        None => format!(
            "each host's kernel stamps its own end; 'wire' is what lies between them, known to {} \
             by the clocks of both (of its sum there and back the error is 0)",
            time(found.bound_ns)
        ),
    }
}

/// The same where the kernel stamped the sockets alone.
fn by_sockets(found: &Explanation, left_out: u64) -> Vec<String> {
    vec![
        format!(
            "the kernel stamped these sockets alone (SO_TIMESTAMPING): {}; with these rights \
             explain has the stages within the kernel, wake-ups, CPUs and the causes of slow \
             messages",
            found.not_traced
        ),
        format!(
            "{} split; left out: {} without a stamp or out of order, and each before which stamps \
             are read",
            counted(found.messages as usize, "message"),
            count(left_out),
        ),
        format!(
            "stamping costs: p50 {} with and {} without, rounds in turns: factor {}; the kernel's \
             clock is known to {:.0} ns",
            time(median(&found.total)),
            time(found.untraced_p50_ns),
            factor(found),
            found.anchor_ns
        ),
    ]
}

/// What each CPU spends on a message, by the best case: later ones hold what disturbed them. A
/// stage that ended on several CPUs is shared as its messages are.
fn work(stages: &[StageFigures]) -> Option<String> {
    let mut cpus: BTreeMap<u32, f64> = BTreeMap::new();
    let mut waiting = 0.0;
    for stage in stages.iter().filter(|one| !is_probes(one)) {
        if is_wire(&stage.name) || WAITS.iter().any(|wait| stage.name.ends_with(wait)) {
            waiting += stage.best_ns;
            continue;
        }
        let all: u64 = stage.cpus.iter().map(|(_, number)| number).sum();
        for (cpu, number) in &stage.cpus {
            *cpus.entry(*cpu).or_insert(0.0) += stage.best_ns * *number as f64 / all.max(1) as f64;
        }
    }
    let each = cpus.iter().map(|(cpu, ns)| format!("{} of CPU {}", time(*ns), cpu_name(*cpu)));
    let each = each.collect::<Vec<_>>().join(", ");
    let waits = format!("it waits {}", time(waiting));
    (!each.is_empty()).then(|| format!("a message of the fastest 10 % takes {each}; {waits}"))
}

/// How many messages one finds before it, and with how many packets it comes.
fn queues(found: &Explanation) -> Vec<String> {
    let ends = ["the server", "the client"];
    let all = [
        ("messages that one finds in the socket buffer of", &found.queues),
        ("packets of the NAPI poll that takes a message from the device of", &found.batches),
        ("packets that GRO makes one of, with a message of", &found.merged),
    ];
    let of_leg = |(end, quantiles): (&str, &Vec<f64>)| {
        let at = |p: f64| {
            let at = QUANTILES.iter().position(|known| *known == p)?;
            quantiles.get(at).map(|value| format!("{value:.0}"))
        };
        Some(format!("{end}: p50 {}, p99 {}, most {}", at(0.5)?, at(0.99)?, at(1.0)?))
    };
    let of_kind = |(what, legs): (&str, &Vec<Vec<f64>>)| {
        let ends: Vec<String> = ends.into_iter().zip(legs).filter_map(of_leg).collect();
        (!ends.is_empty()).then(|| format!("{what} {}", ends.join("; ")))
    };
    all.into_iter().filter_map(of_kind).collect()
}

fn column(head: &str, unit: &str, is_number: bool) -> Column {
    Column {
        head: head.into(),
        unit: unit.into(),
        key: head.into(),
        is_number,
        ..Column::default()
    }
}

fn us(ns: f64) -> Cell {
    Cell::fixed(ns * US, DECIMALS)
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, ..Row::default() }
}

/// The stages of the fastest messages, client and server next to each other.
fn best_case(found: &Explanation) -> Table {
    let mut rows = Vec::new();
    let columns = vec![
        column("best case", "", false),
        column("client", "us", true),
        column("server", "us", true),
        column("ends at", "", false),
    ];
    let named = |leg: u32, stage: &StageFigures| {
        found.stages.iter().find(|one| {
            !is_probes(one)
                && !is_wire(&one.name)
                && one.leg == leg
                && one.ends_at == stage.ends_at
                && one.sends == stage.sends
        })
    };
    let best = |stage: Option<&StageFigures>| stage.map_or(Cell::None, |one| us(one.best_ns));
    let goes_back = found.stages.iter().any(|one| one.leg == 1);
    for sends in [true, false] {
        let of_half = found.stages.iter().filter(|one| one.sends == sends && !is_probes(one));
        let of_half: Vec<&StageFigures> = of_half.filter(|one| !is_wire(&one.name)).collect();
        let mut sums = [0.0; 2];
        let mut done: Vec<&str> = Vec::new();
        for stage in of_half {
            if done.contains(&stage.ends_at.as_str()) {
                continue;
            }
            done.push(&stage.ends_at);
            // A request is sent by the client and received by the server, a reply the other way.
            let ends = match sends {
                true => [named(0, stage), named(1, stage)],
                false => [named(1, stage), named(0, stage)],
            };
            for (sum, end) in sums.iter_mut().zip(ends) {
                *sum += end.map_or(0.0, |end| end.best_ns);
            }
            let label = ends.into_iter().flatten().map(|one| one.name.as_str());
            let label = label.min_by_key(|name| name.len()).unwrap_or_default();
            let ends_at = if stage.ends_at.is_empty() { "program" } else { &stage.ends_at };
            rows.push(row(vec![
                format!("  {label}").into(),
                best(ends[0]),
                best(ends[1]),
                ends_at.into(),
            ]));
        }
        let name = if sends { "send in all" } else { "receive in all" };
        // One way the server sends nothing and the client receives nothing.
        let works = |is_server: bool| goes_back || is_server != sends;
        let [client, server] = [false, true].map(|is_server| match works(is_server) {
            true => us(sums[usize::from(is_server)]),
            false => Cell::None,
        });
        rows.push(row(vec![name.into(), client, server, Cell::None]));
    }
    let wires: Vec<_> = found.stages.iter().filter(|one| is_wire(&one.name)).collect();
    if let Some(first) = wires.first() {
        let of_leg = |leg: u32| best(wires.iter().find(|one| one.leg == leg).copied());
        let name =
            if goes_back { format!("{}, there and back", first.name) } else { first.name.clone() };
        rows.push(row(vec![name.into(), of_leg(0), of_leg(1), Cell::None]));
    }
    let probes = found.stages.iter().find(|one| is_probes(one));
    let label = if goes_back { "probes, both ways" } else { "probes" };
    rows.push(row(vec![label.into(), best(probes), Cell::None, Cell::None]));
    rows.push(row(vec!["total".into(), us(found.total.best_ns), Cell::None, Cell::None]));
    let caption = "mean of the fastest 10 %: what each end does".into();
    Table { id: "explain-best".into(), caption, columns, rows, ..Table::default() }
}

fn is_probes(stage: &StageFigures) -> bool {
    stage.name == "probes"
}

/// Stages by percentile.
fn stages(found: &Explanation) -> Table {
    let mut columns = vec![column("way", "", false), column("stage", "", false)];
    columns.extend(QUANTILES.iter().map(|p| column(&format!("p{}", p * 100.0), "us", true)));
    columns.push(column("slow mean", "us", true));
    let on_cpu = found.stages.iter().filter_map(|stage| stage.on_cpu_ns).reduce(|a, b| a + b);
    if on_cpu.is_some() {
        columns.push(column("CPU time mean", "us", true));
    }
    columns.push(column("CPU", "", false));
    let goes_back = found.stages.iter().any(|one| one.leg == 1);
    let both = if goes_back { "both" } else { "there" };
    let stage = |stage: &StageFigures| {
        let way = if is_probes(stage) {
            both
        } else if stage.leg == 0 {
            "there"
        } else {
            "back"
        };
        let mut cells: Vec<Cell> = vec![way.into(), stage.name.as_str().into()];
        cells.extend(quantiles(stage));
        cells.push(us(stage.slow_ns));
        cells.extend(on_cpu.map(|_| stage.on_cpu_ns.map_or(Cell::None, us)));
        cells.push(Some(cpus(stage)).filter(|cpus| !cpus.is_empty()).into());
        row(cells)
    };
    let mut rows: Vec<Row> = found.stages.iter().map(stage).collect();
    let mut total: Vec<Cell> = vec![both.into(), "total".into()];
    total.extend(quantiles(&found.total));
    total.push(us(found.total.slow_ns));
    total.extend(on_cpu.map(us));
    total.push(Cell::None);
    rows.push(row(total));
    let caption = "percentiles of each stage alone; means add up, percentiles do not".into();
    Table { id: "explain-stages".into(), caption, columns, rows, ..Table::default() }
}

/// Returns the cells of the quantiles of a stage, the median with its interval.
fn quantiles(stage: &StageFigures) -> Vec<Cell> {
    let mut cells: Vec<Cell> = stage.quantiles_ns.iter().map(|ns| us(*ns)).collect();
    let median = QUANTILES.iter().position(|p| *p == 0.5).and_then(|at| cells.get_mut(at));
    if let (Some(cell), Some(interval)) = (median, stage.median_interval) {
        *cell = Cell::figure(self::median(stage), Some(interval), US);
    }
    cells
}

/// The CPUs of a stage, with shares where there are several.
fn cpus(stage: &StageFigures) -> String {
    let all: u64 = stage.cpus.iter().map(|(_, number)| number).sum();
    let share = |(cpu, number): &(u32, u64)| match stage.cpus.len() {
        1 => cpu_name(*cpu),
        _ => format!("{} ({:.0} %)", cpu_name(*cpu), *number as f64 / all.max(1) as f64 * PERCENT),
    };
    stage.cpus.iter().take(2).map(share).collect::<Vec<_>>().join(", ")
}

/// The causes of slow messages; `None`: there are none.
pub(super) fn causes(slow: &Slow) -> Option<Table> {
    let columns = vec![
        column("cause of slow messages", "", false),
        column("which", "", false),
        column("messages", "", true),
        column("share", "%", true),
    ];
    let rows = by_cause(slow).into_iter().map(|one| {
        let share = one.number as f64 / slow.count.max(1) as f64 * PERCENT;
        let each = one.who.iter().take(MOST_NAMED).map(|(who, number)| match one.who.len() {
            1 => (*who).to_owned(),
            _ => format!("{who}: {number}"),
        });
        let mut each = each.collect::<Vec<_>>().join("; ");
        if one.who.len() > MOST_NAMED {
            each += &format!("; {} more", one.who.len() - MOST_NAMED);
        }
        let is_open = one.cause == Cause::Unexplained && share > MOSTLY;
        row(vec![
            one.cause.name().into(),
            Some(each).filter(|text| !text.is_empty()).into(),
            Cell::Count(one.number),
            Cell::fixed(share, 1).bad_if(is_open),
        ])
    });
    let rows: Vec<Row> = rows.collect();
    let caption = Note::new(
        format!("{} above p99 ({})", counted(slow.count as usize, "message"), time(slow.above_ns)),
        Show::Everywhere,
    );
    let table = Table { id: "explain-causes".into(), caption, columns, rows, ..Table::default() };
    Some(table).filter(|table| !table.rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_figures::explain::Named;
    use wiregauge_figures::explain::path::steps;
    use wiregauge_transport::KernelPath;

    #[test]
    fn what_has_no_cause_is_told_after_the_most_frequent_causes() {
        let causes = [Cause::Unexplained, Cause::Task, Cause::Timer, Cause::Gap, Cause::Softirq];
        let number = |cause| Named { cause, who: "CPU 0".into() };
        let causes = causes.into_iter().zip([90, 4, 3, 2, 1]);
        let causes = causes.map(|(cause, count)| (number(cause), count)).collect();
        let told = named(&Slow { count: 100, above_ns: 1.0, causes });
        let told: Vec<&str> = told.split("; ").collect();
        assert_eq!((told.len(), told[0]), (4, "4 of 100: another task ran, CPU 0"));
        assert!(told[3].starts_with("90 of 100: not explained"), "{told:?}");
    }

    #[test]
    fn a_cpu_has_the_stages_that_ended_on_it_and_one_that_waits_has_none() {
        let stage = |name: &str, best_ns, cpus: &[(u32, u64)]| StageFigures {
            name: name.to_owned(),
            best_ns,
            cpus: cpus.to_vec(),
            ..StageFigures::default()
        };
        let stages = [
            stage("post", 300.0, &[(0, 10)]),
            stage("wake-up", 5000.0, &[(1, 10)]),
            stage("running and copy", 400.0, &[(1, 3), (0, 1)]),
            stage("probes", 700.0, &[]),
        ];
        let expected = "a message of the fastest 10 % takes 400.0 ns of CPU 0, 300.0 ns of CPU 1; \
                        it waits 5.000 us";
        assert_eq!(work(&stages).unwrap(), expected);
        assert_eq!(work(&stages[3..]), None);
    }

    #[test]
    fn stages_that_wait_are_stages() {
        let paths = [KernelPath::Segments, KernelPath::Datagrams, KernelPath::LocalStream];
        let names: Vec<&str> =
            paths.into_iter().flat_map(steps).map(|step| step.name).chain([GENERATOR]).collect();
        for wait in WAITS {
            assert!(names.iter().any(|name| name.ends_with(wait)), "{wait}");
        }
    }
}
