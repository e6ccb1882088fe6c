//! Text in pieces of which each knows how it is to be read, so that a terminal can colour it.

use anstyle::{AnsiColor, Style};
use std::fmt;
use wiregauge_plan::written::escaped;

/// How a piece is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A value, or words.
    #[default]
    Plain,
    /// The head of a table, or the first word of a sentence.
    Head,
    /// The error of a value, and what a reader may skip.
    Faint,
    /// A value that is known badly, or that a warning weakens.
    Uncertain,
    /// What must not be passed over.
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Head => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Uncertain => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// Lines of text. What they quote cannot move a cursor or change a colour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<(Tone, String)>,
}

impl Text {
    /// Adds a piece.
    pub fn push(&mut self, tone: Tone, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = escaped(text);
        match self.pieces.last_mut() {
            Some((last, end)) if *last == tone => end.push_str(&text),
            _ => self.pieces.push((tone, text)),
        }
    }

    /// Adds another text.
    pub fn append(&mut self, other: Text) {
        other.pieces.iter().for_each(|(tone, text)| self.push(*tone, text));
    }

    /// Ends a line; no line ends in a space.
    pub fn end_line(&mut self) {
        while let Some((_, last)) = self.pieces.last_mut() {
            last.truncate(last.trim_end_matches(' ').len());
            if !last.is_empty() {
                break;
            }
            self.pieces.pop();
        }
        self.push(Tone::Plain, "\n");
    }

    /// Whether it has nothing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// With the escape sequences of a terminal's colours.
    pub fn painted(&self) -> String {
        let paint = |(tone, text): &(Tone, String)| {
            let style = tone.style();
            format!("{style}{text}{style:#}")
        };
        self.pieces.iter().map(paint).collect()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_ours_and_what_is_quoted_has_none() {
        let mut text = Text::default();
        text.push(Tone::Plain, "a  ");
        text.push(Tone::Bad, "\u{1b}[2J");
        text.push(Tone::Faint, "  ");
        text.end_line();
        assert_eq!(text.to_string(), "a  \\u{1b}[2J\n");
        assert_eq!(text.painted(), "a  \u{1b}[1m\u{1b}[31m\\u{1b}[2J\u{1b}[0m\n");
    }
}
