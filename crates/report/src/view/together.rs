//! What took the CPUs while nothing was measured but them: causes, a picture of CPU by time, and
//! what the machine counted.

use crate::model::{
    Axis, Cell, Data, Note, OfRun, Plot, Point, Rank, Section, Series, Show, Style, Table, Unit,
    fields, number, prose, text,
};
use crate::number::{PERCENT, US, count, short, span};
use wiregauge_base::units::format_cpus;
use wiregauge_figures::record::schema::{
    CauseFigures, InterruptCount, Kind, Record, ShownGap, Together,
};

/// So many causes have a colour of their own; the others share one.
const COLOURS: usize = 8;
/// The heights of a lane: its floor and its ceiling, decades of nanoseconds above 100 ns.
const LANE: f64 = 0.8;
const DECADES: f64 = 6.0;
/// Interrupts that are shown where causes have no names.
const INTERRUPTS: usize = 12;

/// Gaps that are known from elsewhere: from, to (ns), what has made them there, and who says so.
/// That those of here have the same cause their length does not say.
const KNOWN: [(f64, f64, &str); 2] = [
    (
        200e3,
        300e3,
        "there SMIs, on all cores at once: half of the slow messages (Homa's notes, July 2020)",
    ),
    (
        10e6,
        12e6,
        "there a kernel that does not preempt itself: reaping of RPCs (Homa's notes, May 2020)",
    ),
];

/// A cause in words.
fn named(cause: &CauseFigures, record: &Record) -> String {
    match cause.kind {
        Kind::Outside => outside(cause, record),
        Kind::Unknown => format!("gaps of {}", cause.name),
        _ => cause.name.clone(),
    }
}

/// Names what the kernel did not record: an SMI only where some were counted.
fn outside(cause: &CauseFigures, record: &Record) -> String {
    let were_counted = record.together.as_ref().is_some_and(|found| found.smis > Some(0));
    match &record.environment.hypervisor {
        Some(hypervisor) => format!("hypervisor ({hypervisor}) or its host"),
        None if cause.all_at_once && were_counted => "firmware (SMI)".to_owned(),
        None => "firmware or hardware".to_owned(),
    }
}

/// The share of the time of one CPU that a cause took.
fn share(cause: &CauseFigures, found: &Together) -> f64 {
    cause.lost_ns / (found.observed_ns * cause.cpus.len().max(1) as f64)
}

/// Whether messages were measured, and not clocks or CPUs alone.
pub fn is_of_messages(record: &Record) -> bool {
    record.clocks.is_empty() && record.together.is_none()
}

/// Causes, pictures and what was counted; `None` where CPUs were not watched together.
pub fn section(record: &Record) -> Option<Section> {
    let found = record.together.as_ref()?;
    let mut section = Section::new("together", "What took the CPUs");
    section.tables.extend(causes(record, found));
    section.tables.extend(known(found));
    section.tables.extend(interrupts(found));
    if !found.longest.is_empty() {
        let data = data(record, found);
        section.draw(lanes(record, found), data.clone());
        section.draw(lengths(record, found), data);
    }
    if let Some(why) = &found.not_traced {
        section.notes.push(Note::new(format!("{why}."), Show::Page));
    }
    section.notes.extend(notes(record).into_iter().map(|line| Note::new(line, Show::Page)));
    Some(section)
}

fn causes(record: &Record, found: &Together) -> Option<Table> {
    let fields = [
        prose("cause", |one: &&CauseFigures| named(one, record)),
        text("kind", |one: &&CauseFigures| one.kind.name()).rank(Rank::Main),
        text("CPUs", |one: &&CauseFigures| format_cpus(&one.cpus)),
        text("at once", |one: &&CauseFigures| match (one.all_at_once, one.kind) {
            (true, _) => "all",
            (false, Kind::Outside | Kind::Unknown) => "no",
            _ => "",
        }),
        number("gaps", "", |one: &&CauseFigures| Cell::Count(one.gaps)),
        number("lost", "us", |one: &&CauseFigures| Cell::number(one.lost_ns * US)),
        number("lost %", "", |one: &&CauseFigures| Cell::number(PERCENT * share(one, found))),
        number("longest", "us", |one: &&CauseFigures| Cell::number(one.longest_ns * US)),
        number("every", "us", |one: &&CauseFigures| {
            one.period_ns.map_or(Cell::None, |period| Cell::number(period * US))
        }),
        number("recorded %", "", |one: &&CauseFigures| match one.kind {
            Kind::Unknown => Cell::None,
            _ => Cell::number(PERCENT * one.recorded),
        })
        .rank(Rank::More),
    ];
    let note = "lost %: of the time of each CPU of its row; every: the period, where it has one; \
                at once: whether all CPUs stood still at the same instant";
    let table = Table::of(&found.causes, fields)?;
    Some(table.caption(Note::new("Causes of gaps", Show::Page)).notes([note]))
}

/// A length that is known from elsewhere.
struct Known {
    from_ns: f64,
    to_ns: f64,
    seen: u64,
    says: &'static str,
}

impl OfRun for Known {}

fn known(found: &Together) -> Option<Table> {
    let row = |(from_ns, to_ns, says): (f64, f64, &'static str)| {
        let lengths = found.longest.iter().map(|gap| gap.length_ns);
        let seen = lengths.filter(|length| (from_ns..=to_ns).contains(length)).count() as u64;
        Known { from_ns, to_ns, seen, says }
    };
    let fields = [
        number("from", "us", |one: &Known| Cell::number(one.from_ns * US)),
        number("to", "us", |one: &Known| Cell::number(one.to_ns * US)),
        number("gaps", "", |one: &Known| Cell::Count(one.seen)),
        prose("known", |one: &Known| one.says),
    ];
    let caption =
        Note::new("Gaps of lengths that others have explained on their machines", Show::Page);
    Some(Table::of(KNOWN.map(row), fields)?.caption(caption))
}

/// What was counted, where there was no trace to give names.
fn interrupts(found: &Together) -> Option<Table> {
    found.not_traced.as_ref()?;
    let seconds = found.length_ns / 1e9;
    let fields = [
        prose("interrupt", |one: &&InterruptCount| one.name.clone()),
        text("CPU", |one: &&InterruptCount| one.cpu.to_string()),
        number("count", "", |one: &&InterruptCount| Cell::Count(one.count)),
        number("per s", "", |one: &&InterruptCount| Cell::number(one.count as f64 / seconds)),
    ];
    let first: Vec<&InterruptCount> = found.interrupts.iter().take(INTERRUPTS).collect();
    let table = Table::of(first, fields)?;
    Some(table.caption(Note::new("Interrupts meanwhile (/proc/interrupts)", Show::Page)))
}

/// Where a gap lies in the lane of its CPU: the longer, the higher.
fn height(length_ns: f64) -> f64 {
    ((length_ns / 100.0).max(1.0).log10() / DECADES).min(1.0) * LANE - LANE / 2.0
}

/// The gaps of each cause as series; those without a colour of their own are one.
fn series(record: &Record, found: &Together, place: impl Fn(&ShownGap) -> f64) -> Vec<Series> {
    let point = |gap: &ShownGap, name: &str| Point {
        x: gap.start_ns / 1e9,
        y: place(gap),
        text: format!(
            "CPU {} at {:.6} s: {} ({name})",
            gap.cpu,
            gap.start_ns / 1e9,
            span(gap.length_ns)
        ),
        ..Point::default()
    };
    let name = |cause: u32| match found.causes.get(cause as usize) {
        Some(cause) if cause.all_at_once => format!("{}, all at once", named(cause, record)),
        Some(cause) => named(cause, record),
        None => "unknown".to_owned(),
    };
    let of = |is_own: &dyn Fn(u32) -> bool| -> Vec<Point> {
        let own = found.longest.iter().filter(|gap| is_own(gap.cause));
        own.map(|gap| point(gap, &name(gap.cause))).collect()
    };
    let each = (0..COLOURS as u32).map(|cause| (name(cause), of(&|own| own == cause)));
    let others = ("others".to_owned(), of(&|own| own >= COLOURS as u32));
    let all = each.chain([others]).enumerate().filter(|(_, (_, points))| !points.is_empty());
    all.map(|(at, (name, points))| Series {
        name,
        style: Style::Dots,
        colour: Some(at).filter(|at| *at < COLOURS),
        points,
        ..Series::default()
    })
    .collect()
}

fn time_axis(found: &Together) -> Axis {
    Axis::linear("time", Unit::Seconds, [0.0, (found.length_ns / 1e9).max(1e-9)])
}

/// A lane for each CPU.
fn lanes(record: &Record, found: &Together) -> Plot {
    let slot = |gap: &ShownGap| {
        let slot = found.cpus.iter().position(|cpu| *cpu == gap.cpu).unwrap_or(0);
        slot as f64 + height(gap.length_ns)
    };
    let names = found.cpus.iter().map(|cpu| format!("CPU {cpu}")).collect();
    let note = "Each dot is a gap in the lane of its CPU: at the lane's floor those of 100 ns, at \
                its ceiling those of 0.1 s and more (logarithmic). Dots above each other in all \
                lanes are at the same instant.";
    let high = 140 + 60 * found.cpus.len().min(12) as u32;
    Plot {
        x: time_axis(found),
        y: Axis::names(names, 0.5),
        series: series(record, found, slot),
        ..Plot::new("together-lanes", "CPU by time", note, high)
    }
}

/// Lengths over time, all CPUs together.
fn lengths(record: &Record, found: &Together) -> Plot {
    let note = "The longest gaps of all CPUs. A level line of dots is a cause that always takes as \
                long; even distances are a period.";
    Plot {
        x: time_axis(found),
        y: Axis::log("length", Unit::Time),
        series: series(record, found, |gap| gap.length_ns),
        ..Plot::new("together-lengths", "Length of gaps over time", note, 320)
    }
}

fn data(record: &Record, found: &Together) -> Data {
    let rows = found.longest.iter().map(|gap| {
        let cause = found.causes.get(gap.cause as usize);
        let kind = cause.map_or("", |cause| cause.kind.name());
        let name = cause.map_or_else(String::new, |cause| named(cause, record));
        let at_once = cause.is_some_and(|cause| cause.all_at_once);
        fields![gap.cpu, gap.start_ns, gap.length_ns, kind, name, at_once]
    });
    Data::new("cpu start_ns length_ns kind cause all_at_once", rows)
}

/// What the evidence is, a sentence each.
pub fn notes(record: &Record) -> Vec<String> {
    let Some(found) = &record.together else { return Vec::new() };
    let mut lines = Vec::new();
    lines.extend(found.not_traced.as_ref().map(|why| format!("names: none: {why}")));
    let stolen = found.steal_ns.iter().filter(|(_, steal_ns)| *steal_ns > 0.0);
    let stolen: Vec<String> =
        stolen.map(|(cpu, steal_ns)| format!("{} on CPU {cpu}", span(*steal_ns))).collect();
    if record.environment.hypervisor.is_some() {
        let steal = match stolen.is_empty() {
            true => "none was counted".to_owned(),
            false => stolen.join(", "),
        };
        lines.push(format!("steal: time that the hypervisor gave to others: {steal}"));
    }
    lines.push(match found.smis {
        Some(smis) => format!("SMI: {} system management interrupts", count(smis)),
        None => "SMI: their counter (MSR 0x34) cannot be read here".to_owned(),
    });
    if found.cpus.len() < 2 {
        lines.push("at once: one CPU was watched, so nobody knows what the others did".into());
    }
    if found.unlisted > 0 {
        lines
            .push(format!("left out: {} gaps, for which there was no room", count(found.unlisted)));
    }
    lines
}

/// What took the most, in a sentence, and whether all CPUs ever stood still together.
pub fn answer(record: &Record) -> Vec<String> {
    let Some(found) = &record.together else { return Vec::new() };
    let watched = format!("{} on {}", span(found.observed_ns), cpus_in_words(&found.cpus));
    let Some(first) = found.causes.first() else {
        return vec![format!("No gap was seen in {watched}.")];
    };
    let name = named(first, record);
    let mut lines = vec![format!(
        "Of {watched}, {name} took the most: {} % of {} in {} gaps, the longest {}.",
        short(PERCENT * share(first, found)),
        cpus_in_words(&first.cpus),
        count(first.gaps),
        span(first.longest_ns)
    )];
    let outside = |one: &&CauseFigures| one.all_at_once && one.kind == Kind::Outside;
    lines.extend(found.causes.iter().find(outside).map(|one| {
        format!(
            "All CPUs stood still at the same instant {} times, up to {}, and the kernel recorded \
             nothing: {}.",
            count(one.gaps / found.cpus.len().max(1) as u64),
            span(one.longest_ns),
            named(one, record)
        )
    }));
    lines
}

fn cpus_in_words(all: &[u32]) -> String {
    let plural = if all.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", format_cpus(all))
}
