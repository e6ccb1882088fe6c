//! The lines below the tables: the instrument's own error, noise, what was not measured, lost
//! messages, warnings. One sentence a line; its first word says its kind.

use super::layout::Layout;
use super::text::{Text, Tone};
use super::warnings::warnings;
use crate::curves::headline;
use crate::number::{Room, compact, short, span};
use crate::view;
use crate::warnings::{named, of_record};
use wiregauge_base::options;
use wiregauge_base::units::scaled_ns;
use wiregauge_figures::record::schema::{
    ClockOffset, ClockReport, Counts, Environment, Figure, Record, Run,
};
use wiregauge_figures::view::model::{POOLED, WITHIN};
use wiregauge_stats::{Basis, Metric};

/// From this share of a latency on, what the instrument adds to it is said beside it.
const OWN_SHARE: f64 = 0.1;

/// The sentences: those that a reader needs, or all of them where the layout is verbose.
pub fn notes(record: &Record, layout: &Layout) -> Text {
    let mut lines = if layout.verbose { background(record) } else { Vec::new() };
    if !layout.verbose && view::is_of_messages(record) {
        lines.extend(short_legend(record));
        lines.extend(own_share(record));
    }
    lines.extend(clocks(record));
    lines.extend(view::pair_notes(record));
    lines.extend(view::clock_notes(record));
    lines.extend(view::together_notes(record));
    let missing = record.unavailable.iter();
    lines.extend(missing.map(|one| format!("not measured: {}: {}", one.transport, one.reason)));
    // Of several only the worst would be seen among the warnings.
    let is_alone = layout.verbose || record.faults.len() == 1;
    let is_said = |fault: &&String| is_alone && is_said_of_a_run(record, fault);
    let faults = record.faults.iter().filter(|fault| !is_said(fault));
    lines.extend(faults.map(|fault| format!("fault: {fault}")));
    lines.extend(record.runs.iter().filter(|_| layout.verbose).filter_map(astray));
    lines.extend(rounds(record, layout.verbose));
    let mut text = Text::default();
    lines.iter().for_each(|line| text.append(layout.sentence(line, Tone::Head)));
    text.append(warnings(&of_record(record, &[]), layout));
    text
}

/// The legend, the instrument, the clock, the noise and the hosts.
fn background(record: &Record) -> Vec<String> {
    let mut lines = match view::is_of_messages(record) {
        true => vec![legend(record), instrument(record), clock(record)],
        false => vec![clock(record)],
    };
    lines.extend(record.noise.iter().map(|seen| format!("noise: {}", view::noise_sentence(seen))));
    lines.extend(hosts(record));
    lines.push(format!("cite: {}", view::citation(record)));
    lines
}

/// What the signs in the tables mean.
fn short_legend(record: &Record) -> Option<String> {
    let has_figures =
        record.runs.iter().any(|run| !run.figures.is_empty() || !run.rates.is_empty());
    let legend = "figures: ± or (low..high): 95 % interval; ≤ ≥: its far end; ±?: unresolved; \
                  !: see the warnings";
    has_figures.then(|| legend.to_owned() + &signs(record) + infinite(record))
}

/// Says what the signs behind intervals mean that are not over rounds, where there are any.
fn signs(record: &Record) -> String {
    let figures = record.runs.iter().flat_map(|run| &run.figures);
    let quantiles = figures.flat_map(|figure| &figure.summary.quantiles);
    let shown: Vec<Basis> =
        quantiles.filter(|one| one.value.is_some()).map(|one| one.basis).collect();
    let mut text = String::new();
    if shown.contains(&Basis::OneRound) {
        text += &format!("; {WITHIN}: of one round, within one process");
    }
    if shown.contains(&Basis::Pooled) {
        text += &format!("; {POOLED}: of all rounds' messages together");
    }
    text
}

/// What `inf` means, where a figure is it.
fn infinite(record: &Record) -> &'static str {
    let is_infinite = |figure: &Figure| figure.summary.max.0.is_infinite();
    match record.runs.iter().any(|run| run.figures.iter().any(is_infinite)) {
        true => "; inf: a message that was lost, unfinished or never sent",
        false => "",
    }
}

/// What the instrument adds to the shortest latency, where that is no small part of it.
fn own_share(record: &Record) -> Option<String> {
    let own = &record.instrument;
    let shortest = record.runs.iter().filter_map(|run| {
        let metric =
            headline(run).filter(|metric| !matches!(metric, Metric::Lateness | Metric::Post))?;
        // Half of a round trip has half of it.
        let added = own.overhead_p50_ns * if metric == Metric::HalfRtt { 0.5 } else { 1.0 };
        Some((run.quantile(metric, 0.5)?.0, added, run, metric))
    });
    let (p50, added, run, metric) = shortest.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (own.count > 0 && added > OWN_SHARE * p50).then(|| {
        format!(
            "instrument: adds {} to the {} of {}: {}",
            rough(added),
            rough(p50),
            run.label,
            metric.name()
        )
    })
}

/// A time in two digits, beside another that is no more exact.
fn rough(ns: f64) -> String {
    let (value, unit) = scaled_ns(ns);
    format!("{} {unit}", compact(value, None, 1.0, Room::Little).0)
}

fn legend(record: &Record) -> String {
    let maximum = match record.runs.iter().any(|run| !run.figures.is_empty()) {
        true => "; max is the true maximum, beside it the range of the rounds' maxima",
        false => "",
    };
    format!(
        "figures: ± is the larger half of the 95 % confidence interval; an asymmetric interval is \
         shown as (low..high); unresolved: an end of the interval is open, or its half is larger \
         than the figure{maximum}{}{}",
        signs(record),
        infinite(record)
    )
}

fn instrument(record: &Record) -> String {
    let own = &record.instrument;
    if let Some(why) = view::no_instrument(record) {
        return format!("instrument: {why}");
    }
    format!(
        "instrument: adds {} (p50) to {} (p99) to a round trip (null transport, n {}); latencies \
         below {} (half_rtt: half of that) cannot be resolved; recording a sample takes {}",
        span(own.overhead_p50_ns),
        span(own.overhead_p99_ns),
        own.count,
        span(own.error_ns),
        span(own.recording_ns)
    )
}

/// The error bounds of the clocks behind one-way times.
fn clocks(record: &Record) -> Vec<String> {
    let known = record.runs.iter().filter_map(|run| Some((run, run.widest_clock()?)));
    let line = |(run, widest): (&Run, &ClockOffset)| {
        format!(
            "clocks: {}: no one-way time is wrong by more than {}, path asymmetry included ({} \
             exchanges, shortest round trip {}; the server's clock gains {} ± {} ppm)",
            run.label,
            span(widest.bound_ns),
            widest.exchanges,
            span(widest.shortest_round_trip_ns),
            short(widest.drift_ppm),
            short(widest.drift_bound_ppm)
        )
    };
    // Of many pairs the widest is shown.
    match record.plan.pairs {
        None => known.map(line).collect(),
        Some(_) => {
            let widest = known.max_by(|a, b| a.1.bound_ns.total_cmp(&b.1.bound_ns));
            widest.map(line).into_iter().collect()
        }
    }
}

fn clock(record: &Record) -> String {
    let clock = &record.clock;
    format!(
        "clock: {} ({}); reading it takes {}, resolution {}, {}",
        clock.source,
        clock.reason,
        span(clock.reading_cost_ns),
        span(clock.resolution_ns),
        clock.scale(record.environment.clock_source.as_deref())
    )
}

/// Which host each end ran on, and the noise of the others.
fn hosts(record: &Record) -> Vec<String> {
    let machine = |environment: &Environment, clock: &ClockReport| {
        format!(
            "{}, {}, clock {}",
            environment.kernel.as_deref().unwrap_or("unknown kernel"),
            environment.processor.model.as_deref().unwrap_or("unknown CPU"),
            clock.source
        )
    };
    let own =
        format!("{} ({})", record.environment.host, machine(&record.environment, &record.clock));
    let lines = match (record.hosts.as_slice(), record.plan.cases.first()) {
        ([], _) => Vec::new(),
        ([there], Some(case)) if case.topology.hosts().client.is_none() => {
            let at = there.address.as_ref().map(|address| format!(" at {address}"));
            let there = format!(
                "{} = {} ({}){}",
                there.name,
                there.environment.host,
                machine(&there.environment, &there.clock),
                at.unwrap_or_default()
            );
            vec![format!("hosts: client on {own}, server on {there}")]
        }
        (several, _) => {
            let machines: Vec<String> =
                several.iter().map(|there| machine(&there.environment, &there.clock)).collect();
            let both = several.iter().zip(&machines);
            let hosts =
                grouped(both.map(|(there, at)| ("hosts", at.as_str(), there.name.as_str())));
            std::iter::once(format!("hosts: controlled from {own}")).chain(hosts).collect()
        }
    };
    // Of many the noisiest is shown; what is too noisy has a warning.
    let noise =
        record.hosts.iter().flat_map(|there| there.noise.iter().map(move |one| (there, one)));
    let noisiest = noise.max_by(|a, b| a.1.share().total_cmp(&b.1.share()));
    let noise = noisiest
        .map(|(there, seen)| format!("noise: on {}: {}", there.name, view::noise_sentence(seen)));
    lines.into_iter().chain(noise).collect()
}

/// Messages that were not sent or did not arrive as planned.
fn astray(run: &Run) -> Option<String> {
    let Counts { sent, lost, unfinished, unsent, held_up, .. } = run.counts;
    let Counts { duplicates, reordered, corrupt, rejected_peers, .. } = run.counts;
    let kinds = [
        (lost, "lost"),
        (unfinished, "under way at the end"),
        (unsent, "more never sent"),
        (held_up, "held up at the sender"),
        (duplicates, "duplicated"),
        (reordered, "reordered"),
        (corrupt, "corrupt"),
        (rejected_peers, "connections of other processes rejected"),
    ];
    let seen: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!seen.is_empty())
        .then(|| format!("messages: {}: of {sent} sent, {}", run.label, seen.join(", ")))
}

/// Whether the warning that a run is incomplete says a fault too.
fn is_said_of_a_run(record: &Record, fault: &str) -> bool {
    let mut ended = record.runs.iter().filter(|run| has_said(run));
    ended.any(|run| fault == run.stopped || fault == format!("{}: {}", run.label, run.stopped))
}

/// Whether a warning says why its rounds stopped; one of an older build, without a magnitude, does
/// not.
fn has_said(run: &Run) -> bool {
    run.warnings.iter().any(|warning| warning.kind == "incomplete" && warning.magnitude.is_some())
}

/// Why the rounds stopped, if not by their number.
fn rounds(record: &Record, verbose: bool) -> Vec<String> {
    let until = verbose && record.plan.rounds.until.is_some();
    let runs = record.runs.iter().filter(|run| if run.complete { until } else { !has_said(run) });
    grouped(runs.map(|run| {
        let word = if run.complete { "rounds" } else { "incomplete" };
        (word, run.stopped.as_str(), run.label.as_str())
    }))
}

/// Sentences with the runs that share them, in the order in which they came; each is made of its
/// first word, its text and the label of a run.
fn grouped<'a>(all: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Vec<String> {
    let line = |group: Vec<(&str, &str, &str)>| {
        let (word, text, _) = group[0];
        let mut labels: Vec<&str> = group.iter().map(|one| one.2).collect();
        labels.dedup();
        format!("{word}: {}: {text}", named(&labels, true))
    };
    let groups = options::grouped(all, |a, b| (a.0, a.1) == (b.0, b.1));
    groups.into_iter().map(line).collect()
}
