//! How a report is laid out as text: for a terminal of some width, or for other programs.

use super::text::{Text, Tone};
use std::convert::Infallible;
use std::str::FromStr;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// A terminal that says it is narrower is laid out as if it had so many characters.
const NARROWEST: usize = 20;

/// The columns of tables that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// On a terminal those that fit, by their rank; all where the text goes to a program.
    #[default]
    Fitting,
    /// All.
    All,
    /// Those with these names, and what says which row it is.
    Named(Vec<String>),
}

impl FromStr for Columns {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Columns, Infallible> {
        Ok(match text {
            "all" => Columns::All,
            names => Columns::Named(names.split(',').map(name_of).collect()),
        })
    }
}

/// A name as it is compared: in small letters, without spaces and signs between words.
fn name_of(text: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "./%".contains(*c);
    text.to_lowercase().chars().filter(kept).collect()
}

/// How a report is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Characters of a line at most; `None`: the text goes to a program, and a line is never
    /// broken.
    pub width: Option<usize>,
    /// The columns of tables.
    pub columns: Columns,
    /// Whether everything is told: notes, all warnings, the instrument, the clock and the noise.
    pub verbose: bool,
}

impl Layout {
    /// For a terminal of this width.
    pub fn of_width(width: usize) -> Layout {
        Layout { width: Some(width.max(NARROWEST)), ..Layout::default() }
    }

    /// Whether a column was asked for by one of its names.
    pub(super) fn has_named(&self, names: &[&str]) -> bool {
        match &self.columns {
            Columns::Named(wanted) => names.iter().any(|name| wanted.contains(&name_of(name))),
            Columns::Fitting | Columns::All => true,
        }
    }

    /// The lines of a sentence, those after the first indented.
    pub(super) fn lines(&self, sentence: &str) -> Vec<String> {
        let sentence = sentence.replace('\n', " ");
        let Some(width) = self.width else { return vec![sentence] };
        let indent = sentence.len() - sentence.trim_start().len();
        let (own, further) = (" ".repeat(indent), " ".repeat(indent + 2));
        let options = options(width).initial_indent(&own).subsequent_indent(&further);
        textwrap::wrap(sentence.trim_start(), options).into_iter().map(Into::into).collect()
    }

    /// A sentence on lines of its own. Its first word is emphasised where a colon ends it.
    pub fn sentence(&self, sentence: &str, first: Tone) -> Text {
        let mut text = Text::default();
        for (number, line) in self.lines(sentence).iter().enumerate() {
            let is_word = |end: &usize| number == 0 && !line[..*end].trim_start().contains(' ');
            let word = line.find(": ").filter(is_word);
            let (word, rest) = line.split_at(word.map_or(0, |end| end + 1));
            text.push(first, word);
            text.push(Tone::Plain, rest);
            text.end_line();
        }
        text
    }
}

/// Lines are broken between words alone; a word that is longer than a line is broken too.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// A text in lines of at most so many characters.
pub(super) fn broken(text: &str, width: usize) -> Vec<String> {
    textwrap::wrap(text, options(width)).into_iter().map(Into::into).collect()
}

/// Characters that a terminal needs for a text.
pub(super) fn width(text: &str) -> usize {
    display_width(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_named_as_their_heads_are() {
        let layout = |text: &str| {
            let columns = text.parse().unwrap_or_default();
            Layout { columns, ..Layout::default() }
        };
        assert!(layout("P99.9,of-rounds").has_named(&["p99.9"]));
        assert!(layout("P99.9,of-rounds").has_named(&["of rounds"]));
        assert!(!layout("P99.9").has_named(&["p99", "p99 us"]));
        assert!(layout("all").has_named(&["p99"]));
    }

    proptest! {
        #[test]
        fn sentences_are_wrapped_between_words(
            words in prop::collection::vec("[a-z0-9-]{1,18}", 1..30), width in 20usize..130,
        ) {
            let lines = Layout::of_width(width).lines(&words.join(" "));
            prop_assert!(lines.iter().all(|line| super::width(line) <= width));
            prop_assert!(lines.iter().skip(1).all(|line| line.starts_with("  ")));
            let all = lines.join(" ");
            prop_assert_eq!(all.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
