//! The page of several records.

use super::{encode, plots, script_json};
use crate::curves::Reduced;
use crate::model::{Note, Section};
use crate::several::Several;
use crate::svg::{self, Picture};
use crate::view::citation;
use askama::Template;

#[derive(Template)]
#[template(path = "several.html")]
struct Page {
    /// The name, what it is, and how to cite it, of each record.
    records: Vec<[String; 3]>,
    answer: Vec<String>,
    /// The case that differs most.
    lead: Option<Section>,
    /// The sections with their titles.
    links: Vec<(&'static str, &'static str)>,
    results: Section,
    overlays: Vec<Section>,
    data: Vec<(&'static str, String)>,
    pictures: Vec<Picture>,
}

/// The page of several records; `reduced`: the samples of each.
pub fn several(all: &Several, reduced: &[Reduced]) -> String {
    let (mut overlays, curves) = all.overlays(reduced);
    let parts: Vec<Section> = overlays.parts.drain(..1.min(overlays.parts.len())).collect();
    let lead = Section { parts, ..Section::new("lead", "The case that differs most") }.filled();
    let drawn = [lead.as_slice(), std::slice::from_ref(&overlays)].concat();
    let pictures = svg::named_apart(svg::of_sections(&drawn, &curves));
    let samples = Reduced { curves, ..Reduced::default() };
    let json = [("samples", encode::samples(&samples)), ("plots", plots(&drawn))];
    let record = |(name, side): (String, &crate::comparison::Side)| {
        let record = &side.record;
        let whole = if record.complete { "" } else { ", INCOMPLETE" };
        let (started, host) = (&record.started, &record.environment.host);
        let what = format!("{} on {host}, {started}{whole}", record.plan.name);
        [name, what, citation(record)]
    };
    let results = all.results();
    let links = [
        ("results", "Results", true),
        ("overlays", "Distributions", !overlays.is_empty()),
        ("differs", "What else differs", !results.tables.is_empty()),
        ("cite", "To cite these", true),
    ];
    let page = Page {
        records: all.all().map(record).collect(),
        answer: all.answer(),
        lead,
        links: links.iter().filter(|(.., has)| *has).map(|(id, title, _)| (*id, *title)).collect(),
        results,
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
