//! The section of curves over load: what was found of them in words, and for the viewer which runs
//! are of which curve.

use super::escape;
use crate::record::schema::Record;
use crate::report::load::{Curve, curves};
use crate::report::table;
use serde_json::json;

/// Fewest points of a curve that is drawn.
const LEAST: usize = 2;

/// The section; empty where no server was measured at several rates.
pub fn section(record: &Record) -> String {
    let curves = curves(record);
    if !curves.iter().any(|curve| curve.open.len() >= LEAST) {
        return String::new();
    }
    let found: String = table::load::found(record)
        .iter()
        .map(|line| format!("<li>{}</li>", escape(line)))
        .collect();
    let told: Vec<_> = curves.iter().map(|curve| told(curve, record)).collect();
    format!(
        "<section id=\"load\" aria-labelledby=\"h-load\" data-curves=\"{}\">\n\
         <h2 id=\"h-load\">Answers under load</h2>\n<ul>{found}</ul>\n</section>\n",
        escape(&json!(told).to_string())
    )
}

/// A curve as the viewer reads it: numbers of runs.
fn told(curve: &Curve<'_>, record: &Record) -> serde_json::Value {
    let index = |at: usize| curve.open[at].0.index;
    json!({
        "name": curve.name,
        "open": curve.open.iter().map(|(run, _)| run.index).collect::<Vec<_>>(),
        "closed": curve.closed.iter().map(|run| run.index).collect::<Vec<_>>(),
        "knee": curve.knee().map(index),
        "highest": curve.highest(record).map(index),
    })
}
