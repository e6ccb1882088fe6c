//! The plots of the page as SVG.

use super::Sections;
use crate::curves::{self, Density, Reduced};
use crate::model::{Plot, Section};
use crate::svg::{self, Picture};
use crate::view::{PatternView, distribution};
use std::fmt;
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::Record;
use wiregauge_sample::RoundSamples;

/// So many curves are in a file; a reader of the page chooses among all.
const MOST_CURVES: usize = 8;

/// Every plot of a record's page.
pub fn pictures<E: fmt::Display>(
    record: &Record,
    patterns: &[&dyn PatternView],
    rounds: impl IntoIterator<Item = Result<RoundSamples, E>>,
) -> Vec<Picture> {
    let reduced = curves::reduce(record, rounds);
    let Sections { middle, lead, pairs, overall, .. } = Sections::new(record, patterns);
    let drawn = [lead.as_slice(), pairs.as_slice(), &middle, &overall].concat();
    let few = |mut plot: Plot| {
        plot.series.truncate(MOST_CURVES);
        plot
    };
    whole(record, &drawn, &reduced, few)
}

/// The same for the page, with all curves of which its reader may choose.
pub(super) fn of(record: &Record, drawn: &[Section], reduced: &Reduced) -> Vec<Picture> {
    whole(record, drawn, reduced, |plot| plot)
}

fn whole(
    record: &Record,
    drawn: &[Section],
    reduced: &Reduced,
    cut: impl Fn(Plot) -> Plot,
) -> Vec<Picture> {
    let mut all = svg::of_sections(drawn, &reduced.curves);
    let plots = distribution::of_record(record, &reduced.curves).into_iter().map(cut);
    all.extend(
        plots.map(|plot| Picture { name: plot.id.clone(), svg: svg::plot(&plot, &reduced.curves) }),
    );
    let density = |index: u32| {
        let rounds: Vec<&Density> = reduced.densities.iter().filter(|d| d.run == index).collect();
        let run = record.runs.iter().find(|run| run.index == index);
        let label = run.map_or(format!("run {index}"), |run| run.label.clone());
        let svg = svg::density(&format!("Latency over time: {label}"), &rounds);
        Picture { name: format!("density-{index}"), svg }
    };
    all.extend(each_once(reduced.densities.iter().map(|d| d.run)).into_iter().map(density));
    svg::named_apart(all)
}
