//! A file while it is drawn: its size, its letters and its colours.

use crate::escape::escaped;
use std::fmt::Write;

/// Units across a file.
pub const WIDTH: f64 = 480.0;
/// What a file is wide where nothing else is asked for.
pub const WIDTH_CM: f64 = 16.0;
/// Letters, and their lines.
pub const LETTER: f64 = 13.0;
pub const LINE: f64 = 16.0;
/// Width of a letter of an unknown font without serifs, on the safe side.
pub const ADVANCE: f64 = 0.6;
/// From the edge of a file to what is drawn.
pub const EDGE: f64 = 6.0;

pub const TEXT: &str = "#1a1a1a";
pub const FAINT: &str = "#767676";
pub const GRID: &str = "#d9d9d9";
pub const BAD: &str = "#b3261e";
/// That of the page on white (`web/theme.js`).
pub const PALETTE: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#b4538a", "#3f9ad0", "#b07d00", "#3b3b3b"];

/// A rectangle in the units of a file.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(self) -> f64 {
        self.right - self.left
    }

    pub fn height(self) -> f64 {
        self.bottom - self.top
    }
}

/// Where the letters of a text are, seen from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A file while it is drawn.
pub struct Canvas {
    pub body: String,
}

impl Canvas {
    /// With its title on top; says where that ends.
    pub fn titled(title: &str) -> (Canvas, f64) {
        let mut canvas = Canvas { body: String::new() };
        let lines = wrapped(title, WIDTH - 2.0 * EDGE, LETTER * 1.1);
        canvas.body += &format!("<g font-size=\"{:.1}\" font-weight=\"600\">", LETTER * 1.1);
        for (at, line) in lines.iter().enumerate() {
            canvas.text(EDGE, EDGE + LETTER + at as f64 * LINE, Anchor::Start, line);
        }
        canvas.body += "</g>\n";
        (canvas, EDGE + LINE * lines.len() as f64 + 10.0)
    }

    pub fn push(&mut self, markup: std::fmt::Arguments<'_>) {
        // Writing into a text cannot fail.
        let _ = self.body.write_fmt(markup);
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escaped(text);
        self.push(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>\n"));
    }

    /// A text from below, which ends at its place or has its middle there.
    pub fn upright(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.push(format_args!("<g transform=\"translate({x:.1} {y:.1}) rotate(-90)\">"));
        self.text(0.0, 0.0, anchor, text);
        self.body += "</g>\n";
    }

    /// The whole file, so high.
    pub fn finish(self, title: &str, note: &str, height: f64) -> String {
        let (title, note) = (escaped(title), escaped(note));
        let (body, height_cm) = (self.body, WIDTH_CM * height / WIDTH);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH_CM}cm\" \
             height=\"{height_cm:.2}cm\" viewBox=\"0 0 {WIDTH} {height:.1}\" role=\"img\" \
             font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{LETTER}\" fill=\"{TEXT}\">\n\
             <title>{title}</title>\n<desc>{note}</desc>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.1}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

/// What a text is wide in letters of this size, at most.
pub fn width(text: &str, letter: f64) -> f64 {
    text.chars().count() as f64 * letter * ADVANCE
}

/// The lines of a text that fit; a word that does not has a line of its own.
pub fn wrapped(text: &str, room: f64, letter: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), letter) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A colour of the palette, or a faint one.
pub fn colour(at: Option<usize>) -> &'static str {
    at.map_or(FAINT, |at| PALETTE[at % PALETTE.len()])
}
