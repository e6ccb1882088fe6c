//! The tables and the page of a foreign record: text in bounded memory, without a panic.

use std::path::Path;
use wiregauge::pattern::registry;
use wiregauge::record::directory::parse_record;
use wiregauge::report::table::Layout;
use wiregauge::report::{html, table};

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let Ok(record) = parse_record(Path::new("record.json"), data) else { return };
    let views = registry::views();
    let mut text = String::new();
    for layout in [Layout::default(), Layout::of_width(40), Layout::of_width(120)] {
        let layout = Layout { verbose: true, ..layout };
        text += &table::report(&record, &views, &layout).to_string();
    }
    assert!(!text.is_empty());
    let page = html::render(&record, &views, std::iter::empty::<Result<_, String>>());
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
}
