//! Several records beside each other: the first is the baseline of all others.
//!
//! Takes records and their reduced samples; gives sections: a table of p50, p99 and rates with the
//! difference to the baseline, what else differs, and the distributions of the same case.

use super::comparison::{Change, Comparison, Pair, Side, change, pairs, summary};
use super::curves::{Curve, Reduced, headline};
use super::model::{Cell, Note, OfRun, Rank, Section, Show, Table, figure, number, text};
use super::number::THOUSANDS;
use super::scale::Scale;
use super::view::distribution;
use wiregauge_figures::record::schema::{RateMetric, Run};
use wiregauge_stats::{Difference, Missing, compare};

/// So many records are told apart in one plot.
pub const MOST_RECORDS: usize = 8;
/// Cases whose distributions are drawn.
const MOST_CASES: usize = 16;
/// The baseline's place in the palette: the colour of text. The others have those before it.
const BASELINE: usize = 6;

/// Several records with the names by which they are told apart.
pub struct Several {
    sides: Vec<Side>,
}

/// A run of one record, and the run of the baseline with the same case.
struct Line<'a> {
    record: String,
    run: &'a Run,
    baseline: Option<&'a Run>,
}

impl OfRun for Line<'_> {
    fn is_complete(&self) -> bool {
        self.run.complete
    }
}

/// What differs between a record and the baseline.
struct Differs {
    record: String,
    what: String,
    severity: &'static str,
    of_each: [String; 2],
}

impl OfRun for Differs {}

impl Several {
    /// The first is the baseline.
    pub fn new(sides: impl IntoIterator<Item = Side>) -> Several {
        Several { sides: sides.into_iter().collect() }
    }

    /// The records with their names.
    pub fn all(&self) -> impl Iterator<Item = (String, &Side)> {
        (0..self.sides.len()).map(|at| (self.name(at), &self.sides[at]))
    }

    fn name(&self, at: usize) -> String {
        let name = &self.sides[at].name;
        if at == 0 { format!("{name} (baseline)") } else { name.clone() }
    }

    /// The pairs of each record with the baseline, by its place.
    fn pairs(&self) -> Vec<(usize, Vec<Pair<'_>>)> {
        let Some((baseline, others)) = self.sides.split_first() else { return Vec::new() };
        let pairs_of = |(at, other)| (at + 1, pairs(baseline, other));
        others.iter().enumerate().map(pairs_of).collect()
    }

    /// Returns a sentence for each record but the baseline: how many cases changed, which one most.
    pub fn answer(&self) -> Vec<String> {
        let of_record = |(at, pairs): &(usize, Vec<Pair<'_>>)| {
            let name = self.name(*at);
            format!("{name}: {}.", summary(pairs, ["the baseline", &name]))
        };
        self.pairs().iter().map(of_record).collect()
    }

    /// The figures of each case, those of the baseline first.
    pub fn results(&self) -> Section {
        let mut section = Section::new("several", "Records beside each other");
        let pairs = self.pairs();
        let mut lines = Vec::new();
        for run in self.sides.iter().take(1).flat_map(Side::runs) {
            lines.push(Line { record: self.name(0), run, baseline: None });
            for (at, pairs) in &pairs {
                let own = pairs.iter().filter(|pair| pair.a.index == run.index);
                lines.extend(own.map(|pair| Line {
                    record: self.name(*at),
                    run: pair.b,
                    baseline: Some(pair.a),
                }));
            }
        }
        for (at, pairs) in &pairs {
            let is_alone = |run: &&Run| pairs.iter().all(|pair| pair.b.index != run.index);
            let alone = self.sides[*at].runs().into_iter().filter(is_alone);
            lines.extend(alone.map(|run| Line { record: self.name(*at), run, baseline: None }));
        }
        let note = "change: of the means of the rounds against the baseline's, with its 95 % \
                    interval; none (≤4): no change shown, it is at most 4 %; records were not \
                    measured in turns, so that drift looks like a difference: `wiregauge ab` does; \
                    at 95 % about one of 20 equal cases differs by chance";
        section.results.extend(table(lines).map(|table| table.notes([note])));
        section.tables.extend(self.conditions());
        section
    }

    /// What else differs, the worst first.
    fn conditions(&self) -> Option<Table> {
        let (baseline, others) = self.sides.split_first()?;
        let mut rows = Vec::new();
        for (at, other) in others.iter().enumerate() {
            let found = Comparison::new(baseline, other, &[]).conditions;
            rows.extend(found.iter().map(|one| Differs {
                record: self.name(at + 1),
                what: one.what.clone(),
                severity: one.severity.name(),
                of_each: one.shown(),
            }));
        }
        let fields = [
            text("record", |row: &Differs| row.record.clone()),
            text("differs in", |row: &Differs| row.what.clone()),
            text("severity", |row: &Differs| row.severity),
            text("baseline", |row: &Differs| row.of_each[0].clone()),
            text("this one", |row: &Differs| row.of_each[1].clone()),
        ];
        let caption = Note::from("What differs beside the figures");
        Table::of(rows, fields).map(|table| table.caption(caption))
    }

    /// The distributions of each case, the one that differs most first, and the curves that they
    /// are made of, whose runs have numbers that no two records share.
    pub fn overlays(&self, reduced: &[Reduced]) -> (Section, Vec<Curve>) {
        let mut section = Section::new("overlays", "Distributions");
        let mut all = Vec::new();
        let baseline = self.sides.first().map(Side::runs).unwrap_or_default();
        let pairs = self.pairs();
        let share = |run: &Run| {
            let of_run = pairs.iter().flat_map(|(_, all)| all).filter(|p| p.a.index == run.index);
            let changes = of_run.filter_map(|pair| Change::largest(pair, ["A", "B"]));
            changes.map(|change| change.share).fold(0.0, f64::max)
        };
        let mut cases: Vec<(f64, usize, &Run)> =
            baseline.iter().enumerate().map(|(case, run)| (share(run), case, *run)).collect();
        cases.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left_out = 0;
        for (_, case, run) in cases {
            let same = pairs.iter().filter_map(|(at, pairs)| {
                Some((*at, pairs.iter().find(|pair| pair.a.index == run.index)?.b))
            });
            let mut own: Vec<Curve> = Vec::new();
            let mut styles = Vec::new();
            for (at, other) in [(0, run)].into_iter().chain(same) {
                let is_own = |c: &&Curve| c.run == other.index && Some(c.metric) == headline(run);
                let found = reduced.get(at).and_then(|all| all.curves.iter().find(is_own));
                if let Some(curve) = found {
                    let number = (all.len() + own.len()) as u32;
                    own.push(Curve { run: number, ..curve.clone() });
                    let colour = if at == 0 { BASELINE } else { (at - 1) % BASELINE };
                    styles.push((self.name(at), colour, (at.max(1) - 1) / BASELINE));
                }
            }
            if own.is_empty() {
                continue;
            }
            if section.parts.len() == MOST_CASES {
                left_out += 1;
                continue;
            }
            let mut part = Section::new(format!("overlay-{case}"), &run.label);
            for mut plot in
                distribution::plots(&case.to_string(), &styles, &own.iter().collect::<Vec<_>>())
            {
                plot.title = format!("{}: {}", run.label, plot.title);
                part.draw(plot, distribution::data(&styles, &own));
            }
            section.parts.push(part);
            all.extend(own);
        }
        if left_out > 0 {
            let note = format!("the {MOST_CASES} cases that differ most; {left_out} are left out");
            section.notes.push(Note::new(note, Show::Page));
        }
        (section, all)
    }
}

fn table(lines: Vec<Line<'_>>) -> Option<Table> {
    let measures = |metric| lines.iter().any(|line| line.run.rate(metric).is_some());
    let has_quantiles = lines.iter().any(|line| headline(line.run).is_some());
    let rates = [
        (RateMetric::MessageRate, "rate", "k msg/s", THOUSANDS),
        (RateMetric::Bandwidth, "bandwidth", Scale::Bytes.unit(), Scale::Bytes.factor()),
    ];
    let rates: Vec<_> = rates.into_iter().filter(|(metric, ..)| measures(*metric)).collect();
    let mut fields = vec![
        text("run", |line: &Line<'_>| line.run.label.clone()),
        text("record", |line: &Line<'_>| line.record.clone()),
    ];
    if has_quantiles {
        fields.push(text("metric", |line: &Line<'_>| headline(line.run).map(|one| one.name())));
        for (name, p) in [("p50", 0.5), ("p99", 0.99)] {
            fields.push(figure(name, "us", move |line: &Line<'_>| match headline(line.run) {
                Some(metric) => Cell::of_run(Some(line.run), metric, p),
                None => Cell::None,
            }));
            let head = format!("{name} change %");
            fields.push(text(&head, move |line: &Line<'_>| line.of_quantile(p)).rank(Rank::Main));
        }
    }
    for (metric, name, unit, scale) in rates {
        let rate = move |line: &Line<'_>| Cell::rate(Some(line.run), metric, scale);
        fields.push(figure(name, unit, rate));
        let head = format!("{name} change %");
        fields.push(text(&head, move |line: &Line<'_>| line.of_rate(metric)).rank(Rank::Main));
    }
    fields.push(number("n", "", |line: &Line<'_>| {
        let summary = headline(line.run).and_then(|metric| line.run.summary(metric));
        summary.map(|summary| Cell::Count(summary.count))
    }));
    Table::of(lines, fields)
}

impl Line<'_> {
    fn of_quantile(&self, p: f64) -> Cell {
        let metric = headline(self.run);
        let Some(baseline) = self.baseline else { return Cell::None };
        let [a, b] = [baseline, self.run].map(|run| run.summary(metric?)?.estimate(p));
        shown(compare::figures(a, b))
    }

    fn of_rate(&self, metric: RateMetric) -> Cell {
        let both = self.baseline.and_then(|a| a.rate(metric)).zip(self.run.rate(metric));
        both.map_or(Cell::None, |(a, b)| shown(compare::rates(a, b)))
    }
}

/// Returns what a figure changed by, in per cent of the baseline's.
fn shown(found: Result<Difference, Missing>) -> Cell {
    change(found.as_ref().ok(), found.err())
}
