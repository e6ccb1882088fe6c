//! What the lines and marks of a plot are as paths.

use super::canvas::{Area, Canvas};
use crate::model::Shape;

/// Steps of a path that are shorter than this are left out: at 16 cm, a tenth of a millimetre.
const FINEST: f64 = 0.3;

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Pen {
    pub colour: &'static str,
    pub width: f64,
    pub dash: &'static str,
    pub opacity: f64,
}

impl Pen {
    /// Its attributes.
    pub fn written(self) -> String {
        let Pen { colour, width, dash, opacity } = self;
        let dash = match dash.is_empty() {
            true => String::new(),
            false => format!(" stroke-dasharray=\"{dash}\""),
        };
        let opacity = match opacity < 1.0 {
            true => format!(" stroke-opacity=\"{opacity}\""),
            false => String::new(),
        };
        let join = "stroke-linejoin=\"round\"";
        format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" {join}{dash}{opacity}")
    }
}

/// How two points of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    Straight,
    /// Level, then upright at the next point.
    LevelFirst,
    /// Upright at the point, then level.
    UprightFirst,
}

/// A line through these places; `edge`: level on to there.
pub fn path(
    canvas: &mut Canvas,
    places: impl Iterator<Item = (f64, f64)>,
    joint: Joint,
    edge: Option<f64>,
    pen: Pen,
) {
    let mut last: Option<(f64, f64)> = None;
    let mut end = None;
    let mut d = String::new();
    for (x, y) in places {
        end = Some((x, y));
        match last {
            None => d += &format!("M{x:.1} {y:.1}"),
            Some((a, b)) if (x - a).abs() < FINEST && (y - b).abs() < FINEST => continue,
            Some(_) => match joint {
                Joint::Straight => d += &format!("L{x:.1} {y:.1}"),
                Joint::LevelFirst => d += &format!("H{x:.1}V{y:.1}"),
                Joint::UprightFirst => d += &format!("V{y:.1}H{x:.1}"),
            },
        }
        last = Some((x, y));
    }
    let Some((x, y)) = end else { return };
    if last != end {
        d += &format!("L{x:.1} {y:.1}");
    }
    if let Some(edge) = edge {
        d += &format!("H{edge:.1}");
    }
    canvas.push(format_args!("<path d=\"{d}\" {}/>\n", pen.written()));
}

/// A disc.
pub fn disc(canvas: &mut Canvas, (x, y): (f64, f64), radius: f64, colour: &str) {
    canvas.push(format_args!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>\n"
    ));
}

/// A mark that is white inside.
pub fn hollow(canvas: &mut Canvas, (x, y): (f64, f64), size: f64, shape: Shape, colour: &str) {
    let r = 4.0 * size;
    let corners: &[(f64, f64)] = match shape {
        Shape::Circle => &[],
        Shape::Square => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
        Shape::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        Shape::Triangle => &[(0.0, -1.2), (1.2, 1.0), (-1.2, 1.0)],
    };
    let paint = format!("fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    if corners.is_empty() {
        canvas.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" {paint}/>\n"));
        return;
    }
    let place = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx * r, y + dy * r);
    let points = corners.iter().map(place).collect::<Vec<_>>().join(" ");
    canvas.push(format_args!("<polygon points=\"{points}\" {paint}/>\n"));
}

/// A filled rectangle.
pub fn filled(canvas: &mut Canvas, area: Area, colour: &str, opacity: f64) {
    let (Area { left, top, .. }, width, height) = (area, area.width(), area.height());
    canvas.push(format_args!(
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{colour}\" fill-opacity=\"{opacity}\"/>\n"
    ));
}

/// An upright interval with its caps.
pub fn whisker(canvas: &mut Canvas, x: f64, [low, high]: [f64; 2], pen: Pen) {
    let (left, right) = (x - 3.0, x + 3.0);
    let d =
        format!("M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}M{x:.1} {low:.1}V");
    canvas.push(format_args!("<path d=\"{d}{high:.1}\" {}/>\n", pen.written()));
}
