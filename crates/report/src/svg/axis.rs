//! The axes of a plot: what they hold, where their ticks are, and what stands there.

use super::canvas::{
    ADVANCE, Anchor, Area, Canvas, EDGE, FAINT, GRID, LETTER, LINE, width, wrapped,
};
use crate::model::{Axis, Point, Unit};
use crate::number::{PERCENT, bytes, count, fixed, pace, span, trimmed};

/// Most ticks of a logarithmic axis are this far apart.
const APART_X: f64 = 58.0;
const APART_Y: f64 = 26.0;
/// A name on the x axis has at most this many lines before names stand upright.
const MOST_LINES: usize = 3;

/// An axis with its ends and its ticks.
pub struct Scale<'a> {
    axis: &'a Axis,
    pub low: f64,
    pub high: f64,
    /// Where it begins and ends in the file.
    from: f64,
    to: f64,
    ticks: Vec<(f64, String)>,
}

impl<'a> Scale<'a> {
    /// That holds these values, with some room on a logarithmic axis.
    pub fn new(axis: &'a Axis, values: Vec<f64>, room: f64) -> Scale<'a> {
        let [low, high] = axis.range.unwrap_or_else(|| match axis.log {
            true => log_range(values.into_iter(), room),
            false => crate::model::extent(values.into_iter()).map_or([0.0, 1.0], |(a, b)| [a, b]),
        });
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Scale { axis, low, high, from: 0.0, to: 1.0, ticks: Vec::new() }
    }

    /// Puts it between two places of the file; `is_x`: from left to right.
    pub fn place(&mut self, from: f64, to: f64, is_x: bool) {
        (self.from, self.to) = (from, to);
        let room = (to - from).abs();
        let at = match self.axis.ticks.is_empty() {
            false => self.axis.ticks.clone(),
            true if self.axis.log => {
                log_ticks(self.low, self.high, room, if is_x { APART_X } else { APART_Y })
            }
            true => {
                // Round in the unit that is shown.
                let factor = self.axis.factor.unwrap_or(1.0);
                let shown = linear_ticks(self.low * factor, self.high * factor);
                shown.into_iter().map(|v| v / factor).collect()
            }
        };
        let label = |(i, v): (usize, f64)| match self.axis.labels.is_empty() {
            true => (v, tick_of(self.axis, v)),
            false => (v, self.axis.labels.get(i).cloned().unwrap_or_default()),
        };
        let inside = |(v, _): &(f64, String)| *v >= self.low && *v <= self.high;
        self.ticks = at.into_iter().enumerate().map(label).filter(inside).collect();
    }

    /// Where a value is; what is beyond the ends may be outside.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.axis.log {
            true => (value.max(self.low * 1e-3) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        let far = share.clamp(-1.0, 2.0);
        self.from + (self.to - self.from) * if far.is_nan() { 0.0 } else { far }
    }

    /// What is left of a plot for the names of an y axis.
    pub fn left(&self) -> f64 {
        let widest = self.ticks.iter().map(|(_, text)| width(text, LETTER)).fold(0.0, f64::max);
        EDGE + widest + 6.0 + if self.axis.label.is_empty() { 0.0 } else { LINE + 2.0 }
    }

    /// The lines of its names, where they fit beside each other.
    fn lines(&self) -> Option<Vec<Vec<String>>> {
        let slot = (self.to - self.from).abs() / (self.high - self.low).max(1.0) - 4.0;
        let lines = |(_, text): &(f64, String)| wrapped(text, slot, LETTER);
        let all: Vec<Vec<String>> = self.ticks.iter().map(lines).collect();
        let fits = |lines: &Vec<String>| {
            lines.len() <= MOST_LINES && lines.iter().all(|line| width(line, LETTER) <= slot)
        };
        all.iter().all(fits).then_some(all)
    }

    /// What is below a plot for the names of an x axis.
    pub fn below(&self) -> f64 {
        let label = if self.axis.label.is_empty() { 0.0 } else { LINE + 2.0 };
        label
            + match (self.axis.is_names, self.lines()) {
                (false, _) => LINE + 4.0,
                (true, Some(lines)) => {
                    lines.iter().map(Vec::len).max().unwrap_or(0) as f64 * LINE + 4.0
                }
                (true, None) => {
                    let longest = self.ticks.iter().map(|(_, text)| width(text, self.letter()));
                    longest.fold(0.0, f64::max) + 10.0
                }
            }
    }

    /// Letters of upright names.
    fn letter(&self) -> f64 {
        let slot = (self.to - self.from).abs() / (self.high - self.low).max(1.0);
        LETTER.min(slot * 0.95)
    }

    /// As the x axis of a plot.
    pub fn draw_x(&self, canvas: &mut Canvas, area: Area) {
        let floor = area.bottom;
        if !self.axis.is_names {
            let mut last = f64::NEG_INFINITY;
            for (value, text) in &self.ticks {
                let (x, half) = (self.at(*value), width(text, LETTER) / 2.0);
                line(canvas, [x, area.top, x, floor + 4.0]);
                if x - half > last && !text.is_empty() {
                    canvas.text(x, floor + LINE, Anchor::Middle, text);
                    last = x + half + LETTER * ADVANCE;
                }
            }
        } else if let Some(all) = self.lines() {
            for ((value, _), lines) in self.ticks.iter().zip(all) {
                for (at, text) in lines.iter().enumerate() {
                    let y = floor + LINE * (at + 1) as f64;
                    canvas.text(self.at(*value), y, Anchor::Middle, text);
                }
            }
        } else {
            canvas.push(format_args!("<g font-size=\"{:.1}\">\n", self.letter()));
            for (value, text) in &self.ticks {
                let x = self.at(*value) + self.letter() * 0.35;
                canvas.upright(x, floor + 6.0, Anchor::End, text);
            }
            canvas.body += "</g>\n";
        }
        let y = floor + self.below() - 3.0;
        let middle = (area.left + area.right) / 2.0;
        if !self.axis.label.is_empty() {
            canvas.text(middle, y, Anchor::Middle, &self.axis.label);
        }
    }

    /// As its y axis.
    pub fn draw_y(&self, canvas: &mut Canvas, area: Area) {
        for (value, text) in &self.ticks {
            let y = self.at(*value);
            line(canvas, [area.left - 4.0, y, area.right, y]);
            canvas.text(area.left - 6.0, y + LETTER * 0.35, Anchor::End, text);
        }
        if !self.axis.label.is_empty() {
            let middle = (area.top + area.bottom) / 2.0;
            canvas.upright(EDGE + LETTER, middle, Anchor::Middle, &self.axis.label);
        }
    }
}

/// A line of the grid.
fn line(canvas: &mut Canvas, [x1, y1, x2, y2]: [f64; 4]) {
    canvas.push(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{GRID}\"/>\n"));
}

/// The edge of a plot.
pub fn frame(canvas: &mut Canvas, area: Area) {
    let Area { left, top, right, bottom } = area;
    canvas.push(format_args!(
        "<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" fill=\"none\" \
         stroke=\"{FAINT}\"/>\n"
    ));
}

/// The factor beyond all values up to which an interval is whole: farther, it would press them
/// together.
const MAX_REACH: f64 = 100.0;

/// Returns the ends of intervals that their axis holds.
pub fn interval_ends(points: &[&Point]) -> Vec<f64> {
    let values = points.iter().map(|point| point.y).filter(|y| *y > 0.0);
    let Some((least, most)) = crate::model::extent(values) else { return Vec::new() };
    let held = least / MAX_REACH..=most * MAX_REACH;
    let ends = points.iter().flat_map(|point| [point.low, point.high]).flatten();
    ends.filter(|end| held.contains(end)).collect()
}

/// The ends of a logarithmic axis that holds all of these.
fn log_range(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let usable = values.filter(|v| *v > 0.0);
    let ends = crate::model::extent(usable);
    ends.map_or([1.0, 10.0], |(low, high)| [low / room, high * room])
}

/// As many as their labels leave room for: 1, 2, 5 in each decade (or finer), whole decades, or
/// every so many of them.
fn log_ticks(low: f64, high: f64, room: f64, label: f64) -> Vec<f64> {
    let decade = room / (high / low).log10();
    if !(decade.is_finite() && low > 0.0) || decade > 30.0 * label {
        return linear_ticks(low, high);
    }
    let steps: &[f64] = match decade / label {
        d if d > 11.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        d if d > 3.3 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = (label / decade).ceil().max(1.0) as usize;
    let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
    let decades = (first..=last).step_by(every);
    decades.flat_map(|k| steps.iter().map(move |m| m * 10f64.powi(k))).collect()
}

/// About five, at round numbers.
pub fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / 5.0;
    if !(raw > 0.0 && raw.is_finite()) {
        return Vec::new();
    }
    let decade = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|step| *step >= raw);
    let step = step.unwrap_or(10.0 * decade);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A number of this axis.
pub fn tick_of(axis: &Axis, v: f64) -> String {
    axis.factor.map_or_else(|| tick(axis.unit, v), |factor| trimmed(v * factor))
}

/// A number of an axis: the same rules as in `web/figure.js`.
pub fn tick(unit: Unit, v: f64) -> String {
    let without_zeros = |decimals| {
        let text = fixed(v, decimals);
        let cut = text.trim_end_matches('0').trim_end_matches('.');
        if text.contains('.') { cut.to_owned() } else { text }
    };
    match unit {
        Unit::None => trimmed(v),
        Unit::Time => span(v),
        Unit::Seconds => format!("{} s", without_zeros(2)),
        Unit::Bytes => bytes(v.max(0.0) as u64),
        Unit::Count if v > 0.0 && v < 1.0 => String::new(),
        Unit::Count if v.fract() == 0.0 && v >= 0.0 => count(v as u64),
        Unit::Count => trimmed(v),
        Unit::BytesPerSecond => trimmed(v * 1e-6),
        Unit::MessagesPerSecond => pace(v),
        Unit::PerSecond => pace(v).replace("msg/s", "").trim_end().to_owned(),
        Unit::Share => format!("{} %", trimmed(v * PERCENT)),
        Unit::Difference => format!("{}{} %", if v > 0.0 { "+" } else { "" }, without_zeros(2)),
        Unit::Times => format!("{}×", trimmed(v)),
        Unit::Ppm => format!("{} ppm", without_zeros(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_with_their_units() {
        let times: Vec<String> =
            log_ticks(1e3, 1e6, 400.0, APART_X).iter().map(|v| tick(Unit::Time, *v)).collect();
        assert_eq!(times, ["1 us", "10 us", "100 us", "1 ms"]);
        let shares: Vec<String> =
            linear_ticks(0.0, 1.02).iter().map(|v| tick(Unit::Share, *v)).collect();
        assert_eq!(shares, ["0 %", "50 %", "100 %"]);
        assert_eq!(tick(Unit::Difference, 2.5), "+2.5 %");
        assert_eq!(tick(Unit::Bytes, 65536.0), "64 KiB");
        assert_eq!(tick(Unit::PerSecond, 2e6), "2 M");
        assert!(linear_ticks(1.0, f64::NAN).is_empty() && log_ticks(0.0, 1.0, 9.0, 1.0).len() < 9);
    }
}
