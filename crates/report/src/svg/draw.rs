//! Series, marks and curves between two axes: the same rules as in `web/figure.js` and
//! `web/plot.js`.

use super::axis::{Scale, frame, interval_ends};
use super::canvas::{Area, Canvas, EDGE, LINE, PALETTE, TEXT, WIDTH, colour};
use super::legend::{Item, Sample, legend};
use super::shapes::{Joint, Pen, disc, filled, hollow, path, whisker};
use crate::curves::{self, Curve};
use crate::model::{CurveKind, Mark, Plot, Point, Series, Style};

const DASHES: [&str; 4] = ["", "7 4", "2 3", "10 3 2 3"];
/// Those of published figures.
const PUBLISHED: [&str; 4] = ["5 4", "2 3", "9 3 2 3", "12 4"];
/// Of a mark without a colour, and of one with.
const MARK: &str = "9 3 2 3";
const MARK_OF_SERIES: &str = "2 3";
/// Of more series than this the intervals are faint.
const FEW_SERIES: usize = 4;
/// Bins of a decade of a histogram.
const HISTOGRAM_BINS: f64 = 20.0;
/// A CDF ends at this quantile: the body would be upright lines beside a tail of decades.
const LAST_OF_CDF: f64 = 0.999;
/// The height of a plot between its axes, as a share of what the page has.
const HEIGHT: f64 = 0.72;

/// A series with its pen and its curve.
struct Track<'a> {
    series: &'a Series,
    curve: Option<(&'a Curve, CurveKind)>,
    pen: Pen,
    points: Vec<Point>,
    /// Opacity of its intervals.
    whisker: f64,
}

/// A plot, whose curves are among these.
pub fn plot(plot: &Plot, curves: &[Curve]) -> String {
    let tracks: Vec<Track<'_>> =
        plot.series.iter().map(|series| Track::new(series, plot, curves)).collect();
    let ends = tracks.iter().filter_map(Track::ends).flatten();
    let given = || tracks.iter().flat_map(|track| &track.points);
    let has_curves = tracks.iter().any(|track| track.curve.is_some());
    let room = match (has_curves, plot.x.ticks.is_empty()) {
        (true, _) => 1.1,
        (false, false) => 1.5,
        (false, true) => 1.15,
    };
    let levels = plot.marks.iter().filter(|mark| mark.x.is_none()).filter_map(|mark| mark.y);
    let mut x = Scale::new(&plot.x, given().map(|p| p.x).chain(ends).collect::<Vec<_>>(), room);
    let reach = interval_ends(&given().collect::<Vec<_>>());
    let ys: Vec<f64> = given().map(|p| p.y).chain(reach).chain(levels).collect();
    let mut y = Scale::new(&plot.y, ys, 1.4);

    let (mut canvas, top) = Canvas::titled(&plot.title);
    let high = f64::from(plot.height.clamp(200, 600)) * HEIGHT;
    let mut area = Area { left: 0.0, top, right: WIDTH - 4.0 * EDGE, bottom: top + high };
    y.place(area.bottom, area.top, false);
    area.left = y.left();
    x.place(area.left, area.right, true);
    y.draw_y(&mut canvas, area);
    x.draw_x(&mut canvas, area);
    let Area { left, .. } = area;
    canvas.push(format_args!(
        "<clipPath id=\"inside\"><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
         height=\"{:.1}\"/></clipPath>\n<g clip-path=\"url(#inside)\">\n",
        area.width(),
        area.height()
    ));
    for track in &tracks {
        track.draw(&mut canvas, area, &x, &y);
    }
    plot.marks.iter().for_each(|one| mark(&mut canvas, one, area, &x, &y));
    canvas.body += "</g>\n";
    frame(&mut canvas, area);
    let drawn = tracks.iter().filter(|track| !track.is_empty() && !track.series.hidden);
    let marks = plot.marks.iter().filter(|mark| !mark.name.is_empty()).map(mark_item);
    let items: Vec<Item> = drawn.map(Track::item).chain(marks).collect();
    let end = legend(&mut canvas, &items, area.bottom + x.below() + LINE * 0.5);
    canvas.finish(&plot.title, &plot.note, end + EDGE)
}

impl<'a> Track<'a> {
    fn new(series: &'a Series, plot: &Plot, curves: &'a [Curve]) -> Track<'a> {
        let found = |own: &crate::model::Curve| {
            let is_own = |c: &&Curve| c.run == own.run && c.metric.name() == own.metric;
            Some((curves.iter().find(is_own)?, own.kind))
        };
        let published = is_published(series.style);
        // Colours that are used up begin again with other dashes.
        let used_up = series.colour.unwrap_or(0) / PALETTE.len();
        let dash = series.dash + if series.dash == 0 { used_up } else { 0 };
        let dashes = if published { PUBLISHED } else { DASHES };
        let pen = Pen {
            colour: colour(series.colour),
            width: if published { 1.25 } else { 1.75 },
            dash: dashes[dash % dashes.len()],
            opacity: 1.0,
        };
        let both = |p: &Point| {
            let end = p.to.map(|to| Point { x: to, ..p.clone() });
            std::iter::once(p.clone()).chain(end)
        };
        Track {
            series,
            curve: series.curve.as_ref().and_then(found),
            pen,
            points: series.points.iter().flat_map(both).collect(),
            whisker: if plot.series.len() > FEW_SERIES { 0.35 } else { 1.0 },
        }
    }

    fn is_empty(&self) -> bool {
        self.points.is_empty() && self.curve.is_none()
    }

    /// The least and the greatest that is shown of its curve.
    fn ends(&self) -> Option<[f64; 2]> {
        let (curve, kind) = self.curve?;
        let is_usable = |v: &&f64| **v > 0.0 && v.is_finite();
        let first = curve.values.iter().find(is_usable).copied()?;
        let last = match kind {
            CurveKind::Cdf => {
                let most = LAST_OF_CDF * curve.count as f64;
                let ranked = curve.values.iter().zip(&curve.ranks);
                let mut body = ranked.filter(|(v, rank)| v.is_finite() && **rank as f64 <= most);
                body.next_back().map_or(first, |(v, _)| *v)
            }
            _ => curve.values.iter().rfind(is_usable).copied()?,
        };
        Some([first, last])
    }

    fn draw(&self, canvas: &mut Canvas, area: Area, x: &Scale<'_>, y: &Scale<'_>) {
        let run = self.series.curve.as_ref().map(|curve| curve.run);
        if let Some(run) = run {
            canvas.push(format_args!("<g data-run=\"{run}\">\n"));
        }
        match self.curve {
            Some((curve, CurveKind::Histogram)) => self.histogram(canvas, curve, x, y),
            Some((curve, kind)) => self.distribution(canvas, curve, kind, area, x, y),
            None => self.series(canvas, area, x, y),
        }
        if run.is_some() {
            canvas.body += "</g>\n";
        }
    }

    fn distribution(
        &self,
        canvas: &mut Canvas,
        curve: &Curve,
        kind: CurveKind,
        area: Area,
        x: &Scale<'_>,
        y: &Scale<'_>,
    ) {
        let is_tail = kind == CurveKind::Ccdf;
        let ranked = curve.values.iter().zip(&curve.ranks);
        let places = ranked.take_while(|(v, _)| **v <= x.high).map(|(v, rank)| {
            let rank = if is_tail { curve.count - rank + 1 } else { *rank };
            (x.at(v.max(x.low)), y.at(rank as f64 / curve.count as f64))
        });
        let joint = if is_tail { Joint::UprightFirst } else { Joint::LevelFirst };
        let edge = (!is_tail || curve.lost > 0).then_some(area.right);
        path(canvas, places, joint, edge, self.pen);
    }

    fn histogram(&self, canvas: &mut Canvas, curve: &Curve, x: &Scale<'_>, y: &Scale<'_>) {
        let bin = |v: f64| (v.log10() * HISTOGRAM_BINS).floor() as i32;
        let edge = |i: i32| 10f64.powf(f64::from(i) / HISTOGRAM_BINS);
        let places = (bin(x.low)..=bin(x.high) + 1).map(|i| {
            let count = curves::samples_up_to(curve, edge(i + 1)) as f64
                - curves::samples_up_to(curve, edge(i)) as f64;
            (x.at(edge(i)), y.at(count.max(0.5)))
        });
        path(canvas, places, Joint::LevelFirst, None, self.pen);
    }

    fn series(&self, canvas: &mut Canvas, area: Area, x: &Scale<'_>, y: &Scale<'_>) {
        let place = |p: &Point| (x.at(p.x), y.at(p.y));
        let places = || self.points.iter().map(place);
        let level = |canvas: &mut Canvas, from: f64, to: f64, y: f64| {
            path(canvas, [(from, y), (to, y)].into_iter(), Joint::Straight, None, self.pen);
        };
        match self.series.style {
            Style::Line => {
                path(canvas, places(), Joint::Straight, None, self.pen);
                self.dots(canvas, x, y, 2.5);
            }
            Style::Path => path(canvas, places(), Joint::Straight, None, self.pen),
            Style::Steps => path(canvas, places(), Joint::LevelFirst, None, self.pen),
            Style::Dots => self.dots(canvas, x, y, 3.0),
            Style::Bars | Style::Column => self.bars(canvas, area, x, y),
            Style::Box => self.boxes(canvas, x, y),
            Style::Published => path(canvas, places(), Joint::Straight, None, self.pen),
            Style::PublishedBars => {
                self.points.iter().for_each(|p| {
                    let half = self.series.half.unwrap_or(0.0);
                    level(canvas, x.at(p.x - half), x.at(p.x + half), y.at(p.y));
                });
            }
            Style::PublishedUpright => places().for_each(|(x, y)| {
                let ends = [(x, y), (x, area.bottom)];
                path(canvas, ends.into_iter(), Joint::Straight, None, self.pen);
            }),
            Style::PublishedLevel if self.points.len() == 1 => {
                places().for_each(|(_, y)| level(canvas, area.left, area.right, y));
            }
            Style::PublishedLevel => path(canvas, places(), Joint::Straight, None, self.pen),
            Style::Marks | Style::Peak | Style::PublishedPoints => {}
        }
        if let Some((shape, size)) = self.mark() {
            places().for_each(|at| hollow(canvas, at, size, shape, self.pen.colour));
        }
    }

    /// The hollow mark of its style, and how large it is.
    fn mark(&self) -> Option<(crate::model::Shape, f64)> {
        let shape = self.series.shape.unwrap_or_default();
        match self.series.style {
            Style::Peak => Some((shape, 1.6)),
            Style::Marks | Style::Published | Style::PublishedPoints => Some((shape, 1.0)),
            Style::PublishedBars | Style::PublishedUpright => Some((shape, 1.0)),
            _ => None,
        }
    }

    fn dots(&self, canvas: &mut Canvas, x: &Scale<'_>, y: &Scale<'_>, radius: f64) {
        for p in &self.points {
            self.interval(canvas, p, x, y, self.pen.colour);
            disc(canvas, (x.at(p.x), y.at(p.y)), radius, self.pen.colour);
        }
    }

    fn interval(
        &self,
        canvas: &mut Canvas,
        p: &Point,
        x: &Scale<'_>,
        y: &Scale<'_>,
        colour: &'static str,
    ) {
        let pen = Pen { colour, width: 1.0, dash: "", opacity: self.whisker };
        if let (Some(low), Some(high)) = (p.low, p.high) {
            whisker(canvas, x.at(p.x), [y.at(low), y.at(high)], pen);
        }
    }

    fn bars(&self, canvas: &mut Canvas, area: Area, x: &Scale<'_>, y: &Scale<'_>) {
        let half = self.series.half.unwrap_or(0.0);
        let has_intervals = self.series.style == Style::Column;
        for p in self.points.iter().filter(|p| p.y > 0.0) {
            let bar = Area {
                left: x.at(p.x - half),
                right: x.at(p.x + half),
                top: y.at(p.y).min(area.bottom - 1.0),
                bottom: area.bottom,
            };
            filled(canvas, bar, self.pen.colour, if has_intervals { 0.45 } else { 1.0 });
            if has_intervals {
                self.interval(canvas, p, x, y, TEXT);
            }
        }
    }

    fn boxes(&self, canvas: &mut Canvas, x: &Scale<'_>, y: &Scale<'_>) {
        let half = self.series.half.unwrap_or(0.0);
        for p in &self.points {
            let inside = |v: f64| y.at(v.max(y.low).min(y.high));
            let (left, right) = (x.at(p.x - half), x.at(p.x + half));
            let (top, bottom) = (inside(p.high.unwrap_or(p.y)), inside(p.low.unwrap_or(p.y)));
            let bottom = bottom.max(top + 1.0);
            filled(canvas, Area { left, right, top, bottom }, self.pen.colour, 0.22);
            let pen = Pen { width: 1.0, dash: "", ..self.pen };
            let middle = [(left, y.at(p.y)), (right, y.at(p.y))];
            path(canvas, middle.into_iter(), Joint::Straight, None, pen);
        }
    }

    fn item(&self) -> Item {
        let style = self.series.style;
        let has_line = !matches!(
            style,
            Style::Dots | Style::Marks | Style::Peak | Style::PublishedPoints | Style::Bars
        );
        let wide = matches!(style, Style::Bars | Style::Column | Style::Box);
        let pen = Pen { width: if wide { 6.0 } else { self.pen.width }, ..self.pen };
        let sample = Sample {
            pen: (has_line || wide).then_some(pen),
            dot: matches!(style, Style::Dots | Style::Line).then_some(self.pen.colour),
            mark: self.mark().map(|(shape, _)| (shape, self.pen.colour)),
        };
        let sample = if self.curve.is_some() { Sample { dot: None, ..sample } } else { sample };
        let run = self.series.curve.as_ref().map(|curve| curve.run);
        Item { name: self.series.name.clone(), sample, run }
    }
}

fn is_published(style: Style) -> bool {
    matches!(
        style,
        Style::Published
            | Style::PublishedPoints
            | Style::PublishedBars
            | Style::PublishedUpright
            | Style::PublishedLevel
    )
}

fn mark_pen(mark: &Mark) -> Pen {
    let dash = if mark.colour.is_some() { MARK_OF_SERIES } else { MARK };
    let colour = mark.colour.map_or(TEXT, |at| colour(Some(at)));
    Pen { colour, width: 1.25, dash, opacity: 1.0 }
}

fn mark(canvas: &mut Canvas, mark: &Mark, area: Area, x: &Scale<'_>, y: &Scale<'_>) {
    let ends = match (mark.x, mark.y) {
        (Some(at), top) => [(x.at(at), area.bottom), (x.at(at), top.map_or(area.top, |v| y.at(v)))],
        (None, Some(level)) => [(area.left, y.at(level)), (area.right, y.at(level))],
        (None, None) => return,
    };
    path(canvas, ends.into_iter(), Joint::Straight, None, mark_pen(mark));
}

fn mark_item(mark: &Mark) -> Item {
    let sample = Sample { pen: Some(mark_pen(mark)), dot: None, mark: None };
    Item { name: mark.name.clone(), sample, run: None }
}
