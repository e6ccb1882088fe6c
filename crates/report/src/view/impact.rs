//! What a case suffers from congestors: factors of its figures, with intervals.

use crate::model::{
    Axis, Cell, Data, Note, OfRun, Plot, Point, Rank, Section, Series, Show, Style, Table, Unit,
    bounds, fields, figure, number, text,
};
use crate::number::{PERCENT, Room, compact, interval, short};
use crate::scale::Scale;
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{Factor, ImpactFigures, Record, Run};
use wiregauge_figures::view::compared::Named;
use wiregauge_stats::Value;

/// From the middle of a figure's place to those of two congestors.
const ASIDE: f64 = 0.12;
/// Figures of which the answer speaks.
const ANSWERED: [&str; 3] = ["p50", "p99", "rate"];

/// One factor.
struct Line<'a> {
    impact: &'a ImpactFigures,
    factor: &'a Factor,
    run: Option<&'a Run>,
}

impl OfRun for Line<'_> {
    fn run(&self) -> Option<&Run> {
        self.run
    }
}

/// The factors; `None` where nothing was measured alone and beside others.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("impact", "Congestion impact");
    for impact in &record.impacts {
        section.notes.extend(covered(impact));
    }
    let scales = [Scale::Time, Scale::Bytes, Scale::Messages];
    section.results.extend(scales.into_iter().filter_map(|scale| table(record, scale)));
    plot(record, &mut section);
    section.filled()
}

/// Under which congestor the victim is how much slower.
pub fn answer(record: &Record) -> Vec<String> {
    let line = |impact: &ImpactFigures| {
        let first = impact.factors.first().map(|factor| factor.metric.clone());
        let is_rate = |factor: &&Factor| factor.of == "rate";
        let metric = impact.factors.iter().find(is_rate).filter(|_| is_of_rate(record, impact));
        let metric = metric.map(|factor| factor.metric.clone()).or(first)?;
        let said =
            |factor: &&Factor| factor.metric == metric && ANSWERED.contains(&factor.of.as_str());
        let parts: Vec<String> =
            impact.factors.iter().filter(said).filter_map(sentence_part).collect();
        let (name, parts) = (&impact.congestor, parts.join("; "));
        let parts = parts.replacen(" times", " times that alone", 1);
        (!parts.is_empty()).then(|| format!("Under {name}, {metric} is {parts}."))
    };
    record.impacts.iter().filter_map(line).collect()
}

/// Whether the question of the victim is answered by a rate.
fn is_of_rate(record: &Record, impact: &ImpactFigures) -> bool {
    let run = run(record, impact.under);
    run.is_some_and(|run| run.rates.iter().any(|rate| rate.metric.name() == run.headline))
}

fn sentence_part(factor: &Factor) -> Option<String> {
    let (value, interval) = (factor.factor?.0, factor.interval);
    let named = Named { name: String::new(), value, interval };
    let times = named.text(1.0, "times");
    let includes_one = interval.is_none_or(|both| both.low.0 <= 1.0 && both.high.0 >= 1.0);
    let open = if includes_one { ", which cannot be distinguished from 1" } else { "" };
    let of = if factor.of == "rate" { String::new() } else { format!(" at {}", factor.of) };
    Some(format!("{times}{of}{open}"))
}

fn run(record: &Record, number: u32) -> Option<&Run> {
    record.runs.iter().find(|run| run.index == number)
}

/// Says where the congestors did not run all the time, or where that is not known.
fn covered(impact: &ImpactFigures) -> Option<Note> {
    let name = &impact.congestor;
    Some(match impact.covered {
        Some(share) => {
            let text = format!(
                "{name}: the congestors ran during {} % of each round or more",
                short(PERCENT * share)
            );
            Note::new(text, Show::Page)
        }
        None => format!("{name}: it is not known when the congestors ran").into(),
    })
}

fn lines<'a>(record: &'a Record, scale: Scale) -> Vec<Line<'a>> {
    let own = record.impacts.iter().flat_map(|impact| {
        let run = run(record, impact.under);
        impact.factors.iter().map(move |factor| Line { impact, factor, run })
    });
    own.filter(|line| Scale::of(&line.factor.metric) == scale).collect()
}

fn table(record: &Record, scale: Scale) -> Option<Table> {
    let unit = scale.unit();
    let lines = lines(record, scale);
    let metrics = each_once(lines.iter().map(|line| line.factor.metric.as_str()));
    let first = metrics.first().copied().unwrap_or_default();
    let value = move |value: Option<Value>| match value {
        Some(value) => Cell::figure(value.0, None, scale.factor()),
        None => Cell::TooSmall,
    };
    let factor = |line: &Line<'_>| match line.factor.factor {
        Some(factor) => Cell::figure(factor.0, line.factor.interval, 1.0),
        None => Cell::None,
    };
    let metric = text("metric", |line: &Line<'_>| line.factor.metric.as_str());
    let of = |line: &Line<'_>| match line.factor.of.as_str() {
        "round_max" => "max of a round".to_owned(),
        of => of.to_owned(),
    };
    let fields = [
        text("congestor", |line: &Line<'_>| line.impact.congestor.as_str()),
        metric,
        text("figure", of),
        number("alone", unit, move |line: &Line<'_>| value(line.factor.alone)),
        number("under", unit, move |line: &Line<'_>| value(line.factor.under)),
        figure("factor", "", factor),
        number("covered %", "", |line: &Line<'_>| {
            line.impact.covered.map(|share| Cell::fixed(PERCENT * share, 1))
        })
        .rank(Rank::More),
    ];
    // The halves of round trips have the factors of the whole ones.
    let is_told = |line: &Line<'_>| {
        let halved = first == "half_rtt" && line.factor.metric == "rtt";
        !halved
    };
    let rows = lines.into_iter().filter(is_told);
    let caption = "What the command suffers: figures alone, beside congestors, and their ratio";
    let table = Table::of(rows, fields)?.caption(Note::new(caption, Show::Page));
    Some(Table { id: format!("impact-{unit}").replace(['/', ' '], "-"), ..table })
}

/// The factors of the first metric, those of a congestor in one colour.
fn plot(record: &Record, section: &mut Section) {
    let metric = record.impacts.iter().flat_map(|impact| &impact.factors).next();
    let Some(metric) = metric.map(|factor| factor.metric.as_str()) else { return };
    let of_metric = |impact: &'_ ImpactFigures| -> Vec<Factor> {
        impact.factors.iter().filter(|factor| factor.metric == metric).cloned().collect()
    };
    let names: Vec<String> =
        each_once(record.impacts.iter().flat_map(of_metric).map(|factor| factor.of));
    let count = record.impacts.len();
    let series = record.impacts.iter().enumerate().map(|(at, impact)| {
        let aside = (2.0 * at as f64 - (count as f64 - 1.0)) * ASIDE / 2.0;
        let point = |factor: &Factor| {
            let y = factor.factor?.0;
            let x = names.iter().position(|name| *name == factor.of)? as f64 + aside;
            let shown = |value: f64| compact(value, None, 1.0, Room::Enough).0;
            let error = interval(y, factor.interval, shown);
            let text = format!("{}: {} {} times {error}", impact.congestor, factor.of, shown(y));
            let usable = y > 0.0 && y.is_finite();
            usable.then(|| Point { x, y, text, ..Point::default() }.within(factor.interval))
        };
        Series {
            name: impact.congestor.clone(),
            style: Style::Dots,
            colour: Some(at),
            points: of_metric(impact).iter().filter_map(point).collect(),
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    if series.is_empty() {
        return;
    }
    let note = "1: as alone. Bars: 95 % intervals. Lower is better.";
    let title = format!("{metric} under congestion over that alone");
    let plot = Plot {
        x: Axis::names(names, 0.5),
        y: Axis::log("factor", Unit::Times),
        series,
        ..Plot::new("impact-factors", title, note, 300)
    };
    section.draw(plot, data(record));
}

fn data(record: &Record) -> Data {
    let rows = record.impacts.iter().flat_map(|impact| {
        impact.factors.iter().map(move |factor| {
            let [low, high] = bounds(factor.interval);
            let Factor { metric, of, alone, under, factor, .. } = factor;
            fields![impact.congestor, metric, of, alone, under, factor, low, high]
        })
    });
    Data::new("congestor metric figure alone under factor low high", rows)
}
