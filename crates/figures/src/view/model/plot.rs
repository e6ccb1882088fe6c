//! Plots: series of points over two axes, and lines across them.

use serde::Serialize;
use serde_json::{Value as Json, json};
use wiregauge_stats::{Interval, Quantile, Value};

/// One plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Unique within a page; the file that its button saves has this name.
    pub id: String,
    pub title: String,
    /// What its lines and bars mean.
    pub note: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub marks: Vec<Mark>,
    /// Pixels.
    pub height: u32,
    /// Which of the section's [`Data`] is behind it.
    pub data: usize,
}

impl Plot {
    /// Without axes and series; so many pixels high.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        note: impl Into<String>,
        height: u32,
    ) -> Plot {
        let (id, title, note) = (id.into(), title.into(), note.into());
        Plot { id, title, note, height, ..Plot::default() }
    }
}

/// How an axis is divided and labelled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    pub label: String,
    pub unit: Unit,
    /// Of bytes per second: what turns them into the unit of the label, where that is not MB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    pub log: bool,
    /// Its ends; without them it holds all points and marks, with some room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Where its ticks stand; without them they are spread evenly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<f64>,
    /// Labels of the ticks, where not their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Whether its ticks are the names of slots: they have no grid, and more lines.
    pub is_names: bool,
}

impl Axis {
    pub fn linear(label: impl Into<String>, unit: Unit, range: [f64; 2]) -> Axis {
        Axis { label: label.into(), unit, range: Some(range), ..Axis::default() }
    }

    /// It holds all points, with some room.
    pub fn log(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, log: true, ..Axis::default() }
    }

    /// A slot for each name; a slot reaches `room` to both sides of its number.
    pub fn names(names: Vec<String>, room: f64) -> Axis {
        let range = Some([-room, names.len().max(1) as f64 - 1.0 + room]);
        let ticks = (0..names.len()).map(|slot| slot as f64).collect();
        Axis { range, ticks, labels: names, is_names: true, ..Axis::default() }
    }

    pub fn between(self, low: f64, high: f64) -> Axis {
        Axis { range: Some([low, high]), ..self }
    }
}

/// What the numbers of an axis are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    #[default]
    None,
    /// Nanoseconds, shown in the unit that fits.
    Time,
    Seconds,
    Bytes,
    Count,
    /// Bytes per second, shown in MB/s or by the factor of their axis.
    BytesPerSecond,
    MessagesPerSecond,
    /// Messages per second where the axis says what is counted.
    PerSecond,
    /// Shown in per cent.
    Share,
    /// Per cent more or less.
    Difference,
    Times,
    Ppm,
}

/// One line, or one kind of mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    pub name: String,
    pub style: Style,
    /// Position in the palette; `None`: faint.
    pub colour: Option<usize>,
    /// Position among the dashes; 0 is a solid line.
    pub dash: usize,
    /// Of hollow marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Half the width of a bar, in units of x.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half: Option<f64>,
    /// Left out of the legend.
    pub hidden: bool,
    /// Where it comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    pub points: Vec<Point>,
    /// Points that are made of the samples' order statistics, which the page holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// From point to point, with a dot and the interval at each.
    #[default]
    Line,
    /// From point to point.
    Path,
    /// Level from each point to the next.
    Steps,
    Dots,
    Bars,
    /// A bar with its interval.
    Column,
    /// A box from `low` to `high` with a line at the point.
    Box,
    /// Hollow marks.
    Marks,
    /// One large hollow mark.
    Peak,
    /// Published figures: hollow marks that are joined by dashes.
    Published,
    /// The same, not joined.
    PublishedPoints,
    /// The same, each with a level as wide as its bar.
    PublishedBars,
    /// The same, each with a line down to the axis.
    PublishedUpright,
    /// The same for all x: a level without marks.
    PublishedLevel,
}

/// A hollow mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    #[default]
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Shape {
    pub const ALL: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle];
}

/// One point; finite numbers only.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Where the level ends that begins at `x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// What is read out where the pointer or the keys find it.
    pub text: String,
}

impl Point {
    /// The same with an interval; a bound that is not finite is left out.
    pub fn within(mut self, interval: Option<Interval>) -> Point {
        let finite = |bound: f64| Some(bound).filter(|bound| bound.is_finite());
        self.low = interval.and_then(|both| finite(both.low.0));
        self.high = interval.and_then(|both| finite(both.high.0));
        self
    }
}

/// The order statistics of one metric of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Curve {
    pub run: u32,
    pub metric: String,
    pub kind: CurveKind,
}

/// What is drawn of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CurveKind {
    #[default]
    Cdf,
    /// The share of those that are at least so large.
    Ccdf,
    Histogram,
}

/// A line across a plot, level at `y` or upright at `x`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mark {
    /// In the legend; what belongs to a series has none.
    pub name: String,
    /// What is read out there.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// Of an upright line its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// Position in the palette; `None`: that of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<usize>,
}

/// A table for other programs: what the button below a plot saves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Data {
    pub head: Vec<String>,
    /// Lists of numbers and words; what is missing is an empty field.
    pub rows: Vec<Json>,
}

/// A row of [`Data`]. A number that may be infinite is a [`wiregauge_stats::Value`].
#[doc(hidden)]
#[macro_export]
macro_rules! fields {
    ($($field:expr),* $(,)?) => { serde_json::json!([$($field),*]) };
}
pub use fields;

/// The bounds of an interval as fields.
pub fn bounds(interval: Option<Interval>) -> [Option<Value>; 2] {
    [interval.map(|both| both.low), interval.map(|both| both.high)]
}

/// A quantile and its interval as fields.
pub fn quantile_fields(found: Option<&Quantile>) -> [Json; 3] {
    let value = found.and_then(|quantile| quantile.value);
    let [low, high] = bounds(found.and_then(|quantile| quantile.interval));
    [value.map_or("n too small".into(), |value| json!(value)), json!(low), json!(high)]
}

impl Data {
    /// The names of its columns, parted by spaces, and its rows.
    pub fn new(head: &str, rows: impl IntoIterator<Item = Json>) -> Data {
        let head = head.split_whitespace().map(String::from).collect();
        Data { head, rows: rows.into_iter().collect() }
    }
}
