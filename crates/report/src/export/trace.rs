//! One round as a Chrome trace, which Perfetto and chrome://tracing show: a process for each role,
//! a track for each thread, a span for each measured time.

use super::rows::{Observable, Observer, RunContext};
use super::selection::{Selected, Selection};
use super::{ExportError, Rows};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use wiregauge_base::options::Named;
use wiregauge_figures::explain::{NO_CPU, SlowMessage};
use wiregauge_figures::record::schema::{Record, Round, Run};
use wiregauge_sample::{Flags, RoundSamples, Sample};

/// Most messages of a trace: each has up to five spans of some 200 bytes, and the viewers are slow
/// beyond 100 MB.
pub const MOST_MESSAGES: u64 = 100_000;

/// Writes the trace of the selected round.
pub(super) fn write(
    dir: &Path,
    record: &Record,
    selection: &Selection,
    sink: &mut dyn Write,
    failed: impl Fn(io::Error) -> ExportError,
) -> Result<(), ExportError> {
    let (run, round) = one_round(record, selection)?;
    let context = RunContext::new(run);
    let observables = spans_of(&context, selection);
    let one = Selection {
        runs: vec![run.index],
        rounds: vec![round.index],
        rows: Rows::Stamps,
        ..selection.clone()
    };
    let window = match selection.around {
        None if round.samples > MOST_MESSAGES => {
            let (number, has) = (round.index, round.samples);
            return Err(ExportError::Selection(format!(
                "round {number} has {has} messages, more than the {MOST_MESSAGES} of a trace: use \
                 --around 1000 for those around the slowest"
            )));
        }
        None => None,
        Some(count) => {
            let (slowest, messages) = slowest(&context, one.open(dir, record)?, &observables)?;
            Some(around(slowest, count, messages))
        }
    };
    let part = messages(one.open(dir, record)?, window)?;
    let mut spans = spans(&context, &part, &observables, selection.with_warmup);
    spans.extend(stages(record, run.index, round.index, &part));
    // What encloses comes before what it encloses.
    spans.sort_by(|a, b| {
        let starts = a.start_ns.total_cmp(&b.start_ns);
        a.track.cmp(&b.track).then(starts).then(b.length_ns.total_cmp(&a.length_ns))
    });
    events(record, &context, round, spans, sink).map_err(failed)
}

/// The run and the round that are selected.
fn one_round<'a>(
    record: &'a Record,
    selection: &Selection,
) -> Result<(&'a Run, &'a Round), ExportError> {
    let refuse = |sentence: String| Err(ExportError::Selection(sentence));
    let runs: Vec<&Run> = record.runs.iter().filter(|run| selection.has_run(run.index)).collect();
    let [run] = runs[..] else {
        let names = runs.iter().take(8).map(|run| format!("{} ({})", run.index, run.label));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = if runs.len() > 8 { ", ..." } else { "" };
        return refuse(format!("a trace shows one run: choose it by --run: {names}{more}"));
    };
    let chosen = |round: &&Round| selection.has_round(round.index);
    match run.rounds.iter().find(chosen) {
        Some(round) if selection.rounds.len() < 2 => Ok((run, round)),
        Some(_) => refuse("a trace shows one round: use one --round".to_owned()),
        None => refuse(format!("{} has no round to show: choose another run", run.label)),
    }
}

/// The observables that are spans of time.
fn spans_of(context: &RunContext, selection: &Selection) -> Vec<Observable> {
    let wanted = match selection.observables.is_empty() {
        true => &context.observables,
        false => &selection.observables,
    };
    wanted.iter().copied().filter(|one| one.is_span()).collect()
}

/// The position among those left in of the message that arrived with the longest span behind the
/// warm-up, and how many are left in.
fn slowest(
    context: &RunContext,
    mut chosen: Selected<'_>,
    observables: &[Observable],
) -> Result<(u64, u64), ExportError> {
    let mut observers: Vec<Observer> = observables.iter().copied().map(Observer::new).collect();
    let (mut before, mut longest) = (0, (f64::NEG_INFINITY, 0));
    let selection = chosen.selection();
    chosen.each_part(|part| {
        let left_in = part.samples.iter().filter(|one| selection.leaves_in(one));
        for row in observers.iter_mut().flat_map(|observer| observer.rows(context, part)) {
            // What never arrived has finite spans too: it was posted, or late.
            let is_counted = row.value_ns.is_finite()
                && row.has_arrived()
                && !row.sample.flags.has(Flags::WARMUP);
            if is_counted && row.value_ns > longest.0 {
                let at = left_in.clone().position(|one| std::ptr::eq(one, row.sample));
                longest = (row.value_ns, before + at.unwrap_or(0) as u64);
            }
        }
        before += left_in.count() as u64;
        Ok(())
    })?;
    Ok((longest.1, before))
}

/// The positions of so many messages around one of a round: as many of them at its begin and end.
fn around(middle: u64, count: u64, messages: u64) -> Range<u64> {
    let first = middle.saturating_sub(count / 2).min(messages.saturating_sub(count));
    first..first.saturating_add(count)
}

/// The messages of the one selected round: all, or of those left in the ones at these positions.
fn messages(
    mut chosen: Selected<'_>,
    window: Option<Range<u64>>,
) -> Result<RoundSamples, ExportError> {
    let mut kept = RoundSamples::default();
    let mut at = 0;
    let selection = chosen.selection();
    chosen.each_part(|part| {
        (kept.run, kept.round) = (part.run, part.round);
        let Some(window) = &window else {
            kept.samples.extend_from_slice(&part.samples);
            return Ok(());
        };
        for sample in part.samples.iter().filter(|one| selection.leaves_in(one)) {
            if window.contains(&at) {
                kept.samples.push(*sample);
            }
            at += 1;
        }
        Ok(())
    })?;
    Ok(kept)
}

/// A measured time.
struct Span {
    /// The process and the thread that show it.
    track: (u32, u32),
    start_ns: f64,
    /// Infinite: it never ended.
    length_ns: f64,
    name: String,
    arguments: Value,
}

fn spans(
    context: &RunContext,
    part: &RoundSamples,
    observables: &[Observable],
    with_warmup: bool,
) -> Vec<Span> {
    let mut spans = Vec::new();
    for observable in observables {
        for row in Observer::new(*observable).rows(context, part) {
            let is_warmup = row.sample.flags.has(Flags::WARMUP);
            if is_warmup && !with_warmup {
                continue;
            }
            spans.push(Span {
                track: (process(row.role), row.sample.thread),
                start_ns: row.time_ns,
                length_ns: row.value_ns,
                name: observable.name().to_owned(),
                arguments: json!({
                    "sequence": row.sample.sequence,
                    "size_bytes": row.sample.size,
                    "outcome": row.outcome(),
                    "warmup": is_warmup,
                }),
            });
        }
    }
    spans
}

/// The stages of the messages that `explain` kept in detail, each on the track of the end that
/// works.
fn stages(record: &Record, run: u32, round: u32, part: &RoundSamples) -> Vec<Span> {
    let Some(found) = record.explanation.as_ref().filter(|found| found.run == run) else {
        return Vec::new();
    };
    let is_shown = |one: &&SlowMessage| {
        let has = |sample: &Sample| sample.sequence == one.sequence;
        one.round == round && part.samples.iter().any(has)
    };
    let of_message = |one: &SlowMessage| {
        let mut at = one.start_ns;
        let spans = found.stages.iter().zip(&one.stages).map(|(stage, (ns, cpu))| {
            let start_ns = at;
            at += ns;
            let role = if (stage.leg == 0) == stage.sends { "client" } else { "server" };
            Span {
                track: (process(role), 0),
                start_ns,
                length_ns: *ns,
                name: stage.name.clone(),
                arguments: json!({
                    "sequence": one.sequence,
                    "cpu": (*cpu != u32::from(NO_CPU)).then_some(cpu),
                    "ends_at": stage.ends_at,
                    "cause": one.cause.cause.name(),
                    "who": one.cause.who,
                }),
            }
        });
        spans.collect::<Vec<_>>()
    };
    found.slowest.iter().filter(is_shown).flat_map(of_message).collect()
}

fn process(role: &str) -> u32 {
    if role == "client" { 1 } else { 2 }
}

/// An event of the Trace Event Format.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'a str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Value>,
}

impl<'a> Event<'a> {
    fn new(name: &'a str, ph: &'a str, (pid, tid): (u32, u32)) -> Event<'a> {
        Event { name, ph, pid, tid, cat: None, id: None, ts: None, dur: None, args: None }
    }
}

/// Nanoseconds in the format's microseconds: of a double they keep all digits of a stamp.
fn microseconds(ns: f64) -> Option<f64> {
    Some(ns / 1e3)
}

fn events(
    record: &Record,
    context: &RunContext,
    round: &Round,
    spans: Vec<Span>,
    sink: &mut dyn Write,
) -> io::Result<()> {
    let epoch_ns = spans.iter().map(|span| span.start_ns).fold(f64::INFINITY, f64::min);
    let about = json!({
        "tool": format!("wiregauge {}", record.tool),
        "started": record.started,
        "host": record.environment.host,
        "case": context.case,
        "run": context.run,
        "round": round.index,
        "ts_0_ns": if epoch_ns.is_finite() { epoch_ns } else { 0.0 },
    });
    write!(sink, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\n\"traceEvents\":[")?;
    let mut separator = "\n";
    let mut put = |event: &Event<'_>| {
        sink.write_all(separator.as_bytes())?;
        separator = ",\n";
        serde_json::to_writer(&mut *sink, event).map_err(io::Error::from)
    };
    let mut tracks: Vec<(u32, u32)> = spans.iter().map(|span| span.track).collect();
    tracks.dedup();
    for (at, track) in tracks.iter().enumerate() {
        if at == 0 || tracks[at - 1].0 != track.0 {
            let name =
                json!({"name": if track.0 == process("client") { "client" } else { "server" }});
            put(&Event { args: Some(&name), ..Event::new("process_name", "M", *track) })?;
        }
        let name = json!({"name": format!("thread {}", track.1)});
        put(&Event { args: Some(&name), ..Event::new("thread_name", "M", *track) })?;
    }
    // Ends of the spans that are open on the track, the innermost last.
    let (mut track, mut open) = (None, Vec::<f64>::new());
    for (number, span) in spans.iter().enumerate() {
        if track.replace(span.track) != Some(span.track) {
            open.clear();
        }
        let (start, end) = (span.start_ns, span.start_ns + span.length_ns);
        let ts = || microseconds(start - epoch_ns);
        let event = |ph| Event::new(&span.name, ph, span.track);
        open.retain(|other| *other > start);
        if !span.length_ns.is_finite() {
            put(&Event { ts: ts(), args: Some(&span.arguments), ..event("i") })?;
        } else if open.last().is_none_or(|enclosing| end <= *enclosing) {
            open.push(end);
            let dur = microseconds(span.length_ns);
            put(&Event { ts: ts(), dur, args: Some(&span.arguments), ..event("X") })?;
        } else {
            // It overlaps another in part, which a track cannot show.
            let both = |ph| Event {
                cat: Some("overlapping"),
                id: Some(format!("{number:#x}")),
                ..event(ph)
            };
            put(&Event { ts: ts(), args: Some(&span.arguments), ..both("b") })?;
            put(&Event { ts: microseconds(end - epoch_ns), ..both("e") })?;
        }
    }
    sink.write_all(b"\n]}\n")
}
