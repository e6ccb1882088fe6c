//! Gaps that a spinning core saw: a line a CPU, and a histogram of each.

use crate::model::{
    Axis, Cell, Data, OfRun, Plot, Point, Section, Series, Style, Table, Unit, distinct, fields,
    number, text,
};
use crate::number::{PERCENT, US, count, short, span};
use wiregauge_figures::record::schema::{Noise, Record};

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// The share of its time that a CPU lost, in per cent.
fn lost_percent(noise: &Noise) -> f64 {
    PERCENT * noise.share()
}

/// Why a record has no instrument overhead; `None`: it has.
pub fn no_instrument(record: &Record) -> Option<&'static str> {
    let is_simulated = record.runs.iter().all(|run| run.case.transport.simulates_time());
    let why = match is_simulated {
        true => "not measured, since no round ran in real time",
        false => "unknown, since the run did not come to its end",
    };
    (record.instrument.count == 0).then_some(why)
}

/// The noise of a CPU in a sentence.
pub fn sentence(noise: &Noise) -> String {
    format!(
        "CPU {}: {} gaps above {} in {}, {} % of the time, the longest {}",
        noise.cpu,
        noise.gaps,
        span(noise.gap_threshold_ns),
        span(noise.observed_ns),
        short(lost_percent(noise)),
        span(noise.longest_ns)
    )
}

/// CPUs, and a histogram of each that saw a gap.
pub fn tables(all: &[Noise]) -> Vec<Table> {
    let fields = [
        text("CPU", |noise: &&Noise| noise.cpu.to_string()),
        number("gaps", "", |noise: &&Noise| Cell::Count(noise.gaps)),
        number("above", "us", |noise: &&Noise| Cell::number(noise.gap_threshold_ns * US)),
        number("in", "s", |noise: &&Noise| Cell::number(noise.observed_ns / 1e9)),
        number("lost", "us", |noise: &&Noise| Cell::number(noise.lost_ns * US)),
        number("lost %", "", |noise: &&Noise| Cell::number(lost_percent(noise))),
        number("longest", "us", |noise: &&Noise| Cell::number(noise.longest_ns * US)),
    ];
    Table::of(all, fields).into_iter().chain(all.iter().filter_map(histogram)).collect()
}

/// Gaps of one CPU from a length on.
struct Bin {
    cpu: u32,
    from_ns: f64,
    gaps: u64,
    most: u64,
}

impl OfRun for Bin {}

fn bins(noise: &Noise) -> Vec<Bin> {
    let most = noise.histogram.iter().map(|(_, gaps)| *gaps).max().unwrap_or(0);
    let seen = noise.histogram.iter().filter(|(_, gaps)| *gaps > 0);
    seen.map(|&(from_ns, gaps)| Bin { cpu: noise.cpu, from_ns, gaps, most }).collect()
}

fn histogram(noise: &Noise) -> Option<Table> {
    Table::of(
        bins(noise),
        [
            text("CPU", |bin: &Bin| bin.cpu.to_string()),
            number("from", "us", |bin: &Bin| Cell::number(bin.from_ns * US)),
            number("to", "us", |bin: &Bin| Cell::number(bin.from_ns * 2.0 * US)),
            number("gaps", "", |bin: &Bin| Cell::Count(bin.gaps)),
            // Logarithmic, so that one long gap among a million short ones is seen.
            text("(logarithmic)", |bin: &Bin| {
                let bar = BAR * (bin.gaps as f64).ln_1p() / (bin.most as f64).ln_1p();
                "#".repeat(bar.ceil() as usize)
            }),
        ],
    )
}

/// The gaps by their length, for the page; `None` where no CPU saw one.
pub fn section(record: &Record) -> Option<Section> {
    let cpus: Vec<&Noise> = record.noise.iter().filter(|one| !one.histogram.is_empty()).collect();
    let lengths = distinct(cpus.iter().flat_map(|one| &one.histogram).map(|(from_ns, _)| *from_ns));
    cpus.first()?;
    let width = 0.8 / cpus.len() as f64;
    let series = cpus.iter().enumerate().map(|(at, noise)| {
        let aside = (at as f64 - (cpus.len() - 1) as f64 / 2.0) * width;
        let point = |bin: Bin| {
            let slot = lengths.iter().position(|from_ns| *from_ns == bin.from_ns).unwrap_or(0);
            let (from, to) = (span(bin.from_ns), span(2.0 * bin.from_ns));
            let text = format!("{} gaps of {from} to {to}", count(bin.gaps));
            Point { x: slot as f64 + aside, y: bin.gaps as f64, text, ..Point::default() }
        };
        Series {
            name: format!("CPU {}", noise.cpu),
            style: Style::Bars,
            colour: Some(at),
            half: Some(width * 0.46),
            points: bins(noise).into_iter().map(point).collect(),
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.collect();
    let most = series.iter().flat_map(|one| &one.points).map(|point| point.y).fold(1.0, f64::max);
    let rows = cpus.iter().flat_map(|noise| {
        let row = |(from, gaps): &(f64, u64)| fields![noise.cpu, from, gaps, noise.observed_ns];
        noise.histogram.iter().map(row).collect::<Vec<_>>()
    });
    let data = Data::new("cpu length_from_ns gaps observed_ns", rows);
    let names = lengths.iter().map(|from_ns| span(*from_ns)).collect();
    let note = "A tail in this range may come from the machine and not from the transport.";
    let plot = Plot {
        x: Axis { label: "length from".into(), ..Axis::names(names, 0.5) },
        y: Axis::log("gaps", Unit::Count).between(0.5, most * 1.5),
        series,
        ..Plot::new("noise", "Gaps by length", note, 240)
    };
    let section = Section::new("noise", "Noise of the CPUs");
    Some(Section { plots: vec![plot], data: vec![data], ..section })
}
