//! The legend below a plot.

use super::canvas::{Anchor, Canvas, EDGE, LETTER, LINE, WIDTH, width, wrapped};
use super::shapes::{Pen, disc, hollow};
use crate::model::Shape;

/// What is left of a name for its line or mark.
const SAMPLE: f64 = 30.0;

/// How the sample of a name looks.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub pen: Option<Pen>,
    pub dot: Option<&'static str>,
    pub mark: Option<(Shape, &'static str)>,
}

/// A name of the legend.
pub struct Item {
    pub name: String,
    pub sample: Sample,
    /// The run that it is of.
    pub run: Option<u32>,
}

/// Draws all from this height on and says where they end. All have the same room, so that a script
/// may leave some out and move the others up.
pub fn legend(canvas: &mut Canvas, items: &[Item], top: f64) -> f64 {
    let most = WIDTH - 2.0 * EDGE;
    let widest = items.iter().map(|item| width(&item.name, LETTER)).fold(0.0, f64::max);
    let column = (SAMPLE + widest + 2.0 * LETTER).min(most);
    let across = ((most / column) as usize).max(1);
    let names: Vec<Vec<String>> =
        items.iter().map(|item| wrapped(&item.name, column - SAMPLE, LETTER)).collect();
    let lines = names.iter().map(Vec::len).max().unwrap_or(0).max(1);
    for (at, (item, name)) in items.iter().zip(&names).enumerate() {
        let x = EDGE + (at % across) as f64 * column;
        let y = top + (at / across * lines) as f64 * LINE;
        let run = item.run.map_or_else(String::new, |run| format!(" data-run=\"{run}\""));
        canvas.push(format_args!("<g class=\"key\"{run} transform=\"translate({x:.1} {y:.1})\">"));
        sample(canvas, item.sample);
        for (line, text) in name.iter().enumerate() {
            canvas.text(SAMPLE, LETTER * 0.9 + line as f64 * LINE, Anchor::Start, text);
        }
        canvas.body += "</g>\n";
    }
    top + (items.len().div_ceil(across) * lines) as f64 * LINE
}

fn sample(canvas: &mut Canvas, sample: Sample) {
    let middle = (SAMPLE / 2.0 - 3.0, LETTER * 0.5);
    if let Some(pen) = sample.pen {
        canvas.push(format_args!("<path d=\"M0 {0:.1}H24\" {1}/>", middle.1, pen.written()));
    }
    if let Some(colour) = sample.dot {
        disc(canvas, middle, 3.0, colour);
    }
    if let Some((shape, colour)) = sample.mark {
        hollow(canvas, middle, 1.0, shape, colour);
    }
}
