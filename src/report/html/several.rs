//! The page of several records.

use super::{Place, encode, plots, script_json};
use crate::report::curves::Reduced;
use crate::report::model::{Cell, Note, Section};
use crate::report::number;
use crate::report::several::Several;
use crate::report::svg::{self, Picture};
use crate::report::view::citation;
use askama::Template;

#[derive(Template)]
#[template(path = "several.html")]
struct Page {
    /// The name, what it is, and how to cite it, of each record.
    records: Vec<[String; 3]>,
    results: Section,
    overlays: Vec<Section>,
    data: Vec<(&'static str, String)>,
    pictures: Vec<Picture>,
}

/// The page of several records; `reduced`: the samples of each.
pub fn several(all: &Several, reduced: &[Reduced]) -> String {
    let (overlays, curves) = all.overlays(reduced);
    let pictures = svg::named_apart(svg::of_sections(std::slice::from_ref(&overlays), &curves));
    let drawn = Reduced { curves, ..Reduced::default() };
    let json =
        [("samples", encode::samples(&drawn)), ("plots", plots(std::slice::from_ref(&overlays)))];
    let record = |(name, side): (String, &crate::report::comparison::Side)| {
        let record = &side.record;
        let whole = if record.complete { "" } else { ", INCOMPLETE" };
        let (started, host) = (&record.started, &record.environment.host);
        let what = format!("{} on {host}, {started}{whole}", record.plan.name);
        [name, what, citation(record)]
    };
    let page = Page {
        records: all.all().map(record).collect(),
        results: all.results(),
        overlays: vec![overlays],
        data: json.map(|(id, json)| (id, script_json(&json))).to_vec(),
        pictures,
    };
    // A template fails only where what it is written to does, and a text does not.
    page.render().unwrap_or_default()
}

/// The same plots as files.
pub fn pictures_of_several(all: &Several, reduced: &[Reduced]) -> Vec<Picture> {
    let (overlays, curves) = all.overlays(reduced);
    svg::named_apart(svg::of_sections(&[overlays], &curves))
}
