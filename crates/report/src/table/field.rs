//! One field of a line: words, or a number as shown, with its error.

use super::layout::width;
use super::text::Tone;
use crate::model::{Cell, Figure};
use crate::number::{Room, at_point, compact, fixed, short, with_error};
use wiregauge_plan::written::escaped;

/// Above this share of the value an error is one to look at: a difference of a quarter, which
/// decides between two transports, would not be seen.
const LARGE_ERROR: f64 = 0.25;
/// Follows a figure that a warning weakens.
pub(super) const MARK: &str = "!";

/// A number is aligned on its point, or on its end where it has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Field {
    pub value: String,
    /// Empty without an error, or if the error has a field of its own.
    pub error: String,
    pub is_number: bool,
    pub tone: Tone,
    /// Of the error.
    pub error_tone: Tone,
}

impl Field {
    /// The text with single spaces only, since columns are two apart; `-` if it is empty.
    fn new(text: &str, is_number: bool) -> Field {
        // Escaped before its width is taken: what is printed in its place is longer.
        let text = escaped(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = if words.is_empty() { "-".to_owned() } else { words.join(" ") };
        Field { value, is_number, ..Field::default() }
    }

    /// A cell whose error has no part in it.
    fn alone(cell: &Cell) -> Field {
        match cell {
            Cell::None => Field::new("", false),
            Cell::Text(text) => Field::new(text, false),
            Cell::Count(n) | Cell::Size(n) => Field::new(&n.to_string(), true),
            Cell::Range(least, greatest) => {
                Field::new(&format!("{}..{}", short(*least), short(*greatest)), false)
            }
            Cell::TooSmall => Field::new("n too small", false),
            Cell::NotComputed => Field::new("not computed", false),
            Cell::Bad(cell) => Field { tone: Tone::Bad, ..Field::alone(cell) },
            Cell::Figure(Figure { value, scale, decimals, .. }) => {
                let shown = match decimals {
                    Some(decimals) => fixed(value.0 * scale, *decimals),
                    None => with_error(value.0, None, *scale).0,
                };
                Field::new(&shown, true)
            }
        }
    }

    /// A cell, and its error as a field of its own.
    pub fn and_error(cell: &Cell) -> (Field, Field) {
        let Cell::Figure(figure) = cell else { return (Field::alone(cell), Field::new("", false)) };
        let tone = tone(figure);
        let (value, error) = match figure.decimals {
            Some(_) => (Field::alone(cell).value, None),
            None => with_error(figure.value.0, figure.interval, figure.scale),
        };
        let is_weak = figure.is_weak.then_some(MARK);
        let error = error.unwrap_or_default() + figure.sign() + is_weak.unwrap_or_default();
        // An interval has two points; it stands under no other.
        let error = Field { tone, ..Field::new(&error, error.starts_with('±')) };
        (Field { tone, ..Field::new(&value, true) }, error)
    }

    /// A cell for a glance, with its error.
    pub fn compact(cell: &Cell, room: Room) -> Field {
        let Cell::Figure(figure) = cell else { return Field::alone(cell) };
        let (value, error) = match figure.decimals {
            Some(_) => (Field::alone(cell).value, None),
            None => compact(figure.value.0, figure.interval, figure.scale, room),
        };
        let tone = tone(figure);
        let error_tone = if tone == Tone::Plain { Tone::Faint } else { tone };
        let mark = if figure.is_weak { MARK } else { "" };
        let error = error.unwrap_or_default();
        let gap = if error.is_empty() { "" } else { " " };
        let error = format!("{gap}{error}{}{mark}", figure.sign());
        Field { error, tone, error_tone, ..Field::new(&value, true) }
    }

    /// Characters before the point, and from it on; those of words are all before it.
    pub fn at_point(&self) -> (usize, usize) {
        let (whole, fraction) =
            if self.is_number { at_point(&self.value) } else { (&*self.value, "") };
        (width(whole), width(fraction))
    }

    /// Characters from the point on.
    pub fn fraction(&self) -> usize {
        self.at_point().1
    }
}

/// How a figure is to be read.
fn tone(figure: &Figure) -> Tone {
    let value = figure.value.0;
    let is_large = figure.interval.is_some_and(|interval| {
        let error = (value - interval.low.0).max(interval.high.0 - value);
        // Of an open interval, or an infinite value, it is no number.
        error.is_nan() || error > LARGE_ERROR * value.abs()
    });
    if is_large || figure.is_weak { Tone::Uncertain } else { Tone::Plain }
}
